"""Ids to loss: the mini-GPT, its training, evaluation and checkpoints. Imports from `tokenizer` and `data`."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.exchange.loaded import LanguageModel


def load(path: Path | str) -> "LanguageModel":
    """The finished run in the folder `path`, such as `demo/checkpoints/byte_bpe`: its best weights and its tokenizer.

    It has `generate`, `samples`, `bits_per_char`, `encode`, `decode` and `len()`. Raises CheckpointError for a folder
    without a run, or with a damaged one.
    """
    from model.exchange.loaded import load_run  # here: `import model` alone does not need torch

    return load_run(Path(path).expanduser())
