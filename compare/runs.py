"""Finished runs, as their evaluation stored them; refuses what cannot be compared."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from compare.characters import document_char_offsets
from data.errors import ReportError, command
from data.files import sha256_file
from data.layout import Layout
from model.checkpoint import METRICS, restart_command
from model.evaluate import Evaluation, describe, read_nats
from model.report import REPORT, SCORED, nats_path
from model.report_file import Report, SplitScore, read_report
from model.training.metrics import read_metrics

_RELATIVE_TOLERANCE = 1e-9  # a float64 sum against the same sum written as JSON


@dataclass(frozen=True)
class Run:
    """One contestant's finished run."""

    contestant: str
    folder: Path
    report: Report
    """report.json."""
    report_sha256: str
    evaluations: dict[str, Evaluation]
    """Stored per-token losses of val and test."""
    metrics: list[dict[str, Any]]
    """metrics.jsonl, oldest first."""

    @property
    def metrics_path(self) -> Path:
        """Where the metrics were read."""
        return self.folder / METRICS

    @property
    def test(self) -> SplitScore:
        """The test split's part of the report."""
        return self.report.splits.test

    @property
    def test_borders_sha256(self) -> str:
        """Hash of where the documents of the test text begin."""
        found: str = self.report.stored["inputs"]["texts"]["test"]["borders_sha256"]
        return found

    @property
    def seed(self) -> int:
        """The seed that it was trained with."""
        return self.report.train.seed


@dataclass(frozen=True)
class Rung:
    """One contestant's finished runs of one budget of a ladder."""

    amount: int
    """The budget, in its unit."""
    runs: tuple[Run, ...]
    """In the order of the experiment's seeds."""


@dataclass(frozen=True)
class Entry:
    """One contestant with its finished runs, which differ by their seed only."""

    name: str
    runs: tuple[Run, ...]
    """In the order of the experiment's seeds; at least one."""
    rungs: tuple[Rung, ...] = ()
    """With a ladder, its budgets, ascending; the last one is the whole budget, with the runs of `runs`."""

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


def runs_of_rungs(entries: Iterable[Entry]) -> list[Run]:
    """The runs of all rungs but the last, contestant by contestant; those of the last are in `all_runs`."""
    return [run for entry in entries for rung in entry.rungs[:-1] for run in rung.runs]


def read_run(folder: Path) -> Run:
    """Read a run and derive its figures again from the stored losses.

    Raises DataError if a file is damaged, and ReportError if the losses are not the ones that the report was written
    from.
    """
    contestant = Layout.contestant_of(folder)
    again, anew = f"make train-{contestant}", restart_command(contestant)
    report = read_report(folder / REPORT, mend=again)
    evaluations = {}
    for split in SCORED:
        path = nats_path(folder, split)
        stored = report.splits.of(split)
        found = sha256_file(path)
        if found != stored.nats_sha256:
            raise ReportError(
                f"{path} has sha256 {found[:12]}…, but {folder / REPORT} was written from "
                f"{stored.nats_sha256[:12]}…; run {command(again)} to score it again"
            )
        evaluations[split] = _check_figures(read_nats(path), report, split, path)
    return Run(
        contestant=report.contestant,
        folder=folder,
        report=report,
        report_sha256=sha256_file(folder / REPORT),
        evaluations=evaluations,
        metrics=_check_metrics(read_metrics(folder / METRICS, mend=anew), report, folder / METRICS),
    )


def _check_metrics(metrics: list[dict[str, Any]], report: Report, path: Path) -> list[dict[str, Any]]:
    """The records, which must have what the curves are drawn from and end where the report says that the run ended."""
    mend = f"run {command(restart_command(report.contestant))}"
    for number, record in enumerate(metrics, start=1):
        missing = [key for key in ("characters", "flops", "seconds") if key not in record]
        if missing:
            raise ReportError(f"{path}, line {number}: key {missing[0]!r} is missing; {mend}")
    ends = metrics[-1]["characters"] if metrics else 0
    if ends != report.seen.characters or "val_sample_bits_per_char" not in metrics[-1]:
        raise ReportError(
            f"{path} ends after {ends:,} characters, but {path.parent / REPORT} is of a run of "
            f"{report.seen.characters:,}: lines are missing, or the file is of another run; {mend}"
        )
    return metrics


def _check_figures(evaluation: Evaluation, report: Report, split: str, path: Path) -> Evaluation:
    stored = report.splits.of(split)
    again = command(f"make train-{report.contestant}")
    mend = f"run {again} to score it again"
    if evaluation.tokenizer_fingerprint != report.tokenizer.fingerprint:
        raise ReportError(
            f"{path} was scored with tokenizer {evaluation.tokenizer_fingerprint[:12]}…, but the report there says "
            f"{report.tokenizer.fingerprint[:12]}…; {mend}"
        )
    for name, derived in describe(evaluation, stored.num_words).items():
        found = getattr(stored, name)
        if name == "text_sha256" or found == derived:  # texts are compared with those of the other runs
            continue
        if found is None or derived is None or not math.isclose(found, derived, rel_tol=_RELATIVE_TOLERANCE):
            raise ReportError(f"{path} gives {name} = {derived}, but the report next to it says {found}; {mend}")
    return evaluation


def check_comparable(runs: Sequence[Run]) -> None:
    """Raise ReportError unless all runs can be in one comparison.

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
    ours, theirs = (r.report.splits.of(split).text_sha256 for r in (first, run))
    if ours != theirs:
        raise ReportError(
            f"{first.contestant} and {run.contestant} were scored on different {split} texts "
            f"({first.folder / REPORT}: {ours[:12]}…, {run.folder / REPORT}: {theirs[:12]}…); "
            f"run {command('make all')} to bring both to the present text"
        )
    if run is not first:
        offsets = [document_char_offsets(r.evaluations[split]) for r in (first, run)]
        if not np.array_equal(offsets[0], offsets[1]):
            raise ReportError(
                f"{first.folder} and {run.folder} hold the same {split} text cut into other documents "
                f"({len(offsets[0]) - 1} and {len(offsets[1]) - 1} of them); "
                f"run {command('make all')} to bring both to the present documents"
            )


def _check_same_tokens(first: Run, run: Run) -> None:
    ours, theirs = (r.report.tokenizer.fingerprint for r in (first, run))
    if ours != theirs:
        raise ReportError(
            f"two runs of {run.contestant} have different tokenizers ({first.folder / REPORT}: {ours[:12]}…, "
            f"{run.folder / REPORT}: {theirs[:12]}…); run {command(restart_command(run.contestant))} to train all its "
            "seeds with the present one"
        )
