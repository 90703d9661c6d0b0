"""marginal.json: what `make marginal` found, one entry for each contestant."""

from pathlib import Path
from typing import Any

from compare.marginal.result import MeasuredRun
from data.errors import DataError
from data.files import read_json, write_json
from data.inputs import is_sealed, seal
from data.lock import alone

JSON = "marginal.json"


def store(path: Path, contestant: str, measured: MeasuredRun) -> None:
    """Add what was measured to the file, next to what it holds of other contestants on the same test text."""
    with alone(path):  # entries of another process, which may end at the same time, must not be lost
        write_json(path, {**_others(path, measured), contestant: seal(measured.as_json(passages=True))})


def _others(path: Path, measured: MeasuredRun) -> dict[str, Any]:
    """What earlier calls found for the other contestants on the same test text; a damaged file holds nothing."""
    if not path.exists():
        return {}
    try:
        stored = read_json(path)
    except DataError:
        return {}
    same = ("version", "test_text_sha256", "test_borders_sha256")
    return {
        name: found
        for name, found in (stored.items() if isinstance(stored, dict) else ())
        if is_sealed(found) and all(found.get(key) == getattr(measured, key) for key in same)
    }
