"""The learning rate and the times of evaluation, as pure functions of a run's progress."""

import math


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
