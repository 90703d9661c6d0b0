import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from compare.page.curves import curve_paths, draw_curves
from compare.page.values import Figure
from compare.runs import Entry
from report_helpers import report_of

LEVELS = [Figure("xz", 2.25)]
_SVG = "{http://www.w3.org/2000/svg}"


def run_of(name: str, bits: list[float], seed: int = 1) -> Any:
    seen = {"flops": 7, "characters": 5e6, "seconds": 0.1}
    metrics: list[dict[str, float]] = [seen | {"loss_nats": 3.0}]  # a line without val
    for number, one in enumerate(bits, start=1):
        metrics.append({key: 10 * number * value for key, value in seen.items()} | {"val_sample_bits_per_char": one})
    report = report_of({"tokenizer": {"vocab_size": 1234}})
    return SimpleNamespace(contestant=name, metrics=metrics, report=report, seed=seed)


def entry_of(name: str, *curves: list[float]) -> Entry:
    """One contestant with one run for each curve of the val sample."""
    return Entry(name, tuple(run_of(name, bits, seed) for seed, bits in enumerate(curves, start=1)))


def drawn(folder: Path, *entries: Entry) -> ElementTree.Element:
    """The curves against characters, as the file holds them."""
    draw_curves(folder, entries, LEVELS)
    return ElementTree.parse(folder / "curve_characters.svg").getroot()


def of_class(root: ElementTree.Element, *wanted: str) -> list[ElementTree.Element]:
    return [one for one in root.iter() if set(wanted) <= set(one.get("class", "").split())]


def heights(one: ElementTree.Element) -> list[float]:
    """The heights of a path's points."""
    return [float(y) for _, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", one.get("d", ""))]


def test_every_promised_picture_is_drawn(tmp_path: Path) -> None:
    draw_curves(tmp_path, [entry_of("char", [4.0, 3.0]), entry_of("bpe", [3.5, 2.5])], LEVELS)
    assert sorted(tmp_path.iterdir()) == sorted(curve_paths(tmp_path))
    assert [path.name for path in curve_paths(tmp_path)] == ["curve_characters.svg", "curve_seconds.svg"]
    for path in curve_paths(tmp_path):
        root = ElementTree.parse(path).getroot()
        assert root.tag == f"{_SVG}svg" and root.get("width") and root.get("height")


def test_a_file_has_its_own_style_and_loads_nothing(tmp_path: Path) -> None:
    root = drawn(tmp_path, entry_of("char", [4.0, 3.0]))
    [style] = root.iter(f"{_SVG}style")
    assert ".line {" in (style.text or "") and "--s0:" in (style.text or "")
    text = (tmp_path / "curve_characters.svg").read_text(encoding="utf-8").replace(_SVG[1:-1], "")
    assert "http" not in text and "url(" not in text and "@import" not in text and "<script" not in text


def test_axes_have_units_and_contestants_are_named(tmp_path: Path) -> None:
    root = drawn(tmp_path, entry_of("char", [4.0, 3.0]), entry_of("b<&>", [3.5, 2.5]))
    texts = {one.text for one in root.iter(f"{_SVG}text")}
    wanted = {
        "characters seen (millions)",
        "bits per character on the val sample",
        "char (1,234 tokens)",
        "b<&> (1,234 tokens)",
    }
    assert wanted | {"xz 2.25"} <= texts
    assert "training time (seconds)" in (tmp_path / "curve_seconds.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["n" * 90, "字" * 60])
def test_a_long_name_stays_inside_the_picture(tmp_path: Path, name: str) -> None:
    root = drawn(tmp_path, entry_of(name, [4.0, 3.0]))
    [label] = [one.text or "" for one in root.iter(f"{_SVG}text") if (one.text or "").endswith("(1,234 tokens)")]
    assert "…" in label and len(label) < 60


@pytest.mark.parametrize(("curves", "bands"), [([[4.0, 3.0]], 0), ([[4.0, 3.0], [3.8, 3.3]], 1)])
def test_several_seeds_have_a_band_and_one_seed_has_none(tmp_path: Path, curves: list[list[float]], bands: int) -> None:
    assert len(of_class(drawn(tmp_path, entry_of("bpe", [3.5, 2.5]), entry_of("char", *curves)), "band")) == bands


def test_the_line_is_the_mean_and_the_band_reaches_all_seeds(tmp_path: Path) -> None:
    """Drawn with a contestant that is the mean, and one for each end of the band: their points are the same."""
    entries = [entry_of("seeds", [4.0, 2.0], [2.0, 3.0]), entry_of("mean", [3.0, 2.5])]
    entries += [entry_of("low", [2.0, 2.0]), entry_of("high", [4.0, 3.0])]
    root = drawn(tmp_path, *entries)
    seeds, mean, low, high = (heights(one) for one in of_class(root, "line") if len(heights(one)) == 2)
    assert seeds == mean != low
    [band] = of_class(root, "band")
    assert heights(band) == [*high, *low[::-1]]


def test_without_val_figures_the_file_says_so(tmp_path: Path) -> None:
    root = drawn(tmp_path, entry_of("char", []))
    assert "no val figure was taken during training" in {one.text for one in root.iter(f"{_SVG}text")}


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        draw_curves(folder, [entry_of("char", [4.0, 3.0, 2.0], [4.0, 3.5, 2.5])], LEVELS)
    for left, right in zip(curve_paths(tmp_path / "a"), curve_paths(tmp_path / "b"), strict=True):
        assert left.read_bytes() == right.read_bytes()
