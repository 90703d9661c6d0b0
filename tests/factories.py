"""Small things that tests of several themes need."""

import os
import subprocess
from pathlib import Path

from hypothesis import settings

DEEP_FACTOR = 50


def examples(number: int) -> settings:
    """Settings for a property: so many examples, and DEEP_FACTOR times as many under HYPOTHESIS_PROFILE=deep."""
    is_deep = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
    return settings(max_examples=number * (DEEP_FACTOR if is_deep else 1))


def is_set_up(folder: Path) -> bool:
    """Whether `make setup` has nothing to do in `folder`, so that a test may call Make there without installing."""
    found = subprocess.run(
        "cat pyproject.toml constraints.txt | cksum", shell=True, cwd=folder, capture_output=True, text=True, check=True
    )
    return (folder / f".venv/.ready-{found.stdout.split()[0]}").exists()
