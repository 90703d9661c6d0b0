"""Numba kernels for one round of training: replace a pair everywhere, and settle what that does to its neighbours.

Where the pair `left right` between the neighbours h and s becomes a new token n,

    h left right s  ->  h n s

the windows (h, left) and (right, s) are lost and the windows (h, n) and (n, s) are gained. A round notes this for
each neighbour, not for each place: a frequent pair has many places and few different neighbours.
"""

from typing import NamedTuple

import numpy as np

from tokenizer.base import Int32Array, Int64Array
from tokenizer.engine.cells import Pairs, Text
from tokenizer.engine.jit import kernel
from tokenizer.engine.kernels import NONE, find, pair_key


class NewToken(NamedTuple):
    """What a round makes: token `id` out of `left` and `right`."""

    left: int
    right: int
    id: int


class Side(NamedTuple):
    """What a round notes about the neighbours on one side of its places."""

    rows: Int64Array
    """Shape (T, 4), a row for each token; the columns are _ROUND, _LOST, _GAINED, _PLACES."""
    touched: Int32Array
    """Shape (T,): the tokens whose rows are in use in this round, in front."""


# The columns: the round that last used the row (as the id that it made), so that no row has to be cleared; the
# windows, weighted, that lost their old pair; those that got a new one; and how many places those are. Then the number
# of the new pair takes the last column.
_ROUND, _LOST, _GAINED, _PLACES = range(4)
_PAIR = _PLACES


class Notes(NamedTuple):
    """Room for what a round notes; the same for all rounds."""

    places: Int32Array
    """Where the pair was replaced, in text order: the first cells of the new tokens."""
    before: Side
    """Neighbours on the left."""
    after: Side
    """Neighbours on the right."""


@kernel
def room_for_notes(most_places: int, most_tokens: int) -> Notes:
    """Room for rounds of `most_places` replacements and `most_tokens` tokens."""
    before = Side(np.full((most_tokens, 4), NONE, dtype=np.int64), np.empty(most_tokens, dtype=np.int32))
    after = Side(np.full((most_tokens, 4), NONE, dtype=np.int64), np.empty(most_tokens, dtype=np.int32))
    return Notes(np.empty(most_places, dtype=np.int32), before, after)


@kernel
def replace_all(text: Text, windows: Int32Array, new: NewToken, notes: Notes) -> tuple[int, int, int, int]:
    """Replace the pair that has the list `windows`, in one pass from the left, and note what becomes of its neighbours.

    Returns (replacements, their weight, neighbours on the left, on the right).

    Invariant: the cells to the left of the present window are as they will be after the pass.
    """
    cells, piece_of, weights, is_weighted = text.cells, text.piece_of, text.weights, text.is_weighted
    left, right, new_id, places = new.left, new.right, new.id, notes.places
    before, touched_before = notes.before.rows, notes.before.touched
    after, touched_after = notes.after.rows, notes.after.touched
    num_before, num_after, made, weighted = 0, 0, 0, 0
    size_left, size_right = text.spans[left], text.spans[right]
    for i in windows:
        j = i + size_left
        if cells[i] != left or cells[j] != right:
            continue  # gone in an earlier round, or overlapping the place before

        # The new token covers the cells from i to k - 1; only the first and the last one hold its id.
        k = j + size_right
        cells[j - 1] = NONE
        cells[j] = NONE
        cells[i] = new_id
        cells[k - 1] = new_id
        weight = weights[piece_of[i]] if is_weighted else 1
        places[made] = i
        made += 1
        weighted += weight

        # The neighbours. A row that another round used last is cleared first.
        h, s = cells[i - 1], cells[k]
        if h == new_id:
            # Two places side by side. The one before counted this one's left half as its right neighbour; the
            # neighbour is a new token by now.
            after[left, _GAINED] -= weight
            after[left, _PLACES] -= 1
            if after[new_id, _ROUND] != new_id:
                after[new_id, _ROUND], after[new_id, _LOST], after[new_id, _GAINED] = new_id, 0, 0
                after[new_id, _PLACES], touched_after[num_after] = 0, new_id
                num_after += 1
            after[new_id, _GAINED] += weight
            after[new_id, _PLACES] += 1
        elif h != NONE:
            if before[h, _ROUND] != new_id:
                before[h, _ROUND], before[h, _LOST], before[h, _GAINED] = new_id, 0, 0
                before[h, _PLACES], touched_before[num_before] = 0, h
                num_before += 1
            before[h, _LOST] += weight
            before[h, _GAINED] += weight
            before[h, _PLACES] += 1
        if s != NONE:
            if after[s, _ROUND] != new_id:
                after[s, _ROUND], after[s, _LOST], after[s, _GAINED] = new_id, 0, 0
                after[s, _PLACES], touched_after[num_after] = 0, s
                num_after += 1
            after[s, _LOST] += weight
            after[s, _GAINED] += weight
            after[s, _PLACES] += 1
    return made, weighted, num_before, num_after


@kernel
def settle(
    pairs: Pairs,
    used: int,
    windows_used: int,
    new: NewToken,
    side: Side,
    size: int,
    is_before: bool,
    min_pair_frequency: int,
) -> tuple[int, int]:
    """Take the lost windows from the old pairs of one side's `size` neighbours, and bring their new pairs into being.

    Returns (used, windows_used). A pair that is too rare at birth never wins, since counts only fall, and is not
    entered at all. Column _PAIR becomes the number of the new pair, or NONE.
    """
    left, right, new_id, rows = new.left, new.right, new.id, side.rows
    for token in side.touched[:size]:
        lost, gained, num_places = rows[token, _LOST], rows[token, _GAINED], rows[token, _PLACES]
        # The old pair: (token, left) before a place, (right, token) after it.
        if is_before:
            _lose(pairs.keys, pairs.numbers, pairs.counts, token, left, lost)
        elif lost > 0 and not (left == right and token == right):  # the pair itself is gone anyway
            _lose(pairs.keys, pairs.numbers, pairs.counts, right, token, lost)

        # The new pair gets as much room for its list as it has places.
        rows[token, _PAIR] = NONE
        if gained >= min_pair_frequency:
            one, other = (token, new_id) if is_before else (new_id, token)
            key = pair_key(one, other)
            slot = find(pairs.keys, key)
            pairs.keys[slot], pairs.numbers[slot] = key, used
            pairs.halves[used, 0], pairs.halves[used, 1] = one, other
            pairs.counts[used] = gained
            pairs.begins[used], pairs.ends[used] = windows_used, windows_used
            rows[token, _PAIR] = used
            windows_used += num_places
            used += 1
    return used, windows_used


@kernel
def _lose(keys: Int64Array, numbers: Int32Array, counts: Int64Array, left: int, right: int, weight: int) -> None:
    """Take `weight` from the count of a pair; pairs too rare to win were never entered."""
    slot = find(keys, pair_key(left, right))
    if keys[slot] != NONE:
        counts[numbers[slot]] -= weight


@kernel
def list_windows(text: Text, pairs: Pairs, new_id: int, notes: Notes, made: int) -> None:
    """Write the windows beside the new tokens to the lists of their pairs, in text order."""
    cells, spans, windows, ends = text.cells, text.spans, pairs.windows, pairs.ends
    before, after = notes.before.rows, notes.after.rows
    span = spans[new_id]
    for i in notes.places[:made]:
        h, s = cells[i - 1], cells[i + span]
        if h != NONE and h != new_id:  # of two new tokens side by side, the left one lists the window
            number = before[h, _PAIR]
            if number != NONE:
                windows[ends[number]] = i - spans[h]
                ends[number] += 1
        if s != NONE:
            number = after[s, _PAIR]
            if number != NONE:
                windows[ends[number]] = i
                ends[number] += 1
