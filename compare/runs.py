"""Finished runs, as their evaluation stored them; refuses what cannot be compared."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from compare.characters import document_char_offsets
from data.errors import ReportError
from data.files import sha256_file
from data.layout import Layout
from data.shapes import Kinds, check_object, read_object
from model import checkpoint
from model.evaluate import Evaluation, read_nats
from model.metrics import read_metrics
from model.report import REPORT, SCORED, nats_path

_REPORT_FIELDS: dict[str, Kinds] = {
    "contestant": str,
    "checkpoint_sha256": str,
    "train_text_sha256": str,
    "flops_formula": str,
    "tokens_per_second": float,
    **dict.fromkeys(
        ("tokenizer", "model", "train", "parameters", "seen", "environment", "block", "splits", "inputs"), dict
    ),
}
_SPLIT_FIELDS: dict[str, Kinds] = {
    **dict.fromkeys(("text_sha256", "nats_sha256"), str),
    **dict.fromkeys(("num_chars", "num_bytes", "num_tokens"), int),
    **dict.fromkeys(("total_nats", "bits_per_char", "bits_per_byte", "disjoint_bits_per_char"), float),
    "word_perplexity": (float, type(None)),
}
_RELATIVE_TOLERANCE = 1e-9  # a float64 sum against the same sum written as JSON


@dataclass(frozen=True)
class Run:
    """One contestant's finished run."""

    contestant: str
    folder: Path
    report: dict[str, Any]
    """report.json."""
    report_sha256: str
    evaluations: dict[str, Evaluation]
    """Stored per-token losses of val and test."""
    metrics: list[dict[str, Any]]
    """metrics.jsonl, oldest first."""

    @property
    def metrics_path(self) -> Path:
        """Where the metrics were read."""
        return self.folder / checkpoint.METRICS

    @property
    def test(self) -> dict[str, Any]:
        """The test split's part of the report."""
        part: dict[str, Any] = self.report["splits"]["test"]
        return part

    @property
    def test_borders_sha256(self) -> str:
        """Hash of where the documents of the test text begin."""
        found: str = self.report["inputs"]["texts"]["test"]["borders_sha256"]
        return found

    @property
    def seed(self) -> int:
        """The seed that it was trained with."""
        return int(self.report["train"]["seed"])


@dataclass(frozen=True)
class Entry:
    """One contestant with its finished runs, which differ by their seed only."""

    name: str
    runs: tuple[Run, ...]
    """In the order of the experiment's seeds; at least one."""

    def evaluation(self, split: str) -> Evaluation:
        """The losses of `split`, averaged over the seeds token by token; with one seed those of its run, unchanged.

        The mean is taken in float64 and stored as float32. Losses are not negative, so a sum over them is off by
        less than float32's half unit, 6e-8 of itself, whatever the tokens. Call `check_comparable` first: the runs
        must hold the same tokens.
        """
        evaluations = [run.evaluations[split] for run in self.runs]
        if len(evaluations) == 1:
            return evaluations[0]
        mean = sum(evaluation.nats.astype(np.float64) for evaluation in evaluations) / len(evaluations)
        disjoint = math.fsum(evaluation.disjoint_total_nats for evaluation in evaluations) / len(evaluations)
        return replace(evaluations[0], nats=np.asarray(mean, np.float32), disjoint_total_nats=disjoint)


def all_runs(entries: Iterable[Entry]) -> list[Run]:
    """The runs of all entries, contestant by contestant."""
    return [run for entry in entries for run in entry.runs]


def read_run(folder: Path) -> Run:
    """Read a run and derive its figures again from the stored losses.

    Raises ReportError if the losses are not the ones that the report was written from.
    """
    contestant = Layout.contestant_of(folder)
    again, anew = f"make train-{contestant}", checkpoint.restart_command(contestant)
    report = read_object(folder / REPORT, _REPORT_FIELDS, mend=again)
    evaluations = {}
    for split in SCORED:
        path = nats_path(folder, split)
        where = f"{folder / REPORT}: splits"
        check_object(report["splits"], {split: dict}, where=where, mend=again)
        stored = check_object(report["splits"][split], _SPLIT_FIELDS, where=f"{where}.{split}", mend=again)
        found = sha256_file(path)
        if found != stored["nats_sha256"]:
            raise ReportError(
                f"{path} has sha256 {found[:12]}…, but {folder / REPORT} was written from "
                f"{stored['nats_sha256'][:12]}…; run `{again}` to score it again"
            )
        evaluations[split] = _check_figures(read_nats(path), stored, path, again)
    return Run(
        contestant=report["contestant"],
        folder=folder,
        report=report,
        report_sha256=sha256_file(folder / REPORT),
        evaluations=evaluations,
        metrics=read_metrics(folder / checkpoint.METRICS, mend=anew),
    )


def _check_figures(evaluation: Evaluation, stored: dict[str, Any], path: Path, again: str) -> Evaluation:
    for name in ("num_chars", "num_bytes", "total_nats", "bits_per_char", "bits_per_byte"):
        derived = getattr(evaluation, name)
        if not math.isclose(derived, stored[name], rel_tol=_RELATIVE_TOLERANCE):
            raise ReportError(
                f"{path} gives {name} = {derived}, but the report beside it says {stored[name]}; run `{again}` to "
                "score it again"
            )
    return evaluation


def check_comparable(runs: Sequence[Run]) -> None:
    """Raise ReportError unless all runs can stand in one comparison.

    Every run must have been scored on the same text (and so under the same cleaning), cut into the same documents;
    the runs of one contestant must have the same tokenizer, so that their tokens are the same ones.
    """
    first = runs[0]
    of_contestant: dict[str, Run] = {}
    for run in runs:
        for split in SCORED:
            _check_same_text(first, run, split)
        _check_same_tokens(of_contestant.setdefault(run.contestant, run), run)


def _check_same_text(first: Run, run: Run, split: str) -> None:
    ours, theirs = (r.report["splits"][split]["text_sha256"] for r in (first, run))
    if ours != theirs:
        raise ReportError(
            f"{first.contestant} and {run.contestant} were scored on different {split} texts "
            f"({first.folder / REPORT}: {ours[:12]}…, {run.folder / REPORT}: {theirs[:12]}…); "
            "run `make all` to bring both to the present text"
        )
    if run is not first:
        offsets = [document_char_offsets(r.evaluations[split]) for r in (first, run)]
        if not np.array_equal(offsets[0], offsets[1]):
            raise ReportError(
                f"{first.folder} and {run.folder} hold the same {split} text cut into other documents "
                f"({len(offsets[0]) - 1} and {len(offsets[1]) - 1} of them); "
                "run `make all` to bring both to the present documents"
            )


def _check_same_tokens(first: Run, run: Run) -> None:
    ours, theirs = (r.report["tokenizer"]["fingerprint"] for r in (first, run))
    if ours != theirs:
        raise ReportError(
            f"two runs of {run.contestant} have different tokenizers ({first.folder / REPORT}: {ours[:12]}…, "
            f"{run.folder / REPORT}: {theirs[:12]}…); run `make train-{run.contestant} FORCE=1` to train all its seeds "
            "with the present one"
        )
