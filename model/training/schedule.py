"""What a run is told: its budget and settings, and the learning rate as a pure function of its progress."""

import math
import shutil
from dataclasses import dataclass, field
from typing import Annotated, Literal

import torch

from data.config import require
from data.errors import ConfigError
from data.numbers import COUNT, SEED, NullAs, Range, check_ranges, shown

LEARNING_RATE = Range(1e-12, 1e37)
"""Below it no weight of float32 moves; far too high ones are left to diverge, which is said."""
Unit = Literal["characters", "tokens", "steps", "flops", "seconds"]


@dataclass(frozen=True)
class Budget:
    """What a run may spend. It stops at the first step after which it has spent at least this much."""

    unit: Unit = "characters"
    """`characters` or `tokens` seen as targets, optimizer `steps`, training `flops`, or `seconds` of training."""
    amount: Annotated[int, Range(1, 10**30)] = 20_000_000
    """How many of them."""

    def __post_init__(self) -> None:
        require(self.amount >= 1, f"amount must be at least 1, found {shown(self.amount)}: no step could be taken")
        check_ranges(self)


@dataclass(frozen=True)
class Spent:
    """All five quantities of a run so far, whichever of them is the budget."""

    characters: int = 0
    """Characters of all targets seen, exact."""
    tokens: int = 0
    """Targets seen."""
    steps: int = 0
    """Optimizer steps."""
    flops: int = 0
    """Training FLOPs by model.gpt.FLOPS_FORMULA."""
    seconds: float = 0.0
    """Time in training steps, over all resumes; evaluation and saving are not in it, so budgets compare training."""
    evaluation_seconds: float = 0.0
    """Time in periodic evaluations, over all resumes."""

    def amount(self, unit: Unit) -> float:
        """What was spent of `unit`."""
        value: float = getattr(self, unit)
        return value

    def progress(self, budget: Budget) -> float:
        """Spent share of the budget; the last step may carry it beyond 1."""
        return self.amount(budget.unit) / budget.amount


@dataclass(frozen=True)
class TrainConfig:
    """How a contestant is trained; all contestants of an experiment share it."""

    budget: Budget = field(default_factory=Budget)
    """What the run may spend, and in which unit."""
    batch_size: Annotated[int, Range(1, 10**6)] = 32
    """Windows in one step."""
    learning_rate: Annotated[float, LEARNING_RATE] = 1e-3
    """Peak learning rate, of AdamW and of Muon."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """`muon` moves the matrices of the blocks by Muon, the tables and vectors by AdamW."""
    schedule: Literal["cosine", "linear"] = "cosine"
    """After the warm-up: cosine decay, or a constant rate and a linear way down over warmdown_fraction."""
    warmdown_fraction: Annotated[float, Range(1e-9, 1)] = 0.4
    """Share of the budget over which `linear` comes down, in (0, 1]."""
    order: Literal["random", "epochs"] = "random"
    """Windows anywhere, or every stretch of the text once an epoch, shuffled anew for each."""
    ema_decay: Annotated[float, Range(0, 1, excludes_most=True)] = 0.0
    """Above 0, val figures and best.pt are of the moving average of the weights, which keeps this much a step."""
    min_learning_rate_ratio: Annotated[float, Range(0, 1)] = 0.1
    """Learning rate at the start of the warm-up and at the end, as a share of the peak."""
    warmup_fraction: Annotated[float, Range(0, 1, excludes_most=True)] = 0.05
    """Share of the budget over which the learning rate rises, in [0, 1)."""
    weight_decay: Annotated[float, Range(0, 10**9)] = 0.1
    """Decay of matrices and tables; biases and norms have none."""
    beta1: Annotated[float, Range(0, 1, excludes_most=True)] = 0.9
    """AdamW's memory of the gradient."""
    beta2: Annotated[float, Range(0, 1, excludes_most=True)] = 0.99
    """AdamW's memory of its square."""
    gradient_clip: Annotated[float, Range(1e-12, 1e30)] = 1.0
    """Largest norm of the gradient."""
    seed: Annotated[int, SEED] = 1
    """Decides initial weights, windows and dropout."""
    val_every_fraction: Annotated[float, Range(1e-9, 1)] = 0.1
    """Share of the budget between two figures on the val sample; one more is taken at the end."""
    val_characters: Annotated[int, COUNT] = 100_000
    """Length of the fixed sample of val that these figures are taken on, spread over its documents."""
    log_every_steps: Annotated[int, COUNT] = 10
    """Steps between two lines of metrics.jsonl; steps with such a figure are always logged."""
    checkpoint_every_seconds: Annotated[float, Range(0, 10**9)] = 60.0
    """Seconds between two saves of last.pt."""
    num_threads: Annotated[int | None, Range(1, 1024), NullAs(("auto", "all"))] = None
    """Threads of torch; null leaves torch's choice."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto` takes a GPU if there is one."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the matrix products; `auto` takes bfloat16 on a GPU that has instructions for it, float32 on every CPU."""
    compile: Literal["auto", "on", "off"] = "auto"
    """torch.compile; `auto` takes it on a GPU with a C compiler, never on a CPU, which has its own kernels."""

    def __post_init__(self) -> None:
        check_ranges(self)


# What `preset: modern` of the model block sets in the train block, unless the file says otherwise: what `make ablate`
# showed a gain of. Epochs and a moving average of the weights showed none in short runs and stay options.
MODERN_TRAIN = {"optimizer": "muon", "schedule": "linear"}


def learning_rate_factor(
    progress: float, *, warmup_fraction: float, minimum: float, warmdown_fraction: float | None = None
) -> float:
    """Share of the peak learning rate at `progress` in [0, 1]: linear warm-up, then cosine decay.

    With `warmdown_fraction` the rate stays at its peak instead and comes down linearly over that last share. All
    begin and end at `minimum`, so that even a run of one step learns something.
    """
    progress = min(max(progress, 0.0), 1.0)
    if progress < warmup_fraction:
        height = progress / warmup_fraction
    elif warmdown_fraction is not None:
        height = min(1.0, (1.0 - progress) / warmdown_fraction)
    else:
        decayed = (progress - warmup_fraction) / (1.0 - warmup_fraction)
        height = 0.5 * (1.0 + math.cos(math.pi * decayed))
    return minimum + (1.0 - minimum) * height


def is_evaluation_due(before: float, after: float, every: float) -> bool:
    """Whether a step that carried progress from `before` to `after` crossed a multiple of `every`, or ended the run."""
    return after >= 1.0 or math.floor(after / every) > math.floor(before / every)


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
