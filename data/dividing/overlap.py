"""Strings that two texts share, found exactly: how much of val and test is verbatim in train, and which documents
belong together because they share a long string.

A string lies inside one document; it never reaches over a border. All windows of one length are hashed at once (a
polynomial modulo 2^64 over scrambled code points), equal hashes are found by sorting, and every hit is verified
character by character, so a collision of hashes costs time and nothing else. Texts are worked through in blocks: memory
is bounded by the block, not by the corpus.

Shapes: N characters, D documents, W windows of one block.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint32]
Int64Array = NDArray[np.int64]
UInt64Array = NDArray[np.uint64]
BoolArray = NDArray[np.bool_]

_BLOCK_WINDOWS = 1 << 22  # of each text at a time: some 300 MB of arrays
_BASE = 0x9E3779B97F4A7C15  # odd, so that its powers can be inverted modulo 2^64
_INVERSE = pow(_BASE, -1, 1 << 64)
_SIEVE_BITS = 24


@dataclass(frozen=True)
class Text:
    """A text as code points, and where its documents end."""

    codes: Codes
    """(N,)"""
    offsets: Int64Array
    """(D+1,): document d is codes[offsets[d]:offsets[d+1]]."""

    @classmethod
    def of(cls, documents: Sequence[str]) -> "Text":
        """From the documents one by one."""
        codes = np.frombuffer("".join(documents).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        return cls(codes, np.cumsum([0, *map(len, documents)], dtype=np.int64))


@dataclass(frozen=True)
class _Windows:
    """Windows of one block of a text, in any order."""

    starts: Int64Array
    """(W,): their first characters."""
    hashes: UInt64Array
    """(W,)"""

    def __getitem__(self, which: NDArray[np.generic]) -> "_Windows":
        return _Windows(self.starts[which], self.hashes[which])


class Components:
    """Sets of documents that grow together: which belong to one connected component."""

    def __init__(self, num_documents: int) -> None:
        """Every document is a component of its own."""
        self._parents = list(range(num_documents))

    def join(self, one: int, other: int) -> None:
        """Make one component of two; its root is its first document, whatever the order of joining."""
        low, high = sorted((self._root(one), self._root(other)))
        self._parents[high] = low

    def roots(self) -> list[int]:
        """The first document of each document's component."""
        return [self._root(document) for document in range(len(self._parents))]

    def _root(self, document: int) -> int:
        while self._parents[document] != document:
            self._parents[document] = self._parents[self._parents[document]]
            document = self._parents[document]
        return document


def covered(held_out: Text, train: Text, length: int, *, within: BoolArray | None = None) -> BoolArray:
    """(N,): which characters of `held_out` lie in a string of `length` or more characters that is in `train`.

    `within`, (N,), may be the answer for a shorter length: only there is a longer string looked for.
    """
    marks = np.zeros(len(held_out.codes) + 1, dtype=np.int64)
    num_outside = None if within is None else np.cumsum(np.append(0, ~within))
    for wanted in _blocks(held_out, length):
        if num_outside is not None:
            wanted = wanted[num_outside[wanted.starts] == num_outside[wanted.starts + length]]
        wanted = wanted[np.argsort(wanted.hashes)]
        # Most windows of train are told apart by the first bits of their hashes, without a search.
        sieve = np.zeros(1 << _SIEVE_BITS, dtype=bool)
        sieve[_first_bits(wanted.hashes)] = True
        is_found = np.zeros(len(wanted.starts), dtype=bool)
        for windows in _blocks(train, length):
            likely = windows[sieve[_first_bits(windows.hashes)]]
            likely = likely[np.argsort(likely.hashes)]
            is_found |= _stands_in(held_out.codes, wanted, train.codes, likely, length)
        found = wanted.starts[is_found]
        marks[found] += 1  # one window at most begins at a character
        np.subtract.at(marks, found + length, 1)
    return np.cumsum(marks[:-1]) > 0


def shared_groups(text: Text, length: int) -> Int64Array:
    """(D,): the group of each document, as the number of its first document.

    Groups are the connected components of "have a string of `length` characters in common".
    """
    components = Components(len(text.offsets) - 1)
    num_parts = max(1, -(-len(text.codes) // (2 * _BLOCK_WINDOWS)))
    for part in range(num_parts):  # the windows whose hashes fall into this part, from the whole text
        windows = _repeated(text, length, part, num_parts)
        document_of = np.searchsorted(text.offsets, windows.starts, side="right") - 1
        for one, other in _equal_pairs(text.codes, windows, document_of, length):
            components.join(one, other)
    return np.array(components.roots(), dtype=np.int64)


def _stands_in(codes: Codes, wanted: _Windows, train_codes: Codes, train: _Windows, length: int) -> BoolArray:
    """(W,): which of the `wanted` windows are equal to one of `train`; both are sorted by hash."""
    result = np.zeros(len(wanted.starts), dtype=bool)
    candidate = np.searchsorted(train.hashes, wanted.hashes, side="left")
    pending = np.arange(len(wanted.starts))
    while len(pending):  # again only for hashes that collide, with the next window of the same hash
        in_range = candidate < len(train.hashes)
        pending, candidate = pending[in_range], candidate[in_range]
        has_hash = train.hashes[candidate] == wanted.hashes[pending]
        pending, candidate = pending[has_hash], candidate[has_hash]
        is_equal = _equal(codes, wanted.starts[pending], train_codes, train.starts[candidate], length)
        result[pending[is_equal]] = True
        pending, candidate = pending[~is_equal], candidate[~is_equal] + 1
    return result


def _equal_pairs(codes: Codes, windows: _Windows, document_of: Int64Array, length: int) -> list[tuple[int, int]]:
    """Pairs of documents with an equal window, enough of them to connect all that share one; sorted by hash.

    The windows of one hash are compared with the first of them, and where they differ (a collision) with the first of
    the rest, until each has found its like.
    """
    pairs: set[tuple[int, int]] = set()
    num_documents = int(document_of.max(initial=0)) + 1
    rest = np.arange(len(windows.starts))
    while len(rest) > 1:
        hashes = windows.hashes[rest]
        is_first = np.append(True, hashes[1:] != hashes[:-1])
        first = rest[np.flatnonzero(is_first)][np.cumsum(is_first) - 1]
        others, first = rest[~is_first], first[~is_first]
        if not len(others):
            break
        is_equal = _equal(codes, windows.starts[others], codes, windows.starts[first], length)
        one, other = document_of[first[is_equal]], document_of[others[is_equal]]
        keys = np.unique(one * num_documents + other)
        pairs.update((key // num_documents, key % num_documents) for key in keys.tolist())
        rest = others[~is_equal]
    return sorted((one, other) for one, other in pairs if one != other)


def _equal(one: Codes, one_starts: Int64Array, other: Codes, other_starts: Int64Array, length: int) -> BoolArray:
    """(W,): whether the windows at these starts hold the same characters."""
    result = np.empty(len(one_starts), dtype=bool)
    rows = 1 << 16
    one_windows = np.lib.stride_tricks.sliding_window_view(one, length)
    other_windows = np.lib.stride_tricks.sliding_window_view(other, length)
    for begin in range(0, len(one_starts), rows):
        part = slice(begin, begin + rows)
        result[part] = (one_windows[one_starts[part]] == other_windows[other_starts[part]]).all(axis=1)
    return result


def _repeated(text: Text, length: int, part: int, num_parts: int) -> _Windows:
    """Of the windows whose hash modulo `num_parts` is `part`, those whose hash another one has too, sorted by hash.

    Hash and start travel in one number, so that sorting moves 8 bytes per window: the low bits hold the start, the
    high bits are what is left of the hash. That makes collisions likelier, which costs time only.
    """
    start_bits = np.uint64(len(text.codes).bit_length())
    found = [np.zeros(0, dtype=np.uint64)]
    for windows in _blocks(text, length):
        if num_parts > 1:
            windows = windows[windows.hashes % np.uint64(num_parts) == part]
        found.append((windows.hashes >> start_bits << start_bits) | windows.starts.astype(np.uint64))
    keys = np.concatenate(found)
    keys.sort()
    hashes = keys >> start_bits
    is_repeated = np.zeros(len(keys) + 1, dtype=bool)  # most windows stand once
    is_repeated[1:-1] = hashes[1:] == hashes[:-1]
    kept = is_repeated[1:] | is_repeated[:-1]
    starts = keys[kept] & ((np.uint64(1) << start_bits) - np.uint64(1))
    return _Windows(starts.astype(np.int64), hashes[kept])


def _blocks(text: Text, length: int) -> Iterator[_Windows]:
    """All windows of `length` characters that lie inside a document, block by block, by their starts."""
    num_starts = len(text.codes) - length + 1
    for begin in range(0, num_starts, _BLOCK_WINDOWS):
        end = min(begin + _BLOCK_WINDOWS, num_starts)
        borders = text.offsets[np.searchsorted(text.offsets, begin, side="right") :]  # ends of documents, from here on
        borders = borders[: np.searchsorted(borders, end - 1, side="right") + 1]
        document_ends = np.repeat(borders, np.diff(np.minimum(borders, end), prepend=begin))
        starts = np.arange(begin, end)
        is_inside = starts + length <= document_ends
        yield _Windows(starts[is_inside], _hashes(text.codes[begin : end + length - 1], length)[is_inside])


def _hashes(codes: Codes, length: int) -> UInt64Array:
    """The hash of every window: the sum of scrambled(code[i + j]) * BASE^j for j below `length`, modulo 2^64."""
    sums = np.zeros(len(codes) + 1, dtype=np.uint64)
    np.cumsum(_scrambled(codes) * _powers(_BASE, len(codes)), out=sums[1:])
    return (sums[length:] - sums[:-length]) * _powers(_INVERSE, len(codes) - length + 1)


def _powers(base: int, count: int) -> UInt64Array:
    """base^0, base^1, … modulo 2^64."""
    powers = np.full(count, base, dtype=np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers)


def _scrambled(codes: Codes) -> UInt64Array:
    """Each code point as 64 bits, near ones far apart (the finalizer of splitmix64, Steele et al. 2014)."""
    mixed = np.arange(int(codes.max(initial=0)) + 1, dtype=np.uint64) + np.uint64(1)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    scrambled: UInt64Array = (mixed ^ (mixed >> np.uint64(31)))[codes]
    return scrambled


def _first_bits(hashes: UInt64Array) -> UInt64Array:
    return hashes >> np.uint64(64 - _SIEVE_BITS)
