"""The learning rate and the times of evaluation, as pure functions of what a run has spent."""

import math

from model.settings import TrainConfig


def learning_rate_factor(config: TrainConfig, spent: float) -> float:
    """Share of the peak learning rate after `spent` of the budget, in its unit: linear warm-up, then the schedule.

    `cosine` decays over all the rest; `linear` stays at the peak and comes down over the last `warmdown_fraction`;
    `constant` stays. The warm-up begins and the ways down end at `min_learning_rate_ratio`. Before its way down
    `linear` gives exactly what `constant` gives, for every budget with the same `warmup_amount`.
    """
    progress = min(max(spent / config.budget.amount, 0.0), 1.0)
    if config.warmup_amount is None:
        warmup_fraction = config.warmup_fraction
        warmed_up = progress / warmup_fraction if warmup_fraction else 1.0
    else:
        warmup_fraction = config.warmup_amount / config.budget.amount
        warmed_up = spent / config.warmup_amount if config.warmup_amount else 1.0
    if warmed_up < 1.0:
        height = warmed_up
    elif config.schedule == "constant":
        height = 1.0
    elif config.schedule == "linear":
        height = min(1.0, (1.0 - progress) / config.warmdown_fraction)
    else:
        decayed = (progress - warmup_fraction) / (1.0 - warmup_fraction)
        height = 0.5 * (1.0 + math.cos(math.pi * decayed))
    return config.min_learning_rate_ratio + (1.0 - config.min_learning_rate_ratio) * height


def is_evaluation_due(before: float, after: float, every: float) -> bool:
    """Whether a step that carried progress from `before` to `after` crossed a multiple of `every`, or ended the run."""
    return after >= 1.0 or math.floor(after / every) > math.floor(before / every)
