"""Pretokens and how often they occur: all that training needs to know of a text that is cut by a split pattern.

Counts can be made in shards and merged; training from them equals training from the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from data.errors import DataError
from tokenizer.base import Int32Array, Int64Array, UInt8Array
from tokenizer.engine.borders import WHOLE
from tokenizer.engine.intern import (
    Interned,
    TextBytes,
    in_threads,
    intern,
    lay_out,
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


def merge_counts(shards: Sequence[PretokenCounts]) -> PretokenCounts:
    """Counts of several parts of a text as counts of the whole; `first_seen` of the shards must be on one scale.

    Raises DataError when there is no shard.
    """
    if not shards:
        raise DataError("no counts to merge: name at least one shard")
    # The distinct pretokens of all shards as one text, each a span, in the order in which they were first seen.
    pool = np.concatenate([shard.pool for shard in shards])
    sizes = np.concatenate([np.diff(shard.offsets) for shard in shards])
    ends = np.cumsum(sizes)
    counts = np.concatenate([shard.counts for shard in shards])
    first_seen = np.concatenate([shard.first_seen for shard in shards])
    order = np.argsort(first_seen, kind="stable")
    spans = np.stack([ends - sizes, ends], axis=1)[order]
    laid_out = lay_out(pool, ends)
    # Intern that text: equal pretokens get one number, whose counts add up and whose earliest sight counts.
    merged = intern(laid_out, spans, WHOLE, keep_sequence=True)
    totals = np.zeros(len(merged.starts), dtype=np.int64)
    np.add.at(totals, merged.sequence, counts[order])
    earliest = np.full(len(totals), np.iinfo(np.int64).max)
    np.minimum.at(earliest, merged.sequence, first_seen[order])
    compacted = _compacted(laid_out, merged)
    return replace(compacted, counts=totals, first_seen=earliest)


def shifted(counts: PretokenCounts, num_bytes: int) -> PretokenCounts:
    """The counts of a shard that begins `num_bytes` after the start of the whole text."""
    return replace(counts, first_seen=counts.first_seen + num_bytes)
