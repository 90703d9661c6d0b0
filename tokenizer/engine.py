"""The same answers as `reference.py`, from numba kernels over flat arrays.

All pretokens lie one behind the other in one array of symbols. `next`/`previous` link the symbols that are still
alive inside their pretoken, so a replacement costs the same wherever it happens. A *window* is named by the
position of its left symbol.

Why no round looks at the whole text: a pair can only come into being in the round that makes its younger half.
After that round its windows only disappear. So every pair's windows are known, in text order, from its birth,
counts only fall, first windows only move right, and a heap whose keys may be too good (never too bad) is enough.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tokenizer.kernels import NONE, Int32Array, Int64Array, find, link, pair_key, rehash
from tokenizer.reference import TIE_BREAKS, Merge, StopReason, TieBreak, Training

UInt8Array = NDArray[np.uint8]

_STOP_REASONS: tuple[StopReason, ...] = (
    "target reached",
    "no pair left",
    "best pair below the minimum frequency",
)
_FIRST_SEEN, _LOWEST_IDS, _GREATEST_BYTES = range(3)


def train(
    symbols: Int32Array,
    offsets: Int64Array,
    weights: Int64Array,
    base_bytes: list[bytes],
    *,
    num_merges: int,
    min_pair_frequency: int,
    tie_break: TieBreak,
) -> Training:
    """Learn merges from pretokens; the result equals `reference.train` on the text they were counted in.

    `symbols` (N,) are base ids; pretoken p is symbols[offsets[p]:offsets[p+1]] and counts weights[p] times. For
    `first_seen` the pretokens must stand in the order in which the text first shows them.
    """
    lengths = np.array([len(token) for token in base_bytes], dtype=np.int64)
    pool = np.frombuffer(b"".join(base_bytes), dtype=np.uint8)
    pairs, counts, replacements, stop = _train(
        np.ascontiguousarray(symbols, dtype=np.int32),
        np.ascontiguousarray(offsets, dtype=np.int64),
        np.ascontiguousarray(weights, dtype=np.int64),
        lengths,
        pool,
        min(num_merges, len(symbols)),  # every round makes at least one replacement
        num_merges,
        min_pair_frequency,
        TIE_BREAKS.index(tie_break),
    )
    base_size = len(base_bytes)
    merges = [
        Merge(rank, (left, right), base_size + rank, count, made)
        for rank, ((left, right), count, made) in enumerate(
            zip(pairs.tolist(), counts.tolist(), replacements.tolist(), strict=True)
        )
    ]
    return Training(merges, _STOP_REASONS[stop])


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


class _Windows(NamedTuple):
    """Arrays over positions, all of shape (N,)."""

    symbol: Int32Array  # id, or NONE where a replacement swallowed the symbol
    following: Int32Array  # next living position of the same pretoken, or NONE
    preceding: Int32Array
    weight: Int64Array  # how often the pretoken occurs, shape (pretokens,)
    piece: Int32Array  # pretoken of each position
    pair: Int32Array  # the pair that the window here holds, or NONE
    later: Int32Array  # next window of the same pair, in text order, or NONE
    earlier: Int32Array


class _Pairs(NamedTuple):
    """All pairs ever seen. `keys`/`numbers` map a pair to its number; the rest are arrays over numbers."""

    keys: Int64Array
    numbers: Int32Array
    halves: Int32Array  # (P, 2)
    windows: Int64Array  # how many hold the pair now, times their weights
    first: Int32Array  # first such window in text order, or NONE
    last: Int32Array


class _Heap(NamedTuple):
    """Binary heap, best on top; `tie` is a position, a key or nothing, as the tie rule wants it."""

    windows: Int64Array
    tie: Int64Array
    pair: Int32Array


class _TokenBytes(NamedTuple):
    """Bytes of every token, kept only for `greatest_bytes`: token t is pool[start[t]:start[t]+length[t]]."""

    start: Int64Array
    length: Int64Array
    pool: UInt8Array


@numba.njit(cache=True, nogil=True)
def _number_of(pairs: _Pairs, used: int, left: int, right: int) -> Any:
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
def _new_pairs(capacity: int) -> _Pairs:
    """Room for `capacity` pairs in a map that is at most half full; `capacity` is a power of two."""
    return _Pairs(
        np.full(2 * capacity, NONE, dtype=np.int64),
        np.empty(2 * capacity, dtype=np.int32),
        np.empty((capacity, 2), dtype=np.int32),
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity, dtype=np.int32),
        np.empty(capacity, dtype=np.int32),
    )


@numba.njit(cache=True, nogil=True)
def _grow_pairs(pairs: _Pairs, used: int) -> _Pairs:
    keys, numbers = rehash(pairs.keys, pairs.numbers)
    halves = np.empty((2 * used, 2), dtype=np.int32)
    count = np.empty(2 * used, dtype=np.int64)
    first = np.empty(2 * used, dtype=np.int32)
    last = np.empty(2 * used, dtype=np.int32)
    halves[:used] = pairs.halves
    count[:used] = pairs.windows
    first[:used] = pairs.first
    last[:used] = pairs.last
    return _Pairs(keys, numbers, halves, count, first, last)


@numba.njit(cache=True, nogil=True)
def _add_window(windows: _Windows, pairs: _Pairs, number: int, i: int) -> None:
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
def _remove_window(windows: _Windows, pairs: _Pairs, i: int) -> None:
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
def _beats(heap: _Heap, a: int, b: int, rule: int, halves: Int32Array, token_bytes: _TokenBytes) -> Any:
    """Whether heap entry `a` stands before entry `b`."""
    if heap.windows[a] != heap.windows[b]:
        return heap.windows[a] > heap.windows[b]
    if rule != _GREATEST_BYTES:
        return heap.tie[a] < heap.tie[b]
    start, length, pool = token_bytes.start, token_bytes.length, token_bytes.pool
    left = _bytes_order(halves[heap.pair[a], 0], halves[heap.pair[b], 0], start, length, pool)
    if left != 0:
        return left > 0
    return _bytes_order(halves[heap.pair[a], 1], halves[heap.pair[b], 1], start, length, pool) > 0


@numba.njit(cache=True, nogil=True)
def _swap(heap: _Heap, a: int, b: int) -> None:
    heap.windows[a], heap.windows[b] = heap.windows[b], heap.windows[a]
    heap.tie[a], heap.tie[b] = heap.tie[b], heap.tie[a]
    heap.pair[a], heap.pair[b] = heap.pair[b], heap.pair[a]


@numba.njit(cache=True, nogil=True)
def _sift_down(heap: _Heap, size: int, rule: int, halves: Int32Array, token_bytes: _TokenBytes) -> None:
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
def _push(heap: _Heap, size: int, pairs: _Pairs, number: int, rule: int, token_bytes: _TokenBytes) -> Any:
    """Add a pair under its present count and tie value: (heap, size)."""
    if size == len(heap.windows):
        grown = _Heap(
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
def _tie_value(pairs: _Pairs, number: int, rule: int) -> Any:
    """What settles a tie, smallest first."""
    if rule == _FIRST_SEEN:
        return np.int64(pairs.first[number])
    if rule == _LOWEST_IDS:
        return pair_key(pairs.halves[number, 0], pairs.halves[number, 1])
    return np.int64(0)


@numba.njit(cache=True, nogil=True)
def _best(heap: _Heap, size: int, pairs: _Pairs, rule: int, token_bytes: _TokenBytes) -> Any:
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


@numba.njit(cache=True, nogil=True)
def _replace_all(windows: _Windows, pairs: _Pairs, number: int, new_id: int, at: Int32Array) -> Any:
    """Replace a pair everywhere in one pass from the left: (places, weighted replacements); places go into `at`.

    Windows that held other pairs are taken from them; the windows beside the new symbol get theirs afterwards,
    when the pass is over, so that a pair that only existed during the pass is never counted.
    """
    found = 0
    i = pairs.first[number]
    while i != NONE:
        at[found] = i
        found += 1
        i = windows.later[i]
    made, replacements = 0, 0
    for index in range(found):
        i = at[index]
        if windows.pair[i] != number:
            continue  # its left symbol went into the replacement just before: overlapping windows
        j = windows.following[i]
        h, k = windows.preceding[i], windows.following[j]
        _remove_window(windows, pairs, i)
        _remove_window(windows, pairs, j)
        if h != NONE:
            _remove_window(windows, pairs, h)
        windows.symbol[i] = new_id
        windows.symbol[j] = NONE
        windows.following[i] = k
        if k != NONE:
            windows.preceding[k] = i
        at[made] = i
        made += 1
        replacements += windows.weight[windows.piece[i]]
    return made, replacements


@numba.njit(cache=True, nogil=True)
def _lay_out(symbols: Int32Array, offsets: Int64Array, weights: Int64Array) -> _Windows:
    size = len(symbols)
    following, preceding = link(offsets, size)
    piece = np.empty(size, dtype=np.int32)
    for p in range(len(offsets) - 1):
        piece[offsets[p] : offsets[p + 1]] = p
    return _Windows(
        symbols.copy(),
        following,
        preceding,
        weights,
        piece,
        np.full(size, NONE, dtype=np.int32),
        np.empty(size, dtype=np.int32),
        np.empty(size, dtype=np.int32),
    )


@numba.njit(cache=True, nogil=True)
def _add_token_bytes(token_bytes: _TokenBytes, token: int, left: int, right: int) -> _TokenBytes:
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
    return _TokenBytes(start, length, pool)


@numba.njit(cache=True, nogil=True)
def _train(
    symbols: Int32Array,
    offsets: Int64Array,
    weights: Int64Array,
    base_lengths: Int64Array,
    base_pool: UInt8Array,
    most_rounds: int,
    num_merges: int,
    min_pair_frequency: int,
    rule: int,
) -> Any:
    """Merges (R, 2), their window counts and replacements (R,), and the index of the stop reason."""
    windows = _lay_out(symbols, offsets, weights)
    pairs, used = _new_pairs(1024), 0
    for i in range(len(symbols)):
        j = windows.following[i]
        if j != NONE:
            pairs, used, number = _number_of(pairs, used, symbols[i], symbols[j])
            _add_window(windows, pairs, number, i)

    base_size = len(base_lengths)
    starts = np.zeros(base_size + most_rounds, dtype=np.int64)
    lengths = np.zeros(base_size + most_rounds, dtype=np.int64)
    lengths[:base_size] = base_lengths
    starts[1:base_size] = np.cumsum(base_lengths)[: base_size - 1]
    token_bytes = _TokenBytes(starts, lengths, base_pool.copy())

    heap, size = _Heap(np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024, np.int32)), 0
    for number in range(used):
        heap, size = _push(heap, size, pairs, number, rule, token_bytes)

    learned = np.empty((most_rounds, 2), dtype=np.int32)
    counts = np.empty(most_rounds, dtype=np.int64)
    replacements = np.empty(most_rounds, dtype=np.int64)
    at = np.empty(len(symbols), dtype=np.int32)
    rank = 0
    while rank < num_merges:
        size, number = _best(heap, size, pairs, rule, token_bytes)
        if number == NONE:
            return learned[:rank].copy(), counts[:rank].copy(), replacements[:rank].copy(), 1
        if pairs.windows[number] < min_pair_frequency:
            return learned[:rank].copy(), counts[:rank].copy(), replacements[:rank].copy(), 2
        left, right, new_id = pairs.halves[number, 0], pairs.halves[number, 1], base_size + rank
        learned[rank, 0], learned[rank, 1] = left, right
        counts[rank] = pairs.windows[number]
        if rule == _GREATEST_BYTES:
            token_bytes = _add_token_bytes(token_bytes, new_id, left, right)
        made, replacements[rank] = _replace_all(windows, pairs, number, new_id, at)
        first_new = used
        for index in range(made):
            i = at[index]
            h, k = windows.preceding[i], windows.following[i]
            if h != NONE and windows.symbol[h] != new_id:  # else it is the right side of the place before
                pairs, used, number = _number_of(pairs, used, windows.symbol[h], new_id)
                _add_window(windows, pairs, number, h)
            if k != NONE:
                pairs, used, number = _number_of(pairs, used, new_id, windows.symbol[k])
                _add_window(windows, pairs, number, i)
        for number in range(first_new, used):
            heap, size = _push(heap, size, pairs, number, rule, token_bytes)
        rank += 1
    return learned[:rank].copy(), counts[:rank].copy(), replacements[:rank].copy(), 0
