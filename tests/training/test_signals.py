"""Signals: what is begun is saved or undone, said in one sentence, and goes on afterwards."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare import cli
from compare.experiment import load_experiment
from compare.steps import Steps
from data import files
from model import checkpoint
from model.settings import Budget
from model.training import interrupt
from model.training import loop as run_module
from model.training.interrupt import StoppedBySignal, TrainingInterrupted, ended_by_signals, stop_on_signals
from model.training.loop import FIRST_SAVE_SECONDS, Run
from model.training.progress import say
from model_helpers import ALPHABET, ENGLISH, CharTable, encoded_splits, json_lines, tiny_model, tiny_train, train_tiny

TOKENS = CharTable(ALPHABET, ["the ", "er"])
pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


class Clock:
    """Stands for the module `time`; it goes on only when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    perf_counter = staticmethod(time.perf_counter)  # what a run spends is no matter of this clock


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    root = tmp_path_factory.mktemp("house")
    return root, encoded_splits(root, TOKENS, ENGLISH, ENGLISH[:3], ENGLISH[:2])


def run(house: tuple[Path, Any], folder: Path, config: Any = None, **changes: Any) -> Any:
    root, splits = house
    settings: dict[str, Any] = {
        "contestant": "bpe",
        "tokenizer": TOKENS,
        "tokenizer_path": root / "tokenizer.json",
        "splits": splits,
        "model_config": tiny_model(TOKENS.vocab_size),
        "train_config": config or tiny_train(),
        "folder": folder,
        "progress": False,
    }
    return train_tiny(**(settings | changes))


def after_step(monkeypatch: pytest.MonkeyPatch, action: Callable[[Run], None]) -> None:
    """Call `action` after every optimizer step."""
    original = Run._step

    def spied(self: Run, *arguments: Any) -> float:
        loss = original(self, *arguments)
        action(self)
        return loss

    monkeypatch.setattr(Run, "_step", spied)


# What a signal means


@pytest.mark.parametrize("number", SIGNALS)
def test_case_55_a_signal_that_comes_twice_is_one_wish(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as wish:
        signal.raise_signal(number)
        signal.raise_signal(number)  # as `timeout` does, and `make` for its group
        assert wish.signal_name == number.name
    assert signal.getsignal(number) is before


def test_a_second_ctrl_c_after_a_second_acts_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(interrupt, "time", clock)
    with pytest.raises(KeyboardInterrupt), stop_on_signals() as wish:
        signal.raise_signal(signal.SIGINT)
        clock.now += 1.5
        signal.raise_signal(signal.SIGTERM)  # a supervisor's repeats never do
        assert wish.signal_name == "SIGINT"
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with stop_on_signals(is_repeatable=True) as wish:
        signal.raise_signal(signal.SIGINT)
        clock.now += 1.5
        signal.raise_signal(signal.SIGINT)
        assert wish.signal_name == "SIGINT"


@pytest.mark.parametrize("number", SIGNALS)
def test_case_55_a_signal_that_was_ignored_at_the_start_stays_ignored(
    house: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """`nohup` ignores SIGHUP, a shell SIGINT for its background jobs."""
    former = signal.signal(number, signal.SIG_IGN)
    try:
        after_step(monkeypatch, lambda _run: signal.raise_signal(number))
        with ended_by_signals():
            signal.raise_signal(number)
            assert run(house, tmp_path, tiny_train(3)).spent.steps == 3
        assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, former)


@pytest.mark.parametrize("number", SIGNALS[1:])
def test_the_end_by_a_signal_is_not_cut_short_by_its_repeat(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, undone = Clock(), []
    monkeypatch.setattr(interrupt, "time", clock)
    with pytest.raises(StoppedBySignal, match=number.name), ended_by_signals():
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(number)
            undone.append(True)
    assert undone
    with pytest.raises(StoppedBySignal), ended_by_signals():
        with pytest.raises(StoppedBySignal):
            signal.raise_signal(number)
        clock.now += 1.5
        signal.raise_signal(number)  # the first was lost in some library: the next one counts


# Training


def test_case_55_a_run_is_saved_within_its_first_seconds_and_then_at_its_interval(
    house: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, saved = Clock(), []
    monkeypatch.setattr(run_module, "time", clock)
    original = checkpoint.save

    def spied(path: Path, state: dict[str, Any]) -> None:
        saved.append((path.name, state["spent"]["steps"]))
        original(path, state)

    def slowly(_run: Run) -> None:
        clock.now += 4.0

    monkeypatch.setattr(checkpoint, "save", spied)
    after_step(monkeypatch, slowly)
    config = tiny_train(40, checkpoint_every_seconds=60.0, val_every_fraction=1.0)
    run(house, tmp_path, config)
    assert FIRST_SAVE_SECONDS == 10.0
    # After 12 seconds, 60 later, 60 later, and at the end.
    assert [step for name, step in saved if name == "last.pt"] == [3, 18, 33, 40]
    saved.clear()
    run(house, tmp_path, tiny_train(4, checkpoint_every_seconds=1.0, val_every_fraction=1.0), restart=True)
    assert [step for name, step in saved if name == "last.pt"] == [1, 2, 3, 4]


def test_case_26_a_first_save_changes_nothing_and_a_run_killed_after_it_ends_the_same(
    house: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def kill(self: Run) -> None:
        if self.spent.steps == 5:
            raise Killed

    run(house, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "FIRST_SAVE_SECONDS", 0.0)  # a first save, after step 1, and no other
        after_step(patch, kill)
        with pytest.raises(Killed):
            run(house, tmp_path / "killed")
    assert checkpoint.load(tmp_path / "killed/last.pt")["spent"]["steps"] == 3  # and one with the first val figure
    assert [line["step"] for line in json_lines(tmp_path / "killed/metrics.jsonl")] == [1, 2, 3, 4]
    run(house, tmp_path / "killed")
    assert json_lines(tmp_path / "killed/metrics.jsonl") == json_lines(tmp_path / "whole/metrics.jsonl")
    left, right = (checkpoint.load(tmp_path / name / "last.pt")["model"] for name in ("killed", "whole"))
    assert all((left[name] == right[name]).all() for name in right)


@pytest.mark.parametrize(
    ("unit", "amount", "words"),
    [("steps", 1200, "at step 5 of 1,200"), ("tokens", 2000, "at step 5, after 160 of 2,000 tokens")],
)
def test_case_26_a_resumed_run_says_where_it_goes_on(
    house: tuple[Path, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    unit: Any,
    amount: int,
    words: str,
) -> None:
    config = tiny_train(budget=Budget(unit, amount), val_every_fraction=1.0)
    after_step(monkeypatch, lambda run: signal.raise_signal(signal.SIGHUP) if run.spent.steps in (5, 7) else None)
    for _ in range(2):
        with pytest.raises(TrainingInterrupted, match="SIGHUP: stopped after step"):
            run(house, tmp_path, config)
    err = capsys.readouterr().err
    assert err.count("going on") == 1 and f"bpe: going on {words}, from {tmp_path / 'last.pt'}\n" in err


@pytest.mark.parametrize("number", SIGNALS)
def test_case_55_a_run_is_saved_when_nobody_listens_any_more(
    house: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """A terminal that is closed, or `make train-bpe 2>&1 | tee log`, where Ctrl-C ends `tee` as well."""
    reading, writing = os.pipe()
    os.close(reading)

    def stop(self: Run) -> None:
        if self.spent.steps == 4:
            signal.raise_signal(number)

    after_step(monkeypatch, stop)
    with open(writing, "w", buffering=1) as nobody, monkeypatch.context() as patch:  # noqa: PTH123
        patch.setattr(sys, "stderr", nobody)
        with pytest.raises(TrainingInterrupted):
            run(house, tmp_path, progress=True)
        say("nobody hears this")
        with pytest.raises(BrokenPipeError):  # so it is a pipe that breaks
            nobody.write("x\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)  # let it be closed in peace
    assert checkpoint.load(tmp_path / "last.pt")["spent"]["steps"] == 4
    assert not list(tmp_path.parent.glob(f".{tmp_path.name}.lock"))


def test_a_signal_during_the_last_save_is_not_lost(
    house: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = Run._save

    def save(self: Run) -> None:
        original(self)
        if self.spent.steps == 12:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Run, "_save", save)
    with pytest.raises(TrainingInterrupted):
        run(house, tmp_path)
    assert "SIGTERM: stopped after step 12" in capsys.readouterr().err
    assert run(house, tmp_path).num_steps_now == 0


# Every other command


def experiment(folder: Path) -> Path:
    values = experiment_values(folder / "run", write_corpus(folder / "texts"))
    values["train"] |= {"budget": {"unit": "steps", "amount": 3}, "device": "cpu"}  # type: ignore[operator]
    return write_experiment(folder / "words.yaml", values)


def exit_code(main: Callable[[], Any]) -> int:
    try:
        cli.run(main)
    except SystemExit as stop:
        return int(str(stop.code))
    return 0


WRITES: dict[str, tuple[str, Callable[[Steps], Any]]] = {
    "words_val_clean.txt": ("run/data/processed", Steps.data),
    "manifest.json": ("run/data/processed", Steps.data),
    "bpe_tokenizer.json": ("run/tokenizer", lambda steps: steps.tokenizer("bpe")),
    "val_ids.pt": ("run/data/encoded", lambda steps: steps.encode("char")),
    "test_nats.npz": ("run/checkpoints/char", lambda steps: steps.train("char")),
    "report.json": ("run/checkpoints/char", lambda steps: steps.train("char")),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_case_20_a_signal_in_the_middle_of_a_write_leaves_no_half_file_and_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    number: signal.Signals,
    code: int,
) -> None:
    folder, do = tmp_path / WRITES[name][0], WRITES[name][1]
    config = experiment(tmp_path)
    latest: list[str] = []
    make, sync = files.tempfile.mkstemp, os.fsync

    def mkstemp(dir: Path, prefix: str, suffix: str) -> tuple[int, str]:
        latest.append(prefix)
        return make(dir=dir, prefix=prefix, suffix=suffix)

    def fsync(descriptor: int) -> None:
        sync(descriptor)
        if latest[-1] == f".{name}." and folder.exists():
            latest.append("")
            signal.raise_signal(number)
            signal.raise_signal(number)

    with monkeypatch.context() as patch:
        patch.setattr(files.tempfile, "mkstemp", mkstemp)
        patch.setattr(os, "fsync", fsync)
        assert exit_code(lambda: do(Steps(load_experiment(config), echo=lambda _line: None))) == code
    last = capsys.readouterr().err.split("\r")[-1].strip().split("\n")[-1]
    assert last == f"{number.name}: stopped; what was finished is kept, run the same command again to go on"
    assert latest[-1] == "" and not (folder / name).exists()  # it came, and nothing was written
    assert not list((tmp_path / "run").rglob(".*"))  # neither a half file nor a lock
    assert exit_code(lambda: do(Steps(load_experiment(config), echo=lambda _line: None))) == 0
    assert (folder / name).exists()


def test_one_of_several_processes_speaks_for_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert exit_code(lambda: signal.raise_signal(signal.SIGTERM)) == 143
    assert capsys.readouterr().err == ""
