"""The same merges as `reference.py`, from numba kernels over flat arrays.

All pretokens lie one behind the other in one array of *cells*, with a border cell between them. A token of n base
symbols covers n cells: its id stands in the first and in the last of them, NONE in between. So both neighbours of a
token are found by reading the cell before it and the cell after it; nothing is ever moved. A *window* is named by
the first cell of its left token.

Why no round looks at the whole text: a pair can only come into being in the round that makes its younger half. After
that round its windows only disappear. So the list of a pair's windows is complete, in text order, from its birth;
windows that have gone are recognised by their cells, which never get an older id back. Counts only fall and first
windows only move right, so a heap whose keys may be too good, never too bad, is enough.
"""

from typing import Any

import numpy as np

from data.errors import TokenizerError
from tokenizer.cells import first_pairs, first_window, grown, grown_2d, has_window, lay_out
from tokenizer.heap import (
    FIRST_SEEN,
    GREATEST_BYTES,
    LOWEST_IDS,
    UInt8Array,
    add_token_bytes,
    base_token_bytes,
    pop,
    push,
    resift,
)
from tokenizer.jit import kernel
from tokenizer.kernels import NONE, Int32Array, Int64Array, pair_key, rehash
from tokenizer.reference import TIE_BREAKS, Merge, StopReason, TieBreak, Training
from tokenizer.rounds import list_windows, replace_all, settle

_STOP_REASONS: tuple[StopReason, ...] = (
    "target reached",
    "no pair left",
    "best pair below the minimum frequency",
)
_MOST_CELLS = 2**31  # positions are 32-bit


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
    `first_seen` the pretokens must stand in the order in which the text first shows them. Raises TokenizerError when
    the positions would not fit into 32 bits.
    """
    if len(symbols) + len(offsets) >= _MOST_CELLS:
        raise TokenizerError(
            f"{len(symbols):,} symbols are too many to learn merges from (at most {_MOST_CELLS:,}); "
            "lower training_characters, or choose a split pattern, so that repeated pretokens count once"
        )
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
    ranks = range(len(pairs))
    new_ids = range(len(base_bytes), len(base_bytes) + len(pairs))
    halves = zip(pairs[:, 0].tolist(), pairs[:, 1].tolist(), strict=True)
    columns = zip(ranks, halves, new_ids, counts.tolist(), replacements.tolist(), strict=True)
    merges = [Merge._make(column) for column in columns]
    return Training(merges, _STOP_REASONS[stop])


@kernel
def _enter_pairs(
    heap: Int64Array,
    size: int,
    first: int,
    used: int,
    counts: Int64Array,
    halves: Int32Array,
    begins: Int64Array,
    pool: Int32Array,
    least: int,
    below: int,
    rule: int,
    starts: Int64Array,
    lengths: Int64Array,
    token_pool: UInt8Array,
) -> Any:
    """Enter the pairs from number `first` on with `least` <= count < `below`: (heap, size)."""
    for number in range(first, used):
        if least <= counts[number] < below:
            if size == len(heap):
                heap = grown_2d(heap, 2 * len(heap))
            tie = np.int64(0)
            if rule == FIRST_SEEN:
                tie = np.int64(pool[begins[number]])
            elif rule == LOWEST_IDS:
                tie = np.int64(pair_key(halves[number, 0], halves[number, 1]))
            size = push(heap, size, counts[number], tie, number, rule, halves, starts, lengths, token_pool)
    return heap, size


@kernel
def _best_pair(
    heap: Int64Array,
    size: int,
    counts: Int64Array,
    halves: Int32Array,
    begins: Int64Array,
    pool: Int32Array,
    cells: Int32Array,
    spans: Int32Array,
    least: int,
    rule: int,
    starts: Int64Array,
    lengths: Int64Array,
    token_pool: UInt8Array,
) -> Any:
    """The heap's new size and the best pair, or NONE when none is seen `least` times.

    Invariant: every pair that is has an entry that is at least as good as the pair is now. So a top entry that is up
    to date is the best; one that is not sinks to where it belongs.
    """
    while size > 0:
        number = heap[0, 2]
        if counts[number] < least:
            size = pop(heap, size, rule, halves, starts, lengths, token_pool)
            continue
        tie = heap[0, 1]
        if rule == FIRST_SEEN:
            begins[number] = first_window(cells, spans, pool, begins[number], halves[number, 0], halves[number, 1])
            tie = np.int64(pool[begins[number]])
        if heap[0, 0] == counts[number] and heap[0, 1] == tie:
            return size, number
        heap[0, 0], heap[0, 1] = counts[number], tie
        resift(heap, size, rule, halves, starts, lengths, token_pool)
    return size, np.int64(NONE)


@kernel
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
    cells, piece_of, is_weighted = lay_out(symbols, offsets, weights)
    keys, numbers, halves, counts, begins, ends, pool, used = first_pairs(cells, piece_of, weights, is_weighted)
    pool_used = ends[used - 1] if used else 0
    base_size = len(base_lengths)
    most_tokens = base_size + most_rounds
    spans = np.ones(most_tokens, dtype=np.int32)
    starts, lengths = base_token_bytes(base_lengths, most_tokens)
    token_pool = base_pool.copy()
    heap, size = np.empty((1 << 12, 3), dtype=np.int64), 0
    before, after = np.full((most_tokens, 4), NONE, dtype=np.int64), np.full((most_tokens, 4), NONE, dtype=np.int64)
    touched = np.empty(2 * most_tokens, dtype=np.int32)
    places = np.empty((ends - begins).max(), dtype=np.int32)  # no later pair has more windows than the first ones
    learned = np.empty((most_rounds, 2), dtype=np.int32)
    won, made_in = np.empty(most_rounds, dtype=np.int64), np.empty(most_rounds, dtype=np.int64)
    entered, rank, stop = 0, 0, 0
    # The heap holds the pairs that are seen `least` times or more. Most pairs are rare and wait outside until `least`
    # comes down to them; so the heap stays small.
    least = max(min_pair_frequency, counts[:used].max() // 4) if used else min_pair_frequency
    most = np.iinfo(np.int64).max
    while True:
        heap, size = _enter_pairs(
            heap, size, entered, used, counts, halves, begins, pool, least, most, rule, starts, lengths, token_pool
        )
        entered = used
        if rank == num_merges:
            break
        size, best = _best_pair(
            heap, size, counts, halves, begins, pool, cells, spans, least, rule, starts, lengths, token_pool
        )
        if best == NONE and least > min_pair_frequency:
            below, least = least, max(min_pair_frequency, least * 3 // 4)
            heap, size = _enter_pairs(
                heap, size, 0, used, counts, halves, begins, pool, least, below, rule, starts, lengths, token_pool
            )
            continue
        if best == NONE:
            stop = 2 if has_window(cells, spans) else 1
            break
        left, right, new_id = halves[best, 0], halves[best, 1], base_size + rank
        learned[rank, 0], learned[rank, 1], won[rank] = left, right, counts[best]
        spans[new_id] = spans[left] + spans[right]
        if rule == GREATEST_BYTES:
            token_pool = add_token_bytes(starts, lengths, token_pool, new_id, left, right)
        windows = pool[begins[best] : ends[best]]
        made, made_in[rank], num_left, num_right = replace_all(
            *(cells, spans, piece_of, weights, is_weighted, windows, left, right, new_id),
            *(places, before, after, touched),
        )
        counts[best] = 0
        # Room for what comes into being.
        while pool_used + 2 * made > len(pool):
            pool = grown(pool, 2 * len(pool))
        while used + num_left + num_right > len(counts):
            keys, numbers = rehash(keys, numbers)
            halves, counts = grown_2d(halves, 2 * len(halves)), grown(counts, 2 * len(counts))
            begins, ends = grown(begins, 2 * len(begins)), grown(ends, 2 * len(ends))
        used, pool_used = settle(
            *(keys, numbers, halves, counts, begins, ends, used, pool_used, left, right, new_id),
            *(before, after, touched, num_left, num_right, min_pair_frequency),
        )
        list_windows(cells, spans, new_id, places[:made], before, after, pool, ends)
        rank += 1
    return learned[:rank].copy(), won[:rank].copy(), made_in[:rank].copy(), stop
