"""Curves of val bits per character while training: against characters seen and against seconds."""

from collections.abc import Sequence
from pathlib import Path

from compare.runs import Run
from data.files import atomic_write

# Okabe and Ito's palette: told apart by colour-blind readers. Line styles differ as well.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES = ("-", "--", "-.", ":")
_AXES = (
    ("characters", "characters seen (millions)", 1e6, "curve_characters"),
    ("seconds", "seconds of training", 1.0, "curve_seconds"),
)
FORMATS = ("svg", "png")


def curve_paths(folder: Path) -> list[Path]:
    """The picture files that `draw_curves` writes."""
    return [folder / f"{stem}.{form}" for *_, stem in _AXES for form in FORMATS]


def draw_curves(folder: Path, runs: Sequence[Run]) -> None:
    """Write the curves as SVG and PNG; val is the periodic figure (fixed beginning of val, disjoint windows)."""
    import matplotlib  # takes a second, and most runs draw nothing
    from matplotlib.figure import Figure

    for quantity, label, unit, stem in _AXES:
        figure = Figure(figsize=(7.0, 4.2), dpi=150, layout="constrained")
        axes = figure.add_subplot()
        for number, run in enumerate(runs):
            points = [record for record in run.metrics if "val_bits_per_char" in record]
            axes.plot(
                [record[quantity] / unit for record in points],
                [record["val_bits_per_char"] for record in points],
                color=_COLOURS[number % len(_COLOURS)],
                linestyle=_STYLES[number % len(_STYLES)],
                marker="o",
                markersize=3,
                label=f"{run.contestant} ({run.report['tokenizer']['vocab_size']:,} tokens)",
            )
        axes.set_xlabel(label)
        axes.set_ylabel("val bits per character")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        # Without a date and with a fixed salt the same runs give the same bytes.
        with matplotlib.rc_context({"svg.hashsalt": "curves"}):
            for form in FORMATS:
                with atomic_write(folder / f"{stem}.{form}") as file:
                    figure.savefig(file, format=form, metadata={"Date": None} if form == "svg" else None)
