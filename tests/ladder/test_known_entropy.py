"""The floor of a law, on text whose entropy is known: no model can need fewer bits than the source."""

import dataclasses
from pathlib import Path

import pytest
import yaml

from compare.calibrate.judge import SPLIT_SEEDS, Plan, write_experiment
from compare.calibrate.known_sources import markov_source
from compare.experiment import load_experiment
from compare.steps import Steps

PLAN = Plan(
    source=markov_source("\nab é→", seed=3, mean_characters=25),
    num_chars={"train": 1_500_000, "val": 2_000, "test": 30_000},
    contestants={
        "char": {"tokenizer": {"kind": "char"}},
        "char_bpe": {"tokenizer": {"kind": "char_bpe", "vocab_size": 8}},
    },
    model={"block_size": 16, "embedding_dim": 32, "num_heads": 2, "num_layers": 1, "dropout": 0.0},
    train={
        "batch_size": 16,
        "learning_rate": 3e-3,
        "weight_decay": 0.0,
        "val_characters": 2_000,
        "val_every_fraction": 0.5,
        "num_threads": 1,
        "device": "cpu",
    },
)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [100, 400])
def test_the_interval_of_the_floor_holds_the_entropy(tmp_path: Path, steps: int) -> None:
    plan = dataclasses.replace(PLAN, train={**PLAN.train, "budget": {"unit": "steps", "amount": steps}})
    documents = {split: plan.source.draw(plan.num_chars[split], seed) for split, seed in SPLIT_SEEDS.items()}
    path = write_experiment(plan, documents, tmp_path)
    values = yaml.safe_load(path.read_text(encoding="utf-8")) | {"ladder": {"rungs": 6}, "seeds": [1, 2]}
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    answer = Steps(load_experiment(path), echo=lambda _line: None).compare().ladder
    own = plan.source.document_bits(documents["test"]).sum() / sum(map(len, documents["test"]))
    assert answer is not None
    for one in answer.curves:
        assert one.floor is not None
        assert one.floor.low <= own <= one.floor.high, one.curve.contestant
        assert one.floor.high - one.floor.low < 0.35
