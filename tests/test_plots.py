import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from compare.plots import curve_paths, draw_curves

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def run_of(name: str, bits: list[float]) -> Any:
    metrics: list[dict[str, float]] = [{"characters": 5, "seconds": 0.1, "loss_nats": 3.0}]  # a line without val
    metrics += [{"characters": 10 * i, "seconds": 1.0 * i, "val_bits_per_char": b} for i, b in enumerate(bits, 1)]
    return SimpleNamespace(contestant=name, metrics=metrics, report={"tokenizer": {"vocab_size": 1234}})


def test_every_promised_picture_is_drawn(tmp_path: Path) -> None:
    draw_curves(tmp_path, [run_of("char", [4.0, 3.0]), run_of("bpe", [3.5, 2.5])])
    assert sorted(tmp_path.iterdir()) == sorted(curve_paths(tmp_path))
    for path in curve_paths(tmp_path):
        if path.suffix == ".png":
            assert path.read_bytes().startswith(_PNG_SIGNATURE)
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_axes_have_units_and_contestants_are_named(tmp_path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):  # text stays text
        draw_curves(tmp_path, [run_of("char", [4.0, 3.0])])
    drawn = (tmp_path / "curve_characters.svg").read_text(encoding="utf-8")
    for text in ("characters seen (millions)", "val bits per character", "char (1,234 tokens)"):
        assert text in drawn
    assert "seconds of training" in (tmp_path / "curve_seconds.svg").read_text(encoding="utf-8")


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        draw_curves(folder, [run_of("char", [4.0, 3.0, 2.0])])
    for left, right in zip(curve_paths(tmp_path / "a"), curve_paths(tmp_path / "b"), strict=True):
        assert left.read_bytes() == right.read_bytes()
