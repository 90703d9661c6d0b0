"""One run, as a value: whose it is, what it is trained on, by which settings, and where it lies."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from data.errors import ConfigError
from model.settings import MiniGPTConfig, TrainConfig
from tokenizer.base import Tokenizer
from tokenizer.encode_splits import EncodedSplit


@dataclass(frozen=True)
class RunSpec:
    """All that a run follows from. Raises ConfigError when model and tokenizer differ in the size of the vocabulary."""

    contestant: str
    """Its name, for messages and reports."""
    tokenizer: Tokenizer
    """The tokenizer of the ids."""
    tokenizer_path: Path
    """Its file, of which the run keeps a copy."""
    splits: Mapping[str, EncodedSplit]
    """train, val and test, encoded by `tokenizer`; test is scored, and is no part of the training."""
    model_config: MiniGPTConfig
    """Sizes of the model, block_size in tokens."""
    train_config: TrainConfig
    """Budget and settings of the training, with this run's seed."""
    folder: Path
    """Where its checkpoints, metrics and report lie."""
    part: str = ""
    """Which part of a contestant's training it is, for messages only, such as `size 0.4, rung 2 of 5`."""

    @property
    def label(self) -> str:
        """Contestant and part, for messages."""
        return f"{self.contestant}, {self.part}" if self.part else self.contestant

    def __post_init__(self) -> None:
        wanted, found = self.model_config.vocab_size, self.tokenizer.vocab_size
        if wanted != found:
            raise ConfigError(
                f"the model has vocab_size {wanted}, but {self.tokenizer_path} has {found} tokens; take vocab_size "
                "from the tokenizer"
            )
