"""Numba kernels over the cells of training: laying the text out, and its first pairs with their windows.

A cell holds the id of the token that begins or ends there, or NONE: between pretokens, and inside a token.
docs/engine.md has a drawing of the cells, and one of the pairs and their lists of windows.
"""

from typing import Any, NamedTuple

import numpy as np

from tokenizer.base import Int32Array, Int64Array
from tokenizer.engine.jit import kernel
from tokenizer.engine.kernels import NONE, find, pair_key, rehash

_PAIRS_AT_FIRST = 1 << 11


class Text(NamedTuple):
    """The pretokens as tokens of their own length, which merging changes in place."""

    cells: Int32Array
    """Shape (M,): see above; the first and the last one are NONE."""
    spans: Int32Array
    """Shape (T,): how many cells each token covers; filled up to the newest token."""
    piece_of: Int32Array
    """Shape (M,): the pretoken to which each cell belongs; of no meaning unless `is_weighted`."""
    weights: Int64Array
    """Shape (P,): how often each pretoken counts."""
    is_weighted: bool
    """Whether any weight is other than 1."""


class Pairs(NamedTuple):
    """The pairs, numbered in the order in which they came into being. There is room for more than there are."""

    keys: Int64Array
    """Shape (S,): with `numbers` the map from a pair to its number (kernels.find); S = 2 * room."""
    numbers: Int32Array
    """Shape (S,)."""
    halves: Int32Array
    """Shape (room, 2): the two ids."""
    counts: Int64Array
    """Shape (room,): the windows that hold the pair now, weighted."""
    begins: Int64Array
    """Shape (room,): pair n has its list in windows[begins[n]:ends[n]]."""
    ends: Int64Array
    """Shape (room,)."""
    windows: Int32Array
    """Shape (W,): lists of windows one behind the other. A window is named by the first cell of its left token."""


@kernel
def lay_out(symbols: Int32Array, offsets: Int64Array, weights: Int64Array, most_tokens: int) -> Text:
    """The pretokens symbols[offsets[p]:offsets[p+1]] in cells, a border cell before, between and behind them."""
    num_pieces = len(offsets) - 1
    size = len(symbols) + num_pieces + 1
    cells = np.full(size, NONE, dtype=np.int32)
    is_weighted = False
    for piece in range(num_pieces):
        start = offsets[piece] + piece + 1
        cells[start : start + offsets[piece + 1] - offsets[piece]] = symbols[offsets[piece] : offsets[piece + 1]]
        is_weighted |= weights[piece] != 1
    # Where all weights are 1 nobody asks whose cell it is: that saves memory as large as the cells.
    piece_of = np.zeros(size if is_weighted else 1, dtype=np.int32)
    if is_weighted:
        for piece in range(num_pieces):
            piece_of[offsets[piece] + piece + 1 : offsets[piece + 1] + piece + 1] = piece
    return Text(cells, np.ones(most_tokens, dtype=np.int32), piece_of, weights, is_weighted)


@kernel
def first_pairs(text: Text) -> tuple[Pairs, int]:
    """The pairs of the untouched text with their lists of windows, in text order; and how many there are."""
    pairs = Pairs(
        np.full(2 * _PAIRS_AT_FIRST, NONE, dtype=np.int64),
        np.empty(2 * _PAIRS_AT_FIRST, dtype=np.int32),
        np.empty((_PAIRS_AT_FIRST, 2), dtype=np.int32),
        np.empty(_PAIRS_AT_FIRST, dtype=np.int64),
        np.empty(_PAIRS_AT_FIRST, dtype=np.int64),
        np.empty(_PAIRS_AT_FIRST, dtype=np.int64),
        np.empty(0, dtype=np.int32),
    )
    # First time over the text: which pairs there are, and how many windows each has. `ends` holds that number.
    i, used = 0, 0
    while True:
        i, used = _count_windows(text, pairs, i, used)
        if i >= len(text.cells) - 1:
            break
        pairs = _with_more_pairs(pairs)

    # Each list begins where the one before ends; it is still empty.
    total = 0
    for number in range(used):
        num_windows = pairs.ends[number]
        pairs.begins[number], pairs.ends[number] = total, total
        total += num_windows

    # Second time: fill the lists. There is room for the windows of later pairs as well: memory that nothing has
    # touched costs nothing, a larger copy later would.
    pairs = _with_windows(pairs, np.empty(max(3 * total, 1), dtype=np.int32))
    _list_first_windows(text.cells, pairs.keys, pairs.numbers, pairs.windows, pairs.ends)
    return pairs, used


@kernel
def _count_windows(text: Text, pairs: Pairs, i: int, used: int) -> tuple[int, int]:
    """Count windows from `i` on until the end of the text, or until there is no room for another pair: (i, used).

    `pairs.counts` become the windows weighted, `pairs.ends` their plain number.
    """
    cells, piece_of, weights, is_weighted = text.cells, text.piece_of, text.weights, text.is_weighted
    keys, numbers, halves, counts, num_windows = pairs.keys, pairs.numbers, pairs.halves, pairs.counts, pairs.ends
    while i < len(cells) - 1:
        left, right = cells[i], cells[i + 1]
        if left != NONE and right != NONE:
            key = pair_key(left, right)
            slot = find(keys, key)
            if keys[slot] == NONE:
                if used == len(counts):
                    break
                keys[slot], numbers[slot] = key, used
                halves[used, 0], halves[used, 1] = left, right
                counts[used], num_windows[used] = 0, 0
                used += 1
            number = numbers[slot]
            counts[number] += weights[piece_of[i]] if is_weighted else 1
            num_windows[number] += 1
        i += 1
    return i, used


@kernel
def _list_first_windows(
    cells: Int32Array, keys: Int64Array, numbers: Int32Array, windows: Int32Array, ends: Int64Array
) -> None:
    """Write every window of the text to the list of its pair, in text order."""
    for i in range(len(cells) - 1):
        if cells[i] != NONE and cells[i + 1] != NONE:
            number = numbers[find(keys, pair_key(cells[i], cells[i + 1]))]
            windows[ends[number]] = i
            ends[number] += 1


@kernel
def with_room(pairs: Pairs, num_pairs: int, num_windows: int) -> Pairs:
    """The same pairs with room for so many, and for so many windows."""
    size = len(pairs.windows)
    while size < num_windows:
        size *= 2
    larger = pairs if size == len(pairs.windows) else _with_windows(pairs, grown(pairs.windows, size))
    while num_pairs > len(larger.counts):
        larger = _with_more_pairs(larger)
    return larger


@kernel
def _with_more_pairs(pairs: Pairs) -> Pairs:
    """The same pairs with room for twice as many."""
    keys, numbers = rehash(pairs.keys, pairs.numbers)
    room = 2 * len(pairs.counts)
    return Pairs(
        keys,
        numbers,
        grown_2d(pairs.halves, room),
        grown(pairs.counts, room),
        grown(pairs.begins, room),
        grown(pairs.ends, room),
        pairs.windows,
    )


@kernel
def _with_windows(pairs: Pairs, windows: Int32Array) -> Pairs:
    return Pairs(pairs.keys, pairs.numbers, pairs.halves, pairs.counts, pairs.begins, pairs.ends, windows)


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
def most_windows(pairs: Pairs, used: int) -> int:
    """The length of the longest list."""
    most = 0
    for number in range(used):
        most = max(most, pairs.ends[number] - pairs.begins[number])
    return most


@kernel
def first_window(cells: Int32Array, span: int, windows: Int32Array, begin: int, left: int, right: int) -> int:
    """Where in `windows` the first living window of a pair stands, from `begin` on; the pair has one.

    `span` is that of the token `left`.
    """
    while cells[windows[begin]] != left or cells[windows[begin] + span] != right:
        begin += 1
    return begin


@kernel
def has_window(text: Text) -> bool:
    """Whether any two tokens still stand side by side."""
    cells, spans = text.cells, text.spans
    i = 1
    while i < len(cells):
        if cells[i] == NONE:
            i += 1
            continue
        i += spans[cells[i]]
        if cells[i] != NONE:
            return True
    return False
