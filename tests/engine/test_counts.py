"""Pretoken counts: exact, mergeable, and enough to train on."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import TokenizerError
from factories import examples
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.engine import intern
from tokenizer.engine.counts import (
    PretokenCounts,
    character_offsets,
    count_pretokens,
)
from tokenizer.pretokenize import SplitPattern, pretokenize
from tokenizer.reference import TIE_BREAKS, TieBreak
from tokenizer.train import TokenizerConfig, learn_from_counts, learn_merges
from tokenizer_helpers import LOSSLESS_TEXTS, SURROGATES

SCANNED: list[SplitPattern] = ["space", "gpt2", "gpt4"]
DOCUMENTS = ["the cat sat on the mat, the cat's 12 mats\n", "", "“Ünïcode” the  cät 123 the\n", "\n", "a the cat\n"] * 2

documents_lists = st.lists(
    st.lists(st.sampled_from(["the", " the", " cat", "'s", "  ", "\n", "é", " 12", "!"]), max_size=12).map("".join),
    min_size=1,
    max_size=8,
)


@pytest.fixture(scope="module", autouse=True)
def _compile_the_kernels() -> None:
    """The first call compiles, which is nobody's example."""
    count_pretokens(["a b"], "gpt2")


def counts_of(words: dict[bytes, int], first_seen: Sequence[int] | None = None) -> PretokenCounts:
    return PretokenCounts(
        np.frombuffer(b"".join(words), dtype=np.uint8),
        np.cumsum([0, *map(len, words)], dtype=np.int64),
        np.array(list(words.values()), dtype=np.int64),
        np.array(range(len(words)) if first_seen is None else first_seen, dtype=np.int64),
    )


def check_counts(documents: Sequence[str], pattern: SplitPattern, num_threads: int | None) -> None:
    wanted: Counter[bytes] = Counter()
    first_seen: dict[bytes, int] = {}
    at = 0
    for document in documents:
        for pretoken in pretokenize(document, pattern):
            raw = pretoken.encode()
            wanted[raw] += 1
            first_seen.setdefault(raw, at)
            at += len(raw)
    counts = count_pretokens(documents, pattern, num_threads=num_threads)
    pretokens = counts.pretokens()
    assert pretokens == list(first_seen)
    assert counts.counts.tolist() == [wanted[pretoken] for pretoken in pretokens]
    assert counts.first_seen.tolist() == list(first_seen.values())
    assert {counts.counts.dtype, counts.first_seen.dtype, counts.offsets.dtype} == {np.dtype(np.int64)}


# ------------------------------------------------------------------------------------------------------------- counting


@pytest.mark.parametrize("pattern", SCANNED)
@pytest.mark.parametrize("num_threads", [1, 2, 3, 7])
def test_counts_texts_that_others_lose(
    pattern: SplitPattern, num_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_counts(list(LOSSLESS_TEXTS.values()), pattern, num_threads)
    monkeypatch.setattr(intern, "_SPAN_BYTES", 3)
    check_counts(list(LOSSLESS_TEXTS.values()), pattern, num_threads)
    check_counts([" ".join(LOSSLESS_TEXTS.values())], pattern, num_threads)


@pytest.mark.parametrize("pattern", SCANNED)
@examples(40)
@given(documents=documents_lists, num_threads=st.integers(1, 4), span_bytes=st.integers(1, 30))
def test_counts(pattern: SplitPattern, documents: list[str], num_threads: int, span_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intern, "_SPAN_BYTES", span_bytes)
        check_counts(documents, pattern, num_threads)


@pytest.mark.parametrize("documents", [[], [""], ["", "", ""]])
def test_nothing_to_count(documents: list[str]) -> None:
    check_counts(documents, "gpt2", None)
    assert count_pretokens(documents, "gpt2").pretokens() == []


def test_threads_that_meet_many_new_pretokens() -> None:
    """Each thread finds tens of thousands that the others do not have, and some that all have."""
    words = [f" w{number % 30_000}" for number in range(0, 300_000, 7)]
    check_counts(["".join(words)], "space", 3)


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(TokenizerError, match="3"):
        count_pretokens([SURROGATES["high"]], "gpt2")


def test_offsets_in_characters() -> None:
    words = ["é", "a", "東京", "\U0001f600x", "z"]
    raw = [word.encode() for word in words]
    pool = np.frombuffer(b"".join(raw), dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, raw)], dtype=np.int64)
    assert character_offsets(pool, offsets).tolist() == [0, 1, 2, 4, 6, 7]
    nothing = character_offsets(np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64))
    assert nothing.tolist() == [0]


# ------------------------------------------------------------------------------------------------- training from counts


def test_counts_beyond_32_bits() -> None:
    counts = counts_of({b"ab": 2**32 + 1, b"cd": 2**41})
    config = TokenizerConfig("byte_bpe", 300)
    merges = learn_from_counts(counts, BYTE_CHARACTERS, config, num_merges=9).merges
    assert [merge.count for merge in merges] == [2**41, 2**32 + 1]


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("kind", ["char_bpe", "byte_bpe"])
@pytest.mark.parametrize("pattern", SCANNED)
def test_training_from_counts_is_training_from_the_text(kind: str, pattern: SplitPattern, tie_break: TieBreak) -> None:
    config = TokenizerConfig(kind, 999, split_pattern=pattern, tie_break=tie_break)  # type: ignore[arg-type]
    base = sorted(set("".join(DOCUMENTS))) if kind == "char_bpe" else BYTE_CHARACTERS
    found = learn_from_counts(count_pretokens(DOCUMENTS, pattern), base, config, num_merges=60)
    assert found == learn_merges(DOCUMENTS, base, config, num_merges=60)
    assert found == learn_merges(DOCUMENTS, base, config, num_merges=60, engine_name="reference")
    assert len(found.merges) > 10
