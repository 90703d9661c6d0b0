"""The split patterns as hand-written scanners over UTF-8 bytes, for the kernels. `pretokenize.py` has the patterns
themselves; the tests hold the two to each other on every code point and on random strings.

A scanner is told where a pretoken begins and returns where it ends. None of them looks to the left, so scanning may
begin at any border of two pretokens.
"""

from functools import lru_cache

import numpy as np
import regex

from tokenizer.base import Int64Array, UInt8Array
from tokenizer.engine.jit import inlined, kernel

OTHER, LETTER, NUMBER, SPACE = range(4)  # \p{L}, \p{N} and \s never overlap
PATTERN_NUMBERS = {"space": 0, "gpt2": 1, "gpt4": 2}
_SPACE_PATTERN, GPT2, GPT4 = range(3)

_APOSTROPHE, _BLANK, _CR, _LF = 0x27, 0x20, 0x0D, 0x0A
_NUM_CODE_POINTS = 0x110000


@lru_cache(maxsize=1)
def character_classes() -> UInt8Array:
    """OTHER, LETTER, NUMBER or SPACE for every code point, as the `regex` module has them; shape (0x110000,).

    Asked of `regex` itself, because its Unicode version need not be the one of Python's unicodedata.
    """
    classes = np.zeros(_NUM_CODE_POINTS, dtype=np.uint8)
    codes = np.arange(_NUM_CODE_POINTS, dtype=np.uint32)
    every_character = codes.tobytes().decode("utf-32-le", "surrogatepass")
    for value, pattern in ((LETTER, r"\p{L}+"), (NUMBER, r"\p{N}+"), (SPACE, r"\s+")):
        for match in regex.finditer(pattern, every_character):
            classes[match.start() : match.end()] = value
    return classes


@inlined
def _at(text: UInt8Array, i: int, classes: UInt8Array) -> tuple[np.uint8, int]:
    """Class and number of bytes of the character at `i`; `text` is valid UTF-8."""
    first = text[i]
    if first < 0x80:
        return classes[first], 1
    if first < 0xE0:
        return classes[(np.int64(first & 0x1F) << 6) | (text[i + 1] & 0x3F)], 2
    if first < 0xF0:
        return classes[(np.int64(first & 0x0F) << 12) | (np.int64(text[i + 1] & 0x3F) << 6) | (text[i + 2] & 0x3F)], 3
    code = (np.int64(first & 0x07) << 18) | (np.int64(text[i + 1] & 0x3F) << 12)
    return classes[code | (np.int64(text[i + 2] & 0x3F) << 6) | (text[i + 3] & 0x3F)], 4


@kernel
def _run(text: UInt8Array, i: int, end: int, wanted: int, classes: UInt8Array) -> int:
    """Where the run of characters of class `wanted` that begins at `i` ends."""
    while i < end:
        found, size = _at(text, i, classes)
        if found != wanted:
            break
        i += size
    return i


@kernel
def _run_of_spaces(text: UInt8Array, i: int, end: int, classes: UInt8Array) -> int:
    r"""The end of `\s+(?!\S)|\s+` at `i`: all of the run at the end of the text, else all but its last character.

    A run of one character is taken whole.
    """
    start, last = i, i
    while i < end:
        found, size = _at(text, i, classes)
        if found != SPACE:
            return last if last > start else i
        last = i
        i += size
    return i


@kernel
def _contraction(text: UInt8Array, i: int, end: int, any_case: bool) -> int:
    """The end of `'s 'd 'm 't 'll 've 're` at the apostrophe `i`, or `i` if none stands there."""
    if i + 1 >= end:
        return i
    fold = 0x20 if any_case else 0
    first = text[i + 1] | fold if text[i + 1] < 0x80 else text[i + 1]
    if first == ord("s") or first == ord("d") or first == ord("m") or first == ord("t"):
        return i + 2
    if i + 2 >= end:
        return i
    second = text[i + 2] | fold if text[i + 2] < 0x80 else text[i + 2]
    if any_case and first == 0xC5 and second == 0xBF:
        return i + 3  # U+017F, the long s, which is an s in any case
    is_pair = (
        (first == ord("l") and second == ord("l"))
        or (first == ord("v") and second == ord("e"))
        or (first == ord("r") and second == ord("e"))
    )
    return i + 3 if is_pair else i


@kernel
def _gpt2_end(text: UInt8Array, i: int, end: int, classes: UInt8Array) -> int:
    """The end of the GPT-2 pretoken at `i`."""
    found, size = _at(text, i, classes)
    if text[i] == _APOSTROPHE:
        after = _contraction(text, i, end, False)
        if after > i:
            return after
    if text[i] == _BLANK and i + 1 < end:
        following, its_size = _at(text, i + 1, classes)
        if following != SPACE:
            return _run(text, i + 1 + its_size, end, following, classes)
    if found == SPACE:
        return _run_of_spaces(text, i, end, classes)
    return _run(text, i + size, end, found, classes)


@kernel
def _space_end(text: UInt8Array, i: int, end: int, classes: UInt8Array) -> int:
    """The end of the `space` pretoken at `i`."""
    found, _ = _at(text, i, classes)
    start = i
    if text[i] == _BLANK and i + 1 < end:
        found, _ = _at(text, i + 1, classes)
        i += 1
    if found == SPACE:
        return _run_of_spaces(text, start, end, classes)
    while i < end:
        found, size = _at(text, i, classes)
        if found == SPACE:
            break
        i += size
    return i


@kernel
def _gpt4_end(text: UInt8Array, i: int, end: int, classes: UInt8Array) -> int:
    """The end of the GPT-4 pretoken at `i`."""
    found, size = _at(text, i, classes)
    if text[i] == _APOSTROPHE:
        after = _contraction(text, i, end, True)
        if after > i:
            return after
    if found == LETTER:
        return _run(text, i + size, end, LETTER, classes)
    if found == NUMBER:
        return _up_to_three_numbers(text, i, end, classes)
    following, its_size = OTHER, 0
    if i + size < end:
        following, its_size = _at(text, i + size, classes)
        if following == LETTER and text[i] != _CR and text[i] != _LF:
            return _run(text, i + size + its_size, end, LETTER, classes)
    if found == OTHER or (text[i] == _BLANK and its_size > 0 and following == OTHER):
        j = _run(text, i + size, end, OTHER, classes)
        while j < end and (text[j] == _CR or text[j] == _LF):
            j += 1
        return j
    return _gpt4_spaces(text, i, end, classes)


@kernel
def _up_to_three_numbers(text: UInt8Array, i: int, end: int, classes: UInt8Array) -> int:
    for _ in range(3):
        if i >= end:
            break
        found, size = _at(text, i, classes)
        if found != NUMBER:
            break
        i += size
    return i


@kernel
def _gpt4_spaces(text: UInt8Array, i: int, end: int, classes: UInt8Array) -> int:
    r"""The end of `\s*[\r\n]|\s+(?!\S)|\s+` at the space `i`: up to the last line end of the run, if it has one."""
    after_line_end, j = i, i
    while j < end:
        found, size = _at(text, j, classes)
        if found != SPACE:
            break
        j += size
        if text[j - 1] == _CR or text[j - 1] == _LF:
            after_line_end = j
    return after_line_end if after_line_end > i else _run_of_spaces(text, i, end, classes)


@kernel
def pretoken_end(text: UInt8Array, i: int, end: int, pattern: int, classes: UInt8Array) -> int:
    """Where the pretoken that begins at byte `i` ends; the document ends at `end` > `i`. This is the full scanner."""
    if pattern == GPT2:
        return _gpt2_end(text, i, end, classes)
    if pattern == GPT4:
        return _gpt4_end(text, i, end, classes)
    return _space_end(text, i, end, classes)


ASK = 4  # in the table of `quick_classes`: this byte needs the full scanner


@lru_cache(maxsize=3)
def quick_classes(pattern: int) -> UInt8Array:
    """Classes of single bytes under which a run of one class, with a blank before it or not, is a pretoken.

    What this does not hold for is marked ASK: bytes of longer characters, apostrophes, and what a pattern treats in
    a way of its own. Shape (256,).
    """
    classes = np.full(256, ASK, dtype=np.uint8)
    classes[:128] = character_classes()[:128]
    if pattern == _SPACE_PATTERN:
        classes[:128][classes[:128] != SPACE] = OTHER  # one class of everything that is no space
        return classes
    classes[_APOSTROPHE] = ASK
    if pattern == GPT4:
        classes[(classes == OTHER) | (classes == NUMBER)] = ASK
    return classes


@inlined
def next_end(text: UInt8Array, i: int, end: int, pattern: int, quick: UInt8Array, classes: UInt8Array) -> int:
    """`pretoken_end`, with a short way for runs of ASCII, which most text consists of."""
    found = quick[text[i]]
    j = i + 1
    if text[i] == _BLANK and j < end and quick[text[j]] != SPACE:
        found = quick[text[j]]
    if found < SPACE:
        while j < end and quick[text[j]] == found:
            j += 1
    if found >= SPACE or (j < end and quick[text[j]] == ASK):
        j = pretoken_end(text, i, end, pattern, classes)
    return j


@kernel
def scan(text: UInt8Array, pattern: int, quick: UInt8Array, classes: UInt8Array) -> Int64Array:
    """The ends of all pretokens of one document by the scanners alone; the tests hold the marks of borders.py to it."""
    ends = np.empty(len(text), dtype=np.int64)
    count, i = 0, 0
    while i < len(text):
        i = next_end(text, i, len(text), pattern, quick, classes)
        ends[count] = i
        count += 1
    return ends[:count].copy()
