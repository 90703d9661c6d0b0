"""Known curves: the law that is found, what is said of larger budgets, and when nothing is."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from budget_helpers import NOISE, curves_of, law, measured
from compare.ladder.answer import LadderAnswer, PairAnswer, answer_of
from compare.ladder.forecast import curve_back_tests, drawn_curve, range_of
from compare.ladder.law import Draws, fit
from compare.ladder.points import Curve, Point
from compare.ladder.simulate import curve_of
from compare.ladder.stored import answer_as_json, answer_from_json, verdict_as_json
from compare.ladder.words import cells, headline, lines


def curves(one: Draws, other: Draws, points: int = 5) -> list[Curve]:
    return curves_of({"char": one, "bpe": other}, points)


def answered(pair: Sequence[Curve], **changes: float) -> tuple[LadderAnswer, PairAnswer]:
    answer = answer_of(measured(pair, **changes))
    return answer, answer.pairs[0]


def changed(curve: Curve, **changes: float) -> Curve:
    return Curve(curve.contestant, tuple(dataclasses.replace(point, **changes) for point in curve.points))


NEVER = law(1.3, 0.9, 0.4), law(1.1, 0.8, 0.45)


def test_a_law_without_noise_is_found() -> None:
    times = 0.5 ** np.arange(5.0)[::-1]
    laws = fit(times, 1.2 + 0.8 * times**-0.35, 1e-10)
    best = np.unravel_index(laws.weights.argmax(), laws.weights.shape)
    assert laws.floors[best[0]] == pytest.approx(1.2, abs=2e-3)
    assert laws.exponents[best[1]] == pytest.approx(0.35, abs=2e-3)
    assert laws.factors[best] == pytest.approx(0.8, abs=2e-3)
    assert laws.weights.sum() == pytest.approx(1.0)


def test_the_interval_of_the_floor_holds_it() -> None:
    for seed in range(5):
        curve = curve_of("a", law(1.2, 0.8, 0.35), 5, 3, np.random.default_rng(seed), noise=NOISE)
        floor = range_of(drawn_curve(curve).floors).widened(1.5)
        assert floor.low < 1.2 < floor.high


def test_lack_of_fit_makes_the_answer_wider() -> None:
    times = 0.5 ** np.arange(5.0)[::-1]
    smooth = 1.2 + 0.8 * times**-0.35
    bent = smooth + np.array([0.0, 0.03, 0.0, -0.03, 0.0])
    spreads = [
        np.sqrt((laws.weights.sum(axis=1) * (laws.floors - laws.weights.sum(axis=1) @ laws.floors) ** 2).sum())
        for laws in (fit(times, smooth, 1e-6), fit(times, bent, 1e-6))
    ]
    assert spreads[1] > 5 * spreads[0]


def cross_at(times: float) -> tuple[Draws, Draws]:
    """Two laws that meet at `times` the whole budget: char has the lower floor and is behind before."""
    factor, exponent, floors = 0.8, 0.4, (1.05, 1.2)
    return law(floors[0], factor + (floors[1] - floors[0]) * times**exponent, exponent), law(
        floors[1], factor, exponent
    )


def test_curves_that_cross_at_three_times_the_budget_turn() -> None:
    one, other = cross_at(3.0)
    assert one.at(3.0)[0] == pytest.approx(other.at(3.0)[0]) and one.at(1.0)[0] > other.at(1.0)[0]
    answer, pair = answered(curves(one, other))
    assert pair.better == "bpe"
    words = {outlook.times: outlook.word for outlook in pair.outlooks}
    assert words[10] == "turns" and words[4] != "stays"
    assert headline(answer) == "With 10 times the training, the order turns: char becomes better than bpe."
    assert any("At 10 times the budget the order turns, char becomes better than bpe" in line for line in lines(answer))
    verdict = verdict_as_json(answer)["pairs"][0]
    assert verdict["better_at_whole"] == "bpe"
    assert [one["word"] for one in verdict["forecast"] if one["times"] == 10] == ["turns"]


def test_curves_that_never_cross_stay() -> None:
    answer, pair = answered(curves(*NEVER))
    assert [outlook.word for outlook in pair.outlooks] == ["stays"] * 2
    assert headline(answer) == "With 10 times the training, bpe stays better than char."
    for outlook in pair.outlooks:
        true = NEVER[0].at(float(outlook.times))[0] - NEVER[1].at(float(outlook.times))[0]
        assert outlook.expected.gap.low < true < outlook.expected.gap.high


def test_of_equal_curves_nothing_is_said() -> None:
    answer, pair = answered(curves(NEVER[0], NEVER[0]), margin=0.012)
    assert [outlook.word for outlook in pair.outlooks] == ["unsaid"] * 2
    assert "it cannot be said yet which of char and bpe is better" in headline(answer)
    assert "equal at the whole budget" in pair.outlooks[0].reason


def test_what_cannot_be_said_names_the_budget_that_would_decide() -> None:
    _, pair = answered(curves(*cross_at(8.0)), margin=0.001)
    unsaid = [outlook for outlook in pair.outlooks if outlook.word == "unsaid"]
    assert unsaid and all(outlook.reason for outlook in unsaid)
    assert any(outlook.decided_by in (2.0, 4.0, 8.0) for outlook in unsaid)


@pytest.mark.parametrize("points", [1, 2, 3])
def test_three_budgets_are_not_enough_and_say_so(points: int) -> None:
    answer, pair = answered(curves(*NEVER, points=points))
    assert not pair.outlooks and pair.band is None and len(pair.gaps) == points
    said = {1: "one point is", 2: "two points are", 3: "three points are"}[points]
    assert f"No forecast: {said} not enough: a law has three numbers" in lines(answer)[-1]
    assert headline(answer).endswith("it was measured at too few budgets.")


def test_four_budgets_are_not_checked_and_say_so() -> None:
    answer, pair = answered(curves(*NEVER, points=4))
    assert not pair.back_tests and pair.outlooks
    assert any("The forecast was not checked" in line for line in lines(answer))


def test_the_back_test_predicts_the_whole_budget_from_a_half_and_from_a_quarter() -> None:
    answer, pair = answered(curves(*NEVER, points=6))
    assert [test.amount for test in pair.back_tests] == [2**19, 2**18]
    assert all(test.seen == pair.gaps[-1].difference for test in pair.back_tests)
    assert not any("No check" in line for line in lines(answer))
    answer, pair = answered(curves(*NEVER))
    assert [test.amount for test in pair.back_tests] == [2**19]  # up to a quarter there are three
    assert (
        "No check from a quarter of the budget: three points are not enough for a law of three numbers; 1 more rung "
        "would allow it."
    ) in lines(answer)


def test_a_missed_back_test_widens_the_forecast_by_its_miss() -> None:
    one, other = curves(*NEVER)
    last = one.points[-1]
    bent = Curve("char", (*one.points[:-1], dataclasses.replace(last, by_seed=tuple(b + 0.1 for b in last.by_seed))))
    answer, pair = answered((bent, other))
    [test] = pair.back_tests
    miss = (test.seen - test.predicted.middle) / (test.predicted.high - test.predicted.middle)
    assert miss > 1.0 and pair.widening == pytest.approx(miss)
    assert any(f"{miss:.1f} times as wide as the laws say" in line for line in lines(answer))


def test_the_forecast_stops_at_four_epochs() -> None:
    pair = [changed(curve, epochs=0.5) for curve in curves(*NEVER)]
    answer, found = answered(pair)
    assert [outlook.times for outlook in found.outlooks] == [4] and answer.stopped_at == 10
    assert any("no forecast of 10 times and more" in line and "give more text" in line for line in lines(answer))
    assert headline(answer).startswith("With 4 times the training")
    answer, found = answered([changed(curve, epochs=1.5) for curve in pair])
    assert not found.outlooks and "needs more text" in headline(answer)
    answer, found = answered([changed(curve, epochs=0.03) for curve in pair])
    assert [outlook.times for outlook in found.outlooks] == [4, 10, 100] and answer.stopped_at is None


def test_points_of_few_steps_are_left_out_where_the_check_is_better_without() -> None:
    pair = []
    for curve in curves(*NEVER, points=6):
        first = dataclasses.replace(
            curve.points[0], steps=30.0, by_seed=tuple(b + 0.4 for b in curve.points[0].by_seed)
        )
        pair.append(Curve(curve.contestant, (first, *curve.points[1:])))
    answer, _ = answered(pair)
    assert answer.left_out == (2**15,)
    assert any("Left out of the laws" in line and "32,768 characters" in line for line in lines(answer))
    many = [Curve(one.contestant, (dataclasses.replace(one.points[0], steps=60.0), *one.points[1:])) for one in pair]
    assert answered(many)[0].left_out == ()


@pytest.mark.parametrize("points", [1, 4, 5])
def test_budgets_of_few_steps_alone_are_all_kept_and_named(points: int) -> None:
    answer, _ = answered([changed(curve, steps=20.0) for curve in curves(*NEVER, points=points)])
    assert answer.left_out == () and len(answer.amounts) == points
    named = [line for line in lines(answer) if "fewer than 60 steps" in line]
    assert len(named) == (points > 3)


def test_a_change_within_the_measured_budgets_comes_first() -> None:
    answer, pair = answered(curves(*cross_at(0.2)))
    assert pair.gaps[0].difference > 0 > pair.gaps[-1].difference
    assert "The order of char and bpe changes within the measured budgets" in lines(answer)[0]


def test_the_multiplier_is_interpolated_in_the_logarithm_of_the_budget() -> None:
    def flat(name: str, bits: Sequence[float]) -> Curve:
        return Curve(name, tuple(Point(2**n, (b, b), 1000.0, 0.1) for n, b in enumerate(bits)))

    _, pair = answered((flat("char", (3.0, 2.6, 2.4, 2.2)), flat("bpe", (2.8, 2.4, 2.1, 2.0))))
    found = pair.multipliers[0]
    assert (found.contestant, found.reference) == ("bpe", "char")
    # 2.2 lies two thirds of the way from 2.4 at T / 4 to 2.1 at T / 2.
    assert found.value == pytest.approx(0.25 * 2 ** (2 / 3))
    assert found.low == pytest.approx(found.value, rel=1e-3)
    assert pair.multipliers[1].value is None


def test_the_answer_comes_back_from_json() -> None:
    answer, _ = answered(curves(*NEVER))
    value = answer_as_json(answer)
    assert answer_from_json(value) == answer
    assert value["headline"] == headline(answer) and value["lines"] == lines(answer)


def test_the_table_has_a_line_for_each_budget_and_each_forecast() -> None:
    answer, pair = answered(curves(*NEVER))
    table = cells(answer)
    assert len(table) == 1 + 5 + len(pair.outlooks)
    assert table[0] == ["budget (characters)", "char", "bpe", "char - bpe"]
    assert table[-1][0] == "  10,485,760 (forecast)"
    assert table[5][1] == f"{answer.curves[0].curve.whole.mean:.4f}"


@pytest.mark.parametrize(
    ("bits", "predicted"),
    [((3.206, 2.770, 2.445, 2.246, 2.101), 2.088), ((2.606, 2.339, 2.109, 1.914, 1.757), 1.759)],
    ids=["characters", "byte_bpe"],
)
def test_the_check_foretells_measured_curves(bits: Sequence[float], predicted: float) -> None:
    """Real runs: 3 layers of 96, batch 8, FLOPs from 2.5e11 to 4e12, one seed."""
    curve = Curve("a", tuple(Point(2**n, (value,), 1000.0, 0.1) for n, value in enumerate(bits)))
    [test] = curve_back_tests(curve)
    assert test.seen == bits[-1] and test.widening == 1.0
    assert test.predicted.middle == pytest.approx(predicted, abs=0.015)
    assert 0.02 < test.predicted.high - test.predicted.middle < 0.06
