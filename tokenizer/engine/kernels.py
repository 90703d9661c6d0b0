"""Numba kernels that training and encoding share: two maps from a pair of ids to a small number.

Both are hash maps with open addressing: a search begins at the home slot of its key and goes on slot by slot until it
meets the key or a free slot. They are never more than half full, so that every search ends, and soon.

- The map that grows (`find`, `rehash`): training numbers its pairs as they come into being.
- The map that is made once (`build_ranks`, `rank_of`): encoding asks for the rank of a pair. Key and rank stand side
  by side, so that a look-up costs one access to memory.
"""

import numpy as np

from tokenizer.base import Int32Array, Int64Array, UInt64Array
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


_TAKEN = np.uint64(1) << np.uint64(63)  # set in every key, so that no key is 0, which marks a free slot
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@kernel
def build_ranks(pairs: Int32Array) -> UInt64Array:
    """The map (left, right) -> rank of the merges `pairs` (R, 2): slot s holds a key at 2 s and its rank at 2 s + 1."""
    slots = 16
    while slots < 3 * len(pairs):
        slots *= 2
    ranks = np.zeros(2 * slots, dtype=np.uint64)
    last = np.uint64(2 * slots - 2)
    for rank in range(len(pairs)):
        key = _rank_key(pairs[rank, 0], pairs[rank, 1])
        slot = _rank_home(key, last)
        while ranks[slot] != 0:
            slot = (slot + np.uint64(2)) & last
        ranks[slot], ranks[slot + np.uint64(1)] = key, rank
    return ranks


@inlined
def _rank_key(left: int, right: int) -> np.uint64:
    """Both ids in one number that is not 0."""
    return (np.uint64(left) << np.uint64(32)) | np.uint64(right) | _TAKEN


@inlined
def _rank_home(key: np.uint64, last: np.uint64) -> np.uint64:
    """Where the search for `key` begins, an even place; `last` is the last of these."""
    return ((key * _MULTIPLIER) >> np.uint64(32)) & last


@inlined
def rank_of(ranks: UInt64Array, left: int, right: int, limit: int) -> np.int32:
    """The rank of a pair, or `limit` if it has none below that."""
    # Places are unsigned: for signed ones numba asks each time whether they are negative.
    last = np.uint64(len(ranks) - 2)
    key = _rank_key(left, right)
    slot = _rank_home(key, last)
    rank = np.int32(limit)
    while True:
        stored = ranks[slot]
        if stored == key:
            rank = min(np.int32(ranks[slot + np.uint64(1)]), rank)
            break
        if stored == 0:
            break
        slot = (slot + np.uint64(2)) & last
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
