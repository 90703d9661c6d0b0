"""The same answers as `reference.py`, from numba kernels over flat arrays.

All pretokens lie one behind the other in one array of symbols. `next`/`previous` link the symbols that are still
alive inside their pretoken, so a replacement costs the same wherever it happens. A *window* is named by the
position of its left symbol.

Why no round looks at the whole text: a pair can only come into being in the round that makes its younger half.
After that round its windows only disappear. So every pair's windows are known, in text order, from its birth,
counts only fall, first windows only move right, and a heap whose keys may be too good (never too bad) is enough.
"""

from typing import Any

import numba
import numpy as np

from tokenizer.kernels import NONE, Int32Array, Int64Array, link
from tokenizer.pairs import (
    GREATEST_BYTES,
    Heap,
    Pairs,
    TokenBytes,
    UInt8Array,
    Windows,
    add_token_bytes,
    add_window,
    best_pair,
    new_pairs,
    number_of,
    push,
    remove_window,
)
from tokenizer.reference import TIE_BREAKS, Merge, StopReason, TieBreak, Training

_STOP_REASONS: tuple[StopReason, ...] = (
    "target reached",
    "no pair left",
    "best pair below the minimum frequency",
)


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
def _replace_all(windows: Windows, pairs: Pairs, number: int, new_id: int, at: Int32Array) -> Any:
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
        remove_window(windows, pairs, i)
        remove_window(windows, pairs, j)
        if h != NONE:
            remove_window(windows, pairs, h)
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
def _lay_out(symbols: Int32Array, offsets: Int64Array, weights: Int64Array) -> Windows:
    size = len(symbols)
    following, preceding = link(offsets, size)
    piece = np.empty(size, dtype=np.int32)
    for p in range(len(offsets) - 1):
        piece[offsets[p] : offsets[p + 1]] = p
    return Windows(
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
    pairs, used = new_pairs(1024), 0
    for i in range(len(symbols)):
        j = windows.following[i]
        if j != NONE:
            pairs, used, number = number_of(pairs, used, symbols[i], symbols[j])
            add_window(windows, pairs, number, i)

    base_size = len(base_lengths)
    starts = np.zeros(base_size + most_rounds, dtype=np.int64)
    lengths = np.zeros(base_size + most_rounds, dtype=np.int64)
    lengths[:base_size] = base_lengths
    starts[1:base_size] = np.cumsum(base_lengths)[: base_size - 1]
    token_bytes = TokenBytes(starts, lengths, base_pool.copy())

    heap, size = Heap(np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024, np.int32)), 0
    for number in range(used):
        heap, size = push(heap, size, pairs, number, rule, token_bytes)

    learned = np.empty((most_rounds, 2), dtype=np.int32)
    counts = np.empty(most_rounds, dtype=np.int64)
    replacements = np.empty(most_rounds, dtype=np.int64)
    at = np.empty(len(symbols), dtype=np.int32)
    rank = 0
    while rank < num_merges:
        size, number = best_pair(heap, size, pairs, rule, token_bytes)
        if number == NONE:
            return learned[:rank].copy(), counts[:rank].copy(), replacements[:rank].copy(), 1
        if pairs.windows[number] < min_pair_frequency:
            return learned[:rank].copy(), counts[:rank].copy(), replacements[:rank].copy(), 2
        left, right, new_id = pairs.halves[number, 0], pairs.halves[number, 1], base_size + rank
        learned[rank, 0], learned[rank, 1] = left, right
        counts[rank] = pairs.windows[number]
        if rule == GREATEST_BYTES:
            token_bytes = add_token_bytes(token_bytes, new_id, left, right)
        made, replacements[rank] = _replace_all(windows, pairs, number, new_id, at)
        first_new = used
        for index in range(made):
            i = at[index]
            h, k = windows.preceding[i], windows.following[i]
            if h != NONE and windows.symbol[h] != new_id:  # else it is the right side of the place before
                pairs, used, number = number_of(pairs, used, windows.symbol[h], new_id)
                add_window(windows, pairs, number, h)
            if k != NONE:
                pairs, used, number = number_of(pairs, used, new_id, windows.symbol[k])
                add_window(windows, pairs, number, i)
        for number in range(first_new, used):
            heap, size = push(heap, size, pairs, number, rule, token_bytes)
        rank += 1
    return learned[:rank].copy(), counts[:rank].copy(), replacements[:rank].copy(), 0
