"""Cleaning loses exactly what it says, and lone surrogates are refused with their place."""

import doctest
from pathlib import Path

import pytest

from data import clean
from data.clean import (
    CLEANINGS,
    clean_document,
    end_with_newline,
    find_lone_surrogate,
    minimal,
    refuse_lone_surrogate,
    wikitext,
)
from data.errors import DataError

WIKITEXT = Path(__file__).resolve().parents[3] / "shared" / "data" / "wikitext2" / "wiki.test.raw"


def test_every_cleaning_has_an_example_that_holds() -> None:
    results = doctest.testmod(clean)
    assert results.attempted >= 5 and results.failed == 0
    assert all(">>>" in (function.__doc__ or "") for function in CLEANINGS.values())


UNTOUCHED = {
    "two leading spaces": "  a",
    "trailing newlines": "a\n\n\n",
    "tabs": "\ta\tb",
    "no-break space": "a\u00a0b",
    "line separators": "a\u2028b\u2029c\x85d",
    "vertical tab and form feed": "a\x0bb\x0cc",
    "NUL": "a\x00b",
    "BOM inside": "a\ufeffb",
    "accents in both forms": "e\u0301 \u00e9",
    "emoji family": "👨‍👩‍👧‍👦",
    "flags": "🇩🇪🇫🇷",
    "right to left": "\u202bשלום\u202c عربي",
    "astral": "\U0010ffff\U00010000",
    "WikiText marks": " 1 @,@ 000 @-@ a \n",
}


@pytest.mark.parametrize("text", UNTOUCHED.values(), ids=UNTOUCHED.keys())
def test_minimal_loses_nothing_else(text: str) -> None:
    assert minimal(text) == text


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ("a\r\nb", "a\nb"),
        ("a\rb", "a\nb"),
        ("a\r\r\nb", "a\n\nb"),
        ("a\n\rb", "a\n\nb"),
        ("\r", "\n"),
        ("\ufeffa", "a"),
        ("\ufeff\ufeffa", "\ufeffa"),
        ("\ufeff", ""),
        ("", ""),
    ],
)
def test_minimal(raw: str, wanted: str) -> None:
    assert minimal(raw) == wanted


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (" = = Sub = = \n", "= = Sub = =\n"),
        (" \n", "\n"),
        ("  \n", "\n"),
        ("   two spaces in \n", "  two spaces in\n"),
        (" 1 @,@ 000 @,@ 000 @.@ 5 \n", "1,000,000.5\n"),
        (" a @-@ b@-@c @-@\n", "a-b@-@c @-@\n"),
        (" end @-@ \n", "end-\n"),
        (" a , b \n", "a , b\n"),
        ("\ufeff a \r\n b \r", "a\nb\n"),
        ("\u00a0a\u00a0\n", "\u00a0a\u00a0\n"),
        (" a \u2028 b \n", "a \u2028 b\n"),
        ("<unk> @;@ x", "<unk> @;@ x"),
    ],
)
def test_wikitext(raw: str, wanted: str) -> None:
    assert wikitext(raw) == wanted


def test_wikitext_leaves_no_mark_in_the_real_text() -> None:
    if not WIKITEXT.exists():
        pytest.skip("the shared WikiText-2 test split is not on this machine")
    text = WIKITEXT.read_text(encoding="utf-8")
    cleaned, counts = clean_document(text, "wikitext")
    assert counts["wikitext_joins_undone"] == sum(text.count(f" @{mark}@ ") for mark in "-,.") > 3000
    assert not any(f" @{mark}@ " in cleaned for mark in "-,.")
    assert len(text) - len(cleaned) == 4 * counts["wikitext_joins_undone"] + counts["line_edge_spaces_removed"]
    assert cleaned.count("\n") == text.count("\n")
    assert "\n= Robert Boulter =\n" in cleaned


def test_minimal_leaves_the_real_text_as_it_is() -> None:
    if not WIKITEXT.exists():
        pytest.skip("the shared WikiText-2 test split is not on this machine")
    text = WIKITEXT.read_text(encoding="utf-8")
    assert clean_document(text, "minimal")[0] == text


@pytest.mark.parametrize(
    ("raw", "wanted"), [("a", "a\n"), ("a\n", "a\n"), ("a\n\n", "a\n\n"), ("a\u2028", "a\u2028\n")]
)
def test_end_with_newline(raw: str, wanted: str) -> None:
    assert end_with_newline(raw) == wanted


def test_counts_of_minimal() -> None:
    text, counts = clean_document("\ufeffa\r\nb\rc\r\r\nd", "minimal")
    assert text == "a\nb\nc\n\nd\n"
    assert counts == {
        "byte_order_marks_removed": 1,
        "crlf_converted": 2,
        "lone_cr_converted": 2,
        "final_newlines_added": 1,
    }


def test_counts_of_wikitext() -> None:
    text, counts = clean_document(" a @-@ b \r\n \n c", "wikitext")
    assert text == "a-b\n\nc\n"
    assert (counts["wikitext_joins_undone"], counts["line_edge_spaces_removed"], counts["crlf_converted"]) == (1, 4, 1)


@pytest.mark.parametrize("raw", ["", "\ufeff"])
def test_nothing_stays_nothing(raw: str) -> None:
    text, counts = clean_document(raw, "minimal")
    assert text == "" and counts["final_newlines_added"] == 0


@pytest.mark.parametrize("raw", [" ", "\n", "\t\n", "\x00"])
def test_white_space_is_something(raw: str) -> None:
    assert clean_document(raw, "minimal")[0] == end_with_newline(raw)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("\ud800", 0),
        ("ab\udfff", 2),
        ("\ud83d\ude00", 0),  # two surrogates that UTF-16 would pair are still no character
        ("😀\udc00\ud800", 1),
        ("\U0010ffff\ue000\ud7ff", None),
        ("", None),
    ],
)
def test_find_lone_surrogate(text: str, offset: int | None) -> None:
    assert find_lone_surrogate(text) == offset


def test_refusal_names_place_code_point_and_offset() -> None:
    with pytest.raises(DataError, match=r"^novel\.txt holds the lone surrogate U\+DC80 at character 3, .*repair"):
        refuse_lone_surrogate("abc\udc80", "novel.txt")
    refuse_lone_surrogate("abc😀", "novel.txt")
