"""What was not held equal is read off the resolved settings of the runs, field by field."""

from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chain_helpers import experiment_values, write_experiment
from compare.experiment import Experiment, load_experiment
from compare.outputs.held_equal import not_held_equal
from compare.runs import Entry
from compare.table import row_of
from report_helpers import report_of
from tokenizer.bpe import BPETokenizer

TRAINED = {
    "kind": "char_bpe",
    "vocab_size": 60,
    "min_pair_frequency": 2,
    "training_characters": 500,
    "training_sha256": "a",
    "split_pattern": "none",
    "tie_break": "first_seen",
    "special_tokens": [],
}


def entry_of(name: str, *changes: dict[str, Any]) -> Entry:
    """A contestant with one run for each of `changes` of its report."""
    runs = []
    for one in changes or ({},):
        report = report_of(one)
        runs.append(SimpleNamespace(contestant=name, report=report, test=report.splits.test, seed=report.train.seed))
    return Entry(name, tuple(runs))  # type: ignore[arg-type]


def experiment_of(*names: str, **contexts: str) -> Any:
    contestants = {name: SimpleNamespace(context=contexts.get(name, "tokens")) for name in names}
    return SimpleNamespace(contestants=contestants)


def said(*entries: Entry, tokenizers: dict[str, Any] | None = None, **contexts: str) -> list[str]:
    experiment = experiment_of(*(entry.name for entry in entries), **contexts)
    return not_held_equal(experiment, entries, [row_of(entry) for entry in entries], tokenizers or {})


def bpe(**changes: Any) -> BPETokenizer:
    return BPETokenizer(["a", "b"], [], kind="char_bpe", split_pattern="none", trained_on=TRAINED | changes)


def test_equal_settings_are_not_named() -> None:
    assert said(entry_of("char"), entry_of("bpe")) == []
    tokenizers = {"a": bpe(), "b": bpe(vocab_size=99, training_sha256="b")}
    assert said(entry_of("a"), entry_of("b"), tokenizers=tokenizers) == []
    assert said(entry_of("a", {"model": {"vocab_size": 7}}), entry_of("b")) == []  # that is the tokenizer itself


@pytest.mark.parametrize(
    ("block", "key", "one", "other", "sentence"),
    [
        ("train", "optimizer", "adamw", "muon", "train.optimizer: char adamw, bpe muon"),
        ("train", "batch_size", 4, 8, "train.batch_size: char 4, bpe 8"),
        ("train", "learning_rate", 0.001, 0.01, "train.learning_rate: char 0.001, bpe 0.01"),
        ("model", "preset", "gpt2", "modern", "model.preset: char gpt2, bpe modern"),
        ("model", "rope", False, True, "model.rope: char false, bpe true"),
        ("evaluate", "stride", 8, 4, "evaluate.stride: char 8, bpe 4"),
        ("environment", "device", "cpu", "cuda", "environment.device: char cpu, bpe cuda"),
        ("environment", "num_threads", 1, 2, "environment.num_threads: char 1, bpe 2"),
    ],
)
def test_every_resolved_setting_that_differs_is_named(
    block: str, key: str, one: Any, other: Any, sentence: str
) -> None:
    assert said(entry_of("char", {block: {key: one}}), entry_of("bpe", {block: {key: other}})) == [sentence]


def test_nested_settings_and_those_that_a_run_does_not_record_are_named() -> None:
    longer = entry_of("bpe", {"train": {"budget": {"amount": 2000}, "new_setting": None}})
    assert said(entry_of("char"), longer) == [
        "train.budget.amount: char 1,000, bpe 2,000",
        "train.new_setting: char –, bpe null",
    ]


def test_seeds_and_contexts_are_named() -> None:
    other = entry_of("bpe", {"train": {"seed": 2}})
    assert said(entry_of("char"), other, bpe="characters") == [
        "context: char tokens, bpe characters",
        "seeds: char 1, bpe 2",
    ]


def test_what_differs_between_the_runs_of_one_contestant_is_named() -> None:
    mixed = entry_of("bpe", {}, {"train": {"seed": 2}, "environment": {"dtype": "bfloat16"}})
    even = entry_of("char", {}, {"train": {"seed": 2}})
    assert said(even, mixed) == ["environment.dtype: char float32, bpe float32 and bfloat16"]


def test_tokenizers_trained_otherwise_are_named() -> None:
    given = {"own_settings": {"vocab_size": {"configured": 60, "used": 40}}}
    tokenizers = {
        "char": SimpleNamespace(trained_on={"kind": "char"}),
        "small": bpe(training_characters=300, split_pattern="gpt2"),
        "given": bpe(**given),
    }
    assert said(entry_of("char"), entry_of("small"), entry_of("given"), tokenizers=tokenizers) == [
        "given: its tokenizer was made with vocab_size 40, given on the command line; the experiment says 60",
        "tokenizer.training_characters: small 300, given 500",
        "tokenizer.split_pattern: small gpt2, given none",
    ]


def resolved(experiment: Experiment, name: str) -> Entry:
    """A run made with the settings that the experiment has for this contestant, as a run records them."""
    contestant = experiment.contestants[name]
    model = asdict(contestant.model_config(50))
    return entry_of(name, {"model": model, "train": asdict(contestant.train)})


def test_a_preset_of_one_contestant_names_all_that_it_switches(tmp_path: Path) -> None:
    values: dict[str, Any] = experiment_values(tmp_path / "run", {"source": "text", "name": "t", "paths": ["t.txt"]})
    values["contestants"]["bpe"]["model"] = {"preset": "modern", "num_heads": 2}
    experiment = load_experiment(write_experiment(tmp_path / "t.yaml", values))
    entries = [resolved(experiment, name) for name in experiment.contestants]
    found = not_held_equal(experiment, entries, [row_of(entry) for entry in entries], {})
    keys = {line.partition(":")[0] for line in found}
    assert {"model.preset", "model.rope", "train.optimizer", "train.schedule"} <= keys
    assert not any("None" in line for line in found)


def test_an_override_of_a_default_shows_the_default(tmp_path: Path) -> None:
    values: dict[str, Any] = experiment_values(tmp_path / "run", {"source": "text", "name": "t", "paths": ["t.txt"]})
    values["contestants"]["bpe"]["train"] = {"weight_decay": 0.5}  # the shared block leaves it at its default
    experiment = load_experiment(write_experiment(tmp_path / "t.yaml", values))
    entries = [resolved(experiment, name) for name in experiment.contestants]
    found = not_held_equal(experiment, entries, [row_of(entry) for entry in entries], {})
    assert found == ["train.weight_decay: bpe 0.5, char 0.1"]
