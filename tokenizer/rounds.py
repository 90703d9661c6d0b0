"""Numba kernels for one round of training: replace a pair everywhere, and settle what that does to its neighbours."""

from typing import Any

from tokenizer.jit import kernel
from tokenizer.kernels import NONE, Int32Array, Int64Array, find, pair_key


@kernel
def replace_all(
    cells: Int32Array,
    spans: Int32Array,
    piece_of: Int32Array,
    weights: Int64Array,
    is_weighted: bool,
    windows: Int32Array,
    left: int,
    right: int,
    new_id: int,
    places: Int32Array,
    before: Int64Array,
    after: Int64Array,
    touched: Int32Array,
) -> Any:
    """Replace a pair everywhere, in one pass from the left, and note what that does to its neighbours.

    `spans` are the cells that each token covers. Row t of `before` is about neighbours t on the left side, of
    `after` about those on the right: column 0 the round that last used the row; 1 the windows, weighted, that lost
    their old pair; 2 those that got a new pair; 3 how many places those are. `touched` lists the rows in use, left
    ones first, right ones from its middle on. Returns (replacements, their weight, left rows, right rows).

    Invariant: the cells to the left of the present window are as they will be after the pass.
    """
    num_left, num_right, middle = 0, 0, len(touched) // 2
    made, weighted, size_left, size_right = 0, 0, spans[left], spans[right]
    for i in windows:
        j = i + size_left
        if cells[i] != left or cells[j] != right:
            continue  # gone in an earlier round, or overlapping the place before
        weight = weights[piece_of[i]] if is_weighted else 1
        k = j + size_right
        cells[j - 1] = NONE
        cells[j] = NONE
        cells[i] = new_id
        cells[k - 1] = new_id
        places[made] = i
        made += 1
        weighted += weight
        h, s = cells[i - 1], cells[k]
        if h == new_id:
            # The place before counted this place's left half as its right neighbour; it is a new token by now.
            after[left, 2] -= weight
            after[left, 3] -= 1
            if after[new_id, 0] != new_id:
                after[new_id, 0], after[new_id, 1], after[new_id, 2], after[new_id, 3] = new_id, 0, 0, 0
                touched[middle + num_right] = new_id
                num_right += 1
            after[new_id, 2] += weight
            after[new_id, 3] += 1
        elif h != NONE:
            if before[h, 0] != new_id:
                before[h, 0], before[h, 1], before[h, 2], before[h, 3] = new_id, 0, 0, 0
                touched[num_left] = h
                num_left += 1
            before[h, 1] += weight
            before[h, 2] += weight
            before[h, 3] += 1
        if s != NONE:
            if after[s, 0] != new_id:
                after[s, 0], after[s, 1], after[s, 2], after[s, 3] = new_id, 0, 0, 0
                touched[middle + num_right] = s
                num_right += 1
            after[s, 1] += weight
            after[s, 2] += weight
            after[s, 3] += 1
    return made, weighted, num_left, num_right


@kernel
def _lose(keys: Int64Array, numbers: Int32Array, counts: Int64Array, left: int, right: int, weight: int) -> None:
    """Take `weight` from the count of a pair; pairs too rare to win were never entered."""
    cell = find(keys, pair_key(left, right))
    if keys[cell] != NONE:
        counts[numbers[cell]] -= weight


@kernel
def list_windows(
    cells: Int32Array,
    spans: Int32Array,
    new_id: int,
    places: Int32Array,
    before: Int64Array,
    after: Int64Array,
    pool: Int32Array,
    ends: Int64Array,
) -> None:
    """Write the windows beside the new tokens to the lists of their pairs, in text order.

    Column 3 of `before` and `after` now holds the number of the neighbour's new pair, or NONE if it is too rare.
    """
    span = spans[new_id]
    for i in places:
        h, s = cells[i - 1], cells[i + span]
        if h != NONE and h != new_id:
            number = before[h, 3]
            if number != NONE:
                pool[ends[number]] = i - spans[h]
                ends[number] += 1
        if s != NONE:
            number = after[s, 3]
            if number != NONE:
                pool[ends[number]] = i
                ends[number] += 1


@kernel
def settle(
    keys: Int64Array,
    numbers: Int32Array,
    halves: Int32Array,
    counts: Int64Array,
    begins: Int64Array,
    ends: Int64Array,
    used: int,
    pool_used: int,
    left: int,
    right: int,
    new_id: int,
    before: Int64Array,
    after: Int64Array,
    touched: Int32Array,
    num_left: int,
    num_right: int,
    min_pair_frequency: int,
) -> Any:
    """Take the lost windows from the neighbours' old pairs and bring their new pairs into being: (used, pool_used).

    A pair that is too rare at birth never wins, since counts only fall, and is not entered at all. Column 3 of
    `before` and `after` becomes the number of the new pair, or NONE.
    """
    middle = len(touched) // 2
    for side in range(2):
        rows = before if side == 0 else after
        first = 0 if side == 0 else middle
        for index in range(first, first + (num_left if side == 0 else num_right)):
            token = touched[index]
            lost, gained, num_places = rows[token, 1], rows[token, 2], rows[token, 3]
            if side == 0:
                _lose(keys, numbers, counts, token, left, lost)
            elif lost > 0 and not (left == right and token == right):  # the pair itself is gone anyway
                _lose(keys, numbers, counts, right, token, lost)
            rows[token, 3] = NONE
            if gained >= min_pair_frequency:
                one, other = (token, new_id) if side == 0 else (new_id, token)
                key = pair_key(one, other)
                cell = find(keys, key)
                keys[cell], numbers[cell] = key, used
                halves[used, 0], halves[used, 1] = one, other
                counts[used], begins[used], ends[used] = gained, pool_used, pool_used
                rows[token, 3] = used
                pool_used += num_places
                used += 1
    return used, pool_used
