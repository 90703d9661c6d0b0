"""The same merges as `reference.py`, from numba kernels over flat arrays.

All pretokens lie one behind the other in one array of *cells*, with a border cell between them. A token of n base
symbols covers n cells: its id stands in the first and in the last of them, NONE in between. So both neighbours of a
token are found by reading the cell before it and the cell after it; nothing is ever moved. A *window* is named by
the first cell of its left token.

Why no round looks at the whole text: a pair can only come into being in the round that makes its younger half. After
that round its windows only disappear. So the list of a pair's windows is complete, in text order, from its birth;
windows that have gone are recognised by their cells, which never get an older id back. Counts only fall and first
windows only move right, so a heap whose keys may be too good, never too bad, is enough.

docs/engine.md tells all this with drawings.
"""

from typing import NamedTuple

import numpy as np

from data.errors import TokenizerError
from tokenizer.base import Int32Array, Int64Array, UInt8Array
from tokenizer.engine.cells import (
    Pairs,
    Text,
    first_pairs,
    first_window,
    grown_2d,
    has_window,
    lay_out,
    most_windows,
    with_room,
)
from tokenizer.engine.heap import (
    FIRST_SEEN,
    GREATEST_BYTES,
    LOWEST_IDS,
    TokenBytes,
    add_token_bytes,
    base_token_bytes,
    pop,
    push,
    resift,
)
from tokenizer.engine.jit import kernel
from tokenizer.engine.kernels import NONE, pair_key
from tokenizer.engine.rounds import NewToken, list_windows, replace_all, room_for_notes, settle
from tokenizer.reference import TIE_BREAKS, Merge, StopReason, TieBreak, Training

_STOP_REASONS: tuple[StopReason, ...] = (
    "target reached",
    "no pair left",
    "best pair below the minimum frequency",
)
_TARGET_REACHED, _NO_PAIR_LEFT, _TOO_RARE = range(3)
_MOST_CELLS = 2**31  # positions are 32-bit
_NO_LIMIT = np.iinfo(np.int64).max


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
    learned, stop = _train(
        np.ascontiguousarray(symbols, dtype=np.int32),
        np.ascontiguousarray(offsets, dtype=np.int64),
        np.ascontiguousarray(weights, dtype=np.int64),
        lengths,
        pool,
        num_merges,
        min_pair_frequency,
        TIE_BREAKS.index(tie_break),
    )
    ranks = range(len(learned.pairs))
    new_ids = range(len(base_bytes), len(base_bytes) + len(ranks))
    pairs = zip(learned.pairs[:, 0].tolist(), learned.pairs[:, 1].tolist(), strict=True)
    columns = zip(ranks, pairs, new_ids, learned.counts.tolist(), learned.replacements.tolist(), strict=True)
    merges = [Merge._make(column) for column in columns]
    return Training(merges, _STOP_REASONS[stop])


class Learned(NamedTuple):
    """The merges in order, as arrays."""

    pairs: Int32Array
    """Shape (R, 2)."""
    counts: Int64Array
    """Shape (R,): windows that held the pair when it won."""
    replacements: Int64Array
    """Shape (R,): replacements made."""


@kernel
def _train(
    symbols: Int32Array,
    offsets: Int64Array,
    weights: Int64Array,
    base_lengths: Int64Array,
    base_pool: UInt8Array,
    num_merges: int,
    min_pair_frequency: int,
    rule: int,
) -> tuple[Learned, int]:
    """The merges, and the index of the stop reason; `rule` is the index of the tie rule."""
    most_rounds = min(num_merges, len(symbols))  # every round makes at least one replacement
    base_size, most_tokens = len(base_lengths), len(base_lengths) + most_rounds

    # The text, its pairs with their lists of windows, and room for what rounds note. No later pair has more windows
    # than the first ones.
    text = lay_out(symbols, offsets, weights, most_tokens)
    tokens = base_token_bytes(base_lengths, base_pool, most_tokens)
    pairs, used = first_pairs(text)
    windows_used = pairs.ends[used - 1] if used else 0
    notes = room_for_notes(most_windows(pairs, used), most_tokens)
    learned = _room_for_merges(most_rounds)

    # The heap holds the pairs that are seen `least` times or more. Most pairs are rare and wait outside until `least`
    # comes down to them; so the heap stays small. Pairs from number `entered` on are new.
    heap, size, entered = np.empty((1 << 12, 3), dtype=np.int64), 0, 0
    least = max(min_pair_frequency, pairs.counts[:used].max() // 4) if used else min_pair_frequency
    rank, stop = 0, _TARGET_REACHED
    while True:
        heap, size = _enter_pairs(heap, size, pairs, entered, used, least, _NO_LIMIT, rule, tokens)
        entered = used
        if rank == num_merges:
            break
        size, best = _best_pair(heap, size, text, pairs, least, rule, tokens)
        if best == NONE and least > min_pair_frequency:
            # The heap is empty: let in those that waited, and look again.
            below, least = least, max(min_pair_frequency, least * 3 // 4)
            heap, size = _enter_pairs(heap, size, pairs, 0, used, least, below, rule, tokens)
            continue
        if best == NONE:
            stop = _TOO_RARE if has_window(text) else _NO_PAIR_LEFT
            break

        # One round: the best pair becomes a token.
        new = NewToken(pairs.halves[best, 0], pairs.halves[best, 1], base_size + rank)
        learned.pairs[rank, 0], learned.pairs[rank, 1], learned.counts[rank] = new.left, new.right, pairs.counts[best]
        text.spans[new.id] = text.spans[new.left] + text.spans[new.right]
        if rule == GREATEST_BYTES:
            tokens = add_token_bytes(tokens, new.id, new.left, new.right)
        windows = pairs.windows[pairs.begins[best] : pairs.ends[best]]
        made, learned.replacements[rank], num_before, num_after = replace_all(text, windows, new, notes)
        pairs.counts[best] = 0
        # What comes into being: at most a pair for each neighbour, and a window on both sides of each place.
        if used + num_before + num_after > len(pairs.counts) or windows_used + 2 * made > len(pairs.windows):
            pairs = with_room(pairs, used + num_before + num_after, windows_used + 2 * made)
        used, windows_used = settle(pairs, used, windows_used, new, notes.before, num_before, True, min_pair_frequency)
        used, windows_used = settle(pairs, used, windows_used, new, notes.after, num_after, False, min_pair_frequency)
        list_windows(text, pairs, new.id, notes, made)
        rank += 1
    return _first_merges(learned, rank), stop


@kernel
def _room_for_merges(size: int) -> Learned:
    return Learned(np.empty((size, 2), dtype=np.int32), np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64))


@kernel
def _first_merges(learned: Learned, size: int) -> Learned:
    return Learned(learned.pairs[:size].copy(), learned.counts[:size].copy(), learned.replacements[:size].copy())


@kernel
def _enter_pairs(
    heap: Int64Array,
    size: int,
    pairs: Pairs,
    first: int,
    used: int,
    least: int,
    below: int,
    rule: int,
    tokens: TokenBytes,
) -> tuple[Int64Array, int]:
    """Enter the pairs from number `first` on with `least` <= count < `below`: (heap, maybe a larger one, size)."""
    counts, halves, begins, windows = pairs.counts, pairs.halves, pairs.begins, pairs.windows
    for number in range(first, used):
        if least <= counts[number] < below:
            if size == len(heap):
                heap = grown_2d(heap, 2 * len(heap))
            tie = np.int64(0)
            if rule == FIRST_SEEN:
                tie = np.int64(windows[begins[number]])
            elif rule == LOWEST_IDS:
                tie = np.int64(pair_key(halves[number, 0], halves[number, 1]))
            size = push(heap, size, counts[number], tie, number, rule, halves, tokens)
    return heap, size


@kernel
def _best_pair(
    heap: Int64Array, size: int, text: Text, pairs: Pairs, least: int, rule: int, tokens: TokenBytes
) -> tuple[int, np.int64]:
    """The heap's new size and the best pair, or NONE when none is seen `least` times.

    Invariant: every pair that is has an entry that is at least as good as the pair is now. So a top entry that is up
    to date is the best; one that is not sinks to where it belongs.
    """
    cells, spans = text.cells, text.spans
    counts, halves, begins, windows = pairs.counts, pairs.halves, pairs.begins, pairs.windows
    while size > 0:
        number = heap[0, 2]
        if counts[number] < least:
            size = pop(heap, size, rule, halves, tokens)
            continue
        tie = heap[0, 1]
        if rule == FIRST_SEEN:
            # The windows before the first living one are gone for good: the list begins there from now on.
            left, right = halves[number, 0], halves[number, 1]
            begins[number] = first_window(cells, spans[left], windows, begins[number], left, right)
            tie = np.int64(windows[begins[number]])
        if heap[0, 0] == counts[number] and heap[0, 1] == tie:
            return size, number
        heap[0, 0], heap[0, 1] = counts[number], tie
        resift(heap, size, rule, halves, tokens)
    return size, np.int64(NONE)
