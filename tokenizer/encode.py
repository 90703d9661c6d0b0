"""Corpus encoding: one pass that encodes each distinct pretoken when it is first met and copies its ids ever after.

Without a split pattern the vocabulary itself says where to cut (cuts.py). The pieces repeat as words do, so the same
machinery serves.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from data.errors import TokenizerError
from tokenizer.borders import CUTS, UInt64Array, mark_borders, next_border, room_for_marks
from tokenizer.cuts import ContextArray, Cuts, UInt16Array
from tokenizer.intern import TextBytes, in_threads, shares_of
from tokenizer.jit import kernel
from tokenizer.kernels import Int32Array, Int64Array, encode_piece, room_for_windows
from tokenizer.pretoken_map import FREE, is_same, key_of, slot_of
from tokenizer.pretokenize import SplitPattern
from tokenizer.scan import PATTERN_NUMBERS, UInt8Array, character_classes, quick_classes

_SLOTS_AT_FIRST = 1 << 17
_DONE, _FULL, _UNKNOWN = range(3)


@dataclass(frozen=True)
class MergeTable:
    """Base tokens and merges in the form that the kernels want."""

    pairs: Int32Array
    """Shape (R, 2): the two ids that merge r joins."""
    ranks: Int64Array
    """The map from a pair to its rank (kernels.build_ranks)."""
    low_ranks: Int32Array
    """Shape (B, B): the rank of a pair of the lowest ids, or a number beyond all ranks (kernels.build_low_ranks)."""
    base_ids: Int32Array
    """The id of each byte, or of each code point (-1: unknown)."""
    is_bytes: bool
    """Whether the base tokens are bytes."""
    base_size: int
    limit: int
    """Only so many merges are used, the first ones."""


class UnknownCharacterError(TokenizerError):
    """A character without a token; the caller knows how to name it."""


def encode_texts(
    laid_out: TextBytes,
    table: MergeTable,
    split_pattern: SplitPattern,
    cuts: Cuts,
    *,
    num_threads: int | None = None,
) -> tuple[Int64Array, Int64Array]:
    """Ids of all documents, int64, and their D+1 offsets. Raises UnknownCharacterError."""
    pattern = PATTERN_NUMBERS.get(split_pattern, CUTS)
    shares = shares_of(laid_out, num_threads, joins=cuts.joins if pattern == CUTS else None)
    encoded = in_threads(lambda share: _encode_share(laid_out, share, table, pattern, cuts), shares)
    bounds = np.cumsum([0, *(len(ids) for ids, _ in encoded)])
    all_ids = np.empty(bounds[-1], dtype=np.int64)

    def widen(number: int) -> None:
        all_ids[bounds[number] : bounds[number + 1]] = encoded[number][0]

    in_threads(widen, range(len(shares)))
    span_ends = np.concatenate([ends + bounds[number] for number, (_, ends) in enumerate(encoded)])
    # A document's last span ends where the document ends; of spans that end there (empty documents) all do.
    last_spans = _last_spans(np.concatenate(shares), laid_out.ends)
    return all_ids, np.concatenate([np.zeros(1, dtype=np.int64), span_ends[last_spans]])


def _encode_share(
    laid_out: TextBytes, spans: Int64Array, table: MergeTable, pattern: int, cuts: Cuts
) -> tuple[Int32Array, Int64Array]:
    """Ids of `spans` (S, 2) one behind the other, and where each span ends among them."""
    num_bytes = int((spans[:, 1] - spans[:, 0]).sum())
    slots = 64
    while slots < min(num_bytes, _SLOTS_AT_FIRST):
        slots *= 2
    rows = np.zeros((slots, 4), dtype=np.uint64)
    pool = np.empty(slots * 4, dtype=np.int32)
    ids = np.empty(num_bytes + 2, dtype=np.int32)  # a token has one byte at least; memory is taken as it is written
    span_ends = np.empty(len(spans), dtype=np.int64)
    quick = quick_classes(max(pattern, 0))
    room = room_for_marks(spans)
    state, span, i = _FULL, 0, int(spans[0, 0]) if len(spans) else 0
    used = pooled = filled = 0
    while True:
        state, span, i, used, pooled, filled = _encode_spans(
            *(laid_out.text, laid_out.at, spans, span, i, pattern, quick, character_classes()),
            *(cuts.joins, cuts.contexts, *room),
            *(rows, used, pool, pooled, ids, filled, span_ends),
            *(table.base_ids, table.is_bytes, table.pairs, table.ranks, table.low_ranks, table.limit, table.base_size),
        )
        if state == _UNKNOWN:
            raise UnknownCharacterError(f"no token for the character at byte {i}")
        if state == _DONE:
            return ids[:filled], span_ends
        # Full: whichever it is, both grow, for the longest piece may need as many ids as it has bytes.
        rows = _grown(rows)
        longest = int((spans[:, 1] - spans[:, 0]).max())
        pool = np.concatenate([pool, np.empty(len(pool) + longest, dtype=np.int32)])


# Rows of the map: key; up to two ids, or the place of more in the pool; first byte; number of bytes and of ids.
_KEY, _IDS, _START, _SIZES = range(4)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@kernel
def _grown(rows: UInt64Array) -> Any:
    """The same map with twice the slots. Keys of long pretokens that collide stay two rows, as before."""
    larger = np.zeros((2 * len(rows), 4), dtype=np.uint64)
    mask = len(larger) - 1
    for row in range(len(rows)):
        if rows[row, _KEY] != FREE:
            slot = slot_of(rows[row, _KEY], mask)
            while larger[slot, _KEY] != FREE:
                slot = (slot + 1) & mask
            larger[slot] = rows[row]
    return larger


@kernel
def _encode_spans(
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
    rows: UInt64Array,
    used: int,
    pool: Int32Array,
    pooled: int,
    ids: Int32Array,
    filled: int,
    span_ends: Int64Array,
    base_ids: Int32Array,
    is_bytes: bool,
    pairs: Int32Array,
    ranks: Int64Array,
    low_ranks: Int32Array,
    limit: int,
    base_size: int,
) -> Any:
    """Go on from byte `i` of span `span`: (state, span, i, used, pooled, filled), done or for want of something.

    Invariant of the map: a row holds the ids of its pretoken, two of them in the row itself, more in the pool.
    """
    mask, room = len(rows) - 1, room_for_windows()
    while span < len(spans):
        start, end = i, spans[span, 1]
        if start < end:
            mark_borders(text, start, end, pattern, quick, classes, joins, contexts, marks, marks_at, kinds)
        while i < end:
            after = start + next_border(marks_at, i - start)
            size = after - i
            key = key_of(at, i, size)
            slot = slot_of(key, mask)
            while rows[slot, _KEY] != FREE:
                if rows[slot, _KEY] == key and (
                    size < 8
                    or (
                        np.int64(rows[slot, _SIZES] >> _HALF) == size
                        and is_same(at, np.int64(rows[slot, _START]), i, size)
                    )
                ):
                    break
                slot = (slot + 1) & mask
            if rows[slot, _KEY] == FREE:
                if 2 * used >= len(rows) or pooled + size > len(pool):
                    return _FULL, span, i, used, pooled, filled
                count = encode_piece(
                    *(text, i, after, pool, pooled),
                    *(base_ids, is_bytes, pairs, ranks, low_ranks, limit, base_size, room),
                )
                if count < 0:
                    return _UNKNOWN, span, i, used, pooled, filled
                rows[slot, _KEY], rows[slot, _START] = key, np.uint64(i)
                rows[slot, _SIZES] = (np.uint64(size) << _HALF) | np.uint64(count)
                if count > 2:
                    rows[slot, _IDS] = np.uint64(pooled)
                    pooled += count
                else:
                    second = np.uint64(pool[pooled + 1]) if count == 2 else np.uint64(0)
                    rows[slot, _IDS] = (second << _HALF) | np.uint64(pool[pooled])
                used += 1
            found, count = rows[slot, _IDS], int(np.int64(rows[slot, _SIZES] & _LOW))
            if count > 2:
                first = np.int64(found)
                for k in range(count):
                    ids[filled + k] = pool[first + k]
            else:  # two are always written; what follows overwrites the second if there is only one
                ids[filled] = np.int32(found & _LOW)
                ids[filled + 1] = np.int32(found >> _HALF)
            filled += count
            i = after
        span_ends[span] = filled
        span += 1
        if span < len(spans):
            i = spans[span, 0]
    return _DONE, span, i, used, pooled, filled


@kernel
def _last_spans(spans: Int64Array, document_ends: Int64Array) -> Any:
    """The index of each document's last span; spans stand in document order, and every document has one."""
    last = np.empty(len(document_ends), dtype=np.int64)
    span = 0
    for document in range(len(document_ends)):
        while spans[span, 1] != document_ends[document]:
            span += 1
        last[document] = span
        span += 1
    return last


@kernel
def encode_short(
    text: UInt8Array,
    offsets: Int64Array,
    base_ids: Int32Array,
    is_bytes: bool,
    pairs: Int32Array,
    ranks: Int64Array,
    low_ranks: Int32Array,
    limit: int,
    base_size: int,
) -> Any:
    """Ids of the pieces text[offsets[p]:offsets[p+1]], for texts too short for repetitions to pay.

    Empty if a character has no id: the caller tells it from an empty text.
    """
    ids = np.empty(len(text), dtype=np.int32)
    count, room = 0, room_for_windows()
    for piece in range(len(offsets) - 1):
        found = encode_piece(
            *(text, offsets[piece], offsets[piece + 1], ids, count),
            *(base_ids, is_bytes, pairs, ranks, low_ranks, limit, base_size, room),
        )
        if found < 0:
            return ids[:0].copy()
        count += found
    return ids[:count].copy()
