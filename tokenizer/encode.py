"""Corpus encoding: each distinct pretoken is encoded once, then the ids are gathered straight into one array.

Without a split pattern the vocabulary itself says where to cut: between two bytes that stand side by side inside no
token, no merge can ever reach across. The pieces repeat as words do, so the same machinery serves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenizer.counts import gather_pool
from tokenizer.intern import CUTS, Interned, TextBytes, in_threads, intern, shares_of
from tokenizer.jit import kernel
from tokenizer.kernels import Int32Array, Int64Array, rank_of, replay
from tokenizer.pretokenize import SplitPattern
from tokenizer.scan import PATTERN_NUMBERS, UInt8Array

_LONG_PIECE = 128  # symbols; longer pieces are replayed in linear time, shorter ones merged by rank


@dataclass(frozen=True)
class MergeTable:
    """The merges in the form that the kernels want."""

    pairs: Int32Array
    """Shape (R, 2): the two ids that merge r joins."""
    ranks: Int64Array
    """The map from a pair to its rank (kernels.build_ranks)."""
    base_size: int
    limit: int
    """Only so many merges are used, the first ones."""


def joins_of(token_bytes: Sequence[bytes], pairs: Int32Array, limit: int, *, ascii_only: bool) -> UInt8Array:
    """Which two bytes may stand side by side inside a token, (256, 256), under the first `limit` merges.

    With `ascii_only` (base tokens that are longer than a byte) no cut is allowed beside a byte outside ASCII.
    """
    joins = np.zeros((256, 256), dtype=np.uint8)
    for left, right in pairs[:limit].tolist():
        joins[token_bytes[left][-1], token_bytes[right][0]] = 1
    if ascii_only:
        joins[0x80:, :] = 1
        joins[:, 0x80:] = 1
    return joins


def encode_texts(
    laid_out: TextBytes,
    table: MergeTable,
    split_pattern: SplitPattern,
    joins: UInt8Array,
    symbols_of: Callable[[UInt8Array, Int64Array], tuple[Int32Array, Int64Array]],
    *,
    num_threads: int | None = None,
) -> tuple[Int64Array, Int64Array]:
    """Ids of all documents, int64, and their D+1 offsets.

    `symbols_of` turns a pool of pretokens (bytes, offsets) into base ids and their offsets; what it raises passes.
    """
    pattern = PATTERN_NUMBERS.get(split_pattern, CUTS)

    def distinct(share: Int64Array) -> tuple[Interned, Int32Array, Int64Array]:
        interned = intern(laid_out, share, pattern, joins=joins, keep_sequence=True)
        symbols, offsets = symbols_of(*gather_pool(laid_out.text, interned.starts, interned.lengths))
        return interned, *encode_pieces(symbols, offsets, table)

    shares = shares_of(laid_out, num_threads, joins=joins if pattern == CUTS else None)
    encoded = in_threads(distinct, shares)
    totals = [int((np.diff(offsets) * interned.counts).sum()) for interned, _, offsets in encoded]
    bounds = np.cumsum([0, *totals])
    all_ids = np.empty(bounds[-1], dtype=np.int64)

    def gather(number: int) -> Int64Array:
        interned, ids, offsets = encoded[number]
        part = all_ids[bounds[number] : bounds[number + 1]]
        ends: Int64Array = _gather(interned.sequence, interned.span_ends, ids, offsets, part) + bounds[number]
        return ends

    span_ends = np.concatenate(in_threads(gather, range(len(shares))))
    spans = np.concatenate(shares)
    # A document's last span ends where the document ends; of spans that end there (empty documents) all do.
    last_spans = _last_spans(spans, laid_out.ends)
    return all_ids, np.concatenate([np.zeros(1, dtype=np.int64), span_ends[last_spans]])


@kernel
def _last_spans(spans: Int64Array, document_ends: Int64Array) -> Any:
    """The index of each document's last span; spans stand in document order, and every document has one."""
    last = np.empty(len(document_ends), dtype=np.int64)
    span = 0
    for document in range(len(document_ends)):
        while spans[span, 1] != document_ends[document]:
            span += 1
        last[document] = span
        span += 1
    return last


@kernel
def _gather(
    sequence: Int32Array, span_ends: Int64Array, ids: Int32Array, offsets: Int64Array, target: Int64Array
) -> Any:
    """Write the ids of every pretoken of `sequence` to `target`; returns where each span ends there."""
    ends = np.empty(len(span_ends), dtype=np.int64)
    at, start = 0, 0
    for span in range(len(span_ends)):
        for index in range(start, span_ends[span]):
            number = sequence[index]
            for i in range(offsets[number], offsets[number + 1]):
                target[at] = ids[i]
                at += 1
        ends[span] = at
        start = span_ends[span]
    return ends


def encode_pieces(symbols: Int32Array, offsets: Int64Array, table: MergeTable) -> tuple[Int32Array, Int64Array]:
    """Ids of every piece symbols[offsets[p]:offsets[p+1]], and their offsets: the replay of the merges."""
    encoded: tuple[Int32Array, Int64Array] = _encode_pieces(
        *(symbols, offsets, table.pairs, table.ranks, table.limit, table.base_size, _LONG_PIECE)
    )
    return encoded


@kernel
def _encode_pieces(
    symbols: Int32Array,
    offsets: Int64Array,
    pairs: Int32Array,
    ranks: Int64Array,
    limit: int,
    base_size: int,
    long_piece: int,
) -> Any:
    ids = np.empty(len(symbols), dtype=np.int32)
    id_offsets = np.zeros(len(offsets), dtype=np.int64)
    window_ranks = np.empty(long_piece, dtype=np.int64)
    count = 0
    for piece in range(len(offsets) - 1):
        start, end = offsets[piece], offsets[piece + 1]
        if end - start > long_piece:
            replayed = replay(symbols[start:end], pairs, ranks, limit, base_size)
            ids[count : count + len(replayed)] = replayed
            count += len(replayed)
        else:
            for i in range(end - start):
                ids[count + i] = symbols[start + i]
            count += _merge_by_rank(ids, count, end - start, window_ranks, ranks, limit, base_size)
        id_offsets[piece + 1] = count
    return ids[:count].copy(), id_offsets


@kernel
def _merge_by_rank(
    ids: Int32Array, start: int, size: int, window_ranks: Int64Array, ranks: Int64Array, limit: int, base_size: int
) -> Any:
    """Merge the piece ids[start : start + size] in place, always the leftmost window of lowest rank; its new size.

    That is the replay: a merge only makes windows of higher rank than its own, so no lower rank ever comes back, and
    windows of one rank are taken from the left. `window_ranks` is room for the rank of each window; `limit` is none.
    """
    for i in range(size - 1):
        window_ranks[i] = rank_of(ranks, ids[start + i], ids[start + i + 1], limit)
    while size > 1:
        best, lowest = 0, window_ranks[0]
        for i in range(1, size - 1):
            if window_ranks[i] < lowest:
                best, lowest = i, window_ranks[i]
        if lowest >= limit:
            break
        size -= 1
        here = start + best
        ids[here] = base_size + lowest
        for i in range(best + 1, size):
            ids[start + i] = ids[start + i + 1]
            window_ranks[i - 1] = window_ranks[i]
        if best > 0:
            window_ranks[best - 1] = rank_of(ranks, ids[here - 1], ids[here], limit)
        if best < size - 1:
            window_ranks[best] = rank_of(ranks, ids[here], ids[here + 1], limit)
    return size
