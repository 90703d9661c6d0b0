"""What the other sizes of an experiment will take."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compare.figures import figure
from compare.plan import Plan, warnings_of

_ROWS: tuple[tuple[str, str, Callable[[Plan], float | None]], ...] = (
    ("parameters besides the embedding", "{:,}", lambda plan: plan.other_parameters),
    ("steps", "{:,}", lambda plan: plan.steps),
    ("epochs over train", "{:.2f}", lambda plan: plan.epochs),
    ("tokens per parameter", "{:.2f}", lambda plan: plan.tokens_per_parameter),
    ("training FLOPs, all seeds", "{:.3e}", lambda plan: _all_flops(plan)),
    ("seconds, all seeds (estimate)", "{:,.1f}", lambda plan: plan.seconds),
    ("memory of a step, MB (estimate)", "{:,.1f}", lambda plan: plan.memory_bytes / 1e6),
    ("disk, MB (estimate)", "{:,.1f}", lambda plan: plan.disk_bytes / 1e6),
)


@dataclass(frozen=True)
class SizePlans:
    """The plans of all contestants at one size; without a ladder at one of its two budgets."""

    label: str
    """Such as `size 0.4` or `size 0.4, a quarter of the budget`."""
    plans: Sequence[Plan]
    is_quarter: bool = False
    """Whether they are of a quarter of the budget only."""


def _all_flops(plan: Plan) -> float | None:
    """Of all seeds, and with a ladder of trunk and rungs."""
    return None if plan.flops is None else plan.flops * plan.trained_share * len(plan.seeds)


def rows_of_sizes(found: Sequence[SizePlans]) -> list[tuple[str, list[str]]]:
    """The lines of the plan's table for the other sizes, each with a cell for each contestant."""
    return [
        (f"{one.label}: {label}", [figure(value(plan), form) for plan in one.plans])
        for one in found
        for label, form, value in _ROWS
    ]


def more_warnings(plans: Sequence[Plan], found: Sequence[SizePlans]) -> list[str]:
    """The warnings that hold at another size under the whole budget, and not at the experiment's own size, which has
    `plans`. That a quarter of the budget says less is its nature.
    """
    known = {_without_figures(line) for line in warnings_of(plans)}
    return [
        f"{one.label}: {line}"
        for one in found
        if not one.is_quarter
        for line in warnings_of(one.plans)
        if _without_figures(line) not in known
    ]


def _without_figures(line: str) -> str:
    return re.sub(r"[0-9][0-9.,e+-]*", "", line)
