"""Numba kernels that encode one piece of text, which is one pretoken: the replay of the merges on it.

A short piece is merged by rank, always the window of lowest rank next, in a room that is used again and again. A long
piece is replayed with a list of windows for every rank, in time that grows with its length and no faster.
"""

from typing import NamedTuple

import numpy as np

from tokenizer.base import Int32Array, Int64Array, UInt8Array
from tokenizer.engine.jit import inlined, kernel
from tokenizer.engine.kernels import NONE, rank_of

_PLACE_BITS = 7
_LONG_PIECE = 1 << _PLACE_BITS  # symbols; longer pieces are replayed in linear time, shorter ones merged by rank
_UNKNOWN = -1
_WINDOWS, _FOLLOWING, _PRECEDING = range(3)  # rows of the room for a piece


class MergeTable(NamedTuple):
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


@kernel
def room_for_windows() -> Int64Array:
    """Room that `encode_piece` works in: one for many pieces, because making it costs as much as a short piece."""
    return np.empty((3, _LONG_PIECE), dtype=np.int64)


@kernel
def encode_piece(
    text: UInt8Array, start: int, end: int, ids: Int32Array, first: int, table: MergeTable, room: Int64Array
) -> int:
    """Write the ids of text[start:end], which is valid UTF-8, from ids[first] on; their number, or -1.

    -1 means a character that has no id. The result is the replay of the first `table.limit` merges. `room` is that
    of `room_for_windows`, of no meaning between two calls.
    """
    size = 0
    if table.is_bytes:
        for i in range(start, end):
            ids[first + size] = table.base_ids[text[i]]
            size += 1
    else:
        size = _write_character_ids(text, start, end, ids, first, table.base_ids)
    if size > _LONG_PIECE:
        replayed = replay(ids[first : first + size], table)
        ids[first : first + len(replayed)] = replayed
        size = len(replayed)
    elif size > 1:
        size = _merge_by_rank(ids, first, size, table.ranks, table.low_ranks, table.limit, table.base_size, room)
    return size


@inlined
def _write_character_ids(
    text: UInt8Array, start: int, end: int, ids: Int32Array, first: int, base_ids: Int32Array
) -> int:
    """Write the base ids of the characters of text[start:end] from ids[first] on; their number, or -1."""
    size = 0
    i = start
    while i < end:
        code = np.int64(text[i])
        length = 1
        if code >= 0x80:  # the leading byte tells the length, and holds the highest bits
            length = 2 if code < 0xE0 else 3 if code < 0xF0 else 4
            code &= 0x7F >> length
            for j in range(i + 1, i + length):
                code = (code << 6) | np.int64(text[j] & 0x3F)
        found = base_ids[code] if code < len(base_ids) else _UNKNOWN
        if found == _UNKNOWN:
            size = _UNKNOWN
            break
        ids[first + size] = found
        size += 1
        i += length
    return size


# ---------------------------------------------------------------------------------------------------------------
# Short pieces.


@inlined
def _window(left: int, right: int, place: int, ranks: Int64Array, low_ranks: Int32Array, limit: int) -> np.int64:
    """The number that stands for the window `left`, `right` at `place`: its rank, or `limit`, above its place."""
    if left < len(low_ranks) and right < len(low_ranks):
        rank = np.int64(min(low_ranks[left, right], limit))
    else:
        rank = rank_of(ranks, left, right, limit)
    return (rank << _PLACE_BITS) | place


@kernel
def _merge_by_rank(
    ids: Int32Array,
    first: int,
    size: int,
    ranks: Int64Array,
    low_ranks: Int32Array,
    limit: int,
    base_size: int,
    room: Int64Array,
) -> int:
    """Merge the piece ids[first : first + size] in place, always the leftmost window of lowest rank; its new size.

    That is the replay: a merge only makes windows of higher rank than its own, so no lower rank ever comes back, and
    windows of one rank are taken from the left. `limit` is no rank.

    A token stays where its first symbol stood, and the room holds the places of the tokens after and before it. Its
    window to the right is one number, the rank above the place, so that the least of these numbers is the leftmost
    window of lowest rank, found without a branch.
    """
    last, no_window = size - 1, np.int64(limit) << _PLACE_BITS

    # In the beginning every symbol is a token, and has a window with the next one.
    for i in range(size):
        room[_FOLLOWING, i], room[_PRECEDING, i] = i + 1, i - 1
    for i in range(last):
        room[_WINDOWS, i] = _window(ids[first + i], ids[first + i + 1], i, ranks, low_ranks, limit)

    while True:
        # Which window is next? A piece is short: looking at every place is faster than keeping a queue.
        lowest = no_window
        for i in range(last):
            lowest = min(lowest, room[_WINDOWS, i])
        if lowest >= no_window:
            break
        place = lowest & (_LONG_PIECE - 1)
        new_id = base_size + (lowest >> _PLACE_BITS)

        # The token at `place` swallows the one at j. Before it stands the one at h, behind it now the one at k.
        j, h = room[_FOLLOWING, place], room[_PRECEDING, place]
        k = room[_FOLLOWING, j]
        ids[first + place] = new_id
        room[_FOLLOWING, place] = k
        room[_WINDOWS, place] = room[_WINDOWS, j] = no_window

        # Its windows on both sides are new ones.
        if k < size:
            room[_PRECEDING, k] = place
            room[_WINDOWS, place] = _window(new_id, ids[first + k], place, ranks, low_ranks, limit)
        if h >= 0:
            room[_WINDOWS, h] = _window(ids[first + h], new_id, h, ranks, low_ranks, limit)

    # Move the tokens that are left together.
    count, place = 0, np.int64(0)
    while place < size:
        ids[first + count] = ids[first + place]
        count += 1
        place = room[_FOLLOWING, place]
    return count


# ---------------------------------------------------------------------------------------------------------------
# Long pieces.


class WindowLists(NamedTuple):
    """For every rank a list of windows, as links between entries that lie in one pool."""

    first: Int32Array
    """Shape (limit,): the first entry of each rank's list, or NONE."""
    last: Int32Array
    """Shape (limit,): its last entry."""
    place: Int32Array
    """Shape (E,): where the window of each entry begins."""
    after: Int32Array
    """Shape (E,): the next entry of the same list, or NONE."""


@kernel
def replay(symbols: Int32Array, table: MergeTable) -> Int32Array:
    """Ids of one long piece: the replay of the first `table.limit` merges, in linear time.

    For every rank there is a list of the windows that held its pair when they came into being. Ranks are visited in
    learned order; a window that has changed since is recognised by its symbols (they never change back).

    Invariant: when rank r is visited, no live window holds a pair of lower rank, and the list of r holds every live
    window of its pair, those that overlap (both halves equal) in text order: they were all born in the same pass
    from the left, the one that made the half.
    """
    size, pairs, ranks, limit = len(symbols), table.pairs, table.ranks, table.limit
    # As in a short piece a token stays where its first symbol stood; the places that it swallowed hold NONE.
    symbol = symbols.copy()
    following, preceding = np.arange(1, size + 1, dtype=np.int32), np.arange(-1, size - 1, dtype=np.int32)
    following[size - 1] = NONE
    # Entries of the lists: at most one for each symbol, then two for each replacement.
    place, after = np.empty(3 * size, dtype=np.int32), np.empty(3 * size, dtype=np.int32)
    lists = WindowLists(np.full(limit, NONE, dtype=np.int32), np.empty(limit, dtype=np.int32), place, after)
    used = 0
    for i in range(size - 1):
        used = _append(lists, used, rank_of(ranks, symbol[i], symbol[i + 1], limit), i, limit)

    for rank in range(limit):
        left, right, new_id = pairs[rank, 0], pairs[rank, 1], table.base_size + rank
        entry = lists.first[rank]
        while entry != NONE:
            i = place[entry]
            entry = after[entry]
            j = following[i]
            if symbol[i] != left or j == NONE or symbol[j] != right:
                continue  # the window has gone: a merge of lower rank, or an overlap, took one of its halves

            # The token at i swallows the one at j; h and k are the places of its neighbours.
            h, k = preceding[i], following[j]
            symbol[i] = new_id
            symbol[j] = NONE
            following[i] = k
            if k != NONE:
                preceding[k] = i
                used = _append(lists, used, rank_of(ranks, new_id, symbol[k], limit), i, limit)
            if h != NONE:
                used = _append(lists, used, rank_of(ranks, symbol[h], new_id, limit), h, limit)
    return symbol[symbol != NONE]


@inlined
def _append(lists: WindowLists, used: int, rank: int, i: int, limit: int) -> int:
    """Put window `i` at the end of the list of `rank`, unless that is `limit`; the number of entries in use."""
    if rank < limit:
        lists.place[used] = i
        lists.after[used] = NONE
        if lists.first[rank] == NONE:
            lists.first[rank] = used
        else:
            lists.after[lists.last[rank]] = used
        lists.last[rank] = used
        used += 1
    return used
