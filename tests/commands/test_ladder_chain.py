"""An experiment with a ladder, through the whole chain: entries, reports, comparison, a greater budget, refusals."""

from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare.experiment import Experiment, load_experiment
from compare.steps import Steps
from data.errors import CheckpointError, ConfigError
from data.files import read_json, sha256_file


def experiment(folder: Path, settings: list[str] | None = None, **changes: Any) -> Experiment:
    corpus = folder / "corpus"
    block = write_corpus(corpus)
    values = {**experiment_values(folder / "run", block), "ladder": {"rungs": 3}, **changes}
    return load_experiment(write_experiment(folder / "small.yaml", values), settings or [])


def silently(found: Experiment) -> Steps:
    return Steps(found, echo=lambda _line: None)


def test_the_rungs_of_an_entry_are_finished_runs_of_each_budget(tmp_path: Path) -> None:
    steps = silently(experiment(tmp_path, seeds=[1, 2]))
    entries = steps.entries()
    for entry in entries:
        assert [rung.amount for rung in entry.rungs] == [1500, 3000, 6000]
        assert entry.rungs[-1].runs == entry.runs
        for rung in entry.rungs:
            assert [run.seed for run in rung.runs] == [1, 2]
            for run in rung.runs:
                assert run.report.train.budget.amount == rung.amount
                assert run.report.seen.characters >= rung.amount
                settings = run.report.settings["train"]
                assert (settings["schedule"], settings["warmdown_fraction"]) == ("linear", 0.25)
                assert (settings["min_learning_rate_ratio"], settings["warmup_amount"]) == (0.0, 75)
                assert run.evaluations["test"].nats.size > 0 and run.evaluations["val"].nats.size > 0
        assert entry.rungs[0].runs[0].folder == tmp_path / "run/checkpoints" / entry.name / "seed_1/rungs/1500"
    done = steps.num_done
    assert silently(experiment(tmp_path, seeds=[1, 2])).entries()[0].rungs[0].amount == 1500
    again = silently(experiment(tmp_path, seeds=[1, 2]))
    again.entries()
    assert again.num_done == 0 < done


def test_the_inputs_of_a_comparison_hold_the_rungs(tmp_path: Path) -> None:
    steps = silently(experiment(tmp_path))
    steps.compare()
    path = tmp_path / "run/reports/comparison.json"
    reports = tmp_path / "run/checkpoints/bpe/rungs/1500/report.json", tmp_path / "run/checkpoints/bpe/report.json"
    rungs = read_json(path)["inputs"]["files"]["rungs"]["bpe"]
    assert [amount for amount, _ in rungs] == [1500, 3000, 6000]
    assert rungs[0][1] == [sha256_file(reports[0])] and rungs[-1][1] == [sha256_file(reports[1])]


def test_a_greater_budget_keeps_what_is_there_for_every_contestant_and_seed(tmp_path: Path) -> None:
    silently(experiment(tmp_path)).entries()
    kept = {name: sha256_file(tmp_path / f"run/checkpoints/{name}/report.json") for name in ("char", "bpe")}
    entries = silently(experiment(tmp_path, ["train.budget.amount=24000"])).entries()
    for entry in entries:
        assert [rung.amount for rung in entry.rungs] == [1500, 3000, 6000, 12000, 24000]
        assert entry.rungs[2].runs[0].report_sha256 == kept[entry.name]
        # Three rungs of 24,000 would warm up over 300; the trunks that are there did over 75.
        assert {rung.runs[0].report.settings["train"]["warmup_amount"] for rung in entry.rungs} == {75}
    # A contestant that comes later has the same budgets and the same warm-up.
    added = ["contestants.byte={tokenizer: {kind: byte_bpe, vocab_size: 260}}", "train.budget.amount=24000"]
    later = silently(experiment(tmp_path, added)).entries()[-1]
    assert [rung.amount for rung in later.rungs] == [1500, 3000, 6000, 12000, 24000]
    assert {rung.runs[0].report.settings["train"]["warmup_amount"] for rung in later.rungs} == {75}


def test_another_setting_is_refused_with_one_command_for_all(tmp_path: Path) -> None:
    silently(experiment(tmp_path)).entries()
    with pytest.raises(
        CheckpointError, match=r"train.learning_rate was 0.003, is 0.001.*`make train-bpe train-char FORCE=1`"
    ):
        silently(experiment(tmp_path, ["train.learning_rate=0.001"])).entries()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["ladder.rungs=0"], "ladder.rungs=0: ladder: rungs must be"),
        (["ladder.way_down=1.5"], "way_down must be"),
        (["ladder={rung: 3}"], "unknown key 'rung'; did you mean 'rungs'"),
        (["ladder.rungs=20"], "rungs: 20 need a budget of at least 524,288 characters, found 6,000"),
        (["train.schedule=cosine"], "both ladder and train.schedule"),
        (["train.warmdown_fraction=0.3"], "a ladder has ladder.way_down; remove train.warmdown_fraction"),
        (["contestants.bpe.train.selection=best"], "contestants.bpe.train.selection"),
        (["ladder.way_down=0.98"], "the warm-up takes 0.05 of the ladder's smallest budget"),
        (["train.warmup_amount=1400"], r"the warm-up takes 0.933 of the ladder's smallest budget \(1,500 characters"),
    ],
)
def test_what_cannot_be_a_ladder_is_refused(tmp_path: Path, settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        experiment(tmp_path, settings)
