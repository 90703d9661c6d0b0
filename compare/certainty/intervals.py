"""95 % intervals of a difference in bits per character, over text and over training noise.

- Text: the difference is a ratio of sums, bits over characters, over units (documents) that are a sample of the text.
  Its variance is that of the ratio estimator (Cochran, Sampling Techniques, 1977, chapter 6), each squared residual
  over its expected share, because a long document pulls the ratio towards itself (Bell and McCaffrey, Survey
  Methodology, 2002). The quantile is Student's t, with as many degrees of freedom as there are effective units less
  one (Kish: (sum c)^2 / sum c^2, since a long document weighs more than a short one).
- Training: the variance of the differences by seed, over the number of seeds. With one seed it is unknown, and
  ASSUMED_SEED_SD is taken for each contestant; the report says so.
- Both: the variances are added; the quantile is the mean of both quantiles, weighted by the variances (Cochran and Cox,
  Experimental Designs, 1957). To add degrees of freedom instead (Satterthwaite) covers 87 % with two seeds.

Simulated coverage of the 95 % intervals, with 2 to 100 units of equal length or of log-normal lengths (sigma 0.5 to
1.5): over text 94 to 98 %; over seeds 95 %; over both 93 to 99.5 %, the highest with two seeds and two documents. Where
there is so little to go by the interval is rather too wide than too narrow.

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
    """A mean difference and how far it may be off."""

    difference: float
    variance: float
    """Of the mean; 0 where only one value is known."""
    quantile: float
    """So many standard deviations make the 95 % interval."""

    @property
    def interval(self) -> Interval:
        """The 95 % interval."""
        half_width = self.quantile * math.sqrt(self.variance)
        return Interval(self.difference - half_width, self.difference + half_width)


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
    return Estimate(mean, variance, t_quantile(max(1.0, total**2 / squares - 1.0)))


def over_seeds(by_seed: Sequence[float]) -> Estimate:
    """The mean of differences by seed; of one seed, with the noise that ASSUMED_SEED_SD states for both contestants."""
    if len(by_seed) == 1:
        return Estimate(by_seed[0], 2.0 * ASSUMED_SEED_SD**2, t_quantile(math.inf))
    variance = float(np.var(by_seed, ddof=1)) / len(by_seed)
    return Estimate(float(np.mean(by_seed)), variance, t_quantile(len(by_seed) - 1.0))


def combined(text: Estimate, seeds: Estimate) -> Estimate:
    """One difference with the noise of both: variances added, quantiles weighted by them (Cochran and Cox 1957)."""
    variance = text.variance + seeds.variance
    if variance == 0.0:
        return Estimate(seeds.difference, 0.0, max(text.quantile, seeds.quantile))
    quantile = (text.variance * text.quantile + seeds.variance * seeds.quantile) / variance
    return Estimate(seeds.difference, variance, quantile)


@lru_cache(maxsize=4096)
def t_quantile(degrees_of_freedom: float) -> float:
    """The two-sided 95 % quantile of Student's t; infinitely many degrees of freedom give the normal distribution's."""
    tail = 1.0 - CONFIDENCE
    if math.isinf(degrees_of_freedom) or degrees_of_freedom > 1e7:
        return float(mpmath.sqrt(2) * mpmath.erfinv(CONFIDENCE))
    low, high = 1.0, 20.0  # for one degree of freedom it is 12.7

    def share_outside(t: float) -> float:  # P(|T| > t) = I_x(v / 2, 1 / 2) at x = v / (v + t^2)
        x = degrees_of_freedom / (degrees_of_freedom + t * t)
        return float(mpmath.betainc(degrees_of_freedom / 2.0, 0.5, 0, x, regularized=True))

    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if share_outside(middle) > tail else (low, middle)
    return high
