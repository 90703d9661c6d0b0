"""Safe cuts: exactly where no token of the vocabulary fits the bytes around the place."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import examples
from tokenizer.engine import cuts as module
from tokenizer.engine.cuts import NEVER, cuts_of, may_cut

# Bytes that agree modulo 128 (a and \xe1) and few of them, so that tokens meet the text.
BYTES = b"ab@\xe1\x00\x7f"
words = st.lists(st.sampled_from(BYTES), min_size=1, max_size=6).map(bytes)
vocabularies = st.lists(words, max_size=8)
texts = st.lists(st.sampled_from(BYTES), min_size=2, max_size=16).map(bytes)


def places(text: bytes, tokens: Sequence[bytes], *, ascii_only: bool = False, behind: bytes = bytes(16)) -> set[int]:
    """The places at which a document `text` may be cut."""
    padded = np.frombuffer(bytearray(text + behind), dtype=np.uint8)
    cuts = cuts_of(tokens, ascii_only=ascii_only)
    return {i for i in range(1, len(text)) if may_cut(padded, i, cuts.joins, cuts.contexts)}


def reached(text: bytes, tokens: Sequence[bytes]) -> set[int]:
    """The places that some occurrence of a token in `text` reaches across."""
    found = set()
    for token in tokens:
        for start in range(len(text) - len(token) + 1):
            if text[start : start + len(token)] == token:
                found |= set(range(start + 1, start + len(token)))
    return found


def check_sound(text: bytes, tokens: Sequence[bytes], before: bytes, behind: bytes) -> None:
    """Whatever other documents are next to the text."""
    padded = np.frombuffer(bytearray(before + text + behind + bytes(16)), dtype=np.uint8)
    cuts = cuts_of(tokens, ascii_only=False)
    at = len(before)
    found = {i for i in range(1, len(text)) if may_cut(padded, at + i, cuts.joins, cuts.contexts)}
    assert not found & reached(text, tokens), (text, tokens)


@examples(200)
@given(texts, vocabularies, words, words)
def test_no_token_reaches_across(text: bytes, tokens: list[bytes], before: bytes, behind: bytes) -> None:
    check_sound(text, tokens, before, behind)
    check_sound(text, tokens, b"", b"")
    check_sound(text, [*tokens, text[1:4], text[:3], text[-3:]], before, behind)


@examples(200)
@given(st.text("abc", min_size=8, max_size=14), st.lists(st.text("abc", min_size=2, max_size=3), max_size=6))
def test_cuts_wherever_tokens_of_three_bytes_allow(text: str, tokens: list[str]) -> None:
    """Up to three bytes the window sees all of a token, so that inside a text the rule is exact."""
    raw, encoded = text.encode(), [token.encode() for token in tokens]
    inside = set(range(3, len(raw) - 3))
    assert places(raw, encoded) & inside == inside - reached(raw, encoded)


@pytest.mark.parametrize(
    ("tokens", "uncut"),
    [
        ([b"bc"], b"bc"),  # whatever stands around
        ([b"bcd"], b"bcd"),
        ([b"abc"], b"abc"),
        ([b"abcd"], b"abcd"),
    ],
)
def test_the_four_cases_by_hand(tokens: list[bytes], uncut: bytes) -> None:
    place = uncut.index(b"c")
    assert place not in places(uncut, tokens)
    for text in (b"xbcx", b"abcx", b"xbcd", b"abcd"):
        assert (2 in places(text, tokens)) == (uncut not in text)


def test_base_tokens_forbid_nothing() -> None:
    assert places(b"abc", [b"a", b"b", b"c"]) == {1, 2}
    assert places(b"abc", []) == {1, 2}


def test_characters_are_not_cut() -> None:
    text = "a\u00e9\u6771b".encode()
    assert places(text, ["\u00e9".encode(), b"a", b"b"], ascii_only=True) == set()
    assert places(b"ab", [b"a", b"b"], ascii_only=True) == {1}


def test_more_pairs_than_have_contexts() -> None:
    """Those beyond are never cut; `_MOST_PAIRS` pairs are."""
    tokens = [bytes([left, right, 7]) for left in range(10, 90) for right in range(100, 160)]
    cuts = cuts_of(tokens, ascii_only=False)
    assert len(tokens) > module._MOST_PAIRS == len(cuts.contexts)
    assert set(cuts.joins[10:90, 100:160].ravel().tolist()) >= {1, 2, module._MOST_PAIRS - 1}
    assert cuts.joins[89, 159] == 1 and not may_cut(
        np.array([89, 159, 8, 8], dtype=np.uint8), 1, cuts.joins, cuts.contexts
    )


def test_never() -> None:
    text = np.arange(64, dtype=np.uint8)
    assert not any(may_cut(text, i, NEVER.joins, NEVER.contexts) for i in range(1, 63))
