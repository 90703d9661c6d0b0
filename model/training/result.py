"""What a training leaves behind for those who called it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.settings import Spent


@dataclass(frozen=True)
class TrainResult:
    """What a call of `train` left behind."""

    folder: Path
    """Where last.pt, best.pt and metrics.jsonl lie."""
    spent: Spent
    """What the whole run has spent, over all resumes."""
    best_step: int
    """Step of best.pt."""
    best_val_sample_bits_per_char: float
    """Its figure on the val sample, under disjoint windows."""
    num_steps_now: int
    """Steps taken by this call; 0 when the run was finished already."""


def result_of(folder: Path, spent: Spent, best: dict[str, Any], *, num_steps_now: int) -> TrainResult:
    """The result of a run that has spent its budget; `best` is what a checkpoint says of best.pt."""
    return TrainResult(
        folder=folder,
        spent=spent,
        best_step=best["step"],
        best_val_sample_bits_per_char=best["val_sample_bits_per_char"],
        num_steps_now=num_steps_now,
    )
