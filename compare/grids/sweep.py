"""A sweep: bits per character over vocabulary sizes, one line for each way of splitting, drawn from finished runs.

The contestants of an experiment whose tokenizers are BPE are the points; the others (characters, bytes) have no size
to choose and are lines of reference. Nothing is asked of the experiment but one contestant of a BPE kind.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare.experiment import Experiment
from compare.runs import Entry, all_runs, check_comparable
from compare.table import as_text
from data.errors import ConfigError, DataError
from data.files import atomic_write, read_json, write_json
from data.inputs import is_sealed, output_hashes, seal
from data.shapes import plain
from model.report_file import BudgetFacts
from tokenizer.studies.pictures import picture_names
from tokenizer.train import BPE_KINDS

JSON = "sweep.json"
VERSION = 2
"""Of what a sweep holds and how its figures follow from the runs; an older one is made again."""
FORMATS = ("svg", "png")
_STEM = "sweep"
# Okabe and Ito's palette: told apart by colour-blind readers. Markers differ as well; black is for the references.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_REFERENCE_STYLES = ("--", ":", "-.")


def check_is_sweep(experiment: Experiment) -> None:
    """Raise ConfigError unless a contestant of `experiment` can be a point; meant to come before any training."""
    if not any(contestant.tokenizer.kind in BPE_KINDS for contestant in experiment.contestants.values()):
        raise ConfigError(
            f"{experiment.path}: no contestant has a tokenizer of kind {' or '.join(BPE_KINDS)}, so there is no "
            "vocabulary size to sweep over; add some, or use another experiment, such as vocab_sweep"
        )


@dataclass(frozen=True)
class Reference:
    """A contestant of a sweep. Figures are of the test split, but for those of val; all are means over the seeds."""

    contestant: str
    kind: str
    vocab_size: int
    """The tokens that the tokenizer has: fewer than were asked for where its training ran out of pairs."""
    bits_per_char: float
    bits_by_seed: tuple[float, ...]
    val_bits_per_char: float
    """Of the whole of val."""
    chars_per_token: float
    embedding_share: float
    """The share of the parameters that the token table holds."""
    seconds: float
    """Of training."""


@dataclass(frozen=True)
class Point(Reference):
    """A contestant whose vocabulary size was chosen."""

    split_pattern: str


@dataclass(frozen=True)
class Sweep:
    """Bits per character over vocabulary sizes.

    Val decides who is best: test is looked at once, not chosen by.
    """

    version: int
    experiment: str
    test_text_sha256: str
    test_borders_sha256: str
    budget: BudgetFacts | None
    """None where contestants differ in it."""
    points: tuple[Point, ...]
    """Sorted by kind, split pattern and size."""
    references: tuple[Reference, ...]
    """The contestants without a size to choose."""
    reports: Mapping[str, tuple[str, ...]]
    """The sha256 of every run's report.json, by contestant."""

    @property
    def best(self) -> Reference:
        """The point or reference that needs the fewest bits per character on the whole of val."""
        return min((*self.points, *self.references), key=lambda one: one.val_bits_per_char)

    def as_json(self) -> dict[str, Any]:
        """What sweep.json holds; `reference` is the first of the references, or None."""
        values: dict[str, Any] = plain(self)
        reports, references = values.pop("reports"), values.pop("references")
        first = references[0] if references else None
        found = {"reference": first, "references": references, "best": self.best.contestant, "reports": reports}
        return values | found

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Sweep":
        """What `as_json` wrote; other keys are left alone. For a file of this version whose seal has been checked."""
        given = {name: value[name] for name in cls.__dataclass_fields__}
        found = {
            "budget": None if value["budget"] is None else BudgetFacts(**value["budget"]),
            "points": tuple(Point(**_with_tuples(one)) for one in value["points"]),
            "references": tuple(Reference(**_with_tuples(one)) for one in value["references"]),
            "reports": {name: tuple(hashes) for name, hashes in value["reports"].items()},
        }
        return cls(**given | found)


def _with_tuples(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {**figures, "bits_by_seed": tuple(figures["bits_by_seed"])}


def sweep_of(experiment: Experiment, entries: Sequence[Entry]) -> Sweep:
    """The sweep, from the reports of all runs of `experiment`.

    Raises ConfigError without a BPE contestant and ReportError for runs that cannot be compared.
    """
    check_is_sweep(experiment)
    runs = all_runs(entries)
    check_comparable(runs)
    budgets = [run.report.train.budget for run in runs]
    points, references = [], []
    for entry in entries:
        config = experiment.contestant(entry.name).tokenizer
        if config.kind in BPE_KINDS:
            points.append(Point(**_figures(entry), split_pattern=config.split_pattern))
        else:
            references.append(Reference(**_figures(entry)))
    return Sweep(
        version=VERSION,
        experiment=experiment.name,
        test_text_sha256=runs[0].test.text_sha256,
        test_borders_sha256=runs[0].test_borders_sha256,
        budget=budgets[0] if all(budget == budgets[0] for budget in budgets) else None,
        points=tuple(sorted(points, key=lambda point: (*_line_of(point), point.vocab_size, point.contestant))),
        references=tuple(references),
        reports={entry.name: tuple(run.report_sha256 for run in entry.runs) for entry in entries},
    )


def _figures(entry: Entry) -> dict[str, Any]:
    """The fields of Reference."""
    report = entry.runs[0].report  # what does not depend on the seed
    test = entry.runs[0].test
    bits = tuple(run.test.bits_per_char for run in entry.runs)
    return {
        "contestant": entry.name,
        "kind": report.tokenizer.kind,
        "vocab_size": report.tokenizer.vocab_size,
        "bits_per_char": statistics.fmean(bits),
        "bits_by_seed": bits,
        "val_bits_per_char": statistics.fmean(run.report.splits.val.bits_per_char for run in entry.runs),
        "chars_per_token": test.num_chars / test.num_tokens,
        "embedding_share": report.parameters.embedding / report.parameters.total,
        "seconds": statistics.fmean(run.report.seen.seconds for run in entry.runs),
    }


def _line_of(point: Point) -> tuple[str, str]:
    """What the points of one line have in common."""
    return point.kind, point.split_pattern


def sweep_paths(folder: Path) -> list[Path]:
    """The files that `write_sweep` writes."""
    return [folder / JSON, *(folder / f"{_STEM}.{form}" for form in FORMATS)]


def sweep_is_up_to_date(folder: Path, sweep: Sweep) -> bool:
    """Whether the files in `folder` are those of exactly this sweep, as they were written; damaged ones are not."""
    if not all(path.exists() for path in sweep_paths(folder)):
        return False
    try:
        stored = read_json(folder / JSON)
    except DataError:
        return False
    return bool(is_sealed(stored) and stored == _on_disk(folder, sweep))


def _on_disk(folder: Path, sweep: Sweep) -> dict[str, Any]:
    """What sweep.json holds: the sweep, and the hashes of the pictures that are next to it."""
    return seal(
        {**sweep.as_json(), "outputs": output_hashes(path for path in sweep_paths(folder) if path.name != JSON)}
    )


def write_sweep(folder: Path, sweep: Sweep) -> None:
    """Write the sweep into `folder` as JSON and as a picture in two formats."""
    draw_sweep(folder, sweep)
    write_json(folder / JSON, _on_disk(folder, sweep))  # last: it is what says that the pictures are its own


def draw_sweep(folder: Path, sweep: Sweep) -> None:
    """Write the picture of `sweep` as SVG and PNG; with several seeds a line is their mean and its bars reach all."""
    import matplotlib  # takes a second, and most runs draw nothing
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    points = sweep.points
    for number, (line, label) in enumerate(line_labels(points).items()):
        own = [point for point in points if _line_of(point) == line]
        means = [point.bits_per_char for point in own]
        axes.errorbar(
            [point.vocab_size for point in own],
            means,
            yerr=[
                [mean - min(point.bits_by_seed) for mean, point in zip(means, own, strict=True)],
                [max(point.bits_by_seed) - mean for mean, point in zip(means, own, strict=True)],
            ],
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=5,
            capsize=3,
            label=label,
        )
    names = picture_names([reference.contestant for reference in sweep.references])
    for number, reference in enumerate(sweep.references):
        axes.axhline(
            reference.bits_per_char,
            color="black",
            linewidth=1.2,
            linestyle=_REFERENCE_STYLES[number % len(_REFERENCE_STYLES)],
            label=f"{names[reference.contestant]} ({reference.vocab_size:,} tokens)",
        )
    best = sweep.best
    axes.set_title(
        f"fewest bits on val: {picture_names([best.contestant])[best.contestant]}"
        f" ({best.vocab_size:,} tokens), {best.val_bits_per_char:.4f} per character",
        fontsize="medium",
    )
    sizes = sorted({point.vocab_size for point in points})
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=45, ha="right")
    axes.set_xticks([], minor=True)
    axes.set_xlabel("vocabulary size (tokens, logarithmic)")
    axes.set_ylabel("bits per character on test")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    # Without a date and with a fixed salt the same sweep gives the same bytes.
    with matplotlib.rc_context({"svg.hashsalt": _STEM}):
        for form in FORMATS:
            with atomic_write(folder / f"{_STEM}.{form}") as file:
                figure.savefig(file, format=form, metadata={"Date": None} if form == "svg" else None)


def line_labels(points: Sequence[Point]) -> dict[tuple[str, str], str]:
    """(kind, split pattern) -> its name for readers, in the order of `points`; the kind where kinds are mixed."""
    is_mixed = len({point.kind for point in points}) > 1
    return {
        (kind, pattern): f"{kind}, split {pattern}" if is_mixed else f"split {pattern}"
        for kind, pattern in dict.fromkeys(map(_line_of, points))
    }


def sweep_as_text(sweep: Sweep) -> str:
    """The sweep for a terminal: a line for each point and reference, the budget, who needs the fewest bits on val."""
    labels = line_labels(sweep.points)
    cells = [["", "size", "bits on val", "on test", "chars/token", "embedding share", "seconds"]]
    for point in sweep.points:
        cells.append([labels[_line_of(point)], *_cells_of(point)])
    cells += [[f"{reference.contestant} (reference)", *_cells_of(reference)] for reference in sweep.references]
    budget = sweep.budget
    held = "unequal budgets" if budget is None else f"{budget.amount:,} {budget.unit} each"
    num_seeds = max(len(figures.bits_by_seed) for figures in (*sweep.points, *sweep.references))
    seeds = "1 seed" if num_seeds == 1 else f"the mean of {num_seeds} seeds"
    best = sweep.best
    return (
        f"{sweep.experiment}: bits per character on val and test by vocabulary size\n"
        f"({held}; {seeds})\n\n{as_text(cells)}\n\n"
        f"Fewest bits on val: {best.contestant}, {best.val_bits_per_char:.4f} per character; on test it has "
        f"{best.bits_per_char:.4f}.\n"
        "No interval is given here: neighbours may be ties.\n"
    )


def _cells_of(figures: Reference) -> list[str]:
    return [
        f"{figures.vocab_size:,}",
        f"{figures.val_bits_per_char:.4f}",
        f"{figures.bits_per_char:.4f}",
        f"{figures.chars_per_token:.3f}",
        f"{figures.embedding_share:.1%}",
        f"{figures.seconds:,.1f}",
    ]
