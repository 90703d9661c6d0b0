"""Where pretokens begin, marked byte by byte for a whole span at once: the fast way, equal to the scanners.

Under the patterns `gpt2` and `space` a border between two ASCII characters depends on these two, the one before and
the one after, so the marks of a span are a few comparisons of neighbours that the compiler does 32 bytes at a time.
Where a byte is no ASCII, or an apostrophe, the full scanner of scan.py decides: those places are marked in doubt
first and settled afterwards.
"""

from typing import NamedTuple

import numpy as np

from data.errors import TokenizerError
from tokenizer.base import Int64Array, UInt8Array, UInt64Array
from tokenizer.engine.cuts import ContextArray, Cuts, UInt16Array, may_cut
from tokenizer.engine.jit import inlined, kernel, trailing_zeros
from tokenizer.engine.pretoken_map import MOST_BYTES_OF_ONE
from tokenizer.engine.scan import (
    ASK,
    GPT2,
    GPT4,
    LETTER,
    NUMBER,
    SPACE,
    character_classes,
    next_end,
    pretoken_end,
    quick_classes,
)

WHOLE, CUTS = -1, -2  # beside scan.PATTERN_NUMBERS: a span is one pretoken; cut where no token can reach across
_BORDER, _DOUBT = np.uint8(1), np.uint8(2)
_DOUBTS = np.uint64(0x0202020202020202)
_BLANK = 0x20
_TOGETHER = 1 << 16  # bytes: short spans are marked so many at a time
_LETTER, _NUMBER, _SPACE, _ASK = np.uint8(LETTER), np.uint8(NUMBER), np.uint8(SPACE), np.uint8(ASK)


class Cutter(NamedTuple):
    """What decides where spans are cut, and the room to mark them in, of no meaning between two calls."""

    pattern: int
    """One of scan.PATTERN_NUMBERS, WHOLE or CUTS."""
    quick: UInt8Array
    """scan.quick_classes of the pattern."""
    classes: UInt8Array
    """scan.character_classes."""
    joins: UInt16Array
    """With `contexts` the tables of cuts.Cuts, for CUTS."""
    contexts: ContextArray
    marks: UInt8Array
    """Room for a mark at each byte of the spans that are taken together, and 80 bytes more."""
    marks_at: UInt64Array
    """The same memory, eight marks at a time."""
    ends: Int64Array
    """Room for where each of their pretokens ends."""
    kinds: UInt8Array
    """Room for the class of each of their bytes, and one more."""


def cutter_for(spans: Int64Array, pattern: int, cuts: Cuts) -> Cutter:
    """A cutter with room for each of `spans` (S, 2); `cuts` says where to cut, for CUTS."""
    longest = int((spans[:, 1] - spans[:, 0]).max(initial=0))
    if longest > MOST_BYTES_OF_ONE:
        raise TokenizerError(
            f"{longest:,} bytes of text in a row have no place to cut, and at most {MOST_BYTES_OF_ONE:,} are possible; "
            "divide the text into documents"
        )
    longest = max(longest, min(_TOGETHER, int((spans[:, 1] - spans[:, 0]).sum())))
    marks, kinds = np.zeros(longest + 80, dtype=np.uint8), np.zeros(longest + 1, dtype=np.uint8)
    quick = quick_classes(max(pattern, 0))
    tables = character_classes(), cuts.joins, cuts.contexts
    ends = np.empty(longest, dtype=np.int64)
    return Cutter(pattern, quick, *tables, marks, eight_at_a_time(marks), ends, kinds)


def eight_at_a_time(text: UInt8Array) -> UInt64Array:
    """A view whose item i is the eight bytes from byte i on, lowest first: items overlap. `text` has 8 bytes at least.

    The kernels compare, hash and search eight bytes at once through it.
    """
    return np.ndarray(len(text) - 7, np.dtype("<u8"), text.data, strides=(1,))


_TO_BITS, _TOP = np.uint64(0x0102040810204080), np.uint64(56)  # the product has bit k of eight bytes at bit 56 + k
_PLACES = np.uint64(0x0001020304050607)  # byte 7 - k holds k


@inlined
def first_marked(word: np.uint64) -> np.int64:
    """The index, 0 to 7, of the lowest byte that is 1 in a `word` of bytes 0 and 1, not all 0."""
    lowest_bit = word & (~word + np.uint64(1))  # 2 ** (8 k), which times _PLACES brings its byte 7 - k to the top
    return np.int64((lowest_bit * _PLACES) >> np.uint64(56))


@kernel
def taken_together(spans: Int64Array, first: int) -> int:
    """The end of the spans from `first` on that are marked at once: neighbours in the text, and not too long.

    A document is a span of its own and often short, and to begin with a span costs as much as hundreds of bytes.
    """
    last = first + 1
    while last < len(spans) and spans[last, 0] == spans[last - 1, 1] and spans[last, 1] - spans[first, 0] <= _TOGETHER:
        last += 1
    return last


@kernel
def list_ends(text: UInt8Array, start: int, spans: Int64Array, cutter: Cutter) -> int:
    """Write where each pretoken from `start`, a border in the first of `spans`, to their end ends into cutter.ends.

    `spans` (S, 2) are neighbours (`taken_together`). The answer is the number of pretokens.
    """
    size = spans[-1, 1] - start
    if size == 0:
        return 0
    mark_borders(text, start, spans, cutter)
    marks, marks_at, ends = cutter.marks, cutter.marks_at, cutter.ends
    marks[size + 1 : size + 80] = 0  # 64 marks are read at any place of the spans
    count = 0
    for k in range(1, size + 1, 64):
        # Eight times eight marks, each 0 or 1, become the bits of one word.
        bits = np.uint64(0)
        for eighth in range(8):
            word = marks_at[k + 8 * eighth]
            bits |= ((word * _TO_BITS) >> _TOP) << np.uint64(8 * eighth)
        while bits != 0:
            ends[count] = start + k + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
            count += 1
    return count


@kernel
def mark_borders(text: UInt8Array, start: int, spans: Int64Array, cutter: Cutter) -> None:
    """Set cutter.marks[k] to 1 where a pretoken of `spans` begins at byte start + k, to 0 elsewhere.

    The start itself is a border and not marked; every end of a span is marked, so that every search ends there.
    """
    pattern, quick, classes, marks = cutter.pattern, cutter.quick, cutter.classes, cutter.marks
    size = spans[-1, 1] - start
    if pattern == CUTS:
        # A question about each place: four bytes around it against the tables of the vocabulary.
        for k in range(1, size):
            marks[k] = may_cut(text, start + k, cutter.joins, cutter.contexts)
    elif pattern in (WHOLE, GPT4):
        marks[:size] = 0
        if pattern == GPT4:
            # This pattern looks further than to the neighbours, so the scanner goes from border to border.
            i = start
            for end in spans[:, 1]:
                while i < end:
                    i = next_end(text, i, end, pattern, quick, classes)
                    marks[i - start] = _BORDER
    else:
        _mark_neighbours(text[start : start + size], pattern == GPT2, marks, cutter.kinds)
        _set_apart(start, spans, marks, cutter.kinds)
        _settle_doubts(text, start, spans, cutter)
    for end in spans[:, 1]:
        marks[end - start] = _BORDER


@inlined
def quick_class(byte: np.uint8, is_gpt2: bool) -> np.uint8:
    """What scan.quick_classes has for `byte` under the patterns `gpt2` and `space`: comparisons, no table, so that the
    compiler does many bytes at once.
    """
    is_letter = ((byte >= 0x61) & (byte <= 0x7A)) | ((byte >= 0x41) & (byte <= 0x5A))
    is_number = (byte >= 0x30) & (byte <= 0x39)
    is_space = (byte == 0x20) | ((byte >= 0x09) & (byte <= 0x0D))
    in_doubt = (byte >= 0x80) | (is_gpt2 & (byte == 0x27))
    # Numbers of one byte throughout: a wider one would leave room for fewer of them in an instruction.
    kind = (np.uint8(is_gpt2 & is_letter) * _LETTER) | (np.uint8(is_gpt2 & is_number) * _NUMBER)
    return kind | (np.uint8(is_space) * _SPACE) | (np.uint8(in_doubt) * _ASK)


@kernel
def _mark_neighbours(text: UInt8Array, is_gpt2: bool, marks: UInt8Array, kinds: UInt8Array) -> None:
    """Mark borders and doubts of a whole span by looking at neighbours only.

    A run of one class is a pretoken, a blank before it included. Of a run of spaces the last one stands alone (or is
    that blank), unless the text ends with it. A space before a byte in doubt is in doubt as well.
    """
    size = len(text)
    # Two plain loops without a branch, which the compiler turns into vector instructions.
    for k in range(size):
        kinds[k] = quick_class(text[k], is_gpt2)
    kinds[size] = SPACE  # so that a run of spaces at the end is not cut
    for k in range(1, size):
        before, here, after = kinds[k - 1], kinds[k], kinds[k + 1]
        is_space = here == SPACE
        among_spaces = (before != SPACE) | (after != SPACE)
        among_others = (here != before) & (text[k - 1] != _BLANK)
        is_border = (is_space & among_spaces) | ((not is_space) & among_others)
        in_doubt = (here == ASK) | (is_space & (after == ASK))
        marks[k] = np.uint8(is_border) | (np.uint8(in_doubt) << 1)  # _BORDER and _DOUBT
    marks[0] = np.uint8((kinds[0] == ASK) | ((kinds[0] == SPACE) & (kinds[1] == ASK))) << 1


@kernel
def _set_apart(start: int, spans: Int64Array, marks: UInt8Array, kinds: UInt8Array) -> None:
    """Where one of `spans` ends and the next one begins, mark the two as if nothing were behind and before them."""
    size, begin = spans[-1, 1] - start, 0
    for span in range(len(spans) - 1):
        end = spans[span, 1] - start
        if begin < end < size:
            # The last character: a space there is no more than the end of its run.
            if kinds[end - 1] == SPACE:
                marks[end - 1] = np.uint8((begin == end - 1) | (kinds[max(end - 2, 0)] != SPACE))
            # The first one of the next span.
            in_doubt = (kinds[end] == ASK) | ((kinds[end] == SPACE) & (kinds[end + 1] == ASK))
            marks[end] = _BORDER | (np.uint8(in_doubt) << 1)
        begin = max(end, 0)


@kernel
def _settle_doubts(text: UInt8Array, start: int, spans: Int64Array, cutter: Cutter) -> None:
    """Replace every doubt by what the full scanner says.

    Invariant: `settled` is a true border, and no doubt is left before it. The marks between it and the next doubt are
    true, so the pretoken that reaches this doubt begins at the last of them.
    """
    marks, marks_at = cutter.marks, cutter.marks_at
    size = spans[-1, 1] - start
    marks[size : size + 8] = 0  # so that eight marks can be read at any place of the spans
    settled = k = span = 0
    while k < size:
        # The next doubt, eight bytes at a time: most text has none.
        doubts = (marks_at[k] & _DOUBTS) >> np.uint64(1)
        if doubts == 0:
            k += 8
            continue
        k += first_marked(doubts)

        # In which span is it? Its pretoken begins no earlier than that span.
        while spans[span, 1] - start <= k:
            settled = max(settled, spans[span, 1] - start)
            span += 1

        # Back to where its pretoken begins, and from there as far as the scanner says.
        first = k
        while first > settled and (first == k or not marks[first] & _BORDER):
            first -= 1
        settled = pretoken_end(text, start + first, spans[span, 1], cutter.pattern, cutter.classes) - start

        # What was marked inside was wrong.
        marks[first] &= _BORDER
        for inside in range(first + 1, settled):
            marks[inside] = 0
        marks[settled] |= _BORDER  # at the end of the spans as well
        k = settled


@inlined
def num_up_to(ends: Int64Array, place: int) -> int:
    """How many of the rising `ends` are not beyond `place`."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] <= place:
            low = middle + 1
        else:
            high = middle
    return low
