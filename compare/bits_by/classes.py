"""The classes into which the characters of a text are sorted: kinds of character, words, ranges of numbers.

Shapes: C characters, D documents, W words.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import regex
from numpy.typing import NDArray

from compare.characters import Int64Array

KINDS = (
    ("newline", "a line feed"),
    ("space", "any other ASCII white space: space, tab, carriage return"),
    ("digit", "0 to 9"),
    ("word start", "an ASCII letter that begins a word"),
    ("inside a word", "any other ASCII letter, and an ASCII apostrophe between two letters"),
    ("punctuation", "any other ASCII character: punctuation, symbols, control characters"),
    ("non-ASCII", "every character beyond U+007F, whatever else it is: letters, marks, spaces, emoji"),
)
"""Name and description of each kind; the first that fits, non-ASCII before all others."""

_NEWLINE, _SPACE, _DIGIT, _WORD_START, _WORD_INSIDE, _PUNCTUATION, _NON_ASCII = range(len(KINDS))
WORD = regex.compile(r"\p{L}[\p{L}\p{M}]*+(?:['’]\p{L}[\p{L}\p{M}]*+)*+")
POSITIONS = (0, 1, 4, 16, 64, 256, 1024)
"""The first number of each class; the last one is open."""
FREQUENCIES = (0, 1, 2, 10, 100, 1000)
FREQUENCY_NAMES = ("never in train", "1", "2-9", "10-99", "100-999", "1000+")


def code_points(text: str) -> NDArray[np.uint32]:
    """(C,) the code point of every character."""
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.dtype("<u4"))


def word_spans(text: str, offsets: Int64Array) -> Int64Array:
    """(W, 2) first character of each word of `text`, and the one behind it (WORD_NOTE says what a word is).

    `offsets` (D+1,) are those of the documents; no word reaches across their borders.
    """
    bounds = pairwise(offsets.tolist())
    spans = [match.span() for begin, end in bounds for match in WORD.finditer(text, begin, end)]
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def kinds_of(codes: NDArray[np.uint32], words: Int64Array) -> Int64Array:
    """(C,) index into KINDS of every character, from its code point (C,) and the spans of the words (W, 2)."""
    ascii_kinds = np.full(128, _PUNCTUATION, dtype=np.int64)
    for code in range(128):
        if chr(code).isspace():
            ascii_kinds[code] = _SPACE
        elif chr(code).isdigit():
            ascii_kinds[code] = _DIGIT
    ascii_kinds[ord("\n")] = _NEWLINE
    is_ascii = codes < 128
    kinds = np.full(len(codes), _NON_ASCII, dtype=np.int64)
    kinds[is_ascii] = ascii_kinds[codes[is_ascii]]
    kinds[is_ascii & (fill(words, np.zeros(len(words), np.int64), len(codes)) == 0)] = _WORD_INSIDE
    starts = words[:, 0]
    kinds[starts[is_ascii[starts]]] = _WORD_START
    return kinds


def bucket(numbers: Int64Array, first: Sequence[int]) -> Int64Array:
    """The class of each number: the last one whose first number is not above it."""
    return np.searchsorted(np.array(first), numbers, side="right").astype(np.int64) - 1


def fill(spans: Int64Array, values: Int64Array, length: int) -> Int64Array:
    """(length,) `values` (W,) over their `spans` (W, 2), and -1 elsewhere."""
    filled = np.full(length, -1, dtype=np.int64)
    sizes = spans[:, 1] - spans[:, 0]
    inside = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    filled[np.repeat(spans[:, 0], sizes) + inside] = np.repeat(values, sizes)
    return filled
