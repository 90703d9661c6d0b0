"""What the laws say of larger budgets, checked against what was measured, and widened where that check failed."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from compare.characters import Float64Array
from compare.ladder.law import LEAST_POINTS, Draws, Laws, draw, draw_pairs, fit
from compare.ladder.points import Curve

HORIZONS = (4, 10, 100)
"""Times the whole budget."""
_DRAWS = 4000
_SEED = 8
_QUANTILES = (0.05, 0.5, 0.95)
_CHECKED_FROM = (2, 4)  # the back-test goes on from T / 2 and from T / 4


@dataclass(frozen=True)
class Range:
    """A figure with its 90 % interval."""

    low: float
    middle: float
    high: float

    def widened(self, factor: float) -> "Range":
        """Both ends moved away from the middle."""
        return Range(
            self.middle - factor * (self.middle - self.low),
            self.middle,
            self.middle + factor * (self.high - self.middle),
        )

    def miss(self, seen: float) -> float:
        """How far `seen` is from the middle, in widths of the interval on that side: above 1 it lies outside."""
        width = self.high - self.middle if seen > self.middle else self.middle - self.low
        return abs(seen - self.middle) / width if width > 0.0 else math.inf * (seen != self.middle)


@dataclass(frozen=True)
class BackTest:
    """A prediction of the whole budget from smaller ones."""

    what: str
    """The contestant, or `ONE - OTHER` for a gap."""
    amount: int
    """The largest budget that the prediction was made from."""
    predicted: Range
    seen: float

    @property
    def widening(self) -> float:
        """By so much an interval has to be widened to hold what was seen; 1 where it does."""
        return max(1.0, self.predicted.miss(self.seen))


def curve_back_tests(curve: Curve) -> tuple[BackTest, ...]:
    """Predictions of the last point of a curve, where enough points are left for a law."""
    found = []
    for number in _numbers(curve):
        part = curve.up_to(number)
        at = curve.whole.amount / part.whole.amount
        drawn = drawn_curve(part).at(at)
        seen = _with_noise(drawn, curve.variance)
        found.append(BackTest(curve.contestant, part.whole.amount, range_of(seen), curve.whole.mean))
    return tuple(found)


def gap_back_tests(one: Curve, other: Curve) -> tuple[BackTest, ...]:
    """The same for the gap of two curves."""
    found = []
    for number in _numbers(one):
        parts = one.up_to(number), other.up_to(number)
        gaps = drawn_gaps(*parts)(one.whole.amount / parts[0].whole.amount)
        seen = _with_noise(gaps, one.variance + other.variance)
        label = f"{one.contestant} - {other.contestant}"
        found.append(BackTest(label, parts[0].whole.amount, range_of(seen), one.whole.mean - other.whole.mean))
    return tuple(found)


def _numbers(curve: Curve) -> list[int]:
    """How many points lie up to T / 2 and up to T / 4, where that is enough for a law."""
    whole = curve.whole.amount
    numbers = [sum(point.amount <= whole / part for point in curve.points) for part in _CHECKED_FROM]
    return [number for number in dict.fromkeys(numbers) if number >= LEAST_POINTS]


def laws_of(curve: Curve) -> Laws:
    """The laws of a curve of at least LEAST_POINTS points."""
    return fit(curve.times, curve.bits, curve.law_variance)


def drawn_curve(curve: Curve) -> Draws:
    """Laws of one curve, drawn by weight."""
    return draw(laws_of(curve), _DRAWS, np.random.default_rng(_SEED))


def drawn_gaps(one: Curve, other: Curve) -> Callable[[float], Float64Array]:
    """A function from times of the curves' own whole budget to drawn gaps (D,), bits per character."""
    ours, theirs = draw_pairs(laws_of(one), laws_of(other), _DRAWS, np.random.default_rng(_SEED))
    return lambda times: ours.at(times) - theirs.at(times)


def _with_noise(drawn: Float64Array, variance: float) -> Float64Array:
    """What would be measured, where `drawn` is what is true: with the noise of a mean over the seeds."""
    noise = np.random.default_rng(_SEED + 1).standard_normal(len(drawn))
    return drawn + math.sqrt(variance) * noise


@dataclass(frozen=True)
class Expected:
    """The gap of two contestants at a larger budget."""

    gap: Range
    """Bits per character, first minus second; 90 % interval."""
    first_better: float
    """Probability that the first needs fewer bits."""


def expected_gap(drawn: Float64Array, text_variance: float, factor: float) -> Expected:
    """The gap at a larger budget on any text of this kind, with the draws moved away from their middle by `factor`.

    `text_variance` is that of the gap over documents, as it is at the whole budget.
    """
    widened = _with_noise(drawn, text_variance)
    middle = float(np.median(widened))
    widened = middle + factor * (widened - middle)
    return Expected(range_of(widened), float(np.mean(widened < 0.0)))


def range_of(values: Float64Array) -> Range:
    """The 90 % interval of drawn values."""
    return Range(*(float(value) for value in np.quantile(values, _QUANTILES)))


def burnt_in(curves: Sequence[Curve], least_steps: int) -> int:
    """How many of the first budgets to leave out: points of few steps, where the back-test is better without them.

    The same for all contestants. At least one back-test must remain to say so; what is compared is the mean distance
    between predicted and seen.
    """
    few = [any(curve.points[number].steps < least_steps for curve in curves) for number in range(len(curves[0].points))]
    most = few.index(False) if False in few else len(few) - 1
    errors = {}
    for number in range(most + 1):
        tests = [test for curve in curves for test in curve_back_tests(curve.without(number))[:1]]
        if len(tests) == len(curves):
            errors[number] = float(np.mean([abs(test.predicted.middle - test.seen) for test in tests]))
    return min(errors, key=lambda number: (errors[number], number), default=0)
