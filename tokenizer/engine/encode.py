"""Corpus encoding: one pass that encodes each distinct pretoken when it is first met and copies its ids ever after.

Without a split pattern the vocabulary itself says where to cut (cuts.py). The pieces repeat as words do, so the same
machinery serves.
"""

from typing import NamedTuple

import numpy as np

from data.errors import TokenizerError
from tokenizer.base import Int32Array, Int64Array, UInt8Array
from tokenizer.engine.borders import CUTS, Cutter, UInt64Array, cutter_for, mark_borders, next_border
from tokenizer.engine.cuts import Cuts
from tokenizer.engine.intern import TextBytes, in_threads, shares_of
from tokenizer.engine.jit import kernel
from tokenizer.engine.piece import MergeTable, encode_piece, room_for_windows
from tokenizer.engine.pretoken_map import FREE, is_same, key_of, slot_of
from tokenizer.engine.scan import PATTERN_NUMBERS
from tokenizer.pretokenize import SplitPattern

_SLOTS_AT_FIRST = 1 << 17
_DONE, _FULL, _UNKNOWN = range(3)


class IdMap(NamedTuple):
    """The map from pretokens to their ids."""

    rows: UInt64Array
    """Shape (slots, 4), a row for each pretoken; the columns are _KEY, _IDS, _START, _SIZES."""
    pool: Int32Array
    """The ids of pretokens that have more than two, one behind the other."""


# The columns: the key (pretoken_map.py); the ids themselves, the second one in the upper half, or the place of more
# than two in the pool; the byte at which the pretoken was first seen; its bytes (upper half) and ids (lower half).
_KEY, _IDS, _START, _SIZES = range(4)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


class Progress(NamedTuple):
    """How far `_encode_spans` has come."""

    state: int
    """_DONE, or why it stopped: _FULL or _UNKNOWN."""
    span: int
    """Index of the span it is in."""
    i: int
    """The next byte of that span."""
    used: int
    """Rows of the map in use."""
    pooled: int
    """Ids in the pool."""
    filled: int
    """Ids written."""


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
    id_map = IdMap(np.zeros((slots, 4), dtype=np.uint64), np.empty(slots * 4, dtype=np.int32))
    ids = np.empty(num_bytes + 2, dtype=np.int32)  # a token has one byte at least; memory is taken as it is written
    span_ends = np.empty(len(spans), dtype=np.int64)
    cutter = cutter_for(spans, pattern, cuts)
    start = int(spans[0, 0]) if len(spans) else 0
    progress = Progress(state=_FULL, span=0, i=start, used=0, pooled=0, filled=0)
    while True:
        progress = _encode_spans(laid_out, spans, cutter, id_map, table, ids, span_ends, progress)
        if progress.state == _UNKNOWN:
            raise UnknownCharacterError(f"no token for the character at byte {progress.i}")
        if progress.state == _DONE:
            return ids[: progress.filled], span_ends
        # Full: whichever it is, both grow, for the longest piece may need as many ids as it has bytes.
        longest = int((spans[:, 1] - spans[:, 0]).max())
        room = np.empty(len(id_map.pool) + longest, dtype=np.int32)
        id_map = IdMap(_with_more_rows(id_map.rows), np.concatenate([id_map.pool, room]))


@kernel
def _with_more_rows(rows: UInt64Array) -> UInt64Array:
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
    laid_out: TextBytes,
    spans: Int64Array,
    cutter: Cutter,
    id_map: IdMap,
    table: MergeTable,
    ids: Int32Array,
    span_ends: Int64Array,
    progress: Progress,
) -> Progress:
    """Go on from where `progress` says until all spans are done, the map is full, or a character has no id.

    Invariant of the map: a row holds the ids of its pretoken, two of them in the row itself, more in the pool.
    """
    text, at, marks_at = laid_out.text, laid_out.at, cutter.marks_at
    rows, pool = id_map.rows, id_map.pool
    span, i, used, pooled, filled = progress.span, progress.i, progress.used, progress.pooled, progress.filled
    mask, room = len(rows) - 1, room_for_windows()
    while span < len(spans):
        # Mark the borders of the whole span first: that is work on many bytes at once.
        start, end = i, spans[span, 1]
        if start < end:
            mark_borders(text, start, end, cutter)
        while i < end:
            # The pretoken goes up to the next border. Probe until its row is met, or a free one.
            after = start + next_border(marks_at, i - start)
            size = after - i
            key = key_of(at, i, size)
            slot = slot_of(key, mask)
            while rows[slot, _KEY] != FREE:
                if rows[slot, _KEY] == key and (
                    size < 8  # the key says it all; longer pretokens may share one, and their bytes are compared
                    or (
                        np.int64(rows[slot, _SIZES] >> _HALF) == size
                        and is_same(at, np.int64(rows[slot, _START]), i, size)
                    )
                ):
                    break
                slot = (slot + 1) & mask

            # Met for the first time: encode it, behind the ids in the pool.
            if rows[slot, _KEY] == FREE:
                if 2 * used >= len(rows) or pooled + size > len(pool):
                    return Progress(_FULL, span, i, used, pooled, filled)
                count = encode_piece(text, i, after, pool, pooled, table, room)
                if count < 0:
                    return Progress(_UNKNOWN, span, i, used, pooled, filled)
                rows[slot, _KEY], rows[slot, _START] = key, np.uint64(i)
                pooled += _enter_ids(id_map, slot, pooled, size, count)
                used += 1

            # Copy its ids. Two are always written; what follows overwrites the second if there is only one.
            # A kernel of its own for these lines makes encoding a quarter slower.
            found, count = rows[slot, _IDS], int(np.int64(rows[slot, _SIZES] & _LOW))
            if count > 2:
                first = np.int64(found)
                for k in range(count):
                    ids[filled + k] = pool[first + k]
            else:
                ids[filled] = np.int32(found & _LOW)
                ids[filled + 1] = np.int32(found >> _HALF)
            filled += count
            i = after
        span_ends[span] = filled
        span += 1
        if span < len(spans):
            i = spans[span, 0]
    return Progress(_DONE, span, i, used, pooled, filled)


@kernel
def _enter_ids(id_map: IdMap, slot: int, pooled: int, size: int, count: int) -> int:
    """Note in row `slot` the `count` ids of its `size` bytes, which stand in the pool from `pooled` on.

    Returns how many of them stay there: ids that fit into the row do not.
    """
    rows, pool = id_map.rows, id_map.pool
    rows[slot, _SIZES] = (np.uint64(size) << _HALF) | np.uint64(count)
    if count > 2:
        rows[slot, _IDS] = np.uint64(pooled)
        return count
    second = np.uint64(pool[pooled + 1]) if count == 2 else np.uint64(0)
    rows[slot, _IDS] = (second << _HALF) | np.uint64(pool[pooled])
    return 0


@kernel
def _last_spans(spans: Int64Array, document_ends: Int64Array) -> Int64Array:
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
    pairs: Int32Array,
    ranks: Int64Array,
    low_ranks: Int32Array,
    base_ids: Int32Array,
    is_bytes: bool,
    base_size: int,
    limit: int,
) -> Int32Array:
    """Ids of the pieces text[offsets[p]:offsets[p+1]], for texts too short for repetitions to pay.

    The arguments from `pairs` on are those of a MergeTable: taking them one by one is faster from Python, and a short
    text notices. Empty if a character has no id: the caller tells it from an empty text.
    """
    table = MergeTable(pairs, ranks, low_ranks, base_ids, is_bytes, base_size, limit)
    ids = np.empty(len(text), dtype=np.int32)
    count, room = 0, room_for_windows()
    for piece in range(len(offsets) - 1):
        found = encode_piece(text, offsets[piece], offsets[piece + 1], ids, count, table, room)
        if found < 0:
            return ids[:0].copy()
        count += found
    return ids[:count].copy()
