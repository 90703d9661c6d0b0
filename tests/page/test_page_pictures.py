"""The page's own pictures: curves, bars, intervals, scatter and sweep."""

import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from budget_helpers import answer_for
from compare.outputs.comparison import BaselineLine
from compare.page.bars import Group, forest_picture, grouped_bars, ladder, signed
from compare.page.budgets import curves_picture, gap_picture
from compare.page.curves import curve_picture, drawn_levels
from compare.page.data import levels
from compare.page.render import render_page
from compare.page.svg import (
    Axes,
    element,
    marker,
    scatter_counts,
    scatter_picture,
    style_of,
    sweep_picture,
    ticks,
)
from compare.page.values import Curve, Documents, Figure, Series
from page_helpers import full_page

ORDER = ["char", "bpe"]


def test_attributes_and_contents_are_escaped() -> None:
    assert str(element("text", "<&>", class_='a"b', stroke_width=1.5)) == (
        '<text class="a&#34;b" stroke-width="1.5">&lt;&amp;&gt;</text>'
    )


def test_ticks_are_round_and_inside() -> None:
    assert ticks(0.0, 1.2) == [0.0, 0.5, 1.0]
    assert ticks(2.42, 4.1) == [2.5, 3.0, 3.5, 4.0]
    assert ticks(-0.35, 0.36) == [-0.2, 0.0, 0.2]
    assert ticks(0.0, 6e6) == [0.0, 2e6, 4e6, 6e6]


def test_axes_map_ends_to_ends() -> None:
    axes = Axes((10.0, 1000.0), (0.0, 2.0), 200.0, is_x_logarithmic=True)
    assert axes.x(100.0) == pytest.approx((axes.x(10.0) + axes.x(1000.0)) / 2)
    assert axes.y(2.0) < axes.y(1.0) < axes.y(0.0) < 200.0


def shapes(svg: Any, name: str) -> list[ET.Element]:
    return [one for one in ET.fromstring(str(svg)).iter() if one.tag == name]


def of_class(svg: Any, wanted: str) -> list[ET.Element]:
    return [one for one in ET.fromstring(str(svg)).iter() if wanted in one.get("class", "").split()]


def curve(num_seeds: int) -> Curve:
    line = Series("", num_seeds, x=(1.0, 2.0), mean=(3.0, 2.5), low=(2.9, 2.4), high=(3.1, 2.6))
    return Curve("characters", "characters seen", "millions", tuple(replace(line, name=name) for name in ORDER))


def test_curves_have_lines_markers_and_units() -> None:
    svg = curve_picture(curve(1), ORDER)
    assert len(of_class(svg, "line")) == 2 and len(of_class(svg, "mark")) == 4
    assert of_class(svg, "band") == []
    texts = [one.text for one in shapes(svg, "text")]
    assert "characters seen (millions)" in texts and "bits per character on the val sample" in texts
    assert "bpe goes from 3.00 at 1 to 2.50 at 2" in str(svg)


def test_seeds_are_a_band() -> None:
    assert len(of_class(curve_picture(curve(3), ORDER), "band")) == 2


LEVELS = [Figure("gzip", 5.0), Figure("n-gram", 2.7), Figure("xz", 1.5)]


def test_baselines_are_level_lines_where_their_figures_are() -> None:
    svg = curve_picture(curve(1), ORDER, LEVELS)
    lines = [float(re.findall(r"[\d.]+", one.get("d", ""))[1]) for one in of_class(svg, "reference")]
    marks = of_class(svg, "mark")  # char: a circle at 3.0 and one at 2.5
    high, low = (float(one.get("cy", "")) for one in marks[:2])
    per_bit = (low - high) / 0.5
    assert sorted(lines) == pytest.approx([low - 0.2 * per_bit, low + per_bit], abs=0.1)
    labels = [one.text for one in of_class(svg, "level")]
    assert labels == ["n-gram 2.70", "xz 1.50"]
    assert "Level lines: xz 1.50, n-gram 2.70." in str(svg)


def test_baselines_above_all_curves_are_named_and_not_drawn() -> None:
    drawn, above = drawn_levels(curve(1), LEVELS)
    assert ([one.name for one in drawn], [one.name for one in above]) == (["xz", "n-gram"], ["gzip"])
    drawn, above = drawn_levels(curve(1), LEVELS[:1])  # the lowest is drawn wherever it is
    assert ([one.name for one in drawn], above) == (["gzip"], [])
    html = render_page(full_page())
    assert "Above the pictures: gzip 5.20." in html


def test_each_compressor_is_one_level_and_guesses_are_none() -> None:
    names = ("uniform", "order-0", "gzip", "xz", "gzip after train", "xz after train", "character n-gram")
    found = levels(
        [BaselineLine(name, bits, "", None) for name, bits in zip(names, (9, 8, 4, 2, 3, 5, 1), strict=True)]
    )
    assert {one.name: one.bits_per_char for one in found} == {
        "gzip after train": 3,
        "xz": 2,
        "character n-gram": 1,
    }


def test_labels_of_close_levels_do_not_overlap() -> None:
    close = [Figure(str(number), 2.7 + 0.001 * number) for number in range(4)]
    heights = [float(one.get("y", "")) for one in of_class(curve_picture(curve(1), ORDER, close), "level")]
    assert all(below - above >= 10.9 for above, below in itertools.pairwise(heights))
    svg = curve_picture(curve(1), ORDER, close[:2])
    lines = sorted(float(re.findall(r"[\d.]+", one.get("d", ""))[1]) for one in of_class(svg, "reference"))
    above, below = (float(one.get("y", "")) for one in of_class(svg, "level"))
    assert above < lines[0] < lines[1] < below - 8  # no line runs through a label


def test_no_points_no_picture() -> None:
    assert curve_picture(replace(curve(1), series=()), ORDER) is None


def test_one_level_point_is_drawn() -> None:
    line = Series("char", 1, x=(0.0,), mean=(3.0,), low=(3.0,), high=(3.0,))
    assert len(of_class(curve_picture(replace(curve(1), series=(line,)), ORDER), "mark")) == 1


def test_contestants_differ_in_shape_and_colour() -> None:
    assert len({re.sub(r' class="[^"]*"', "", str(marker(number, 5.0, 5.0))) for number in range(5)}) == 5
    assert [style_of(number) for number in (0, 6, 7)] == ["s0", "s6", "s0"]


DOCUMENTS = Documents(
    num_documents=3,
    num_shown=3,
    names=("one", "two & <three>", "four"),
    num_chars=(10, 20, 30),
    bits_per_char={"char": (2.0, 3.0, 2.5), "bpe": (2.2, 2.8, 2.5)},
    pairs=(),
)


def test_scatter_names_every_document_and_counts_sides() -> None:
    assert scatter_counts(DOCUMENTS, ["bpe", "char"]) == (1, 1)
    svg = scatter_picture(DOCUMENTS, ["bpe", "char"], ORDER)
    points = of_class(svg, "document")
    titles = [point[0].text for point in points]
    assert titles[1] == "two & <three>: 20 characters; bpe 2.800, char 3.000"
    below = points[0]  # fewer bits under char: below the diagonal, which runs from corner to corner
    assert float(below.get("cy", "")) > 360 - float(below.get("cx", "")) - 50
    assert float(points[0].get("r", "")) < float(points[2].get("r", ""))


def test_bars_are_as_long_as_their_values() -> None:
    groups = [
        Group("digit", "", {"char": 4.0, "bpe": 2.0}, {"bpe": "40 % cut"}),
        Group("space", "", {"char": 3.0, "bpe": None}, {}),
    ]
    svg = grouped_bars(groups, ORDER, about="Bits")
    widths = [float(bar.get("width", "")) for bar in of_class(svg, "bar")]
    assert [width / widths[0] for width in widths] == pytest.approx([1.0, 0.5, 0.75], rel=1e-3)
    assert "40 % cut" in str(svg) and "–" in str(svg)
    assert "Bits: digit char 4.00, bpe 2.00; space char 3.00." in str(svg)


def test_a_class_far_above_the_others_is_cut_and_says_so() -> None:
    groups = [Group(str(value), "", {"char": value}, {}) for value in (2.0, 4.0, 40.0)]
    svg = grouped_bars(groups, ["char"], about="Bits")
    widths = [float(bar.get("width", "")) for bar in of_class(svg, "bar")]
    assert [width / widths[1] for width in widths] == pytest.approx([0.5, 1.0, 1.25], rel=1e-3)
    assert len(of_class(svg, "break")) == 1 and "40.00" in str(svg)


def test_empty_classes_are_drawn_without_bars() -> None:
    groups = [Group("none", "", {"char": None}, {})]
    assert of_class(grouped_bars(groups, ["char"], about="Bits"), "bar") == []


def test_the_ladder_tells_contestants_from_baselines() -> None:
    rows = [Figure("char", 2.0), Figure("gzip", 3.0)]
    bars = of_class(ladder(rows, ORDER), "bar")
    assert [bar.get("class") for bar in bars] == ["bar s0", "bar grey"]
    assert float(bars[0].get("width", "")) / float(bars[1].get("width", "")) == pytest.approx(2 / 3, rel=1e-3)


def test_the_forest_has_intervals_around_the_dots() -> None:
    svg = forest_picture(full_page().certainty)
    [interval] = of_class(svg, "documents")
    start, end = map(float, re.findall(r"[\d.]+", interval.get("d", ""))[::2])
    assert start < float(of_class(svg, "estimate")[0].get("cx", "")) < end
    assert len(of_class(svg, "estimate")) == 2  # the second pair has no interval and is still shown
    assert "−0.250 (95 % interval over documents −0.300 to −0.200)" in str(svg) and "without an interval" in str(svg)


def test_signs_are_as_wide_as_each_other() -> None:
    assert (signed(-0.25), signed(0.25)) == ("−0.250", "+0.250")


def test_the_sweep_joins_sizes_in_order_and_shows_references() -> None:
    sweep = full_page().sweep
    assert sweep is not None
    svg = sweep_picture(sweep)
    [line] = of_class(svg, "line")
    xs = [float(x) for x in re.findall(r"([\d.]+) [\d.]+", line.get("d", ""))]
    assert xs == sorted(xs) and len(xs) == 2
    assert len(of_class(svg, "whisker")) == 2 and len(of_class(svg, "reference")) == 1
    assert "best at 1,000 tokens with 2.100; char needs 2.300" in str(svg)


def test_curves_over_budgets_have_points_bands_and_ticks_at_multiples() -> None:
    answer = answer_for(ORDER)
    drawing = curves_picture(answer, ORDER)
    for number in range(2):
        assert len(of_class(drawing, f"s{number}")) == 2 + 2 * 5  # line, band; a mark and a bar for each budget
    names = [one.text for one in of_class(drawing, "tick") if "middle" in one.get("class", "")]
    assert names == ["1/16", "1/8", "1/4", "1/2", "1", "4", "10"]
    expected = answer.curves[0].band
    assert expected is not None
    told = ET.fromstring(str(drawing)).get("aria-label", "")
    assert f"is expected at {expected.middle[-1]:.3f}" in told and "at 10 times" in told
    marks = [one for one in of_class(drawing, "mark") if "s0" in one.get("class", "")]
    places = [float(one.get("cx", "")) for one in marks]
    assert places == sorted(places) and np.allclose(np.diff(places), places[1] - places[0], atol=0.02)


def test_the_gap_over_budgets_has_intervals_and_a_line_at_zero() -> None:
    answer = answer_for(ORDER)
    drawing = gap_picture(answer, answer.pairs[0], ORDER)
    assert len(of_class(drawing, "whisker")) == len(of_class(drawing, "mark")) == 5
    assert len(of_class(drawing, "band")) == 1 and len(of_class(drawing, "tie")) == 1
    told = ET.fromstring(str(drawing)).get("aria-label", "")
    assert f"{answer.pairs[0].gaps[0].difference:+.3f} at 1/16" in told


@pytest.mark.parametrize("points", [1, 2, 3])
def test_budgets_without_a_forecast_are_drawn_as_measured(points: int) -> None:
    answer = answer_for(ORDER, points)
    assert not of_class(curves_picture(answer, ORDER), "band")
    assert len(of_class(gap_picture(answer, answer.pairs[0], ORDER), "mark")) == points
