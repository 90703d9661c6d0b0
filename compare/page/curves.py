"""Curves of bits per character on the val sample while training, for the page and as the files of comparison.md.

Baselines are level lines in the same picture: what a model has to beat.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from compare.page.data import curves
from compare.page.svg import (
    AXES_RIGHT,
    WIDTH,
    Axes,
    element,
    legend_key,
    marker,
    padded,
    path,
    picture,
    style_of,
    ticks,
)
from compare.page.values import Curve, Figure
from compare.runs import Entry
from data.files import read_text, write_text
from data.show import counted, shorten

_HEIGHT = 260.0
_FILES = {"characters": "curve_characters.svg", "seconds": "curve_seconds.svg"}
_FILE_SCALE = 2  # of a file's size on the screen to the page's
_LEGEND_LINE = 17.0
_LEGEND_COLUMNS = 44  # of a name
_LABEL_HEIGHT = 11.0
_STYLE = Path(__file__).parent / "templates" / "picture.css"


def curve_picture(curve: Curve, order: Sequence[str], levels: Sequence[Figure] = ()) -> Markup | None:
    """The val sample's figure against one quantity: a line and (with several seeds) a band for each contestant.

    `levels` are level lines; see `drawn_levels` for those that are left out. None where
    no contestant has a point to draw.
    """
    if not curve.series:
        return None
    return picture(_parts(curve, order, levels), _HEIGHT, _told(curve, levels))


def drawn_levels(curve: Curve, levels: Sequence[Figure]) -> tuple[list[Figure], list[Figure]]:
    """The levels of a picture, ascending, and those above it: higher than all curves, they would press them flat.

    The lowest one is always drawn.
    """
    highest = max((value for one in curve.series for value in one.high), default=0.0)
    ascending = sorted(levels, key=lambda one: one.bits_per_char)
    num_drawn = max(1, sum(one.bits_per_char <= highest for one in ascending))
    return ascending[:num_drawn], ascending[num_drawn:]


def _parts(curve: Curve, order: Sequence[str], levels: Sequence[Figure]) -> list[Markup]:
    series = curve.series
    drawn, _ = drawn_levels(curve, levels)
    values = [value for one in series for value in (*one.low, *one.high)]
    values += [one.bits_per_char for one in drawn]
    longest = max(one.x[-1] for one in series)
    axes = Axes((0.0, longest * 1.03 or 1.0), padded(values), _HEIGHT)
    parts = axes.frame(f"{curve.label} ({curve.unit})", "bits per character on the val sample", ticks(*axes.x_range))
    for level in drawn:
        y = axes.y(level.bits_per_char)
        parts.append(element("path", d=f"M{axes.x(0.0):.1f} {y:.1f}H{AXES_RIGHT:g}", class_="reference"))
    for one in series:
        number = order.index(one.name)
        if one.num_seeds > 1:
            outline = axes.points(one.x, one.high) + axes.points(one.x, one.low)[::-1]
            parts.append(element("path", d=path(outline) + "Z", class_=f"band {style_of(number)}"))
        line = axes.points(one.x, one.mean)
        parts.append(element("path", d=path(line), class_=f"line {style_of(number)}"))
        parts += [marker(number, x, y, 2.6) for x, y in line]
    return parts + _level_labels(axes, drawn)


def _level_labels(axes: Axes, drawn: Sequence[Figure]) -> list[Markup]:
    """A label above each level line, or below it where the line above is too close."""
    labels, taken = [], 0.0  # down to this height by labels and lines
    for one in reversed(drawn):  # from above
        level = axes.y(one.bits_per_char)
        y = level - 3.0
        if y - _LABEL_HEIGHT > taken:
            taken = level
        else:
            y = taken = max(level + 9.0, taken + _LABEL_HEIGHT)
        text = f"{one.name} {one.bits_per_char:.2f}"
        labels.append(element("text", text, x=AXES_RIGHT, y=y, class_="tick end level"))
    return labels


def _told(curve: Curve, levels: Sequence[Figure]) -> str:
    told = "; ".join(
        f"{one.name} goes from {one.mean[0]:.2f} at {one.x[0]:.3g} to {one.mean[-1]:.2f} at {one.x[-1]:.3g}"
        for one in curve.series
    )
    drawn, _ = drawn_levels(curve, levels)
    level = ", ".join(f"{one.name} {one.bits_per_char:.2f}" for one in drawn)
    return f"Bits per character on the val sample against {curve.label} ({curve.unit}): {told}." + (
        f" Level lines: {level}." if level else ""
    )


def curve_paths(folder: Path) -> list[Path]:
    """The picture files that `draw_curves` writes."""
    return [folder / name for name in _FILES.values()]


def draw_curves(folder: Path, entries: Sequence[Entry], levels: Sequence[Figure] = ()) -> None:
    """Write the curves against characters and seconds as SVG files; runs without a val figure give a sentence.

    The val sample is a fixed part of val, spread over its documents, under disjoint windows.
    """
    order = [entry.name for entry in entries]
    sizes = {entry.name: entry.runs[0].report.tokenizer.vocab_size for entry in entries}
    for curve in curves(entries):
        if curve.quantity in _FILES:
            write_text(folder / _FILES[curve.quantity], _file_of(curve, order, sizes, levels))


def _file_of(curve: Curve, order: Sequence[str], sizes: Mapping[str, int], levels: Sequence[Figure]) -> str:
    """The picture as a file of its own: with its style, the contestants' names and their vocabularies' sizes."""
    if not curve.series:
        parts, told = [element("text", "no val figure was taken during training", x=12, y=24)], "No val figures."
    else:
        parts, told = _parts(curve, order, levels), _told(curve, levels)
    y = _HEIGHT + 6.0
    for number, name in enumerate(order):
        key = legend_key(number, x=12, y=y, width=26, height=12)
        label = f"{shorten(name, _LEGEND_COLUMNS)} ({counted(sizes[name], 'token')})"
        parts += [key, element("text", label, x=44, y=y + 10)]
        y += _LEGEND_LINE
    style = element("style", Markup(read_text(_STYLE)))
    drawn = element(
        "svg",
        style + Markup("").join(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:g} {y + 6:g}",
        width=_FILE_SCALE * WIDTH,
        height=_FILE_SCALE * (y + 6),
        role="img",
        aria_label=told,
        class_="file",
    )
    return f"{drawn}\n"
