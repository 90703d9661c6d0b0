"""The multiplier: with how many times the budget one contestant reaches the other's final figure. Interpolation only.

Between two budgets a curve is taken as linear in the logarithm of the budget, and it never rises: where a measured
point lies above an earlier one, both take their mean (isotonic regression). Nothing is said beyond the budgets that
were measured.

The 95 % interval: documents are resampled, the same ones for both contestants and all budgets, and every point gets
training noise by Student's t, with the variance over seeds pooled over budgets.
"""

from dataclasses import dataclass

import numpy as np

from compare.characters import Float64Array
from compare.ladder.points import Curve

_RESAMPLES = 1000
_SEED = 13
_QUANTILES = (0.025, 0.975)


@dataclass(frozen=True)
class Multiplier:
    """`contestant` reaches the final figure of `reference` with `value` times the budget of both."""

    contestant: str
    reference: str
    smallest: float
    """The smallest budget that was measured, over T: a value of this is an upper bound."""
    value: float | None
    """None: it does not reach it within T."""
    low: float
    """The 95 % interval."""
    high: float | None
    """None: the interval goes beyond T."""


def multiplier(curve: Curve, reference: Curve) -> Multiplier:
    """How much of the budget `curve` needs for the final figure of `reference`. Both have the same budgets."""
    times = curve.times
    value = _reached(times, curve.bits[None], np.array([reference.whole.mean]))[0]
    ours, theirs = _resampled(curve, reference)
    low, high = np.quantile(_reached(times, ours, theirs), _QUANTILES, method="nearest")
    return Multiplier(
        contestant=curve.contestant,
        reference=reference.contestant,
        smallest=float(times[0]),
        value=float(value) if np.isfinite(value) else None,
        low=float(low) if np.isfinite(low) else 1.0,
        high=float(high) if np.isfinite(high) else None,
    )


def _resampled(curve: Curve, reference: Curve) -> tuple[Float64Array, Float64Array]:
    """(R, N) curves as they might have been measured, and (R,) final figures of the reference."""
    rng = np.random.default_rng(_SEED)
    points = [*curve.points, reference.whole]
    means = np.tile([point.mean for point in points], (_RESAMPLES, 1))
    texts = [point.texts for point in points if point.texts is not None]
    if len(texts) == len(points) and len(texts[0].num_chars) > 1:
        count = len(texts[0].num_chars)
        times_drawn = rng.multinomial(count, np.full(count, 1.0 / count), size=_RESAMPLES)
        chars = np.maximum(times_drawn @ texts[0].num_chars, 1)
        means = np.stack([times_drawn @ one.bits.mean(axis=0) / chars for one in texts], axis=1)
    scales = np.sqrt([*[curve.variance] * len(curve.points), reference.variance])
    num_seeds, num_points = len(curve.whole.by_seed), len(curve.points)
    noise = rng.standard_normal(means.shape)
    if num_seeds > 1:  # one variance for all points of a resample, as it was estimated from all of them
        freedom = (num_seeds - 1) * num_points
        noise *= np.sqrt(freedom / rng.chisquare(freedom, (_RESAMPLES, 1)))
    drawn = means + noise * scales
    return drawn[:, :-1], drawn[:, -1]


def _reached(times: Float64Array, curves: Float64Array, figures: Float64Array) -> Float64Array:
    """(R,) the budget over T where each of `curves` (R, N) comes down to its figure (R,); infinity where it does not.

    A curve that is there at the smallest budget gives that budget.
    """
    falling = _falling(curves)
    logs = np.log(times)
    number = (falling > figures[:, None]).sum(axis=1)  # so many points lie above
    after = np.clip(number, 1, len(times) - 1)
    rows = np.arange(len(falling))
    above, below = falling[rows, after - 1], falling[rows, after]
    share = np.clip((above - figures) / np.where(above > below, above - below, 1.0), 0.0, 1.0)
    reached = np.exp(logs[after - 1] + share * (logs[after] - logs[after - 1]))
    return np.where(number == len(times), np.inf, np.where(number == 0, times[0], reached))


def _falling(curves: Float64Array) -> Float64Array:
    """The closest curves that never rise: for each point the least of the greatest means of spans that end and begin
    there (the min-max form of isotonic regression)."""
    count = curves.shape[1]
    sums = np.concatenate([np.zeros((len(curves), 1)), np.cumsum(curves, axis=1)], axis=1)
    found = np.empty_like(curves)
    for point in range(count):
        spans = [
            np.min([(sums[:, end + 1] - sums[:, begin]) / (end + 1 - begin) for begin in range(point + 1)], axis=0)
            for end in range(point, count)
        ]
        found[:, point] = np.max(spans, axis=0)
    return found
