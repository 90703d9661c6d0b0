"""What a reader of the page sees in a real browser: sizes, folds, contrast, long names."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser_helpers import close_page, launched, needs_chromium, open_page
from compare.page.curves import curve_paths, draw_curves
from compare.page.data import page_of
from compare.page.render import write_page
from compare.page.values import Figure, Sample
from compare.page.values import Page as PageValues
from page_helpers import DOCUMENTS, SPLITS, entries_of, every_tokenizer, full_comparison, full_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LEVELS = [Figure("character n-gram", 3.4)]
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with launched() as one:
        yield one


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "index.html"
    write_page(path, full_page())
    return path.as_uri()


# What a reader sees of every text: its colour against the nearest background behind it (WCAG 2, relative luminance).
CONTRAST = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let node = element; node; node = node.parentElement) {
      const colour = rgb(getComputedStyle(node).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
      if (colour[3] !== 0) throw new Error('half-transparent background');
    }
    return rgb(getComputedStyle(document.documentElement).backgroundColor);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let number = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || element.closest('script, style, noscript, title, option')) continue;
    const style = getComputedStyle(element);
    const pair = [element.closest('svg') ? style.fill : style.color, behind(element)];
    const [a, b] = [luminance(rgb(pair[0])), luminance(pair[1])];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    number++;
    if (contrast < 4.5) found.push([walker.currentNode.textContent.slice(0, 40), pair.join(' on '), contrast]);
  }
  return {number, found};
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(browser: "Browser", address: str, scheme: Any) -> None:
    page = open_page(browser, address, color_scheme=scheme)
    page.fill("#viewer-text", "the naïve 🦜 tokens of a text\n")
    page.click("#step-next")
    result = page.evaluate(CONTRAST)
    assert result["number"] > 500
    assert result["found"] == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(253, 253, 251)" if scheme == "light" else "rgb(21, 23, 26)"
    )
    close_page(page)


@pytest.mark.parametrize("width", [360, 768])
def test_no_sideways_scroll(browser: "Browser", address: str, width: int) -> None:
    page = open_page(browser, address, viewport={"width": width, "height": 740}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") == width  # with tokens of a whole line
    page.fill("#viewer-text", "x" * 90 + " " + "🦜" * 9)
    page.fill("#step-word", "w" * 100)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator(".picture").first.bounding_box()["width"] <= width  # type: ignore[index]
    page.locator(".scatter .document").nth(3).tap(force=True)
    assert "characters" in page.locator(".scatter .readout").first.inner_text()
    close_page(page)


def many_and_long() -> PageValues:
    """Ten contestants, some with names of sixty letters, in one document of Chinese and emoji."""
    names = [*(f"{number}_name_of_sixty_letters_{'x' * 35}"[:60] for number in range(4)), *"efghij"]
    kinds = [every_tokenizer()[kind] for kind in ("char", "byte")]
    entries = entries_of({name: kinds[number % 2] for number, name in enumerate(names)})
    page = page_of(
        full_comparison(entries),
        entries=entries,
        splits=SPLITS,
        tokenizers={entry.name: kinds[0] for entry in entries},
        samples={name: (Sample("春眠", "不觉晓🙂\n" * 40, temperature=0.0, seed=1),) for name in names},
    )
    return replace(
        page,
        answer=f"{', '.join(names[1:5])} are better than {names[0]}.",
        how_sure=tuple(f"{name} needs 0.213 fewer bits per character than {names[0]}." for name in names[1:]),
        noise="Training noise is assumed, because there is one seed.",
        not_held_equal=("optimizer steps: " + ", ".join(f"{name} 1,234" for name in names),),
    )


@pytest.mark.parametrize(("width", "screen"), [(1280, 900), (390, 844)])
def test_many_long_names_fit(browser: "Browser", tmp_path: Path, width: int, screen: int) -> None:
    write_page(tmp_path / "index.html", many_and_long())
    address = (tmp_path / "index.html").as_uri()
    page = open_page(browser, address, unfolded=False, viewport={"width": width, "height": screen})
    compared = page.locator(".compared").bounding_box()
    assert compared is not None and compared["y"] + compared["height"] < screen
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    beyond = """() => [...document.querySelectorAll('svg text')].filter((one) => {
      const [text, svg] = [one.getBoundingClientRect(), one.ownerSVGElement.getBoundingClientRect()];
      return text.right > svg.right + 2 || text.left < svg.left - 2;
    }).map((one) => one.textContent)"""
    assert page.evaluate(beyond) == []
    close_page(page)


def height_of(page: "Page") -> int:
    return int(page.evaluate("document.documentElement.scrollHeight"))


@pytest.mark.parametrize(("width", "screen", "most"), [(1280, 800, 3_500), (390, 844, 6_000)], ids=["desk", "phone"])
def test_folded_the_page_is_short_and_begins_with_what_was_found(
    browser: "Browser", address: str, width: int, screen: int, most: int
) -> None:
    page = open_page(browser, address, unfolded=False, viewport={"width": width, "height": screen})
    assert height_of(page) < most
    for wanted in ("#answer", "header .sure li:last-child", ".compared"):
        box = page.locator(wanted).bounding_box()
        assert box is not None and box["y"] + box["height"] < screen, wanted
    size = "(selector) => parseFloat(getComputedStyle(document.querySelector(selector)).fontSize)"
    assert page.evaluate(size, "#answer") > 1.4 * page.evaluate(size, ".sure")
    assert page.locator("details[open]").count() == 0 and page.locator("details").count() == 12
    close_page(page)


def test_a_sample_of_line_ends_is_a_box_that_scrolls(browser: "Browser", tmp_path: Path) -> None:
    sample = Sample("\n", "\n" * 300 + "\tend", temperature=0.0, seed=1)
    write_page(tmp_path / "index.html", replace(full_page(), samples={"char": (sample,)}))
    page = open_page(browser, (tmp_path / "index.html").as_uri(), viewport={"width": 390, "height": 844})
    sample = page.locator("#samples blockquote")
    box = sample.bounding_box()
    assert box is not None and 100 < box["height"] < 250
    assert sample.inner_text().count("↵") == 300 and "⇥" in sample.inner_text()
    sample.focus()
    page.keyboard.press("End")  # by keyboard too
    for _ in range(50):  # scrolling is smooth
        scrolled = sample.evaluate("(one) => one.scrollTop")
        if scrolled > 1_000:
            break
        page.wait_for_timeout(50)
    assert scrolled > 1_000
    close_page(page)


def test_a_link_to_a_folded_part_opens_it(browser: "Browser", address: str) -> None:
    page = open_page(browser, address + "#samples", unfolded=False)
    assert page.locator("details[open]").get_attribute("id") == "samples"
    page.click("a[href='#baselines']")
    page.locator("#baselines[open]").wait_for()
    close_page(page)


def test_parts_are_unfolded_by_keyboard(browser: "Browser", address: str) -> None:
    page = open_page(browser, address, unfolded=False)
    page.focus("#viewer summary")
    page.keyboard.press("Enter")
    assert page.locator("#viewer-text").is_visible()
    close_page(page)


def test_the_viewer_starts_with_the_users_own_text(browser: "Browser", address: str) -> None:
    page = open_page(browser, address)
    start = full_page().viewer
    assert page.input_value("#viewer-text") == start.text and page.input_value("#step-word") == start.word
    assert start.text in "".join(DOCUMENTS)
    assert "Not in this vocabulary" not in page.inner_text("#viewer-tokens")
    close_page(page)


def test_the_files_of_the_curves_are_pictures(browser: "Browser", tmp_path: Path) -> None:
    draw_curves(tmp_path, entries_of({name: every_tokenizer()[name] for name in ("char", "byte")}), LEVELS)
    for path in curve_paths(tmp_path):
        page = browser.new_page()
        page.goto(path.as_uri())
        assert page.evaluate("getComputedStyle(document.querySelector('.line')).stroke") == "rgb(0, 114, 178)"
        ends = page.evaluate("[...document.querySelectorAll('text')].map((one) => one.getBoundingClientRect().right)")
        assert min(ends) > 0 and max(ends) <= 720
        page.close()
