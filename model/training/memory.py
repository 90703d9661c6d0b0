"""Out of memory is a mistake of the settings, not a bug: say what to lower."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from data.errors import ConfigError
from model.gpt import MiniGPTConfig
from model.training.schedule import TrainConfig

# torch has a class of its own for GPUs; on the CPU it raises a plain RuntimeError that says one of these.
_CPU_MESSAGES = ("can't allocate memory", os.strerror(errno.ENOMEM), "std::bad_alloc")


@contextmanager
def explain_out_of_memory(contestant: str, model: MiniGPTConfig, train: TrainConfig) -> Iterator[None]:
    """Turn a failed allocation inside into a ConfigError that says what to lower; all other errors pass through."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        cause = (str(error).splitlines() or [type(error).__name__])[0]
        tokens = train.batch_size * model.block_size
        raise ConfigError(
            f"{contestant}: out of memory ({cause}); a step holds batch_size {train.batch_size} x block_size "
            f"{model.block_size} = {tokens:,} tokens with {model.vocab_size:,} logits each: lower train.batch_size "
            "first, then model.block_size, model.embedding_dim or model.num_layers, or the tokenizer's vocab_size; "
            "if it happened while scoring, lower evaluate.batch_size"
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that an allocation failed, on a GPU, on the CPU, or in Python or numpy."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(message in str(error) for message in _CPU_MESSAGES)
