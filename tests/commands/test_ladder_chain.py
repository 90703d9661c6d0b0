"""An experiment with a ladder, through the whole chain: entries, reports, comparison, a greater budget, refusals."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare.experiment import Experiment, load_experiment
from compare.ladder.words import headline, lines
from compare.outputs.text import comparison_text
from compare.plan import Plan, plans_as_text, warnings_of
from compare.steps import Steps
from data.errors import CheckpointError, ConfigError
from data.files import read_json, sha256_file
from scripts import sweep, tune


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


def test_the_comparison_says_what_the_ladder_says(tmp_path: Path) -> None:
    """Four budgets: a forecast without a check, in the text, the JSON, the verdict, the Markdown and the page."""
    settings = ["ladder.rungs=4", "train.budget.amount=12000"]
    made = silently(experiment(tmp_path, settings)).compare()
    answer, reports = made.ladder, tmp_path / "run/reports"
    assert answer is not None and answer.amounts == (1500, 3000, 6000, 12000)
    by_name = {one.curve.contestant: one.curve for one in answer.curves}
    for rung in (1500, 12000):
        folder = tmp_path / "run/checkpoints/bpe" / ("" if rung == 12000 else f"rungs/{rung}")
        bits = read_json(folder / "report.json")["splits"]["test"]["bits_per_char"]
        point = next(point for point in by_name["bpe"].points if point.amount == rung)
        assert point.by_seed == (pytest.approx(bits),)
    [pair] = answer.pairs
    assert pair.gaps[-1].difference == pytest.approx(made.certainty.pairs[0].difference)
    assert made.answer.endswith(headline(answer)) and headline(answer)
    printed = comparison_text(made)
    assert "Does the answer hold at another budget?" in printed and max(map(len, printed.split("\n"))) <= 100
    assert "## Does the answer hold at another budget?" in (reports / "comparison.md").read_text(encoding="utf-8")
    page = (reports / "index.html").read_text(encoding="utf-8")
    assert '<section id="budgets">' in page and "how the forecast was checked" in page
    verdict = read_json(reports / "verdict.json")["ladder"]
    assert verdict["budgets"] == [1500, 3000, 6000, 12000] and verdict["unit"] == "characters"
    again = silently(experiment(tmp_path, settings))
    assert again.compare() == made and again.num_done == 0  # read back from comparison.json


def test_without_a_ladder_nothing_is_said_of_other_budgets(tmp_path: Path) -> None:
    made = silently(experiment(tmp_path, ladder=None)).compare()
    assert made.ladder is None and "another budget" not in comparison_text(made)
    reports = tmp_path / "run/reports"
    assert read_json(reports / "verdict.json")["ladder"] is None
    assert 'id="budgets"' not in (reports / "index.html").read_text(encoding="utf-8")


def test_contestants_with_other_budgets_have_no_answer_and_are_told(tmp_path: Path) -> None:
    made = silently(experiment(tmp_path, ["contestants.bpe.train.budget.amount=12000"])).compare()
    assert made.ladder is None
    assert any("trained up to other budgets, so nothing is said of larger ones" in line for line in made.not_held_equal)


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
        (["train.warmup_amount=6000"], "train.warmup_amount 6000 is not less than the budget of 6,000 characters"),
        (["train.warmup_amount=9", "train.warmup_fraction=0.1"], "both warmup_amount and warmup_fraction are given"),
        (["train.warmup_amount=1400"], r"the warm-up takes 0.933 of the ladder's smallest budget \(1,500 characters"),
    ],
)
def test_what_cannot_be_a_ladder_is_refused(tmp_path: Path, settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        experiment(tmp_path, settings)


def test_a_run_in_the_place_of_the_ladder_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    plain = experiment(tmp_path, ladder=None)
    silently(plain).train("bpe")
    with pytest.raises(CheckpointError, match=r"train.schedule was cosine, is linear.*`make train-bpe FORCE=1`"):
        silently(experiment(tmp_path, ["train.budget.amount=6000"])).train("bpe")
    assert not (tmp_path / "run/checkpoints/bpe/trunk").exists()
    assert not (tmp_path / "run/checkpoints/bpe/rungs").exists()


def test_a_run_without_a_ladder_cannot_go_on_and_is_told_what_can(tmp_path: Path) -> None:
    silently(experiment(tmp_path, ladder=None)).compare()
    longer = experiment(tmp_path, ["train.budget.amount=24000"], ladder=None)
    with pytest.raises(CheckpointError) as caught:
        silently(longer).compare()
    report = tmp_path / "run/reports/comparison.md"
    assert "train.budget.amount was 6000, is 24000" in str(caught.value)
    assert "`make train-bpe train-char FORCE=1`; a run with `ladder: {}` can go on; the same holds for char" in str(
        caught.value
    )
    assert str(caught.value).endswith(f"; {report} is of the runs as they are, and lists their settings")
    text = report.read_text(encoding="utf-8")
    assert "settings of bpe: " in text and "train.budget.amount 6,000" in text.replace("\\_", "_")
    assert "train.learning_rate 0.003" in text.replace("\\_", "_")


def test_force_warms_up_anew_unless_another_contestant_has_the_same_budget(tmp_path: Path) -> None:
    def warmup(steps: Steps, name: str) -> Any:
        return read_json(steps.layout.checkpoints(name) / "config.json")["train_config"]["warmup_amount"]

    silently(experiment(tmp_path)).entries()
    longer = ["train.budget.amount=24000"]
    steps = silently(experiment(tmp_path, longer))
    steps.train("bpe")
    assert warmup(steps, "bpe") == 75  # it goes on
    steps = silently(experiment(tmp_path, longer))
    steps.train("bpe", restart=True)
    assert warmup(steps, "bpe") == 300  # char has still another budget
    steps = silently(experiment(tmp_path, longer))
    steps.train("char", restart=True)
    steps.train("bpe")
    assert (warmup(steps, "char"), warmup(steps, "bpe")) == (300, 300)
    assert [rung.amount for rung in steps.entries()[0].rungs] == [1500, 3000, 6000, 12000, 24000]


def test_tune_and_sweep_take_an_experiment_with_a_ladder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = experiment(tmp_path).path
    tune.main(["--config", str(path), "--rates", "1e-3,3e-3", "--budget", "3000"])
    printed = capsys.readouterr().out
    assert "tune: the runs of the grid have the ladder's schedule and one budget only" in printed
    stored = read_json(tmp_path / "run/tune/bpe/batch_8_lr_0.001/config.json")["train_config"]
    assert stored["schedule"] == "linear" and stored["warmup_amount"] is None
    assert not (tmp_path / "run/checkpoints").exists()
    sweep.main(["--config", str(path)])
    assert "sweep: the figures are those of the ladder's whole budget" in capsys.readouterr().out
    points = read_json(tmp_path / "run/reports/sweep.json")["points"]
    test = read_json(tmp_path / "run/checkpoints/bpe/report.json")["splits"]["test"]
    assert points[0]["bits_per_char"] == test["bits_per_char"]
    # The grid covers the ladder's runs, whose warm-up is another amount.
    assert any("by the same grid" in line or "by a grid" in line or "the grid found" in line for line in said(tmp_path))


def said(folder: Path) -> tuple[str, ...]:
    """What the comparison says is not held equal."""
    return silently(experiment(folder)).compare().not_held_equal


def test_the_plan_has_lines_for_each_budget(tmp_path: Path) -> None:
    steps = silently(experiment(tmp_path))
    text = plans_as_text(steps.plans())
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.split("\n") if line.startswith("ladder")]
    cells = {label: values for label, *values in lines}
    assert cells["ladder, budget 2: amount"] == ["3,000", "3,000"]
    assert cells["ladder, budget 3: amount"] == ["1,500", "1,500"]
    entries = {entry.name: entry for entry in steps.entries()}
    for number, name in enumerate(steps.experiment.contestants):
        for place in (2, 3):
            seen = entries[name].rungs[-place].runs[0].report.seen.steps
            assert abs(int(cells[f"ladder, budget {place}: steps"][number]) - seen) <= 1
    char = next(plan for plan in steps.plans() if plan.contestant == "char")
    assert char.trained_share == 0.75 + 0.25 * (1500 + 3000 + 6000) / 6000
    assert any("char takes fewer than 60 steps" in line for line in warnings_of([replaced_steps(char)]))


def replaced_steps(plan: Plan) -> Plan:
    """The same with steps so short that only the lower budgets have few of them."""
    return dataclasses.replace(plan, tokens_per_step=60)


def test_an_interrupted_and_an_extended_ladder_say_the_same_as_a_whole_one(tmp_path: Path) -> None:
    """Trained at once, or up to a quarter and then on: the same bits per character at every budget."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    silently(experiment(tmp_path / "a")).entries()
    extended = silently(experiment(tmp_path / "a", ["train.budget.amount=24000"])).entries()
    settings = ["train.budget.amount=24000", "ladder.rungs=5"]  # the smallest budget, and so the warm-up, is the same
    whole = silently(experiment(tmp_path / "b", settings)).entries()
    for one, other in zip(extended, whole, strict=True):
        for left, right in zip(one.rungs, other.rungs, strict=True):
            assert left.amount == right.amount
            for split in ("val", "test"):
                nats = [rung.runs[0].evaluations[split].nats for rung in (left, right)]
                assert (nats[0] == nats[1]).all()


def test_six_budgets_are_checked_from_a_half_and_from_a_quarter(tmp_path: Path) -> None:
    """Points of few steps count here, as far as the check is not better without them."""
    settings = ["ladder.rungs=6", "train.budget.amount=24000"]
    answer = silently(experiment(tmp_path, settings)).compare().ladder
    assert answer is not None and answer.amounts == (750, 1500, 3000, 6000, 12000, 24000)
    said = lines(answer)
    amounts = [test.amount for test in answer.pairs[0].back_tests]
    if answer.left_out:
        assert amounts == [12000] and any(line.startswith("No check from a quarter of the budget: ") for line in said)
    else:
        assert amounts == [12000, 6000]
        assert any(line.startswith("Check from budgets up to 6,000 characters: ") for line in said)
