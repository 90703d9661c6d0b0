"""Documents -> distinct pretokens, numbered in the order in which the text first shows them.

Both counting (for training) and encoding (each distinct pretoken once) begin here. The work runs on every core:
documents are cut into spans at places where each pattern has a border in any case, and every thread takes its share
of consecutive spans.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from data.errors import TokenizerError
from tokenizer.base import Int32Array, Int64Array, UInt8Array, UInt64Array
from tokenizer.bytelevel import utf8
from tokenizer.engine.borders import Cutter, cutter_for, eight_at_a_time, list_ends, num_up_to, taken_together
from tokenizer.engine.cuts import NEVER, Cuts, UInt16Array
from tokenizer.engine.jit import kernel
from tokenizer.engine.pretoken_map import (
    FREE,
    GROUP,
    MOST_BYTES,
    ROW,
    SECOND,
    WORDS,
    doubled,
    home_of,
    key_of,
    look_up,
    room_for_group,
)

BoolArray = NDArray[np.bool_]
T = TypeVar("T")

# Before a blank that follows a printable ASCII character other than a blank no pattern has a pretoken that goes on,
# and none looks at what is to the left.
AT_BLANKS = np.zeros((256, 256), dtype=np.bool_)
AT_BLANKS[0x21:0x7F, 0x20] = True
PADDING = 16  # bytes behind a text, so that eight bytes can be read at any place of it
_PART_CHARACTERS = 1 << 12
_SPAN_BYTES = 1 << 18  # documents longer than this are cut for the threads
_MOST_ROWS_AT_FIRST = 1 << 15


class TextBytes(NamedTuple):
    """Documents as UTF-8, one behind the other and padded."""

    text: UInt8Array
    at: UInt64Array
    """The same memory: item i is the eight bytes from byte i on (borders.eight_at_a_time)."""
    ends: Int64Array
    """Shape (D,): where each document ends."""


@dataclass(frozen=True)
class Interned:
    """The distinct pretokens of some spans, and perhaps the spans as a sequence of their numbers."""

    starts: Int64Array
    """Shape (P,): the byte at which each was first seen."""
    lengths: Int32Array
    """Shape (P,): bytes."""
    counts: Int64Array
    """Shape (P,): occurrences."""
    sequence: Int32Array
    """Numbers of all pretokens in text order; empty unless asked for."""
    span_ends: Int64Array
    """Shape (S,): how much of the sequence the spans up to each one make."""


class PretokenTable(NamedTuple):
    """The map from pretokens to their numbers and counts (pretoken_map.py), and what else is known of each."""

    rows: UInt64Array
    """Shape (4 * rows,): the words of all rows."""
    starts: Int64Array
    """Shape (rows / 2,), as the one that follows: see Interned. There is room for a whole map."""
    lengths: Int32Array


_NUMBER, _COUNT = np.uint64(2), np.uint64(3)  # the owner's words of a row


class Progress(NamedTuple):
    """How far `_intern` has come."""

    span: int
    """Index of the span it is in."""
    i: int
    """The next byte of that span."""
    used: int
    """Distinct pretokens so far."""
    filled: int
    """Entries of the sequence so far."""


def text_bytes(documents: Sequence[str]) -> TextBytes:
    """Lay out documents for the kernels; raises TokenizerError for a lone surrogate, with its offset in the text."""
    raw, ends = bytearray(), list[int]()
    try:
        for document in documents:
            # In parts: Python keeps a text with any character outside ASCII as two or four bytes for each, and encodes
            # it one by one. Most parts of it are ASCII alone, and copied; and no second copy of the whole is made.
            if len(document) <= _PART_CHARACTERS:
                raw += document.encode("utf-8")
            else:
                for start in range(0, len(document), _PART_CHARACTERS):
                    raw += document[start : start + _PART_CHARACTERS].encode("utf-8")
            ends.append(len(raw))
    except UnicodeEncodeError:
        utf8("".join(documents))  # raises, with the offset
        raise
    _check_size(len(raw))
    raw += bytes(PADDING)
    buffer = np.frombuffer(raw, dtype=np.uint8)
    return TextBytes(buffer, eight_at_a_time(buffer), np.array(ends, dtype=np.int64))


def lay_out(raw: UInt8Array, ends: Int64Array) -> TextBytes:
    """Valid UTF-8 in a buffer with the padding that the kernels need. Raises TokenizerError where it is too large."""
    _check_size(len(raw))
    buffer = padded(len(raw))
    buffer[: len(raw)] = raw
    buffer[len(raw) :] = 0
    return TextBytes(buffer, eight_at_a_time(buffer), ends)


def _check_size(num_bytes: int) -> None:
    if num_bytes > MOST_BYTES:
        raise TokenizerError(
            f"{num_bytes:,} bytes of text at once; at most {MOST_BYTES:,} are possible: give less of it"
        )


def padded(size: int) -> UInt8Array:
    """Room for a text of `size` bytes and its padding, which the caller sets to zero."""
    return np.empty(size + PADDING, dtype=np.uint8)


def usable_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(work: Callable[[Any], T], shares: Sequence[Any]) -> list[T]:
    """`work` on every share, each in a thread of its own (the kernels release the GIL)."""
    if len(shares) == 1:
        return [work(shares[0])]
    with ThreadPoolExecutor(len(shares)) as executor:
        return list(executor.map(work, shares))


def shares_of(laid_out: TextBytes, num_threads: int | None, *, joins: UInt16Array | None = None) -> list[Int64Array]:
    """Consecutive spans (S, 2) for each thread, of about the same number of bytes; one share, maybe empty, at least.

    With `joins` the spans are for CUTS, otherwise for a split pattern.
    """
    may_cut = AT_BLANKS if joins is None else joins == 0
    spans = _cut_spans(laid_out.text, laid_out.ends, may_cut, _SPAN_BYTES)
    num_threads = num_threads or (usable_cores() if len(laid_out.text) > _SPAN_BYTES // 4 else 1)
    ends = np.cumsum(spans[:, 1] - spans[:, 0])
    total = int(ends[-1]) if len(ends) else 0
    targets = [total * (thread + 1) // num_threads for thread in range(num_threads - 1)]
    return [share for share in np.split(spans, np.searchsorted(ends, targets)) if len(share)] or [spans]


def intern(
    laid_out: TextBytes,
    spans: Int64Array,
    pattern: int,
    *,
    cuts: Cuts = NEVER,
    keep_sequence: bool = False,
    start_from: Interned | None = None,
) -> Interned:
    """Number the pretokens of `spans`.

    `pattern` is one of scan.PATTERN_NUMBERS, WHOLE or CUTS; `cuts` says where, for CUTS. `start_from` are
    pretokens that have their numbers already; their counts are kept.
    """
    num_bytes = int((spans[:, 1] - spans[:, 0]).sum())
    known = 0 if start_from is None else len(start_from.starts)
    num_rows = 2 * GROUP
    while num_rows < 2 * (known + GROUP) or num_rows < min(num_bytes, _MOST_ROWS_AT_FIRST):
        num_rows *= 2
    table = PretokenTable(
        np.zeros(WORDS * num_rows, dtype=np.uint64),
        np.empty(num_rows // 2, dtype=np.int64),
        np.empty(num_rows // 2, dtype=np.int32),
    )
    if start_from is not None:
        table.starts[:known], table.lengths[:known] = start_from.starts, start_from.lengths
        _enter_known(table, laid_out.at, start_from.counts)
    sequence = np.empty(num_bytes if keep_sequence else 0, dtype=np.int32)
    span_ends = np.empty(len(spans), dtype=np.int64)
    cutter = cutter_for(spans, pattern, cuts)
    progress = Progress(span=0, i=int(spans[0, 0]) if len(spans) else 0, used=known, filled=0)
    while True:
        progress = _intern(laid_out, spans, cutter, table, sequence, span_ends, progress)
        if progress.span == len(spans):
            break
        more = np.empty_like(table.starts), np.empty_like(table.lengths)
        table = PretokenTable(
            doubled(table.rows), np.concatenate([table.starts, more[0]]), np.concatenate([table.lengths, more[1]])
        )
    used = progress.used
    counts = _counts(table.rows, used)
    return Interned(table.starts[:used], table.lengths[:used], counts, sequence[: progress.filled], span_ends)


@kernel
def _cut_spans(text: UInt8Array, document_ends: Int64Array, may_cut: BoolArray, most_bytes: int) -> Int64Array:
    """Spans (S, 2) of about `most_bytes` that cover all documents, each inside one document.

    `may_cut` (256, 256) says between which two bytes a document may be cut.
    """
    spans = np.empty((len(document_ends) + len(text) // most_bytes + 1, 2), dtype=np.int64)
    count, start = 0, 0
    for end in document_ends:
        while True:  # an empty document has a span as well, so that spans tell the documents apart
            cut = start + most_bytes
            while cut < end and not may_cut[text[cut - 1], text[cut]]:
                cut += 1
            cut = min(cut, end)
            spans[count, 0], spans[count, 1] = start, cut
            count += 1
            start = cut
            if start == end:
                break
    return spans[:count].copy()


@kernel
def _enter_known(table: PretokenTable, at: UInt64Array, counts: Int64Array) -> None:
    """Enter pretokens that have their numbers, and are all different, into an empty map."""
    rows = table.rows
    for number in range(len(counts)):
        one, two = key_of(at, table.starts[number], table.lengths[number])
        row = home_of(one, two, len(rows))
        while rows[row + SECOND] != FREE:
            row = (row + ROW) & np.uint64(len(rows) - WORDS)
        rows[row], rows[row + SECOND] = one, two
        rows[row + _NUMBER], rows[row + _COUNT] = np.uint64(number), np.uint64(counts[number])


@kernel
def _counts(rows: UInt64Array, used: int) -> Int64Array:
    """The count of each of the `used` pretokens, by number."""
    counts = np.empty(used, dtype=np.int64)
    for row in range(0, len(rows), WORDS):
        if rows[row + 1] != FREE:
            counts[rows[row + 2]] = rows[row + 3]
    return counts


@kernel
def _intern(
    laid_out: TextBytes,
    spans: Int64Array,
    cutter: Cutter,
    table: PretokenTable,
    sequence: Int32Array,
    span_ends: Int64Array,
    progress: Progress,
) -> Progress:
    """Go on until all spans are done or the map is full. `sequence` is empty if it is not wanted."""
    rows, most_rows = table.rows, len(table.rows) // (2 * WORDS)
    span, i, used, filled = progress.span, progress.i, progress.used, progress.filled
    group = room_for_group()
    while span < len(spans):
        # Find all pretokens of some spans first: that is work on many bytes at once.
        last = taken_together(spans, span)
        count = list_ends(laid_out.text, i, spans[span:last], cutter)
        for first in range(0, count, GROUP):
            ends = cutter.ends[first : min(first + GROUP, count)]
            if used + GROUP > most_rows:
                return Progress(span, i, used, filled)
            num_new = look_up(laid_out.at, i, ends, rows, group)
            for k in group.new[:num_new]:
                rows[group.rows[k] + _NUMBER] = np.uint64(used)
                start = i if k == 0 else ends[k - 1]
                table.starts[used], table.lengths[used] = start, ends[k] - start
                used += 1
            i = ends[-1]
            while span < last and spans[span, 1] <= i:
                # A span ends inside the group, or with it.
                span_ends[span] = filled + (num_up_to(ends, spans[span, 1]) if len(sequence) else 0)
                span += 1
            filled = _count(rows, group.rows[: len(ends)], sequence, filled)
        span_ends[span:last] = filled  # only empty ones are left
        span = last
        if span < len(spans):
            i = spans[span, 0]
    return Progress(span, i, used, filled)


@kernel
def _count(rows: UInt64Array, places: UInt64Array, sequence: Int32Array, filled: int) -> int:
    """Count the pretokens of the rows at `places`, and append their numbers to the sequence; its length."""
    for row in places:
        rows[row + _COUNT] += np.uint64(1)
    if len(sequence):
        for row in places:
            sequence[filled] = rows[row + _NUMBER]
            filled += 1
    return filled
