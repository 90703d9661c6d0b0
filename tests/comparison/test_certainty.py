"""Intervals that cover, three outcomes known by construction, and advice that is true."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.coverage import RATIOS, coverage, equal_sizes
from compare.baselines.leads import lead_over
from compare.certainty.conditions import CANNOT_BE_SAID, HOLDS, condition_of, exit_code
from compare.certainty.decision import decide
from compare.certainty.intervals import ASSUMED_SEED_SD, Estimate, Interval, over_text, t_quantile
from compare.certainty.pairs import Certainty, Pair, Spread, block_units, document_units, summarize
from compare.certainty.stored import certainty_as_json, certainty_from_json
from compare.certainty.verdict import answer, as_json, how_sure, noise_sentence
from data.errors import ConfigError, ReportError
from model.evaluate import Evaluation

Float64Array = NDArray[np.float64]


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


def runs_of(
    bits: float, *, seeds: int = 3, documents: int = 30, noise: float = 0.0, wobble: float = 0.001, number: int = 1
) -> list[Evaluation]:
    """One contestant's evaluations: `bits` per character, `noise` over seeds, `wobble` of its own over documents."""
    rng = np.random.default_rng(number)
    own = rng.normal(0.0, wobble, documents)
    means = bits + noise * np.linspace(-1.0, 1.0, seeds) if seeds > 1 else [bits]
    return [evaluation_of([[float((mean + one) * math.log(2))] * 50 for one in own - own.mean()]) for mean in means]


# ---- quantiles and intervals ----


@pytest.mark.parametrize(
    ("degrees_of_freedom", "table"), [(1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (math.inf, 1.960), (1e9, 1.960)]
)
def test_the_t_quantiles_are_those_of_the_tables(degrees_of_freedom: float, table: float) -> None:
    assert round(t_quantile(degrees_of_freedom), 3) == table


@pytest.mark.parametrize(("units", "seeds", "ratio"), [(2, 0, 0.0), (3, 3, 1.0), (20, 2, 3.0)])
def test_an_interval_covers_as_often_as_it_says(units: int, seeds: int, ratio: float) -> None:
    """Of 800 draws at 95 %, the share that holds the truth has a standard deviation of 0.8 %."""
    assert 0.92 <= coverage(units, seeds, ratio, equal_sizes, times=800) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [0, 2, 3, 5, 20])
@pytest.mark.parametrize("units", [2, 3, 5, 20])
def test_every_interval_covers_with_few_units_and_seeds(units: int, seeds: int) -> None:
    """93 to 97 %, but up to 98 % where one noise has one degree of freedom and the other two to four."""
    few = {units, seeds} in ({2, 3}, {2, 5}, {2})
    for ratio in RATIOS if seeds else (0.0,):
        share = coverage(units, seeds, ratio, equal_sizes, times=4_000)
        assert 0.92 <= share <= (0.99 if few else 0.98), (units, seeds, ratio)


def test_the_interval_over_text_is_that_of_a_paired_t_test_where_documents_are_equally_long() -> None:
    differences = [0.1, 0.3, 0.2, 0.4]
    found = over_text(np.array(differences) * 100, np.zeros(4), np.full(4, 100))
    assert found is not None
    half_width = 3.182446 * np.std(differences, ddof=1) / 2.0
    assert found.interval.low == pytest.approx(0.25 - half_width, rel=1e-5)
    assert found.interval.high == pytest.approx(0.25 + half_width, rel=1e-5)


def test_two_documents_of_any_lengths_have_the_exact_t_interval() -> None:
    """The variance of a weighted mean of two rates is their squared difference over 2, times the squared weights."""
    for sizes in ([10, 10], [10, 1_000], [1, 1_000_000_000]):
        chars = np.array(sizes, np.int64)
        found = over_text(np.array([0.1, 0.3]) * chars, np.zeros(2), chars)
        assert found is not None
        weights = chars / chars.sum()
        assert found.variance == pytest.approx(0.2**2 / 2.0 * float((weights**2).sum()), rel=1e-6)


def test_units_without_characters_do_not_count_and_one_unit_has_no_interval() -> None:
    assert over_text(np.array([1.0, 0.0]), np.zeros(2), np.array([10, 0])) is None
    two = over_text(np.array([1.0, 2.0]), np.zeros(2), np.array([10, 10]))
    assert two == over_text(np.array([1.0, 0.0, 2.0]), np.zeros(3), np.array([10, 0, 10]))


# ---- outcomes ----


def outcome_of(contestants: dict[str, list[Evaluation]], baseline: str | None = None) -> tuple[Certainty, str]:
    count = len(next(iter(contestants.values())))
    certainty = summarize(contestants, list(range(1, count + 1)), baseline=baseline)
    return certainty, answer(certainty)


KNOWN = {
    "char": runs_of(2.0),
    "better": runs_of(1.5, number=2),
    "worse": runs_of(2.5, number=3),
    "equal": runs_of(2.001, number=4),
    "undecided": runs_of(1.99, noise=0.2, number=5),
}


@pytest.mark.parametrize("order", list(itertools.permutations(KNOWN)))
def test_known_answers_in_every_order_of_listing(order: tuple[str, ...]) -> None:
    certainty, said = outcome_of({name: KNOWN[name] for name in order})
    assert said == (
        "better is better than char. equal and char are equal. worse is worse than char. "
        "Not decided between char and undecided."
    )
    assert len(how_sure(certainty)) == len(certainty.pairs_with_baseline) == 4
    assert noise_sentence(certainty) is None
    assert certainty_from_json(certainty_as_json(certainty)) == certainty


def test_another_baseline_turns_the_question_round() -> None:
    contestants = {name: KNOWN[name] for name in ("char", "better", "worse")}
    assert outcome_of(contestants, "better")[1] == "char and worse are worse than better."
    assert outcome_of({name: KNOWN[name] for name in ("worse", "better")})[1] == "better is better than worse."
    with pytest.raises(ConfigError, match="baseline: no contestant 'nobody'"):
        summarize(contestants, [1, 2, 3], baseline="nobody")


def test_the_order_of_two_contestants_mirrors_the_pair() -> None:
    [pair] = outcome_of({"a": KNOWN["char"], "b": KNOWN["better"]})[0].pairs
    [other] = outcome_of({"b": KNOWN["better"], "a": KNOWN["char"]})[0].pairs
    assert other.difference == -pair.difference and (pair.outcome, other.outcome) == ("b", "a")
    for kind in ("interval", "documents"):
        one, two = getattr(pair, kind), getattr(other, kind)
        assert (one.low, one.high) == pytest.approx((-two.high, -two.low), rel=1e-12)


def test_a_contestant_against_itself_is_equal() -> None:
    [pair] = outcome_of({"a": KNOWN["char"], "b": KNOWN["char"]})[0].pairs
    assert (pair.outcome, pair.difference, str(pair.interval)) == ("equal", 0.0, "0.000 to 0.000")


def test_one_seed_inside_the_assumed_noise_is_not_decided() -> None:
    lead = 1.5 * ASSUMED_SEED_SD
    certainty, said = outcome_of({"char": runs_of(2.0, seeds=1), "bpe": runs_of(2.0 - lead, seeds=1, number=2)})
    [pair] = certainty.pairs
    assert said == "Not decided between char and bpe."
    assert pair.reason.startswith("one seed: another training may change the difference by 0.033 (assumed noise)")
    assert "seeds (now 1)" in pair.reason
    noise = noise_sentence(certainty)
    assert noise is not None and "assumed" in noise
    far = outcome_of({"char": runs_of(2.0, seeds=1), "bpe": runs_of(1.9, seeds=1, number=2)})
    assert far[1] == "bpe is better than char."


@pytest.mark.parametrize(
    ("seeds", "documents", "said"),
    [(2, 9, True), (2, 10, False), (9, 2, True), (10, 2, False), (3, 3, False), (2, 2, True)],
)
def test_few_documents_and_seeds_are_named_where_intervals_cover_more(seeds: int, documents: int, said: bool) -> None:
    contestants = {name: runs_of(bits, seeds=seeds, documents=documents) for name, bits in (("char", 2.0), ("b", 1.5))}
    noise = noise_sentence(summarize(contestants, list(range(seeds))))
    assert (noise is not None) == said
    if noise is not None:
        assert f"with {seeds} seeds and {documents} documents they can cover 98 %" in noise


def test_one_short_document_has_no_interval_and_no_winner() -> None:
    one = {name: [evaluation_of([[bits] * 386])] for name, bits in (("char", 2.0), ("bpe", 1.0))}
    certainty, said = outcome_of(one)
    assert (certainty.num_documents, certainty.num_blocks, certainty.pairs[0].interval) == (1, 1, None)
    assert said == "Not decided between char and bpe."
    assert "no interval, one seed, training noise assumed): the test text is too short" in how_sure(certainty)[0]


def test_one_long_document_is_cut_into_blocks() -> None:
    rng = np.random.default_rng(1)
    contestants = {
        name: [evaluation_of([rng.exponential(bits, 9_000).tolist()])] for name, bits in (("char", 2.0), ("bpe", 1.0))
    }
    certainty = summarize(contestants, [1], block_characters=1_000)
    assert (certainty.num_documents, certainty.num_blocks, certainty.pairs[0].documents) == (1, 9, None)
    assert certainty.pairs[0].outcome == "b"
    assert "over 9 blocks of 1,000 characters of one document" in how_sure(certainty)[0]


def test_a_measured_bound_widens_the_margin() -> None:
    contestants = {"char": KNOWN["char"], "better": KNOWN["better"]}
    narrow = summarize(contestants, [1, 2, 3], margins={"better": 0.001}).pairs[0]
    wide = summarize(contestants, [1, 2, 3], margins={"better": 0.3}).pairs[0]
    assert narrow.margin == pytest.approx(0.005 * 2.0) and narrow.outcome == "b"
    assert wide.margin == pytest.approx(0.3 * 2.0) and wide.outcome == "equal"


def test_too_little_training_comes_first() -> None:
    certainty, _ = outcome_of({"char": KNOWN["char"], "better": KNOWN["better"]})
    assert answer(certainty, ["bz2", "xz"]) == (
        "Too little training to say: bz2 and xz need fewer bits than every model. better is better than char."
    )
    alone, said = outcome_of({"char": KNOWN["char"]})
    assert said == "char is the only contestant." and "nobody to compare" in how_sure(alone)[0]
    assert as_json(certainty, test_chars=7, budget="b", stronger=["xz"])["stronger_than_all_models"] == ["xz"]


def test_the_lead_of_a_baseline_is_paired_by_document_where_it_has_a_figure_for_each() -> None:
    """A lead that is the same on every document has no variance over text; a single figure has the model's."""
    runs = [evaluation_of([[nats] * 40 for nats in (1.0, 2.0, 3.0)]) for _ in range(2)]
    nats = np.repeat([0.9, 1.9, 2.9], 40)
    rate = float(nats.mean()) / math.log(2)
    paired, alone = lead_over(runs, rate, nats), lead_over(runs, rate)
    assert paired is not None and alone is not None
    assert (paired.low, paired.high) == pytest.approx((0.1 / math.log(2),) * 2, abs=1e-6)
    half_width = 4.302653 / math.log(2) / math.sqrt(3)  # t quantile of two degrees of freedom times sd / sqrt(3)
    assert (alone.high - alone.low) / 2.0 == pytest.approx(half_width, rel=1e-5)
    [one] = [lead_over(runs[:1], rate, nats)]
    assert one is not None
    assert (one.high - one.low) / 2.0 == pytest.approx(1.959964 * ASSUMED_SEED_SD, rel=1e-5)
    assert lead_over([evaluation_of([[1.0] * 40])], rate) is None


# ---- what would decide ----


@pytest.mark.parametrize("difference", [0.0, 0.003, 0.009, 0.011, 0.05, 0.4])
@pytest.mark.parametrize("num_seeds", [1, 2, 3, 8])
@pytest.mark.parametrize(("text_sd", "seed_sd"), [(0.001, 0.02), (0.02, 0.001), (0.02, 0.03), (0.3, 0.3)])
def test_what_is_said_to_decide_does(difference: float, num_seeds: int, text_sd: float, seed_sd: float) -> None:
    """With the named seeds and units, the same difference and noise, the outcome is decided."""
    num_units, margin = 10, 0.01
    text = Estimate(difference, text_sd**2, num_units - 1.0)
    seeds = Estimate(difference, seed_sd**2 / num_seeds, num_seeds - 1.0 if num_seeds > 1 else math.inf)
    outcome, reason = decide(text, seeds, margin, num_seeds=num_seeds, num_units=num_units, unit="documents")
    if outcome != "undecided":
        assert reason == ""
        return
    advice = reason.rpartition("; ")[2]
    if "too small" in advice or "larger budget" in advice:
        return
    for way in [advice] if "together" in advice else advice.removesuffix(" would decide").split(" or "):
        words = way.replace(",", "").split()
        more_seeds = next((int(words[k - 1]) for k, word in enumerate(words) if word == "seeds"), num_seeds)
        more_units = next((int(words[k - 1]) for k, word in enumerate(words) if word == "documents"), num_units)
        assert (more_seeds, more_units) != (num_seeds, num_units)
        own = seeds.degrees_of_freedom if more_seeds == num_seeds else more_seeds - 1.0
        grown = Estimate(difference, text_sd**2 * num_units / more_units, more_units - 1.0)
        repeated = Estimate(difference, seed_sd**2 / more_seeds, own)
        found, _ = decide(grown, repeated, margin, num_seeds=more_seeds, num_units=more_units, unit="documents")
        assert found == ("b" if difference >= margin else "equal"), (reason, way)


# ---- units, and what is refused ----


def test_blocks_and_documents_hold_all_bits_and_all_characters() -> None:
    # Tokens of 3 characters cross the borders of blocks of 4, and a token of 0 continues the character before it.
    evaluation = evaluation_of([[3.0, 6.0, 1.0], [], [9.0, 0.5]], [[3, 3, 0], [], [3, 1]])
    blocks, documents = block_units([evaluation], 4), document_units([evaluation])
    assert blocks.num_chars.tolist() == [4, 4, 2]  # the last block is shorter
    assert (blocks.bits[0] * math.log(2)).tolist() == pytest.approx([3 + 2, 2 + 2 + 1 + 3 + 3, 3 + 0.5])
    assert documents.num_chars.tolist() == [6, 0, 4]
    assert (documents.bits[0] * math.log(2)).tolist() == pytest.approx([10.0, 0.0, 9.5])


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
    with pytest.raises(ConfigError, match="block_characters"):
        summarize({"a": [one], "b": [one]}, [1], block_characters=0)


# ---- conditions ----


def certainty_of(**outcomes: str) -> Certainty:
    """Contestants next to `char`, each better (`b`), worse (`a`), equal or undecided."""
    interval = Interval(0.0, 0.0)
    pairs = tuple(
        Pair("char", name, (0.0,), interval, interval, interval, 0.01, outcome, "")  # type: ignore[arg-type]
        for name, outcome in outcomes.items()
    )
    spreads = tuple(Spread(name, (1,), (2.0,)) for name in ("char", *outcomes))
    return Certainty(2, 2, (1,), spreads, pairs, baseline="char")


@pytest.mark.parametrize(
    ("written", "code"),
    [
        (["worse:bpe"], HOLDS),
        (["better:bpe"], 0),
        (["better:byte"], HOLDS),
        (["equal:same"], HOLDS),
        (["worse:same"], 0),
        (["worse:open"], CANNOT_BE_SAID),
        (["better:open"], CANNOT_BE_SAID),
        (["undecided:open"], HOLDS),
        (["undecided:bpe"], 0),
        (["undecided"], HOLDS),
        (["worse:open", "worse:bpe"], HOLDS),
        (["better:bpe", "worse:open"], CANNOT_BE_SAID),
        ([], 0),
    ],
)
def test_conditions_have_exit_codes(written: list[str], code: int) -> None:
    certainty = certainty_of(bpe="a", byte="b", same="equal", open="undecided")
    names = [one.name for one in certainty.contestants]
    assert exit_code([condition_of(one, names, "char") for one in written], certainty) == code


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("wors:bpe", "'wors' is not one of worse, better, equal, undecided"),
        ("", "'' is not one of"),
        ("worse", "expected a contestant behind the word, such as worse:bpe"),
        ("worse:", "expected a contestant"),
        ("undecided:", "expected a contestant"),
        ("worse:bp", "no contestant 'bp'"),
        ("worse:char", "char is the baseline contestant"),
    ],
)
def test_a_condition_that_means_nothing_is_refused(written: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"--fail-if {written}: .*{message}"):
        condition_of(written, ["char", "bpe"], "char")
