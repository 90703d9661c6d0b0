"""What a run is told: the model's sizes, the training's budget and settings, the scoring's, and the presets of both.

Plain values and their checks only: reading an experiment needs neither torch nor numba.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from data.config import require
from data.numbers import COUNT, SEED, NullAs, Range, check_ranges, shown

Preset = Literal["gpt2", "modern"]
PRESETS: tuple[Preset, ...] = get_args(Preset)
SWITCHES = ("rope", "qk_norm", "relu_squared", "rms_norm", "zero_init")


@dataclass(frozen=True)
class PresetSettings:
    """What a preset sets in both blocks, where a file or a caller sets nothing."""

    model: Mapping[str, bool]
    """The switches that it turns on; all others are off."""
    train: Mapping[str, str]
    """Settings of the train block."""


# `modern` holds those parts whose gain `make ablate` showed (docs/benchmarks.md). Epochs and a moving average of the
# weights showed none in short runs and stay options.
PRESET_SETTINGS: Mapping[str, PresetSettings] = {
    "gpt2": PresetSettings(model={}, train={}),
    "modern": PresetSettings(
        model={"rope": True, "qk_norm": True, "relu_squared": True},
        train={"optimizer": "muon", "schedule": "linear"},
    ),
}


def with_preset(model: Mapping[str, Any], train: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The blocks `model` and `train` with what the model block's preset sets in each; what is written there stays.

    Every configuration of a run goes through here: MiniGPTConfig alone knows its own half of the preset only. A preset
    that does not exist sets nothing and is refused by MiniGPTConfig.
    """
    preset = model.get("preset", MiniGPTConfig.preset)
    chosen = PRESET_SETTINGS.get(preset) if isinstance(preset, str) else None
    if chosen is None:
        return dict(model), dict(train)
    switches = {name: value for name, value in chosen.model.items() if model.get(name) is None}
    return {**model, **switches}, {**chosen.train, **train}


@dataclass(frozen=True)
class MiniGPTConfig:
    """Size of the model. `vocab_size` comes from the tokenizer, never from a file."""

    vocab_size: Annotated[int, Range(1, 10**8)]
    """Number of ids, V."""
    block_size: Annotated[int, Range(1, 10**6)] = 128
    """Longest context, in tokens, T."""
    embedding_dim: Annotated[int, Range(1, 2**16)] = 128
    """Channels, C."""
    num_heads: Annotated[int, Range(1, 2**16)] = 4
    """Attention heads, H; they share the channels evenly."""
    num_layers: Annotated[int, Range(1, 1000)] = 4
    """Transformer blocks, L."""
    expansion_factor: Annotated[int, Range(1, 1000)] = 4
    """Width of the MLP's hidden layer, as a multiple of embedding_dim."""
    dropout: Annotated[float, Range(0, 1, excludes_most=True)] = 0.1
    """Probability of dropping an activation while training, in [0, 1)."""
    preset: Preset = "gpt2"
    """What the switches below are where they are null. `gpt2`: all off. `modern`: `rope`, `qk_norm` and `relu_squared`
    on.
    """
    rope: bool | None = None
    """Rotary positions (Su et al. 2021) instead of a learned table."""
    qk_norm: bool | None = None
    """Queries and keys are normalised before their product (Henry et al. 2020)."""
    relu_squared: bool | None = None
    """The MLP's activation is ReLU squared (So et al. 2021) instead of GELU."""
    rms_norm: bool | None = None
    """Norms that only divide by the root mean square, without weights (Zhang and Sennrich 2019)."""
    zero_init: bool | None = None
    """What is added to the residual stream starts at exactly zero."""

    def __post_init__(self) -> None:
        check_ranges(self)
        require(self.preset in PRESETS, f"preset: {shown(self.preset)} is not one of {', '.join(PRESETS)}")
        require(
            self.embedding_dim % self.num_heads == 0,
            f"embedding_dim {self.embedding_dim} is not divisible by num_heads {self.num_heads}",
        )
        for name in SWITCHES:
            if getattr(self, name) is None:
                object.__setattr__(self, name, PRESET_SETTINGS[self.preset].model.get(name, False))
        head_size = self.embedding_dim // self.num_heads
        require(not self.rope or head_size % 2 == 0, f"rope needs an even head size, found {head_size}")


LEARNING_RATE = Range(1e-12, 1e37)
"""Below it no weight of float32 moves; far too high ones are left to diverge, which is said."""
RATE_RATIO = Range(1e-4, 1e4)
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
class BatchConfig:
    """How much text a step takes, the same for every contestant. It becomes a whole number of windows."""

    unit: Literal["characters"] = "characters"
    """`characters` of train, at its mean length of a token."""
    amount: Annotated[int, COUNT] = 2_048
    """How many of them."""

    def __post_init__(self) -> None:
        check_ranges(self)

    def windows(self, block_size: int, chars_per_token: float) -> int:
        """The windows of `block_size` tokens that come nearest, at least one."""
        return max(1, round(self.amount / (block_size * chars_per_token)))


@dataclass(frozen=True)
class TrainConfig:
    """How a contestant is trained; all contestants of an experiment share it."""

    budget: Budget = field(default_factory=Budget)
    """What the run may spend, and in which unit."""
    batch_size: Annotated[int, Range(1, 10**6)] = 32
    """Windows in one step."""
    batch: BatchConfig | None = None
    """Text in one step, instead of batch_size: each contestant gets the batch_size that comes nearest to it. A block
    holds one of the two. What a contestant's own block holds replaces whichever the shared block holds.
    """
    learning_rate: Annotated[float, LEARNING_RATE] = 1e-3
    """Peak learning rate, of AdamW and of Muon."""
    muon_rate: Annotated[float, RATE_RATIO] = 1.0
    """Muon's learning rate as a multiple of learning_rate; its weight decay goes with it. AdamW alone ignores it."""
    table_rate: Annotated[float, RATE_RATIO] = 1.0
    """The same for the tables of tokens and positions, which AdamW moves under every optimizer."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """`muon` moves the matrices of the blocks by Muon, the tables and vectors by AdamW."""
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """After the warm-up: cosine decay, a constant rate and a linear way down over warmdown_fraction, or a constant rate
    to the end."""
    warmdown_fraction: Annotated[float, Range(1e-9, 1)] = 0.4
    """Share of the budget over which `linear` comes down, in (0, 1]."""
    order: Literal["random", "epochs"] = "random"
    """`random`: windows begin anywhere. `epochs`: every stretch of the text is read once an epoch, in another order
    each time.
    """
    ema_decay: Annotated[float, Range(0, 1, excludes_most=True)] = 0.0
    """Above 0: val figures and best.pt are those of a moving average of the weights, which keeps this share of itself
    in every step.
    """
    min_learning_rate_ratio: Annotated[float, Range(0, 1)] = 0.1
    """Learning rate at the start of the warm-up and at the end, as a share of the peak."""
    warmup_fraction: Annotated[float, Range(0, 1, excludes_most=True)] = 0.05
    """Share of the budget over which the learning rate rises, in [0, 1)."""
    warmup_amount: Annotated[int | None, Range(0, 10**30)] = None
    """The same as an amount, in the unit of the budget. null: warmup_fraction decides. A ladder sets it."""
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
    """Greatest length of the fixed sample of val that these figures are taken on, spread over its documents. A small
    budget has a shorter sample and fewer figures, so that they take at most a tenth of the time."""
    selection: Literal["best", "last"] = "best"
    """Which weights are kept as best.pt and scored: those with the lowest figure on the val sample, or the final ones.
    A ladder scores the final ones."""
    log_every_steps: Annotated[int, COUNT] = 10
    """Steps between two lines of metrics.jsonl. Steps with a figure on the val sample are always logged."""
    checkpoint_every_seconds: Annotated[float, Range(0, 10**9)] = 60.0
    """Seconds between two saves of last.pt."""
    num_threads: Annotated[int | None, Range(1, 1024), NullAs(("auto", "all"))] = None
    """Threads of a training step; null measures on a CPU for a second what is fastest, once for a machine and a shape.
    A run that goes on keeps the number that it had."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto` takes a GPU if there is one."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """The number type of matrix products. `auto` takes bfloat16 on a GPU that has instructions for it, float32 on every
    CPU.
    """
    compile: Literal["auto", "on", "off"] = "auto"
    """torch.compile; `auto` takes it on a GPU with a C compiler, never on a CPU, which has its own kernels."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class LadderConfig:
    """Finished models at several budgets from one training: a trunk at constant rate, and a branch for each budget."""

    rungs: Annotated[int, Range(1, 20)] = 5
    """Number of budgets: T (train.budget.amount), T/2, T/4 and so on."""
    way_down: Annotated[float, Range(1e-9, 1)] = 0.25
    """Share of each budget over which its branch brings the learning rate down linearly to zero, in (0, 1]."""

    def __post_init__(self) -> None:
        check_ranges(self)

    def amounts(self, budget: Budget) -> tuple[int, ...]:
        """The budgets' amounts, ascending; a half is rounded down. Raises ConfigError where one would be nothing."""
        least = 2 ** (self.rungs - 1)
        require(
            budget.amount >= least,
            f"rungs: {self.rungs} need a budget of at least {least:,} {budget.unit}, found {budget.amount:,}",
        )
        return tuple(budget.amount >> halvings for halvings in reversed(range(self.rungs)))


@dataclass(frozen=True)
class EvaluateConfig:
    """How the selected checkpoint is scored. None of it can change a result but `stride`."""

    batch_size: Annotated[int, Range(1, 10**6)] = 64
    """Windows in one forward pass; results do not depend on it beyond float noise."""
    stride: Annotated[int | None, Range(1, 10**6)] = None
    """Tokens by which the sliding window moves on. null: half the block, so that at least half a block is context."""
    alarm_below_bits_per_char: Annotated[float, Range(0, 1000)] = 0.5
    """A figure below this is refused as a fault of the measurement; synthetic text of low entropy needs a lower one."""

    def __post_init__(self) -> None:
        check_ranges(self)

    def stride_for(self, block_size: int) -> int:
        """The stride in tokens; raises ConfigError if it would skip tokens."""
        stride = max(1, block_size // 2) if self.stride is None else self.stride
        require(stride <= block_size, f"stride {stride} is greater than block_size {block_size}: it would skip tokens")
        return stride
