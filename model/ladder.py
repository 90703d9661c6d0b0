"""Finished models at several budgets from one training: the specs of its parts, and the training of all of them.

One trunk is trained at constant rate. Each rung (a budget) leaves it where its own learning rate begins to come down,
and ends as a run of that budget would have ended, bit for bit. The rung of the whole budget lies where a run without a
ladder lies, the lower ones in `rungs/AMOUNT/` below, the trunk in `trunk/`. For every rung the final weights are
scored: they come down to a rate of zero, and the same rule for all budgets keeps them comparable.
"""

import contextlib
import dataclasses
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.errors import CheckpointError, DataError
from data.files import read_json
from data.layout import RUNGS, TRUNK
from data.lock import alone
from model import checkpoint
from model.machine.threads import threads_of
from model.run_spec import RunSpec
from model.settings import Budget, LadderConfig, TrainConfig
from model.train import saved_state, threads, train
from model.training import same_run
from model.training.processes import Processes
from model.training.result import TrainResult
from model.training.trunk import Trunk

_OF_A_RUN = (  # what lies in a run's folder; last.pt says that the rest is there, so it comes last
    checkpoint.CONFIG,
    checkpoint.TOKENIZER_COPY,
    checkpoint.METRICS,
    checkpoint.BEST,
    *checkpoint.RESULTS,
    checkpoint.LAST,
)


@dataclass(frozen=True)
class Ladder:
    """The parts of one contestant's training with one seed."""

    trunk: RunSpec
    """What all rungs share."""
    rungs: tuple[RunSpec, ...]
    """Ascending by budget; the last one is the run of the whole budget."""

    @property
    def top(self) -> RunSpec:
        """The run of the whole budget."""
        return self.rungs[-1]


def rung_settings(config: TrainConfig, ladder: LadderConfig, amount: int, warmup_amount: int) -> TrainConfig:
    """The settings of the rung of `amount`. A run with them, without a ladder, gives the same weights."""
    return dataclasses.replace(
        config,
        budget=Budget(config.budget.unit, amount),
        schedule="linear",
        warmdown_fraction=ladder.way_down,
        min_learning_rate_ratio=0.0,
        warmup_amount=warmup_amount,
        selection="last",
    )


def ladder_of(top: RunSpec, amounts: Sequence[int]) -> Ladder:
    """The ladder below `top`, the run of the whole budget with the settings of a rung.

    `amounts` are the budgets of all rungs, ascending; the last one is that of `top`.
    """
    unit, count = top.train_config.budget.unit, len(amounts)
    size = f"{top.part}, " if top.part else ""
    rungs = [
        dataclasses.replace(
            top,
            train_config=dataclasses.replace(top.train_config, budget=Budget(unit, amount)),
            folder=top.folder if number == count else top.folder / RUNGS / str(amount),
            part=f"{size}rung {number} of {count} ({amount:,} {unit})",
        )
        for number, amount in enumerate(amounts, start=1)
    ]
    constant = dataclasses.replace(top.train_config, schedule="constant")
    trunk = dataclasses.replace(top, train_config=constant, folder=top.folder / TRUNK, part=f"{size}trunk")
    return Ladder(trunk, tuple(rungs))


def train_ladder(
    ladder: Ladder, *, restart: bool = False, progress: bool = True, processes: Processes | None = None
) -> list[TrainResult]:
    """Train what is missing of `ladder`; the results in the order of its rungs.

    Each part goes on from its last save, and finished ones stay as they are. A run of another budget that lies in the
    folder of the whole one is kept as a rung. `restart` drops all parts first. Raises what `model.train.train` raises.
    """
    processes = processes or Processes()

    def prepare() -> None:
        if restart:
            _clear(ladder)
        settle(ladder)
        check_ladder(ladder)

    processes.only_main(prepare)
    missing = processes.main_first(lambda: _not_begun(ladder))
    if missing:
        _train_trunk(ladder.trunk, missing, progress, processes)
    return [train(rung, progress=progress, processes=processes) for rung in ladder.rungs]


def _not_begun(ladder: Ladder) -> list[RunSpec]:
    return [rung for rung in ladder.rungs if not (rung.folder / checkpoint.LAST).exists()]


def _train_trunk(trunk: RunSpec, missing: Sequence[RunSpec], progress: bool, processes: Processes) -> None:
    with contextlib.ExitStack() as turn:
        processes.only_main(lambda: turn.enter_context(alone(trunk.folder, patience_seconds=0.0)))
        state = processes.main_first(lambda: saved_trunk(trunk))
        turn.enter_context(threads(threads_of(trunk, state, processes)))
        run = processes.together(lambda: Trunk(trunk, missing, processes))
        if state is None:
            run.start()
        else:
            run.resume(state)
        if not run.is_over():
            run.until_over(progress)


def check_ladder(ladder: Ladder) -> None:
    """Raise CheckpointError if a part of `ladder` that is there is not what it should be, before another is trained."""
    saved_trunk(ladder.trunk)
    for rung in ladder.rungs:
        last = saved_state(rung)
        if last is not None and last["finished"]:
            _, best = checkpoint.load_model(rung.folder, "best", rung.tokenizer, rung.tokenizer_path)
            same_run.verify_same_run(best, last, rung.folder)


def saved_trunk(trunk: RunSpec) -> dict[str, Any] | None:
    """last.pt of `trunk`, whatever its budget was; None if there is none. Raises CheckpointError as `saved_state`."""
    stored = _stored_budget(trunk.folder, trunk.train_config.budget.unit)
    return saved_state(trunk if stored is None else _with_budget(trunk, stored))


def settle(ladder: Ladder) -> None:
    """Let the run of the whole budget, and no other, lie in its folder: a run of this ladder moves to its rung's.

    A folder that is of no rung of this ladder stays as it is, to be refused where it is read. Raises InUseError while
    another process is at work there.
    """
    top = ladder.top
    budget = top.train_config.budget
    stored = _stored_budget(top.folder, budget.unit)
    of_top = top.folder / RUNGS / str(budget.amount)
    if stored is not None and stored != budget and _is_of(_with_budget(top, stored)):
        with alone(top.folder, patience_seconds=0.0):
            _move(top.folder, top.folder / RUNGS / str(stored.amount))
    if not (top.folder / checkpoint.LAST).exists() and (of_top / checkpoint.LAST).exists():
        with alone(top.folder, patience_seconds=0.0):
            _move(of_top, top.folder)


def kept_amounts(folder: Path, unit: str) -> set[int]:
    """The budgets in `unit` of all rungs that lie in the run folder `folder`, the one in its own place included."""
    rungs = (last.parent.name for last in folder.glob(f"{RUNGS}/*/{checkpoint.LAST}"))
    found = {int(name) for name in rungs if re.fullmatch("[1-9][0-9]*", name)}
    if not (folder / checkpoint.LAST).exists():
        return found
    config = _stored_config(folder) or checkpoint.load(folder / checkpoint.LAST)["train_config"]
    if config.get("selection") == "last" and config["budget"]["unit"] == unit:
        found.add(config["budget"]["amount"])
    return found


def kept_warmup(folder: Path, config: TrainConfig, *, of_any_budget: bool) -> int | None:
    """The warm-up of the trunk in the run folder `folder`, if there is one whose warm-up was set as in `config`.

    `of_any_budget` takes it also from a trunk that was trained for another amount than that of `config`.
    """
    stored = _stored_config(folder / TRUNK)
    if stored.get("warmup_fraction") != config.warmup_fraction or stored["budget"]["unit"] != config.budget.unit:
        return None
    if of_any_budget or stored["budget"]["amount"] == config.budget.amount:
        amount: int | None = stored["warmup_amount"]
        return amount
    return None


def _stored_config(folder: Path) -> dict[str, Any]:
    """The settings in config.json of a run that has begun; empty where there is none, or one that cannot be read."""
    if not (folder / checkpoint.CONFIG).exists():
        return {}
    try:
        stored = read_json(folder / checkpoint.CONFIG)
    except DataError:
        return {}
    config = stored.get("train_config") if isinstance(stored, dict) else None
    return config if isinstance(config, dict) else {}


def _stored_budget(folder: Path, unit: str) -> Budget | None:
    """The budget of the run that has begun in `folder`; None where there is none, or one in another unit."""
    if not (folder / checkpoint.LAST).exists():
        return None
    stored = checkpoint.load(folder / checkpoint.LAST)["train_config"]["budget"]
    return Budget(**stored) if stored["unit"] == unit else None


def _with_budget(spec: RunSpec, budget: Budget) -> RunSpec:
    return dataclasses.replace(spec, train_config=dataclasses.replace(spec.train_config, budget=budget))


def _is_of(spec: RunSpec) -> bool:
    """Whether last.pt in the folder of `spec` is of that run; the other files may have been moved already."""
    path = spec.folder / checkpoint.LAST
    try:
        same_run.verify_run(checkpoint.load(path), path, checkpoint.identity_of(spec))
    except CheckpointError:
        return False
    return True


def _move(source: Path, target: Path) -> None:
    """Move a run. Killed in between, the next call moves what is left: last.pt goes last and still names the run."""
    target.mkdir(parents=True, exist_ok=True)
    for name in _OF_A_RUN:
        if (source / name).exists():
            (source / name).replace(target / name)


def _clear(ladder: Ladder) -> None:
    """Drop all parts of a ladder."""
    top = ladder.top.folder
    with alone(top, patience_seconds=0.0):
        for name in reversed(_OF_A_RUN):
            (top / name).unlink(missing_ok=True)
        for part in [*top.glob(f"{RUNGS}/*/"), ladder.trunk.folder]:
            if part.exists():
                with alone(part, patience_seconds=0.0):
                    shutil.rmtree(part)
