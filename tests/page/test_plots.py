import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib
import pytest

from compare.page.curves import curve_paths, draw_curves
from compare.runs import Entry
from report_helpers import report_of

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def run_of(name: str, bits: list[float], seed: int = 1) -> Any:
    seen = {"flops": 7, "characters": 5, "seconds": 0.1}
    metrics: list[dict[str, float]] = [seen | {"loss_nats": 3.0}]  # a line without val
    for number, one in enumerate(bits, start=1):
        metrics.append({key: 10 * number * value for key, value in seen.items()} | {"val_bits_per_char": one})
    report = report_of({"tokenizer": {"vocab_size": 1234}})
    return SimpleNamespace(contestant=name, metrics=metrics, report=report, seed=seed)


def entry_of(name: str, *curves: list[float]) -> Entry:
    """One contestant with one run for each curve of val bits per character."""
    return Entry(name, tuple(run_of(name, bits, seed) for seed, bits in enumerate(curves, start=1)))


def svg_of(folder: Path, *entries: Entry) -> str:
    """The curves against characters, with text as text."""
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw_curves(folder, entries)
    return (folder / "curve_characters.svg").read_text(encoding="utf-8")


def num_bands(svg: str) -> int:
    """Areas between two curves, as matplotlib names them."""
    return len(re.findall(r'id="FillBetweenPolyCollection_\d+"', svg))


def test_every_promised_picture_is_drawn(tmp_path: Path) -> None:
    draw_curves(tmp_path, [entry_of("char", [4.0, 3.0]), entry_of("bpe", [3.5, 2.5])])
    assert sorted(tmp_path.iterdir()) == sorted(curve_paths(tmp_path))
    assert {path.name for path in curve_paths(tmp_path)} == {
        f"curve_{quantity}.{form}" for quantity in ("characters", "seconds") for form in ("svg", "png")
    }
    for path in curve_paths(tmp_path):
        if path.suffix == ".png":
            assert path.read_bytes().startswith(_PNG_SIGNATURE)
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_axes_have_units_and_contestants_are_named(tmp_path: Path) -> None:
    drawn = svg_of(tmp_path, entry_of("char", [4.0, 3.0]), entry_of("bpe", [3.5, 2.5]))
    for text in ("characters seen (millions)", "val bits per character", "char (1,234 tokens)", "bpe (1,234 tokens)"):
        assert text in drawn
    assert "training time (seconds)" in (tmp_path / "curve_seconds.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(("curves", "bands"), [([[4.0, 3.0]], 0), ([[4.0, 3.0], [3.8, 3.3]], 1)])
def test_several_seeds_have_a_band_and_one_seed_has_none(tmp_path: Path, curves: list[list[float]], bands: int) -> None:
    assert num_bands(svg_of(tmp_path, entry_of("bpe", [3.5, 2.5]), entry_of("char", *curves))) == bands


def test_the_line_is_the_mean_and_the_band_reaches_all_seeds(tmp_path: Path) -> None:
    """Drawn beside a contestant that is the mean, and one for each end of the band: their points coincide."""
    entries = [entry_of("seeds", [4.0, 2.0], [2.0, 3.0]), entry_of("mean", [3.0, 2.5])]
    entries += [entry_of("low", [2.0, 2.0]), entry_of("high", [4.0, 3.0])]
    svg = svg_of(tmp_path, *entries)
    curves = [path_points(d) for d in re.findall(r'<path d="([^"]*)" clip-path[^>]*style="fill: none', svg)]
    lines = [points for points in curves if len(points) == 2 and points[0][0] != points[1][0]]
    heights = [[y for _, y in points] for points in lines]
    assert len(heights) >= 4
    assert heights[-4] == heights[-3] != heights[-2]
    band = re.search(r'id="FillBetweenPolyCollection_1">\s*<defs>\s*<path[^>]* d="([^"]*)"', svg)
    assert band is not None
    drawn_heights = sorted({y for _, y in path_points(band[1])})
    height_of_picture = float(re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', svg)[1])  # type: ignore[index]
    expected = sorted({y - height_of_picture for y in (*heights[-2], *heights[-1])})
    assert drawn_heights == pytest.approx(expected, abs=1e-3)


def path_points(d: str) -> list[tuple[float, float]]:
    """The points of an SVG path of straight lines."""
    return [(float(x), float(y)) for x, y in re.findall(r"[ML] (-?[\d.]+) (-?[\d.]+)", d)]


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        draw_curves(folder, [entry_of("char", [4.0, 3.0, 2.0], [4.0, 3.5, 2.5])])
    for left, right in zip(curve_paths(tmp_path / "a"), curve_paths(tmp_path / "b"), strict=True):
        assert left.read_bytes() == right.read_bytes()
