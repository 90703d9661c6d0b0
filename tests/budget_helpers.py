"""Answers over budgets from made-up curves."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from compare.certainty.intervals import Interval
from compare.ladder.answer import LadderAnswer, Measured, answer_of
from compare.ladder.law import Draws
from compare.ladder.points import Curve, Gap
from compare.ladder.simulate import curve_of

NOISE = 0.002
"""Standard deviation over seeds, bits per character."""


def law(floor: float, factor: float, exponent: float) -> Draws:
    """One law, L(t) = floor + factor t^-exponent."""
    return Draws(np.array([floor]), np.array([factor]), np.array([exponent]))


def curves_of(laws: dict[str, Draws], points: int = 5, seed: int = 1) -> list[Curve]:
    """What is measured of each law with three seeds."""
    rng = np.random.default_rng(seed)
    return [curve_of(name, one, points, 3, rng, noise=NOISE) for name, one in laws.items()]


def measured(curves: Sequence[Curve], margin: float = 0.005, width: float = 3.0 * NOISE) -> Measured:
    """Every pair of the curves, each gap with an interval of `width` to both sides."""
    gaps = {
        (one.contestant, other.contestant): tuple(
            _gap(ours.amount, ours.mean - theirs.mean, width)
            for ours, theirs in zip(one.points, other.points, strict=True)
        )
        for one, other in combinations(curves, 2)
    }
    return Measured("characters", tuple(curves), gaps, dict.fromkeys(gaps, margin), dict.fromkeys(gaps, 1e-8))


def _gap(amount: int, difference: float, width: float) -> Gap:
    return Gap(amount, difference, Interval(difference - width, difference + width))


def answer_for(names: Sequence[str], points: int = 5) -> LadderAnswer:
    """An answer for these contestants, the later the better."""
    laws = {name: law(1.4 - 0.05 * number, 0.9 - 0.05 * number, 0.4) for number, name in enumerate(names)}
    return answer_of(measured(curves_of(laws, points)))
