"""What is said before a run: figures by hand, every unit of budget, each warning at its threshold."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare.experiment import load_experiment
from compare.plan import Plan, plans_as_text, warnings_of
from compare.steps import Steps
from model.settings import Budget
from scripts import plan as command


def planned(**changes: Any) -> Plan:
    """1,000 parameters, 100 steps of 40 tokens each on 2,000 tokens of train: nothing to warn of."""
    values: dict[str, Any] = {
        "contestant": "char",
        "train_tokens": 2_000,
        "chars_per_token": 2.5,
        "tokens_per_step": 40,
        "budget": Budget("steps", 100),
        "embedding_parameters": 300,
        "other_parameters": 700,
        "flops_per_token": 6_000,
        "seeds": (1, 2, 3),
        "memory_bytes": 5_000_000,
        "disk_bytes": 7_000_000,
        "test_documents": 20,
    }
    return Plan(**(values | changes))


@pytest.mark.parametrize(
    ("unit", "amount", "steps"),
    [
        ("steps", 100, 100),
        ("tokens", 4_000, 100),
        ("tokens", 4_001, 101),
        ("characters", 10_000, 100),  # 40 tokens of 2.5 characters
        ("characters", 10_001, 101),
        ("flops", 24_000_000, 100),
        ("flops", 24_000_001, 101),
        ("seconds", 50, 100),
        ("seconds", 51, 102),
    ],
)
def test_steps_follow_from_every_unit_of_budget(unit: Any, amount: int, steps: int) -> None:
    plan = planned(budget=Budget(unit, amount), seconds_per_step=0.5)
    assert plan.steps == steps
    assert plan.tokens_seen == 40 * steps and plan.flops == 240_000 * steps
    assert plan.epochs == 40 * steps / 2_000 and plan.tokens_per_parameter == 40 * steps / 1_000
    assert plan.seconds == 3 * 0.5 * steps


def test_without_a_rate_a_budget_in_seconds_says_nothing_of_steps() -> None:
    plan = planned(budget=Budget("seconds", 50))
    assert (plan.steps, plan.epochs, plan.flops, plan.seconds) == (None, None, None, None)
    assert warnings_of([plan]) == []
    steps = next(line for line in plans_as_text([plan]).split("\n") if line.startswith("steps"))
    assert steps.split() == ["steps", "–"]


@pytest.mark.parametrize(
    ("harmless", "harmful", "said"),
    [
        ({"other_parameters": 1_700}, {"other_parameters": 1_701}, "the comparison is of step counts"),
        (
            {"budget": Budget("steps", 60), "tokens_per_step": 100},
            {"budget": Budget("steps", 59), "tokens_per_step": 100},
            "char takes 59 steps, fewer than 60",
        ),
        ({"train_tokens": 1_000}, {"train_tokens": 999}, "char sees train 4.0 times, more than 4"),
        ({"test_documents": 20}, {"test_documents": 19}, "Test has 19 documents, fewer than 20"),
        ({"seeds": (1, 2)}, {"seeds": (1,)}, "There is one seed"),
    ],
)
def test_each_warning_begins_beyond_its_threshold(harmless: Any, harmful: Any, said: str) -> None:
    assert warnings_of([planned(**harmless)]) == []
    found = warnings_of([planned(**harmful)])
    assert len(found) == 1 and said in found[0]
    assert f"warning: {found[0]}" in " ".join(plans_as_text([planned(**harmful)]).split())


def test_the_table_is_narrow_whatever_its_figures() -> None:
    large = planned(budget=Budget("steps", 10**30), memory_bytes=10**25, train_tokens=1)
    plans = [dataclasses.replace(large, contestant=f"contestant_{number}" * 9) for number in range(9)]
    assert max(map(len, plans_as_text(plans).split("\n"))) < 100


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    return write_experiment(
        tmp_path / "words.yaml", experiment_values(tmp_path / "run", write_corpus(tmp_path / "texts"))
    )


def test_the_plan_is_what_the_run_then_does(chain: Path) -> None:
    lines: list[str] = []
    steps = Steps(load_experiment(chain), echo=lines.append)
    plans = {plan.contestant: plan for plan in steps.plans()}
    char = plans["char"]
    # Model by hand: C 16, T 16, one layer. Norms 2 * 2C, qkv 3CC + 3C, projection CC + C, MLP 8CC + 5C, last norm 2C.
    assert char.other_parameters == 12 * 16 * 16 + 15 * 16
    assert char.embedding_parameters == (steps.tokenizer("char").vocab_size + 16) * 16
    assert (char.chars_per_token, char.tokens_per_step, char.steps) == (1.0, 8 * 16, 47)  # 6,000 / 128 = 46.9
    entries = steps.entries()
    for entry in entries:
        report, plan = entry.runs[0].report, plans[entry.name]
        assert plan.embedding_parameters == report.parameters.embedding
        assert plan.other_parameters == report.parameters.rest
        assert plan.steps == pytest.approx(report.seen.steps, abs=1)
    assert char.flops == next(entry for entry in entries if entry.name == "char").runs[0].report.seen.flops
    said = [line for line in lines if line.startswith("warning: ")]
    assert said == [f"warning: {line}" for line in warnings_of(list(plans.values()))] and len(said) >= 3
    first_training = next(number for number, line in enumerate(lines) if line.startswith("train "))
    assert max(map(lines.index, said)) < first_training
    lines.clear()
    steps.entries()  # all is up to date: nothing to warn of any more
    assert not [line for line in lines if line.startswith("warning: ")]


def test_the_command_measures_and_keeps_nothing(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--config", str(chain), "--set", "train.budget={unit: seconds, amount: 2}"])
    printed = capsys.readouterr().out
    seconds = next(line for line in printed.split("\n") if line.startswith("seconds, all seeds"))
    assert all(2.0 <= float(cell) < 4.0 for cell in seconds.split()[-2:])  # whole steps, so a little more than asked
    assert not (chain.parent / "run/checkpoints").exists() and not (chain.parent / "run/reports").exists()
    assert "warning: There is one seed" in printed
