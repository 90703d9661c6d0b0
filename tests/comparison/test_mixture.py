"""The mixture with the n-gram is a distribution, its weight is the best one, and its sentence says what it adds."""

import itertools
import math

import numpy as np
import pytest

from compare.baselines.mixture import Mixture, best_weight, mixed_nats, mixture_of, share_of_model
from compare.baselines.ngram_search import NGram
from compare.certainty.intervals import Interval
from data.errors import ReportError
from data.files import sha256_text
from data.splits import Split
from model.evaluate import Evaluation

DOCUMENTS = ["abc\n", "bcab\n", "a\n", "cc\n"]


def split(name: str) -> Split:
    text = "".join(DOCUMENTS)
    return Split(name, text, np.cumsum([0, *map(len, DOCUMENTS)]), sha256_text(text))


def evaluation(per_char: float, sha256: str, size: int) -> Evaluation:
    """Tokens of up to `size` characters within a document."""
    tokens = [[min(size, len(d) - i) for i in range(0, len(d), size)] for d in DOCUMENTS]
    chars = np.array([n for document in tokens for n in document], np.int32)
    offsets = np.cumsum([0, *map(len, tokens)])
    return Evaluation((chars * per_char).astype(np.float32), chars, chars, offsets, 0.0, sha256, "", 1, 2)


def ngram() -> NGram:
    nats = np.full(len(split("val").text), 1.0)
    return NGram(1, (1.0,), False, (), {"val": nats, "test": nats})


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_over_the_alphabet_it_sums_to_one(weight: float) -> None:
    p, q = np.array([0.5, 0.2, 0.3]), np.array([0.1, 0.1, 0.8])
    mixed = mixed_nats(-np.log(p), -np.log(q), weight)
    assert np.exp(-mixed).sum() == pytest.approx(1.0, abs=1e-12)
    if weight in (0.0, 1.0):
        assert np.array_equal(mixed, -np.log(p if weight else q))


def test_over_all_short_texts_it_sums_to_one() -> None:
    texts = ["".join(t) for n in range(6) for t in itertools.product("ab", repeat=n)]
    p = {text: 0.7 ** text.count("a") * 0.3 ** text.count("b") / 6 for text in texts}
    q = {text: 0.2 ** text.count("a") * 0.8 ** text.count("b") / 6 for text in texts}
    mixed = mixed_nats(-np.log(list(p.values())), -np.log(list(q.values())), 0.4)
    assert np.exp(-mixed).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_weight_is_that_of_a_grid_search(seed: int) -> None:
    model, other = np.random.default_rng(seed).exponential(2.0, (2, 300))
    grid = np.linspace(0.0, 1.0, 1001)
    best = grid[np.argmin([mixed_nats(model, other, float(w)).sum() for w in grid])]
    assert best_weight(model, other) == pytest.approx(best, abs=1e-3)


def test_very_long_documents_do_not_overflow() -> None:
    assert best_weight(np.array([1e6, 1e5]), np.array([1e5, 1e6])) == pytest.approx(0.5)


@pytest.mark.parametrize(("size", "unit"), [(1, "character"), (2, "document")])
def test_known_answers(size: int, unit: str) -> None:
    splits = {name: split(name) for name in ("val", "test")}
    sha256 = splits["val"].sha256

    better = mixture_of("m", [dict.fromkeys(splits, evaluation(0.5, sha256, size))], ngram(), splits)
    assert (better.unit, better.weight, better.mixture) == (unit, 1.0, pytest.approx(0.5 / math.log(2)))
    assert "m and the n-gram together need 0.721, 0.721 fewer than the n-gram alone" in better.sentence
    assert ("whole documents were mixed" in better.sentence) == (size == 2)

    worse = mixture_of("m", [dict.fromkeys(splits, evaluation(2.0, sha256, size))], ngram(), splits)
    assert (worse.weight, worse.mixture) == (0.0, pytest.approx(worse.ngram))
    assert worse.sentence.startswith("m adds nothing to a character n-gram at this budget (mixture 1.443, n-gram")

    with pytest.raises(ReportError, match="m was scored on another val text"):
        mixture_of("m", [dict.fromkeys(splits, evaluation(2.0, "other", size))], ngram(), splits)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(0.05, 0.15, "adds"), (-0.05, 0.25, "undecided"), (-0.2, 0.009, "nothing"), (0.0, 0.0, "nothing")],
)
def test_three_outcomes(low: float, high: float, outcome: str) -> None:
    mixture = Mixture("m", "character", 0.5, 2.1, 2.0, 2.0 - (low + high) / 2.0, Interval(low, high))
    assert mixture.outcome == outcome
    assert ("adds nothing" in mixture.sentence) == (outcome == "nothing")
    assert ("is not decided" in mixture.sentence) == (outcome == "undecided")


@pytest.mark.parametrize("weight", [0.0, 0.2, 0.9, 1.0])
@pytest.mark.parametrize("num_chars", [1, np.arange(1, 51)])
def test_the_share_of_the_model_is_the_derivative_of_the_mixture(weight: float, num_chars: np.ndarray | int) -> None:
    model, other = np.random.default_rng(1).exponential(2.0, (2, 50))
    step, total = 1e-6, np.sum(np.broadcast_to(num_chars, 50))
    up, down = (mixed_nats(model + sign * step * num_chars, other, weight).sum() for sign in (1, -1))
    share = share_of_model(mixed_nats(model, other, weight), model, weight, num_chars)
    assert share == pytest.approx((up - down) / (2 * step) / total, abs=1e-6)
