"""Numba kernels over the cells of training: laying the text out, and its first pairs with their windows.

A cell holds the id of the token that begins or ends there, or NONE: between pretokens, and inside a token.
"""

from typing import Any

import numpy as np

from tokenizer.jit import kernel
from tokenizer.kernels import NONE, Int32Array, Int64Array, find, pair_key, rehash


@kernel
def lay_out(symbols: Int32Array, offsets: Int64Array, weights: Int64Array) -> Any:
    """Cells, and the weight of each cell's pretoken; if all weights are 1, a single one stands for them all."""
    num_pieces = len(offsets) - 1
    size = len(symbols) + num_pieces + 1
    cells = np.full(size, NONE, dtype=np.int32)
    is_weighted = False
    for piece in range(num_pieces):
        start = offsets[piece] + piece + 1
        cells[start : start + offsets[piece + 1] - offsets[piece]] = symbols[offsets[piece] : offsets[piece + 1]]
        is_weighted |= weights[piece] != 1
    piece_of = np.zeros(size if is_weighted else 1, dtype=np.int32)
    if is_weighted:
        for piece in range(num_pieces):
            piece_of[offsets[piece] + piece + 1 : offsets[piece + 1] + piece + 1] = piece
    return cells, piece_of, is_weighted


@kernel
def _count_windows(
    cells: Int32Array,
    piece_of: Int32Array,
    weights: Int64Array,
    is_weighted: bool,
    i: int,
    keys: Int64Array,
    numbers: Int32Array,
    halves: Int32Array,
    counts: Int64Array,
    num_windows: Int64Array,
    used: int,
) -> Any:
    """Count windows from `i` on until the end of the text, or until there is no room for another pair: (i, used)."""
    while i < len(cells) - 1:
        left, right = cells[i], cells[i + 1]
        if left != NONE and right != NONE:
            key = pair_key(left, right)
            cell = find(keys, key)
            if keys[cell] == NONE:
                if used == len(counts):
                    break
                keys[cell], numbers[cell] = key, used
                halves[used, 0], halves[used, 1] = left, right
                counts[used], num_windows[used] = 0, 0
                used += 1
            number = numbers[cell]
            counts[number] += weights[piece_of[i]] if is_weighted else 1
            num_windows[number] += 1
        i += 1
    return i, used


@kernel
def _listfirst_windows(
    cells: Int32Array, keys: Int64Array, numbers: Int32Array, pool: Int32Array, ends: Int64Array
) -> None:
    """Write every window of the text to the list of its pair, in text order."""
    for i in range(len(cells) - 1):
        if cells[i] != NONE and cells[i + 1] != NONE:
            number = numbers[find(keys, pair_key(cells[i], cells[i + 1]))]
            pool[ends[number]] = i
            ends[number] += 1


@kernel
def first_pairs(cells: Int32Array, piece_of: Int32Array, weights: Int64Array, is_weighted: bool) -> Any:
    """The map of the text's first pairs, their halves, counts, and lists of windows in one pool."""
    keys, numbers = np.full(1 << 12, NONE, dtype=np.int64), np.empty(1 << 12, dtype=np.int32)
    halves = np.empty((1 << 11, 2), dtype=np.int32)
    counts, num_windows = np.zeros(1 << 11, dtype=np.int64), np.zeros(1 << 11, dtype=np.int64)
    i, used = 0, 0
    while True:
        i, used = _count_windows(
            cells, piece_of, weights, is_weighted, i, keys, numbers, halves, counts, num_windows, used
        )
        if i >= len(cells) - 1:
            break
        keys, numbers = rehash(keys, numbers)
        halves, counts = grown_2d(halves, 2 * used), grown(counts, 2 * used)
        num_windows = grown(num_windows, 2 * used)
    begins = np.zeros(len(counts), dtype=np.int64)
    begins[1:used] = np.cumsum(num_windows[: max(used - 1, 0)])
    ends = begins.copy()
    # Room for later pairs as well: memory that nothing has touched costs nothing, a larger copy of the pool would.
    pool = np.empty(max(3 * num_windows[:used].sum(), 1), dtype=np.int32)
    _listfirst_windows(cells, keys, numbers, pool, ends)
    return keys, numbers, halves, counts, begins, ends, pool, used


@kernel
def grown(array: Any, size: int) -> Any:
    """`array` in the front of a new one of `size`."""
    result = np.empty(size, dtype=array.dtype)
    result[: len(array)] = array
    return result


@kernel
def grown_2d(array: Any, size: int) -> Any:
    """`array` in the first rows of a new one of `size` rows."""
    result = np.empty((size, array.shape[1]), dtype=array.dtype)
    result[: len(array)] = array
    return result


@kernel
def first_window(cells: Int32Array, spans: Int32Array, pool: Int32Array, begin: int, left: int, right: int) -> Any:
    """Where in the pool the first living window of a pair stands, from `begin` on; the pair has one."""
    while cells[pool[begin]] != left or cells[pool[begin] + spans[left]] != right:
        begin += 1
    return begin


@kernel
def has_window(cells: Int32Array, spans: Int32Array) -> Any:
    """Whether any two tokens still stand side by side."""
    i = 1
    while i < len(cells):
        if cells[i] == NONE:
            i += 1
            continue
        i += spans[cells[i]]
        if cells[i] != NONE:
            return True
    return False
