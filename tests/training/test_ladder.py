"""model/ladder.py: a rung is the run of its budget, bit for bit; killed or gone on with, the same files come out."""

import dataclasses
import signal
from pathlib import Path
from typing import Any

import pytest

from data.files import sha256_file
from data.layout import Layout
from distributed_helpers import launch
from ladder_helpers import House, assert_same, files_of, house_in, ladder_in, train_killed, without_times
from model import checkpoint
from model.ladder import kept_amounts, train_ladder
from model.settings import Budget
from model.train import train
from model.training.interrupt import TrainingInterrupted
from model.training.loop import Run
from model.training.trunk import Trunk
from model_helpers import json_lines

MODERN = {"optimizer": "muon", "order": "epochs", "ema_decay": 0.9}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return house_in(tmp_path_factory.mktemp("house"))


BUDGETS = [Budget("steps", 24), Budget("tokens", 24 * 32 - 5), Budget("characters", 1000), Budget("flops", 5 * 10**7)]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.unit)
@pytest.mark.parametrize("is_modern", [False, True], ids=["plain", "modern"])
def test_a_rung_is_the_direct_run_of_its_budget_bit_for_bit(
    house: House, tmp_path: Path, budget: Budget, is_modern: bool
) -> None:
    settings: dict[str, Any] = {**MODERN, "model": {"preset": "modern", "dropout": 0.2}} if is_modern else {}
    warmup = round(0.05 * budget.amount / 4) + 1
    ladder = ladder_in(house, tmp_path / "ladder", budget, warmup, **settings)
    results = train_ladder(ladder, progress=False)
    for rung, result in zip(ladder.rungs, results, strict=True):
        direct = dataclasses.replace(rung, folder=tmp_path / "direct" / rung.folder.name, part="")
        train(direct, progress=False)
        for name in ("last.pt", "best.pt"):
            left, right = (without_times(checkpoint.load(one.folder / name)) for one in (rung, direct))
            for state in (left, right):
                state.pop("metrics_lines", None)
            assert_same(left, right, name)
        assert result.best_step == checkpoint.load(direct.folder / "last.pt")["spent"]["steps"]
        lines, direct_lines = (json_lines(one.folder / "metrics.jsonl") for one in (rung, direct))
        if rung is ladder.top:
            assert lines == direct_lines
        else:  # the trunk takes the figures of the whole budget only
            known = {line["step"]: line for line in direct_lines}
            for line in lines:
                other = known[line["step"]]
                assert line.items() <= other.items()
            assert lines[-1] == direct_lines[-1]
    assert len(results) == 3 and results[-1].folder == tmp_path / "ladder"


def test_the_parts_lie_in_folders_by_amount_and_the_top_where_a_run_lies(house: House, tmp_path: Path) -> None:
    top = Layout(tmp_path).checkpoints("bpe", 3)
    ladder = ladder_in(house, top, Budget("steps", 24))
    train_ladder(ladder, progress=False)
    assert [rung.folder for rung in ladder.rungs] == [top / "rungs/6", top / "rungs/12", top]
    for part in (*ladder.rungs, ladder.trunk):
        assert Layout.contestant_of(part.folder) == "bpe"
        assert (part.folder / "last.pt").exists() and (part.folder / "config.json").exists()
        assert (part.folder / "best.pt").exists() == (part is not ladder.trunk)
    assert checkpoint.load(top / "trunk/last.pt")["spent"]["steps"] == 19  # the rate is still whole in step 19
    assert [checkpoint.load(rung.folder / "best.pt")["best"]["step"] for rung in ladder.rungs] == [6, 12, 24]
    assert kept_amounts(top, "steps") == {6, 12, 24} and kept_amounts(top, "tokens") == {6, 12}


def test_a_finished_ladder_is_not_touched(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ladder = ladder_in(house, tmp_path / "bpe", Budget("steps", 24))
    train_ladder(ladder, progress=False)
    before = {path: sha256_file(path) for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr(Run, "__init__", None)  # no model is built
    results = train_ladder(ladder, progress=False)
    assert [result.num_steps_now for result in results] == [0, 0, 0]
    assert before == {path: sha256_file(path) for path in tmp_path.rglob("*") if path.is_file()}


class Killed(BaseException):
    pass


def kill_at_write(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """End the process, as far as files can tell, before the checkpoint of this number is written."""
    original, count = checkpoint.save, [0]

    def counted(path: Path, state: dict[str, Any]) -> None:
        if count[0] == number:
            raise Killed
        count[0] += 1
        original(path, state)

    monkeypatch.setattr(checkpoint, "save", counted)


@pytest.mark.parametrize("number", range(0, 32, 4))
def test_a_ladder_killed_before_any_save_ends_in_the_same_files(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    whole, killed = (
        ladder_in(house, tmp_path / name, Budget("steps", 24), checkpoint_every_seconds=0.0) for name in ("a", "b")
    )
    train_ladder(whole, progress=False)
    with monkeypatch.context() as patch:
        kill_at_write(patch, number)
        with pytest.raises(Killed):
            train_ladder(killed, progress=False)
    train_ladder(killed, progress=False)
    assert_same(files_of(killed), files_of(whole))


def test_a_greater_budget_goes_on_from_the_trunk_and_equals_a_ladder_of_that_budget(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, steps = tmp_path / "bpe", []
    small = ladder_in(house, folder, Budget("steps", 24))
    train_ladder(small, progress=False)
    kept = {amount: sha256_file(folder / where / "last.pt") for amount, where in ((6, "rungs/6"), (24, "."))}
    original = Trunk._step
    monkeypatch.setattr(Trunk, "_step", lambda self, *a: steps.append(self.spent.steps) or original(self, *a))
    great = ladder_in(house, folder, Budget("steps", 96), also=(6, 12))
    assert [rung.train_config.budget.amount for rung in great.rungs] == [6, 12, 24, 48, 96]
    train_ladder(great, progress=False)
    assert steps == list(range(19, 73))  # the trunk ended at 19, and nothing is trained twice
    assert sha256_file(folder / "rungs/6/last.pt") == kept[6]
    assert sha256_file(folder / "rungs/24/last.pt") == kept[24]
    steps.clear()
    fresh = ladder_in(house, tmp_path / "fresh", Budget("steps", 96), also=(6, 12))
    train_ladder(fresh, progress=False)
    for one, other in zip(great.rungs, fresh.rungs, strict=True):
        for name in ("last.pt", "best.pt"):
            left, right = (without_times(checkpoint.load(rung.folder / name)) for rung in (one, other))
            for state in (left, right):
                state.pop("metrics_lines", None)
            assert_same(left, right, f"{one.folder}/{name}")
    # Back to the smaller budget: its run is the top again, and nothing is trained.
    train_ladder(small, progress=False)
    assert sha256_file(folder / "last.pt") == kept[24] and len(steps) == 73
    assert kept_amounts(folder, "steps") == {6, 12, 24, 48, 96}


def test_a_rung_shorter_than_a_step_and_one_that_the_trunk_has_passed_are_trained_from_their_beginning(
    house: House, tmp_path: Path
) -> None:
    tokens = Budget("tokens", 32 * 16)  # a step has 32 tokens
    ladder = ladder_in(house, tmp_path / "bpe", tokens, 0, 9)
    results = train_ladder(ladder, progress=False)
    assert [result.spent.steps for result in results] == [1, 1, 1, 1, 1, 2, 4, 8, 16]
    late = ladder_in(house, tmp_path / "bpe", tokens, 0, 9, also=(32 * 5,))
    found = {result.folder.name: result for result in train_ladder(late, progress=False)}
    assert found["160"].num_steps_now == 5
    assert sum(result.num_steps_now for result in found.values()) == 5


def test_force_drops_all_parts(house: House, tmp_path: Path) -> None:
    ladder = ladder_in(house, tmp_path / "bpe", Budget("steps", 24))
    train_ladder(ladder, progress=False)
    whole = files_of(ladder)
    (tmp_path / "bpe/rungs/6/report.json").write_text("{}", encoding="utf-8")
    results = train_ladder(ladder, restart=True, progress=False)
    assert all(result.num_steps_now > 0 for result in results)
    assert not (tmp_path / "bpe/rungs/6/report.json").exists()
    assert_same(files_of(ladder), whole)


def test_a_budget_in_seconds_has_rungs_that_end_after_theirs(house: House, tmp_path: Path) -> None:
    ladder = ladder_in(house, tmp_path / "bpe", Budget("seconds", 4), 0)
    results = train_ladder(ladder, progress=False)
    for result, amount in zip(results, (1, 2, 4), strict=True):
        assert amount <= result.spent.seconds < amount + 1.0
    assert results[0].spent.steps < results[1].spent.steps < results[2].spent.steps


def test_several_processes_train_one_ladder(house: House, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"budget": Budget("steps", 16), "model": {"dropout": 0.0}}
    outcomes = launch(train_killed, house[0], tmp_path / "many", settings, -1)
    assert [outcome[0] for outcome in outcomes] == ["done", "done"], outcomes
    one = ladder_in(house, tmp_path / "one", num_threads=2, **settings)
    train_ladder(one, progress=False)
    for rung in one.rungs:
        amount = rung.train_config.budget.amount
        folder = tmp_path / "many" / (f"rungs/{amount}" if rung is not one.top else ".")
        many, alone = (checkpoint.load(where / "best.pt") for where in (folder, rung.folder))
        assert many["spent"]["steps"] == alone["spent"]["steps"] == amount
        for name, weight in alone["model"].items():
            assert (weight - many["model"][name]).abs().max() < 1e-4


GOING_ON = {"budget": Budget("steps", 32), "also": (4, 2), "checkpoint_every_seconds": 1e9}


def begun(house: House, folder: Path, is_begun: bool) -> Path:
    """`folder`, with a finished ladder of 8 steps or still empty."""
    if is_begun:
        train_ladder(ladder_in(house, folder, Budget("steps", 8), 1), progress=False)
    return folder


def check_killed(house: House, folder: Path, number: int, whole: Any) -> bool:
    """Kill a process in its replacement `number` while it trains a ladder of 32 steps in `folder`; whether there was
    one to kill.
    """
    (outcome,) = launch(train_killed, house[0], folder, GOING_ON | {"warmup": 1}, number, count=1)
    assert outcome[0] in ("died", "done"), outcome
    ladder = ladder_in(house, folder, warmup=1, **GOING_ON)
    train_ladder(ladder, progress=False)
    assert_same(files_of(ladder), whole)
    assert kept_amounts(folder, "steps") == {2, 4, 8, 16, 32}
    return bool(outcome[0] == "died")


@pytest.fixture(scope="module")
def whole(house: House, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Any]:
    """The files of a ladder that nobody killed, from 8 steps on and from the beginning."""
    found = {}
    for is_begun in (True, False):
        ladder = ladder_in(house, begun(house, tmp_path_factory.mktemp("whole"), is_begun), warmup=1, **GOING_ON)
        train_ladder(ladder, progress=False)
        found[is_begun] = files_of(ladder)
    return found


@pytest.mark.parametrize("number", [3, 5, 15])  # among the moves, before the last of them, while training
def test_a_ladder_that_is_killed_while_it_goes_on_ends_in_the_same_files(
    house: House, tmp_path: Path, whole: dict[bool, Any], number: int
) -> None:
    assert check_killed(house, begun(house, tmp_path, is_begun=True), number, whole[True])


@pytest.mark.slow
@pytest.mark.parametrize("is_begun", [True, False])
def test_a_ladder_killed_before_any_file_is_replaced_ends_in_the_same_files(
    house: House, tmp_path: Path, whole: dict[bool, Any], is_begun: bool
) -> None:
    num_kills = 0
    while check_killed(house, begun(house, tmp_path / str(num_kills), is_begun), num_kills, whole[is_begun]):
        num_kills += 1
    assert num_kills >= 20


def test_stopped_at_the_last_step_of_a_lower_rung_it_says_that_more_is_left(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ladder = ladder_in(house, tmp_path, Budget("steps", 24))
    save = Run._save

    def stopped(self: Run) -> None:
        save(self)
        if self.is_finished() and self.folder == ladder.rungs[0].folder:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "_save", stopped)
        with pytest.raises(TrainingInterrupted):
            train_ladder(ladder, progress=False)
    said = capsys.readouterr().err
    assert "rung 1 of 3 (6 steps) is finished; run the same command again for what is left" in said
    assert "the run is finished" not in said
    assert [result.num_steps_now > 0 for result in train_ladder(ladder, progress=False)] == [False, True, True]
