"""The engine against the reference through `learn_merges`: patterns, kinds, threads; and against plain recounts."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import examples
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.engine import intern
from tokenizer.pretokenize import SPLIT_PATTERNS, SplitPattern, pretokenize
from tokenizer.reference import TIE_BREAKS, Pair, TieBreak
from tokenizer.train import TokenizerConfig, learn_merges
from tokenizer.vocabulary import merge_strings
from tokenizer_helpers import read_shared

# From one to four distinct characters, of one to four bytes each.
ALPHABETS = ["a", " ", "a ", "ab", "é ", "ab ", "a'\n", "a1 ", "ab c", "é東 \U0001f600", "a's "]
documents_lists = st.sampled_from(ALPHABETS).flatmap(
    lambda characters: st.lists(
        st.one_of(
            st.text(characters, max_size=24),
            st.lists(st.tuples(st.sampled_from(characters), st.integers(1, 9)), max_size=5).map(
                lambda pieces: "".join(character * length for character, length in pieces)
            ),
        ),
        min_size=1,
        max_size=4,
    )
)
Case = tuple[list[str], str, SplitPattern, TieBreak, int, int, int, int]
cases = st.tuples(
    documents_lists,
    st.sampled_from(["char_bpe", "byte_bpe"]),
    st.sampled_from(SPLIT_PATTERNS),
    st.sampled_from(TIE_BREAKS),
    st.integers(0, 30),  # merges
    st.integers(1, 3),  # minimum frequency
    st.sampled_from([1, 2]),  # threads
    st.integers(1, 30),  # bytes of a span
)


def check_case(case: Case) -> None:
    """Merges, counts, replacements and stop reason are those of the reference; so are the ids."""
    documents, kind, split_pattern, tie_break, num_merges, minimum, num_threads, span_bytes = case
    config = TokenizerConfig(
        kind,  # type: ignore[arg-type]
        999,
        min_pair_frequency=minimum,
        split_pattern=split_pattern,
        tie_break=tie_break,
    )
    # The base in an order that is not that of the bytes, so that the tie rules differ.
    base = sorted(set("".join(documents)), reverse=True) if kind == "char_bpe" else BYTE_CHARACTERS[::-1]
    wanted = learn_merges(documents, base, config, num_merges=num_merges, engine_name="reference")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intern, "usable_cores", lambda: num_threads)
        patch.setattr(intern, "_SPAN_BYTES", span_bytes)
        assert learn_merges(documents, base, config, num_merges=num_merges) == wanted


@examples(120)
@given(cases)
def test_equals_the_reference(case: Case) -> None:
    check_case(case)


# ------------------------------------------------------------------------------------------------- recounting real text


def best_by_recount(
    pieces: Sequence[str], tokenizer: BPETokenizer, rank: int, tie_break: TieBreak
) -> tuple[Pair, int, int]:
    """The pair that should win round `rank`, its windows, and the tokens before it: counted again with numpy."""
    ids, offsets = tokenizer.encode_documents(pieces, limit=rank)
    is_window = np.ones(len(ids), dtype=bool)
    is_window[offsets[1:] - 1] = False  # the last token of a piece begins no window
    at = np.flatnonzero(is_window)
    keys, first, counts = np.unique(ids[at] << 32 | ids[at + 1], return_index=True, return_counts=True)
    most = int(counts.max())
    tied = [(int(key) >> 32, int(key) & 0xFFFFFFFF) for key in keys[counts == most]]
    if tie_break == "first_seen":
        winner = tied[int(first[counts == most].argmin())]
    elif tie_break == "lowest_ids":
        winner = min(tied)
    else:
        winner = max(tied, key=lambda pair: tuple(tokenizer.token_bytes[half] for half in pair))
    return winner, most, len(ids)


RANKS = [0, 1, 10, 100, 500, 1_000, 1_500, 1_900, 1_990, 1_999]


@pytest.mark.slow
@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize(
    ("kind", "split_pattern"),
    [("char_bpe", "none"), ("char_bpe", "gpt2"), ("byte_bpe", "none"), ("byte_bpe", "gpt4"), ("byte_bpe", "space")],
)
def test_2000_merges_of_wikitext(kind: str, split_pattern: SplitPattern, tie_break: TieBreak) -> None:
    text = read_shared("wikitext2/wiki.test.raw")
    base = sorted(set(text)) if kind == "char_bpe" else BYTE_CHARACTERS
    config = TokenizerConfig(kind, 9_999, split_pattern=split_pattern, tie_break=tie_break)  # type: ignore[arg-type]
    training = learn_merges([text], base, config, num_merges=2_000)
    assert (len(training.merges), training.stop_reason) == (2_000, "target reached")
    tokenizer = BPETokenizer(base, merge_strings(base, training), kind=kind)  # type: ignore[arg-type]
    pieces = pretokenize(text, split_pattern)
    for rank in RANKS:
        merge = training.merges[rank]
        winner, count, num_tokens = best_by_recount(pieces, tokenizer, rank, tie_break)
        assert (merge.rank, merge.pair, merge.count, merge.new_id) == (rank, winner, count, len(base) + rank)
        after, _ = tokenizer.encode_documents(pieces, limit=rank + 1)
        assert merge.replacements == num_tokens - len(after)


def naive_greatest_bytes(text: str, num_merges: int) -> list[tuple[bytes, bytes]]:
    """The trainer of the CS336 assignment as one would write it first: count all pairs of all words every round."""
    words = Counter(tuple(bytes([byte]) for byte in word.encode()) for word in pretokenize(text, "gpt2"))
    merges = []
    for _ in range(num_merges):
        counts: Counter[tuple[bytes, bytes]] = Counter()
        for word, number in words.items():
            for pair in pairwise(word):
                counts[pair] += number
        left, right = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append((left, right))
        merged: Counter[tuple[bytes, ...]] = Counter()
        for word, number in words.items():
            halves, i = [], 0
            while i < len(word):
                is_found = word[i : i + 2] == (left, right)
                halves.append(left + right if is_found else word[i])
                i += 2 if is_found else 1
            merged[tuple(halves)] += number
        words = merged
    return merges


@pytest.mark.slow
def test_the_rule_of_cs336_against_a_naive_trainer_of_its_own() -> None:
    """500 tokens on 133 kB: 256 bytes and 244 merges, ties to the lexicographically greatest pair of byte strings."""
    text = read_shared("wikitext2/wiki.test.raw").encode()[:133_000].decode("utf-8", "ignore")
    config = TokenizerConfig("byte_bpe", 500, split_pattern="gpt2", tie_break="greatest_bytes")
    training = learn_merges([text], BYTE_CHARACTERS, config, num_merges=244)
    tokenizer = BPETokenizer(
        BYTE_CHARACTERS, merge_strings(BYTE_CHARACTERS, training), kind="byte_bpe", split_pattern="gpt2"
    )
    learned = [tuple(tokenizer.token_bytes[tokenizer.stoi[half]] for half in pair) for pair in tokenizer.merges]
    assert learned == naive_greatest_bytes(text, 244)
