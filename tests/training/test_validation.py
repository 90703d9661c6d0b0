"""model/training/validation.py: watching a run costs at most a tenth of it, the same on every machine."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from model.gpt import MiniGPT
from model.run_spec import RunSpec
from model.settings import Budget, MiniGPTConfig, TrainConfig
from model.train import train
from model.training.validation import FLOPS_PER_SECOND, Validation, validation_of
from model_helpers import ALPHABET, ENGLISH, CharTable, encoded_splits, json_lines, tiny_model, tiny_train
from tokenizer.encode_splits import EncodedSplit

TEXT = ENGLISH[:4]


@pytest.fixture(scope="module")
def trains(tmp_path_factory: pytest.TempPathFactory) -> dict[str, EncodedSplit]:
    """One text in characters and in longer tokens."""
    tables = {"char": CharTable(ALPHABET), "bpe": CharTable(ALPHABET, ["the ", "er", "in", "on", "s ", "a "])}
    root = tmp_path_factory.mktemp("text")
    return {name: encoded_splits(root / name, table, TEXT, TEXT)["train"] for name, table in tables.items()}


def found(train: EncodedSplit, budget: Budget, vocab_size: int = 40, **changes: Any) -> Validation:
    model = MiniGPTConfig(vocab_size=vocab_size, block_size=64, embedding_dim=64, num_heads=4, num_layers=2)
    config = TrainConfig(**{"budget": budget, "batch_size": 10, **changes})
    return validation_of(config, model, MiniGPT(model).flops_per_token(), train)


def test_the_length_by_hand(trains: dict[str, EncodedSplit]) -> None:
    """Ten figures at a third of a step's cost for each character: 0.03 / (10 / 3) of the budget each."""
    char = trains["char"]
    assert found(char, Budget("characters", 2_000_000)) == Validation(18_000, 0.1)
    assert found(char, Budget("tokens", 2_000_000)) == Validation(18_000, 0.1)
    assert found(char, Budget("steps", 3_125)) == Validation(18_000, 0.1)  # of 10 windows of 64 tokens
    assert found(char, Budget("characters", 2_000_000), val_every_fraction=0.3) == Validation(45_000, 0.3)
    assert found(char, Budget("characters", 20_000_000)) == Validation(100_000, 0.1)  # val_characters
    assert found(char, Budget("characters", 20_000_000), val_characters=7) == Validation(7, 0.1)


def test_a_small_budget_has_fewer_figures_on_a_thousand_characters(trains: dict[str, EncodedSplit]) -> None:
    char = trains["char"]
    assert found(char, Budget("characters", 50_000)) == Validation(1_125, 1 / 4)
    assert found(char, Budget("characters", 35_000)) == Validation(1_050, 1 / 3)
    assert found(char, Budget("characters", 20_000)) == Validation(1_800, 1.0)
    assert found(char, Budget("characters", 10_000)) == Validation(900, 1.0)
    assert found(char, Budget("characters", 100)) == Validation(9, 1.0)
    assert found(char, Budget("characters", 1)) == Validation(1, 1.0)


@pytest.mark.parametrize("unit", ["characters", "tokens", "steps", "flops", "seconds"])
def test_contestants_share_the_sample_under_every_unit(trains: dict[str, EncodedSplit], unit: Any) -> None:
    amount = {"flops": 10**12, "seconds": 60, "steps": 500}.get(unit, 400_000)
    char, bpe = (found(trains[name], Budget(unit, amount), size) for name, size in (("char", 40), ("bpe", 500)))
    assert char == bpe and 1_000 < char.max_characters < 100_000
    if unit == "seconds":
        assert found(trains["char"], Budget("flops", amount * FLOPS_PER_SECOND)) == char


def test_a_vocabulary_far_larger_than_its_model_has_a_shorter_sample(trains: dict[str, EncodedSplit]) -> None:
    budget = Budget("flops", 10**13)
    small, large = found(trains["bpe"], budget, 500), found(trains["bpe"], budget, 60_000)
    assert large.max_characters < small.max_characters
    train = trains["bpe"]
    model = MiniGPTConfig(vocab_size=60_000, block_size=64, embedding_dim=64, num_heads=4, num_layers=2)
    tokens = 10**13 / MiniGPT(model).flops_per_token()
    sample = large.max_characters * len(train.ids) / train.num_chars
    assert 0.044 < 10 * sample / 3 / tokens <= 0.045


@pytest.mark.parametrize("steps", [1, 3, 12, 100])
def test_what_a_run_scores_while_it_trains_is_what_was_reckoned(tmp_path: Path, steps: int) -> None:
    """Tokens scored, a third each, are at most a tenth of those trained on."""
    tokens = CharTable(ALPHABET)
    splits = encoded_splits(tmp_path, tokens, ENGLISH, ENGLISH[:3], ENGLISH[:2])
    config = dataclasses.replace(tiny_train(steps), val_every_fraction=0.05, val_characters=10**6)
    spec: dict[str, Any] = {"contestant": "char", "tokenizer": tokens, "tokenizer_path": tmp_path / "tokenizer.json"}
    model = tiny_model(tokens.vocab_size)
    run = RunSpec(**spec, splits=splits, model_config=model, train_config=config, folder=tmp_path / "run")
    train(run, progress=False)
    num_figures = sum("val_sample_bits_per_char" in line for line in json_lines(tmp_path / "run/metrics.jsonl"))
    plan = validation_of(config, model, MiniGPT(model).flops_per_token(), splits["train"])
    assert 1 <= num_figures <= 20
    assert num_figures * plan.max_characters / 3 <= 0.03 * steps * 32 + 1 / 3
