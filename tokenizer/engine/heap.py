"""The queue of pairs in training: a binary heap over rows (count, tie, pair number), best on top.

`tie` is the pair's first window or its key, smallest first. Under `greatest_bytes` it is not used and the tokens'
bytes are compared instead. docs/engine.md says why a row may be out of date and what is done about it.
"""

from typing import NamedTuple

import numpy as np

from tokenizer.base import Int32Array, Int64Array, UInt8Array
from tokenizer.engine.jit import inlined, kernel

FIRST_SEEN, LOWEST_IDS, GREATEST_BYTES = range(3)  # in the order of reference.TIE_BREAKS
_COUNT, _TIE, _NUMBER = range(3)  # columns of a row


class TokenBytes(NamedTuple):
    """The bytes of the tokens one behind the other: token t is pool[starts[t] : starts[t] + lengths[t]]."""

    starts: Int64Array
    """Shape (T,)."""
    lengths: Int64Array
    """Shape (T,)."""
    pool: UInt8Array
    """May have room at its end."""


@kernel
def _bytes_order(one: int, other: int, tokens: TokenBytes) -> int:
    """-1, 0 or 1 as the bytes of token `one` stand before, equal or after those of token `other`."""
    starts, lengths, pool = tokens.starts, tokens.lengths, tokens.pool
    for i in range(min(lengths[one], lengths[other])):
        x, y = pool[starts[one] + i], pool[starts[other] + i]
        if x != y:
            return -1 if x < y else 1
    # One is the beginning of the other: the shorter one stands first.
    if lengths[one] == lengths[other]:
        return 0
    return -1 if lengths[one] < lengths[other] else 1


@inlined
def _beats(heap: Int64Array, a: int, b: int, rule: int, halves: Int32Array, tokens: TokenBytes) -> bool:
    """Whether row `a` stands before row `b`: first the count decides, then the tie rule."""
    if heap[a, _COUNT] != heap[b, _COUNT]:
        return heap[a, _COUNT] > heap[b, _COUNT]
    if rule != GREATEST_BYTES:
        return heap[a, _TIE] < heap[b, _TIE]
    one, other = heap[a, _NUMBER], heap[b, _NUMBER]
    order = _bytes_order(halves[one, 0], halves[other, 0], tokens)
    if order == 0:
        order = _bytes_order(halves[one, 1], halves[other, 1], tokens)
    return order > 0


@inlined
def _swap(heap: Int64Array, a: int, b: int) -> None:
    for column in range(3):
        heap[a, column], heap[b, column] = heap[b, column], heap[a, column]


@kernel
def resift(heap: Int64Array, size: int, rule: int, halves: Int32Array, tokens: TokenBytes) -> None:
    """Let the row on top sink to its place: row r has its children at 2 * r + 1 and 2 * r + 2, neither better."""
    parent = 0
    while True:
        best = parent
        for child in (2 * parent + 1, 2 * parent + 2):
            if child < size and _beats(heap, child, best, rule, halves, tokens):
                best = child
        if best == parent:
            return
        _swap(heap, parent, best)
        parent = best


@kernel
def pop(heap: Int64Array, size: int, rule: int, halves: Int32Array, tokens: TokenBytes) -> int:
    """Drop the row on top; returns the new size."""
    _swap(heap, 0, size - 1)
    resift(heap, size - 1, rule, halves, tokens)
    return size - 1


@kernel
def push(
    heap: Int64Array, size: int, count: int, tie: int, number: int, rule: int, halves: Int32Array, tokens: TokenBytes
) -> int:
    """Add a row, for which there is room; returns the new size."""
    heap[size, _COUNT], heap[size, _TIE], heap[size, _NUMBER] = count, tie, number
    child = size
    while child > 0:
        parent = (child - 1) // 2
        if not _beats(heap, child, parent, rule, halves, tokens):
            break
        _swap(heap, child, parent)
        child = parent
    return size + 1


@kernel
def base_token_bytes(base_lengths: Int64Array, base_pool: UInt8Array, most_tokens: int) -> TokenBytes:
    """The base tokens, with room for `most_tokens`; token t has base_lengths[t] bytes of `base_pool`."""
    starts, lengths = np.zeros(most_tokens, dtype=np.int64), np.zeros(most_tokens, dtype=np.int64)
    lengths[: len(base_lengths)] = base_lengths
    starts[1 : len(base_lengths)] = np.cumsum(base_lengths)[: len(base_lengths) - 1]
    return TokenBytes(starts, lengths, base_pool.copy())


@kernel
def add_token_bytes(tokens: TokenBytes, token: int, left: int, right: int) -> TokenBytes:
    """The tokens and `token` = `left` + `right`, whose bytes stand behind those of the token before it."""
    starts, lengths, pool = tokens.starts, tokens.lengths, tokens.pool
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
    return TokenBytes(starts, lengths, pool)
