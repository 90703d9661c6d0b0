"""The ruler is straight: a source of known entropy, measured through the whole chain by characters and by BPE."""

import math
import random
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from chain_helpers import write_experiment
from compare.experiment import load_experiment
from compare.steps import Steps
from data.files import read_json

SYMBOLS = "\nabcdefghij "  # the newline ends a document and begins the next
END_PROBABILITY = 1 / 150


def transition_matrix(seed: int) -> NDArray[np.float64]:
    """Row s: probabilities of the symbol after s. Every symbol may end a document with the same small probability."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(len(SYMBOLS) - 1, 0.4), size=len(SYMBOLS))
    ends = np.full((len(SYMBOLS), 1), END_PROBABILITY)
    ends[0] = 0.0  # no empty document
    return np.hstack([ends, rows * (1 - ends)])


def entropy_rate(matrix: NDArray[np.float64]) -> float:
    """Bits per character of the endless source, from its stationary distribution."""
    values, vectors = np.linalg.eig(matrix.T)
    stationary = np.real(vectors[:, np.argmin(np.abs(values - 1))])
    stationary /= stationary.sum()
    logs = np.log2(matrix, out=np.zeros_like(matrix), where=matrix > 0)
    return float(-(stationary[:, None] * matrix * logs).sum())


def sample(matrix: NDArray[np.float64], num_chars: int, seed: int) -> str:
    rng = random.Random(seed)
    rows = matrix.tolist()
    state, drawn = 0, []
    while len(drawn) < num_chars or state != 0:
        state = rng.choices(range(len(SYMBOLS)), weights=rows[state])[0]
        drawn.append(SYMBOLS[state])
    return "".join(drawn)


def own_bits(matrix: NDArray[np.float64], text: str) -> float:
    """Bits per character that the true source itself needs for `text`."""
    states = [0, *(SYMBOLS.index(character) for character in text)]
    probabilities = matrix[states[:-1], states[1:]]
    return float(-np.log2(probabilities).sum() / len(text))


def test_the_sources_own_bits_approach_its_rate() -> None:
    matrix = transition_matrix(7)
    assert own_bits(matrix, sample(matrix, 100_000, seed=5)) == pytest.approx(entropy_rate(matrix), rel=0.01)


def test_the_rate_of_a_fair_coin() -> None:
    assert entropy_rate(np.full((2, 2), 0.5)) == pytest.approx(1.0)


@pytest.mark.timeout(120)
def test_characters_and_bpe_find_the_true_rate_and_neither_goes_below_it(tmp_path: Path) -> None:
    matrix = transition_matrix(7)
    texts = {split: sample(matrix, size, seed) for split, size, seed in (("train", 300_000, 1), ("val", 20_000, 2))}
    texts["test"] = sample(matrix, 30_000, seed=3)
    paths = {}
    for split, text in texts.items():
        paths[split] = str(tmp_path / f"{split}.txt")
        Path(paths[split]).write_text(text, encoding="utf-8")
    values = {
        "corpus": {"source": "text", "name": "markov", "separator": "\n", **paths},
        "contestants": {
            "char": {"tokenizer": {"kind": "char"}},
            "bpe": {"tokenizer": {"kind": "char_bpe", "vocab_size": 40}},
        },
        "model": {"block_size": 32, "embedding_dim": 32, "num_heads": 2, "num_layers": 1, "dropout": 0.0},
        "train": {
            "budget": {"unit": "characters", "amount": 1_200_000},
            "batch_size": 32,
            "learning_rate": 1e-2,
            "val_characters": 20_000,
            "num_threads": 1,
        },
        "root": str(tmp_path / "run"),
    }
    steps = Steps(load_experiment(write_experiment(tmp_path / "markov.yaml", values)))
    rate, own = entropy_rate(matrix), own_bits(matrix, texts["test"])
    assert math.isclose(rate, own, rel_tol=0.02)  # the sample is typical, so the bounds below mean something
    found = {name: read_json(steps.train(name))["splits"]["test"] for name in ("char", "bpe")}
    for name, test in found.items():
        assert test["num_chars"] == len(texts["test"])
        assert test["bits_per_char"] >= own, (name, test["bits_per_char"], own)
        assert test["bits_per_char"] <= 1.05 * rate, (name, test["bits_per_char"], rate)
    assert found["bpe"]["num_tokens"] < found["char"]["num_tokens"]
