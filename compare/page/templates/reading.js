// Values on hover, focus, tap and arrow keys: the passage's bits and the documents' names. Folded parts that links open.
"use strict";

function arrowStep(event, at, last) {
  const targets = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
  if (!(event.key in targets)) return null;
  event.preventDefault();
  return Math.max(0, Math.min(targets[event.key], last));
}

// One row of the passage for each contestant: the span of every character, and the spans in order.
function passageRows(container) {
  const rows = container.dataset.names.split("\n").map((name) => ({ name, spans: [], spanOfCharacter: [] }));
  for (const cell of container.querySelectorAll(".cell")) {
    Array.from(cell.children).forEach((line, number) => {
      for (const span of line.children) {
        const row = rows[number];
        span.dataset.start = row.spanOfCharacter.length;
        for (let i = Array.from(span.textContent).length; i > 0; i--) row.spanOfCharacter.push(row.spans.length);
        row.spans.push(span);
      }
    });
  }
  return rows;
}

// The text of the token that a span belongs to: back to where it begins, on to where the next one begins.
function tokenText(spans, number) {
  let from = number;
  let to = number + 1;
  while (from > 0 && !spans[from].classList.contains("t")) from--;
  while (to < spans.length && !spans[to].classList.contains("t")) to++;
  return spans.slice(from, to).map((span) => span.textContent).join("").replaceAll(" ", "␣");
}

function startPassage() {
  const container = document.getElementById("bits");
  const readout = document.getElementById("bits-readout");
  const rows = passageRows(container);
  const last = rows[0].spanOfCharacter.length - 1;
  let at = -1;
  function show(position) {
    at = position;
    for (const span of container.querySelectorAll(".on")) span.classList.remove("on");
    const parts = rows.flatMap(({ name, spans, spanOfCharacter }) => {
      const number = spanOfCharacter[position];
      spans[number].classList.add("on");
      const code = document.createElement("code");
      code.textContent = tokenText(spans, number);
      return [`${name} `, code, ` ${parseFloat(spans[number].title).toFixed(2)} bits per character \u2003`];
    });
    readout.replaceChildren(...parts);
  }
  container.addEventListener("pointerover", (event) => {
    if (event.target.matches("i")) show(Number(event.target.dataset.start));
  });
  container.addEventListener("keydown", (event) => {
    const target = arrowStep(event, at, last);
    if (target === null) return;
    show(target);
    container.querySelector(".on").scrollIntoView({ block: "nearest" });
  });
}

function startScatter(figure) {
  const plot = figure.querySelector(".plot");
  const readout = figure.querySelector(".readout");
  const points = Array.from(plot.querySelectorAll(".document")).sort(
    (a, b) => a.cx.baseVal.value - b.cx.baseVal.value || a.cy.baseVal.value - b.cy.baseVal.value,
  );
  let at = -1;
  function show(number) {
    if (at >= 0) points[at].classList.remove("on");
    at = number;
    points[at].classList.add("on");
    readout.textContent = points[at].querySelector("title").textContent;
  }
  function nearest(event) {
    const svg = plot.querySelector("svg");
    const here = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let best = -1;
    let least = 14; // a finger's reach, in units of the picture
    points.forEach((point, number) => {
      const distance = Math.hypot(point.cx.baseVal.value - here.x, point.cy.baseVal.value - here.y);
      if (distance < least) [best, least] = [number, distance];
    });
    if (best >= 0 && best !== at) show(best);
  }
  plot.addEventListener("pointermove", nearest);
  plot.addEventListener("pointerdown", nearest);
  plot.addEventListener("keydown", (event) => {
    const target = arrowStep(event, at, points.length - 1);
    if (target !== null) show(target);
  });
}

// A link to a folded part opens it; paper shows all of them.
function openLinked() {
  const target = location.hash ? document.getElementById(location.hash.slice(1)) : null;
  const fold = target && target.closest("details");
  if (!fold) return;
  fold.open = true;
  fold.scrollIntoView();
}

startPassage();
window.addEventListener("hashchange", openLinked);
window.addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
openLinked();
document.querySelectorAll(".scatter").forEach(startScatter);
