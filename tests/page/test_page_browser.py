"""The page in a real browser: Chromium, driven through playwright; skipped, saying so, where either is missing."""

import random
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import regex

from browser_helpers import close_page, launched, needs_chromium, open_page
from compare.page.render import write_page
from compare.page.values import Vocabulary
from data.errors import TokenizerError
from page_helpers import DOCUMENTS, every_tokenizer, full_page
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.pretokenize import pretokenize

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = needs_chromium
PIECES = (
    *("the", " tokens", "Count", " characters", "don't", "DON'T", "I'LL", "we'Ve", "it'ſ", "'", "''re", " ’s", "naïve"),
    *("\n", "\r\n", "\r", "\t", " ", "  ", "    ", "\n\n", " \n ", "\u00a0", "\u2028", "\u2029", "\u0085", "\ufeff"),
    *("\x00", "\x1c", "\x1f", "\x7f", "\u200b", "\u200d", "\u3000", "\u1680", "\u180e", "é", "e\u0301", "\u0301", "ß"),
    *(
        "日本語",
        "文",
        "🙂",
        "👩‍👩‍👧",
        "🇩🇪",
        "\U0010ffff",
        "\ufffd",
        "\ue000",
        "1",
        "12",
        "1234567",
        "½",
        "²",
        "٣",
        "Ⅷ",
        "3.14",
    ),
    *("aaa", "aaaaaaa", "...", "!?", "<b>", "</script>", "&amp;", "__init__", "“q”", "–", "ﬁ", "İ", "K", "Ω", "x" * 50),
)


def varied_strings() -> list[str]:
    """Every piece alone, and pieces drawn and joined, 200 in all."""
    rng = random.Random(7)
    strings = ["", *PIECES, *DOCUMENTS[:4]]
    while len(strings) < 200:
        strings.append("".join(rng.choices(PIECES, k=rng.randint(2, 12))))
    return strings


STRINGS = varied_strings()


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with launched() as one:
        yield one


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "index.html"
    write_page(path, full_page())
    return path.as_uri()


@pytest.fixture(scope="module")
def desk(browser: "Browser", address: str) -> Iterator["Page"]:
    page = open_page(browser, address, viewport={"width": 1280, "height": 900})
    yield page
    close_page(page)


def expected_ids(tokenizer: Tokenizer, text: str) -> list[int | None]:
    """Python's ids; where it refuses characters, None for each and the ids of what stands between them."""
    try:
        return list(tokenizer.encode(text))
    except TokenizerError:
        known = set(tokenizer.base_tokens)  # type: ignore[attr-defined]
    pattern = getattr(tokenizer, "split_pattern", "none")
    whole = tokenizer
    if isinstance(tokenizer, BPETokenizer):  # the pieces are cut already: encode them without cutting again
        whole = BPETokenizer(tokenizer.base_tokens, tokenizer.merges, kind=tokenizer.kind)
    ids: list[int | None] = []
    for piece in pretokenize(text, pattern):
        run = ""
        for character in piece:
            if character in known:
                run += character
            else:
                ids += [*whole.encode(run), None]
                run = ""
        ids += whole.encode(run)
    return ids


@pytest.mark.parametrize("name", list(every_tokenizer()))
def test_ids_equal_pythons(desk: "Page", name: str) -> None:
    tokenizer = every_tokenizer()[name]
    found = desk.evaluate("([name, texts]) => texts.map((text) => window.encodeWith(name, text).ids)", [name, STRINGS])
    for text, ids in zip(STRINGS, found, strict=True):
        assert ids == expected_ids(tokenizer, text), (name, text)


@pytest.mark.parametrize("name", ["char", "char_bpe_none", "char_bpe_gpt4"])
def test_unknown_characters_are_counted_by_name(desk: "Page", name: str) -> None:
    result = desk.evaluate("([name, text]) => window.encodeWith(name, text)", [name, "a\u2028ж🦜🦜ж🦜b"])
    assert result["unknown"] == [
        {"character": "\u2028", "code_point": "U+2028", "count": 1},
        {"character": "ж", "code_point": "U+0436", "count": 2},
        {"character": "🦜", "code_point": "U+1F99C", "count": 3},
    ]
    assert result["ids"].count(None) == 6


@pytest.mark.parametrize("name", ["char", "byte", "char_bpe_gpt2", "byte_bpe_none"])
def test_a_lone_surrogate_is_refused_in_words(desk: "Page", name: str) -> None:
    result = desk.evaluate("(name) => window.encodeWith(name, '🙂a\\ud83d')", name)
    assert result == {"error": "lone surrogate U+D83D at offset 2: it has no UTF-8 form, so it is refused"}
    with pytest.raises(TokenizerError):
        every_tokenizer()[name].encode("🙂a\ud83d")


def test_classes_of_characters_are_pythons(desk: "Page") -> None:
    """White space, letters and numbers, for all characters that this Python's edition of Unicode knows."""
    known = [code for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    text = "".join(map(chr, known))
    for javascript, python in ((r"\p{White_Space}", r"\s"), (r"\p{L}", r"\p{L}"), (r"\p{N}", r"\p{N}")):
        found = desk.evaluate(
            "([text, pattern]) => Array.from(text.matchAll(new RegExp(pattern, 'gu')), (m) => m[0]).join('')",
            [text, javascript],
        )
        assert found == "".join(regex.findall(python, text)), javascript


def test_long_runs_are_encoded_exactly(desk: "Page") -> None:
    for name in ("char_bpe_none", "byte_bpe_none"):
        text = "the characters  " * 2_000
        found = desk.evaluate("([name, text]) => window.encodeWith(name, text).ids", [name, text])
        assert found == every_tokenizer()[name].encode(text)


@pytest.mark.parametrize("name", ["char", "char_bpe_none", "char_bpe_gpt4", "byte_bpe_gpt2", "byte_bpe_space"])
def test_steps_reach_the_tokens_one_merge_at_a_time(desk: "Page", name: str) -> None:
    words = [" characters", "don't", "aaaaaaa", "naïve", "How many tokens", ""]
    all_steps = desk.evaluate("([name, words]) => words.map((word) => window.mergeSteps(name, word))", [name, words])
    for word, steps in zip(words, all_steps, strict=True):
        assert steps[-1] == every_tokenizer()[name].encode(word)
        assert [len(step) for step in steps] == list(range(len(steps[0]), len(steps[-1]) - 1, -1))
    if name == "char_bpe_none":
        tokenizer = every_tokenizer()[name]
        assert steps_of_python(tokenizer, words[0]) == all_steps[0]


def steps_of_python(tokenizer: Tokenizer, word: str) -> list[list[int]]:
    """The definition: the merges in learned order, every replacement on its own."""
    assert isinstance(tokenizer, BPETokenizer)
    tokens = list(word)
    steps = [list(tokens)]
    for left, right in tokenizer.merges:
        index = 0
        while index + 1 < len(tokens):
            if (tokens[index], tokens[index + 1]) == (left, right):
                tokens[index : index + 2] = [left + right]
                steps.append(list(tokens))
            index += 1
    return [[tokenizer.stoi[token] for token in step] for step in steps]


def test_typing_shows_every_contestants_tokens(desk: "Page") -> None:
    text = "the naïve 🦜 <b>"
    desk.fill("#viewer-text", text)
    blocks = desk.locator("#viewer-tokens .contestant")
    assert blocks.count() == len(every_tokenizer())
    for number, name in enumerate(every_tokenizer()):
        ids = expected_ids(every_tokenizer()[name], text)
        shown = blocks.nth(number).locator(".token small").all_inner_texts()
        assert shown == ["unknown U+1F99C" if index is None else str(index) for index in ids]
        assert f"{len(ids)} tokens for {len(text)} characters" in blocks.nth(number).inner_text()
    assert "Not in this vocabulary" in blocks.nth(0).inner_text()
    assert blocks.nth(0).locator(".token.unknown").count() == 1


def test_an_empty_text_has_no_tokens(desk: "Page") -> None:
    desk.fill("#viewer-text", "")
    assert desk.locator("#viewer-tokens .token").count() == 0
    assert "0 tokens for 0 characters" in desk.inner_text("#viewer-tokens")


def stepper_ids(page: "Page") -> list[int]:
    return [int(text) for text in page.locator("#step-tokens small").all_inner_texts()]


def test_the_stepper_by_keyboard_and_by_button(desk: "Page") -> None:
    name = "char_bpe_none"
    desk.select_option("#step-name", name)
    desk.fill("#step-word", " characters")
    steps = steps_of_python(every_tokenizer()[name], " characters")
    assert len(steps) > 3
    desk.focus("#stepper")
    assert stepper_ids(desk) == steps[0] and desk.locator("#step-previous").is_disabled()
    for step in steps[1:]:
        desk.keyboard.press("ArrowRight")
        assert stepper_ids(desk) == step
    desk.keyboard.press("ArrowRight")  # nothing beyond the last
    assert stepper_ids(desk) == steps[-1] and desk.locator("#step-next").is_disabled()
    desk.keyboard.press("ArrowLeft")
    assert stepper_ids(desk) == steps[-2]
    desk.keyboard.press("Home")
    assert stepper_ids(desk) == steps[0]
    desk.keyboard.press("End")
    assert stepper_ids(desk) == steps[-1]
    assert f"Step {len(steps) - 1} of {len(steps) - 1}" in desk.inner_text("#step-said")
    for button, expected in (("first", 0), ("next", 1), ("previous", 0), ("last", -1)):
        desk.click(f"#step-{button}")
        assert stepper_ids(desk) == steps[expected]


def test_bits_are_read_by_pointer_and_keyboard(desk: "Page") -> None:
    first = desk.locator("#bits i").first
    bits = re.match(r"[\d.]+", first.get_attribute("title") or "")
    assert bits is not None
    first.hover()
    assert f"char {first.inner_text()} {bits.group()} bits per character" in desk.inner_text("#bits-readout")
    desk.mouse.move(0, 0)  # a pointer that rests on the passage speaks again when the page scrolls under it
    desk.focus("#bits")
    before = desk.inner_text("#bits-readout")
    desk.keyboard.press("ArrowRight")
    after = desk.inner_text("#bits-readout")
    assert after != before and all(name in after for name in ("char", "char_bpe_none", "byte_bpe_gpt2"))
    assert desk.locator("#bits i.on").count() == 3  # one for each contestant, above one another
    desk.keyboard.press("End")
    assert desk.inner_text("#bits-readout") != after


def test_rows_of_the_passage_stand_above_one_another(desk: "Page") -> None:
    uneven = desk.evaluate(
        """() => [...document.querySelectorAll('#bits .cell')].filter((cell) => {
             const widths = [...cell.children].map((row) => row.getBoundingClientRect().width);
             return Math.max(...widths) - Math.min(...widths) > 0.6;
           }).length"""
    )
    assert uneven == 0


def test_documents_are_named_by_pointer_and_keyboard(desk: "Page") -> None:
    figure = desk.locator(".scatter").first
    readout = figure.locator(".readout")
    assert readout.inner_text() == ""
    figure.locator(".plot").focus()
    seen = set()
    for _ in range(len(DOCUMENTS)):
        desk.keyboard.press("ArrowRight")
        seen.add(readout.inner_text())
        assert figure.locator(".document.on").count() == 1
    assert len(seen) == len(DOCUMENTS)
    assert any(text.startswith("1. Counting tokens: ") for text in seen)
    figure.locator(".document").nth(5).hover(force=True)
    assert readout.inner_text() in seen


def test_without_scripts_everything_but_the_viewer_is_there(browser: "Browser", address: str) -> None:
    page = open_page(browser, address, unfolded=False, java_script_enabled=False)
    text = page.locator("main").text_content() or ""
    for wanted in (
        "The figures",
        "bits per character (test)",
        "What was not held equal",
        "xz after train",
        "by Student’s t, paired",
    ):
        assert wanted in text
    page.click("#viewer summary")  # unfolding is the browser's own
    text = page.locator("#viewer").inner_text()
    assert "needs JavaScript" in text and "Your text" not in text
    assert page.locator("#bits i").count() > 100 and page.locator("#bits i").first.is_visible()
    assert page.locator(".document title").count() == 2 * len(DOCUMENTS)
    close_page(page)


def test_every_control_is_reached_by_tab_and_named(desk: "Page") -> None:
    unnamed = desk.evaluate(
        """() => [...document.querySelectorAll('textarea, input, select, button, [tabindex]')].filter((one) =>
             !(one.getAttribute('aria-label') || one.textContent.trim() || (one.labels && one.labels.length)))
             .map((one) => one.outerHTML)"""
    )
    assert unnamed == []


def test_everything_that_can_be_operated_is_reached_by_tab(desk: "Page") -> None:
    desk.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    desk.fill("#step-word", " characters")
    desk.focus(".skip")
    reached = set()
    for _ in range(60):
        desk.keyboard.press("Tab")
        reached.add(desk.evaluate("document.activeElement.id || document.activeElement.className"))
    controls = {"viewer-text", "step-word", "step-name", "stepper", "step-next", "step-last"}
    assert controls | {"bits", "plot", "scroll"} <= reached


def test_the_largest_page_is_below_three_megabytes_and_works(browser: "Browser", tmp_path: Path) -> None:
    """A page with as many points, vocabularies and characters as it may hold."""
    full = full_page()
    documents = replace(
        full.documents,
        num_documents=1_000,
        num_shown=1_000,
        names=(full.documents.names * 100)[:1_000],
        num_chars=(full.documents.num_chars * 100)[:1_000],
        bits_per_char={name: (bits * 100)[:1_000] for name, bits in full.documents.bits_per_char.items()},
    )
    base = [chr(0x4E00 + index) for index in range(230)]
    merges = [id_ for left in range(230) for right in range(230) for id_ in (left, right)][:100_000]
    large = Vocabulary(
        "fifty thousand", "char_bpe", 50_230, split_pattern="gpt2", base="".join(base), merges=tuple(merges)
    )
    write_page(tmp_path / "large.html", replace(full, documents=documents, vocabularies=(*full.vocabularies, large)))
    assert (tmp_path / "large.html").stat().st_size < 3_000_000
    page = open_page(browser, (tmp_path / "large.html").as_uri())
    ids = page.evaluate("(text) => window.encodeWith('fifty thousand', text).ids", base[3] + base[4] + base[5])
    assert ids == [230 + 3 * 230 + 4, 5]
    close_page(page)


def test_a_vocabulary_that_was_left_out_says_so(browser: "Browser", tmp_path: Path) -> None:
    huge = Vocabulary("huge", "char_bpe", 9, left_out="it takes 9 MB")
    write_page(tmp_path / "index.html", replace(full_page(), vocabularies=(huge,)))
    page = open_page(browser, (tmp_path / "index.html").as_uri())
    assert "Left out: it takes 9 MB." in page.inner_text("#viewer-tokens")
    assert "No vocabulary is in this page." in page.inner_text("#stepper")
    close_page(page)
