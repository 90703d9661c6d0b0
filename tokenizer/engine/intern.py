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

from tokenizer.base import Int32Array, Int64Array, UInt8Array
from tokenizer.bytelevel import utf8
from tokenizer.engine.borders import Cutter, UInt64Array, cutter_for, eight_at_a_time, mark_borders, next_border
from tokenizer.engine.cuts import NEVER, Cuts, UInt16Array
from tokenizer.engine.jit import kernel
from tokenizer.engine.pretoken_map import FREE, is_same, key_of, slot_of

BoolArray = NDArray[np.bool_]
T = TypeVar("T")

# Before a blank that follows a printable ASCII character other than a blank no pattern has a pretoken that goes on,
# and none looks at what is to the left.
AT_BLANKS = np.zeros((256, 256), dtype=np.bool_)
AT_BLANKS[0x21:0x7F, 0x20] = True
PADDING = 16  # bytes behind a text, so that eight bytes can be read at any place of it
_SPAN_BYTES = 1 << 18  # documents longer than this are cut for the threads
_MOST_SLOTS_AT_FIRST = 1 << 15


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
    """The map from pretokens to their numbers (pretoken_map.py), and what is known of each, with room for more."""

    slots: UInt64Array
    """Shape (slots, 2): key and number; `slots` is a power of two, and never more than half of them are taken."""
    starts: Int64Array
    """Shape (slots / 2,), as the two that follow: see Interned."""
    lengths: Int32Array
    counts: Int64Array


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
    try:
        encoded = [document.encode("utf-8") for document in documents]
    except UnicodeEncodeError:
        utf8("".join(documents))  # raises, with the offset
        raise
    ends = np.cumsum([len(document) for document in encoded], dtype=np.int64)
    buffer = np.frombuffer(bytearray().join([*encoded, bytes(PADDING)]), dtype=np.uint8)
    return TextBytes(buffer, eight_at_a_time(buffer), ends)


def lay_out(raw: UInt8Array, ends: Int64Array) -> TextBytes:
    """Valid UTF-8 in a buffer with the padding that the kernels need."""
    buffer = padded(len(raw))
    buffer[: len(raw)] = raw
    buffer[len(raw) :] = 0
    return TextBytes(buffer, eight_at_a_time(buffer), ends)


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
    slots = 64
    while slots < 2 * known + 2 or slots < min(num_bytes, _MOST_SLOTS_AT_FIRST):
        slots *= 2
    table = _empty_table(slots)
    if start_from is not None:
        table.starts[:known], table.lengths[:known] = start_from.starts, start_from.lengths
        table.counts[:known] = start_from.counts
        _fill_slots(table, laid_out.at, known)
    sequence = np.empty(num_bytes if keep_sequence else 0, dtype=np.int32)
    span_ends = np.empty(len(spans), dtype=np.int64)
    cutter = cutter_for(spans, pattern, cuts)
    progress = Progress(span=0, i=int(spans[0, 0]) if len(spans) else 0, used=known, filled=0)
    while progress.span < len(spans):
        progress = _intern(laid_out, spans, cutter, table, sequence, span_ends, progress)
        if progress.used == len(table.starts):
            table = _doubled(table, laid_out.at, progress.used)
    used = progress.used
    return Interned(
        table.starts[:used], table.lengths[:used], table.counts[:used], sequence[: progress.filled], span_ends
    )


def _empty_table(slots: int) -> PretokenTable:
    room = slots // 2
    return PretokenTable(
        np.zeros((slots, 2), dtype=np.uint64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int64),
    )


def _doubled(table: PretokenTable, at: UInt64Array, used: int) -> PretokenTable:
    """The same pretokens, of which there are `used`, in a table with twice the slots."""
    larger = _empty_table(2 * len(table.slots))
    larger.starts[:used], larger.lengths[:used] = table.starts[:used], table.lengths[:used]
    larger.counts[:used] = table.counts[:used]
    _fill_slots(larger, at, used)
    return larger


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
def _fill_slots(table: PretokenTable, at: UInt64Array, used: int) -> None:
    """Enter the first `used` pretokens, which are all different, into empty slots."""
    slots = table.slots
    mask = len(slots) - 1
    for number in range(used):
        key = key_of(at, table.starts[number], table.lengths[number])
        slot = slot_of(key, mask)
        while slots[slot, 0] != FREE:
            slot = (slot + 1) & mask
        slots[slot, 0], slots[slot, 1] = key, np.uint64(number)


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
    """Go on until all spans are done or the table is full. `sequence` is empty if it is not wanted.

    Nothing in the inner loop may allocate or call with many arrays: that would cost more than the work itself.
    """
    text, at, marks_at = laid_out.text, laid_out.at, cutter.marks_at
    slots, starts, lengths, counts = table.slots, table.starts, table.lengths, table.counts
    span, i, used, filled = progress.span, progress.i, progress.used, progress.filled
    mask, room, is_kept = len(slots) - 1, len(starts), len(sequence) > 0
    while span < len(spans):
        # Mark the borders of the whole span first: that is work on many bytes at once.
        start, end = i, spans[span, 1]
        if start < end:
            mark_borders(text, start, end, cutter)

        # Then go from border to border.
        while i < end:
            if used == room:
                return Progress(span, i, used, filled)
            after = start + next_border(marks_at, i - start)
            size = after - i

            # Probe until the pretoken itself is met, or a free slot, which makes it a new one.
            key = key_of(at, i, size)
            slot = slot_of(key, mask)
            while True:
                stored = slots[slot, 0]
                if stored == key:
                    number = np.int64(slots[slot, 1])
                    if size < 8 or (lengths[number] == size and is_same(at, starts[number], i, size)):
                        break
                elif stored == FREE:
                    number = np.int64(used)
                    slots[slot, 0], slots[slot, 1] = key, np.uint64(used)
                    starts[used], lengths[used], counts[used] = i, size, 0
                    used += 1
                    break
                slot = (slot + 1) & mask

            counts[number] += 1
            if is_kept:
                sequence[filled] = number
                filled += 1
            i = after
        span_ends[span] = filled
        span += 1
        if span < len(spans):
            i = spans[span, 0]
    return Progress(span, i, used, filled)
