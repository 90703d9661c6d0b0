"""What a run will be before it is one: steps, epochs, tokens per parameter, FLOPs, memory, disk, and what to expect.

Everything but the seconds is arithmetic from the encoded text and the settings; the seconds are measured over a few
steps of training in a folder that is thrown away.
"""

import dataclasses
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from compare.experiment import Contestant
from compare.figures import NO_FIGURE, figure
from compare.table import TERMINAL_COLUMNS, as_text, legend, names_in_tables
from data.show import wrapped
from model.checkpoint import METRICS
from model.gpt import MiniGPT
from model.run_spec import RunSpec
from model.settings import Budget, MiniGPTConfig, TrainConfig
from model.train import train
from model.training.device import explain_out_of_memory
from model.training.metrics import read_metrics
from tokenizer.base import Tokenizer
from tokenizer.encode_splits import EncodedSplit

MEASURED_STEPS = 5
_WARM_UP_STEPS = 2
"""Steps before the measured ones: the first one compiles, loads and allocates."""
FEWEST_TOKENS_PER_PARAMETER = 2.0
FEWEST_STEPS = 60
MOST_EPOCHS = 4.0
FEWEST_TEST_DOCUMENTS = 20
_OF_A_RUNG: tuple[tuple[str, str, Callable[["Plan"], float | None]], ...] = (
    ("amount", "{:,}", lambda plan: plan.budget.amount),
    ("steps", "{:,}", lambda plan: plan.steps),
    ("epochs over train", "{:.2f}", lambda plan: plan.epochs),
    ("tokens per parameter", "{:.2f}", lambda plan: plan.tokens_per_parameter),
)
_BYTES_PER_FLOAT = 4
_BYTES_PER_ID = 8


@dataclass(frozen=True)
class Plan:
    """What one contestant's training will be. Steps and all that follows from them are None where only a measured
    rate can tell: under a budget in seconds, before it is measured.
    """

    contestant: str
    train_tokens: int
    chars_per_token: float
    tokens_per_step: int
    budget: Budget
    embedding_parameters: int
    other_parameters: int
    flops_per_token: int
    seeds: tuple[int, ...]
    memory_bytes: int
    """Weights, gradients, the optimizer's moments, the moving average if there is one, and one step's activations."""
    disk_bytes: int
    """Both checkpoints of every seed, and the encoded splits; with a ladder those of every rung."""
    test_documents: int
    copies_on_disk: int = 4
    """Sets of weights that the two checkpoints of a run hold."""
    seconds_per_step: float | None = None
    """Measured; None where it was not."""
    rungs: tuple[int, ...] = ()
    """With a ladder, its budgets, ascending; the last one is `budget`."""
    way_down: float = 0.0
    """Share of each of them over which the ladder comes down."""

    def with_ladder(self, rungs: Sequence[int], way_down: float) -> "Plan":
        """The plan of the same run with a ladder: beside the two checkpoints of each rung there is the trunk's."""
        weights = _BYTES_PER_FLOAT * self.parameters * len(self.seeds)
        more = (len(rungs) - 1) * self.copies_on_disk + self.copies_on_disk - 1
        return dataclasses.replace(
            self, rungs=tuple(rungs), way_down=way_down, disk_bytes=self.disk_bytes + weights * more
        )

    def at(self, amount: int) -> "Plan":
        """The plan of the rung of `amount` as a run of its own."""
        return dataclasses.replace(self, budget=Budget(self.budget.unit, amount), rungs=())

    @property
    def trained_share(self) -> float:
        """What all rungs together cost, as a share of the run of the whole budget: one trunk and every way down."""
        if not self.rungs:
            return 1.0
        return 1.0 - self.way_down + self.way_down * sum(self.rungs) / self.budget.amount

    @property
    def parameters(self) -> int:
        """All weights."""
        return self.embedding_parameters + self.other_parameters

    @property
    def steps(self) -> int | None:
        """Optimizer steps of one run; a budget in characters is divided by the mean length of a token in train."""
        per_step: float | None = {
            "characters": self.tokens_per_step * self.chars_per_token,
            "tokens": self.tokens_per_step,
            "steps": 1,
            "flops": self.tokens_per_step * self.flops_per_token,
            "seconds": self.seconds_per_step,
        }[self.budget.unit]
        if per_step is None:
            return None
        if isinstance(per_step, int):
            return -(-self.budget.amount // per_step)
        return max(1, math.ceil(self.budget.amount / per_step))

    @property
    def tokens_seen(self) -> int | None:
        """Targets of one run."""
        return None if self.steps is None else self.steps * self.tokens_per_step

    @property
    def epochs(self) -> float | None:
        """How often one run sees train."""
        return None if self.tokens_seen is None else self.tokens_seen / self.train_tokens

    @property
    def tokens_per_parameter(self) -> float | None:
        """Targets of one run over all weights."""
        return None if self.tokens_seen is None else self.tokens_seen / self.parameters

    @property
    def flops(self) -> int | None:
        """Training FLOPs of one run, by model.gpt.FLOPS_FORMULA."""
        return None if self.tokens_seen is None else self.tokens_seen * self.flops_per_token

    @property
    def seconds(self) -> float | None:
        """Seconds of training of all seeds and rungs together; None where nothing was measured."""
        if self.seconds_per_step is None or self.steps is None:
            return None
        return self.steps * self.trained_share * self.seconds_per_step * len(self.seeds)


def plan_of(
    contestant: Contestant,
    seeds: Sequence[int],
    encoded: dict[str, EncodedSplit],
    tokenizer: Tokenizer,
    *,
    seconds_per_step: float | None = None,
    with_ids: bool = True,
) -> Plan:
    """The plan of one contestant from its encoded splits, which count as disk `with_ids`; nothing is trained."""
    model_config = contestant.model_for(tokenizer, encoded["train"])
    config = contestant.train_for(model_config, encoded["train"])
    with torch.device("meta"):  # shapes without memory
        model = MiniGPT(model_config)
    parameters, embedding = model.num_parameters(), model.num_embedding_parameters()
    has_average = config.ema_decay > 0.0
    copies_in_memory = 4 + has_average  # weights, gradients, two moments
    copies_on_disk = 4 + has_average  # last.pt: weights and two moments; best.pt: weights
    num_ids = sum(len(split.ids) for split in encoded.values()) if with_ids else 0
    return Plan(
        contestant=contestant.name,
        train_tokens=len(encoded["train"].ids),
        chars_per_token=encoded["train"].num_chars / len(encoded["train"].ids),
        tokens_per_step=config.batch_size * model_config.block_size,
        budget=config.budget,
        embedding_parameters=embedding,
        other_parameters=parameters - embedding,
        flops_per_token=model.flops_per_token(),
        seeds=tuple(seeds),
        memory_bytes=_BYTES_PER_FLOAT * (copies_in_memory * parameters + _activations(model_config, config)),
        disk_bytes=_BYTES_PER_FLOAT * copies_on_disk * parameters * len(seeds) + _BYTES_PER_ID * num_ids,
        test_documents=len(encoded["test"].document_offsets) - 1,
        seconds_per_step=seconds_per_step,
        copies_on_disk=copies_on_disk,
    )


def _activations(model: MiniGPTConfig, config: TrainConfig) -> int:
    """Numbers that a step keeps for its way back, about: per token and layer two norms, queries, keys and values, what
    attention and MLP give (8 C), the MLP's hidden layer before and after its activation (2 E C); the logits once.
    """
    per_layer = (8 + 2 * model.expansion_factor) * model.embedding_dim
    return config.batch_size * model.block_size * (model.num_layers * per_layer + model.vocab_size)


def measured_seconds_per_step(spec: RunSpec) -> float:
    """Mean seconds of MEASURED_STEPS steps of training after a few that are left out; nothing of them is kept."""
    config = dataclasses.replace(
        spec.train_config,
        budget=Budget("steps", _WARM_UP_STEPS + MEASURED_STEPS),
        val_characters=1,
        val_every_fraction=1.0,
        log_every_steps=1,
        checkpoint_every_seconds=1e9,
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / spec.contestant
        short = dataclasses.replace(spec, train_config=config, folder=folder)
        with explain_out_of_memory(short):
            result = train(short, progress=False)
        records = read_metrics(folder / METRICS, mend="make plan")
    measured = result.spent.seconds - float(records[_WARM_UP_STEPS - 1]["seconds"])
    return max(measured, 1e-6) / MEASURED_STEPS  # the record is rounded to milliseconds


def warnings_of(plans: Sequence[Plan]) -> list[str]:
    """Why the comparison will say little, each in one sentence; none where it should say something."""
    found = []
    for plan in plans:
        if plan.steps is None or plan.epochs is None or plan.tokens_per_parameter is None:
            continue
        if plan.tokens_per_parameter < FEWEST_TOKENS_PER_PARAMETER:
            found.append(
                f"{plan.contestant} sees {plan.tokens_per_parameter:.2g} tokens per parameter, fewer than "
                f"{FEWEST_TOKENS_PER_PARAMETER:g}: the comparison is of step counts."
            )
        if plan.steps < FEWEST_STEPS:
            found.append(
                f"{plan.contestant} takes {plan.steps} steps, fewer than {FEWEST_STEPS}: the model has hardly begun "
                "to learn."
            )
        short = [amount for amount in plan.rungs[:-1] if (plan.at(amount).steps or 0) < FEWEST_STEPS]
        if short and plan.steps >= FEWEST_STEPS:
            found.append(
                f"{plan.contestant} takes fewer than {FEWEST_STEPS} steps in {len(short)} of the ladder's "
                f"{len(plan.rungs)} budgets, up to {short[-1]:,} {plan.budget.unit}: those points say little."
            )
        if plan.epochs > MOST_EPOCHS:
            found.append(
                f"{plan.contestant} sees train {figure(plan.epochs, '{:,.1f}')} times, more than {MOST_EPOCHS:g}: "
                "text seen again teaches less and less."
            )
    documents = min(plan.test_documents for plan in plans)
    if documents < FEWEST_TEST_DOCUMENTS:
        found.append(
            f"Test has {documents} document{'s' * (documents != 1)}, fewer than {FEWEST_TEST_DOCUMENTS}: the interval "
            "over documents will be wide or missing."
        )
    if any(len(plan.seeds) == 1 for plan in plans):
        found.append("There is one seed: how much another training would differ stays unknown; seeds: [1, 2, 3] tells.")
    return found


def plans_as_text(
    plans: Sequence[Plan], more_rows: Sequence[tuple[str, list[str]]] = (), more_warnings: Sequence[str] = ()
) -> str:
    """The plans for a terminal, one column for each contestant, then what is estimated and every warning.

    `more_rows` (label, cells) and `more_warnings` are those of the other sizes.
    """
    rows: list[tuple[str, list[str]]] = [
        ("tokens of train", [f"{plan.train_tokens:,}" for plan in plans]),
        ("characters per token", [f"{plan.chars_per_token:.3f}" for plan in plans]),
        ("tokens per step", [f"{plan.tokens_per_step:,}" for plan in plans]),
        ("steps", [figure(plan.steps, "{:,}") for plan in plans]),
        ("epochs over train", [figure(plan.epochs, "{:.2f}") for plan in plans]),
        ("parameters: embedding", [f"{plan.embedding_parameters:,}" for plan in plans]),
        ("parameters: rest", [f"{plan.other_parameters:,}" for plan in plans]),
        ("tokens per parameter", [figure(plan.tokens_per_parameter, "{:.2f}") for plan in plans]),
        ("training FLOPs", [_scientific(plan.flops) for plan in plans]),
        ("seeds", [f"{len(plan.seeds)}" for plan in plans]),
        ("seconds, all seeds (estimate)", [figure(plan.seconds, "{:,.1f}") for plan in plans]),
        ("memory of a step, MB (estimate)", [figure(plan.memory_bytes / 1e6, "{:,.1f}") for plan in plans]),
        ("disk, MB (estimate)", [figure(plan.disk_bytes / 1e6, "{:,.1f}") for plan in plans]),
    ]
    names = names_in_tables([plan.contestant for plan in plans])
    rows += [*_rows_of_rungs(plans), *more_rows]
    table = as_text([["", *names.values()], *([label, *cells] for label, cells in rows)])
    notes = wrapped(
        "Figures from steps to FLOPs are of one run of the whole budget. Steps under a budget in characters follow "
        f"from the mean length of a token. Seconds are from {MEASURED_STEPS} steps of each contestant on this machine, "
        "scoring left out.",
        TERMINAL_COLUMNS,
    )
    warnings = [wrapped(f"warning: {line}", TERMINAL_COLUMNS, 2) for line in [*warnings_of(plans), *more_warnings]]
    return "\n".join([table, *legend(names), "", notes, "", *warnings]).rstrip() + "\n"


def _rows_of_rungs(plans: Sequence[Plan]) -> list[tuple[str, list[str]]]:
    """What each lower budget of the ladder is for each contestant, the greatest first; nothing without a ladder."""
    rows = []
    for number in range(2, 1 + max(len(plan.rungs) for plan in plans)):
        amounts = [plan.rungs[-number] if number <= len(plan.rungs) else None for plan in plans]
        parts = [None if amount is None else plan.at(amount) for plan, amount in zip(plans, amounts, strict=True)]
        for label, form, value in _OF_A_RUNG:
            cells = [NO_FIGURE if part is None else figure(value(part), form) for part in parts]
            rows.append((f"ladder, budget {number}: {label}", cells))
    return rows


def _scientific(value: int | None) -> str:
    return NO_FIGURE if value is None else figure(float(value), "{:.3e}")
