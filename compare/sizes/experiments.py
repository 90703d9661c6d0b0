"""What `sizes` adds to an experiment: the same contestants with models of other sizes, at T/4 and T.

With a ladder, the runs of a size come from one training: a trunk and two rungs. Without one they are two runs, each
with the schedule of the experiment, and the models of size 1 get a run of T/4 as well.
"""

from dataclasses import dataclass, replace

from compare.experiment import Contestant, Experiment
from model.settings import Budget, LadderConfig


@dataclass(frozen=True)
class QuarterLadder(LadderConfig):
    """A ladder of the whole budget and a quarter of it."""

    def amounts(self, budget: Budget) -> tuple[int, ...]:
        """T/4, rounded down, and T."""
        return quarter_of(budget.amount), budget.amount


def quarter_of(amount: int) -> int:
    """The same quarter as a rung of a ladder has."""
    return amount >> 2


def experiments_of_sizes(experiment: Experiment) -> list[Experiment]:
    """The experiments that `experiment.sizes` asks for besides `experiment` itself, by size."""
    if not experiment.sizes:
        return []
    whole = [_of_size(experiment, size) for size in sorted(experiment.sizes)]
    if experiment.ladder is not None:
        ladder = QuarterLadder(rungs=2, way_down=experiment.ladder.way_down)
        return [replace(one, ladder=ladder) for one in whole]
    plain = replace(experiment, sizes=())
    return [_quarter(plain), *(one for found in whole for one in (_quarter(found), found))]


def _of_size(experiment: Experiment, size: float) -> Experiment:
    contestants = {name: _resized(one, size) for name, one in experiment.contestants.items()}
    return replace(experiment, contestants=contestants, sizes=(), size=size)


def _resized(contestant: Contestant, size: float) -> Contestant:
    shape = contestant.shape_at(size)
    changed = {"num_layers": shape.num_layers, "embedding_dim": shape.embedding_dim}
    return replace(contestant, model={**contestant.model, **changed})


def _quarter(experiment: Experiment) -> Experiment:
    contestants = {}
    for name, one in experiment.contestants.items():
        budget = Budget(one.train.budget.unit, quarter_of(one.train.budget.amount))
        contestants[name] = replace(one, train=replace(one.train, budget=budget))
    return replace(experiment, contestants=contestants, is_quarter=True)


def label_of(experiment: Experiment) -> str:
    """What a run of one of these experiments is called in messages."""
    words = [] if experiment.size == 1.0 else [f"size {experiment.size:g}"]
    return ", ".join([*words, *(["a quarter of the budget"] if experiment.is_quarter else [])])
