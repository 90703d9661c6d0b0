"""What was trained at each size and budget, read from the finished runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compare.experiment import Experiment
from compare.runs import Entry, Run
from compare.sizes.experiments import quarter_of


@dataclass(frozen=True)
class Level:
    """All contestants at one size and budget."""

    size: float
    is_whole: bool
    """Whether the budget is T, or else T/4."""
    runs: Mapping[str, tuple[Run, ...]]
    """By contestant, in the order of the seeds."""


def levels_of(experiment: Experiment, entries: Sequence[Entry]) -> list[Level]:
    """The levels that `entries` of one experiment hold: that of its whole budget, and with a ladder that of T/4."""
    if experiment.is_quarter:
        return [Level(experiment.size, False, {entry.name: entry.runs for entry in entries})]
    whole = Level(experiment.size, True, {entry.name: entry.runs for entry in entries})
    if experiment.ladder is None:
        return [whole]
    quarters = {}
    for entry in entries:
        amount = quarter_of(experiment.contestant(entry.name).train.budget.amount)
        quarters[entry.name] = next(rung.runs for rung in entry.rungs if rung.amount == amount)
    return [Level(experiment.size, False, quarters), whole]


def runs_of_levels(levels: Iterable[Level]) -> list[Run]:
    """All their runs."""
    return [run for level in levels for runs in level.runs.values() for run in runs]
