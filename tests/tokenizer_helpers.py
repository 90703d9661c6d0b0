"""What the tests of the tokenizer package share: small splits, both trainers behind one call, and nasty texts."""

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.splits import Split
from tokenizer import reference
from tokenizer.engine import kernels
from tokenizer.engine import loop as engine
from tokenizer.engine.counts import PretokenCounts
from tokenizer.engine.cuts import NEVER
from tokenizer.engine.encode import encode_texts
from tokenizer.engine.intern import lay_out
from tokenizer.engine.piece import MergeTable
from tokenizer.export.texts import HOSTILE_TEXTS
from tokenizer.reference import Pair, TieBreak, Training

PROJECT = Path(__file__).resolve().parents[1]
FIXTURES = Path(__file__).resolve().parent / "fixtures"
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

EVERY_BYTE = [bytes([byte]) for byte in range(256)]

LOSSLESS_TEXTS = HOSTILE_TEXTS

SURROGATES = {
    "high": "ab \ud800 c",
    "low": "ab \udfff c",
    "a pair of them": "ab \ud83d\ude00 c",  # UTF-16 would spell an emoji so; in a str these are two lone surrogates
}


def make_split(name: str, documents: Sequence[str]) -> Split:
    """A split as `data.splits.load_split` would give it."""
    text = "".join(documents)
    return Split(
        name=name,
        text=text,
        document_offsets=np.cumsum([0, *map(len, documents)], dtype=np.int64),
        # A lone surrogate has no UTF-8 form; such a split can only come from a caller that bypasses the data package.
        sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
    )


def make_splits(train: Sequence[str], val: Sequence[str], test: Sequence[str]) -> dict[str, Split]:
    """The three splits of a corpus, from their documents."""
    return {"train": make_split("train", train), "val": make_split("val", val), "test": make_split("test", test)}


def flatten(sequences: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """The kernels' form of `sequences`: symbols (N,) int32 and offsets (P+1,) int64."""
    symbols = np.array([symbol for sequence in sequences for symbol in sequence], dtype=np.int32)
    return symbols, np.cumsum([0, *map(len, sequences)], dtype=np.int64)


def train_with(
    trainer: str,
    sequences: Sequence[Sequence[int]],
    base_bytes: Sequence[bytes],
    *,
    num_merges: int,
    min_pair_frequency: int,
    tie_break: TieBreak,
) -> Training:
    """Train with `reference` or `engine` on the same input."""
    if trainer == "reference":
        return reference.train(
            sequences,
            base_bytes,
            num_merges=num_merges,
            min_pair_frequency=min_pair_frequency,
            tie_break=tie_break,
        )
    assert trainer == "engine"
    symbols, offsets = flatten(sequences)
    return engine.train(
        symbols,
        offsets,
        np.ones(len(sequences), dtype=np.int64),
        list(base_bytes),
        num_merges=num_merges,
        min_pair_frequency=min_pair_frequency,
        tie_break=tie_break,
    )


def merge_table(merges: Sequence[Pair], base_size: int, limit: int) -> MergeTable:
    """A table over base symbols below 256, where byte b is symbol b."""
    pairs = np.array(merges, dtype=np.int32).reshape(-1, 2)
    return MergeTable(
        pairs=pairs,
        ranks=kernels.build_ranks(pairs),
        low_ranks=kernels.build_low_ranks(pairs, base_size),
        base_ids=np.arange(256, dtype=np.int32),
        is_bytes=True,
        base_size=base_size,
        limit=limit,
    )


def encode_with(
    encoder: str, sequences: Sequence[Sequence[int]], merges: Sequence[Pair], base_size: int, limit: int | None = None
) -> list[list[int]]:
    """Encode every sequence with `reference` or `engine`; `limit` uses only the first so many merges."""
    limit = len(merges) if limit is None else limit
    if encoder == "reference":
        return [reference.encode(sequence, merges[:limit], base_size) for sequence in sequences]
    assert encoder == "engine"
    symbols, offsets = flatten(sequences)
    laid_out = lay_out(symbols.astype(np.uint8), offsets[1:])
    ids, ends = encode_texts(laid_out, merge_table(merges, base_size, limit), "none", NEVER)
    assert ends[0] == 0 and ends[-1] == len(ids) and len(ends) == len(sequences) + 1
    return [ids[start:end].tolist() for start, end in pairwise(ends)]


def train_on_words(
    trainer: str, words: Sequence[str], *, num_merges: int, min_pair_frequency: int, tie_break: TieBreak
) -> tuple[list[tuple[str, str, int, int]], str]:
    """Train on `words` over their sorted characters: [(left, right, count, replacements)], and the stop reason."""
    alphabet = sorted(set("".join(words)))
    training = train_with(
        trainer,
        [[alphabet.index(character) for character in word] for word in words],
        [character.encode() for character in alphabet],
        num_merges=num_merges,
        min_pair_frequency=min_pair_frequency,
        tie_break=tie_break,
    )
    tokens, rows = list(alphabet), []
    for rank, merge in enumerate(training.merges):
        left, right = (tokens[half] for half in merge.pair)
        assert (merge.rank, merge.new_id) == (rank, len(tokens))
        tokens.append(left + right)
        rows.append((left, right, merge.count, merge.replacements))
    return rows, training.stop_reason


def read_shared(name: str) -> str:
    """A text of the shared data, line ends untouched; skips the test visibly where the folder is absent."""
    path = SHARED_DATA / name
    if not path.exists():
        pytest.skip(f"needs the shared development text {name}")
    return path.read_bytes().decode("utf-8")


def assert_same_counts(found: PretokenCounts, wanted: PretokenCounts) -> None:
    for field in fields(PretokenCounts):
        one, other = getattr(found, field.name), getattr(wanted, field.name)
        assert one.dtype == other.dtype, field.name
        np.testing.assert_array_equal(one, other, err_msg=field.name)
