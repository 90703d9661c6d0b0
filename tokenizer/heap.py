"""The queue of pairs in training: a binary heap over rows (count, tie, pair number), best on top.

`tie` is the pair's first window or its key, smallest first. Under `greatest_bytes` it is not used and the tokens'
bytes are compared instead: token t is pool[starts[t] : starts[t] + lengths[t]].
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenizer.jit import inlined, kernel
from tokenizer.kernels import Int32Array, Int64Array

UInt8Array = NDArray[np.uint8]

FIRST_SEEN, LOWEST_IDS, GREATEST_BYTES = range(3)  # in the order of reference.TIE_BREAKS


@kernel
def _bytes_order(a: int, b: int, starts: Int64Array, lengths: Int64Array, pool: UInt8Array) -> Any:
    """-1, 0 or 1 as the bytes of token `a` stand before, equal or after those of token `b`."""
    for i in range(min(lengths[a], lengths[b])):
        x, y = pool[starts[a] + i], pool[starts[b] + i]
        if x != y:
            return -1 if x < y else 1
    if lengths[a] == lengths[b]:
        return 0
    return -1 if lengths[a] < lengths[b] else 1


@inlined
def _beats(
    heap: Int64Array,
    a: int,
    b: int,
    rule: int,
    halves: Int32Array,
    starts: Int64Array,
    lengths: Int64Array,
    pool: UInt8Array,
) -> Any:
    """Whether row `a` stands before row `b`."""
    if heap[a, 0] != heap[b, 0]:
        return heap[a, 0] > heap[b, 0]
    if rule != GREATEST_BYTES:
        return heap[a, 1] < heap[b, 1]
    one, other = heap[a, 2], heap[b, 2]
    order = _bytes_order(halves[one, 0], halves[other, 0], starts, lengths, pool)
    if order == 0:
        order = _bytes_order(halves[one, 1], halves[other, 1], starts, lengths, pool)
    return order > 0


@inlined
def _swap(heap: Int64Array, a: int, b: int) -> None:
    for column in range(3):
        heap[a, column], heap[b, column] = heap[b, column], heap[a, column]


@kernel
def resift(
    heap: Int64Array,
    size: int,
    rule: int,
    halves: Int32Array,
    starts: Int64Array,
    lengths: Int64Array,
    pool: UInt8Array,
) -> None:
    """Let the row on top sink to its place."""
    parent = 0
    while True:
        best = parent
        for child in (2 * parent + 1, 2 * parent + 2):
            if child < size and _beats(heap, child, best, rule, halves, starts, lengths, pool):
                best = child
        if best == parent:
            return
        _swap(heap, parent, best)
        parent = best


@kernel
def pop(
    heap: Int64Array,
    size: int,
    rule: int,
    halves: Int32Array,
    starts: Int64Array,
    lengths: Int64Array,
    pool: UInt8Array,
) -> Any:
    """Drop the row on top; returns the new size."""
    _swap(heap, 0, size - 1)
    resift(heap, size - 1, rule, halves, starts, lengths, pool)
    return size - 1


@kernel
def push(
    heap: Int64Array,
    size: int,
    count: Any,
    tie: Any,
    number: int,
    rule: int,
    halves: Int32Array,
    starts: Int64Array,
    lengths: Int64Array,
    pool: UInt8Array,
) -> Any:
    """Add a row, for which there is room; returns the new size."""
    heap[size, 0], heap[size, 1], heap[size, 2] = count, tie, number
    child = size
    while child > 0:
        parent = (child - 1) // 2
        if not _beats(heap, child, parent, rule, halves, starts, lengths, pool):
            break
        _swap(heap, child, parent)
        child = parent
    return size + 1


@kernel
def base_token_bytes(base_lengths: Int64Array, most_tokens: int) -> Any:
    """`starts` and `lengths` with room for `most_tokens`, the base tokens filled in."""
    starts, lengths = np.zeros(most_tokens, dtype=np.int64), np.zeros(most_tokens, dtype=np.int64)
    lengths[: len(base_lengths)] = base_lengths
    starts[1 : len(base_lengths)] = np.cumsum(base_lengths)[: len(base_lengths) - 1]
    return starts, lengths


@kernel
def add_token_bytes(
    starts: Int64Array, lengths: Int64Array, pool: UInt8Array, token: int, left: int, right: int
) -> Any:
    """Write the bytes of `token` = `left` + `right` behind those of the token before; returns the pool, maybe grown."""
    end = starts[token - 1] + lengths[token - 1]
    total = lengths[left] + lengths[right]
    while end + total > len(pool):
        larger = np.empty(2 * len(pool), dtype=np.uint8)
        larger[: len(pool)] = pool
        pool = larger
    starts[token] = end
    lengths[token] = total
    pool[end : end + lengths[left]] = pool[starts[left] : starts[left] + lengths[left]]
    pool[end + lengths[left] : end + total] = pool[starts[right] : starts[right] + lengths[right]]
    return pool
