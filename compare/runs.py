"""Finished runs, as their evaluation stored them; refuses what cannot be compared."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.errors import ReportError
from data.files import read_json, sha256_file
from model.evaluate import Evaluation, read_nats
from model.metrics import read_metrics
from model.report import REPORT, SCORED, nats_path

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
    def test(self) -> dict[str, Any]:
        """The test split's part of the report."""
        part: dict[str, Any] = self.report["splits"]["test"]
        return part


def read_run(folder: Path) -> Run:
    """Read a run and derive its figures again from the stored losses.

    Raises ReportError if the losses are not the ones that the report was written from.
    """
    report = read_json(folder / REPORT)
    evaluations = {}
    for split in SCORED:
        path = nats_path(folder, split)
        stored = report["splits"][split]
        found = sha256_file(path)
        if found != stored["nats_sha256"]:
            raise ReportError(
                f"{path} has sha256 {found[:12]}…, but {folder / REPORT} was written from "
                f"{stored['nats_sha256'][:12]}…; run `make train-{report['contestant']}` to score it again"
            )
        evaluations[split] = _check_figures(read_nats(path), stored, path)
    return Run(
        contestant=report["contestant"],
        folder=folder,
        report=report,
        report_sha256=sha256_file(folder / REPORT),
        evaluations=evaluations,
        metrics=read_metrics(folder / "metrics.jsonl"),
    )


def _check_figures(evaluation: Evaluation, stored: dict[str, Any], path: Path) -> Evaluation:
    for name in ("num_chars", "num_bytes", "total_nats", "bits_per_char", "bits_per_byte"):
        derived = getattr(evaluation, name)
        if not math.isclose(derived, stored[name], rel_tol=_RELATIVE_TOLERANCE):
            raise ReportError(f"{path} gives {name} = {derived}, but the report beside it says {stored[name]}")
    return evaluation


def check_comparable(runs: Sequence[Run]) -> None:
    """Raise ReportError unless every run was scored on the same text (and so under the same cleaning)."""
    first = runs[0]
    for run in runs[1:]:
        for split in SCORED:
            ours, theirs = (r.report["splits"][split]["text_sha256"] for r in (first, run))
            if ours != theirs:
                raise ReportError(
                    f"{first.contestant} and {run.contestant} were scored on different {split} texts "
                    f"({first.folder / REPORT}: {ours[:12]}…, {run.folder / REPORT}: {theirs[:12]}…); "
                    "run `make all` to bring both to the present text"
                )
