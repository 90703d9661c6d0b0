"""Bars and intervals of the page as inline SVG; see `compare.page.svg` for how a picture is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from compare.certainty.pairs import EQUAL_SHARE, Certainty, Pair
from compare.page.svg import WIDTH, element, picture, style_of, ticks
from compare.page.values import Figure
from data.show import shorten

_BAR, _GAP, _LABEL, _SPACE = 10.0, 4.0, 17.0, 13.0  # heights
_VALUE_WIDTH = 92.0  # to the right of the longest bar
_AXIS = 40.0


@dataclass(frozen=True)
class Group:
    """One class of a bar picture, with a bar for each contestant."""

    label: str
    aside: str
    """Said in grey after the label."""
    values: Mapping[str, float | None]
    notes: Mapping[str, str]
    """Said in grey after the values."""


def grouped_bars(
    groups: Sequence[Group], order: Sequence[str], *, about: str, unit: str = "bits per character"
) -> Markup:
    """Horizontal bars, one group for each class and one bar in it for each contestant.

    `about` begins the text alternative.
    """
    longest = _end_of_scale(groups)
    scale = (WIDTH - _VALUE_WIDTH) / longest
    parts, y = [], 4.0
    for group in groups:
        label = Markup("{} {}").format(group.label, element("tspan", group.aside, class_="aside"))
        parts.append(element("text", label, x=0, y=y + 11, class_="group"))
        y += _LABEL
        for number, name in enumerate(order):
            value = group.values.get(name)
            if value is not None:
                bar = {"x": 0, "y": y, "width": max(min(value, longest) * scale, 0.5), "height": _BAR}
                parts.append(element("rect", **bar, class_=f"bar {style_of(number)}"))
                if value > longest:  # the bar is cut: two strokes say so
                    at = longest * scale - 12
                    parts.append(element("path", d=f"M{at:.1f} {y + 12:.1f}l5 -14m5 0l-5 14", class_="break"))
            shown = "–" if value is None else f"{value:.2f}"
            note = element("tspan", group.notes.get(name, ""), class_="aside")
            text = Markup("{} {}").format(shown, note)
            parts.append(element("text", text, x=min(value or 0.0, longest) * scale + 5, y=y + 9, class_="value"))
            y += _BAR + _GAP
        y += _SPACE
    y -= _SPACE - 4
    parts.append(element("path", d=f"M0 {y:.1f}H{longest * scale:.1f}", class_="axis"))
    for tick in ticks(0.0, longest, 4):
        parts.append(element("path", d=f"M{tick * scale:.1f} {y:.1f}v4", class_="axis"))
        anchor = "start" if tick == 0 else "middle"
        parts.append(element("text", f"{tick:g}", x=tick * scale, y=y + 16, class_=f"tick {anchor}"))
    parts.append(element("text", unit, x=longest * scale / 2, y=y + 32, class_="label middle"))
    return picture(parts, y + _AXIS, f"{about}: {_told(groups, order)}.")


def _end_of_scale(groups: Sequence[Group]) -> float:
    """The longest bar; but if one class alone is far above all others, its bars are cut so that those stay readable."""
    largest = sorted(max((v for v in group.values.values() if v is not None), default=0.0) for group in groups)
    if len(largest) > 1 and largest[-1] > 1.8 * largest[-2] > 0.0:
        return float(1.25 * largest[-2])
    return float(largest[-1]) if largest and largest[-1] > 0.0 else 1.0


def _told(groups: Sequence[Group], order: Sequence[str]) -> str:
    said = []
    for group in groups:
        values = [(name, group.values.get(name)) for name in order]
        said.append(f"{group.label} " + ", ".join(f"{name} {value:.2f}" for name, value in values if value is not None))
    return "; ".join(said)


def ladder(rows: Sequence[Figure], order: Sequence[str]) -> Markup:
    """One bar for each of `rows`, contestants in their colours, baselines in grey."""
    longest = max(row.bits_per_char for row in rows)
    scale = (WIDTH - 46.0) / longest
    parts, y = [], 2.0
    for row in rows:
        is_contestant = row.name in order
        style = style_of(order.index(row.name)) if is_contestant else "grey"
        weight = "group" if is_contestant else "group plain"
        parts.append(element("text", shorten(row.name, 44), x=0, y=y + 11, class_=weight))
        y += _LABEL - 1
        parts.append(element("rect", x=0, y=y, width=row.bits_per_char * scale, height=_BAR, class_=f"bar {style}"))
        value = f"{row.bits_per_char:.3f}"
        parts.append(element("text", value, x=row.bits_per_char * scale + 5, y=y + 9, class_="value"))
        y += _BAR + 7
    told = ", ".join(f"{row.name} {row.bits_per_char:.3f}" for row in rows)
    return picture(parts, y, f"Bits per character on the test text, from fewest to most: {told}.")


def signed(value: float) -> str:
    """Three decimals with a sign, the minus as wide as the plus."""
    return f"{value:+.3f}".replace("-", "−")


def forest_picture(certainty: Certainty) -> Markup:
    """The difference of every pair with its 95 % intervals over documents (thick) and over blocks (thin)."""
    pairs = certainty.pairs
    ends = [0.0]
    for pair in pairs:
        ends.append(pair.difference)
        ends += [end for found in (pair.documents, pair.blocks) if found for end in (found.low, found.high)]
    low, high = min(ends), max(ends)
    margin = 0.08 * (high - low) or 0.01
    low, high = low - margin, high + margin

    def across(value: float) -> float:
        return 6.0 + (value - low) / (high - low) * (WIDTH - 12.0)

    bottom = 46.0 * len(pairs) + 10.0
    tie = EQUAL_SHARE * max(one.mean for one in certainty.contestants)
    left, right = max(-tie, low), min(tie, high)
    band = {"x": across(left), "y": 4, "width": across(right) - across(left), "height": bottom - 4}
    parts = [element("rect", **band, class_="tie")]
    parts.append(element("path", d=f"M{across(0.0):.1f} 4V{bottom:g}", class_="reference"))
    told = []
    for number, pair in enumerate(pairs):
        y = 46.0 * number + 38.0
        label = f"{pair.a} − {pair.b}"
        shown = f"{shorten(pair.a, 21)} − {shorten(pair.b, 21)}"
        parts.append(element("text", shown, x=6, y=y - 15, class_="group"))
        parts.append(element("text", signed(pair.difference), x=WIDTH - 6, y=y - 15, class_="value end"))
        for kind, found, offset in (("documents", pair.documents, 0.0), ("blocks", pair.blocks, 7.0)):
            if found:
                line = f"M{across(found.low):.1f} {y + offset:.1f}H{across(found.high):.1f}"
                parts.append(element("path", d=line, class_=f"interval {kind}"))
        parts.append(element("circle", cx=across(pair.difference), cy=y, r=4, class_="estimate"))
        told.append(f"{label} is {signed(pair.difference)}{_interval_words(pair)}")
    parts.append(element("path", d=f"M6 {bottom:g}H{WIDTH - 6:g}", class_="axis"))
    for tick in ticks(low, high):
        parts.append(element("path", d=f"M{across(tick):.1f} {bottom:g}v4", class_="axis"))
        parts.append(
            element("text", f"{tick:g}".replace("-", "−"), x=across(tick), y=bottom + 16, class_="tick middle")
        )
    axis = "difference, bits per character (below 0: the first needs fewer)"
    parts.append(element("text", axis, x=WIDTH / 2, y=bottom + 33, class_="label middle"))
    return picture(parts, bottom + _AXIS, "Difference in bits per character: " + "; ".join(told) + ".")


def _interval_words(pair: Pair) -> str:
    found, kind = (pair.documents, "documents") if pair.documents else (pair.blocks, "blocks")
    if found is None:
        return " without an interval"
    return f" (95 % interval over {kind} {signed(found.low)} to {signed(found.high)})"
