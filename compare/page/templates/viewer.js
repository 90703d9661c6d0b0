// The live token viewer and the stepper through a word's merges. Both use what tests call: encodeWith, mergeSteps.
"use strict";

const SPECS = JSON.parse(document.getElementById("tokenizers").textContent);
const TOKENIZERS = new Map();

function tokenizerOf(name) {
  if (!TOKENIZERS.has(name)) {
    TOKENIZERS.set(name, new BrowserTokenizer(SPECS.find((spec) => spec.name === name)));
  }
  return TOKENIZERS.get(name);
}

// {ids, tokens, unknown} or {error}. An unknown character has id null and is counted in `unknown`.
window.encodeWith = function (name, text) {
  try {
    const symbols = tokenizerOf(name).encode(text);
    return { ids: symbols.map((symbol) => symbol.id), tokens: symbols, unknown: unknownCharacters(symbols) };
  } catch (error) {
    if (error instanceof RangeError) return { error: error.message };
    throw error;
  }
};

// The ids after every merge of a word, from its base symbols to its tokens.
window.mergeSteps = function (name, text) {
  return tokenizerOf(name)
    .steps(text)
    .map((state) => state.pieces.flat().map((symbol) => symbol.id));
};

function unknownCharacters(symbols) {
  const counts = new Map();
  for (const { id, raw } of symbols) if (id === null) counts.set(raw, (counts.get(raw) || 0) + 1);
  return Array.from(counts, ([character, count]) => ({ character, code_point: codePoint(character), count }));
}

function codePoint(character) {
  return "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
}

// What stands for a token on the screen; bytes that are no whole characters in hexadecimal.
function visible(raw) {
  let text = raw;
  if (Array.isArray(raw)) {
    try {
      text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(raw));
    } catch {
      return raw.map((byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
    }
  }
  return Array.from(text, visibleCharacter).join("");
}

// A name as the page shows names: hidden characters as their code.
function shownName(name) {
  return Array.from(name, (character) => (character === " " ? character : visibleCharacter(character, 1))).join("");
}

const STAND_INS = new Map([[" ", "␣"], ["\n", "↵"], ["\r", "␍"], ["\t", "⇥"], ["\u007f", "␡"]]);

function visibleCharacter(character, index) {
  if (STAND_INS.has(character)) return STAND_INS.get(character);
  const code = character.codePointAt(0);
  if (code < 32) return String.fromCodePoint(0x2400 + code);
  if (/[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u.test(character)) return codePoint(character);
  return /\p{M}/u.test(character) && index === 0 ? "◌" + character : character;
}

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function chip(symbol, number) {
  const isUnknown = symbol.id === null;
  const node = make("span", isUnknown ? "token unknown" : `token t${number % 5}`, visible(symbol.raw));
  node.append(make("small", "", isUnknown ? `unknown ${codePoint(symbol.raw)}` : String(symbol.id)));
  return node;
}

function endsLine(symbol) {
  return Array.isArray(symbol.raw) ? symbol.raw[symbol.raw.length - 1] === 10 : symbol.raw.endsWith("\n");
}

function plural(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function showContestant(spec, text) {
  const block = make("div", "contestant");
  const heading = make("h4", "", `${shownName(spec.name)} `);
  block.append(heading);
  if (spec.left_out) {
    block.append(make("p", "note", `Left out: ${spec.left_out}.`));
    return block;
  }
  const result = window.encodeWith(spec.name, text);
  if (result.error) {
    block.append(make("p", "problem", `Refused: ${result.error}.`));
    return block;
  }
  const numCharacters = Array.from(text).length;
  const each = result.ids.length ? `, ${(numCharacters / result.ids.length).toFixed(2)} characters each` : "";
  heading.append(make("span", "", `${plural(result.ids.length, "token")} for ${plural(numCharacters, "character")}${each}`));
  if (result.unknown.length) {
    const named = result.unknown.map((one) => `${visible(one.character)} ${one.code_point} ×${one.count}`).join(", ");
    block.append(make("p", "problem", `Not in this vocabulary (Python refuses such a text): ${named}.`));
  }
  const tokens = make("div", "tokens");
  result.tokens.forEach((symbol, number) => {
    tokens.append(chip(symbol, number));
    if (endsLine(symbol)) tokens.append(make("span", "newline"));
  });
  block.append(tokens);
  return block;
}

function showTokens() {
  const text = document.getElementById("viewer-text").value;
  document.getElementById("viewer-tokens").replaceChildren(...SPECS.map((spec) => showContestant(spec, text)));
}

const stepper = { states: [], at: 0 };

function restartStepper() {
  const name = document.getElementById("step-name").value;
  const word = document.getElementById("step-word").value;
  stepper.error = null;
  stepper.at = 0;
  try {
    stepper.states = tokenizerOf(name).steps(word);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    stepper.states = [{ pieces: [], merge: null }];
    stepper.error = error.message;
  }
  showStep();
}

function goTo(step) {
  stepper.at = Math.max(0, Math.min(step, stepper.states.length - 1));
  showStep();
}

function stepSentence(tokenizer) {
  const last = stepper.states.length - 1;
  const { pieces, merge } = stepper.states[stepper.at];
  if (stepper.error) return `Refused: ${stepper.error}.`;
  const count = plural(pieces.flat().length, "token");
  if (stepper.at === 0) return `${count} before the first of ${plural(last, "merge")}.`;
  const [left, right] = [tokenizer.merges[2 * merge.rank], tokenizer.merges[2 * merge.rank + 1]];
  const made = `${visible(tokenizer.raw[left])} + ${visible(tokenizer.raw[right])}`;
  const id = tokenizer.numBase + merge.rank;
  return `Step ${stepper.at} of ${last}: ${made} by merge ${merge.rank + 1}, the new id is ${id}; ${count}.`;
}

function showStep() {
  const tokenizer = tokenizerOf(document.getElementById("step-name").value);
  const last = stepper.states.length - 1;
  const { pieces, merge } = stepper.states[stepper.at];
  const following = stepper.at < last ? stepper.states[stepper.at + 1].merge : null;
  const nodes = [];
  let number = 0;
  pieces.forEach((piece, which) => {
    if (which > 0) nodes.push(make("span", "cut"));
    piece.forEach((symbol, index) => {
      const node = chip(symbol, number++);
      if (merge && merge.piece === which && merge.index === index) node.classList.add("merged");
      const isNext = following && following.piece === which && index >= following.index && index <= following.index + 1;
      if (isNext) node.classList.add("next");
      nodes.push(node);
    });
  });
  document.getElementById("step-tokens").replaceChildren(...nodes);
  document.getElementById("step-said").textContent = stepSentence(tokenizer);
  for (const id of ["step-first", "step-previous"]) document.getElementById(id).disabled = stepper.at === 0;
  for (const id of ["step-next", "step-last"]) document.getElementById(id).disabled = stepper.at === last;
}

function stepByKey(event) {
  const targets = { ArrowLeft: stepper.at - 1, ArrowRight: stepper.at + 1, Home: 0, End: stepper.states.length - 1 };
  if (!(event.key in targets)) return;
  event.preventDefault();
  goTo(targets[event.key]);
}

function startViewer() {
  const start = JSON.parse(document.getElementById("viewer-start").textContent);
  document.getElementById("viewer-body").hidden = false;
  document.getElementById("viewer-text").value = start.text;
  document.getElementById("step-word").value = start.word;
  document.getElementById("viewer-text").addEventListener("input", showTokens);
  showTokens();
  const choice = document.getElementById("step-name");
  const embedded = SPECS.filter((spec) => !spec.left_out);
  const mergers = embedded.filter((spec) => spec.merges.length);
  for (const spec of mergers.length ? mergers : embedded) {
    const option = make("option", "", shownName(spec.name));
    option.value = spec.name;
    choice.append(option);
  };
  if (!choice.options.length) {
    document.getElementById("stepper").replaceChildren(make("p", "note", "No vocabulary is in this page."));
    return;
  }
  choice.addEventListener("change", restartStepper);
  document.getElementById("step-word").addEventListener("input", restartStepper);
  document.getElementById("stepper").addEventListener("keydown", stepByKey);
  const buttons = { first: () => 0, previous: () => stepper.at - 1, next: () => stepper.at + 1, last: () => Infinity };
  for (const [name, target] of Object.entries(buttons)) {
    document.getElementById(`step-${name}`).addEventListener("click", () => goTo(target()));
  }
  restartStepper();
}

startViewer();
