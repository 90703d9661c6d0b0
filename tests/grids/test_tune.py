"""A real grid of learning rates on a small text, and its parts: what decides, what is refused, what a report says."""

import contextlib
import copy
import doctest
import io
import json
import shutil
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare import cli
from compare.experiment import Experiment, load_experiment
from compare.grids import tune as tune_module
from compare.grids.tune import (
    DEFAULT_BATCHES,
    VERSION,
    grid_of,
    inputs_of,
    outcome_of,
    parse_batches,
    parse_rates,
    read_tuning,
)
from compare.grids.tuned import command_of, lines_to_paste, rate_sentence, tuning_as_text
from compare.runs import Entry
from compare.steps import Steps
from data.errors import ConfigError, ReportError
from data.files import read_json, write_json
from data.inputs import seal
from model import checkpoint
from model.training.loop import Run as TrainingRun
from report_helpers import report_of, stored_report
from scripts import tune

ROOT = Path(__file__).resolve().parents[2]
RATES = (1e-3, 1e-2, 1e-1)


def prepare(folder: Path) -> Path:
    return write_experiment(
        folder / "words.yaml", experiment_values(folder / "run", write_corpus(folder / "texts", num_words=1_500))
    )


def run_command(config: Path, *options: str) -> tuple[str, str, int]:
    """What `make tune` prints on stdout and stderr, and its exit code."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        if "--batches" not in options:
            options = (*options, "--batches", "own")
        patch.setattr(sys, "argv", ["tune", "--config", str(config), *options])
        try:
            cli.run(tune.main)
        except SystemExit as stop:
            code = int(str(stop.code))
    return out.getvalue(), err.getvalue(), code


def files_of(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished grid, shared by tests that only read it. `printed` holds what was printed."""
    folder = tmp_path_factory.mktemp("finished")
    printed, _, code = run_command(prepare(folder), "--rates", "1e-1,1e-3,1e-2")
    assert code == 0
    (folder / "printed").write_text(printed, encoding="utf-8")
    return folder


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished grid that a test may spoil; the experiment file names the copy's root."""
    shutil.copytree(finished, tmp_path / "copy")
    config = tmp_path / "copy" / "words.yaml"
    config.write_text(config.read_text().replace(str(finished / "run"), str(tmp_path / "copy" / "run")))
    return tmp_path / "copy"


def tuning_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_json(folder / "run/reports/tune.json")
    return found


# The grid, trained


def test_every_contestant_is_trained_with_every_rate_under_a_tenth_of_the_budget(finished: Path) -> None:
    tuning = tuning_in(finished)
    assert tuning["budget"] == {"unit": "characters", "amount": 600}
    assert tuning["rates"] == list(RATES)
    assert list(tuning["contestants"]) == list(load_experiment(finished / "words.yaml").contestants)
    for name, found in tuning["contestants"].items():
        assert [one["learning_rate"] for one in found["tried"]] == list(RATES)
        assert found["seed"] == 1
        for one in found["tried"]:
            folder = finished / "run/tune" / name / f"batch_8_lr_{one['learning_rate']!r}"
            last = checkpoint.load(folder / checkpoint.LAST)
            assert last["train_config"]["learning_rate"] == one["learning_rate"]
            assert last["train_config"]["budget"] == tuning["budget"]
            assert last["finished"] and 600 <= last["spent"]["characters"] < 1_500
            assert one["val_sample_bits_per_char"] == last["best"]["val_sample_bits_per_char"]
            assert not (folder / "test_nats.npz").exists()  # val decides, test is not looked at
        lowest = min(found["tried"], key=lambda one: one["val_sample_bits_per_char"])
        assert found["best"] == {"batch_size": 8, "learning_rate": lowest["learning_rate"]}
        at_edge = lowest["learning_rate"] in (RATES[0], RATES[-1])
        assert found["edge"] == (["learning_rate"] if at_edge else [])
    assert not (finished / "run/checkpoints").exists()


def test_the_rates_matter_here(finished: Path) -> None:
    for found in tuning_in(finished)["contestants"].values():
        figures = [one["val_sample_bits_per_char"] for one in found["tried"]]
        assert max(figures) - min(figures) > 0.05


def test_the_table_is_printed_aligned_and_narrow(finished: Path) -> None:
    printed, tuning = (finished / "printed").read_text(encoding="utf-8"), tuning_in(finished)
    assert tuning_as_text(tuning) in printed
    assert max(len(line) for line in tuning_as_text(tuning).split("\n")) < 100
    assert "(600 characters each; seed 1; * is the lowest of a contestant)" in printed
    table = tuning_as_text(tuning).split("\n\n")[1].split("\n")
    assert table[0].split() == ["batch", "0.001", "0.01", "0.1"]
    for line, name in zip(table[1:], tuning["contestants"], strict=True):
        assert line.split()[:2] == [name, "8"]
        assert line.count("*") == 1
    assert "The val sample decides" in printed and "FORCE" not in printed


def test_a_second_grid_does_nothing_and_touches_nothing(finished: Path) -> None:
    before = files_of(finished / "run")
    printed, _, code = run_command(finished / "words.yaml", "--rates", "1e-3 1e-2 1e-1")
    assert code == 0
    assert files_of(finished / "run") == before
    progress, _, _ = printed.partition("\nwords: ")
    assert all("up to date" in line for line in progress.strip().split("\n"))
    assert progress.count("tune char, batch size 8, learning rate") == 3 and "tune: up to date" in progress


def test_a_wider_grid_finds_the_runs_that_are_there(copied: Path) -> None:
    before = files_of(copied / "run/tune")
    printed, _, _ = run_command(copied / "words.yaml", "--rates", "1e-3,1e-2,3e-2,1e-1")
    after = files_of(copied / "run/tune")
    assert {path: after[path] for path in before} == before
    assert {path.parent.name for path in after.keys() - before.keys()} == {"batch_8_lr_0.03"}
    assert "tune: wrote" in printed
    assert tuning_in(copied)["rates"] == [1e-3, 1e-2, 3e-2, 1e-1]


def test_another_budget_trains_the_grid_anew_and_says_so(copied: Path) -> None:
    printed, _, code = run_command(copied / "words.yaml", "--rates", "1e-3,1e-2", "--budget", "300")
    assert code == 0
    assert printed.count("train.budget.amount was 600, is 300 in the configuration: training again") == 4
    assert tuning_in(copied)["budget"] == {"unit": "characters", "amount": 300}
    last = checkpoint.load(copied / "run/tune/char/batch_8_lr_0.01/last.pt")
    assert last["train_config"]["budget"]["amount"] == 300 and last["finished"]


def test_a_damaged_run_is_trained_anew_and_gives_the_same_figure(copied: Path) -> None:
    before = tuning_in(copied)
    (copied / "run/tune/bpe/batch_8_lr_0.01/last.pt").write_bytes(b"PK")
    printed, _, code = run_command(copied / "words.yaml", "--rates", "1e-3,1e-2,1e-1")
    assert code == 0
    assert "last.pt is damaged" in printed and printed.count("training again") == 1
    assert tuning_in(copied) == before


def test_an_interrupted_grid_goes_on_where_it_was(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = prepare(tmp_path)
    step, taken = TrainingRun._step, []

    def stop_in_the_second_run(run: TrainingRun, *arguments: Any) -> float:
        taken.append((run.folder.parent.name, run.folder.name, run.spent.steps))
        if len({key[:2] for key in taken}) == 2 and run.spent.steps == 0:
            signal.raise_signal(signal.SIGTERM)
        return step(run, *arguments)

    monkeypatch.setattr(TrainingRun, "_step", stop_in_the_second_run)
    _, err, code = run_command(config, "--rates", "1e-3,1e-2,1e-1")
    assert code == 130 and "run the same command again to go on from there" in err
    assert not (tmp_path / "run/reports").exists()
    first, second = list(dict.fromkeys(key[:2] for key in taken))
    stopped_at = taken[-1][2] + 1
    taken.clear()
    monkeypatch.setattr(TrainingRun, "_step", lambda run, *a: (taken.append((*_key(run),)), step(run, *a))[1])
    printed, _, code = run_command(config, "--rates", "1e-3,1e-2,1e-1")
    assert code == 0 and "tune bpe, batch size 8, learning rate 0.001: up to date" in printed
    assert not [key for key in taken if key[:2] == first]
    assert next(key for key in taken if key[:2] == second)[2] == stopped_at
    assert tuning_in(tmp_path) == tuning_in(finished)  # to the last bit


def _key(run: TrainingRun) -> tuple[str, str, int]:
    return run.folder.parent.name, run.folder.name, run.spent.steps


def test_a_rate_that_diverges_is_a_result_and_is_not_tried_again(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed, _, code = run_command(copied / "words.yaml", "--rates", "1e-3,1e-2,1e30")
    assert code == 0
    assert printed.count("learning rate 1e+30: diverged") == 2
    tuning = tuning_in(copied)
    for found in tuning["contestants"].values():
        assert found["tried"][-1] == {"batch_size": 8, "learning_rate": 1e30, "val_sample_bits_per_char": None}
        assert found["best"]["learning_rate"] in (1e-3, 1e-2)
    assert "diverged" in tuning_as_text(tuning)
    kept = read_json(copied / "run/tune/char/batch_8_lr_1e+30/diverged.json")
    assert "at step" in kept["message"]
    monkeypatch.setattr(TrainingRun, "_step", None)  # nothing is trained now
    printed, _, code = run_command(copied / "words.yaml", "--rates", "1e-3,1e-2,1e30")
    assert code == 0 and printed.count("up to date, diverged") == 2
    (copied / "run/tune/char/batch_8_lr_1e+30/diverged.json").write_text("[]")
    with pytest.raises(TypeError):  # a damaged note is no note: the run is trained again
        run_command(copied / "words.yaml", "--rates", "1e-3,1e-2,1e30")


def test_a_grid_that_diverges_everywhere_is_refused(tmp_path: Path) -> None:
    _, err, code = run_command(prepare(tmp_path), "--rates", "1e30,2e30", "--budget", "2000")
    assert code == 2 and err.splitlines()[-1] == (
        "bpe: training diverged with every rate of the grid (1e+30, 2e+30); give lower RATES"
    )


def test_other_mistakes_are_no_divergence(finished: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.cuda.is_available", lambda: False)
        _, err, code = run_command(finished / "words.yaml", "--rates", "3e-3,4e-3", "--set", "train.device=cuda")
    assert code == 2 and "torch finds no GPU" in err


def test_the_first_seed_is_taken(tmp_path: Path) -> None:
    config = prepare(tmp_path)
    experiment = load_experiment(config, ["seeds=[5, 2]"])
    from compare.grids.runner import run_grid

    tuning = run_grid(Steps(experiment, echo=lambda _line: None), grid_of(experiment, (1e-3, 1e-2), 200))
    assert {found["seed"] for found in tuning["contestants"].values()} == {5}
    assert checkpoint.load(tmp_path / "run/tune/char/batch_8_lr_0.001/last.pt")["train_config"]["seed"] == 5
    assert json.loads(json.dumps(tuning)) == tuning


def test_case_56_the_best_rates_are_printed_for_the_file_which_stays_as_it_is(copied: Path) -> None:
    config = copied / "words.yaml"
    before = config.read_bytes()
    (copied / "run/checkpoints/bpe").mkdir(parents=True)
    printed, _, code = run_command(config, "--rates", "1e-3,1e-2,1e-1")
    assert code == 0 and config.read_bytes() == before
    assert "`make train-bpe FORCE=1`." in printed and "train-char" not in printed
    best = {name: found["best"]["learning_rate"] for name, found in tuning_in(copied)["contestants"].items()}
    settings = printed.split('SET="')[1].split('"')[0].split()
    after = load_experiment(config, settings)
    assert {name: c.train.learning_rate for name, c in after.contestants.items()} == best
    assert f"# Found by: make tune EXPERIMENT={config} RATES=0.001,0.01,0.1 BATCHES=own BUDGET=600\n" in printed
    for name, rate in best.items():
        assert f"# contestants.{name}\n    train: {{learning_rate: {rate!r}}}\n" in printed


def test_rates_that_the_file_has_are_not_to_be_pasted(tmp_path: Path) -> None:
    experiment = experiment_with(tmp_path)
    contestants = {
        name: {"best": {"batch_size": 8, "learning_rate": contestant.train.learning_rate}}
        for name, contestant in experiment.contestants.items()
    }
    tuning = {"batches": [8, 16], "contestants": contestants}
    assert "these values are in it already" in lines_to_paste(experiment, tuning, "make tune")
    contestants["bpe"]["best"]["batch_size"] = 16
    assert "contestants.bpe.train.batch_size=16" in lines_to_paste(experiment, tuning, "make tune")


# The parts


def test_doctests() -> None:
    result = doctest.testmod(tune_module)
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("written", ["1e-3,2e-3", "2e-3 1e-3", " 1e-3,  0.002, "])
def test_rates_are_read_in_any_order_and_spelling(written: str) -> None:
    assert parse_rates(written) == (1e-3, 2e-3)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("1e-3,fast", "'fast' is not a number"),
        ("1e-3,-1", "rates: each must be at least 1e-12, found -1"),
        ("1e-3,nan", "'nan' is not a number"),
        ("1e-3", "at least two"),
        ("1e-3,0.001", "must be distinct, found 0.001, 0.001"),
    ],
)
def test_what_is_no_grid_is_refused(written: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_rates(written)


def experiment_with(tmp_path: Path, **own: Any) -> Experiment:
    values = experiment_values(tmp_path / "run", {"source": "pydocs"})
    values["contestants"]["bpe"] |= own  # type: ignore[index]
    return load_experiment(write_experiment(tmp_path / "words.yaml", values))


def test_the_budget_is_a_tenth_or_as_given_in_the_experiments_unit(tmp_path: Path) -> None:
    experiment = experiment_with(tmp_path)
    assert (grid_of(experiment).budget.unit, grid_of(experiment).budget.amount) == ("characters", 600)
    assert grid_of(experiment, amount=50).budget.amount == 50
    with pytest.raises(ConfigError, match="amount must be at least 1, found 0"):
        grid_of(experiment, amount=0)


def test_unequal_budgets_need_a_stated_one_and_unlike_units_are_refused(tmp_path: Path) -> None:
    unequal = experiment_with(tmp_path, train={"budget": {"amount": 9_000}})
    with pytest.raises(ConfigError, match=r"unequal budgets \(bpe 9,000 characters, char 6,000 characters\)"):
        grid_of(unequal)
    assert grid_of(unequal, amount=700).budget.amount == 700
    with pytest.raises(ConfigError, match="one grid needs one unit"):
        grid_of(experiment_with(tmp_path, train={"budget": {"unit": "steps"}}), amount=700)


def tried(*figures: float | None) -> list[dict[str, Any]]:
    return [
        {"batch_size": 8, "learning_rate": 10.0**n, "val_sample_bits_per_char": figure}
        for n, figure in enumerate(figures)
    ]


@pytest.mark.parametrize(
    ("figures", "best", "edge"),
    [
        ((3.0, 2.0, 2.5), 10.0, False),
        ((3.0, 2.5, 2.0), 100.0, True),
        ((1.0, 2.5, 2.0), 1.0, True),
        ((3.0, 2.0, 2.0), 10.0, False),  # the lower rate of a tie
        ((3.0, 2.0, None), 10.0, False),  # beyond lies one that diverged: no edge
        ((None, 2.0, None), 10.0, False),
    ],
)
def test_the_lowest_val_figure_decides(figures: tuple[float | None, ...], best: float, edge: bool) -> None:
    outcome = outcome_of(tried(*figures))
    assert outcome["best"] == {"batch_size": 8, "learning_rate": best}
    assert outcome["edge"] == (["learning_rate"] if edge else [])


def test_a_best_rate_at_the_edge_is_warned_of_with_what_to_add(finished: Path) -> None:
    tuning = copy.deepcopy(tuning_in(finished))
    tuning["contestants"]["char"] |= {"best": {"batch_size": 8, "learning_rate": 1e-1}, "edge": ["learning_rate"]}
    tuning["contestants"]["bpe"] |= {"best": {"batch_size": 8, "learning_rate": 1e-3}, "edge": ["learning_rate"]}
    text = tuning_as_text(tuning)
    assert "warning: char: 0.1 is the highest rate of the grid, a higher one may be better; add 0.2 to RATES" in text
    assert "warning: bpe: 0.001 is the lowest rate of the grid, a lower one may be better; add 0.0005 to RATES" in text
    assert max(map(len, text.split("\n"))) < 100
    for found in tuning["contestants"].values():
        found["edge"] = []
    assert "warning" not in tuning_as_text(tuning)


def test_a_damaged_or_older_result_is_none(tmp_path: Path) -> None:
    assert read_tuning(tmp_path) is None
    for content in ("{", "[]", '{"version": 0}'):
        (tmp_path / "tune.json").write_text(content)
        assert read_tuning(tmp_path) is None


@pytest.mark.parametrize("change", ["cut", "version", "figure", "seal"])
def test_a_report_refuses_a_damaged_result_and_leaves_an_older_one_out(tmp_path: Path, change: str) -> None:
    folder = report_folder(tmp_path, {"char": 0.002, "bpe": 0.004})
    path, entries = folder / "tune.json", [entry_of("char", 0.002), entry_of("bpe", 0.002)]
    whole = path.read_text(encoding="utf-8")
    stored = read_json(path)
    edits = {
        "cut": whole[:100],
        "version": whole.replace(f'"version": {VERSION}', '"version": 0'),
        "figure": whole.replace("0.004", "0.008"),
        "seal": whole.replace("content_sha256", "content_sha257"),
    }
    path.write_text(edits[change], encoding="utf-8")
    with pytest.raises(ReportError, match=r"tune\.json.*; run `make tune` to make it again, or remove the file"):
        rate_sentence(WORDS, folder, entries)
    older = {key: value for key, value in stored.items() if key != "content_sha256"} | {"version": 0}
    for one in (older, seal(older)):
        write_json(path, one)
        assert rate_sentence(WORDS, folder, entries) is None


# Batch sizes


def test_every_pair_of_rate_and_batch_is_tried_on_every_contestant(tmp_path: Path) -> None:
    config = prepare(tmp_path)
    options = ("--rates", "1e-3,1e-2", "--batches", "16 4", "--budget", "300")
    printed, _, code = run_command(config, *options)
    assert code == 0
    tuning = tuning_in(tmp_path)
    assert (tuning["rates"], tuning["batches"]) == ([1e-3, 1e-2], [4, 16])
    for name, found in tuning["contestants"].items():
        pairs = [(one["batch_size"], one["learning_rate"]) for one in found["tried"]]
        assert pairs == [(4, 1e-3), (4, 1e-2), (16, 1e-3), (16, 1e-2)]
        for batch, rate in pairs:
            last = checkpoint.load(tmp_path / "run/tune" / name / f"batch_{batch}_lr_{rate!r}" / checkpoint.LAST)
            assert (last["train_config"]["batch_size"], last["train_config"]["learning_rate"]) == (batch, rate)
        best = min(found["tried"], key=lambda one: one["val_sample_bits_per_char"])
        assert found["best"] == {key: best[key] for key in ("batch_size", "learning_rate")}
        assert found["edge"] == ["batch_size", "learning_rate"]  # of two values each is an edge
        line = f"train: {{batch_size: {best['batch_size']}, learning_rate: {best['learning_rate']!r}}}"
        assert f"# contestants.{name}\n    {line}\n" in printed
    assert "RATES=0.001,0.01 BATCHES=4,16 BUDGET=300" in printed
    assert "batch size of the grid" in printed and "to BATCHES" in printed
    again, _, _ = run_command(config, *options)
    assert "tune: up to date" in again and again.count("up to date,") == 8
    settings = printed.split('SET="')[1].split('"')[0].split()
    after = load_experiment(config, settings)
    for name, found in tuning["contestants"].items():
        train = after.contestants[name].train
        assert {"batch_size": train.batch_size, "learning_rate": train.learning_rate} == found["best"]


@pytest.mark.parametrize("written", ["8,16", "16 8", " 8,  1.6e1, "])
def test_batches_are_read_in_any_order_and_spelling(written: str) -> None:
    assert parse_batches(written) == (8, 16)
    assert parse_batches("Own ") is None and parse_batches("8") == (8,)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("8,many", "'many' is not a whole number"),
        ("8,2.5", "'2.5' is not a whole number"),
        ("0,8", "batches: each must be at least 1, found 0"),
        ("8,8", "must be distinct, found 8, 8"),
        ("", "'' is not a whole number"),
    ],
)
def test_what_are_no_batches_is_refused(written: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_batches(written)


def test_batches_by_default_are_a_grid_or_the_own_ones_where_a_step_has_equal_text(tmp_path: Path) -> None:
    assert grid_of(experiment_with(tmp_path)).batches == DEFAULT_BATCHES
    assert grid_of(experiment_with(tmp_path, train={"batch": {"amount": 200}})).batches is None
    assert grid_of(experiment_with(tmp_path), batches="own").batches is None


def test_batches_are_not_compared_where_a_larger_one_sees_more_text(tmp_path: Path) -> None:
    values = experiment_values(tmp_path / "run", {"source": "pydocs"})
    path = write_experiment(tmp_path / "words.yaml", values)
    steps = load_experiment(path, ["train.budget={unit: steps, amount: 90}"])
    assert grid_of(steps).batches is None and grid_of(steps, batches=(8,)).batches == (8,)
    with pytest.raises(ConfigError, match="under a budget in steps a larger batch sees more text"):
        grid_of(steps, batches=(8, 16))


def test_a_batch_size_of_one_is_no_edge_below() -> None:
    figures = {1: 2.0, 2: 3.0}
    found = outcome_of(
        [
            {"batch_size": batch, "learning_rate": 1e-3, "val_sample_bits_per_char": figure}
            for batch, figure in figures.items()
        ]
    )
    assert found["best"]["batch_size"] == 1 and found["edge"] == []


def test_the_command_that_found_the_values_holds_what_was_given(tmp_path: Path) -> None:
    grid = grid_of(experiment_with(tmp_path), (1e-3, 2e-3), 77, batches=(4, 8))
    assert command_of(grid, "my own", ["train.seed=2", "root=x"]) == (
        "make tune EXPERIMENT='my own' RATES=0.001,0.002 BATCHES=4,8 BUDGET=77 SET='train.seed=2 root=x'"
    )


def test_the_sentence_covers_batches(tmp_path: Path) -> None:
    folder = report_folder(tmp_path, {"char": 0.002, "bpe": 0.004}, batches=[8, 16])
    grid = GRID.replace("; bits", ", batches of 8, 16 windows; bits")
    assert rate_sentence(WORDS, folder, [entry_of("char", 0.002), entry_of("bpe", 0.004)]) == (
        f"learning rate and batch size chosen for every contestant by the same grid ({grid}): char 0.002 with 8 "
        "windows, bpe 0.004 with 8 windows"
    )
    other = {"train": {"learning_rate": 0.004, "batch_size": 16, "budget": {"unit": "characters", "amount": 6_000}}}
    sentence = rate_sentence(WORDS, folder, [entry_of("char", 0.002), entry_of("bpe", 0.004, **other)])
    assert sentence is not None and sentence.endswith(
        "char 0.002 with 8 windows, but not bpe 0.004 with 16 windows (best in the grid: 0.004 with 8 windows)"
    )


# What a report may say

MODEL = stored_report({"model": {"vocab_size": 9}})["model"]
TEXTS = {name: {"text_sha256": name[0], "borders_sha256": "b"} for name in ("train", "val", "test")}


def entry_of(name: str, rate: float, **changes: Any) -> Entry:
    report = {
        "train": {
            "learning_rate": rate,
            "batch_size": 8,
            "seed": 3,
            "num_threads": 2,
            "budget": {"unit": "characters", "amount": 6_000},
        },
        "model": MODEL,
        "tokenizer": {"fingerprint": f"of {name}"},
        "inputs": {"texts": TEXTS},
    }
    return Entry(name, (SimpleNamespace(report=report_of(report | changes)),))  # type: ignore[arg-type]


def report_folder(
    tmp_path: Path, best: dict[str, float], edge: tuple[str, ...] = (), batches: list[int] | None = None
) -> Path:
    contestants = {
        name: {
            "best": {"batch_size": 8, "learning_rate": rate},
            "edge": ["learning_rate"] if name in edge else [],
            "seed": 1,
            "tried": [],
            "inputs": inputs_of(
                model=MODEL,
                train={"batch_size": 8, "seed": 1, "num_threads": 1, "budget": {"amount": 600}, "learning_rate": 1.0},
                varies_batches=batches is not None,
                tokenizer_fingerprint=f"of {name}",
                texts=TEXTS,
            ),
        }
        for name, rate in best.items()
    }
    tuning = {"version": VERSION, "experiment": "words", "rates": [0.001, 0.002, 0.004], "contestants": contestants}
    tuning["batches"] = batches
    write_json(tmp_path / "tune.json", seal(tuning | {"budget": {"unit": "characters", "amount": 600}}))
    return tmp_path


WORDS: Any = SimpleNamespace(name="words")
GRID = "rates 0.001, 0.002, 0.004; bits per character on the val sample after 600 characters"


def test_rates_of_one_grid_are_said_to_be_so(tmp_path: Path) -> None:
    folder = report_folder(tmp_path, {"char": 0.002, "bpe": 0.004}, edge=("bpe",))
    sentence = rate_sentence(WORDS, folder, [entry_of("char", 0.002), entry_of("bpe", 0.004)])
    assert sentence == (
        f"learning rate chosen for every contestant by the same grid ({GRID}): char 0.002, bpe 0.004 "
        "(at the edge of the grid for bpe)"
    )


def test_tuning_one_and_not_the_other_is_an_inequality(tmp_path: Path) -> None:
    folder = report_folder(tmp_path, {"char": 0.002, "bpe": 0.004})
    sentence = rate_sentence(WORDS, folder, [entry_of("char", 0.001), entry_of("bpe", 0.004)])
    assert sentence == (
        f"learning rate tuned for some contestants only, by a grid ({GRID}): bpe 0.004, but not char 0.001 "
        "(best in the grid: 0.002)"
    )
    third = [entry_of("char", 0.002), entry_of("bpe", 0.004), entry_of("new", 0.004)]
    assert "but not new 0.004 (not tried)" in str(rate_sentence(WORDS, folder, third))


def test_a_grid_whose_result_nobody_uses_is_said_to_be_so(tmp_path: Path) -> None:
    folder = report_folder(tmp_path, {"char": 0.002, "bpe": 0.004})
    sentence = rate_sentence(WORDS, folder, [entry_of("char", 0.001), entry_of("bpe", 0.001)])
    assert sentence is not None and sentence.startswith("learning rate of no contestant is what the grid found best (")
    assert sentence.endswith("char 0.001 (best in the grid: 0.002), bpe 0.001 (best in the grid: 0.004)")


def test_without_a_grid_only_unequal_rates_are_worth_a_sentence(tmp_path: Path) -> None:
    assert rate_sentence(WORDS, tmp_path, [entry_of("char", 0.001), entry_of("bpe", 0.001)]) is None
    sentence = rate_sentence(WORDS, tmp_path, [entry_of("char", 0.001), entry_of("bpe", 0.003)])
    assert sentence == "learning rates differ and no grid chose them: char 0.001, bpe 0.003"


@pytest.mark.parametrize(
    "changes",
    [
        {"inputs": {"texts": TEXTS | {"train": {"text_sha256": "other", "borders_sha256": "b"}}}},
        {"inputs": {"texts": TEXTS | {"train": {"text_sha256": "t", "borders_sha256": "other"}}}},
        {"inputs": {"texts": TEXTS | {"val": {"text_sha256": "other", "borders_sha256": "b"}}}},
        {"tokenizer": {"fingerprint": "other"}},
        {"model": MODEL | {"block_size": 32}},
        {"train": {"learning_rate": 0.004, "batch_size": 16}},
    ],
)
def test_a_grid_says_nothing_of_runs_with_other_texts_tokenizers_or_settings(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    folder = report_folder(tmp_path, {"char": 0.002, "bpe": 0.004})
    sentence = rate_sentence(WORDS, folder, [entry_of("char", 0.002), entry_of("bpe", 0.004, **changes)])
    assert sentence is not None and "but not bpe 0.004 (not tried)" in sentence
    both = [entry_of("char", 0.004, **changes), entry_of("bpe", 0.004, **changes)]
    assert rate_sentence(WORDS, folder, both) is None


def test_the_grid_of_another_experiment_in_the_same_root_is_none(tmp_path: Path) -> None:
    folder = report_folder(tmp_path, {"char": 0.002, "bpe": 0.002})
    other: Any = SimpleNamespace(name="other")
    assert rate_sentence(other, folder, [entry_of("char", 0.002), entry_of("bpe", 0.002)]) is None


def test_the_sentence_fits_real_runs(copied: Path) -> None:
    """The grid's inputs are those that the finished runs' reports hold, so written rates are recognised."""
    printed, _, _ = run_command(copied / "words.yaml", "--rates", "1e-3,1e-2,1e-1")
    rates = printed.split('SET="')[1].split('"')[0].split()
    experiment = load_experiment(copied / "words.yaml", [*rates, "seeds=[1, 2]", "train.budget.amount=900"])
    entries = Steps(experiment, echo=lambda _line: None).entries()
    best = {name: found["best"] for name, found in tuning_in(copied)["contestants"].items()}
    sentence = rate_sentence(experiment, experiment.layout.reports, entries)
    assert sentence is not None and sentence.startswith("learning rate chosen for every contestant by the same grid")
    assert ", ".join(f"{name} {pair['learning_rate']:g}" for name, pair in best.items()) in sentence
