"""Check that the metric is right: text of known entropy through the whole chain. Exit code 1 if it is wrong."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from compare import cli
from compare.calibrate.judge import as_text, calibrate, full_plans
from compare.options import Parser, folder
from data.files import write_json


def main(argv: Sequence[str] | None = None) -> None:
    """Command `calibrate`: one table for each source, then the verdict."""
    parser = Parser(description=__doc__)
    parser.add_argument("--root", type=folder, default=Path("runs/calibrate"), help="everything is written below it")
    root = parser.parse_args(argv).root
    found = [calibrate(plan, root, echo=_first_line) for plan in full_plans()]
    write_json(root / "calibration.json", [dataclasses.asdict(calibration) for calibration in found])
    for calibration in found:
        print(f"\n{as_text(calibration)}", end="")
    if not all(calibration.is_straight for calibration in found):
        print("\nThe metric is WRONG: see the lines above; no comparison made with it can be trusted.")
        sys.exit(1)
    print("\nThe metric is right.")


def _first_line(message: str) -> None:
    """A step of the chain on one line: what its tokens look like is no matter here."""
    print(message.splitlines()[0])


if __name__ == "__main__":
    cli.run(main)
