"""The comparison on disk: comparison.json (everything), comparison.md and .txt (to read), the curves and the page."""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare.baselines.scores import BASELINES, baselines_of
from compare.bits_by import where_bits_go
from compare.experiment import Experiment
from compare.grids.tune import rate_sentence
from compare.neighbours import marginal_of_these_runs, sweep_of_this_text
from compare.page.curves import curve_paths, draw_curves
from compare.page.data import levels, page_data
from compare.page.render import HTML, write_page
from compare.runs import Entry, all_runs, check_comparable
from compare.samples import prompts_of, samples_of
from compare.statistics import ranked_names, summarize, verdict_sentence
from compare.table import (
    TERMINAL_COLUMNS,
    as_markdown,
    as_text,
    budget_words,
    in_markdown,
    legend,
    names_in_tables,
    not_held_equal,
    row_of,
    table_cells,
)
from data.clean import is_divided_by_spaces
from data.errors import DataError
from data.files import read_json, sha256_file, write_json, write_text
from data.inputs import inputs_of, is_sealed, output_hashes, seal, text_input
from data.show import counted, say, visible, wrapped
from data.splits import Split
from model.report import SCORED, SCORER_VERSION
from tokenizer.base import Tokenizer
from tokenizer.encode_splits import EncodedSplit
from tokenizer.studies.intrinsic import intrinsic_of

JSON, MARKDOWN, TEXT = "comparison.json", "comparison.md", "comparison.txt"
MOST_SEEDS = 5  # whose differences are printed one by one
VERSION = 7
"""Of what a comparison holds and how it is made (tables, statistics, page, samples). It goes up with every change of
the code that can change what it says for equal runs: an older one is written anew."""
NOTE = (
    "Bits per character: the sum of all token losses of the split over ln 2 and over its characters; every character "
    "is scored exactly once, each document as the continuation of one newline, sliding windows with stride half a "
    "block. Losses and perplexities per token cannot be compared across tokenizers and are not shown."
)


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


def comparison_is_up_to_date(
    folder: Path, entries: Sequence[Entry], experiment: Experiment, materials: Materials
) -> bool:
    """Whether the comparison in `folder` was made from exactly these inputs, and its files are as they were written."""
    if not all(path.exists() for path in (folder / JSON, *_beside(folder))):
        return False
    try:
        stored = read_json(folder / JSON)
    except DataError:
        return False  # a damaged one is written anew
    return bool(
        is_sealed(stored)
        and stored.get("inputs") == comparison_inputs(folder, entries, experiment, materials)
        and stored.get("outputs") == output_hashes(_beside(folder))
    )


def comparison_inputs(
    folder: Path, entries: Sequence[Entry], experiment: Experiment, materials: Materials
) -> dict[str, Any]:
    """Everything that a comparison is made from, in the order in which it shows it."""
    settings = {
        "experiment": experiment.name,
        "contestants": list(experiment.contestants.values()),
        "seeds": experiment.seeds,
        "corpus": materials.corpus,
        "baselines": [[baseline.name, baseline.version] for baseline in BASELINES],
        "scorer_version": SCORER_VERSION,
        # What other verbs found; `folder` is where they leave it.
        "not_held_equal": _not_held_equal(folder, experiment, entries),
        "sweep": sweep_of_this_text(folder, entries, experiment.layout),
        "marginal": marginal_of_these_runs(folder, entries),
    }
    return inputs_of(
        VERSION,
        texts={name: text_input(split.sha256, split.document_offsets) for name, split in materials.splits.items()},
        tokenizers={name: sha256_file(path) for name, path in materials.tokenizer_paths.items()},
        settings=settings,
        files={
            "reports": _hashes(entries),
            "metrics": {entry.name: [sha256_file(run.metrics_path) for run in entry.runs] for entry in entries},
        },
    )


def _beside(folder: Path) -> list[Path]:
    """The files of a comparison besides comparison.json."""
    return [folder / MARKDOWN, folder / TEXT, folder / HTML, *curve_paths(folder)]


def _not_held_equal(folder: Path, experiment: Experiment, entries: Sequence[Entry]) -> list[str]:
    """What differs besides the tokenizer, and how the learning rates were chosen if a grid chose them."""
    sentences = not_held_equal(experiment, [row_of(entry) for entry in entries])
    about_rates = rate_sentence(experiment, folder, entries)
    return sentences if about_rates is None else [*sentences, about_rates]


def _hashes(entries: Sequence[Entry]) -> dict[str, list[str]]:
    return {entry.name: [run.report_sha256 for run in entry.runs] for entry in entries}


def marginal_sentences(summary: Mapping[str, Any]) -> list[str]:
    """How far each contestant's own segmentation was found above the sum over all segmentations."""
    return [
        f"{name}: all segmentations together need about {found['gap_percent']['value']:.1f} % fewer bits than its own "
        f"({_percent_interval(found['gap_percent'])}, {found['num_chars']:,} characters); a lead smaller than that "
        "could turn"
        for name, found in summary["marginal"].items()
        if found["gap_percent"]["value"] > 0.0
    ]


def _percent_interval(gap: Mapping[str, float | None]) -> str:
    if gap["low"] is None or gap["high"] is None:
        return "one passage: no interval"
    return f"95 % interval {gap['low']:.1f} to {gap['high']:.1f} %"


def write_comparison(
    folder: Path,
    experiment: Experiment,
    entries: Sequence[Entry],
    materials: Materials,
    *,
    echo: Callable[[str], None] = say,
) -> None:
    """Write the comparison of `entries` into `folder`.

    Raises ReportError if the runs were scored on different texts.
    """
    check_comparable(all_runs(entries))
    summary = _summary(folder, experiment, entries, materials, echo)
    draw_curves(folder, entries, levels(summary["baselines"]))
    write_text(folder / TEXT, comparison_text(summary))
    write_text(folder / MARKDOWN, _as_markdown(summary, _about(experiment, entries, materials.corpus)))
    prompts = prompts_of(materials.splits["test"])
    samples = {
        entry.name: samples_of(entry, materials.tokenizers[entry.name], materials.tokenizer_paths[entry.name], prompts)
        for entry in entries
    }
    page = page_data(
        summary=summary | {"marginal_sentences": marginal_sentences(summary)} | _words(summary, entries, experiment),
        entries=entries,
        splits=materials.splits,
        tokenizers=materials.tokenizers,
        samples=samples,
    )
    write_page(folder / HTML, page)
    made = {
        "inputs": comparison_inputs(folder, entries, experiment, materials),
        "outputs": output_hashes(_beside(folder)),
    }
    write_json(folder / JSON, seal(summary | made))  # last: what it says is up to date has been written


def _words(summary: Mapping[str, Any], entries: Sequence[Entry], experiment: Experiment) -> dict[str, Any]:
    """What the page says before its figures."""
    shape = entries[0].runs[0].report["model"]
    return {
        "answer": summary["verdict"],
        "how_sure": [f"{pair['a']} and {pair['b']}: {pair['why']}." for pair in summary["statistics"]["pairs"]],
        "noise": None,
        "text_path": experiment.corpus.corpus_name,
        "model_shape": f"{counted(shape['num_layers'], 'layer')} of width {shape['embedding_dim']}",
        "batch": counted(entries[0].runs[0].report["train"]["batch_size"], "block"),
    }


def _summary(
    folder: Path,
    experiment: Experiment,
    entries: Sequence[Entry],
    materials: Materials,
    echo: Callable[[str], None],
) -> dict[str, Any]:
    """Everything that comparison.json holds."""
    has_words = is_divided_by_spaces(materials.splits["test"].text)
    rows = [row_of(entry, has_words=has_words) for entry in entries]
    evaluations = {entry.name: entry.evaluation("test") for entry in entries}
    by_seed = {entry.name: [run.evaluations["test"] for run in entry.runs] for entry in entries}
    statistics = summarize(by_seed, [run.seed for run in entries[0].runs])
    test_text, train_text = materials.splits["test"].text, materials.splits["train"].text
    first = entries[0].runs[0]
    return {
        "version": VERSION,
        "experiment": experiment.name,
        "verdict": verdict_sentence(statistics, ranked_names(statistics), budget_words(entries)),
        "rows": rows,
        "not_held_equal": _not_held_equal(folder, experiment, entries),
        "statistics": statistics,
        "baselines": baselines_of(materials.splits, folder, echo=echo),
        "where_bits_go": where_bits_go(evaluations, test_text, train_text),
        "intrinsic": {
            entry.name: intrinsic_of(
                materials.tokenizers[entry.name],
                materials.test[entry.name].ids.numpy(),
                test_text,
                embedding_parameters=entry.runs[0].report["parameters"]["embedding"],
                all_parameters=entry.runs[0].report["parameters"]["total"],
            )
            for entry in entries
        },
        "sweep": sweep_of_this_text(folder, entries, experiment.layout),
        "marginal": marginal_of_these_runs(folder, entries),
        "reports": _hashes(entries),
        "fingerprints": {entry.name: entry.runs[0].report["tokenizer"]["fingerprint"] for entry in entries},
        "test_text_sha256": first.test["text_sha256"],
        "flops_formula": first.report["flops_formula"],
        "corpus": {key: value for key, value in materials.corpus.items() if key != "splits"},
    }


def _beaten(summary: Mapping[str, Any], baseline: Mapping[str, Any]) -> str:
    """The contestants that need more bits than `baseline`: a useful model is none of them."""
    names = [row["contestant"] for row in summary["rows"] if row["bits_per_char"] > baseline["bits_per_char"]]
    return f"fewer bits than {', '.join(names)}" if names else ""


def comparison_text(summary: Mapping[str, Any]) -> str:
    """What `make compare` prints of comparison.json's `summary`: under 100 columns, whatever the names."""
    names = names_in_tables(summary["rows"])
    lines = [_wrapped(f"{summary['experiment']}: characters or BPE?", 0), "", *legend(names)]
    lines += [as_text(table_cells(summary["rows"], names)), ""]
    pairs = as_text(_pair_cells(summary, names))
    lines += ["Differences in bits per character on test, with 95 % intervals:", pairs, ""]
    marginal = [_wrapped(f"  - {line}", 4) for line in marginal_sentences(summary)]
    lines += ["Own segmentation and all others:", *marginal, ""] if marginal else []
    lines += ["Baselines, bits per character on test:"]
    for one in summary["baselines"]:
        line = f"  {one['name']:<20}{one['bits_per_char']:8.4f}  {_beaten(summary, one)}"
        lines.append(_wrapped(line.rstrip(), 32))
    lines += ["", "Not held equal:", *(_wrapped(f"  - {line}", 4) for line in summary["not_held_equal"]), ""]
    lines += [_wrapped(f"Verdict: {summary['verdict']}", 0), ""]
    return "\n".join(lines)


def _wrapped(line: str, indent: int) -> str:
    """`line` on as many lines of a terminal as it needs, those after the first indented."""
    return wrapped(visible(line), TERMINAL_COLUMNS, indent)


def _pair_cells(summary: Mapping[str, Any], names: Mapping[str, str] | None = None) -> list[list[str]]:
    """Header and one line for each pair of contestants, under `names` where they are not the full ones."""
    statistics = summary["statistics"]
    blocks = f"over {counted(statistics['num_blocks'], 'block')} of {statistics['block_characters']:,}"
    cells = [["", "difference", f"over {counted(statistics['num_documents'], 'document')}", blocks, "by seed"]]
    for pair in statistics["pairs"]:
        one, other = (pair[side] if names is None else names[pair[side]] for side in ("a", "b"))
        intervals = [_interval(pair[key]) for key in ("documents", "blocks")]
        cells.append([f"  {one} - {other}", f"{pair['difference']:+.4f}", *intervals, _by_seed(pair["by_seed"])])
    return cells


def _by_seed(differences: Sequence[float]) -> str:
    """The difference under each seed; of many seeds the least and the greatest."""
    if len(differences) < 2:
        return "–"
    if len(differences) > MOST_SEEDS:
        return f"{min(differences):+.4f} to {max(differences):+.4f} ({len(differences)} seeds)"
    return " ".join(f"{value:+.4f}" for value in differences)


def _interval(interval: Mapping[str, float] | None) -> str:
    return "–" if interval is None else f"{interval['low']:+.4f} to {interval['high']:+.4f}"


def _as_markdown(summary: Mapping[str, Any], about: Sequence[str]) -> str:
    lines = [f"# {in_markdown(summary['experiment'])}: characters or BPE?", ""]
    lines += [f"**{in_markdown(summary['verdict'])}**", ""]
    lines += [as_markdown(table_cells(summary["rows"])), ""]
    lines += ["![bits per character on the val sample against characters seen](curve_characters.svg)", ""]
    lines += ["![bits per character on the val sample against seconds](curve_seconds.svg)", ""]
    lines += ["## How sure", "", "Differences in bits per character on test, with 95 % intervals.", ""]
    lines += [
        as_markdown(_pair_cells(summary)),
        "",
        *(f"- {in_markdown(line)}" for line in marginal_sentences(summary)),
        "",
    ]
    baselines = [["baseline", "bits per character (test)", "", "how"]]
    for one in summary["baselines"]:
        baselines.append([one["name"], f"{one['bits_per_char']:.4f}", _beaten(summary, one), one["note"]])
    lines += ["## Baselines", "", as_markdown(baselines), ""]
    lines += ["## Not held equal", "", *(f"- {in_markdown(line)}" for line in summary["not_held_equal"]), ""]
    lines += ["## How the number is made", "", NOTE, "", f"Training FLOPs: {summary['flops_formula']}.", ""]
    lines += ["## What was compared", "", *(f"- {in_markdown(line)}" for line in about), ""]
    return "\n".join(lines)


def _about(experiment: Experiment, entries: Sequence[Entry], corpus: Mapping[str, Any]) -> list[str]:
    """Corpus, cleaning, environment and identities."""
    first = entries[0].runs[0]
    environment = first.report["environment"]
    lines = [
        f"corpus {experiment.corpus.corpus_name}, cleaning {experiment.corpus.cleaning}; test text sha256 "
        f"{first.test['text_sha256']}",
        "characters of val and test that never occur in train are part of the alphabet: "
        + ", ".join(f"{name} {len(corpus['splits'][name]['characters_absent_from_train'])}" for name in SCORED),
        f"torch {environment['torch']}, {environment['device']}, {counted(environment['num_threads'], 'thread')}, "
        f"{environment['dtype']}, Python {platform.python_version()}",
    ]
    lines += [f"{entry.name}: tokenizer {entry.runs[0].report['tokenizer']['fingerprint']}" for entry in entries]
    return lines
