"""Corpus encoding: one pass that encodes each distinct pretoken when it is first met and copies its ids ever after.

Without a split pattern the vocabulary itself says where to cut (cuts.py). The pieces repeat as words do, so the same
machinery serves.
"""

from typing import NamedTuple

import numpy as np

from data.errors import TokenizerError
from tokenizer.base import Int32Array, Int64Array, UInt8Array, UInt64Array
from tokenizer.engine.borders import CUTS, Cutter, cutter_for, list_ends, num_up_to, taken_together
from tokenizer.engine.cuts import Cuts
from tokenizer.engine.intern import TextBytes, in_threads, shares_of
from tokenizer.engine.jit import inlined, kernel
from tokenizer.engine.piece import MergeTable, encode_piece, room_for_pieces
from tokenizer.engine.pretoken_map import GROUP, WORDS, doubled, look_up, room_for_group
from tokenizer.engine.scan import PATTERN_NUMBERS
from tokenizer.pretokenize import SplitPattern

_ROWS_AT_FIRST = 1 << 17
_DONE, _FULL, _UNKNOWN = range(3)


class IdMap(NamedTuple):
    """The map from pretokens to their ids (pretoken_map.py).

    The owner's two words of a row hold up to four ids, and above the fourth one how many there are. Where there are
    more, or the pretoken is long, the number is _IN_POOL, the first word is a place in the pool, and the second one
    says how many ids lie there.
    """

    rows: UInt64Array
    """Shape (4 * rows,): the words of all rows."""
    pool: Int32Array
    """The ids of pretokens that have more than four, one behind the other; behind them room for the next pretoken."""


class Ids(NamedTuple):
    """Where the ids of a share of the text are written."""

    ids: Int32Array
    """Shape (bytes + 4,): four are written at a time."""
    pairs: UInt64Array
    """The same memory: item i is the ids i and i + 1, the first one in the lower half."""
    span_ends: Int64Array
    """Shape (S,): how many ids there are up to the end of each span."""


_IDS, _MORE_IDS = np.uint64(2), np.uint64(3)  # the owner's words
_HALF, _COUNT = np.uint64(32), np.uint64(61)  # bits below the second id of a word, and below the number of ids
_LOW, _WITHOUT_COUNT = np.uint64((1 << 32) - 1), np.uint64((1 << 61) - 1)
_IN_POOL = 7
_MOST_IN_ROW = 4


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
    num_rows = 2 * GROUP
    while num_rows < min(num_bytes, _ROWS_AT_FIRST):
        num_rows *= 2
    longest = int((spans[:, 1] - spans[:, 0]).max(initial=0))
    id_map = IdMap(np.zeros(WORDS * num_rows, dtype=np.uint64), np.empty(num_rows + longest, dtype=np.int32))
    ids = np.empty(num_bytes + _MOST_IN_ROW, dtype=np.int32)  # memory is taken as it is written
    pairs = np.ndarray(len(ids) - 1, np.dtype("<u8"), ids.data, strides=(4,))
    written = Ids(ids, pairs, np.empty(len(spans), dtype=np.int64))
    cutter = cutter_for(spans, pattern, cuts)
    start = int(spans[0, 0]) if len(spans) else 0
    progress = Progress(state=_FULL, span=0, i=start, used=0, pooled=0, filled=0)
    while True:
        progress = _encode_spans(laid_out, spans, cutter, id_map, table, written, progress)
        if progress.state == _UNKNOWN:
            raise UnknownCharacterError(f"no token for the character at byte {progress.i}")
        if progress.state == _DONE:
            return ids[: progress.filled], written.span_ends
        # Full: whichever it is, both grow.
        id_map = IdMap(doubled(id_map.rows), np.concatenate([id_map.pool, np.empty_like(id_map.pool)]))


@kernel
def _encode_spans(
    laid_out: TextBytes,
    spans: Int64Array,
    cutter: Cutter,
    id_map: IdMap,
    table: MergeTable,
    written: Ids,
    progress: Progress,
) -> Progress:
    """Go on from where `progress` says until all spans are done, the map is full, or a character has no id."""
    rows, pool, most_rows = id_map.rows, id_map.pool, len(id_map.rows) // (2 * WORDS)
    span, i, used, pooled, filled = progress.span, progress.i, progress.used, progress.pooled, progress.filled
    group, room = room_for_group(), room_for_pieces()
    while span < len(spans):
        # Find all pretokens of some spans first: that is work on many bytes at once.
        last = taken_together(spans, span)
        count = list_ends(laid_out.text, i, spans[span:last], cutter)
        for first in range(0, count, GROUP):
            ends = cutter.ends[first : min(first + GROUP, count)]
            # A whole group has to find room: a row for each pretoken, and in the pool an id for each byte.
            if used + GROUP > most_rows or pooled + ends[-1] - i > len(pool):
                return Progress(_FULL, span, i, used, pooled, filled)
            num_new = look_up(laid_out.at, i, ends, rows, group)

            # Encode what is new, behind the ids in the pool.
            for k in group.new[:num_new]:
                start = i if k == 0 else ends[k - 1]
                found = encode_piece(laid_out.text, start, ends[k], pool, pooled, table, room)
                if found < 0:
                    return Progress(_UNKNOWN, span, start, used, pooled, filled)
                pooled += _enter_ids(rows, group.rows[k], pool, pooled, found)
            used += num_new
            i, copied = ends[-1], 0
            while span < last and spans[span, 1] <= i:
                # A span ends inside the group, or with it.
                upto = num_up_to(ends, spans[span, 1])
                filled = _copy_ids(rows, group.rows[copied:upto], pool, written.ids, written.pairs, filled)
                written.span_ends[span], copied = filled, upto
                span += 1
            filled = _copy_ids(rows, group.rows[copied : len(ends)], pool, written.ids, written.pairs, filled)
        written.span_ends[span:last] = filled  # only empty ones are left
        span = last
        if span < len(spans):
            i = spans[span, 0]
    return Progress(_DONE, span, i, used, pooled, filled)


@kernel
def _copy_ids(
    rows: UInt64Array, places: UInt64Array, pool: Int32Array, ids: Int32Array, pairs: UInt64Array, filled: int
) -> int:
    """Write the ids that the rows at `places` have, from ids[filled] on; how many ids there are now."""
    for row in places:
        # Four ids are always written; what follows overwrites those that are none.
        word, second_word = rows[row + _IDS], rows[row + _MORE_IDS]
        number = int(second_word >> _COUNT)
        if number == _IN_POOL:
            place, number = int(word), int(second_word & _LOW)
            for m in range(number):
                ids[filled + m] = pool[place + m]
        else:
            pairs[filled] = word
            pairs[filled + 2] = second_word & _WITHOUT_COUNT
        filled += number
    return filled


@inlined
def _enter_ids(rows: UInt64Array, row: np.uint64, pool: Int32Array, pooled: int, count: int) -> int:
    """Note in a row the `count` ids that stand in the pool from `pooled` on; how many of them have to stay there."""
    stay = count
    if count <= _MOST_IN_ROW:
        # The lower half of each word first; ids that are none are 0.
        for word in range(2):
            ids = np.uint64(0)
            for half in range(2):
                m = 2 * word + half
                if m < count:
                    ids |= np.uint64(pool[pooled + m]) << np.uint64(32 * half)
            rows[row + _IDS + np.uint64(word)] = ids
        rows[row + _MORE_IDS] |= np.uint64(count) << _COUNT
        stay = 0
    else:
        rows[row + _IDS] = np.uint64(pooled)
        rows[row + _MORE_IDS] = np.uint64(count) | (np.uint64(_IN_POOL) << _COUNT)
    return stay


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
    ranks: UInt64Array,
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
    count, room = 0, room_for_pieces()
    for piece in range(len(offsets) - 1):
        found = encode_piece(text, offsets[piece], offsets[piece + 1], ids, count, table, room)
        if found < 0:
            return ids[:0].copy()
        count += found
    return ids[:count].copy()
