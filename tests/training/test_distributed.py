"""model/training/processes.py: many processes compute what one computes, one writes, and none outlives another."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from chain_helpers import experiment_values, write_corpus, write_experiment
from data.errors import ConfigError
from distributed_helpers import launch, send_all, steps_of, train_tiny
from model import checkpoint
from model.settings import Budget
from model.training.interrupt import stop_on_signals
from model.training.processes import Processes, joined_processes
from model_helpers import json_lines

ROOT = Path(__file__).resolve().parents[2]
MODERN = {"optimizer": "muon", "schedule": "linear", "order": "epochs", "ema_decay": 0.9}
FILES = {"last.pt", "best.pt", "tokenizer.json", "config.json", "metrics.jsonl"}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Encoded splits that all runs share."""
    folder = tmp_path_factory.mktemp("house")
    train_tiny(None, folder, folder / "first", {}, {})
    return folder


def losses(folder):
    return [record["loss_nats"] for record in json_lines(folder / "metrics.jsonl")]


def assert_close_runs(one, other, left, right):
    np.testing.assert_allclose(losses(one), losses(other), atol=1e-5, rtol=0)
    for name, weight in left["weights"].items():
        np.testing.assert_allclose(weight, right["weights"][name], atol=1e-4, rtol=0, err_msg=name)
    lines, others = json_lines(one / "metrics.jsonl"), json_lines(other / "metrics.jsonl")
    exact = ("step", "characters", "tokens", "flops", "learning_rate")
    assert [[line[key] for key in exact] for line in lines] == [[line[key] for key in exact] for line in others]
    figures = [[line.get("val_sample_bits_per_char", 0.0) for line in those] for those in (lines, others)]
    np.testing.assert_allclose(*figures, atol=1e-4)


# 5 windows: processes have unequal shares. One process of as many threads draws the same dropout.
@pytest.mark.parametrize(
    ("count", "threads", "model", "settings"),
    [
        (2, 1, {"dropout": 0.0}, {"batch_size": 4}),
        (2, 2, {"dropout": 0.3}, {"batch_size": 5}),
        (3, 2, {"dropout": 0.3, "preset": "modern"}, {"batch_size": 5, **MODERN}),
    ],
)
def test_many_processes_compute_what_one_computes(root, tmp_path, count, threads, model, settings):
    one = train_tiny(None, root, tmp_path / "one", model, settings | {"num_threads": count * threads})
    many = tmp_path / "many"
    outcomes = launch(train_tiny, root, many, model, settings | {"num_threads": threads}, count=count)
    assert [outcome[0] for outcome in outcomes] == ["done"] * count, outcomes
    assert_close_runs(many, tmp_path / "one", outcomes[0][1], one)
    for _, other, _ in outcomes[1:]:  # the same bits in every process
        for name, weight in outcomes[0][1]["weights"].items():
            assert np.array_equal(weight, other["weights"][name]), name
        assert np.array_equal(other["rng"], outcomes[0][1]["rng"])
    assert {path.name for path in many.iterdir()} == FILES
    environment = checkpoint.load(many / "last.pt")["environment"]
    assert (environment["num_processes"], environment["num_threads"]) == (count, threads)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_signal_to_any_process_stops_all_at_one_step_and_one_process_goes_on(root, tmp_path, capsys, rank):
    model, settings = {"dropout": 0.2}, {"num_threads": 1}
    whole = train_tiny(None, root, tmp_path / "whole", model, {"num_threads": 2})
    name = ("SIGTERM", "SIGINT")[rank]
    outcomes = launch(train_tiny, root, tmp_path / "halves", model, settings, {4: (rank, name)})
    assert [outcome[0] for outcome in outcomes] == ["TrainingInterrupted"] * 2, outcomes
    assert all(f"{name}: stopped after step 4" in message for _, message, _ in outcomes)
    assert ["stopped after step 4" in said for _, _, said in outcomes] == [True, False]
    assert steps_of(tmp_path / "halves") == 4 and len(losses(tmp_path / "halves")) == 4
    rest = train_tiny(None, root, tmp_path / "halves", model, {"num_threads": 2})
    assert "the run had 2 processes until its last save and goes on with 1" in capsys.readouterr().err
    assert_close_runs(tmp_path / "halves", tmp_path / "whole", rest, whole)


@pytest.mark.parametrize("rank", [0, 1])
def test_when_one_process_is_killed_the_others_end_with_one_sentence(root, tmp_path, rank):
    settings = {"checkpoint_every_seconds": 0.0}
    outcomes = launch(train_tiny, root, tmp_path, {}, settings, {6: (rank, "killed")})
    assert outcomes[rank][0] == "died"
    kind, message, _ = outcomes[1 - rank]
    assert kind == "ProcessLostError" and "\n" not in message
    assert message.startswith(f"process {1 - rank} stops: another of the 2 processes ended")
    assert steps_of(tmp_path) == 5  # the last save of a whole step


def test_a_loss_that_is_not_finite_is_said_once(root, tmp_path):
    outcomes = launch(train_tiny, root, tmp_path, {}, {}, {3: (1, "nan")})  # the weights of the other are sound
    assert [outcome[0] for outcome in outcomes] == ["DivergedError", "SaidByProcessZero"]
    assert "the loss became nan at step 3" in outcomes[0][1]


def test_fewer_windows_than_processes_are_refused_by_one_voice(root, tmp_path):
    outcomes = launch(train_tiny, root, tmp_path, {}, {"batch_size": 1})
    assert [outcome[0] for outcome in outcomes] == ["ConfigError", "SaidByProcessZero"]
    assert "train.batch_size 1 is less than the 2 processes" in outcomes[0][1]
    assert not tmp_path.joinpath("config.json").exists()


def test_a_budget_in_seconds_is_process_zeros_clock(root, tmp_path):
    settings = {"budget": Budget("seconds", 1), "log_every_steps": 1000}
    slow = dict.fromkeys(range(3, 6), (1, "slow"))
    outcomes = launch(train_tiny, root, tmp_path, {}, settings, slow)
    assert [outcome[0] for outcome in outcomes] == ["done"] * 2
    first, second = (value["spent"] for _, value, _ in outcomes)
    assert first.steps == second.steps == steps_of(tmp_path)
    assert first.seconds == second.seconds >= 1.0


def test_messages(tmp_path):
    for rank, (kind, seen, _) in enumerate(launch(send_all, tmp_path)):
        assert kind == "done", seen
        assert seen["first"] == "by process 0" and seen["from_main"] == 2.5
        assert seen["agree"] == (1.0, "SIGTERM"), rank
        assert seen["sums"] == (1.0, [3.0, 2.0])
        assert "the processes differ in their numbers (0 to 1)" in seen["difference"]
        said = ("ProcessLostError: process 0 stops: another process has failed, and says why",
                "DataError: only process 1 sees this")  # fmt: skip
        assert seen["together"] == said[rank]


def test_alone_nothing_is_sent():
    alone = Processes()
    assert alone.is_main and alone.agree(2.0, "SIGINT") == (2.0, "SIGINT")
    gradient = torch.ones(2)
    assert alone.sum_gradient(1.5, gradient) == 1.5 and gradient.tolist() == [1.0, 1.0]
    assert alone.from_main(lambda: 3.0) == 3.0 and alone.main_first(lambda: "x") == "x"
    done = []
    alone.only_main(lambda: done.append(1))
    alone.require_same(1, "anything")
    alone.check(batch_size=1, device=torch.device("cpu"))
    assert done == [1] and not torch.distributed.is_initialized()


@pytest.mark.parametrize(
    ("variable", "value"), [("WORLD_SIZE", "two"), ("RANK", "-1"), ("LOCAL_RANK", ""), ("RANK", "²")]
)
def test_variables_of_torchrun_that_are_no_numbers_are_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    for name, written in {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", variable: value}.items():
        monkeypatch.setenv(name, written)
    with pytest.raises(ConfigError, match=f"{variable}='{value}': expected the whole number"), joined_processes():
        raise AssertionError


@pytest.mark.parametrize("values", [{}, {"WORLD_SIZE": "1", "RANK": "0"}, {"WORLD_SIZE": "4"}])
def test_without_torchrun_there_is_one_process(monkeypatch, values):
    for name in ("WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    with joined_processes() as processes:
        assert processes == Processes()


def test_each_process_of_a_machine_takes_a_gpu_of_its_own(monkeypatch):
    taken = []
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.set_device", taken.append)
    Processes(3, 4, local_rank=1).check(8, torch.device("cuda"))
    assert taken == [1]
    with pytest.raises(ConfigError, match="process 2 of this machine finds 2 GPUs; start one process for each GPU"):
        Processes(2, 4, local_rank=2).check(8, torch.device("cuda"))


def test_a_repeated_signal_is_one_wish_only_where_that_is_asked_for():
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals(is_repeatable=True) as wish:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert wish.signal_name == "SIGTERM"
    assert signal.getsignal(signal.SIGTERM) is before


def torchrun(config, *arguments):
    """`scripts.train` by two processes, as the Makefile starts them."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["-m", "scripts.train", "--config", str(config), "--contestant", "bpe", *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.slow
def test_torchrun_trains_scores_stops_and_goes_on(tmp_path):
    values = experiment_values(tmp_path / "root", write_corpus(tmp_path / "corpus"))
    config = write_experiment(tmp_path / "words.yaml", values)
    folder = tmp_path / "root" / "checkpoints" / "bpe"
    # Without an end of its own, so that the signal always finds it at work.
    endless = ["--set", "train.budget.amount=100_000_000", "--set", "train.log_every_steps=1"]
    launcher = torchrun(config, *endless)
    deadline = time.monotonic() + 100
    while not (folder / "metrics.jsonl").exists() or len(losses(folder)) < 3:
        assert time.monotonic() < deadline and launcher.poll() is None, launcher.communicate()
        time.sleep(0.1)
    launcher.send_signal(signal.SIGTERM)
    _, errors = launcher.communicate(timeout=60)
    assert launcher.returncode != 0
    assert errors.count("SIGTERM: stopped after step") == 1, errors
    assert steps_of(folder) == len(losses(folder)) >= 3
    assert not list(folder.glob(".*.part"))

    launcher = torchrun(config, "--force")
    printed, errors = launcher.communicate(timeout=100)
    assert launcher.returncode == 0, errors
    assert printed.count("train bpe: wrote") == 1 and printed.count("tokenizer bpe: up to date") == 1
    assert "2 processes of 1 threads" in errors
    assert (folder / "report.json").exists()


@pytest.mark.slow
def test_torchrun_says_a_mistake_once(tmp_path):
    launcher = torchrun(tmp_path / "absent.yaml")
    _, errors = launcher.communicate(timeout=100)
    assert launcher.returncode != 0
    assert errors.count("absent.yaml does not exist") == 1
