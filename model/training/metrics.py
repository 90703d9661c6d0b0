"""metrics.jsonl: one JSON line for each logged step, cut back to the checkpoint when a run is resumed."""

import json
import math
from pathlib import Path
from typing import Any

from data.errors import CheckpointError, DataError, command
from data.files import read_text, write_text
from data.shapes import Kinds, check_object

_FIELDS: dict[str, Kinds] = {
    **dict.fromkeys(("step", "characters", "tokens", "flops"), int),
    **dict.fromkeys(("seconds", "loss_nats", "learning_rate"), float),
}


class MetricsLog:
    """An append-only file of JSON lines that knows how many it holds."""

    def __init__(self, path: Path, num_lines: int) -> None:
        """Keep the first `num_lines` lines of `path` (a run killed later leaves more, and perhaps half a line).

        Raises CheckpointError if there are fewer.
        """
        self.path = path
        self.num_lines = num_lines
        lines = read_text(path).split("\n")[:-1] if path.exists() else []
        if len(lines) < num_lines:
            raise CheckpointError(
                f"{path} has {len(lines)} lines, but the checkpoint next to it was written after {num_lines}; "
                "restore the file, or train again with FORCE=1"
            )
        write_text(path, "".join(line + "\n" for line in lines[:num_lines]))

    def append(self, record: dict[str, Any]) -> None:
        """Add one line. Raises DataError when the file system refuses."""
        line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
        try:
            with self.path.open("a", encoding="utf-8", newline="") as file:
                file.write(line)
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror or error}") from error
        self.num_lines += 1


def read_metrics(path: Path, *, mend: str) -> list[dict[str, Any]]:
    """All records of a metrics file, oldest first; every number in them is finite.

    Raises DataError naming the damaged line and `mend`, a command; the last line must have its end, or it is cut short.
    """
    if not path.exists():
        raise DataError(f"{path} does not exist; run {command(mend)}")
    records: list[dict[str, Any]] = []
    *lines, rest = read_text(path).split("\n")
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{where}: not valid JSON ({error.msg}); run {command(mend)}") from error
        records.append(check_object(record, _FIELDS, where=where, mend=mend))
        for key, value in record.items():
            if type(value) not in (int, float) or not math.isfinite(value):
                raise DataError(f"{where}: key {key!r} is {value!r}, not a finite number; run {command(mend)}")
    if rest:
        raise DataError(f"{path}, line {len(lines) + 1}: cut short; run {command(mend)}")
    return records
