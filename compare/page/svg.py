"""Pictures of the page as inline SVG: what they share, sweep and scatter; curves and bars have modules of their own.

A picture is as wide as a phone's column and is scaled as a whole; colours, dashes and fonts come from the page's style
sheet by class (s0, s1, … for the contestants in order), so that one picture serves light and dark. Every picture has
a text alternative that says what there is to see.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from compare.grids.sweep import Point, Sweep
from compare.page.values import Documents
from data.show import counted, shorten, visible

NUM_STYLES = 7  # of series in the style sheet
WIDTH = 360.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 14.0, 12.0, 42.0
AXES_RIGHT = WIDTH - _RIGHT  # where the axes of a picture end


def element(name: str, content: object = None, **attributes: object) -> Markup:
    """One SVG element. `class_` is class, other underscores become hyphens; everything is visible and escaped."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"' for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, Markup(written), "" if content is None else _short(content))


def _short(value: object) -> object:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def picture(parts: Sequence[Markup], height: float, alternative: str) -> Markup:
    """The whole SVG; `alternative` is its text for those who do not see it."""
    box = f"0 0 {WIDTH:g} {height:g}"
    return element("svg", Markup("").join(parts), viewBox=box, role="img", aria_label=alternative, class_="picture")


def style_of(number: int) -> str:
    """The style sheet's class for contestant `number`."""
    return f"s{number % NUM_STYLES}"


def marker(number: int, x: float, y: float, radius: float = 3.2) -> Markup:
    """The mark of contestant `number`: shapes differ, so that nothing rests on colour alone."""
    r = radius
    shapes: tuple[Sequence[tuple[float, float]], ...] = (
        (),  # a circle
        ((-r, -r), (r, -r), (r, r), (-r, r)),
        ((0, -1.3 * r), (1.2 * r, r), (-1.2 * r, r)),
        ((0, -1.4 * r), (1.4 * r, 0), (0, 1.4 * r), (-1.4 * r, 0)),
        ((0, 1.3 * r), (1.2 * r, -r), (-1.2 * r, -r)),
    )
    shape = shapes[number % len(shapes)]
    classes = f"mark {style_of(number)}"
    if not shape:
        return element("circle", cx=x, cy=y, r=r, class_=classes)
    return element("path", d=path([(x + dx, y + dy) for dx, dy in shape]) + "Z", class_=classes)


def legend_key(number: int, **place: float) -> Markup:
    """A short piece of the line of contestant `number`, for a legend in the text or at a `place` in a picture."""
    parts = [element("path", d="M1 6H25", class_=f"line {style_of(number)}"), marker(number, 13.0, 6.0)]
    return element("svg", Markup("").join(parts), viewBox="0 0 26 12", class_="key", aria_hidden="true", **place)


def path(points: Sequence[tuple[float, float]]) -> str:
    """A line through the points, as an SVG path."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from low to high, steps of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]


@dataclass(frozen=True)
class Axes:
    """A rectangle with two scales; numbers in, SVG units out."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    height: float
    is_x_logarithmic: bool = False

    def x(self, value: float) -> float:
        """Horizontal place of a value."""
        scale: Callable[[float], float] = math.log if self.is_x_logarithmic else float
        low, high = map(scale, self.x_range)
        return _LEFT + (scale(value) - low) / (high - low) * (AXES_RIGHT - _LEFT)

    def y(self, value: float) -> float:
        """Vertical place of a value; up is more."""
        low, high = self.y_range
        return self.height - _BOTTOM - (value - low) / (high - low) * (self.height - _TOP - _BOTTOM)

    def points(self, xs: Sequence[float], ys: Sequence[float]) -> list[tuple[float, float]]:
        """Places of several points."""
        return [(self.x(x), self.y(y)) for x, y in zip(xs, ys, strict=True)]

    def frame(
        self, x_label: str, y_label: str, x_ticks: Sequence[float], x_names: Sequence[str] | None = None
    ) -> list[Markup]:
        """Grid, ticks and the labels of both axes."""
        bottom = self.height - _BOTTOM
        parts = []
        for value in ticks(*self.y_range):
            parts.append(element("path", d=f"M{_LEFT:g} {self.y(value):.1f}H{AXES_RIGHT:g}", class_="grid"))
            parts.append(element("text", f"{value:g}", x=_LEFT - 6, y=self.y(value) + 4, class_="tick end"))
        for value, name in zip(x_ticks, x_names or [f"{tick:,g}" for tick in x_ticks], strict=True):
            parts.append(element("path", d=f"M{self.x(value):.1f} {bottom:g}v4", class_="axis"))
            parts.append(element("text", name, x=self.x(value), y=bottom + 16, class_="tick middle"))
        parts.append(element("path", d=f"M{_LEFT:g} {bottom:g}H{AXES_RIGHT:g}", class_="axis"))
        middle = (_LEFT + AXES_RIGHT) / 2
        parts.append(element("text", x_label, x=middle, y=self.height - 8, class_="label middle"))
        y_middle = (_TOP + bottom) / 2
        turned = f"translate(11 {y_middle:.1f}) rotate(-90)"
        parts.append(element("text", y_label, transform=turned, class_="label middle"))
        return parts


def padded(values: Sequence[float]) -> tuple[float, float]:
    """The range of the values with a margin, for an axis; never empty."""
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def sweep_lines(sweep: Sweep) -> dict[str, list[Point]]:
    """The points of a sweep by line: one for each kind and split pattern, sizes ascending."""
    lines: dict[str, list[Point]] = {}
    for point in sorted(sweep.points, key=lambda point: point.vocab_size):
        lines.setdefault(f"{point.kind}, split {point.split_pattern}", []).append(point)
    return lines


def sweep_picture(sweep: Sweep) -> Markup:
    """Test bits per character against vocabulary size; contestants without a size to choose are level lines."""
    lines, references = sweep_lines(sweep), sweep.references
    values = [value for point in sweep.points for value in (point.bits_per_char, *point.bits_by_seed)]
    values += [reference.bits_per_char for reference in references]
    sizes = sorted({point.vocab_size for point in sweep.points})
    low, high = sizes[0] / 1.12, sizes[-1] * 1.12
    axes = Axes((low, high), padded(values), 300.0, is_x_logarithmic=True)
    named: list[int] = []
    for size in sizes:  # labels that would overlap are left out
        if not named or axes.x(size) - axes.x(named[-1]) > 34:
            named.append(size)
    parts = axes.frame(
        "vocabulary size (tokens, logarithmic)", "test bits per character", named, [f"{size:,}" for size in named]
    )
    for reference in references:
        level = axes.y(reference.bits_per_char)
        parts.append(element("path", d=f"M{_LEFT:g} {level:.1f}H{AXES_RIGHT:g}", class_="reference"))
        parts.append(element("text", shorten(reference.contestant, 40), x=AXES_RIGHT, y=level - 5, class_="tick end"))
    told = []
    for number, (name, points) in enumerate(lines.items()):
        for point in points:  # from the best to the worst seed
            x, ends = axes.x(point.vocab_size), (min(point.bits_by_seed), max(point.bits_by_seed))
            bar = f"M{x:.1f} {axes.y(ends[0]):.1f}V{axes.y(ends[1]):.1f}"
            parts.append(element("path", d=bar, class_=f"whisker {style_of(number)}"))
        line = axes.points([point.vocab_size for point in points], [point.bits_per_char for point in points])
        parts.append(element("path", d=path(line), class_=f"line {style_of(number)}"))
        parts += [marker(number, x, y) for x, y in line]
        best = min(points, key=lambda point: point.bits_per_char)
        told.append(f"{name} is best at {counted(best.vocab_size, 'token')} with {best.bits_per_char:.3f}")
    told += [f"{reference.contestant} needs {reference.bits_per_char:.3f}" for reference in references]
    return picture(parts, axes.height, "Test bits per character against vocabulary size: " + "; ".join(told) + ".")


def scatter_counts(documents: Documents, pair: Sequence[str]) -> tuple[int, int]:
    """Of the documents shown: how many cost fewer bits under the second of `pair`, and how many under the first."""
    first, second = (documents.bits_per_char[name] for name in pair)
    return (
        sum(y < x for x, y in zip(first, second, strict=True)),
        sum(x < y for x, y in zip(first, second, strict=True)),
    )


def scatter_picture(documents: Documents, pair: Sequence[str], order: Sequence[str]) -> Markup:
    """Bits per character of each document: across under the first of `pair`, upwards under the second."""
    first, second = (documents.bits_per_char[name] for name in pair)
    low, high = padded([*first, *second])
    low = max(low, 0.0)
    axes = Axes((low, high), (low, high), AXES_RIGHT - _LEFT + _TOP + _BOTTOM)
    across, upwards = (f"{shorten(name, 30)}: bits per character" for name in pair)
    parts = axes.frame(across, upwards, ticks(low, high))
    parts.append(element("path", d=path(axes.points((low, high), (low, high))), class_="reference"))
    longest = max(documents.num_chars)
    style = style_of(order.index(pair[1]))
    for name, length, x, y in zip(documents.names, documents.num_chars, first, second, strict=True):
        said = element("title", f"{name}: {counted(length, 'character')}; {pair[0]} {x:.3f}, {pair[1]} {y:.3f}")
        radius = 1.8 + 4.2 * math.sqrt(length / longest)
        parts.append(element("circle", said, cx=axes.x(x), cy=axes.y(y), r=radius, class_=f"document {style}"))
    fewer, more = scatter_counts(documents, pair)
    alternative = (
        f"Documents of the test text, bits per character under {pair[1]} against {pair[0]}: {fewer:,} of "
        f"{documents.num_shown:,} cost less under {pair[1]}, {more:,} less under {pair[0]}."
    )
    return picture(parts, axes.height, alternative)
