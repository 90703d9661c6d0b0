"""Numba kernels that training and encoding share: a map from pairs to numbers; and the replay of long pieces."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenizer.jit import inlined, kernel

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


# ---------------------------------------------------------------------------------------------------------------
# Encoding one long piece.


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
