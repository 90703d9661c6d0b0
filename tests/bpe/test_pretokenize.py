"""Split patterns against pretokens worked out by hand; joined pretokens are always the text."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import examples
from tokenizer import pretokenize as module
from tokenizer.pretokenize import SPLIT_PATTERNS, SplitPattern, pretokenize
from tokenizer_helpers import LOSSLESS_TEXTS


def test_doctests() -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_every_pattern_has_a_name() -> None:
    assert SPLIT_PATTERNS == ("none", "space", "gpt2", "gpt4")
    assert set(module.PATTERNS) == set(SPLIT_PATTERNS) - {"none"}


# text -> pattern -> pretokens
BY_HAND: dict[str, dict[SplitPattern, list[str]]] = {
    "8045311447": {
        "none": ["8045311447"],
        "space": ["8045311447"],
        "gpt2": ["8045311447"],
        "gpt4": ["804", "531", "144", "7"],
    },
    "in 1969": {
        "space": ["in", " 1969"],
        "gpt2": ["in", " 1969"],
        "gpt4": ["in", " ", "196", "9"],  # a digit group takes no space
    },
    "DON'T don't": {
        "space": ["DON'T", " don't"],
        "gpt2": ["DON", "'", "T", " don", "'t"],  # GPT-2 knows contractions in lower case only
        "gpt4": ["DON", "'T", " don", "'t"],
    },
    "we'LL I'Ve": {
        "gpt2": ["we", "'", "LL", " I", "'", "Ve"],
        "gpt4": ["we", "'LL", " I", "'Ve"],
    },
    "don\u2019t": {  # U+2019 is no apostrophe to either pattern
        "space": ["don\u2019t"],
        "gpt2": ["don", "\u2019", "t"],
        "gpt4": ["don", "\u2019t"],
    },
    "'s": {"space": ["'s"], "gpt2": ["'s"], "gpt4": ["'s"]},
    "'stop": {"gpt2": ["'s", "top"], "gpt4": ["'s", "top"]},
    "abc\u0434\u0435\u6771\u4eac9x": {  # Latin, Cyrillic and Han are all letters
        "space": ["abc\u0434\u0435\u6771\u4eac9x"],
        "gpt2": ["abc\u0434\u0435\u6771\u4eac", "9", "x"],
        "gpt4": ["abc\u0434\u0435\u6771\u4eac", "9", "x"],
    },
    "x\u00b2 \u2167 \u0661\u0662": {  # superscript two, Roman eight and Arabic digits are numbers
        "gpt2": ["x", "\u00b2", " \u2167", " \u0661\u0662"],
        "gpt4": ["x", "\u00b2", " ", "\u2167", " ", "\u0661\u0662"],
    },
    "cafe\u0301 x": {  # a combining accent is a mark, not a letter
        "space": ["cafe\u0301", " x"],
        "gpt2": ["cafe", "\u0301", " x"],
        "gpt4": ["cafe", "\u0301", " x"],
    },
    "end   ": {"space": ["end", "   "], "gpt2": ["end", "   "], "gpt4": ["end", "   "]},
    "a   b": {  # the last space goes with the word
        "space": ["a", "  ", " b"],
        "gpt2": ["a", "  ", " b"],
        "gpt4": ["a", "  ", " b"],
    },
    "a \n\nb": {
        "space": ["a", " \n", "\n", "b"],
        "gpt2": ["a", " \n", "\n", "b"],
        "gpt4": ["a", " \n\n", "b"],
    },
    "a\n  b": {
        "space": ["a", "\n ", " b"],
        "gpt2": ["a", "\n ", " b"],
        "gpt4": ["a", "\n", " ", " b"],
    },
    "one.\r\ntwo": {
        "space": ["one.", "\r", "\n", "two"],
        "gpt2": ["one", ".", "\r", "\n", "two"],
        "gpt4": ["one", ".\r\n", "two"],
    },
    "\ta": {"space": ["\t", "a"], "gpt2": ["\t", "a"], "gpt4": ["\ta"]},
    "a\u00a0b": {  # a no-break space is white space but no space
        "space": ["a", "\u00a0", "b"],
        "gpt2": ["a", "\u00a0", "b"],
        "gpt4": ["a", "\u00a0b"],
    },
    "hi!!! (ok)": {
        "space": ["hi!!!", " (ok)"],
        "gpt2": ["hi", "!!!", " (", "ok", ")"],
        "gpt4": ["hi", "!!!", " (", "ok", ")"],
    },
    "(ok)": {"gpt2": ["(", "ok", ")"], "gpt4": ["(ok", ")"]},  # GPT-4 lets one mark go with the word
    "\U0001f44d\U0001f3fd!": {"gpt2": ["\U0001f44d\U0001f3fd!"], "gpt4": ["\U0001f44d\U0001f3fd!"]},
    "<|endoftext|>": {
        "space": ["<|endoftext|>"],
        "gpt2": ["<|", "endoftext", "|>"],
        "gpt4": ["<|", "endoftext", "|>"],
    },
    " ": {"none": [" "], "space": [" "], "gpt2": [" "], "gpt4": [" "]},
    "": {"none": [], "space": [], "gpt2": [], "gpt4": []},
}


@pytest.mark.parametrize(
    ("text", "split_pattern", "wanted"),
    [(text, pattern, wanted) for text, patterns in BY_HAND.items() for pattern, wanted in patterns.items()],
)
def test_by_hand(text: str, split_pattern: SplitPattern, wanted: list[str]) -> None:
    assert pretokenize(text, split_pattern) == wanted


def check_lossless(text: str, split_pattern: SplitPattern) -> None:
    pretokens = pretokenize(text, split_pattern)
    assert "".join(pretokens) == text
    assert all(pretokens), "an empty pretoken is none"


@pytest.mark.parametrize("split_pattern", SPLIT_PATTERNS)
@pytest.mark.parametrize("name", LOSSLESS_TEXTS)
def test_nothing_is_lost(name: str, split_pattern: SplitPattern) -> None:
    check_lossless(LOSSLESS_TEXTS[name], split_pattern)


# Dense in what the patterns distinguish, and any other character besides.
telling = st.text(st.sampled_from("aZ09 '\n\r\t.,!\u2019\u00a0\u00e9\u0301\u0434\u6771\u00b2\u2028\U0001f600stLVeE"))


@pytest.mark.parametrize("split_pattern", SPLIT_PATTERNS)
@examples(150)
@given(text=st.one_of(telling, st.text()))
def test_joined_pretokens_are_the_text(split_pattern: SplitPattern, text: str) -> None:
    check_lossless(text, split_pattern)


@pytest.mark.parametrize("split_pattern", SPLIT_PATTERNS)
def test_every_code_point_survives(split_pattern: SplitPattern) -> None:
    planes = "".join(chr(code) for code in range(0x11_0000) if not 0xD800 <= code <= 0xDFFF)
    check_lossless(planes, split_pattern)
    check_lossless(" ".join(planes[:0x3000]), split_pattern)


@pytest.mark.parametrize("split_pattern", SPLIT_PATTERNS)
@pytest.mark.parametrize("character", [" ", "a", "\n", "!"])
def test_a_long_run_does_not_blow_up(split_pattern: SplitPattern, character: str) -> None:
    check_lossless("x" + character * 200_000, split_pattern)
