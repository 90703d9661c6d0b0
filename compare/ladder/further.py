"""Which larger budget would decide what cannot be said."""

from dataclasses import replace

import numpy as np

from compare.ladder.forecast import drawn_curve, drawn_gaps, expected_gap
from compare.ladder.points import Curve

_MOST = 64


def deciding_budget(one: Curve, other: Curve, times: float, text_variance: float, probability: float) -> float | None:
    """The least number of doublings of T after which the gap at `times` T would have a sign with `probability`.

    The curves are continued as they are expected to go on, and the forecast is made again from them; a ladder beyond
    `times` T is not asked for, since it measures the answer. None where no such ladder would decide.
    """
    multiple = 2.0
    while multiple <= min(times, _MOST):
        continued = [_continued(curve, multiple) for curve in (one, other)]
        expected = expected_gap(drawn_gaps(*continued)(times / multiple), text_variance, 1.0)
        if max(expected.first_better, 1.0 - expected.first_better) >= probability:
            return multiple
        multiple *= 2.0
    return None


def _continued(curve: Curve, multiple: float) -> Curve:
    """The curve with further points up to `multiple` T, as its laws expect them, with the spread it has."""
    law, last = drawn_curve(curve), curve.whole
    deviations = np.array(last.by_seed) - last.mean
    points, times = list(curve.points), 2.0
    while times <= multiple:
        by_seed = tuple(float(value) for value in np.median(law.at(times)) + deviations)
        points.append(replace(last, amount=round(last.amount * times), by_seed=by_seed, texts=None))
        times *= 2.0
    return Curve(curve.contestant, tuple(points))
