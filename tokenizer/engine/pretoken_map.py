"""A map from pretokens to whatever its owner keeps beside their keys.

Open addressing, linear probing, at most half full. A row is four words of 64 bits: two of key, two of the owner's. A
pretoken of up to 15 bytes is its own key: its bytes, and its length in the top byte. So one comparison of two words
finds it. A longer one has a hash in the second word, under a top byte that no short one has. Its first word says where
it was first seen and how long it is, so that its bytes can be compared.

Look-ups come in groups: first the keys of a group are made, and the rows that they will need are fetched into the
cache; then the rows are looked at. Otherwise every look-up would wait for memory. A loop over a group calls nothing but
`is_same`: numba counts references to the arrays of whatever is called, and that costs more than a look-up.

Places in the map are unsigned: for signed ones numba asks each time whether they are negative.
"""

from typing import NamedTuple

import numpy as np

from tokenizer.base import Int64Array, UInt64Array
from tokenizer.engine.jit import inlined, kernel, prefetch

MOST_BYTES, MOST_BYTES_OF_ONE = 1 << 34, 1 << 30
"""Of the text, and of one pretoken: what the first word of a long pretoken's key has room for."""
GROUP = 256
"""Pretokens whose keys are made at once."""
WORDS = 4
"""Words of a row."""
FREE = np.uint64(0)
"""The second word of a row that nobody has taken: a pretoken's length, or the mark of a long one, is in it."""

SECOND = np.uint64(1)
ROW = np.uint64(WORDS)
_STARTS = np.uint64((1 << 34) - 1)
_TOP = np.uint64(56)
_LONG = np.uint64(0xFF) << _TOP
_MOST_SHORT = 15  # bytes
_START_BITS = np.uint64(34)
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
# Of a pretoken of `size` bytes, what belongs to it in the first eight bytes and in the next eight.
_FIRST_MASKS = np.array([(1 << (8 * min(size, 8))) - 1 for size in range(_MOST_SHORT + 1)], dtype=np.uint64)
_SECOND_MASKS = np.array([(1 << (8 * max(size - 8, 0))) - 1 for size in range(_MOST_SHORT + 1)], dtype=np.uint64)


class Group(NamedTuple):
    """Room for what is known of the pretokens of a group."""

    first: UInt64Array
    """First words of their keys."""
    second: UInt64Array
    """Second words."""
    rows: UInt64Array
    """The places of their rows."""
    new: Int64Array
    """The numbers of those that were not in the map."""


@kernel
def room_for_group() -> Group:
    """Room for a group."""
    return Group(
        np.empty(GROUP, dtype=np.uint64),
        np.empty(GROUP, dtype=np.uint64),
        np.empty(GROUP, dtype=np.uint64),
        np.empty(GROUP, dtype=np.int64),
    )


@kernel
def look_up(at: UInt64Array, start: int, ends: Int64Array, rows: UInt64Array, group: Group) -> int:
    """Find the rows of a group's pretokens, the first of them from `start` to ends[0]; the number of new ones.

    A new one gets its row, with the key in it and nothing else. The map must have room for a whole group.
    """
    _make_keys(at, start, ends, rows, group)
    return _find_rows(at, len(ends), rows, group)


@kernel
def _make_keys(at: UInt64Array, start: int, ends: Int64Array, rows: UInt64Array, group: Group) -> None:
    """Make the keys, and fetch the rows at which the searches for them begin."""
    first, second, homes = group.first, group.second, group.rows
    for k in range(len(ends)):
        end = ends[k]
        one, two = key_of(at, start, end - start)
        home = home_of(one, two, len(rows))
        first[k], second[k], homes[k] = one, two, home
        prefetch(rows, home)
        start = end


@kernel
def _find_rows(at: UInt64Array, count: int, rows: UInt64Array, group: Group) -> int:
    """Replace the places where the searches begin by those where they end; the number of new pretokens."""
    first, second, places, new = group.first, group.second, group.rows, group.new
    last_row, num_new = np.uint64(len(rows) - WORDS), 0
    for k in range(count):
        one, two, row = first[k], second[k], places[k]
        while True:
            stored = rows[row + SECOND]
            if stored == two:
                if rows[row] == one or (two >= _LONG and is_same(at, rows[row], one)):
                    break
            elif stored == FREE:
                rows[row], rows[row + SECOND] = one, two
                new[num_new] = k
                num_new += 1
                break
            row = (row + ROW) & last_row
        places[k] = row
    return num_new


@inlined
def key_of(at: UInt64Array, start: int, size: int) -> tuple[np.uint64, np.uint64]:
    """The two words of the key of the pretoken of `size` bytes at `start`."""
    if size <= _MOST_SHORT:
        # The bytes themselves: what follows them is masked out.
        one = at[np.uint64(start)] & _FIRST_MASKS[np.uint64(size)]
        two = (at[np.uint64(start + 8)] & _SECOND_MASKS[np.uint64(size)]) | (np.uint64(size) << _TOP)
    else:
        # A hash of length and bytes, eight at a time.
        mixed = np.uint64(size)
        i = 0
        while i + 8 <= size:
            mixed = (mixed ^ at[start + i]) * _FIRST_FACTOR
            mixed ^= mixed >> np.uint64(32)
            i += 8
        # The last eight bytes, which overlap those before unless the size is a multiple of eight.
        mixed = (mixed ^ at[start + size - 8]) * _FIRST_FACTOR
        one, two = np.uint64(start) | (np.uint64(size) << _START_BITS), (mixed >> np.uint64(8)) | _LONG
    return one, two


@inlined
def home_of(one: np.uint64, two: np.uint64, num_words: int) -> np.uint64:
    """Where the search for a key begins: the place of a row in a map of `num_words` words."""
    is_long = two >= _LONG  # its first word is no part of what makes it equal to another
    mixed = ((np.uint64(0) if is_long else one * _FIRST_FACTOR) ^ two) * _SECOND_FACTOR
    return (mixed >> np.uint64(32)) & np.uint64(num_words - WORDS)


@kernel
def is_same(at: UInt64Array, first: np.uint64, other: np.uint64) -> bool:
    """Whether two pretokens of 16 bytes or more, given by the first words of their keys, have the same bytes."""
    size = np.int64(first >> _START_BITS)
    start, its_start = np.int64(first & _STARTS), np.int64(other & _STARTS)
    if size != np.int64(other >> _START_BITS):
        return False
    i = 0
    while i + 8 <= size and at[start + i] == at[its_start + i]:
        i += 8
    # The last eight bytes overlap those before, unless the size is a multiple of eight.
    return bool(i + 8 > size and at[start + size - 8] == at[its_start + size - 8])


@kernel
def doubled(rows: UInt64Array) -> UInt64Array:
    """The same map with twice the rows."""
    larger = np.zeros(2 * len(rows), dtype=np.uint64)
    for row in range(0, len(rows), WORDS):
        if rows[row + 1] != FREE:
            # All keys are different, so that any free row will do.
            place = home_of(rows[row], rows[row + 1], len(larger))
            while larger[place + SECOND] != FREE:
                place = (place + ROW) & np.uint64(len(larger) - WORDS)
            larger[place : place + ROW] = rows[row : row + WORDS]
    return larger
