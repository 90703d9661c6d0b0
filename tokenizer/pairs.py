"""Numba kernels of training: which windows hold which pair, how many they are, and which pair is best.

Every living pair has a list of its windows in text order, linked through arrays over positions, so that taking a
window away costs the same wherever it stands.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tokenizer.kernels import NONE, Int32Array, Int64Array, find, pair_key, rehash

UInt8Array = NDArray[np.uint8]

FIRST_SEEN, LOWEST_IDS, GREATEST_BYTES = range(3)  # in the order of reference.TIE_BREAKS


class Windows(NamedTuple):
    """Arrays over positions, all of shape (N,)."""

    symbol: Int32Array  # id, or NONE where a replacement swallowed the symbol
    following: Int32Array  # next living position of the same pretoken, or NONE
    preceding: Int32Array
    weight: Int64Array  # how often the pretoken occurs, shape (pretokens,)
    piece: Int32Array  # pretoken of each position
    pair: Int32Array  # the pair that the window here holds, or NONE
    later: Int32Array  # next window of the same pair, in text order, or NONE
    earlier: Int32Array


class Pairs(NamedTuple):
    """All pairs ever seen. `keys`/`numbers` map a pair to its number; the rest are arrays over numbers."""

    keys: Int64Array
    numbers: Int32Array
    halves: Int32Array  # (P, 2)
    windows: Int64Array  # how many hold the pair now, times their weights
    first: Int32Array  # first such window in text order, or NONE
    last: Int32Array


class Heap(NamedTuple):
    """Binary heap, best on top; `tie` is a position, a key or nothing, as the tie rule wants it."""

    windows: Int64Array
    tie: Int64Array
    pair: Int32Array


class TokenBytes(NamedTuple):
    """Bytes of every token, kept only for `greatest_bytes`: token t is pool[start[t]:start[t]+length[t]]."""

    start: Int64Array
    length: Int64Array
    pool: UInt8Array


@numba.njit(cache=True, nogil=True)
def number_of(pairs: Pairs, used: int, left: int, right: int) -> Any:
    """The number of a pair, which may be new: (pairs, used, number). Arrays grow by doubling."""
    key = pair_key(left, right)
    cell = find(pairs.keys, key)
    if pairs.keys[cell] != NONE:
        return pairs, used, pairs.numbers[cell]
    if used == len(pairs.windows):
        pairs = _grow_pairs(pairs, used)
        cell = find(pairs.keys, key)
    pairs.keys[cell] = key
    pairs.numbers[cell] = used
    pairs.halves[used, 0] = left
    pairs.halves[used, 1] = right
    pairs.windows[used] = 0
    pairs.first[used] = NONE
    pairs.last[used] = NONE
    return pairs, used + 1, np.int32(used)


@numba.njit(cache=True, nogil=True)
def new_pairs(capacity: int) -> Pairs:
    """Room for `capacity` pairs in a map that is at most half full; `capacity` is a power of two."""
    return Pairs(
        np.full(2 * capacity, NONE, dtype=np.int64),
        np.empty(2 * capacity, dtype=np.int32),
        np.empty((capacity, 2), dtype=np.int32),
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity, dtype=np.int32),
        np.empty(capacity, dtype=np.int32),
    )


@numba.njit(cache=True, nogil=True)
def _grow_pairs(pairs: Pairs, used: int) -> Pairs:
    keys, numbers = rehash(pairs.keys, pairs.numbers)
    halves = np.empty((2 * used, 2), dtype=np.int32)
    count = np.empty(2 * used, dtype=np.int64)
    first = np.empty(2 * used, dtype=np.int32)
    last = np.empty(2 * used, dtype=np.int32)
    halves[:used] = pairs.halves
    count[:used] = pairs.windows
    first[:used] = pairs.first
    last[:used] = pairs.last
    return Pairs(keys, numbers, halves, count, first, last)


@numba.njit(cache=True, nogil=True)
def add_window(windows: Windows, pairs: Pairs, number: int, i: int) -> None:
    """Window `i`, later in the text than all windows of this pair, now holds the pair."""
    windows.pair[i] = number
    windows.later[i] = NONE
    windows.earlier[i] = pairs.last[number]
    if pairs.last[number] == NONE:
        pairs.first[number] = i
    else:
        windows.later[pairs.last[number]] = i
    pairs.last[number] = i
    pairs.windows[number] += windows.weight[windows.piece[i]]


@numba.njit(cache=True, nogil=True)
def remove_window(windows: Windows, pairs: Pairs, i: int) -> None:
    """Window `i` no longer holds its pair, if it held one."""
    number = windows.pair[i]
    if number == NONE:
        return
    earlier, later = windows.earlier[i], windows.later[i]
    if earlier == NONE:
        pairs.first[number] = later
    else:
        windows.later[earlier] = later
    if later == NONE:
        pairs.last[number] = earlier
    else:
        windows.earlier[later] = earlier
    windows.pair[i] = NONE
    pairs.windows[number] -= windows.weight[windows.piece[i]]


@numba.njit(cache=True, nogil=True)
def _bytes_order(a: int, b: int, starts: Int64Array, lengths: Int64Array, pool: UInt8Array) -> Any:
    """-1, 0 or 1 as the bytes of token `a` stand before, equal or after those of token `b`."""
    for i in range(min(lengths[a], lengths[b])):
        x, y = pool[starts[a] + i], pool[starts[b] + i]
        if x != y:
            return -1 if x < y else 1
    if lengths[a] == lengths[b]:
        return 0
    return -1 if lengths[a] < lengths[b] else 1


@numba.njit(cache=True, nogil=True)
def add_token_bytes(token_bytes: TokenBytes, token: int, left: int, right: int) -> TokenBytes:
    """Append the bytes of `token` = `left` + `right`; arrays grow by doubling."""
    start, length, pool = token_bytes
    end = start[token - 1] + length[token - 1]
    total = length[left] + length[right]
    while end + total > len(pool):
        grown = np.empty(2 * len(pool), dtype=np.uint8)
        grown[: len(pool)] = pool
        pool = grown
    start[token] = end
    length[token] = total
    pool[end : end + length[left]] = pool[start[left] : start[left] + length[left]]
    pool[end + length[left] : end + total] = pool[start[right] : start[right] + length[right]]
    return TokenBytes(start, length, pool)


@numba.njit(cache=True, nogil=True)
def _beats(heap: Heap, a: int, b: int, rule: int, halves: Int32Array, token_bytes: TokenBytes) -> Any:
    """Whether heap entry `a` stands before entry `b`."""
    if heap.windows[a] != heap.windows[b]:
        return heap.windows[a] > heap.windows[b]
    if rule != GREATEST_BYTES:
        return heap.tie[a] < heap.tie[b]
    start, length, pool = token_bytes.start, token_bytes.length, token_bytes.pool
    left = _bytes_order(halves[heap.pair[a], 0], halves[heap.pair[b], 0], start, length, pool)
    if left != 0:
        return left > 0
    return _bytes_order(halves[heap.pair[a], 1], halves[heap.pair[b], 1], start, length, pool) > 0


@numba.njit(cache=True, nogil=True)
def _swap(heap: Heap, a: int, b: int) -> None:
    heap.windows[a], heap.windows[b] = heap.windows[b], heap.windows[a]
    heap.tie[a], heap.tie[b] = heap.tie[b], heap.tie[a]
    heap.pair[a], heap.pair[b] = heap.pair[b], heap.pair[a]


@numba.njit(cache=True, nogil=True)
def _sift_down(heap: Heap, size: int, rule: int, halves: Int32Array, token_bytes: TokenBytes) -> None:
    """Let the entry on top sink to its place."""
    parent = 0
    while True:
        best = parent
        for child in (2 * parent + 1, 2 * parent + 2):
            if child < size and _beats(heap, child, best, rule, halves, token_bytes):
                best = child
        if best == parent:
            return
        _swap(heap, parent, best)
        parent = best


@numba.njit(cache=True, nogil=True)
def push(heap: Heap, size: int, pairs: Pairs, number: int, rule: int, token_bytes: TokenBytes) -> Any:
    """Add a pair under its present count and tie value: (heap, size)."""
    if size == len(heap.windows):
        grown = Heap(
            np.empty(2 * size, dtype=np.int64), np.empty(2 * size, dtype=np.int64), np.empty(2 * size, dtype=np.int32)
        )
        grown.windows[:size] = heap.windows
        grown.tie[:size] = heap.tie
        grown.pair[:size] = heap.pair
        heap = grown
    heap.windows[size] = pairs.windows[number]
    heap.tie[size] = _tie_value(pairs, number, rule)
    heap.pair[size] = number
    child = size
    while child > 0:
        parent = (child - 1) // 2
        if not _beats(heap, child, parent, rule, pairs.halves, token_bytes):
            break
        _swap(heap, child, parent)
        child = parent
    return heap, size + 1


@numba.njit(cache=True, nogil=True)
def _tie_value(pairs: Pairs, number: int, rule: int) -> Any:
    """What settles a tie, smallest first."""
    if rule == FIRST_SEEN:
        return np.int64(pairs.first[number])
    if rule == LOWEST_IDS:
        return pair_key(pairs.halves[number, 0], pairs.halves[number, 1])
    return np.int64(0)


@numba.njit(cache=True, nogil=True)
def best_pair(heap: Heap, size: int, pairs: Pairs, rule: int, token_bytes: TokenBytes) -> Any:
    """The best living pair, left on top of the heap: (size, number), number NONE when no pair is left.

    Invariant: every living pair has an entry that is at least as good as the pair is now. So a top entry that is
    up to date is the best; one that is not sinks to where it belongs.
    """
    while size > 0:
        number = heap.pair[0]
        tie = _tie_value(pairs, number, rule)
        if pairs.windows[number] == 0:
            size -= 1
            _swap(heap, 0, size)
        elif heap.windows[0] == pairs.windows[number] and heap.tie[0] == tie:
            return size, number
        else:
            heap.windows[0] = pairs.windows[number]
            heap.tie[0] = tie
        _sift_down(heap, size, rule, pairs.halves, token_bytes)
    return size, np.int32(NONE)
