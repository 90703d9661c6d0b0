"""What other commands left next to a comparison: sweep and marginal bounds, taken up only if they are of its inputs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compare.grids.sweep import JSON as SWEEP
from compare.grids.sweep import VERSION as SWEEP_VERSION
from compare.grids.sweep import Sweep
from compare.marginal.estimate import VERSION as MARGINAL_VERSION
from compare.marginal.result import MeasuredRun
from compare.marginal.stored import JSON as MARGINAL
from compare.runs import Entry
from data.errors import DataError, ReportError, command
from data.files import sha256_file
from data.inputs import SEAL, is_sealed
from data.layout import Layout
from data.shapes import read_object
from model.report import REPORT


def _read_beside(path: Path, make: str) -> dict[str, Any]:
    """Another command's result that is next to the comparison; raises ReportError if it is damaged."""
    try:
        return read_object(path, {}, mend=make)
    except DataError as error:
        raise ReportError(f"{error.text} to make it again, or remove the file") from error


def _require_unedited(value: Any, where: str, make: str) -> None:
    """Raise ReportError for what is not as it was written, its version included."""
    if not is_sealed(value):
        raise ReportError(f"{where} is not as it was written; run {command(make)} to make it again, or remove the file")


def sweep_of_this_text(folder: Path, entries: Sequence[Entry], layout: Layout) -> Sweep | None:
    """The vocabulary sweep that is next to the comparison, if it is of the same test text and documents.

    It may be of another experiment under the same root; its runs must still be there as it found them.
    """
    path = folder / SWEEP
    if not path.exists():
        return None
    stored = _read_beside(path, "make sweep")
    if SEAL in stored or stored.get("version") == SWEEP_VERSION:
        _require_unedited(stored, str(path), "make sweep")
    if stored.get("version") != SWEEP_VERSION:
        return None  # it does not say which documents it was scored on
    sweep = Sweep.from_json(stored)
    first = entries[0].runs[0]
    is_same = (sweep.test_text_sha256, sweep.test_borders_sha256) == (
        first.test.text_sha256,
        first.test_borders_sha256,
    )
    if not is_same or not _are_there(sweep.reports, layout):
        return None
    return sweep


def _are_there(reports: Mapping[str, Sequence[str]], layout: Layout) -> bool:
    """Whether runs with these hashes of their reports, by contestant, lie under the root."""
    for name, hashes in reports.items():
        folder = layout.checkpoints(name)
        found = {sha256_file(path) for path in (folder / REPORT, *folder.glob(f"seed_*/{REPORT}")) if path.exists()}
        if not found.issuperset(hashes):
            return False
    return True


def marginal_of_these_runs(folder: Path, entries: Sequence[Entry]) -> dict[str, MeasuredRun]:
    """What `make marginal` found about checkpoints of this comparison, by contestant; passages left out."""
    path = folder / MARGINAL
    if not path.exists():
        return {}
    checkpoints = {entry.name: [run.report.checkpoint_sha256 for run in entry.runs] for entry in entries}
    first = entries[0].runs[0]
    kept: dict[str, MeasuredRun] = {}
    for name, found in _read_beside(path, "make marginal").items():
        if isinstance(found, dict) and (SEAL in found or found.get("version") == MARGINAL_VERSION):
            _require_unedited(found, f"{path}: {name}", f"make marginal CONTESTANT={name}")
        if not isinstance(found, dict) or found.get("version") != MARGINAL_VERSION:
            continue  # of an older version, which does not say which documents it was measured on
        measured = MeasuredRun.from_json({key: value for key, value in found.items() if key != "passages"})
        is_same = (measured.test_text_sha256, measured.test_borders_sha256) == (
            first.test.text_sha256,
            first.test_borders_sha256,
        )
        if is_same and measured.checkpoint_sha256 in checkpoints.get(name, []):
            kept[name] = measured
    return kept
