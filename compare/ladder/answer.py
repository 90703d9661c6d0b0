"""The answer over budgets: what was measured, what is expected of larger budgets, and one word for each.

`stays` or `turns` is said of the better one at the whole budget T, where the probability is high enough and neither the
measured gaps nor the back-test contradict it. Anything else is `unsaid`, with the reason and the budget that would
decide it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from compare.characters import Float64Array
from compare.ladder.forecast import (
    HORIZONS,
    BackTest,
    Expected,
    Range,
    burnt_in,
    curve_back_tests,
    drawn_curve,
    drawn_gaps,
    expected_gap,
    gap_back_tests,
    range_of,
)
from compare.ladder.further import deciding_budget
from compare.ladder.law import LEAST_POINTS
from compare.ladder.multiplier import Multiplier, multiplier
from compare.ladder.points import Curve, Gap, sign_changes

Word = Literal["stays", "turns", "unsaid"]
MOST_EPOCHS = 4
"""Beyond so many passes over the same text a curve bends up, and no law of smaller budgets knows."""
FEW_STEPS = 60
"""Points below are burn-in, and are left out where the back-test is better without them."""
_PICTURED = 40  # places of a band


def least_probability(times: float) -> float:
    """So probable must be what is said of `times` the whole budget."""
    return 0.9 if times < 100 else 0.95


@dataclass(frozen=True)
class Band:
    """90 % intervals over budgets, for a picture. All of one length."""

    times: tuple[float, ...]
    """Budgets over T, ascending."""
    low: tuple[float, ...]
    middle: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class CurveAnswer:
    """One contestant."""

    curve: Curve
    floor: Range | None
    """Bits per character that more training does not go below, for this size of model; None without a law."""
    back_tests: tuple[BackTest, ...]
    band: Band | None


@dataclass(frozen=True)
class Outlook:
    """A pair at a larger budget."""

    times: int
    """Times the whole budget."""
    expected: Expected
    word: Word
    reason: str
    """Why nothing is said; else empty."""
    decided_by: float | None
    """Where nothing is said: a ladder up to so many times the whole budget would probably decide. None: none below
    `times` would, or the gap that is expected there is below the smallest that counts."""


@dataclass(frozen=True)
class PairAnswer:
    """Two contestants; gaps are `a` minus `b`."""

    a: str
    b: str
    gaps: tuple[Gap, ...]
    margin: float
    """Differences up to it are none."""
    multipliers: tuple[Multiplier, ...]
    """That of the better one at T, then that of the other; empty with one budget."""
    back_tests: tuple[BackTest, ...]
    outlooks: tuple[Outlook, ...]
    """None beyond the epochs that a forecast holds for."""
    band: Band | None

    @property
    def better(self) -> str:
        """The one with fewer bits at the whole budget, decided or not."""
        return self.a if self.gaps[-1].difference <= 0 else self.b

    @property
    def worse(self) -> str:
        """The other one."""
        return self.b if self.gaps[-1].difference <= 0 else self.a

    @property
    def widening(self) -> float:
        """By so much the forecast is wider than the laws say, because the back-test missed; 1: it did not."""
        return max((test.widening for test in self.back_tests), default=1.0)


@dataclass(frozen=True)
class Measured:
    """What an answer is made from: curves with the same budgets, and for each pair what was found at each of them."""

    unit: str
    curves: tuple[Curve, ...]
    gaps: Mapping[tuple[str, str], tuple[Gap, ...]]
    margins: Mapping[tuple[str, str], float]
    text_variances: Mapping[tuple[str, str], float]
    """Of the gaps over documents, at the whole budget."""

    def curve(self, name: str) -> Curve:
        """The curve of that contestant."""
        return next(curve for curve in self.curves if curve.contestant == name)


@dataclass(frozen=True)
class LadderAnswer:
    """Everything that the report says about other budgets."""

    unit: str
    """Of the budgets."""
    curves: tuple[CurveAnswer, ...]
    pairs: tuple[PairAnswer, ...]
    left_out: tuple[int, ...]
    """Budgets that the laws were not fitted on: too few steps."""
    no_forecast: str
    """Why there is no forecast at all; else empty."""
    stopped_at: int | None
    """The first of the larger budgets that is not forecast, times T, because train would be seen too often."""

    @property
    def amounts(self) -> tuple[int, ...]:
        """The budgets, ascending."""
        return tuple(point.amount for point in self.curves[0].curve.points)

    @property
    def epochs(self) -> float:
        """Over train at the whole budget, of the contestant that sees most."""
        return max(one.curve.whole.epochs for one in self.curves)


def answer_of(measured: Measured) -> LadderAnswer:
    """The answer over the budgets of `measured`. Deterministic."""
    left_out = burnt_in(measured.curves, FEW_STEPS)
    count = len(measured.curves[0].points) - left_out
    epochs = max(curve.whole.epochs for curve in measured.curves)
    horizons = [times for times in HORIZONS if times * epochs <= MOST_EPOCHS]
    no_forecast = ""
    if count < LEAST_POINTS:
        no_forecast = (
            f"{number_words(count)} not enough: a law has three numbers, and only a fourth point can contradict it"
        )
    has_law, farthest = not no_forecast, float(max(horizons, default=1))
    fitted = {curve.contestant: curve.without(left_out) for curve in measured.curves}
    return LadderAnswer(
        unit=measured.unit,
        curves=tuple(_curve_answer(curve, fitted[curve.contestant], has_law, farthest) for curve in measured.curves),
        pairs=tuple(_pair_answer(measured, pair, fitted, has_law, horizons) for pair in measured.gaps),
        left_out=tuple(point.amount for point in measured.curves[0].points[:left_out]),
        no_forecast=no_forecast,
        stopped_at=next((times for times in HORIZONS if times not in horizons), None),
    )


def number_words(count: int) -> str:
    """Such as `three points are`, for fewer than a law needs."""
    words = {0: "no point is", 1: "one point is", 2: "two points are", 3: "three points are"}
    return words[count]


def _curve_answer(curve: Curve, fitted: Curve, has_law: bool, farthest: float) -> CurveAnswer:
    bare = Curve(curve.contestant, tuple(replace(point, texts=None) for point in curve.points))
    if not has_law:
        return CurveAnswer(bare, None, (), None)
    tests = curve_back_tests(fitted)
    widening = max((test.widening for test in tests), default=1.0)
    law = drawn_curve(fitted)
    times = _pictured(fitted, farthest)
    ranges = [range_of(law.at(one)).widened(widening if one > 1.0 else 1.0) for one in times]
    return CurveAnswer(bare, range_of(law.floors), tests, _band(times, ranges))


def _pictured(fitted: Curve, farthest: float) -> Float64Array:
    first = fitted.times[0]
    return np.geomspace(first, max(farthest, first * 1.001), _PICTURED)


def _band(times: Float64Array, ranges: Sequence[Range]) -> Band:
    return Band(
        tuple(float(one) for one in times),
        tuple(one.low for one in ranges),
        tuple(one.middle for one in ranges),
        tuple(one.high for one in ranges),
    )


def _pair_answer(
    measured: Measured, pair: tuple[str, str], fitted: Mapping[str, Curve], has_law: bool, horizons: Sequence[int]
) -> PairAnswer:
    gaps, (a, b) = measured.gaps[pair], pair
    order = pair if gaps[-1].difference <= 0 else (b, a)
    curves = [measured.curve(name) for name in order]
    multipliers = (multiplier(curves[0], curves[1]), multiplier(curves[1], curves[0])) if len(gaps) > 1 else ()
    bare = PairAnswer(a, b, gaps, measured.margins[pair], multipliers, (), (), None)
    if not has_law:
        return bare
    checked = replace(bare, back_tests=gap_back_tests(fitted[a], fitted[b]))
    drawn, variance = drawn_gaps(fitted[a], fitted[b]), measured.text_variances[pair]
    found = []
    for times in horizons:
        expected = expected_gap(drawn(times), variance, checked.widening)
        word, reason = _word(checked, expected, times)
        decided_by = None
        if word == "unsaid" and abs(expected.gap.middle) >= checked.margin:
            decided_by = deciding_budget(fitted[a], fitted[b], times, variance, least_probability(times))
        found.append(Outlook(times, expected, word, reason, decided_by))
    times_drawn = _pictured(fitted[a], float(max(horizons, default=1)))
    ranges = [range_of(drawn(one)).widened(checked.widening if one > 1.0 else 1.0) for one in times_drawn]
    return replace(checked, outlooks=tuple(found), band=_band(times_drawn, ranges))


def _word(pair: PairAnswer, expected: Expected, times: int) -> tuple[Word, str]:
    """What is said of the better one at T, and where it is `unsaid` the reason."""
    whole, needed = pair.gaps[-1], least_probability(times)
    stays = expected.first_better if whole.difference <= 0 else 1.0 - expected.first_better
    if whole.interval is not None and whole.interval.is_within(pair.margin):
        return "unsaid", f"they are equal at the whole budget: a difference up to {pair.margin:.3f} is none"
    if not whole.is_decided or abs(whole.difference) < pair.margin:
        return "unsaid", "it is not decided which is better at the whole budget"
    if max(stays, 1.0 - stays) < needed:
        return "unsaid", f"neither order has a probability of {needed:g}"
    if any(_is_other_side(test) for test in pair.back_tests):
        return "unsaid", "the same forecast from smaller budgets named the wrong one for the whole budget"
    if stays >= needed:
        if len(sign_changes(pair.gaps)) > 1:
            return "unsaid", "the order has changed more than once between the measured budgets"
        return "stays", ""
    if _has_grown(pair.gaps):
        return "unsaid", "the forecast says that the lead turns, but it has grown with the last doubling"
    return "turns", ""


def _is_other_side(test: BackTest) -> bool:
    """Whether the whole predicted interval lay on the other side of zero than what was seen."""
    return test.predicted.low > 0.0 > test.seen or test.predicted.high < 0.0 < test.seen


def _has_grown(gaps: Sequence[Gap]) -> bool:
    """Whether the lead at T is greater than all that the interval of the budget before allows."""
    if len(gaps) < 2 or gaps[-2].interval is None:
        return False
    before, last = gaps[-2].interval, gaps[-1].difference
    return last < before.low if last < 0 else last > before.high
