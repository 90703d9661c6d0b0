"""The study as a picture: compression by vocabulary size, glued tokens, and what a context spans."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.files import atomic_write
from tokenizer.studies.pictures import COLOURS, FORMATS, STYLES, picture_names

_SHOWN = "test"
_STEM = "study"


def study_plot_paths(folder: Path) -> list[Path]:
    """The picture files that `draw_study` writes."""
    return [folder / f"{_STEM}.{form}" for form in FORMATS]


def draw_study(folder: Path, study: Mapping[str, Any]) -> None:
    """Write the picture of `study` (see `tokenizer.studies.study.run_study`) as SVG and PNG."""
    import matplotlib  # takes a second, and most runs draw nothing
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 4.4), dpi=150, layout="constrained")
    compression, glued, context = figure.subplots(1, 3, width_ratios=(1.5, 1.0, 1.0))
    _draw_compression(compression, study)
    _draw_glued(glued, study)
    _draw_context(context, study)
    for axes in (compression, glued, context):
        axes.spines[["top", "right"]].set_visible(False)
    # Without a date and with a fixed salt the same study gives the same bytes.
    with matplotlib.rc_context({"svg.hashsalt": _STEM}):
        for form, path in zip(FORMATS, study_plot_paths(folder), strict=True):
            with atomic_write(path) as file:
                figure.savefig(file, format=form, metadata={"Date": None} if form == "svg" else None)


def _draw_compression(axes: Any, study: Mapping[str, Any]) -> None:
    sizes: set[int] = set()
    for number, (name, vocabulary) in enumerate(study["vocabularies"].items()):
        points = vocabulary["prefixes"]
        sizes |= {point["tokens"] for point in points if point["tokens"] & (point["tokens"] - 1) == 0}
        axes.plot(
            [point["tokens"] for point in points],
            [point[_SHOWN]["bytes_per_token"] for point in points],
            color=COLOURS[number % len(COLOURS)],
            linestyle=STYLES[number % len(STYLES)],
            marker="o",
            markersize=4,
            label=_label(name),
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(sizes), [f"{size:,}" for size in sorted(sizes)], rotation=45, ha="right")
    axes.set_xlabel("tokens: the 256 bytes and the first merges of one table")
    axes.set_ylabel(f"bytes per token on {_SHOWN}")
    axes.set_title("Compression", loc="left")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def _draw_glued(axes: Any, study: Mapping[str, Any]) -> None:
    vocabularies = study["vocabularies"]
    bars = axes.barh(
        [_label(name) for name in vocabularies],
        [100 * vocabulary["glued"]["share_of_learned"] for vocabulary in vocabularies.values()],
        color=COLOURS[: len(vocabularies)],
    )
    axes.bar_label(bars, [f"{vocabulary['glued']['count']:,}" for vocabulary in vocabularies.values()], padding=3)
    axes.margins(x=0.2)
    axes.invert_yaxis()
    axes.set_xlabel("% of the learned tokens (their number at the bar)")
    axes.set_title("Letters glued to punctuation", loc="left")


def _draw_context(axes: Any, study: Mapping[str, Any]) -> None:
    contestants = study["contestants"]
    names = picture_names(list(contestants))
    means = [contestant["context"][_SHOWN]["mean_characters"] for contestant in contestants.values()]
    bars = axes.barh(
        [f"{names[name]} ({contestant['vocab_size']:,})" for name, contestant in contestants.items()],
        means,
        color="#56B4E9",
    )
    axes.bar_label(bars, [f"{mean:,.0f}" for mean in means], padding=3)
    axes.margins(x=0.2)
    axes.invert_yaxis()
    axes.set_xlabel(f"characters on average, on {_SHOWN}")
    axes.set_title(f"Reach of {study['inputs']['window_tokens']} tokens", loc="left")


def _label(name: str) -> str:
    """`split gpt2` for a vocabulary of the study, the name itself for one from outside."""
    return name if " " in name else f"split {name}"
