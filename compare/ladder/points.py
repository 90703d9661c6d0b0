"""What a ladder of budgets measured: each contestant's curve, and the gap of two contestants at each budget."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from compare.certainty.intervals import ASSUMED_SEED_SD, Interval, t_quantile
from compare.characters import Float64Array, Int64Array


@dataclass(frozen=True)
class Texts:
    """One contestant's bits on each document of the test text, for resampling. U documents, S seeds."""

    bits: Float64Array
    """(S, U)."""
    num_chars: Int64Array
    """(U,)."""


@dataclass(frozen=True)
class Point:
    """One contestant at one budget."""

    amount: int
    """The budget, in its unit."""
    by_seed: tuple[float, ...]
    """Bits per character on test, for each seed."""
    steps: float
    """Optimizer steps, mean over the seeds."""
    epochs: float
    """Over train, mean over the seeds."""
    texts: Texts | None = field(default=None, compare=False, repr=False)
    """None: intervals are of training noise alone."""

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return float(np.mean(self.by_seed))


@dataclass(frozen=True)
class Curve:
    """One contestant at all budgets, ascending."""

    contestant: str
    points: tuple[Point, ...]

    @property
    def whole(self) -> Point:
        """The point of the whole budget, T."""
        return self.points[-1]

    @property
    def times(self) -> Float64Array:
        """(N,) the budgets over T."""
        return np.array([point.amount for point in self.points]) / self.whole.amount

    @property
    def bits(self) -> Float64Array:
        """(N,) bits per character, means over the seeds."""
        return np.array([point.mean for point in self.points])

    @property
    def variance(self) -> float:
        """Of a mean over the seeds: that of one seed, pooled over the budgets, over the seeds; assumed with one."""
        by_seed = np.array([point.by_seed for point in self.points])
        if by_seed.shape[1] == 1:
            return ASSUMED_SEED_SD**2
        return max(float(by_seed.var(axis=1, ddof=1).mean() / by_seed.shape[1]), 1e-12)

    @property
    def law_variance(self) -> float:
        """The same, greater by what Student's t has over the normal distribution: it was estimated from few values."""
        freedom = (len(self.whole.by_seed) - 1) * len(self.points)
        if not freedom:
            return self.variance
        ratio: float = t_quantile(freedom) / t_quantile(math.inf)
        return self.variance * ratio * ratio

    def up_to(self, number: int) -> "Curve":
        """The curve of the first `number` points."""
        return Curve(self.contestant, self.points[:number])

    def without(self, number: int) -> "Curve":
        """The curve without its first `number` points."""
        return Curve(self.contestant, self.points[number:])


@dataclass(frozen=True)
class Gap:
    """Two contestants at one budget: bits per character of the first minus the second."""

    amount: int
    difference: float
    """Negative where the first is better."""
    interval: Interval | None
    """95 %, over text and training noise; None for a text that is too short."""

    @property
    def is_decided(self) -> bool:
        """Whether the interval excludes zero."""
        return self.interval is not None and not self.interval.holds_zero


def sign_changes(gaps: Sequence[Gap]) -> list[tuple[Gap, Gap]]:
    """The neighbours between which the better one changes, both with an interval that excludes zero.

    Budgets in between that are not decided are passed over.
    """
    decided = [gap for gap in gaps if gap.is_decided]
    return [(one, other) for one, other in pairwise(decided) if one.difference * other.difference < 0.0]
