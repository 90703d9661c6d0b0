"""Numba kernels that training and encoding share: a map from pairs to numbers, linked pretokens, the replay."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]

NONE = -1  # no position, no pair, no rank

# ---------------------------------------------------------------------------------------------------------------
# A hash map from a pair of ids to a small number: open addressing, linear probing, never more than half full.


@numba.njit(cache=True, nogil=True, inline="always")
def pair_key(left: int, right: int) -> Any:
    return (np.int64(left) << 32) | np.int64(right)


@numba.njit(cache=True, nogil=True, inline="always")
def _home(key: int, mask: int) -> Any:
    """Where the search for `key` begins: Fibonacci hashing (Knuth, TAOCP vol. 3, 6.4)."""
    return np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask


@numba.njit(cache=True, nogil=True)
def find(keys: Int64Array, key: int) -> Any:
    """The cell that holds `key`, or the free cell (holding NONE) where it belongs."""
    mask = len(keys) - 1
    cell = _home(key, mask)
    while keys[cell] != key and keys[cell] != NONE:
        cell = (cell + 1) & mask
    return cell


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
def build_ranks(pairs: Int32Array) -> Any:
    """Keys and values of the map (left, right) -> rank for merges `pairs` (R, 2)."""
    capacity = 16
    while capacity < 2 * len(pairs) + 2:
        capacity *= 2
    keys = np.full(capacity, NONE, dtype=np.int64)
    values = np.empty(capacity, dtype=np.int32)
    for rank in range(len(pairs)):
        key = pair_key(pairs[rank, 0], pairs[rank, 1])
        cell = find(keys, key)
        keys[cell] = key
        values[cell] = rank
    return keys, values


# ---------------------------------------------------------------------------------------------------------------
# Encoding.


@numba.njit(cache=True, nogil=True)
def link(offsets: Int64Array, size: int) -> Any:
    """Neighbours of every symbol inside its pretoken; NONE at the borders."""
    following = np.empty(size, dtype=np.int32)
    preceding = np.empty(size, dtype=np.int32)
    for piece in range(len(offsets) - 1):
        start, end = offsets[piece], offsets[piece + 1]
        for i in range(start, end):
            following[i] = i + 1
            preceding[i] = i - 1
        if end > start:
            preceding[start] = NONE
            following[end - 1] = NONE
    return following, preceding


@numba.njit(cache=True, nogil=True)
def encode(
    symbols: Int32Array,
    offsets: Int64Array,
    pairs: Int32Array,
    keys: Int64Array,
    values: Int32Array,
    limit: int,
    base_size: int,
) -> Any:
    """Ids of all pretokens and their new offsets: the replay of the first `limit` merges, in linear time.

    For every rank there is a list of the windows that held its pair when they came into being. Ranks are visited
    in learned order; a window that has changed since is recognised by its symbols (they never change back).

    Invariant: when rank r is visited, no live window holds a pair of lower rank, and the list of r holds every
    live window of its pair, those that overlap (both halves equal) in text order: they were all born in the same
    pass from the left, the one that made the half.
    """
    size = len(symbols)
    symbol = symbols.copy()
    following, preceding = link(offsets, size)
    first = np.full(limit, NONE, dtype=np.int32)
    last = np.empty(limit, dtype=np.int32)
    # Entries of the lists: at most one for each symbol, then two for each replacement.
    position = np.empty(3 * size + 1, dtype=np.int32)
    after = np.empty(3 * size + 1, dtype=np.int32)
    used = 0
    for i in range(size):
        j = following[i]
        if j != NONE:
            cell = find(keys, pair_key(symbol[i], symbol[j]))
            if keys[cell] != NONE and values[cell] < limit:
                used = _append(values[cell], i, first, last, position, after, used)
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
                cell = find(keys, pair_key(new_id, symbol[k]))
                if keys[cell] != NONE and values[cell] < limit:
                    used = _append(values[cell], i, first, last, position, after, used)
            if h != NONE:
                cell = find(keys, pair_key(symbol[h], new_id))
                if keys[cell] != NONE and values[cell] < limit:
                    used = _append(values[cell], h, first, last, position, after, used)
    return _compact(symbol, offsets)


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
def _compact(symbol: Int32Array, offsets: Int64Array) -> Any:
    """The symbols that are alive, and the offsets of the pretokens among them."""
    ids = np.empty(len(symbol), dtype=np.int32)
    id_offsets = np.zeros(len(offsets), dtype=np.int64)
    count = 0
    for piece in range(len(offsets) - 1):
        for i in range(offsets[piece], offsets[piece + 1]):
            if symbol[i] != NONE:
                ids[count] = symbol[i]
                count += 1
        id_offsets[piece + 1] = count
    return ids[:count].copy(), id_offsets
