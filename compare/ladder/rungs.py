"""The rungs of an experiment's ladder: their budgets and their warm-up, which go on from what is there already."""

import math
from pathlib import Path

from compare.experiment import Experiment
from model.ladder import Ladder, kept_amounts, kept_warmup, ladder_of
from model.run_spec import RunSpec


def warmup_amount(experiment: Experiment, name: str, *, restart: bool) -> int:
    """The warm-up of all rungs of contestant `name`: as set, as in the trunks that are there, or a share of the
    smallest budget. So a ladder that goes on to a greater budget keeps the warm-up that its trunks had.
    """
    assert experiment.ladder is not None
    config = experiment.contestant(name).train
    if config.warmup_amount is not None:
        return config.warmup_amount
    for folder in _folders_with_the_budget_of(experiment, name, with_own=not restart):
        found = kept_warmup(folder, config, of_any_budget=not restart)
        if found is not None:
            return found
    return math.floor(config.warmup_fraction * experiment.ladder.amounts(config.budget)[0])


def ladder_below(experiment: Experiment, top: RunSpec) -> Ladder:
    """The ladder below the run `top`: the budgets that the experiment names, and all smaller ones that are there, of
    any contestant with the same budget: what an earlier, smaller ladder has trained stays a part of this one.
    """
    assert experiment.ladder is not None
    budget = top.train_config.budget
    amounts = set(experiment.ladder.amounts(budget))
    for folder in _folders_with_the_budget_of(experiment, top.contestant):
        amounts |= {amount for amount in kept_amounts(folder, budget.unit) if amount < budget.amount}
    return ladder_of(top, sorted(amounts))


def _folders_with_the_budget_of(experiment: Experiment, name: str, *, with_own: bool = True) -> list[Path]:
    """The run folders of contestant `name`, if `with_own`, and then of all others that have its budget."""
    budget = experiment.contestant(name).train.budget
    others = [one for one in experiment.contestants if experiment.contestant(one).train.budget == budget]
    names = [name] * with_own + [one for one in others if one != name]
    return [experiment.run_folder(one, seed) for one in names for seed in experiment.seeds_of(one)]
