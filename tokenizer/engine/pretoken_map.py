"""A map from pretokens to whatever its owner keeps in the rows beside the keys.

Open addressing, linear probing, at most half full. A pretoken of up to seven bytes is its own key, its length in the
top byte; a longer one has a hash for a key, and its bytes have to be compared as well.
"""

import numpy as np

from tokenizer.base import UInt64Array
from tokenizer.engine.jit import inlined

_LONG = np.uint64(0xFF) << np.uint64(56)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
FREE = np.uint64(0)  # no key is zero, because no pretoken is empty


@inlined
def key_of(at: UInt64Array, start: int, size: int) -> np.uint64:
    """The key of the pretoken of `size` bytes at `start`."""
    if size < 8:
        # The bytes themselves: what follows them in the word is masked out.
        mask = (np.uint64(1) << np.uint64(size << 3)) - np.uint64(1)
        key = (at[start] & mask) | (np.uint64(size) << np.uint64(56))
    else:
        # A hash of length and bytes, eight at a time.
        mixed = np.uint64(size)
        i = 0
        while i + 8 <= size:
            mixed = (mixed ^ at[start + i]) * _MULTIPLIER
            mixed ^= mixed >> np.uint64(32)
            i += 8
        # The last eight bytes, which overlap those before unless the size is a multiple of eight.
        mixed = (mixed ^ at[start + size - 8]) * _MULTIPLIER
        key = (mixed >> np.uint64(8)) | _LONG
    return key


@inlined
def slot_of(key: np.uint64, mask: int) -> np.int64:
    """Where the search for `key` begins."""
    return np.int64((key * _MULTIPLIER) >> np.uint64(24)) & mask


@inlined
def is_same(at: UInt64Array, one: int, other: int, size: int) -> bool:
    """Whether the `size` >= 8 bytes at `one` and `other` are the same."""
    i = 0
    while i + 8 <= size and at[one + i] == at[other + i]:
        i += 8
    return i + 8 > size and at[one + size - 8] == at[other + size - 8]
