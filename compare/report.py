"""The comparison on disk: comparison.json (everything), the verdict, tables, text to read, the curves and the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare.baselines.kept_ngram import kept_ngram
from compare.baselines.leads import lead_over
from compare.baselines.mixture import mixture_of
from compare.baselines.ngram_search import NGram
from compare.baselines.scores import BASELINES, NGRAM, baselines_of
from compare.bits_by.divide import where_bits_go
from compare.certainty import verdict
from compare.certainty.pairs import summarize
from compare.clean_part import CleanPart, clean_part, is_clean
from compare.experiment import Experiment
from compare.grids.tuned import rate_sentence
from compare.ladder.collect import ladder_answer, why_no_answer
from compare.ladder.stored import verdict_as_json
from compare.outputs.comparison import BaselineLine, Comparison, Details, MarginalBound
from compare.outputs.exports import table_csv, table_latex
from compare.outputs.further_lines import further_lines
from compare.outputs.held_equal import not_held_equal
from compare.outputs.identity import identity_of
from compare.outputs.neighbours import marginal_of_these_runs, sweep_of_this_text
from compare.outputs.text import comparison_markdown, comparison_text
from compare.page.curves import curve_paths, draw_curves
from compare.page.data import levels, page_of
from compare.page.render import HTML, write_page
from compare.page.samples import prompts_of, samples_of
from compare.runs import Entry, all_runs, check_comparable, runs_of_rungs
from compare.sizes.levels import Level, runs_of_levels
from compare.sizes.ranking import ranking_of
from compare.sizes.stored import sizes_for_verdict
from compare.table import budget_words, row_of
from data.clean import is_divided_by_spaces
from data.errors import DataError
from data.files import read_json, sha256_file, write_json, write_text
from data.inputs import inputs_of, is_sealed, output_hashes, seal, text_input
from data.show import say
from data.splits import Split
from model.report import SCORER_VERSION
from tokenizer.base import Tokenizer
from tokenizer.encode_splits import EncodedSplit
from tokenizer.studies.intrinsic import Intrinsic, intrinsic_of

JSON, MARKDOWN, TEXT = "comparison.json", "comparison.md", "comparison.txt"
VERDICT, CSV, LATEX = "verdict.json", "table.csv", "table.tex"
VERSION = 13
"""Of what a comparison holds and how it is made (tables, verdict, page, samples). It goes up with every change of
the code that can change what it says for equal runs: an older one is written again."""


@dataclass(frozen=True)
class Part:
    """One of several experiments whose contestants are compared together."""

    experiment: Experiment
    entries: tuple[Entry, ...]
    """Under the names that they have in `experiment`."""
    names: Mapping[str, str]
    """Name in `experiment` -> name in the comparison."""


@dataclass(frozen=True)
class Materials:
    """What a comparison is made from besides the runs themselves."""

    splits: Mapping[str, Split]
    """The cleaned texts."""
    corpus: Mapping[str, Any]
    """The corpus manifest."""
    tokenizers: Mapping[str, Tokenizer]
    tokenizer_paths: Mapping[str, Path]
    test: Mapping[str, EncodedSplit]
    """Each contestant's encoded test split."""
    parts: tuple[Part, ...] = ()
    """The experiments, where there are several; the texts are then those of the first."""
    remarks: tuple[str, ...] = ()
    """What else is said among what is not held equal."""
    sizes: tuple[Level, ...] = ()
    """The runs of every size at T/4 and T, where an experiment has several."""


def comparison_on_disk(
    folder: Path, entries: Sequence[Entry], experiment: Experiment, materials: Materials
) -> Comparison | None:
    """The comparison in `folder`, if it was made from exactly these inputs and its files are as they were written."""
    if not all(path.exists() for path in (folder / JSON, *_beside(folder))):
        return None
    try:
        stored = read_json(folder / JSON)
    except DataError:
        return None  # a damaged one is written again
    is_up_to_date = (
        is_sealed(stored)
        and stored.get("inputs") == comparison_inputs(folder, entries, experiment, materials)
        and stored.get("outputs") == output_hashes(_beside(folder))
    )
    return Comparison.from_json(stored) if is_up_to_date else None


def comparison_inputs(
    folder: Path, entries: Sequence[Entry], experiment: Experiment, materials: Materials
) -> dict[str, Any]:
    """Everything that a comparison is made from, in the order in which it shows it."""
    sweep = sweep_of_this_text(folder, entries, experiment.layout)
    settings: dict[str, Any] = {
        "experiment": experiment.name,
        "contestants": list(experiment.contestants.values()),
        "baseline": experiment.baseline,
        "seeds": experiment.seeds,
        "ladder": experiment.ladder,
        "corpus": materials.corpus,
        "baselines": [[baseline.name, baseline.version] for baseline in BASELINES],
        "scorer_version": SCORER_VERSION,
        # What other commands found; `folder` is where they leave it.
        "not_held_equal": _not_held_equal(folder, experiment, entries, materials),
        "sweep": None if sweep is None else sweep.as_json(),
        "marginal": {name: one.as_json(passages=False) for name, one in _marginal(folder, entries, materials).items()},
    }
    if materials.sizes:
        settings["sizes"] = experiment.sizes
    return inputs_of(
        VERSION,
        texts={name: text_input(split.sha256, split.document_offsets) for name, split in materials.splits.items()},
        tokenizers={name: sha256_file(path) for name, path in materials.tokenizer_paths.items()},
        settings=settings,
        files={
            "reports": {entry.name: [run.report_sha256 for run in entry.runs] for entry in entries},
            "rungs": {
                entry.name: [[rung.amount, [run.report_sha256 for run in rung.runs]] for rung in entry.rungs]
                for entry in entries
            },
            "metrics": {entry.name: [sha256_file(run.metrics_path) for run in entry.runs] for entry in entries},
            **({"sizes": _reports_of_sizes(materials.sizes)} if materials.sizes else {}),
        },
    )


def _reports_of_sizes(levels: Sequence[Level]) -> list[list[Any]]:
    return [
        [one.size, one.is_whole, {name: [run.report_sha256 for run in runs] for name, runs in one.runs.items()}]
        for one in levels
    ]


def _beside(folder: Path) -> list[Path]:
    """The files of a comparison besides comparison.json."""
    return [*(folder / name for name in (MARKDOWN, TEXT, VERDICT, CSV, LATEX, HTML)), *curve_paths(folder)]


def _not_held_equal(folder: Path, experiment: Experiment, entries: Sequence[Entry], materials: Materials) -> list[str]:
    """What differs besides the tokenizer, and how the learning rates were chosen if a grid chose them."""
    rows = [row_of(entry) for entry in entries]
    sentences = not_held_equal(experiment, entries, rows, materials.tokenizers)
    if (about_ladders := why_no_answer(entries)) is not None:
        sentences.append(about_ladders)
    sentences += materials.remarks
    if not materials.parts:
        about_rates = rate_sentence(experiment, folder, entries)
        return sentences if about_rates is None else [*sentences, about_rates]
    for part in materials.parts:
        about_rates = rate_sentence(part.experiment, part.experiment.layout.reports, part.entries)
        sentences += [] if about_rates is None else [f"in {part.experiment.name}, {about_rates}"]
    trains = {
        part.experiment.name: part.entries[0].runs[0].report.stored["inputs"]["texts"]["train"]["text_sha256"]
        for part in materials.parts
    }
    if len(set(trains.values())) > 1:
        words = ", ".join(f"{name} {found[:12]}…" for name, found in trains.items())
        sentences.append(f"text of train: {words}; baselines and shared strings are of the first")
    return sentences


def _marginal(folder: Path, entries: Sequence[Entry], materials: Materials) -> dict[str, Any]:
    """What `make marginal` found about these runs, each experiment's beside its own comparison."""
    if not materials.parts:
        return marginal_of_these_runs(folder, entries)
    return {
        part.names[name]: found
        for part in materials.parts
        for name, found in marginal_of_these_runs(part.experiment.layout.reports, part.entries).items()
    }


def write_comparison(
    folder: Path,
    experiment: Experiment,
    entries: Sequence[Entry],
    materials: Materials,
    *,
    echo: Callable[[str], None] = say,
) -> Comparison:
    """Write the comparison of `entries` into `folder` and return it.

    Raises ReportError if the runs were scored on different texts.
    """
    check_comparable([*all_runs(entries), *runs_of_rungs(entries), *runs_of_levels(materials.sizes)])
    comparison = _compared(folder, experiment, entries, materials, echo)
    draw_curves(folder, entries, levels(comparison.baselines))
    write_text(folder / TEXT, comparison_text(comparison))
    write_text(folder / MARKDOWN, comparison_markdown(comparison))
    further = further_lines(comparison.ladder, comparison.sizes, comparison.certainty.baseline)
    write_text(folder / CSV, table_csv(comparison.rows, further))
    write_text(folder / LATEX, table_latex(comparison.rows, further))
    write_json(folder / VERDICT, verdict_json(comparison))
    prompts = prompts_of(materials.splits["test"])
    samples = {
        entry.name: samples_of(entry, materials.tokenizers[entry.name], materials.tokenizer_paths[entry.name], prompts)
        for entry in entries
    }
    page = page_of(
        comparison,
        entries=entries,
        splits=materials.splits,
        tokenizers=materials.tokenizers,
        samples=samples,
    )
    write_page(folder / HTML, page)
    made = {
        "version": VERSION,
        "inputs": comparison_inputs(folder, entries, experiment, materials),
        "outputs": output_hashes(_beside(folder)),
    }
    write_json(folder / JSON, seal(comparison.as_json() | made))  # last: what it says is up to date has been written
    return comparison


def _baseline_lines(
    folder: Path, entries: Sequence[Entry], materials: Materials, ngram: NGram, echo: Callable[[str], None]
) -> tuple[BaselineLine, ...]:
    """Every baseline, with its lead over the contestant that needs the fewest bits."""
    of_each = [[run.evaluations["test"] for run in entry.runs] for entry in entries]
    best = min(of_each, key=lambda runs: sum(run.bits_per_char for run in runs))
    found = baselines_of(materials.splits, folder, ngram=ngram, echo=echo)
    by_character = {NGRAM: ngram.nats["test"]}
    return tuple(
        BaselineLine(name, one.bits_per_char, one.note, lead_over(best, one.bits_per_char, by_character.get(name)))
        for name, one in found.items()
    )


def verdict_json(comparison: Comparison) -> dict[str, Any]:
    """What verdict.json holds; `compare.certainty.verdict.as_json` says what its keys mean."""
    return verdict.as_json(
        comparison.certainty,
        test_chars=comparison.identity.test_chars,
        budget=comparison.budget,
        stronger=comparison.stronger,
        ladder=None if comparison.ladder is None else verdict_as_json(comparison.ladder),
        sizes=None if comparison.sizes is None else sizes_for_verdict(comparison.sizes),
    )


def _compared(
    folder: Path,
    experiment: Experiment,
    entries: Sequence[Entry],
    materials: Materials,
    echo: Callable[[str], None],
) -> Comparison:
    test_text, train_text = materials.splits["test"].text, materials.splits["train"].text
    has_words = is_divided_by_spaces(test_text)
    marginal = _marginal(folder, entries, materials)
    bounds = [MarginalBound.of(name, measured) for name, measured in marginal.items()]
    margins = {bound.contestant: bound.percent / 100.0 for bound in bounds}
    ngram = kept_ngram(materials.splits, folder, echo=echo)
    certainty = summarize(
        {entry.name: [run.evaluations["test"] for run in entry.runs] for entry in entries},
        [run.seed for run in entries[0].runs],
        baseline=experiment.baseline,
        margins=margins,
    )
    return Comparison(
        experiment=experiment.name,
        budget=budget_words(entries),
        certainty=certainty,
        rows=tuple(row_of(entry, has_words=has_words) for entry in entries),
        not_held_equal=tuple(_not_held_equal(folder, experiment, entries, materials)),
        baselines=_baseline_lines(folder, entries, materials, ngram, echo),
        details=Details(
            where_bits_go=where_bits_go(
                {entry.name: entry.evaluation("test") for entry in entries}, test_text, train_text
            ),
            intrinsic={entry.name: _intrinsic(entry, materials) for entry in entries},
            sweep=sweep_of_this_text(folder, entries, experiment.layout),
            marginal=marginal,
            corpus={key: value for key, value in materials.corpus.items() if key != "splits"},
        ),
        identity=identity_of(experiment, entries, materials.corpus),
        clean=_clean_part(entries, materials, ngram),
        mixtures=tuple(
            mixture_of(entry.name, [run.evaluations for run in entry.runs], ngram, materials.splits)
            for entry in entries
        ),
        ladder=ladder_answer(entries, certainty, margins),
        sizes=ranking_of(materials.sizes, certainty, margins),
    )


def _clean_part(entries: Sequence[Entry], materials: Materials, ngram: NGram) -> CleanPart | None:
    clean = is_clean(materials.splits["train"], materials.splits["test"])
    if clean.all():
        return None
    evaluations = {entry.name: [run.evaluations["test"] for run in entry.runs] for entry in entries}
    return clean_part(clean, evaluations, ngram.nats["test"])


def _intrinsic(entry: Entry, materials: Materials) -> Intrinsic:
    parameters, encoded = entry.runs[0].report.parameters, materials.test[entry.name]
    return intrinsic_of(
        materials.tokenizers[entry.name],
        encoded.ids.numpy(),
        materials.splits["test"].text,
        document_offsets=encoded.document_offsets,
        embedding_parameters=parameters.embedding,
        all_parameters=parameters.total,
    )
