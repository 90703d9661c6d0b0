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

from tokenizer.bytelevel import utf8
from tokenizer.jit import inlined, kernel
from tokenizer.kernels import Int32Array, Int64Array
from tokenizer.scan import ASK, SPACE, UInt8Array, character_classes, pretoken_end, quick_classes

UInt64Array = NDArray[np.uint64]
BoolArray = NDArray[np.bool_]
T = TypeVar("T")

WHOLE, CUTS = -1, -2  # beside scan.PATTERN_NUMBERS: a span is one pretoken; cut where no token can reach across
NEVER_CUT = np.ones((256, 256), dtype=np.uint8)
# Before a blank that follows a printable ASCII character other than a blank no pattern has a pretoken that goes on,
# and none looks at what stands to the left.
AT_BLANKS = np.zeros((256, 256), dtype=np.bool_)
AT_BLANKS[0x21:0x7F, 0x20] = True
_PADDING = 16  # bytes behind a text, so that eight bytes can be read at any place of it
_SPAN_BYTES = 1 << 18  # documents longer than this are cut for the threads
_MOST_SLOTS_AT_FIRST = 1 << 15
_BLANK = 0x20


@dataclass(frozen=True)
class TextBytes:
    """Documents as UTF-8, one behind the other and padded."""

    text: UInt8Array
    words: UInt64Array
    """The same memory, eight bytes at a time."""
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
    joined = documents[0] if len(documents) == 1 else "".join(documents)
    raw = utf8(joined)
    if len(documents) == 1:
        lengths = [len(raw)]
    elif len(raw) == len(joined):
        lengths = [len(document) for document in documents]  # all ASCII
    else:
        lengths = [len(document.encode("utf-8")) for document in documents]
    return lay_out(np.frombuffer(raw, dtype=np.uint8), np.cumsum(lengths, dtype=np.int64))


def lay_out(raw: UInt8Array, ends: Int64Array) -> TextBytes:
    """Valid UTF-8 in a buffer with the padding that the kernels need."""
    buffer = padded(len(raw))
    buffer[: len(raw)] = raw
    buffer[len(raw) :] = 0
    return TextBytes(buffer, buffer.view(np.uint64), ends)


def padded(size: int) -> UInt8Array:
    """Room for a text of `size` bytes and its padding, which the caller sets to zero."""
    return np.empty((size + _PADDING + 7) // 8 * 8, dtype=np.uint8)


def usable_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(work: Callable[[Any], T], shares: Sequence[Any]) -> list[T]:
    """`work` on every share, each in a thread of its own (the kernels release the GIL)."""
    if len(shares) == 1:
        return [work(shares[0])]
    with ThreadPoolExecutor(len(shares)) as executor:
        return list(executor.map(work, shares))


def shares_of(laid_out: TextBytes, num_threads: int | None, *, joins: UInt8Array | None = None) -> list[Int64Array]:
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
    joins: UInt8Array = NEVER_CUT,
    keep_sequence: bool = False,
    start_from: Interned | None = None,
) -> Interned:
    """Number the pretokens of `spans`.

    `pattern` is one of scan.PATTERN_NUMBERS, WHOLE or CUTS; `joins` (256, 256) says for CUTS which two bytes may stand
    side by side inside a token. `start_from` are pretokens that have their numbers already; their counts are kept.
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
        table = _table_of(laid_out.words, starts[:known], lengths[:known], slots)
    sequence = np.empty(num_bytes if keep_sequence else 0, dtype=np.int32)
    span_ends = np.empty(len(spans), dtype=np.int64)
    quick = quick_classes(pattern) if pattern >= 0 else NEVER_CUT[0]
    span, i, used, filled = 0, int(spans[0, 0]) if len(spans) else 0, known, 0
    while span < len(spans):
        span, i, used, filled = _intern(
            *(laid_out.text, laid_out.words, spans, span, i, pattern, quick, character_classes(), joins),
            *(table, starts, lengths, counts, used, sequence, filled, span_ends),
        )
        if used == len(starts):
            slots *= 2
            starts, lengths = np.resize(starts, slots // 2), np.resize(lengths, slots // 2)
            counts = np.resize(counts, slots // 2)
            table = _table_of(laid_out.words, starts[:used], lengths[:used], slots)
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


# ---------------------------------------------------------------------------------------------------------------
# A map from pretokens to numbers: rows of (key, number), open addressing, at most half full. A pretoken of up to
# seven bytes is its own key, its length in the top byte; a longer one has a hash for a key, and is compared as well.

_LONG = np.uint64(0xFF) << np.uint64(56)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FREE = np.uint64(0)  # no key is zero, because no pretoken is empty


@inlined
def _eight_bytes(words: UInt64Array, i: int) -> Any:
    """The eight bytes from byte `i` on, from the two aligned words that hold them."""
    shift = np.uint64((i & 7) << 3)
    low = words[i >> 3] >> shift
    high = (words[(i >> 3) + 1] << (np.uint64(63) - shift)) << np.uint64(1)
    return low | high


@inlined
def _key_of(words: UInt64Array, start: int, size: int) -> Any:
    """The key of the pretoken of `size` bytes at `start`."""
    if size < 8:
        mask = (np.uint64(1) << np.uint64(size << 3)) - np.uint64(1)
        return (_eight_bytes(words, start) & mask) | (np.uint64(size) << np.uint64(56))
    mixed = np.uint64(size)
    i = 0
    while i + 8 <= size:
        mixed = (mixed ^ _eight_bytes(words, start + i)) * _MULTIPLIER
        mixed ^= mixed >> np.uint64(32)
        i += 8
    # The last eight bytes, which overlap those before unless the size is a multiple of eight.
    mixed = (mixed ^ _eight_bytes(words, start + size - 8)) * _MULTIPLIER
    return (mixed >> np.uint64(8)) | _LONG


@inlined
def _slot_of(key: np.uint64, mask: int) -> Any:
    """Where the search for `key` begins."""
    return np.int64((key * _MULTIPLIER) >> np.uint64(24)) & mask


@kernel
def _is_same(words: UInt64Array, one: int, other: int, size: int) -> Any:
    """Whether the `size` >= 8 bytes at `one` and `other` are the same."""
    i = 0
    while i + 8 <= size:
        if _eight_bytes(words, one + i) != _eight_bytes(words, other + i):
            return False
        i += 8
    return _eight_bytes(words, one + size - 8) == _eight_bytes(words, other + size - 8)


@kernel
def _table_of(words: UInt64Array, starts: Int64Array, lengths: Int32Array, slots: int) -> Any:
    """A new map of pretokens that are all different; `slots` is a power of two."""
    table = np.zeros((slots, 2), dtype=np.uint64)
    mask = slots - 1
    for number in range(len(starts)):
        key = _key_of(words, starts[number], lengths[number])
        slot = _slot_of(key, mask)
        while table[slot, 0] != _FREE:
            slot = (slot + 1) & mask
        table[slot, 0] = key
        table[slot, 1] = np.uint64(number)
    return table


@kernel
def _intern(
    text: UInt8Array,
    words: UInt64Array,
    spans: Int64Array,
    span: int,
    i: int,
    pattern: int,
    quick: UInt8Array,
    classes: UInt8Array,
    joins: UInt8Array,
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

    Nothing here may allocate or call with many arrays: that would cost more than the work itself.
    """
    mask, room, is_kept = len(table) - 1, len(starts), len(sequence) > 0
    while span < len(spans):
        end = spans[span, 1]
        while i < end:
            if used == room:
                return span, i, used, filled
            after = i + 1
            if pattern >= 0:
                # The short way for ASCII: one class, with a blank before it or not (scan.quick_classes).
                found = quick[text[i]]
                if text[i] == _BLANK and after < end:
                    following = quick[text[after]]
                    if following != SPACE:
                        found = following
                is_quick = False
                if found < SPACE:
                    while after < end and quick[text[after]] == found:
                        after += 1
                    is_quick = after == end or quick[text[after]] != ASK
                if not is_quick:
                    after = pretoken_end(text, i, end, pattern, classes)
            elif pattern == CUTS:
                while after < end and joins[text[after - 1], text[after]]:
                    after += 1
            else:
                after = end
            size = after - i
            key = _key_of(words, i, size)
            slot = _slot_of(key, mask)
            while True:
                stored = table[slot, 0]
                if stored == key:
                    number = np.int64(table[slot, 1])
                    if size < 8 or (lengths[number] == size and _is_same(words, starts[number], i, size)):
                        break
                elif stored == _FREE:
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
