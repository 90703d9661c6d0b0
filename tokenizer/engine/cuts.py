"""Where a text without a split pattern may be cut for encoding: where no token can ever reach across.

Consider the bytes a b | c d around a place of the text. In the replay every token, the passing ones included, is one
of the vocabulary. A token that reaches across the place covers b and c. If it covers neither a nor d, it is `bc`. If it
covers d and not a, it begins with `bcd`. If it covers a and not d, it ends with `abc`. If it covers both, it holds
`abcd`. So if none of these four is in the vocabulary, no window across the place is ever merged, and the two sides are
encoded as if the other one were not there. What the tables say beyond that is only that a place must not be cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokenizer.base import Int64Array, UInt8Array
from tokenizer.engine.jit import inlined, kernel

UInt16Array = NDArray[np.uint16]
ContextArray = NDArray[np.uint64]

_SAFE, _NEVER, _FIRST_PAIR = range(3)
_MOST_PAIRS = 4096  # of 2 KB each


@dataclass(frozen=True)
class Cuts:
    """The tables that `may_cut` reads."""

    joins: UInt16Array
    """Shape (256, 256): the number of a pair b, c: 0 for one that stands in no token, 1 for one that is never cut."""
    contexts: ContextArray
    """Shape (P, 128, 2): bit d of row a says that pair p must not be cut between a and d, both modulo 128. So nothing
    is set for pair 0 and everything for pair 1, and there is no case to tell from another."""


# Pairs that are never cut: for where nothing is cut at all.
NEVER = Cuts(
    np.full((256, 256), _NEVER, dtype=np.uint16),
    np.stack([np.zeros((128, 2), dtype=np.uint64), np.full((128, 2), ~np.uint64(0))]),
)


def cuts_of(token_bytes: Sequence[bytes], *, ascii_only: bool) -> Cuts:
    """The cuts that a vocabulary allows.

    With `ascii_only` (base tokens that are longer than a byte) none is allowed beside a byte outside ASCII.
    """
    pool = np.frombuffer(bytearray().join([*token_bytes, bytes(1)]), dtype=np.uint8)
    joins, contexts = _tables(pool, np.cumsum([0, *map(len, token_bytes)], dtype=np.int64), ascii_only)
    return Cuts(joins, contexts)


@inlined
def may_cut(text: UInt8Array, i: int, joins: UInt16Array, contexts: ContextArray) -> bool:
    """Whether no token reaches across the border between the bytes i - 1 and i, for 0 < i < len(text) - 1.

    The bytes i - 2 and i + 1 may belong to other documents, or to none: tokens that end before them are in the tables
    for every byte that could stand there. No branch and no sign to ask for: the reads of many places overlap.
    """
    pair = np.uint64(joins[text[np.uint64(i - 1)], text[np.uint64(i)]])
    before, after = text[np.uint64(max(i - 2, 0))] & np.uint8(0x7F), text[np.uint64(i + 1)] & np.uint8(0x7F)
    forbidden = contexts[pair, before, after >> np.uint8(6)] >> np.uint64(after & np.uint8(0x3F))
    return (forbidden & np.uint64(1)) == 0


@kernel
def _tables(pool: UInt8Array, offsets: Int64Array, ascii_only: bool) -> tuple[UInt16Array, ContextArray]:
    """The arrays of `Cuts` for the tokens pool[offsets[t]:offsets[t+1]]."""
    # Which pairs stand in a token at all, and which are a token themselves: those are never cut.
    joins = np.zeros((256, 256), dtype=np.uint16)
    for token in range(len(offsets) - 1):
        start, end = offsets[token], offsets[token + 1]
        for k in range(start + 1, end):
            if end - start == 2:
                joins[pool[k - 1], pool[k]] = _NEVER
            elif joins[pool[k - 1], pool[k]] == _SAFE:
                joins[pool[k - 1], pool[k]] = _FIRST_PAIR
    if ascii_only:
        joins[0x80:, :] = _NEVER
        joins[:, 0x80:] = _NEVER
    # Number the pairs between these two; for most of them it depends on the context.
    num_pairs = _FIRST_PAIR
    for left in range(256):
        for right in range(256):
            if joins[left, right] == _FIRST_PAIR:
                joins[left, right] = num_pairs if num_pairs < _MOST_PAIRS else _NEVER
                num_pairs += num_pairs < _MOST_PAIRS
    # Note for each of them the contexts in which some token reaches across.
    contexts = np.zeros((num_pairs, 128, 2), dtype=np.uint64)
    contexts[_NEVER] = ~np.uint64(0)
    for token in range(len(offsets) - 1):
        start, end = offsets[token], offsets[token + 1]
        for k in range(start + 1, end):
            pair = np.int64(joins[pool[k - 1], pool[k]])
            if pair >= _FIRST_PAIR:
                _forbid(pool, start, end, k, contexts[pair])
    return joins, contexts


@kernel
def _forbid(pool: UInt8Array, start: int, end: int, k: int, context: ContextArray) -> None:
    """Note in the `context` (128, 2) of its pair that the token pool[start:end] reaches across the border at `k`."""
    before, after = pool[k - 2] & 0x7F, pool[k + 1] & 0x7F
    bit = np.uint64(1) << np.uint64(after & 0x3F)
    if k - 2 < start:  # the token begins with the pair: whatever stands before
        context[:, after >> 6] |= bit
    elif k + 1 >= end:  # it ends with the pair: whatever stands behind
        context[before, :] = ~np.uint64(0)
    else:
        context[before, after >> 6] |= bit
