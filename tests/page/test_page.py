import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from compare.page.bars import forest_picture, grouped_bars, ladder, signed
from compare.page.data import page_data
from compare.page.render import render_page, visible, write_page
from compare.page.svg import (
    Axes,
    curve_picture,
    element,
    marker,
    scatter_counts,
    scatter_picture,
    style_of,
    sweep_picture,
    ticks,
)
from page_helpers import SPLITS, entries_of, every_tokenizer, full_page, summary_of

ORDER = ["char", "bpe"]


class Outline(HTMLParser):
    """Elements that are open and never closed, ids, references and visible text."""

    VOID = frozenset({"meta", "link", "br", "input"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for key, value in attrs:
            if key == "id":
                self.ids.append(value or "")
            if key in ("href", "src", "for"):
                self.references.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text.append(data)


@pytest.fixture(scope="module")
def html() -> str:
    return render_page(full_page())


@pytest.fixture(scope="module")
def outline(html: str) -> Outline:
    return Outline(html)


def test_elements_are_closed_and_ids_unique(outline: Outline) -> None:
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))


def test_the_page_loads_nothing(html: str, outline: Outline) -> None:
    for reference in outline.references:
        assert reference == "data:," or reference.lstrip("#") in outline.ids, reference
    assert "http://" not in html and "https://" not in html and "@import" not in html and "url(" not in html
    assert not re.search(r"\bfetch\(|XMLHttpRequest|import\(", html)


def test_every_section_is_there_and_listed(outline: Outline) -> None:
    first = ["figures", "unequal", "sure", "curves", "where", "passage", "documents", "sweep"]
    for section in [*first, "baselines", "viewer", "intrinsic", "samples", "formulas", "provenance"]:
        assert section in outline.ids
        assert f"#{section}" in outline.references


def test_sections_without_contents_are_left_out() -> None:
    entries = entries_of({"char": every_tokenizer()["char"]})
    page = page_data(summary=summary_of(entries), entries=entries, splits=SPLITS, tokenizers={}, samples={})
    found = Outline(render_page(page))
    for section in ("sure", "where", "documents", "sweep", "baselines", "intrinsic", "samples"):
        assert section not in found.ids and f"#{section}" not in found.references
    assert {"figures", "curves", "passage", "viewer", "unequal", "formulas", "provenance"} <= set(found.ids)


def test_what_the_reader_needs_is_text(outline: Outline) -> None:
    text = " ".join(" ".join(outline.text).split())
    page = full_page()
    assert page["verdict"] in text  # escaped: it reads as it was
    for cells in page["table"][1:]:
        assert cells[0].strip() in text and cells[1] in text
    for wanted in (
        "tokens seen: a 1 & b 2",
        "Training FLOPs per token = 6 * N",
        "by Student’s t, paired",
        "char needs fewer bits",
        "a tie",
        "U+2028",
        "cannot be written",
        "uniform",
        "Prompt in bold, temperature 0.8, top k 50, seed 1",
        "From a document’s beginning, temperature 0.8, seed 2",
        SPLITS["test"].sha256,
        every_tokenizer()["char"].fingerprint(),
    ):
        assert wanted in text, wanted


def test_strings_from_outside_cannot_become_markup(html: str) -> None:
    assert "<b>sat</b>" not in html and "&lt;b&gt;sat&lt;/b&gt;" in html
    assert "alert('&amp;')" not in html
    embedded = re.search(r'<script type="application/json" id="tokenizers">(.*?)</script>', html, re.DOTALL)
    assert embedded is not None
    assert json.loads(embedded.group(1)) == full_page()["tokenizers"]


def test_every_picture_says_what_it_shows(html: str) -> None:
    pictures = re.findall(r'<svg viewBox="[^"]*" role="img" aria-label="([^"]*)"', html)
    assert len(pictures) >= 3 + 3 + 2 + 3  # curves, bars, scatters, and one each of forest, sweep, ladder
    for alternative in pictures:
        assert len(alternative) > 40 and re.search(r"\d", alternative), alternative
    assert html.count("<svg") == html.count('role="img"') + html.count('class="key" aria-hidden="true"')


def test_the_same_page_gives_the_same_bytes_from_json(tmp_path: Path) -> None:
    page = full_page()
    write_page(tmp_path / "a.html", page)
    write_page(tmp_path / "b.html", json.loads(json.dumps(page)))
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert (tmp_path / "a.html").stat().st_size < 3_000_000


def test_templates_are_shipped() -> None:
    import tomllib

    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["setuptools"]["package-data"]["compare.page"] == ["templates/*"]


def test_scripts_cannot_end_their_element() -> None:
    for path in (Path(__file__).resolve().parents[2] / "compare" / "page" / "templates").glob("*.js"):
        text = path.read_text(encoding="utf-8").lower()
        assert "</script" not in text and "<!--" not in text
        assert text.count("\n") <= 350


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b", "a␣b"),
        ("\r\n\t\x00\x7f", "␍⏎⇥␀␡"),
        ("\u00a0\u2028\ufeff", "U+00A0U+2028U+FEFF"),
        ("e\u0301", "e◌\u0301"),
        ("日本🙂", "日本🙂"),
    ],
)
def test_stand_ins(text: str, shown: str) -> None:
    assert visible(text) == shown


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


def curve(num_seeds: int) -> dict[str, Any]:
    line = {"num_seeds": num_seeds, "x": [1.0, 2.0], "mean": [3.0, 2.5], "low": [2.9, 2.4], "high": [3.1, 2.6]}
    return {"label": "characters seen", "unit": "millions", "series": [line | {"name": name} for name in ORDER]}


def test_curves_have_lines_markers_and_units() -> None:
    svg = curve_picture(curve(1), ORDER)
    assert len(of_class(svg, "line")) == 2 and len(of_class(svg, "mark")) == 4
    assert of_class(svg, "band") == []
    texts = [one.text for one in shapes(svg, "text")]
    assert "characters seen (millions)" in texts and "val bits per character" in texts
    assert "bpe goes from 3.00 at 1 to 2.50 at 2" in str(svg)


def test_seeds_are_a_band() -> None:
    assert len(of_class(curve_picture(curve(3), ORDER), "band")) == 2


def test_no_points_no_picture() -> None:
    assert curve_picture(curve(1) | {"series": []}, ORDER) is None


def test_one_level_point_is_drawn() -> None:
    line = {"name": "char", "num_seeds": 1, "x": [0.0], "mean": [3.0], "low": [3.0], "high": [3.0]}
    assert len(of_class(curve_picture(curve(1) | {"series": [line]}, ORDER), "mark")) == 1


def test_contestants_differ_in_shape_and_colour() -> None:
    assert len({re.sub(r' class="[^"]*"', "", str(marker(number, 5.0, 5.0))) for number in range(5)}) == 5
    assert [style_of(number) for number in (0, 6, 7)] == ["s0", "s6", "s0"]


DOCUMENTS: dict[str, Any] = {
    "names": ["one", "two & <three>", "four"],
    "num_chars": [10, 20, 30],
    "num_shown": 3,
    "bits_per_char": {"char": [2.0, 3.0, 2.5], "bpe": [2.2, 2.8, 2.5]},
}


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
        {"label": "digit", "aside": "", "values": {"char": 4.0, "bpe": 2.0}, "notes": {"bpe": "40 % cut"}},
        {"label": "space", "aside": "", "values": {"char": 3.0, "bpe": None}, "notes": {}},
    ]
    svg = grouped_bars(groups, ORDER, about="Bits")
    widths = [float(bar.get("width", "")) for bar in of_class(svg, "bar")]
    assert [width / widths[0] for width in widths] == pytest.approx([1.0, 0.5, 0.75], rel=1e-3)
    assert "40 % cut" in str(svg) and "–" in str(svg)
    assert "Bits: digit char 4.00, bpe 2.00; space char 3.00." in str(svg)


def test_a_class_far_above_the_others_is_cut_and_says_so() -> None:
    groups = [{"label": str(value), "aside": "", "values": {"char": value}, "notes": {}} for value in (2.0, 4.0, 40.0)]
    svg = grouped_bars(groups, ["char"], about="Bits")
    widths = [float(bar.get("width", "")) for bar in of_class(svg, "bar")]
    assert [width / widths[1] for width in widths] == pytest.approx([0.5, 1.0, 1.25], rel=1e-3)
    assert len(of_class(svg, "break")) == 1 and "40.00" in str(svg)


def test_empty_classes_are_drawn_without_bars() -> None:
    groups = [{"label": "none", "aside": "", "values": {"char": None}, "notes": {}}]
    assert of_class(grouped_bars(groups, ["char"], about="Bits"), "bar") == []


def test_the_ladder_tells_contestants_from_baselines() -> None:
    rows = [{"name": "char", "bits_per_char": 2.0}, {"name": "gzip", "bits_per_char": 3.0}]
    bars = of_class(ladder(rows, ORDER), "bar")
    assert [bar.get("class") for bar in bars] == ["bar s0", "bar grey"]
    assert float(bars[0].get("width", "")) / float(bars[1].get("width", "")) == pytest.approx(2 / 3, rel=1e-3)


def test_the_forest_has_intervals_around_the_dots() -> None:
    statistics = full_page()["statistics"]
    svg = forest_picture(statistics)
    [interval] = of_class(svg, "documents")
    start, end = map(float, re.findall(r"[\d.]+", interval.get("d", ""))[::2])
    assert start < float(of_class(svg, "estimate")[0].get("cx", "")) < end
    assert len(of_class(svg, "estimate")) == 2  # the second pair has no interval and is still shown
    assert "−0.250 (95 % interval over documents −0.300 to −0.200)" in str(svg) and "without an interval" in str(svg)


def test_signs_are_as_wide_as_each_other() -> None:
    assert (signed(-0.25), signed(0.25)) == ("−0.250", "+0.250")


def test_the_sweep_joins_sizes_in_order_and_shows_references() -> None:
    svg = sweep_picture(full_page()["sweep"])
    [line] = of_class(svg, "line")
    xs = [float(x) for x in re.findall(r"([\d.]+) [\d.]+", line.get("d", ""))]
    assert xs == sorted(xs) and len(xs) == 2
    assert len(of_class(svg, "whisker")) == 2 and len(of_class(svg, "reference")) == 1
    assert "best at 1,000 tokens with 2.100; char needs 2.300" in str(svg)
