"""`train.batch: {unit: characters}`: steps of about equal text for every contestant, resolved to batch sizes."""

from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare.experiment import Experiment, load_experiment
from compare.steps import Steps
from data.errors import ConfigError
from data.files import read_json


def experiment(folder: Path, settings: list[str] | None = None, **train: Any) -> Experiment:
    values: Any = experiment_values(folder / "run", write_corpus(folder / "texts"))
    values["train"] = {**values["train"], **train}
    if "batch" in train:
        del values["train"]["batch_size"]
    tokenizer = {"kind": "char_bpe", "vocab_size": 60}
    values["contestants"]["same"] = {"tokenizer": tokenizer, "context": "characters"}
    return load_experiment(write_experiment(folder / "small.yaml", values), settings or [])


def test_every_contestant_gets_the_batch_size_that_comes_nearest(tmp_path: Path) -> None:
    steps = Steps(experiment(tmp_path, batch={"unit": "characters", "amount": 300}), echo=lambda _line: None)
    comparison = steps.compare()
    found = {}
    for name in ("char", "bpe", "same"):
        train, settings = steps.encode(name)["train"], read_json(tmp_path / "run/checkpoints" / name / "report.json")
        block, length = settings["model"]["block_size"], train.num_chars / len(train.ids)
        found[name] = settings["train"]["batch_size"]
        assert settings["train"]["batch"] is None
        assert found[name] == max(1, round(300 / (block * length)))
        assert abs(found[name] * block * length - 300) <= block * length / 2
    assert found["char"] == 19 and found["bpe"] < found["char"]  # 300 / 16 characters is 18.75
    assert f"train.batch_size: bpe {found['bpe']}, char 19, same {found['same']}" in comparison.not_held_equal
    tokens = {plan.contestant: plan.tokens_per_step for plan in steps.plans()}
    assert tokens["char"] == 19 * 16 and tokens["bpe"] == found["bpe"] * 16
    assert "19 blocks of 16 tokens" in comparison.identity.batch
    again = Steps(load_experiment(tmp_path / "small.yaml"), echo=lambda _line: None)
    again.compare()
    assert again.num_done == 0


def test_a_batch_of_less_than_a_window_is_one_window(tmp_path: Path) -> None:
    steps = Steps(experiment(tmp_path, batch={"amount": 1}), echo=lambda _line: None)
    assert {steps.spec(name, 1).train_config.batch_size for name in ("char", "bpe", "same")} == {1}


def test_both_in_one_block_are_refused_and_the_own_block_replaces_the_shared_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"both train.batch_size 8 and train.batch are given"):
        experiment(tmp_path, ["train.batch={amount: 99}"])
    found = experiment(tmp_path, ["train.batch_size=null", "train.batch={amount: 99}"])
    assert [contestant.train.batch.amount for contestant in found.contestants.values() if contestant.train.batch] == [
        99,
        99,
        99,
    ]
    found = experiment(tmp_path, ["contestants.bpe.train.batch_size=4"], batch={"amount": 99})
    assert found.contestants["bpe"].train.batch is None and found.contestants["bpe"].train.batch_size == 4
    assert found.contestants["char"].train.batch is not None
    found = experiment(tmp_path, ["contestants.bpe.train.batch={amount: 70}"])
    own = found.contestants["bpe"].train.batch
    assert own is not None and own.amount == 70 and found.contestants["char"].train.batch is None
    with pytest.raises(ConfigError, match=r"contestants.bpe.train.batch_size 4 and contestants.bpe.train.batch"):
        experiment(tmp_path, ["contestants.bpe.train={batch: {amount: 9}, batch_size: 4}"])


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{amount: 0}", "amount"),
        ("{unit: tokens, amount: 9}", "'tokens' is not one of characters"),
        ("{amuont: 9}", "did you mean 'amount'"),
        ("9", "expected a mapping"),
    ],
)
def test_a_mistake_in_batch_is_named(tmp_path: Path, written: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        experiment(tmp_path, ["train.batch_size=null", f"train.batch={written}"])


def test_a_null_batch_size_without_a_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"train.batch_size: expected a whole number"):
        experiment(tmp_path, ["train.batch_size=null"])
