"""Known curves with noise, and how often what is said about them is right.

True curves follow the law, L(t) = E + A t^-a, with t = 1 at the whole budget. For each pair of contestants a shared
floor is drawn evenly from 0.8 to 1.5 bits per character and a shared exponent evenly from 0.25 to 0.6. The contestants'
own lie around them, so that their differences have a standard deviation of TAU, or of another figure. The final figure
is drawn evenly from 1.9 to 2.3 for the pair, and the contestants' own lie around it with a standard deviation of 0.02
(a close race) or more. So floors, exponents and final figures are independent, and many of the close races turn until
ten times the budget. Every point is a mean over seeds with independent noise of ASSUMED_SEED_SD.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compare.certainty.intervals import ASSUMED_SEED_SD
from compare.ladder.answer import least_probability
from compare.ladder.forecast import drawn_gaps, expected_gap
from compare.ladder.law import TAU, Draws
from compare.ladder.points import Curve, Point


@dataclass(frozen=True)
class Race:
    """Two contestants: what was measured, and what is true."""

    curves: tuple[Curve, Curve]
    truth: tuple[Draws, Draws]

    def true_gap(self, times: float) -> float:
        """First minus second at `times` the whole budget."""
        return float(self.truth[0].at(times)[0] - self.truth[1].at(times)[0])


@dataclass(frozen=True)
class Quality:
    """How often a forecast is right, in shares of the races."""

    races: int
    sign: float
    """The more probable sign of the gap is the true one."""
    sign_at_whole: float
    """The sign that was measured at the whole budget is the true one at the larger budget: no forecast at all."""
    claimed: float
    """A sign is probable enough for a word, `least_probability`."""
    claims_right: float
    """Of those, the sign is the true one."""
    coverage: float
    """The 90 % interval of the gap holds the true one."""


def races(
    count: int, *, points: int, seeds: int, spread: float = 0.02, apart: float = TAU, seed: int = 0
) -> Iterator[Race]:
    """`count` races of two contestants, each with `points` budgets from T / 2^(points - 1) to T.

    `spread` is the standard deviation of a final figure, `apart` that of the differences of floors and of exponents.
    """
    rng = np.random.default_rng(seed)
    for _ in range(count):
        floor, exponent, final = rng.uniform(0.8, 1.5), rng.uniform(0.25, 0.6), rng.uniform(1.9, 2.3)
        truth = []
        for _ in range(2):
            own = floor + apart / math.sqrt(2.0) * rng.standard_normal()
            slope = max(0.05, exponent + apart / math.sqrt(2.0) * rng.standard_normal())
            factor = max(0.05, final + spread * rng.standard_normal() - own)
            truth.append(Draws(np.array([own]), np.array([factor]), np.array([slope])))
        first, second = (curve_of(name, one, points, seeds, rng) for name, one in zip("ab", truth, strict=True))
        yield Race((first, second), (truth[0], truth[1]))


def curve_of(
    name: str, truth: Draws, points: int, seeds: int, rng: np.random.Generator, noise: float = ASSUMED_SEED_SD
) -> Curve:
    """What would be measured of one law, with T = 2^20; `noise` is the standard deviation over seeds."""
    measured = []
    for halvings in reversed(range(points)):
        by_seed = tuple(float(value) for value in truth.at(0.5**halvings)[0] + noise * rng.standard_normal(seeds))
        measured.append(Point(2 ** (20 - halvings), by_seed, steps=1000.0, epochs=0.1))
    return Curve(name, tuple(measured))


def quality(found: Iterator[Race], times: float) -> Quality:
    """How right the forecast of `times` the whole budget is."""
    sign, whole, claimed, right, covered = [], [], [], [], []
    for race in found:
        expected = expected_gap(drawn_gaps(*race.curves)(times), 0.0, 1.0)
        true = race.true_gap(times)
        is_right = (expected.first_better >= 0.5) == (true < 0.0)
        one, other = race.curves
        sign.append(is_right)
        whole.append((one.whole.mean < other.whole.mean) == (true < 0.0))
        claimed.append(max(expected.first_better, 1.0 - expected.first_better) >= least_probability(times))
        right.append(is_right)
        covered.append(expected.gap.low <= true <= expected.gap.high)
    is_claimed = np.array(claimed)
    return Quality(
        races=len(sign),
        sign=float(np.mean(sign)),
        sign_at_whole=float(np.mean(whole)),
        claimed=float(np.mean(claimed)),
        claims_right=float(np.array(right)[is_claimed].mean()) if is_claimed.any() else 1.0,
        coverage=float(np.mean(covered)),
    )
