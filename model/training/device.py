"""What a run is carried out on: device, type of products and compiler, and what to say when its memory is too small."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from data.errors import ConfigError
from model.run_spec import RunSpec

# torch has a class of its own for GPUs; on the CPU it raises a plain RuntimeError that says one of these.
_CPU_MESSAGES = ("can't allocate memory", os.strerror(errno.ENOMEM), "std::bad_alloc")


def choose_device(wanted: str) -> torch.device:
    """The device for `auto`, `cpu` or `cuda`. Raises ConfigError for `cuda` without a GPU."""
    available = torch.cuda.is_available()
    if wanted == "cuda" and not available:
        raise ConfigError("train.device is 'cuda', but torch finds no GPU; set it to 'auto' or 'cpu'")
    return torch.device("cuda" if available and wanted != "cpu" else "cpu")


def choose_dtype(wanted: str, device: torch.device) -> torch.dtype:
    """The type of matrix products for `auto`, `float32` or `bfloat16` on `device`.

    `auto` is float32 on every CPU, also on those with bfloat16 instructions: the kernels of `model.fused` are in
    float32 and faster there, and a figure does not change with the model of the CPU.
    """
    if wanted != "auto":
        return torch.float32 if wanted == "float32" else torch.bfloat16
    return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float32


def choose_compile(wanted: str, device: torch.device) -> bool:
    """Whether to use torch.compile for `auto`, `on` or `off` on `device`.

    Raises ConfigError for `on` where it cannot work: on a CPU, whose kernels it cannot see through, or without a
    C compiler.
    """
    has_compiler = any(shutil.which(name) for name in ("cc", "gcc", "clang"))
    if wanted == "on" and device.type == "cpu":
        raise ConfigError("train.compile is 'on', but the CPU runs kernels of its own; set it to 'auto' or 'off'")
    if wanted == "on" and not has_compiler:
        raise ConfigError("train.compile is 'on', but there is no C compiler; install one or set it to 'auto'")
    return device.type == "cuda" and wanted != "off" and has_compiler


@contextmanager
def explain_out_of_memory(spec: RunSpec) -> Iterator[None]:
    """Turn a failed allocation inside into a ConfigError that says what to lower; all other errors pass through."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        model, train = spec.model_config, spec.train_config
        cause = (str(error).splitlines() or [type(error).__name__])[0]
        tokens = train.batch_size * model.block_size
        raise ConfigError(
            f"{spec.contestant}: out of memory ({cause}); a step holds batch_size {train.batch_size} x block_size "
            f"{model.block_size} = {tokens:,} tokens with {model.vocab_size:,} logits each: lower train.batch_size "
            "first, then model.block_size, model.embedding_dim or model.num_layers, or the tokenizer's vocab_size; "
            "if it happened while scoring, lower evaluate.batch_size"
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that an allocation failed, on a GPU, on the CPU, or in Python or numpy."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(message in str(error) for message in _CPU_MESSAGES)
