"""Intrinsic numbers by hand on tiny texts, and Rényi efficiency against its closed forms."""

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import ReportError
from data.shapes import plain
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, ByteTokenizer
from tokenizer.char import CharTokenizer, alphabet_of
from tokenizer.studies.intrinsic import Intrinsic, intrinsic_of, renyi_efficiency
from tokenizer.studies.study import EXAMPLES

DIGITS = " 0123456789.,-"


def numbers_of(tokenizer: Tokenizer, text: str, **parameters: int) -> dict[str, Any]:
    ids = np.array(tokenizer.encode(text), np.int64)
    sizes = {"embedding_parameters": 1, "all_parameters": 4} | parameters
    found = intrinsic_of(tokenizer, ids, text, **sizes)
    stored: dict[str, Any] = json.loads(json.dumps(plain(found), allow_nan=False))
    assert Intrinsic.from_json(stored) == found
    return stored


def test_a_char_tokenizer_by_hand() -> None:
    tokenizer = CharTokenizer(alphabet_of(["ab é\n" + DIGITS]))
    found = numbers_of(tokenizer, "ab é\n", embedding_parameters=30, all_parameters=120)
    assert found["chars_per_token"] == 1.0
    assert found["bytes_per_token"] == 6 / 5
    assert found["vocab_size"] == 18
    assert (found["vocab_used"], found["vocab_used_share"]) == (5, 5 / 18)
    assert found["tokens_per_word"] == 5 / 2
    assert found["renyi_efficiency"] == pytest.approx(math.log(5) / math.log(18))  # five tokens, once each
    assert found["embedding_share"] == 0.25
    assert found["glued_tokens"] == {"num": 0, "share": 0.0, "examples": []}
    assert found["chars_in_128_tokens"] == 128.0
    assert found["numbers"][1] == {"text": " 42", "tokens": [" ", "4", "2"]}


def test_a_bpe_by_hand() -> None:
    merges = [("a", "b"), ("ab", "."), (" ", "4"), (".", "."), ("4", "2"), (".", "c")]
    tokenizer = BPETokenizer(sorted({*"abc\n", *DIGITS}), merges)
    found = numbers_of(tokenizer, "ab.ab. ab 42..\n")  # ab. | ab. | space | ab | space4 | 2 | .. | newline
    assert found["chars_per_token"] == 15 / 8
    assert found["chars_in_128_tokens"] == 128 * 15 / 8
    assert (found["vocab_size"], found["vocab_used"]) == (24, 7)
    assert found["tokens_per_word"] == 8 / 3
    assert found["glued_tokens"] == {"num": 2, "share": 2 / 8, "examples": ["ab.", ".c"]}
    assert found["numbers"][1] == {"text": " 42", "tokens": [" 4", "2"]}


def test_the_examples_of_glued_tokens_are_the_most_used_ones_and_at_most_twenty() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    tokenizer = BPETokenizer([*letters, ".", *DIGITS.replace(".", "")], [(letter, ".") for letter in letters])
    found = numbers_of(tokenizer, "z.z.z.y.y.a.q")["glued_tokens"]
    assert found["num"] == 26
    assert found["share"] == 6 / 7
    assert found["examples"] == ["z.", "y.", *(f"{letter}." for letter in letters[:18])]


def test_bytes_that_are_no_whole_character_are_spelled() -> None:
    tokenizer = BPETokenizer(BYTE_CHARACTERS, [("Ã", "©"), ("(", "Ã")], kind="byte_bpe")  # "é"; "(" and half a letter
    found = numbers_of(tokenizer, "é(é😀")
    assert found["bytes_per_token"] == 9 / 7  # é | ( | é | four bytes
    assert found["chars_per_token"] == 4 / 7
    assert found["glued_tokens"]["num"] == 0  # half a letter is no letter
    assert found["numbers"][0]["tokens"] == [" ", "7"]
    assert numbers_of(ByteTokenizer(), "é")["vocab_used"] == 2


def test_the_numbers_are_those_of_the_study() -> None:
    found = numbers_of(ByteTokenizer(), "x")["numbers"]
    assert [row["text"] for row in found] == list(EXAMPLES["numbers"])
    assert all("".join(row["tokens"]) == row["text"] for row in found)


def test_a_number_that_the_alphabet_lacks_is_null() -> None:
    rows = numbers_of(CharTokenizer(["\n", " ", "4", "2"]), "4 2\n")["numbers"]
    cut = {row["text"]: row["tokens"] for row in rows}
    assert cut.pop(" 42") == [" ", "4", "2"]
    assert set(cut) == set(EXAMPLES["numbers"]) - {" 42"}
    assert all(tokens is None for tokens in cut.values())


def test_a_text_without_words_has_no_tokens_per_word_and_everything_is_json() -> None:
    found = numbers_of(ByteTokenizer(), " \n\n")
    assert found["tokens_per_word"] is None
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@given(st.integers(2, 500), st.integers(1, 1000), st.floats(0.1, 5).filter(lambda alpha: abs(alpha - 1) > 0.05))
def test_equal_frequencies_have_efficiency_one(size: int, count: int, alpha: float) -> None:
    assert renyi_efficiency(np.full(size, count), alpha) == pytest.approx(1.0)


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_two_symbols(first: int, second: int) -> None:
    p = first / (first + second)
    expected = -math.log2(p**2.5 + (1 - p) ** 2.5) / 1.5  # log2 V = 1
    assert renyi_efficiency(np.array([first, second])) == pytest.approx(expected, abs=1e-12)


def test_collision_entropy_and_unused_tokens() -> None:
    # alpha 2: -log2(1/4 + 1/16 + 1/16) over log2 of the whole vocabulary of 4, one of them unused
    assert renyi_efficiency(np.array([2, 1, 0, 1]), 2.0) == pytest.approx(-math.log2(6 / 16) / 2)
    assert renyi_efficiency(np.array([7, 0])) == pytest.approx(0.0)
    assert renyi_efficiency(np.array([7])) is None  # log 1 is no scale


@given(st.lists(st.integers(0, 500), min_size=2, max_size=50).filter(any))
def test_efficiency_lies_between_zero_and_one_and_falls_with_alpha(counts: list[int]) -> None:
    found = [renyi_efficiency(np.array(counts), alpha) for alpha in (0.5, 2.0, 2.5, 4.0)]
    values = [value for value in found if value is not None]
    assert len(values) == 4
    assert all(-1e-12 <= value <= 1 + 1e-12 for value in values)
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(values))


def test_what_does_not_fit_together_is_refused() -> None:
    tokenizer = CharTokenizer(["\n", "a", "b"])
    with pytest.raises(ReportError, match="test split is empty"):
        numbers_of(tokenizer, "")
    with pytest.raises(ReportError, match="vocabulary is 3; encode the split again"):
        intrinsic_of(tokenizer, np.array([1, 3]), "ab", embedding_parameters=1, all_parameters=2)
    with pytest.raises(ReportError, match="vocabulary is 3"):
        intrinsic_of(tokenizer, np.array([-1, 2]), "ab", embedding_parameters=1, all_parameters=2)
    with pytest.raises(ReportError, match="3 characters and 3 bytes, but the test text has 2 and 2"):
        intrinsic_of(tokenizer, np.array([1, 2, 0]), "ab", embedding_parameters=1, all_parameters=2)
    with pytest.raises(ReportError, match="2 characters and 2 bytes, but the test text has 2 and 3"):
        intrinsic_of(tokenizer, np.array([1, 2]), "aé", embedding_parameters=1, all_parameters=2)
    for parameters in ({"embedding_parameters": 5}, {"embedding_parameters": 0, "all_parameters": 0}):
        with pytest.raises(ReportError, match="embedding parameters cannot be a part of"):
            numbers_of(tokenizer, "ab", **parameters)
