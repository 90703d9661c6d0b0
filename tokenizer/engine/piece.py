"""Numba kernels that encode one piece of text, which is one pretoken: the replay of the merges on it.

A short piece is merged by rank, always the window of lowest rank next, in a room that is used again and again. A long
piece is replayed with a list of windows for every rank, in time that grows with its length and no faster.
"""

from typing import NamedTuple

import numpy as np

from tokenizer.base import Int32Array, UInt8Array, UInt64Array
from tokenizer.engine.jit import inlined, kernel
from tokenizer.engine.kernels import NONE, rank_of

_LONG_PIECE = 128  # symbols; longer pieces are replayed in linear time, shorter ones merged by rank
_UNKNOWN = -1


class MergeTable(NamedTuple):
    """Base tokens and merges in the form that the kernels want."""

    pairs: Int32Array
    """Shape (R, 2): the two ids that merge r joins."""
    ranks: UInt64Array
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


class Room(NamedTuple):
    """Room that `encode_piece` works in, of no meaning between two calls: one for many pieces."""

    symbols: Int32Array
    """The tokens of a short piece."""
    ranks: Int32Array
    """The rank of each token's window with the next one."""


@kernel
def room_for_pieces() -> Room:
    """Room for one short piece after the other; making it costs as much as a short piece."""
    return Room(np.empty(_LONG_PIECE, dtype=np.int32), np.empty(_LONG_PIECE, dtype=np.int32))


@kernel
def encode_piece(
    text: UInt8Array, start: int, end: int, ids: Int32Array, first: int, table: MergeTable, room: Room
) -> int:
    """Write the ids of text[start:end], which is valid UTF-8, from ids[first] on; their number, or -1.

    -1 means a character that has no id. The result is the replay of the first `table.limit` merges.
    """
    if end - start > _LONG_PIECE:
        size = _write_base_ids(text, start, end, ids, first, table)
        if size > 1:
            replayed = replay(ids[first : first + size], table)
            ids[first : first + len(replayed)] = replayed
            size = len(replayed)
    else:
        size = _write_base_ids(text, start, end, room.symbols, 0, table)
        if size > 1:
            size = _merge_by_rank(room.symbols, room.ranks, size, table)
        for i in range(size):
            ids[first + i] = room.symbols[i]
    return size


@inlined
def _write_base_ids(text: UInt8Array, start: int, end: int, ids: Int32Array, first: int, table: MergeTable) -> int:
    """Write the base ids of text[start:end] from ids[first] on; their number, or -1 if a character has none."""
    size = end - start
    if table.is_bytes:
        for i in range(size):
            ids[first + i] = table.base_ids[text[start + i]]
    else:
        size = _write_character_ids(text, start, end, ids, first, table.base_ids)
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


@kernel
def _merge_by_rank(symbols: Int32Array, rank_at: Int32Array, size: int, table: MergeTable) -> int:
    """Merge the first `size` of `symbols` in place, always the leftmost window of lowest rank; how many tokens remain.

    That is the replay: a merge only makes windows of higher rank than its own, so no lower rank ever comes back, and
    windows of one rank are taken from the left.

    A merge moves what lies behind it one place down. A piece is short, so that costs less than links between tokens
    would. And the search for the lowest rank goes place by place: read as one vector, the ranks would have to wait for
    those that the last merge has just written.
    """
    ranks, low_ranks, limit = table.ranks, table.low_ranks, np.int32(table.limit)
    # Two loops, because a choice in each step would cost as much as the look-up.
    if table.base_size <= len(low_ranks):
        for i in range(size - 1):
            rank_at[i] = low_ranks[symbols[i], symbols[i + 1]]
    else:
        for i in range(size - 1):
            rank_at[i] = rank_of(ranks, symbols[i], symbols[i + 1], limit)

    while size > 1:
        # Which window is next? The place goes along with the rank, so that there is no branch to guess.
        lowest, place = limit, 0
        for i in range(size - 1):
            rank = rank_at[i]
            is_lower = rank < lowest
            lowest = rank if is_lower else lowest
            place = i if is_lower else place
        if lowest >= limit:
            break

        # Its two tokens become one, and everything behind moves down.
        symbols[place] = np.int32(table.base_size) + lowest
        size -= 1
        for i in range(place + 1, size):
            symbols[i] = symbols[i + 1]
        for i in range(place + 1, size - 1):
            rank_at[i] = rank_at[i + 1]

        # Its windows on both sides are new ones.
        if place + 1 < size:
            rank_at[place] = rank_of(ranks, symbols[place], symbols[place + 1], limit)
        if place > 0:
            rank_at[place - 1] = rank_of(ranks, symbols[place - 1], symbols[place], limit)
    return size


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
