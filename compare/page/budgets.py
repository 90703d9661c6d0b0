"""Pictures of a ladder of budgets: each contestant's curve with its forecast, and the gap of a pair.

Across is the budget, as a multiple of the whole budget T, on a logarithmic axis; an upright line marks T, where what
was measured ends.
"""

import math
from collections.abc import Sequence

from markupsafe import Markup

from compare.ladder.answer import Band, LadderAnswer, PairAnswer
from compare.ladder.forecast import HORIZONS
from compare.page.svg import AXES_RIGHT, Axes, element, marker, padded, path, picture, style_of
from data.show import shorten

_HEIGHT = 280.0
_APART = 24.0  # so far must the names of ticks be from each other
_X_LABEL = "times the whole budget (logarithmic)"


def curves_picture(answer: LadderAnswer, order: Sequence[str]) -> Markup:
    """Bits per character against the budget: points as measured, lines of the laws, and 90 % bands."""
    values = []
    for one in answer.curves:
        values += [bits for point in one.curve.points for bits in point.by_seed]
        values += [] if one.band is None else [*one.band.low, *one.band.high]
    axes = _axes(answer, values)
    parts = _frame(axes, answer, "bits per character (test)")
    for one in answer.curves:
        number = order.index(one.curve.contestant)
        parts += _band(axes, one.band, style_of(number))
        times = [float(value) for value in one.curve.times]
        for at, point in zip(times, one.curve.points, strict=True):  # from the best to the worst seed
            parts.append(_whisker(axes, at, min(point.by_seed), max(point.by_seed), style_of(number)))
            parts.append(marker(number, axes.x(at), axes.y(point.mean)))
        if one.band is None:
            line = axes.points(times, [point.mean for point in one.curve.points])
            parts.append(element("path", d=path(line), class_=f"line {style_of(number)}"))
    told = "; ".join(_curve_told(answer, number) for number in range(len(answer.curves)))
    return picture(parts, axes.height, f"Bits per character on test against the budget: {told}.")


def gap_picture(answer: LadderAnswer, pair: PairAnswer, order: Sequence[str]) -> Markup:
    """The difference of a pair against the budget: 95 % intervals as measured, then the forecast's 90 % band."""
    values = [0.0, pair.margin, -pair.margin]
    for gap in pair.gaps:
        values += [gap.difference] if gap.interval is None else [gap.interval.low, gap.interval.high]
    if pair.band is not None:
        values += [*pair.band.low, *pair.band.high]
    axes = _axes(answer, values)
    parts = [_equal(axes, pair.margin)]
    parts += _frame(axes, answer, f"{shorten(pair.a, 16)} − {shorten(pair.b, 16)}, bits per character")
    parts.append(element("path", d=f"M{axes.x(axes.x_range[0]):.1f} {axes.y(0.0):.1f}H{AXES_RIGHT:g}", class_="axis"))
    number = order.index(pair.b)
    parts += _band(axes, pair.band, style_of(number))
    for gap in pair.gaps:
        at = gap.amount / answer.amounts[-1]
        if gap.interval is not None:
            parts.append(_whisker(axes, at, gap.interval.low, gap.interval.high, style_of(number)))
        parts.append(marker(number, axes.x(at), axes.y(gap.difference)))
    return picture(parts, axes.height, _gap_told(answer, pair))


def _axes(answer: LadderAnswer, values: Sequence[float]) -> Axes:
    bands = [one.band for one in answer.curves if one.band is not None]
    first = answer.amounts[0] / answer.amounts[-1]
    last = max((band.times[-1] for band in bands), default=1.0)
    margin = (last / first) ** 0.04 if last > first else 2.0
    return Axes((first / margin, last * margin), padded(values), _HEIGHT, is_x_logarithmic=True)


def _frame(axes: Axes, answer: LadderAnswer, y_label: str) -> list[Markup]:
    places = [amount / answer.amounts[-1] for amount in answer.amounts]
    places += [float(times) for times in HORIZONS if times <= axes.x_range[1]]
    named = [1.0]
    for place in sorted(places, reverse=True):  # names that would overlap are left out, never that of T
        if all(abs(axes.x(place) - axes.x(other)) > _APART for other in named):
            named.append(place)
    named.sort()
    parts = axes.frame(_X_LABEL, y_label, named, [_multiple(place) for place in named])
    top, bottom = axes.y(axes.y_range[1]), axes.y(axes.y_range[0])
    parts.append(element("path", d=f"M{axes.x(1.0):.1f} {top:.1f}V{bottom:.1f}", class_="reference"))
    if axes.x_range[1] > 2.0:
        parts.append(element("text", "forecast", x=axes.x(1.0) + 5, y=top + 10, class_="tick level"))
    return parts


def _multiple(place: float) -> str:
    """Such as `1/16` or `10`."""
    if place < 1.0 and math.isclose(1.0 / place, round(1.0 / place), rel_tol=0.01):
        return f"1/{round(1.0 / place)}"
    return f"{place:.2g}"


def _band(axes: Axes, band: Band | None, style: str) -> list[Markup]:
    if band is None:
        return []
    outline = axes.points(band.times, band.high) + axes.points(band.times, band.low)[::-1]
    line = axes.points(band.times, band.middle)
    return [
        element("path", d=path(outline) + "Z", class_=f"band {style}"),
        element("path", d=path(line), class_=f"line {style}"),
    ]


def _whisker(axes: Axes, at: float, low: float, high: float, style: str) -> Markup:
    return element("path", d=f"M{axes.x(at):.1f} {axes.y(low):.1f}V{axes.y(high):.1f}", class_=f"whisker {style}")


def _equal(axes: Axes, margin: float) -> Markup:
    """Where a difference is none."""
    left, top = axes.x(axes.x_range[0]), axes.y(margin)
    return element("rect", x=left, y=top, width=AXES_RIGHT - left, height=max(axes.y(-margin) - top, 0.5), class_="tie")


def _curve_told(answer: LadderAnswer, number: int) -> str:
    one = answer.curves[number]
    points = one.curve.points
    told = f"{one.curve.contestant} goes from {points[0].mean:.3f} to {points[-1].mean:.3f} at the whole budget"
    if one.band is None or one.band.times[-1] <= 1.01:
        return told
    low, middle, high = one.band.low[-1], one.band.middle[-1], one.band.high[-1]
    return f"{told}, and is expected at {middle:.3f} ({low:.3f} to {high:.3f}) at {_multiple(one.band.times[-1])} times"


def _gap_told(answer: LadderAnswer, pair: PairAnswer) -> str:
    told = ", ".join(f"{gap.difference:+.3f} at {_multiple(gap.amount / answer.amounts[-1])}" for gap in pair.gaps)
    expected = ", ".join(f"{one.expected.gap.middle:+.3f} at {one.times}" for one in pair.outlooks)
    end = f"; expected {expected}" if expected else ""
    return f"{pair.a} − {pair.b}, bits per character, against multiples of the whole budget: {told}{end}."
