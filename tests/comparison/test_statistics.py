import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compare.statistics import (
    FEW_DOCUMENTS,
    TIE_SHARE,
    Interval,
    block_units,
    document_units,
    paired_bootstrap,
    ranked_names,
    sentence,
    summarize,
    verdict_of,
    verdict_sentence,
)
from data.errors import ConfigError, ReportError
from model.evaluate import Evaluation

BUDGET = "at equal characters seen (20,000,000)"


def evaluation_of(
    nats: Sequence[Sequence[float]], lengths: Sequence[Sequence[int]] | None = None, text: str = "text"
) -> Evaluation:
    """One evaluation from the losses of each document's tokens; tokens are single characters unless told."""
    lengths = [[1] * len(document) for document in nats] if lengths is None else lengths
    token_num_chars = np.array([length for document in lengths for length in document], np.int32)
    return Evaluation(
        nats=np.array([loss for document in nats for loss in document], np.float32),
        token_num_chars=token_num_chars,
        token_num_bytes=token_num_chars,
        document_offsets=np.cumsum([0, *map(len, nats)]),
        disjoint_total_nats=0.0,
        text_sha256=text,
        tokenizer_fingerprint="tokenizer",
        stride=1,
        block_size=2,
    )


def random_documents(
    rng: np.random.Generator, num_chars: Sequence[int], mean_bits: float, wobble: float = 0.05
) -> list[list[float]]:
    """Losses of single characters in multiples of 1/1024 nat, so that every sum of them is exact."""
    rates = rng.normal(mean_bits, wobble, len(num_chars)) * math.log(2)
    draws = [rng.exponential(rate, n) for rate, n in zip(rates, num_chars, strict=True)]
    return [[float(loss) for loss in np.round(document * 1024) / 1024] for document in draws]


def units(rng: np.random.Generator, count: int) -> tuple[Any, Any, NDArray[np.int64]]:
    num_chars = rng.integers(50, 500, count)
    return rng.normal(2.0, 0.3, count) * num_chars, rng.normal(1.9, 0.3, count) * num_chars, num_chars


def statistics_of(
    *,
    means: dict[str, float],
    documents: Interval | None,
    blocks: Interval | None = None,
    num_documents: int = 60,
    by_seed: Sequence[float] | None = None,
) -> dict[str, Any]:
    """Statistics of two contestants, as summarize writes them."""
    a, b = means
    difference = means[a] - means[b]
    by_seed = [difference] if by_seed is None else by_seed
    seeds = list(range(1, len(by_seed) + 1))
    deviation = float(np.std(by_seed, ddof=1)) if len(by_seed) > 1 else None
    statistics: dict[str, Any] = {
        "num_documents": num_documents,
        "block_characters": 2000,
        "num_blocks": 194,
        "contestants": {
            name: {"seeds": seeds, "bits_per_char": [mean] * len(seeds), "mean": mean, "sd": deviation}
            for name, mean in means.items()
        },
    }
    pair: dict[str, Any] = {"a": a, "b": b, "difference": difference, "by_seed": by_seed, "by_seed_sd": deviation}
    pair["documents"] = None if documents is None else documents._asdict()
    pair["blocks"] = None if blocks is None else blocks._asdict()
    pair["verdict"], pair["why"] = verdict_of(pair, statistics)
    statistics["pairs"] = [pair]
    return statistics


# ---- the interval against known answers ----


def test_the_interval_covers_the_true_difference_as_often_as_it_says() -> None:
    """Documents of random length whose difference grows with the length, and a hardness that both contestants share.

    The true value is E[difference of a document] / E[its characters]. A mean of ratios misses it (0.20 instead of
    0.24), and an interval that forgets the pairing is so wide that it always covers.
    """
    lengths = np.arange(500, 5_000)
    slope = 0.2 / lengths.mean()
    truth = float((slope * lengths**2).sum() / lengths.sum())
    rng = np.random.default_rng(2024)
    covered = 0
    for run in range(400):
        num_chars = rng.choice(lengths, 200)
        hardness = rng.normal(2.0, 0.5, 200) * num_chars
        bits_a = hardness + (slope * num_chars + rng.normal(0.0, 0.1, 200)) * num_chars
        interval = paired_bootstrap(bits_a, hardness, num_chars, resamples=1_000, seed=run)
        assert interval is not None
        covered += interval.low <= truth <= interval.high
    assert 0.93 <= covered / 400 <= 0.97
    assert truth > 0.23


def test_an_independent_slow_bootstrap_gives_the_same_interval() -> None:
    rng = np.random.default_rng(5)
    bits_a, bits_b, num_chars = units(rng, 13)
    order = np.argsort(num_chars)
    bits_a, bits_b, num_chars = bits_a[order], bits_b[order], num_chars[order]
    assert len(set(num_chars)) == 13 and bits_a[0] > bits_b[0]  # already in the order and direction that are drawn
    draws = np.random.default_rng(3)
    figures = []
    for _ in range(501):
        bits = characters = 0.0
        for unit in draws.integers(13, size=13):
            bits += bits_a[unit] - bits_b[unit]
            characters += num_chars[unit]
        figures.append(bits / characters)
    figures.sort()
    low, between = divmod(0.025 * 500, 1)
    below, above = int(low), 500 - int(low)
    expected = (
        figures[below] + between * (figures[below + 1] - figures[below]),
        figures[above] - between * (figures[above] - figures[above - 1]),
    )
    interval = paired_bootstrap(bits_a, bits_b, num_chars, resamples=501, seed=3)
    assert interval is not None
    assert tuple(interval) == pytest.approx(expected, rel=1e-12)


def test_with_many_units_the_interval_is_that_of_the_normal_approximation() -> None:
    bits_a, bits_b, num_chars = units(np.random.default_rng(6), 2_000)
    ratio = (bits_a - bits_b).sum() / num_chars.sum()
    residual = bits_a - bits_b - ratio * num_chars
    error = residual.std() / math.sqrt(2_000) / num_chars.mean()  # delta method for a ratio of sums
    interval = paired_bootstrap(bits_a, bits_b, num_chars, resamples=4_000, seed=1)
    assert interval is not None
    assert interval.low == pytest.approx(ratio - 1.96 * error, abs=0.1 * error)
    assert interval.high == pytest.approx(ratio + 1.96 * error, abs=0.1 * error)


def test_a_constant_difference_per_character_leaves_no_doubt() -> None:
    num_chars = np.array([10, 300, 7, 44])
    interval = paired_bootstrap(2.5 * num_chars, 2.25 * num_chars, num_chars, resamples=200, seed=1)
    assert interval == Interval(0.25, 0.25)


@pytest.mark.parametrize("count", [2, 9, 60])
def test_the_order_of_the_units_changes_nothing_and_the_other_direction_mirrors(count: int) -> None:
    rng = np.random.default_rng(count)
    bits_a, bits_b, num_chars = units(rng, count)
    num_chars[: count // 2] = 70  # ties between lengths too
    interval = paired_bootstrap(bits_a, bits_b, num_chars, resamples=500, seed=9)
    assert interval is not None
    assert interval != paired_bootstrap(bits_a, bits_b, num_chars, resamples=500, seed=10) or count < 60
    for _ in range(5):
        order = rng.permutation(count)
        shuffled = paired_bootstrap(bits_a[order], bits_b[order], num_chars[order], resamples=500, seed=9)
        assert shuffled == interval
        other_way = paired_bootstrap(bits_b[order], bits_a[order], num_chars[order], resamples=500, seed=9)
        assert other_way == Interval(-interval.high, -interval.low)


def test_units_that_are_symmetric_around_zero_have_a_symmetric_interval() -> None:
    bits_a, bits_b = np.array([3.0, 1.0, 5.0]), np.array([1.0, 3.0, 5.0])
    interval = paired_bootstrap(bits_a, bits_b, np.array([4, 4, 9]), resamples=101, seed=2)
    assert interval is not None
    assert interval.low == -interval.high < 0
    assert paired_bootstrap(bits_b, bits_a, np.array([4, 4, 9]), resamples=101, seed=2) == interval


def test_a_mirrored_zero_stays_positive() -> None:
    assert str(Interval(-0.25, 0.0).mirrored().low) == "0.0"


def test_empty_units_are_left_out_and_one_unit_has_no_interval() -> None:
    bits_a, bits_b, num_chars = units(np.random.default_rng(1), 8)
    full = paired_bootstrap(bits_a, bits_b, num_chars, resamples=300, seed=1)
    padded = [np.insert(array, [0, 5, 8], 0) for array in (bits_a, bits_b, num_chars)]
    assert paired_bootstrap(*padded, resamples=300, seed=1) == full
    one = [np.array([4.0, 0.0]), np.array([3.0, 0.0]), np.array([2, 0])]
    assert paired_bootstrap(*one, resamples=300, seed=1) is None


def test_drawing_in_pieces_gives_what_drawing_at_once_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    bits_a, bits_b, num_chars = units(np.random.default_rng(1), 30)
    whole = paired_bootstrap(bits_a, bits_b, num_chars, resamples=1_001, seed=1)
    monkeypatch.setattr("compare.statistics._DRAWS_AT_ONCE", 100)
    assert paired_bootstrap(bits_a, bits_b, num_chars, resamples=1_001, seed=1) == whole


# ---- units ----


def test_blocks_and_documents_hold_all_bits_and_all_characters() -> None:
    # Tokens of 3 characters cross the borders of blocks of 4, and a token of 0 continues the character before it.
    evaluation = evaluation_of([[3.0, 6.0, 1.0], [], [9.0, 0.5]], [[3, 3, 0], [], [3, 1]])
    blocks, documents = block_units([evaluation], 4), document_units([evaluation])
    assert blocks.num_chars.tolist() == [4, 4, 2]  # the last block is shorter
    assert (blocks.bits * math.log(2)).tolist() == pytest.approx([3 + 2, 2 + 2 + 1 + 3 + 3, 3 + 0.5])
    assert documents.num_chars.tolist() == [6, 0, 4]
    assert (documents.bits * math.log(2)).tolist() == pytest.approx([10.0, 0.0, 9.5])


@pytest.mark.parametrize("block_characters", [1, 7, 100, 5_000])
def test_block_sums_conserve_the_bits(block_characters: int) -> None:
    evaluation = evaluation_of(random_documents(np.random.default_rng(4), [400, 1, 350], 2.0))
    blocks = block_units([evaluation], block_characters)
    assert blocks.bits.sum() == pytest.approx(evaluation.total_nats / math.log(2), rel=1e-12)
    assert blocks.num_chars.sum() == 751
    assert set(blocks.num_chars[:-1]) <= {block_characters}


def test_units_average_the_seeds() -> None:
    seeds = [evaluation_of([[1.0, 2.0], [4.0]]), evaluation_of([[3.0, 4.0], [0.0]])]
    assert (document_units(seeds).bits * math.log(2)).tolist() == pytest.approx([5.0, 2.0])
    assert (block_units(seeds, 2).bits * math.log(2)).tolist() == pytest.approx([5.0, 2.0])


# ---- the summary ----


def test_the_summary_holds_what_the_report_reads() -> None:
    rng = np.random.default_rng(7)
    lengths = rng.integers(50, 150, 40).tolist()
    contestants = {
        name: [evaluation_of(random_documents(rng, lengths, bits)) for _ in range(3)]
        for name, bits in (("char", 2.2), ("bpe", 2.0), ("byte", 3.0))
    }
    summary = summarize(contestants, [1, 2, 5], resamples=400, seed=8, block_characters=100)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert (summary["resamples"], summary["seed"], summary["block_characters"]) == (400, 8, 100)
    assert (summary["num_documents"], summary["num_blocks"]) == (40, math.ceil(sum(lengths) / 100))
    char = summary["contestants"]["char"]
    assert char["seeds"] == [1, 2, 5]
    assert char["bits_per_char"] == [evaluation.bits_per_char for evaluation in contestants["char"]]
    assert char["mean"] == pytest.approx(sum(char["bits_per_char"]) / 3)
    assert char["sd"] ** 2 == pytest.approx(sum((bits - char["mean"]) ** 2 for bits in char["bits_per_char"]) / 2)
    assert [(pair["a"], pair["b"]) for pair in summary["pairs"]] == [("char", "bpe"), ("char", "byte"), ("bpe", "byte")]
    pair = summary["pairs"][0]
    bpe = summary["contestants"]["bpe"]
    assert pair["difference"] == pytest.approx(char["mean"] - bpe["mean"])
    assert pair["by_seed"] == [a - b for a, b in zip(char["bits_per_char"], bpe["bits_per_char"], strict=True)]
    assert pair["by_seed_sd"] == pytest.approx(float(np.std(pair["by_seed"], ddof=1)))
    assert pair["verdict"] == "b"
    for kind in ("documents", "blocks"):
        assert 0 < pair[kind]["low"] < pair["difference"] < pair[kind]["high"]
    assert ranked_names(summary) == ["bpe", "char", "byte"]


def test_one_seed_has_no_deviation() -> None:
    rng = np.random.default_rng(7)
    contestants = {name: [evaluation_of(random_documents(rng, [90] * 30, 2.0))] for name in ("a", "b")}
    summary = summarize(contestants, [1], resamples=100)
    assert summary["contestants"]["a"]["sd"] is None
    assert summary["pairs"][0]["by_seed_sd"] is None
    assert summary["pairs"][0]["by_seed"] == [summary["pairs"][0]["difference"]]


def test_a_contestant_against_itself_is_a_tie_at_exactly_zero() -> None:
    evaluation = evaluation_of(random_documents(np.random.default_rng(1), [200] * 25, 2.0))
    pair = summarize({"a": [evaluation], "b": [evaluation]}, [1], resamples=200)["pairs"][0]
    assert pair["documents"] == pair["blocks"] == {"low": 0.0, "high": 0.0}
    assert math.copysign(1.0, pair["documents"]["low"]) == 1.0  # not written as -0.0
    assert (pair["difference"], pair["verdict"]) == (0.0, "tie")


def test_two_contestants_with_no_true_difference_tie_as_often_as_the_interval_says() -> None:
    rng = np.random.default_rng(12)
    ties = 0
    for _ in range(100):
        contestants = {name: [evaluation_of(random_documents(rng, [20] * 60, 2.0, 0.5))] for name in ("a", "b")}
        pair = summarize(contestants, [1], resamples=500)["pairs"][0]
        holds_zero = pair["documents"]["low"] <= 0 <= pair["documents"]["high"]
        assert pair["verdict"] == "tie" or not holds_zero
        ties += holds_zero
    assert 88 <= ties <= 99


def test_permuting_the_documents_changes_no_bit_of_the_interval_over_documents() -> None:
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 80, 30)
    documents = {name: [random_documents(rng, lengths, 2.0) for _ in range(3)] for name in ("a", "b")}
    order = rng.permutation(30)

    def pair(indices: Any) -> dict[str, Any]:
        evaluations = {
            name: [evaluation_of([seed[index] for index in indices]) for seed in seeds]
            for name, seeds in documents.items()
        }
        found: dict[str, Any] = summarize(evaluations, [1, 2, 3], resamples=300, block_characters=50)["pairs"][0]
        return {key: value for key, value in found.items() if key != "blocks"}  # blocks are cut from the whole text

    assert pair(order) == pair(range(30))


def test_the_order_of_the_contestants_mirrors_the_pair() -> None:
    rng = np.random.default_rng(3)
    contestants = {name: [evaluation_of(random_documents(rng, [60] * 40, bits))] for name, bits in (("a", 2), ("b", 3))}
    pair = summarize(contestants, [1], resamples=300)["pairs"][0]
    other = summarize(dict(reversed(contestants.items())), [1], resamples=300)["pairs"][0]
    assert other["difference"] == -pair["difference"]
    for kind in ("documents", "blocks"):
        assert other[kind] == {"low": -pair[kind]["high"], "high": -pair[kind]["low"]}
    assert (pair["verdict"], other["verdict"]) == ("a", "b")
    assert pair["why"] == other["why"]


def test_one_document_has_only_blocks_and_one_block_has_nothing() -> None:
    rng = np.random.default_rng(3)
    contestants = {
        name: [evaluation_of([*random_documents(rng, [3_000], bits), []])] for name, bits in (("a", 2), ("b", 3))
    }
    summary = summarize(contestants, [1], resamples=300, block_characters=100)
    pair = summary["pairs"][0]
    assert summary["num_documents"] == 1 and pair["documents"] is None
    assert pair["blocks"]["high"] < 0 and pair["verdict"] == "a"
    text = sentence(pair, summary, BUDGET)
    assert "over 30 blocks of 100 characters" in text and "one document, so no interval over documents" in text
    summary = summarize(contestants, [1], resamples=300, block_characters=3_000)
    assert (summary["num_blocks"], summary["pairs"][0]["blocks"]) == (1, None)
    assert "no interval: the text is a single block, 1 seed" in sentence(summary["pairs"][0], summary, BUDGET)


def test_what_does_not_fit_together_is_refused() -> None:
    one, short = evaluation_of([[1.0, 2.0], [3.0]]), evaluation_of([[1.0], [3.0]])
    moved = evaluation_of([[1.0], [2.0, 3.0]])
    with pytest.raises(ReportError, match="b has 1 runs for the 2 seeds"):
        summarize({"a": [one, one], "b": [one]}, [1, 2])
    with pytest.raises(ReportError, match="a and b were scored on different texts"):
        summarize({"a": [one], "b": [evaluation_of([[1.0, 2.0], [3.0]], text="other")]}, [1])
    for other in (short, moved):
        with pytest.raises(ReportError, match="different texts or documents"):
            summarize({"a": [one, one], "b": [one, other]}, [1, 2])
    with pytest.raises(ReportError, match="repeat"):
        summarize({"a": [one, one]}, [3, 3])
    with pytest.raises(ReportError, match="nothing to compare"):
        summarize({}, [1])
    with pytest.raises(ReportError, match="empty text"):
        summarize({"a": [evaluation_of([[], []])]}, [1])
    with pytest.raises(ConfigError, match="resamples"):
        summarize({"a": [one], "b": [one]}, [1], resamples=0)
    with pytest.raises(ConfigError, match="block_characters"):
        summarize({"a": [one], "b": [one]}, [1], block_characters=0)


def test_two_contestants_on_a_large_text() -> None:
    rng = np.random.default_rng(1)
    lengths = rng.multinomial(1_300_000, rng.dirichlet(np.full(60, 2.0)))

    def evaluation(token_chars: int) -> Evaluation:
        tokens = [[token_chars] * int(n // token_chars) + [1] * int(n % token_chars) for n in lengths]
        return evaluation_of([rng.exponential(1.0, len(document)).tolist() for document in tokens], tokens)

    contestants = {"char": [evaluation(1)], "bpe": [evaluation(3)]}
    summary = summarize(contestants, [1])
    assert (summary["resamples"], summary["num_documents"], summary["num_blocks"]) == (10_000, 60, 650)


# ---- the verdict and its words ----


@pytest.mark.parametrize(
    ("gap", "interval", "verdict"),
    [
        (-0.21, Interval(-0.24, -0.18), "a"),
        (0.21, Interval(0.18, 0.24), "b"),
        (0.21, Interval(-0.01, 0.43), "tie"),
        (0.21, Interval(0.0, 0.43), "tie"),
        (2.0 * TIE_SHARE + 0.0001, Interval(0.009, 0.011), "b"),
        (2.0 * TIE_SHARE - 0.0001, Interval(0.009, 0.011), "tie"),  # sure, but the canonical segmentation may cost it
        (0.21, None, "b"),
    ],
)
def test_the_verdict(gap: float, interval: Interval | None, verdict: str) -> None:
    means = {"a": 2.0 + min(gap, 0.0), "b": 2.0 - max(gap, 0.0)}
    assert statistics_of(means=means, documents=interval)["pairs"][0]["verdict"] == verdict


@pytest.mark.parametrize(
    ("num_documents", "documents", "verdict"),
    [
        (1, None, "tie"),
        (FEW_DOCUMENTS - 1, Interval(0.18, 0.24), "tie"),
        (FEW_DOCUMENTS, Interval(0.18, 0.24), "b"),
    ],
)
def test_blocks_decide_with_one_document_and_join_in_with_few(
    num_documents: int, documents: Interval | None, verdict: str
) -> None:
    doubtful = Interval(-0.02, 0.45)
    found = statistics_of(
        means={"a": 2.21, "b": 2.0}, documents=documents, blocks=doubtful, num_documents=num_documents
    )
    assert found["pairs"][0]["verdict"] == verdict


@pytest.mark.parametrize("names", [("char", "bpe"), ("bpe", "char")])
def test_the_sentence_of_a_winner(names: tuple[str, str]) -> None:
    means = {name: {"char": 2.46, "bpe": 2.25}[name] for name in names}
    sign = 1 if names[0] == "char" else -1
    interval = Interval(0.18, 0.24) if sign == 1 else Interval(-0.24, -0.18)
    statistics = statistics_of(means=means, documents=interval, by_seed=[0.2 * sign, 0.21 * sign, 0.22 * sign])
    assert sentence(statistics["pairs"][0], statistics, BUDGET) == (
        "bpe needs 0.210 fewer bits per character than char (95 % interval 0.180 to 0.240 over 60 documents, "
        "3 seeds with standard deviation 0.010), at equal characters seen (20,000,000)."
    )
    assert statistics["pairs"][0]["why"] == (
        "0.210 fewer bits per character, 95 % interval 0.180 to 0.240 over 60 documents without zero"
    )


def test_the_sentences_of_a_tie() -> None:
    statistics = statistics_of(means={"bpe": 2.479, "char": 2.493}, documents=Interval(-0.04, 0.01))
    assert sentence(statistics["pairs"][0], statistics, "at equal steps") == (
        "bpe (2.479) and char (2.493) are a tie: the 95 % interval of the difference, -0.010 to 0.040 over "
        "60 documents, holds zero (1 seed), at equal steps."
    )
    statistics = statistics_of(means={"bpe": 2.484, "char": 2.493}, documents=Interval(-0.01, -0.00801))
    assert sentence(statistics["pairs"][0], statistics, "at equal steps") == (
        "bpe (2.484) and char (2.493) are a tie: the difference of 0.009 (95 % interval 0.008 to 0.010 over "
        "60 documents) is under 0.5 % of the larger figure (1 seed), at equal steps."
    )


def test_the_sentence_of_one_document_and_of_few() -> None:
    blocks = Interval(-0.24, -0.18)
    statistics = statistics_of(means={"bpe": 2.25, "char": 2.46}, documents=None, blocks=blocks, num_documents=1)
    assert sentence(statistics["pairs"][0], statistics, BUDGET) == (
        "bpe needs 0.210 fewer bits per character than char (95 % interval 0.180 to 0.240 over 194 blocks of 2,000 "
        "characters, 1 seed; one document, so no interval over documents), at equal characters seen (20,000,000)."
    )
    documents = Interval(-0.25, -0.17)
    statistics = statistics_of(means={"bpe": 2.25, "char": 2.46}, documents=documents, blocks=blocks, num_documents=8)
    assert sentence(statistics["pairs"][0], statistics, BUDGET) == (
        "bpe needs 0.210 fewer bits per character than char (95 % interval 0.170 to 0.250 over 8 documents, 0.180 to "
        "0.240 over 194 blocks of 2,000 characters, 1 seed; few documents, so the interval over them tends to be too "
        "narrow), at equal characters seen (20,000,000)."
    )


def test_seeds_that_disagree_are_told() -> None:
    statistics = statistics_of(
        means={"bpe": 2.25, "char": 2.46}, documents=Interval(-0.24, -0.18), by_seed=[-0.4, -0.4, 0.17]
    )
    assert "1 of them the other way round" in sentence(statistics["pairs"][0], statistics, BUDGET)


def test_many_contestants_are_one_sentence_in_the_order_of_the_ranking() -> None:
    rng = np.random.default_rng(7)
    contestants = {
        name: [evaluation_of(random_documents(rng, [300] * 30, bits))]
        for name, bits in (("worst", 4.0), ("best", 2.0), ("middle", 3.0))
    }
    summary = summarize(contestants, [1], resamples=100)
    names = ranked_names(summary)
    assert names == ["best", "middle", "worst"]
    text = verdict_sentence(summary, names, BUDGET)
    first, second = text.split("; ")
    assert first.startswith("best needs ") and " than middle (95 % interval" in first
    assert second.startswith("middle needs ") and " than worst (95 % interval" in second
    assert text.count(BUDGET) == 1 and text.endswith(f", {BUDGET}.")
    assert text == verdict_sentence(summarize(dict(reversed(contestants.items())), [1], resamples=100), names, BUDGET)
    assert verdict_sentence(summary, names[:2], BUDGET) == f"{first}, {BUDGET}."


def test_a_single_contestant_gets_a_figure_and_no_victory() -> None:
    seeds = [evaluation_of([[math.log(2)] * 4]), evaluation_of([[math.log(4)] * 4])]
    summary = summarize({"char": seeds}, [1, 2], resamples=10)
    assert summary["pairs"] == []
    assert verdict_sentence(summary, ["char"], "at equal steps") == (
        "char needs 1.500 bits per character (2 seeds with standard deviation 0.707), at equal steps; "
        "there is no other contestant to compare with."
    )
