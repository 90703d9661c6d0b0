"""Pretokens and how often they occur: all that training needs to know of a text that is cut by a split pattern."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tokenizer.base import Int32Array, Int64Array, UInt8Array
from tokenizer.engine.borders import WHOLE
from tokenizer.engine.intern import (
    Interned,
    TextBytes,
    in_threads,
    intern,
    shares_of,
    text_bytes,
)
from tokenizer.engine.jit import kernel
from tokenizer.engine.scan import PATTERN_NUMBERS
from tokenizer.pretokenize import SplitPattern


@dataclass(frozen=True)
class PretokenCounts:
    """Distinct pretokens as bytes, in the order in which the text first shows them."""

    pool: UInt8Array
    """The pretokens' bytes, one behind the other."""
    offsets: Int64Array
    """Shape (P+1,): pretoken p is pool[offsets[p]:offsets[p+1]]."""
    counts: Int64Array
    """Shape (P,): occurrences."""
    first_seen: Int64Array
    """Shape (P,): where each was first seen, rising; in bytes from the start of the text."""

    def pretokens(self) -> list[bytes]:
        """The pretokens as byte strings."""
        raw, bounds = self.pool.tobytes(), self.offsets.tolist()
        return [raw[start:end] for start, end in pairwise(bounds)]


def count_pretokens(
    documents: Sequence[str], split_pattern: SplitPattern, *, num_threads: int | None = None
) -> PretokenCounts:
    """Count the pretokens of `documents` under `split_pattern`, which is not `none`; threads change nothing but time.

    Raises TokenizerError for a lone surrogate.
    """
    laid_out = text_bytes(documents)
    pattern = PATTERN_NUMBERS[split_pattern]
    # Each thread interns its share of the text; then the shares are added up in the order of the text, which keeps the
    # order of first sight.
    first, *others = in_threads(lambda share: intern(laid_out, share, pattern), shares_of(laid_out, num_threads))
    for other in others:
        first = _add(laid_out, first, other)
    return _compacted(laid_out, first)


def _add(laid_out: TextBytes, first: Interned, other: Interned) -> Interned:
    """The pretokens of `first`, then those that only `other` has; counts added."""
    spans = np.stack([other.starts, other.starts + other.lengths], axis=1)
    both = intern(laid_out, spans, WHOLE, keep_sequence=True, start_from=first)
    counts = both.counts
    counts[len(first.counts) :] = 0  # each span counted once; what is wanted are the counts of `other`
    counts[: len(first.counts)] = first.counts
    counts[both.sequence] += other.counts
    return replace(both, counts=counts)


def _compacted(laid_out: TextBytes, interned: Interned) -> PretokenCounts:
    pool, offsets = gather_pool(laid_out.text, interned.starts, interned.lengths)
    return PretokenCounts(pool, offsets, interned.counts, interned.starts)


@kernel
def gather_pool(text: UInt8Array, starts: Int64Array, lengths: Int32Array) -> tuple[UInt8Array, Int64Array]:
    """The bytes of the pretokens one behind the other, and their offsets."""
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    offsets[1:] = np.cumsum(lengths)
    pool = np.empty(offsets[-1], dtype=np.uint8)
    for index in range(len(starts)):
        for i in range(lengths[index]):
            pool[offsets[index] + i] = text[starts[index] + i]
    return pool, offsets


def character_offsets(pool: UInt8Array, offsets: Int64Array) -> Int64Array:
    """Offsets in bytes of the UTF-8 `pool` as offsets in characters."""
    begins = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum((pool & 0xC0) != 0x80)])
    characters: Int64Array = begins[offsets]
    return characters
