import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from data.errors import DataError
from tokenizer.studies.study_plot import draw_study, study_plot_paths

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def vocabulary(sizes: dict[int, float], glued: int) -> dict[str, Any]:
    return {
        "prefixes": [{"tokens": size, "test": {"bytes_per_token": figure}} for size, figure in sizes.items()],
        "glued": {"count": glued, "share_of_learned": glued / 10_000},
    }


def small_study() -> dict[str, Any]:
    return {
        "inputs": {"window_tokens": 77},
        "vocabularies": {
            "gpt2": vocabulary({256: 1.0, 512: 2.0, 700: 2.5}, 7),
            "none": vocabulary({256: 1.0, 512: 2.2, 700: 2.9}, 1234),
            "GPT-2's own": vocabulary({256: 1.0, 512: 1.5, 1024: 2.0}, 8),
        },
        "contestants": {
            "char": {"vocab_size": 149, "context": {"test": {"mean_characters": 77.0}}},
            "bpe": {"vocab_size": 2000, "context": {"test": {"mean_characters": 321.4}}},
        },
    }


def test_both_pictures_are_drawn(tmp_path: Path) -> None:
    draw_study(tmp_path, small_study())
    svg, png = study_plot_paths(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([svg, png])
    assert png.read_bytes().startswith(_PNG_SIGNATURE)
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")


def test_axes_have_units_and_everything_is_named(tmp_path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):  # text stays text
        draw_study(tmp_path, small_study())
    drawn = (tmp_path / "study.svg").read_text(encoding="utf-8")
    for text in (
        *("bytes per token on test", "split gpt2", "split none", "GPT-2's own", "1,024", "1,234"),
        *("% of the learned tokens", "characters on average, on test", "Reach of 77 tokens", "char (149)", "321"),
    ):
        assert text in drawn, text
    assert ">700<" not in drawn  # sizes that are no power of two are points, not ticks


def test_the_same_study_gives_the_same_bytes(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        draw_study(folder, small_study())
    for left, right in zip(study_plot_paths(tmp_path / "a"), study_plot_paths(tmp_path / "b"), strict=True):
        assert left.read_bytes() == right.read_bytes()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file where a folder should be", encoding="utf-8")
    with pytest.raises(DataError, match=r"cannot write .*reports"):
        draw_study(tmp_path / "reports", small_study())
