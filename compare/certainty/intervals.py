"""95 % intervals of a difference in bits per character, over text and over training noise.

- Text: the difference is a ratio of sums, bits over characters, over units (documents) that are a sample of the text.
  Its variance is that of the ratio estimator (Cochran, Sampling Techniques, 1977, chapter 6), each squared residual
  over its expected share, because a long document pulls the ratio towards itself (Bell and McCaffrey, Survey
  Methodology, 2002). The quantile is Student's t, with as many degrees of freedom as there are effective units less
  one (Kish: (sum c)^2 / sum c^2, since a long document weighs more than a short one).
- Training: the variance of the differences by seed, over the number of seeds. With one seed it is unknown, and
  ASSUMED_SEED_SD is taken for each contestant; the report says so.
- Both: the variances are added. Neither known quantile covers 95 % with few seeds: degrees of freedom that are added
  (Satterthwaite, Biometrics Bulletin, 1946) cover 87 % with two seeds and many documents, quantiles weighted by the
  variances (Cochran and Cox, Experimental Designs, 1957) 98 %. `Combined` blends both kinds.

`python -m bench.coverage` simulates how often the intervals hold the true difference; docs/method.md has its table.

Shapes: U units.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import mpmath
import numpy as np

from compare.characters import Float64Array, Int64Array

CONFIDENCE = 0.95
ASSUMED_SEED_SD = 0.012
"""Bits per character, of one contestant over seeds, where there is one seed. It was measured for characters and for
byte_bpe with three seeds each, 3 layers of 96 channels and 1e12 FLOPs of training; smaller budgets vary more."""


@dataclass(frozen=True)
class Interval:
    """A 95 % interval of a difference in bits per character."""

    low: float
    high: float

    def mirrored(self) -> "Interval":
        """The interval of the difference the other way round; zero stays positive zero."""
        return Interval(0.0 - self.high, 0.0 - self.low)

    @property
    def holds_zero(self) -> bool:
        """Whether no difference at all lies in the interval."""
        return self.low <= 0.0 <= self.high

    def is_within(self, margin: float) -> bool:
        """Whether the whole interval lies between -margin and margin."""
        return -margin <= self.low and self.high <= margin

    def __str__(self) -> str:
        return f"{self.low:z.3f} to {self.high:z.3f}"


@dataclass(frozen=True)
class Estimate:
    """A mean difference and how far one kind of noise may move it."""

    difference: float
    variance: float
    """Of the mean; 0 where only one value is known."""
    degrees_of_freedom: float
    """Of the variance, for Student's t; infinitely many where the variance is known."""

    @property
    def quantile(self) -> float:
        """So many standard deviations make the 95 % interval."""
        return t_quantile(self.degrees_of_freedom)

    @property
    def half_width(self) -> float:
        """Half the length of the 95 % interval."""
        return self.quantile * math.sqrt(self.variance)

    @property
    def interval(self) -> Interval:
        """The 95 % interval."""
        return Interval(self.difference - self.half_width, self.difference + self.half_width)


@dataclass(frozen=True)
class Combined:
    """A difference with the noise of text and of training: the variances are added, the quantile is between theirs."""

    text: Estimate
    seeds: Estimate

    @property
    def difference(self) -> float:
        """That of the seeds' runs, which is measured on the same text."""
        return self.seeds.difference

    @property
    def quantile(self) -> float:
        """So many standard deviations make the 95 % interval.

        If both variances are known equally well, their degrees of freedom are added. If one is known much worse, its
        quantile counts in proportion to the square of its variance. In between it is a weighted mean of the two. The
        weights were chosen so that the simulated coverage is near 95 %.
        """
        worse, better = sorted((self.text, self.seeds), key=lambda one: one.degrees_of_freedom)
        total = worse.variance + better.variance
        if total == 0.0 or worse.degrees_of_freedom == better.degrees_of_freedom == math.inf:
            return worse.quantile
        share = worse.variance / total
        known = share**2 / worse.degrees_of_freedom + (1.0 - share) ** 2 / better.degrees_of_freedom
        added = t_quantile(1.0 / known) if known > 0.0 else t_quantile(math.inf)
        weight = share**2 / (share**2 + (0.7 * (1.0 - share)) ** 2)
        between = better.quantile + (worse.quantile - better.quantile) * weight
        likeness = math.sqrt(worse.degrees_of_freedom / better.degrees_of_freedom)
        return likeness * added + (1.0 - likeness) * between

    @property
    def half_width(self) -> float:
        """Half the length of the 95 % interval."""
        return self.quantile * math.sqrt(self.text.variance + self.seeds.variance)

    @property
    def interval(self) -> Interval:
        """The 95 % interval."""
        return Interval(self.difference - self.half_width, self.difference + self.half_width)


def over_text(bits_a: Float64Array, bits_b: Float64Array, num_chars: Int64Array | Float64Array) -> Estimate | None:
    """The difference a - b in bits per character over U units that are a sample of the text; all arrays are (U,).

    Units without characters are left out; fewer than two give None.
    """
    kept = num_chars > 0
    difference, chars = (bits_a - bits_b)[kept], num_chars[kept]
    if len(chars) < 2:
        return None
    total, squares = int(chars.sum()), int((chars**2).sum())
    mean = math.fsum(difference) / total
    residuals = (difference - mean * chars) / total
    # What a squared residual has on average of the variance of one unit, if all units vary alike: 1 - 2 w_i + sum w^2
    # for weights w = chars / total, written without a difference of nearly equal numbers.
    shares = ((total - chars) ** 2 + (squares - chars**2)) / float(total) ** 2
    variance = math.fsum(residuals**2 / shares)
    return Estimate(mean, variance, max(1.0, total**2 / squares - 1.0))


def over_seeds(by_seed: Sequence[float]) -> Estimate:
    """The mean of differences by seed; of one seed, with the noise that ASSUMED_SEED_SD states for both contestants."""
    if len(by_seed) == 1:
        return Estimate(by_seed[0], 2.0 * ASSUMED_SEED_SD**2, math.inf)
    variance = float(np.var(by_seed, ddof=1)) / len(by_seed)
    return Estimate(float(np.mean(by_seed)), variance, len(by_seed) - 1.0)


@lru_cache(maxsize=4096)
def t_quantile(degrees_of_freedom: float) -> float:
    """The two-sided 95 % quantile of Student's t; infinitely many degrees of freedom give the normal distribution's."""
    tail = 1.0 - CONFIDENCE
    if math.isinf(degrees_of_freedom) or degrees_of_freedom > 1e7:
        return float(mpmath.sqrt(2) * mpmath.erfinv(CONFIDENCE))
    half = degrees_of_freedom / 2.0
    log_constant = math.lgamma(half + 0.5) - math.lgamma(half) - 0.5 * math.log(degrees_of_freedom * math.pi)
    # Newton's method for the logarithm of P(|T| > t) over that of t, which is nearly a straight line.
    t = 2.0
    for _ in range(50):
        x = degrees_of_freedom / (degrees_of_freedom + t * t)
        outside = float(mpmath.betainc(half, 0.5, 0, x, regularized=True))  # P(|T| > t) = I_x(v / 2, 1 / 2)
        density = math.exp(log_constant - (half + 0.5) * math.log1p(t * t / degrees_of_freedom))
        step = math.log(outside / tail) * outside / (2.0 * density * t)
        t *= math.exp(step)
        if abs(step) < 1e-8:  # and the next one would be below 1e-15
            return t
    raise ArithmeticError(f"no quantile of Student's t found for {degrees_of_freedom} degrees of freedom")
