"""The engine gives exactly the reference's answers, also where the reference could not go."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import examples
from tokenizer import reference
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.engine import loop as engine
from tokenizer.reference import TIE_BREAKS, TieBreak
from tokenizer.train import TokenizerConfig, learn_merges
from tokenizer_helpers import PROJECT, flatten, read_shared, train_with

# Base bytes in an order that is not the order of the ids, so that the three rules differ.
# No token is spelled like others joined, as no character or byte is: `greatest_bytes` would be no total order.
BASE_BYTES = [b"m", b"z", b"a", b"mq"]

corpora = st.integers(1, 4).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, size - 1), max_size=24), min_size=1, max_size=5)
)
runs = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=8).map(
    lambda pieces: [symbol for symbol, length in pieces for _ in range(length)]
)
run_corpora = st.lists(runs, min_size=1, max_size=3)
sequence_lists = st.one_of(corpora, run_corpora)
training_cases = st.tuples(sequence_lists, st.integers(0, 30), st.integers(1, 3), st.sampled_from(TIE_BREAKS))

TrainingCase = tuple[list[list[int]], int, int, TieBreak]


@pytest.fixture(scope="module", autouse=True)
def _compile_the_kernels() -> None:
    """The first call compiles, which is nobody's example."""
    train_with("engine", [[0, 0]], [b"a"], num_merges=1, min_pair_frequency=1, tie_break="first_seen")


def check_training(case: TrainingCase) -> None:
    sequences, num_merges, minimum, tie_break = case
    expected, found = (
        train_with(
            trainer,
            sequences,
            BASE_BYTES,
            num_merges=num_merges,
            min_pair_frequency=minimum,
            tie_break=tie_break,
        )
        for trainer in ("reference", "engine")
    )
    assert found.merges == expected.merges
    assert found.stop_reason == expected.stop_reason


def check_weights(case: TrainingCase, weights: list[int]) -> None:
    sequences, num_merges, minimum, tie_break = case
    weights = (weights * len(sequences))[: len(sequences)]
    # Every pretoken once, in order of first sight; its repetitions behind, where they show nothing new.
    repeated = [sequence for sequence, weight in zip(sequences, weights, strict=True) for _ in range(weight - 1)]
    expected = reference.train(
        sequences + repeated, BASE_BYTES, num_merges=num_merges, min_pair_frequency=minimum, tie_break=tie_break
    )
    symbols, offsets = flatten(sequences)
    found = engine.train(
        symbols,
        offsets,
        np.array(weights, dtype=np.int64),
        BASE_BYTES,
        num_merges=num_merges,
        min_pair_frequency=minimum,
        tie_break=tie_break,
    )
    assert found == expected


@examples(300)
@given(training_cases)
def test_equals_the_reference(case: TrainingCase) -> None:
    check_training(case)


@examples(150)
@given(training_cases, st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_weights_equal_repetition(case: TrainingCase, weights: list[int]) -> None:
    check_weights(case, weights)


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_equals_the_reference_on_many_pairs(tie_break: TieBreak) -> None:
    """Enough distinct pairs that every array of the engine grows (it starts with room for 1,024)."""
    generator = np.random.default_rng(5)
    sequences = generator.integers(0, 64, size=(40, 150)).tolist()
    base_bytes = [bytes([255 - symbol]) for symbol in range(64)]
    expected, found = (
        train_with(trainer, sequences, base_bytes, num_merges=80, min_pair_frequency=1, tie_break=tie_break)
        for trainer in ("reference", "engine")
    )
    assert len(reference.count_pairs(sequences)) > 2048
    assert found == expected


def test_does_not_change_its_input() -> None:
    symbols, offsets = flatten([[0, 1, 0, 1], [0, 1]])
    weights = np.array([3, 4], dtype=np.int64)
    before = symbols.copy(), offsets.copy(), weights.copy()
    engine.train(symbols, offsets, weights, [b"a", b"b"], num_merges=3, min_pair_frequency=1, tie_break="lowest_ids")
    for array, copy in zip((symbols, offsets, weights), before, strict=True):
        np.testing.assert_array_equal(array, copy)


# --------------------------------------------------------------------------------------------- 64-bit counts


def train_on_counts(counts: dict[str, int], **settings_: object) -> list[tuple[str, int, int]]:
    """Train on pretoken counts over `abcdx`: [(token, count, replacements)]."""
    alphabet = "abcdx"
    symbols, offsets = flatten([[alphabet.index(character) for character in word] for word in counts])
    training = engine.train(
        symbols,
        offsets,
        np.array(list(counts.values()), dtype=np.int64),
        [character.encode() for character in alphabet],
        **{"num_merges": 10, "min_pair_frequency": 1, "tie_break": "first_seen", **settings_},  # type: ignore[arg-type]
    )
    tokens, rows = list(alphabet), []
    for merge in training.merges:
        tokens.append(tokens[merge.pair[0]] + tokens[merge.pair[1]])
        rows.append((tokens[-1], merge.count, merge.replacements))
    return rows


def test_weights_beyond_32_bits() -> None:
    # As 32-bit numbers these would be -2**31 + 1, 5 and 7: ab would come last.
    assert train_on_counts({"ab": 2**31 + 1, "cd": 2**32 + 5, "xx": 2**33 + 7}) == [
        ("xx", 2**33 + 7, 2**33 + 7),
        ("cd", 2**32 + 5, 2**32 + 5),
        ("ab", 2**31 + 1, 2**31 + 1),
    ]


def test_sums_beyond_32_bits() -> None:
    # No weight is beyond 31 bits, their sum is beyond 32.
    heavy = 2**31 - 1
    assert train_on_counts({"ab": heavy, "xab": heavy, "abx": heavy, "cd": heavy})[:2] == [
        ("ab", 3 * heavy, 3 * heavy),
        ("xab", heavy, heavy),
    ]


def test_weighted_overlaps_beyond_32_bits() -> None:
    assert train_on_counts({"aaa": 2**40})[0] == ("aa", 2 * 2**40, 2**40)


def test_minimum_frequency_beyond_32_bits() -> None:
    counts = {"ab": 2**40, "cd": 2**40 - 1}
    assert [token for token, *_ in train_on_counts(counts, min_pair_frequency=2**40)] == ["ab"]


@examples(60)
@given(training_cases)
def test_scaling_all_weights_scales_all_counts(case: TrainingCase) -> None:
    sequences, num_merges, minimum, tie_break = case
    scale = 2**40 + 3
    symbols, offsets = flatten(sequences)
    expected = train_with(
        "reference", sequences, BASE_BYTES, num_merges=num_merges, min_pair_frequency=minimum, tie_break=tie_break
    )
    found = engine.train(
        symbols,
        offsets,
        np.full(len(sequences), scale, dtype=np.int64),
        BASE_BYTES,
        num_merges=num_merges,
        min_pair_frequency=minimum * scale,
        tie_break=tie_break,
    )
    assert [(m.pair, m.count, m.replacements) for m in found.merges] == [
        (m.pair, m.count * scale, m.replacements * scale) for m in expected.merges
    ]
    assert found.stop_reason == expected.stop_reason


# ---------------------------------------------------------------------------------- from counts and from text


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("kind", ["char_bpe", "byte_bpe"])
@pytest.mark.parametrize("split_pattern", ["none", "space", "gpt2", "gpt4"])
def test_training_from_counts_equals_training_from_text(kind: str, split_pattern: str, tie_break: TieBreak) -> None:
    documents = ["the cat sat on the mat, the cat's 12 mats\n", "“Ünïcode” the  cät 123 the\n", "\n"] * 2
    config = TokenizerConfig(kind, 999, split_pattern=split_pattern, tie_break=tie_break)  # type: ignore[arg-type]
    base = sorted(set("".join(documents))) if kind == "char_bpe" else BYTE_CHARACTERS
    fast, slow = (
        learn_merges(documents, base, config, num_merges=60, engine_name=name) for name in ("fast", "reference")
    )
    assert len(slow.merges) > 10
    assert fast == slow


# ------------------------------------------------------------------------------------------ speed, determinism


@pytest.mark.parametrize("character", ["a", " ", "_"])
def test_a_run_of_a_million(character: str) -> None:
    text = character * 10**6
    # A quadratic step anywhere would take hours, beyond the limit of a test; near linear it is a fraction of a second.
    tokenizer = BPETokenizer.train(text, 20, 2, verbose=False)
    ids = tokenizer.encode(text)
    # 10**6 = 2**6 * 15,625: six even halvings, thirteen merges more leave 1 token of 2**19 and its remainder.
    assert tokenizer.tokens[-1] == character * 2**19
    assert tokenizer.vocab_size == 20
    assert tokenizer.decode(ids) == text
    assert [len(tokenizer.tokens[index]) for index in ids] == [2**k for k in range(19, -1, -1) if 10**6 & 2**k]


HASH_SEED_PROGRAM = """
from tokenizer.bpe import BPETokenizer
from tokenizer.train import TokenizerConfig, train_tokenizer
from tokenizer_helpers import make_splits
text = "DCBBABCDCBABCD bbbaaaddddcccc the cat the cät\\n"
splits = make_splits([text, text[::-1]], ["val\\n"], ["test\\n"])
for tie_break in ("first_seen", "lowest_ids", "greatest_bytes"):
    for engine_name in ("fast", "reference"):
        config = TokenizerConfig("char_bpe", 60, split_pattern="gpt2", tie_break=tie_break)
        print(train_tokenizer(config, splits, engine_name=engine_name)[0].fingerprint())
"""


def test_hash_order_decides_nothing() -> None:
    paths = os.pathsep.join([str(PROJECT), str(PROJECT / "tests")])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", HASH_SEED_PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "1", "2")
    ]
    outputs = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert outputs[0] == outputs[1] == outputs[2]
    assert len(outputs[0]) == 6
    assert len(set(outputs[0])) == 3  # three rules, two engines that agree


# ----------------------------------------------------------------------------------------------- golden values


def test_golden_values_of_200_000_characters() -> None:
    """The first 100,000 characters are in test_golden.py."""
    whole = read_shared("wikitext2/wiki.test.raw")
    text = whole[:200_000]
    base = sorted(set(whole))
    assert len(base) == 259
    tokenizer = BPETokenizer.train(text, 600, 2, base_tokens=base, verbose=False)
    assert tokenizer.fingerprint() == "41ffd3b6fab75efb146ed78fbfab4aa91d67b6f032fe95e21cfca39ce6d9bfd6"
    assert len(tokenizer.merges) == 341
    ids = tokenizer.encode(text)
    assert len(ids) == 87_898
    assert tokenizer.decode(ids) == text
