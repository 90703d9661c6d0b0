"""Documents -> distinct pretokens, numbered in the order in which the text first shows them.

Both counting (for training) and encoding (each distinct pretoken once) begin here. The work runs on every core:
documents are cut into spans at places where each pattern has a border in any case, and every thread takes its share
of consecutive spans.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tokenizer.borders import UInt64Array, eight_at_a_time, mark_borders, next_border, room_for_marks
from tokenizer.bytelevel import utf8
from tokenizer.cuts import NEVER, ContextArray, Cuts, UInt16Array
from tokenizer.jit import kernel
from tokenizer.kernels import Int32Array, Int64Array
from tokenizer.pretoken_map import FREE, is_same, key_of, slot_of
from tokenizer.scan import UInt8Array, character_classes, quick_classes

BoolArray = NDArray[np.bool_]
T = TypeVar("T")

# Before a blank that follows a printable ASCII character other than a blank no pattern has a pretoken that goes on,
# and none looks at what stands to the left.
AT_BLANKS = np.zeros((256, 256), dtype=np.bool_)
AT_BLANKS[0x21:0x7F, 0x20] = True
PADDING = 16  # bytes behind a text, so that eight bytes can be read at any place of it
_SPAN_BYTES = 1 << 18  # documents longer than this are cut for the threads
_MOST_SLOTS_AT_FIRST = 1 << 15


@dataclass(frozen=True)
class TextBytes:
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
    table = np.zeros((slots, 2), dtype=np.uint64)
    starts, lengths = np.empty(slots // 2, dtype=np.int64), np.empty(slots // 2, dtype=np.int32)
    counts = np.empty(slots // 2, dtype=np.int64)
    if start_from is not None:
        starts[:known], lengths[:known], counts[:known] = start_from.starts, start_from.lengths, start_from.counts
        table = _table_of(laid_out.at, starts[:known], lengths[:known], slots)
    sequence = np.empty(num_bytes if keep_sequence else 0, dtype=np.int32)
    span_ends = np.empty(len(spans), dtype=np.int64)
    quick = quick_classes(max(pattern, 0))
    room = room_for_marks(spans)
    span, i, used, filled = 0, int(spans[0, 0]) if len(spans) else 0, known, 0
    while span < len(spans):
        span, i, used, filled = _intern(
            *(laid_out.text, laid_out.at, spans, span, i, pattern, quick, character_classes()),
            *(cuts.joins, cuts.contexts, *room),
            *(table, starts, lengths, counts, used, sequence, filled, span_ends),
        )
        if used == len(starts):
            slots *= 2
            starts, lengths = np.resize(starts, slots // 2), np.resize(lengths, slots // 2)
            counts = np.resize(counts, slots // 2)
            table = _table_of(laid_out.at, starts[:used], lengths[:used], slots)
    return Interned(starts[:used], lengths[:used], counts[:used], sequence[:filled], span_ends)


@kernel
def _cut_spans(text: UInt8Array, document_ends: Int64Array, may_cut: BoolArray, most_bytes: int) -> Any:
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
def _table_of(at: UInt64Array, starts: Int64Array, lengths: Int32Array, slots: int) -> Any:
    """A new map (key, number) of pretokens that are all different; `slots` is a power of two."""
    table = np.zeros((slots, 2), dtype=np.uint64)
    mask = slots - 1
    for number in range(len(starts)):
        key = key_of(at, starts[number], lengths[number])
        slot = slot_of(key, mask)
        while table[slot, 0] != FREE:
            slot = (slot + 1) & mask
        table[slot, 0] = key
        table[slot, 1] = np.uint64(number)
    return table


@kernel
def _intern(
    text: UInt8Array,
    at: UInt64Array,
    spans: Int64Array,
    span: int,
    i: int,
    pattern: int,
    quick: UInt8Array,
    classes: UInt8Array,
    joins: UInt16Array,
    contexts: ContextArray,
    marks: UInt8Array,
    marks_at: UInt64Array,
    kinds: UInt8Array,
    table: UInt64Array,
    starts: Int64Array,
    lengths: Int32Array,
    counts: Int64Array,
    used: int,
    sequence: Int32Array,
    filled: int,
    span_ends: Int64Array,
) -> Any:
    """Go on from byte `i` of span `span` until all is done or the map is full: (span, i, used, filled).

    Nothing in the inner loop may allocate or call with many arrays: that would cost more than the work itself.
    """
    mask, room, is_kept = len(table) - 1, len(starts), len(sequence) > 0
    while span < len(spans):
        start, end = i, spans[span, 1]
        if start < end:
            mark_borders(text, start, end, pattern, quick, classes, joins, contexts, marks, marks_at, kinds)
        while i < end:
            if used == room:
                return span, i, used, filled
            after = start + next_border(marks_at, i - start)
            size = after - i
            key = key_of(at, i, size)
            slot = slot_of(key, mask)
            while True:
                stored = table[slot, 0]
                if stored == key:
                    number = np.int64(table[slot, 1])
                    if size < 8 or (lengths[number] == size and is_same(at, starts[number], i, size)):
                        break
                elif stored == FREE:
                    number = np.int64(used)
                    table[slot, 0], table[slot, 1] = key, np.uint64(used)
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
    return span, i, used, filled
