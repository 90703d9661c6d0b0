"""Curves of val bits per character while training: against characters seen and against seconds."""

from collections.abc import Sequence
from pathlib import Path

from compare.page.data import curves
from compare.runs import Entry
from data.files import atomic_write
from tokenizer.studies.pictures import COLOURS, FORMATS, STYLES, picture_names

_STEMS = {"characters": "curve_characters", "seconds": "curve_seconds"}


def curve_paths(folder: Path) -> list[Path]:
    """The picture files that `draw_curves` writes."""
    return [folder / f"{stem}.{form}" for stem in _STEMS.values() for form in FORMATS]


def draw_curves(folder: Path, entries: Sequence[Entry]) -> None:
    """Write the curves as SVG and PNG: the mean over seeds, their range as a band.

    Val is the periodic figure (fixed beginning of val, disjoint windows).
    """
    import matplotlib  # takes a second, and most runs draw nothing
    from matplotlib.figure import Figure

    names = picture_names([entry.name for entry in entries])
    sizes = {entry.name: entry.runs[0].report.tokenizer.vocab_size for entry in entries}
    for picture in curves(entries):
        if picture["quantity"] not in _STEMS:
            continue
        figure = Figure(figsize=(7.0, 4.2), dpi=150, layout="constrained")
        axes = figure.add_subplot()
        for number, series in enumerate(picture["series"]):
            colour = COLOURS[number % len(COLOURS)]
            axes.plot(
                series["x"],
                series["mean"],
                color=colour,
                linestyle=STYLES[number % len(STYLES)],
                marker="o",
                markersize=3,
                label=f"{names[series['name']]} ({sizes[series['name']]:,} tokens)",
            )
            if series["num_seeds"] > 1:
                axes.fill_between(series["x"], series["low"], series["high"], color=colour, alpha=0.2, linewidth=0)
        axes.set_xlabel(f"{picture['label']} ({picture['unit']})")
        axes.set_ylabel("val bits per character")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        # Without a date and with a fixed salt the same runs give the same bytes.
        with matplotlib.rc_context({"svg.hashsalt": "curves"}):
            for form in FORMATS:
                with atomic_write(folder / f"{_STEMS[picture['quantity']]}.{form}") as file:
                    figure.savefig(file, format=form, metadata={"Date": None} if form == "svg" else None)
