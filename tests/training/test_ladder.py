"""model/ladder.py: a rung is the run of its budget, bit for bit; killed or gone on with, the same files come out."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from data.files import sha256_file
from data.layout import Layout
from model import checkpoint
from model.ladder import Ladder, kept_amounts, ladder_of, rung_settings, train_ladder
from model.run_spec import RunSpec
from model.settings import Budget, LadderConfig, TrainConfig
from model.train import train
from model.training.loop import Run
from model.training.trunk import Trunk
from model_helpers import ALPHABET, ENGLISH, CharTable, encoded_splits, json_lines, tiny_model, tiny_train

TOKENS = CharTable(ALPHABET, ["the ", "er"])
MODERN = {"optimizer": "muon", "order": "epochs", "ema_decay": 0.9}
House = tuple[Path, Any]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    root = tmp_path_factory.mktemp("house")
    return root, encoded_splits(root, TOKENS, ENGLISH, ENGLISH[:3], ENGLISH[:2])


def spec_of(house: House, folder: Path, config: TrainConfig, **model: Any) -> RunSpec:
    root, splits = house
    return RunSpec(
        contestant="bpe",
        tokenizer=TOKENS,
        tokenizer_path=root / "tokenizer.json",
        splits=splits,
        model_config=tiny_model(TOKENS.vocab_size, **model),
        train_config=config,
        folder=folder,
    )


def ladder_in(
    house: House,
    folder: Path,
    budget: Budget,
    warmup: int = 2,
    rungs: int = 3,
    also: tuple[int, ...] = (),
    model: dict[str, Any] | None = None,
    **changes: Any,
) -> Ladder:
    config = tiny_train(**({"val_every_fraction": 0.2, "log_every_steps": 2} | changes))
    ladder = LadderConfig(rungs)
    config = rung_settings(dataclasses.replace(config, budget=budget), ladder, budget.amount, warmup)
    amounts = sorted({*ladder.amounts(budget), *also})
    return ladder_of(spec_of(house, folder, config, **(model or {})), amounts)


def files_of(ladder: Ladder) -> dict[str, Any]:
    """What the rungs of a ladder are, times left out."""
    found: dict[str, Any] = {}
    for rung in ladder.rungs:
        amount = rung.train_config.budget.amount
        for name in ("last.pt", "best.pt"):
            found[f"{amount}/{name}"] = without_times(checkpoint.load(rung.folder / name))
        found[f"{amount}/metrics.jsonl"] = json_lines(rung.folder / "metrics.jsonl")
        found[f"{amount}/config.json"] = json.loads((rung.folder / "config.json").read_text(encoding="utf-8"))
    return found


def without_times(state: dict[str, Any]) -> dict[str, Any]:
    spent = {key: value for key, value in state["spent"].items() if "seconds" not in key}
    return {key: value for key, value in {**state, "spent": spent}.items() if key != "metrics_sha256"}


def assert_same(left: Any, right: Any, where: str = "") -> None:
    assert type(left) is type(right), where
    if isinstance(left, torch.Tensor):
        assert torch.equal(left, right), where
    elif isinstance(left, dict):
        assert left.keys() == right.keys(), where
        for key in left:
            assert_same(left[key], right[key], f"{where}/{key}")
    elif isinstance(left, list | tuple):
        assert len(left) == len(right), where
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            assert_same(one, other, f"{where}[{index}]")
    else:
        assert left == right, where


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
