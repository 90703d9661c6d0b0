"""Numba kernels that training and encoding share: a map from pairs to numbers; and the replay of long pieces."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenizer.jit import inlined, kernel

UInt8Array = NDArray[np.uint8]

Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]

NONE = -1  # no position, no pair, no rank

# ---------------------------------------------------------------------------------------------------------------
# A hash map from a pair of ids to a small number: open addressing, linear probing, never more than half full.


@inlined
def pair_key(left: int, right: int) -> Any:
    return (np.int64(left) << 32) | np.int64(right)


@inlined
def _home(key: int, mask: int) -> Any:
    """Where the search for `key` begins: Fibonacci hashing (Knuth, TAOCP vol. 3, 6.4)."""
    return np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask


@inlined
def find(keys: Int64Array, key: int) -> Any:
    """The cell that holds `key`, or the free cell (holding NONE) where it belongs."""
    mask = len(keys) - 1
    cell = _home(key, mask)
    while keys[cell] != key and keys[cell] != NONE:
        cell = (cell + 1) & mask
    return cell


@kernel
def rehash(keys: Int64Array, values: Int32Array) -> Any:
    """The same map with twice the cells."""
    new_keys = np.full(2 * len(keys), NONE, dtype=np.int64)
    new_values = np.empty(2 * len(keys), dtype=np.int32)
    for cell in range(len(keys)):
        if keys[cell] != NONE:
            target = find(new_keys, keys[cell])
            new_keys[target] = keys[cell]
            new_values[target] = values[cell]
    return new_keys, new_values


@kernel
def build_ranks(pairs: Int32Array) -> Any:
    """The map (left, right) -> rank of the merges `pairs` (R, 2), as rows of (key, rank): see `rank_of`."""
    slots = 16
    while slots < 3 * len(pairs):
        slots *= 2
    ranks = np.full((slots, 2), NONE, dtype=np.int64)
    for rank in range(len(pairs)):
        key = pair_key(pairs[rank, 0], pairs[rank, 1])
        slot = _home(key, slots - 1)
        while ranks[slot, 0] != NONE:
            slot = (slot + 1) & (slots - 1)
        ranks[slot, 0], ranks[slot, 1] = key, rank
    return ranks


@inlined
def rank_of(ranks: Int64Array, left: int, right: int, limit: int) -> Any:
    """The rank of a pair, or `limit` if it has none below that."""
    key = pair_key(left, right)
    mask = len(ranks) - 1
    slot = _home(key, mask)
    while ranks[slot, 0] != key and ranks[slot, 0] != NONE:
        slot = (slot + 1) & mask
    rank = np.int64(limit)
    if ranks[slot, 0] == key and ranks[slot, 1] < limit:
        rank = ranks[slot, 1]
    return rank


_LOWEST_IDS = 256


@kernel
def build_low_ranks(pairs: Int32Array, base_size: int) -> Any:
    """Ranks of the pairs of the lowest ids, (B, B) with B at most 256: the first look-up of most windows.

    A pair without a rank has `len(pairs)`.
    """
    size = min(base_size, _LOWEST_IDS)
    low_ranks = np.full((size, size), len(pairs), dtype=np.int32)
    for rank in range(len(pairs)):
        if pairs[rank, 0] < size and pairs[rank, 1] < size:
            low_ranks[pairs[rank, 0], pairs[rank, 1]] = rank
    return low_ranks


# ---------------------------------------------------------------------------------------------------------------
# Encoding one piece.

_PLACE_BITS = 7
_LONG_PIECE = 1 << _PLACE_BITS  # symbols; longer pieces are replayed in linear time, shorter ones merged by rank
_UNKNOWN = -1
_WINDOWS, _FOLLOWING, _PRECEDING = range(3)  # rows of the room for a piece


@kernel
def room_for_windows() -> Any:
    """Room that `encode_piece` works in: one for many pieces, because making it costs as much as a short piece."""
    return np.empty((3, _LONG_PIECE), dtype=np.int64)


@kernel
def encode_piece(
    text: UInt8Array,
    start: int,
    end: int,
    ids: Int32Array,
    first: int,
    base_ids: Int32Array,
    is_bytes: bool,
    pairs: Int32Array,
    ranks: Int64Array,
    low_ranks: Int32Array,
    limit: int,
    base_size: int,
    room: Int64Array,
) -> Any:
    """Write the ids of text[start:end], which is valid UTF-8, from ids[first] on; their number, or -1.

    -1 means a character that has no id. The result is the replay of the first `limit` merges. `room` is that of
    `room_for_windows`, of no meaning between two calls.
    """
    size = 0
    if is_bytes:
        for i in range(start, end):
            ids[first + size] = base_ids[text[i]]
            size += 1
    else:
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
                return _UNKNOWN
            ids[first + size] = found
            size += 1
            i += length
    if size > _LONG_PIECE:
        replayed = replay(ids[first : first + size], pairs, ranks, limit, base_size)
        ids[first : first + len(replayed)] = replayed
        return len(replayed)
    return _merge_by_rank(ids, first, size, ranks, low_ranks, limit, base_size, room)


@inlined
def _rank_between(left: int, right: int, ranks: Int64Array, low_ranks: Int32Array, limit: int) -> Any:
    """The rank of a pair, or `limit` if it has none below that."""
    if left < len(low_ranks) and right < len(low_ranks):
        rank = min(np.int64(low_ranks[left, right]), limit)
    else:
        rank = rank_of(ranks, left, right, limit)
    return rank


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
) -> Any:
    """Merge the piece ids[first : first + size] in place, always the leftmost window of lowest rank; its new size.

    That is the replay: a merge only makes windows of higher rank than its own, so no lower rank ever comes back, and
    windows of one rank are taken from the left. `limit` is no rank.

    A token stays where its first symbol stood. Its window to the right is one number, the rank above the place, so
    that the least of these numbers is the leftmost window of lowest rank, found without a branch.
    """
    if size < 2:
        return size
    last, no_window = size - 1, np.int64(limit) << _PLACE_BITS
    for i in range(size):
        room[_FOLLOWING, i], room[_PRECEDING, i] = i + 1, i - 1
    for i in range(last):
        rank = _rank_between(ids[first + i], ids[first + i + 1], ranks, low_ranks, limit)
        room[_WINDOWS, i] = (rank << _PLACE_BITS) | i
    while True:
        lowest = no_window
        for i in range(last):
            lowest = min(lowest, room[_WINDOWS, i])
        if lowest >= no_window:
            break
        place = lowest & (_LONG_PIECE - 1)
        new_id = base_size + (lowest >> _PLACE_BITS)
        j, h = room[_FOLLOWING, place], room[_PRECEDING, place]
        k = room[_FOLLOWING, j]
        ids[first + place] = new_id
        room[_FOLLOWING, place] = k
        room[_WINDOWS, place] = room[_WINDOWS, j] = no_window
        if k < size:
            room[_PRECEDING, k] = place
            room[_WINDOWS, place] = (
                _rank_between(new_id, ids[first + k], ranks, low_ranks, limit) << _PLACE_BITS
            ) | place
        if h >= 0:
            room[_WINDOWS, h] = (_rank_between(ids[first + h], new_id, ranks, low_ranks, limit) << _PLACE_BITS) | h
    count, place = 0, np.int64(0)
    while place < size:
        ids[first + count] = ids[first + place]
        count += 1
        place = room[_FOLLOWING, place]
    return count


@kernel
def replay(symbols: Int32Array, pairs: Int32Array, ranks: Int64Array, limit: int, base_size: int) -> Any:
    """Ids of one long piece: the replay of the first `limit` merges, in linear time.

    For every rank there is a list of the windows that held its pair when they came into being. Ranks are visited in
    learned order; a window that has changed since is recognised by its symbols (they never change back).

    Invariant: when rank r is visited, no live window holds a pair of lower rank, and the list of r holds every live
    window of its pair, those that overlap (both halves equal) in text order: they were all born in the same pass
    from the left, the one that made the half.
    """
    size = len(symbols)
    symbol = symbols.copy()
    following, preceding = np.arange(1, size + 1, dtype=np.int32), np.arange(-1, size - 1, dtype=np.int32)
    following[size - 1] = NONE
    first, last = np.full(limit, NONE, dtype=np.int32), np.empty(limit, dtype=np.int32)
    # Entries of the lists: at most one for each symbol, then two for each replacement.
    position, after = np.empty(3 * size, dtype=np.int32), np.empty(3 * size, dtype=np.int32)
    used = 0
    for i in range(size - 1):
        found = rank_of(ranks, symbol[i], symbol[i + 1], limit)
        if found < limit:
            used = _append(found, i, first, last, position, after, used)
    for rank in range(limit):
        left, right, new_id = pairs[rank, 0], pairs[rank, 1], base_size + rank
        entry = first[rank]
        while entry != NONE:
            i = position[entry]
            entry = after[entry]
            j = following[i]
            if symbol[i] != left or j == NONE or symbol[j] != right:
                continue
            h, k = preceding[i], following[j]
            symbol[i] = new_id
            symbol[j] = NONE
            following[i] = k
            if k != NONE:
                preceding[k] = i
                found = rank_of(ranks, new_id, symbol[k], limit)
                if found < limit:
                    used = _append(found, i, first, last, position, after, used)
            if h != NONE:
                found = rank_of(ranks, symbol[h], new_id, limit)
                if found < limit:
                    used = _append(found, h, first, last, position, after, used)
    return symbol[symbol != NONE]


@inlined
def _append(
    rank: int, i: int, first: Int32Array, last: Int32Array, position: Int32Array, after: Int32Array, used: int
) -> Any:
    """Put window `i` at the end of the list of `rank`; returns the number of entries in use."""
    position[used] = i
    after[used] = NONE
    if first[rank] == NONE:
        first[rank] = used
    else:
        after[last[rank]] = used
    last[rank] = used
    return used + 1
