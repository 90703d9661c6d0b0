"""The comparison on disk: comparison.json (everything), comparison.md and .txt (to read), and the curves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compare.experiment import Experiment
from compare.plots import curve_paths, draw_curves
from compare.runs import Run, check_comparable
from compare.table import as_markdown, as_text, not_held_equal, row_of, table_cells, verdict
from data.files import read_json, write_json, write_text
from model.report import SCORED

JSON, MARKDOWN, TEXT = "comparison.json", "comparison.md", "comparison.txt"
_NOTE = (
    "Bits per character: the sum of all token losses of the split over ln 2 and over its characters; every character "
    "is scored exactly once, each document as the continuation of one newline, sliding windows with stride half a "
    "block. Losses and perplexities per token cannot be compared across tokenizers and are not shown."
)


def comparison_is_up_to_date(folder: Path, runs: Sequence[Run], experiment: Experiment) -> bool:
    """Whether the comparison in `folder` was made from exactly these runs and says all that it should."""
    written = [folder / JSON, folder / MARKDOWN, folder / TEXT, *curve_paths(folder)]
    if not all(path.exists() for path in written):
        return False
    stored = read_json(folder / JSON)
    rows = [row_of(run) for run in runs]
    return bool(
        stored.get("reports") == _hashes(runs) and stored.get("not_held_equal") == not_held_equal(experiment, rows)
    )


def _hashes(runs: Sequence[Run]) -> dict[str, str]:
    return {run.contestant: run.report_sha256 for run in runs}


def write_comparison(folder: Path, experiment: Experiment, runs: Sequence[Run], corpus: dict[str, Any]) -> None:
    """Write the comparison of `runs` into `folder`; `corpus` is the corpus manifest.

    Raises ReportError if the runs were scored on different texts.
    """
    check_comparable(runs)
    rows = [row_of(run) for run in runs]
    cells = table_cells(rows)
    unequal = not_held_equal(experiment, rows)
    sentence = verdict(experiment, runs)
    draw_curves(folder, runs)
    formula = runs[0].report["flops_formula"]
    about = _about(experiment, runs, corpus)
    heading = f"{experiment.name}: characters or BPE?"
    text = [heading, "", as_text(cells), "", "Not held equal:", *(f"  - {line}" for line in unequal)]
    text += ["", f"Verdict: {sentence}", ""]
    write_text(folder / TEXT, "\n".join(text))
    markdown = [f"# {heading}", "", f"**{sentence}**", "", as_markdown(cells), ""]
    markdown += ["![val bits per character against characters seen](curve_characters.svg)", ""]
    markdown += ["![val bits per character against seconds](curve_seconds.svg)", ""]
    markdown += ["## Not held equal", "", *(f"- {line}" for line in unequal), ""]
    markdown += ["## How the number is made", "", _NOTE, "", f"Training FLOPs: {formula}.", ""]
    markdown += ["## What was compared", "", *(f"- {line}" for line in about), ""]
    write_text(folder / MARKDOWN, "\n".join(markdown))
    summary = {
        "experiment": experiment.name,
        "verdict": sentence,
        "rows": rows,
        "not_held_equal": unequal,
        "reports": _hashes(runs),
        "fingerprints": {run.contestant: run.report["tokenizer"]["fingerprint"] for run in runs},
        "test_text_sha256": runs[0].test["text_sha256"],
        "flops_formula": formula,
        "corpus": {key: value for key, value in corpus.items() if key != "splits"},
    }
    write_json(folder / JSON, summary)


def _about(experiment: Experiment, runs: Sequence[Run], corpus: dict[str, Any]) -> list[str]:
    """Corpus, cleaning, environment and identities."""
    environment = runs[0].report["environment"]
    lines = [
        f"corpus {experiment.corpus.corpus_name}, cleaning {experiment.corpus.cleaning}; test text sha256 "
        f"{runs[0].test['text_sha256']}",
        "characters of val and test that never occur in train are part of the alphabet: "
        + ", ".join(f"{name} {len(corpus['splits'][name]['characters_absent_from_train'])}" for name in SCORED),
        f"torch {environment['torch']}, {environment['device']}, {environment['num_threads']} threads, "
        f"{environment['dtype']}",
    ]
    lines += [f"{run.contestant}: tokenizer {run.report['tokenizer']['fingerprint']}" for run in runs]
    return lines
