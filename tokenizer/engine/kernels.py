"""Numba kernels that training and encoding share: two maps from a pair of ids to a small number.

Both are hash maps with open addressing: a search begins at the home slot of its key and goes on slot by slot until it
meets the key or a free slot. They are never more than half full, so that every search ends, and soon.

- The map that grows (`find`, `rehash`): training numbers its pairs as they come into being.
- The map that is made once (`build_ranks`, `rank_of`): encoding asks for the rank of a pair. Key and rank stand side
  by side in one row, so that a look-up costs one access to memory.
"""

import numpy as np

from tokenizer.base import Int32Array, Int64Array
from tokenizer.engine.jit import inlined, kernel

NONE = -1  # no position, no pair, no rank

_LOWEST_IDS = 256


@inlined
def pair_key(left: int, right: int) -> np.int64:
    """Both ids in one number, the left one in its upper half: keys sort as pairs do."""
    return (np.int64(left) << 32) | np.int64(right)


@inlined
def _home(key: int, mask: int) -> np.int64:
    """Where the search for `key` begins: Fibonacci hashing (Knuth, TAOCP vol. 3, 6.4)."""
    return np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask


# ---------------------------------------------------------------------------------------------------------------
# The map that grows.


@inlined
def find(keys: Int64Array, key: int) -> np.int64:
    """The slot that holds `key`, or the free slot (holding NONE) where it belongs."""
    mask = len(keys) - 1
    slot = _home(key, mask)
    while keys[slot] != key and keys[slot] != NONE:
        slot = (slot + 1) & mask
    return slot


@kernel
def rehash(keys: Int64Array, values: Int32Array) -> tuple[Int64Array, Int32Array]:
    """The same map with twice the slots."""
    new_keys = np.full(2 * len(keys), NONE, dtype=np.int64)
    new_values = np.empty(2 * len(keys), dtype=np.int32)
    for slot in range(len(keys)):
        if keys[slot] != NONE:
            target = find(new_keys, keys[slot])
            new_keys[target] = keys[slot]
            new_values[target] = values[slot]
    return new_keys, new_values


# ---------------------------------------------------------------------------------------------------------------
# The map that is made once.


@kernel
def build_ranks(pairs: Int32Array) -> Int64Array:
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
def rank_of(ranks: Int64Array, left: int, right: int, limit: int) -> np.int64:
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


@kernel
def build_low_ranks(pairs: Int32Array, base_size: int) -> Int32Array:
    """Ranks of the pairs of the lowest ids, (B, B) with B at most 256: the first look-up of most windows.

    A pair without a rank has `len(pairs)`.
    """
    size = min(base_size, _LOWEST_IDS)
    low_ranks = np.full((size, size), len(pairs), dtype=np.int32)
    for rank in range(len(pairs)):
        if pairs[rank, 0] < size and pairs[rank, 1] < size:
            low_ranks[pairs[rank, 0], pairs[rank, 1]] = rank
    return low_ranks
