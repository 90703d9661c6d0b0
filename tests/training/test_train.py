"""model/train.py and what it is made of: budgets, resume bit for bit, refusals, interrupts."""

import dataclasses
import json
import math
import re
import signal
import threading

import pytest
import torch

from data.config import build
from data.errors import CheckpointError, ConfigError, DataError
from model import checkpoint
from model.settings import Budget, Spent, TrainConfig
from model.training.device import choose_compile, choose_dtype
from model.training.interrupt import TrainingInterrupted
from model.training.loop import Run
from model.training.metrics import MetricsLog, read_metrics
from model.training.schedule import is_evaluation_due, learning_rate_factor
from model_helpers import ALPHABET, ENGLISH, CharTable, encoded_splits, json_lines, tiny_model, tiny_train, train_tiny

TOKENS = CharTable(ALPHABET, ["the ", "er"])


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """Splits and tokenizer that all tests share; runs go into folders of their own."""
    root = tmp_path_factory.mktemp("house")
    return root, encoded_splits(root, TOKENS, ENGLISH, ENGLISH[:3], ENGLISH[:2])


def run(house, folder, config=None, **changes):
    root, splits = house
    settings = {
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


def at_step(monkeypatch, step, action):
    """Call `action` right after optimizer step `step`."""
    original = Run._step

    def spied(self, *arguments):
        loss = original(self, *arguments)
        if self.spent.steps == step:
            action()
        return loss

    monkeypatch.setattr(Run, "_step", spied)


def without_times(state):
    spent = {k: v for k, v in state["spent"].items() if "seconds" not in k}
    return {key: value for key, value in {**state, "spent": spent}.items() if key != "metrics_sha256"}  # of times too


def assert_same(left, right, where="state"):
    if isinstance(left, torch.Tensor):
        assert torch.equal(left, right), where
    elif isinstance(left, dict):
        assert left.keys() == right.keys(), where
        for key in left:
            assert_same(left[key], right[key], f"{where}.{key}")
    elif isinstance(left, list | tuple):
        assert len(left) == len(right), where
        for index, (a, b) in enumerate(zip(left, right, strict=True)):
            assert_same(a, b, f"{where}[{index}]")
    else:
        assert left == right, where


def assert_same_run(one, other):
    for name in ("last.pt", "best.pt"):
        assert_same(without_times(checkpoint.load(one / name)), without_times(checkpoint.load(other / name)), name)
    assert json_lines(one / "metrics.jsonl") == json_lines(other / "metrics.jsonl")


@pytest.fixture(scope="module")
def uninterrupted(house, tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    run(house, folder)
    return folder


# 3, 6, 9 are steps with a val figure, 12 is the last.
@pytest.mark.parametrize("step", [1, 2, 3, 5, 6, 7, 11, 12])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_resumed_run_equals_an_uninterrupted_one(house, uninterrupted, tmp_path, monkeypatch, capsys, step, number):
    before = signal.getsignal(number)
    with monkeypatch.context() as patch:
        at_step(patch, step, lambda: signal.raise_signal(number))
        with pytest.raises(TrainingInterrupted, match=f"{number.name}: stopped after step {step}, saved .*last.pt"):
            run(house, tmp_path)
    assert signal.getsignal(number) is before
    assert ("run the same command again" if step < 12 else "the run is finished") in capsys.readouterr().err
    assert checkpoint.load(tmp_path / "last.pt")["spent"]["steps"] == step
    torch.rand(7)  # whatever else the program does between
    result = run(house, tmp_path)
    assert result.num_steps_now == 12 - step
    assert_same_run(tmp_path, uninterrupted)


MODERN = {
    "optimizer": "muon", "schedule": "linear", "order": "epochs", "ema_decay": 0.9, "muon_rate": 2.0, "table_rate": 3.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def modern_run(house, tmp_path_factory):
    folder = tmp_path_factory.mktemp("modern")
    run(house, folder, **modern_settings())
    return folder


def modern_settings(**changes):
    # 128 windows a step are more than an epoch: every step is in the middle of one and over the end of another.
    return {
        "model_config": tiny_model(TOKENS.vocab_size, preset="modern", dropout=0.2),
        "config": tiny_train(**{"batch_size": 128, **MODERN, **changes}),
    }


@pytest.mark.parametrize("step", [1, 4, 6, 11])
def test_a_resumed_modern_run_equals_an_uninterrupted_one(house, modern_run, tmp_path, monkeypatch, step):
    with monkeypatch.context() as patch:
        at_step(patch, step, lambda: signal.raise_signal(signal.SIGTERM))
        with pytest.raises(TrainingInterrupted):
            run(house, tmp_path, **modern_settings())
    torch.rand(5)
    run(house, tmp_path, **modern_settings())
    assert_same_run(tmp_path, modern_run)


@pytest.mark.parametrize("num_threads", [2, 3])
def test_a_run_by_several_threads_is_resumed_bit_for_bit(house, tmp_path, monkeypatch, num_threads):
    config = tiny_train(num_threads=num_threads)
    run(house, tmp_path / "whole", config)
    with monkeypatch.context() as patch:
        at_step(patch, 5, lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(TrainingInterrupted):
            run(house, tmp_path / "halves", config)
    run(house, tmp_path / "halves", config)
    assert_same_run(tmp_path / "halves", tmp_path / "whole")


def test_best_holds_the_average_of_the_weights_by_its_formula(house, tmp_path, monkeypatch):
    weights = []
    original = Run._step

    def spied(self, *arguments):
        if not weights:
            weights.append({k: v.clone() for k, v in self.model.state_dict().items()})
        loss = original(self, *arguments)
        weights.append({k: v.clone() for k, v in self.model.state_dict().items()})
        return loss

    monkeypatch.setattr(Run, "_step", spied)
    run(house, tmp_path, tiny_train(4, ema_decay=0.8, val_every_fraction=1.0))
    best, last = checkpoint.load(tmp_path / "best.pt"), checkpoint.load(tmp_path / "last.pt")
    for name, first in weights[0].items():
        average = first
        for step in weights[1:]:
            average = 0.8 * average + 0.2 * step[name]
        torch.testing.assert_close(best["model"][name], average)
        assert torch.equal(last["model"][name], weights[-1][name])  # training goes on from the weights themselves


def test_how_a_run_is_computed_is_printed_and_recorded(house, tmp_path, capsys):
    run(house, tmp_path, tiny_train(1, dtype="float32"), progress=True)
    assert "bpe: cpu, 1 threads, float32 products, without torch.compile" in capsys.readouterr().err
    environment = checkpoint.load(tmp_path / "last.pt")["environment"]
    assert (environment["dtype"], environment["compile"], environment["num_threads"]) == ("float32", False, 1)


def test_bfloat16_can_be_asked_for(house, tmp_path):
    run(house, tmp_path, tiny_train(2, dtype="bfloat16"))
    state = checkpoint.load(tmp_path / "last.pt")
    assert state["environment"]["dtype"] == "bfloat16"
    assert all(value.dtype == torch.float32 for value in state["model"].values())


def test_torch_compile_on_a_cpu_is_refused(house, tmp_path):
    with pytest.raises(ConfigError, match=r"train.compile is 'on', but the CPU .* set it to 'auto' or 'off'"):
        run(house, tmp_path, tiny_train(compile="on"))
    assert not choose_compile("auto", torch.device("cpu"))
    assert not choose_compile("off", torch.device("cuda"))


def test_auto_dtype_is_float32_on_every_cpu(monkeypatch):
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    for has_bfloat16 in (False, True):
        monkeypatch.setattr("torch.cpu.get_capabilities", lambda has=has_bfloat16: {"avx512_bf16": has})
        monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda has=has_bfloat16: has)
        assert choose_dtype("auto", cpu) == torch.float32
        assert choose_dtype("auto", gpu) == (torch.bfloat16 if has_bfloat16 else torch.float32)
    assert choose_dtype("float32", cpu) == torch.float32 and choose_dtype("bfloat16", cpu) == torch.bfloat16


def test_the_linear_schedule_stays_at_its_peak_and_comes_down_at_the_end():
    def rate(progress):
        config = tiny_train(
            budget=Budget("tokens", 1000), warmup_fraction=0.1, min_learning_rate_ratio=0.1, schedule="linear"
        )
        return learning_rate_factor(config, 1000 * progress)

    assert rate(0.0) == pytest.approx(0.1)
    assert rate(0.1) == rate(0.3) == rate(0.6) == pytest.approx(1.0)
    assert rate(0.8) == pytest.approx(0.1 + 0.9 * 0.5)
    assert rate(1.0) == rate(1.3) == pytest.approx(0.1)


def test_a_run_killed_after_its_last_save_repeats_no_line(house, uninterrupted, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def kill():
        raise Killed

    # Every step saves; step 5 dies with a line more than the checkpoint knows, and half of another.
    config = tiny_train(checkpoint_every_seconds=0.0)
    with monkeypatch.context() as patch:
        at_step(patch, 5, kill)
        with pytest.raises(Killed):
            run(house, tmp_path, config)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 5, "loss_nats": 1.0}\n{"step": 6, "lo')
    assert checkpoint.load(tmp_path / "last.pt")["spent"]["steps"] == 4
    run(house, tmp_path)  # how often to save is no part of a run's identity
    assert json_lines(tmp_path / "metrics.jsonl") == json_lines(uninterrupted / "metrics.jsonl")
    assert [record["step"] for record in json_lines(tmp_path / "metrics.jsonl")] == list(range(1, 13))


def test_one_seed_gives_one_run_and_another_seed_another(house, uninterrupted, tmp_path):
    run(house, tmp_path / "again")
    assert_same_run(tmp_path / "again", uninterrupted)
    run(house, tmp_path / "other", tiny_train(seed=2))
    assert json_lines(tmp_path / "other" / "metrics.jsonl") != json_lines(uninterrupted / "metrics.jsonl")


def test_evaluating_more_often_changes_no_loss(house, uninterrupted, tmp_path):
    run(house, tmp_path, tiny_train(val_every_fraction=0.08, val_characters=2))
    often, seldom = json_lines(tmp_path / "metrics.jsonl"), json_lines(uninterrupted / "metrics.jsonl")
    assert sum("val_sample_bits_per_char" in record for record in often) == 12
    assert sum("val_sample_bits_per_char" in record for record in seldom) == 4
    assert [record["loss_nats"] for record in often] == [record["loss_nats"] for record in seldom]


def test_metrics_and_files_of_a_run(house, uninterrupted):
    records = json_lines(uninterrupted / "metrics.jsonl")
    assert records[0].keys() == {"step", "characters", "tokens", "flops", "loss_nats", "learning_rate"}
    assert [record["step"] for record in records if "val_sample_bits_per_char" in record] == [3, 6, 9, 12]
    assert {path.name for path in uninterrupted.iterdir()} == {
        "last.pt", "best.pt", "tokenizer.json", "config.json", "metrics.jsonl",
    }  # fmt: skip
    root, splits = house
    assert (uninterrupted / "tokenizer.json").read_bytes() == (root / "tokenizer.json").read_bytes()
    config = json.loads((uninterrupted / "config.json").read_text())
    assert config["train_config"]["learning_rate"] == 1e-3
    assert config["model_config"]["vocab_size"] == TOKENS.vocab_size
    assert config["data"]["train"]["text_sha256"] == splits["train"].text_sha256


def test_what_was_spent_is_exact(house, tmp_path):
    _, splits = house
    config = tiny_train(5)
    result = run(house, tmp_path, config)
    from model.batches import RandomWindows
    from model.gpt import MiniGPT

    windows = RandomWindows(splits["train"], block_size=8, batch_size=4, seed=1)
    characters = sum(len(TOKENS.decode(row)) for step in range(5) for row in windows.batch(step)[1].tolist())
    spent = result.spent
    assert (spent.characters, spent.tokens, spent.steps) == (characters, 5 * 4 * 8, 5)
    assert spent.flops == 160 * MiniGPT(tiny_model(TOKENS.vocab_size)).flops_per_token()
    assert spent.seconds > 0 and spent.evaluation_seconds > 0


@pytest.mark.parametrize(
    ("unit", "amount"), [("characters", 100), ("tokens", 65), ("tokens", 64), ("steps", 3), ("flops", 10**6)]
)
def test_a_run_stops_at_the_first_step_that_reaches_the_budget(house, tmp_path, unit, amount):
    result = run(house, tmp_path, tiny_train(budget=Budget(unit, amount)))
    records = json_lines(tmp_path / "metrics.jsonl")
    key = "step" if unit == "steps" else unit
    assert records[-1][key] >= amount
    assert all(record[key] < amount for record in records[:-1])
    assert len(records) == result.spent.steps
    assert "val_sample_bits_per_char" in records[-1]


def test_a_budget_in_seconds_ends(house, tmp_path):
    result = run(house, tmp_path, tiny_train(budget=Budget("seconds", 1), log_every_steps=1000))
    assert 1.0 <= result.spent.seconds < 1.5


def test_best_is_the_step_with_the_lowest_val_figure(house, uninterrupted):
    figures = {
        r["step"]: r["val_sample_bits_per_char"]
        for r in json_lines(uninterrupted / "metrics.jsonl")
        if "val_sample_bits_per_char" in r
    }
    best = checkpoint.load(uninterrupted / "best.pt")
    assert best["best"]["step"] == min(figures, key=figures.get)
    assert best["best"]["val_sample_bits_per_char"] == min(figures.values())
    assert best["spent"]["steps"] == best["best"]["step"]


def test_a_figure_that_worsens_does_not_replace_best(house, tmp_path, monkeypatch):
    figures = iter([3.0, 2.0, 2.5, 2.0])
    monkeypatch.setattr("model.training.loop.quick_bits_per_char", lambda *_: next(figures))
    result = run(house, tmp_path)
    assert (result.best_step, result.best_val_sample_bits_per_char) == (6, 2.0)
    assert checkpoint.load(tmp_path / "best.pt")["spent"]["steps"] == 6


def test_a_finished_run_returns_at_once_and_says_so(house, uninterrupted, monkeypatch):
    before = {path.name: path.stat().st_mtime_ns for path in uninterrupted.iterdir()}
    monkeypatch.setattr("model.train.Run", None)  # neither model nor optimizer is built for it
    result = run(house, uninterrupted)
    assert result.num_steps_now == 0 and result.spent.steps == 12
    assert before == {path.name: path.stat().st_mtime_ns for path in uninterrupted.iterdir()}


def test_restart_begins_anew_and_clears_old_results(house, tmp_path):
    run(house, tmp_path, tiny_train(4, seed=9))
    for name in ("report.json", "val_nats.npz"):
        (tmp_path / name).write_text("old")
    result = run(house, tmp_path, tiny_train(3), restart=True)
    assert (result.spent.steps, result.num_steps_now) == (3, 3)
    assert len(json_lines(tmp_path / "metrics.jsonl")) == 3
    assert not (tmp_path / "report.json").exists() and not (tmp_path / "val_nats.npz").exists()


def test_the_loss_falls(house, tmp_path):
    run(house, tmp_path, tiny_train(150, learning_rate=1e-2, val_every_fraction=1.0))
    losses = [record["loss_nats"] for record in json_lines(tmp_path / "metrics.jsonl")]
    assert sum(losses[-10:]) < 0.75 * sum(losses[:10])


# Refusals


def test_resuming_with_other_settings_names_them_both_ways(house, uninterrupted):
    with pytest.raises(CheckpointError) as caught:
        run(house, uninterrupted, tiny_train(learning_rate=3e-3, budget=Budget("steps", 13)))
    message = str(caught.value)
    assert "train.learning_rate was 0.001, is 0.003" in message
    assert "train.budget.amount was 12, is 13" in message
    assert "last.pt" in message and "FORCE=1" in message and "put them back" in message


def test_resuming_with_another_model_is_refused(house, uninterrupted):
    with pytest.raises(CheckpointError, match=r"model\.num_layers was 2, is 1"):
        run(house, uninterrupted, model_config=tiny_model(TOKENS.vocab_size, num_layers=1))


def test_resuming_with_another_tokenizer_of_equal_size_is_refused(uninterrupted, tmp_path):
    other = CharTable(ALPHABET, ["the ", "en"])
    assert other.vocab_size == TOKENS.vocab_size
    house = (tmp_path, encoded_splits(tmp_path, other, ENGLISH, ENGLISH[:3]))
    with pytest.raises(CheckpointError) as caught:
        run(house, uninterrupted, tokenizer=other)
    assert TOKENS.fingerprint()[:12] in str(caught.value) and other.fingerprint()[:12] in str(caught.value)


def test_resuming_on_another_text_is_refused(uninterrupted, tmp_path):
    house = (tmp_path, encoded_splits(tmp_path, TOKENS, ENGLISH[1:], ENGLISH[:3]))
    with pytest.raises(CheckpointError, match="was trained on train data with text_sha256"):
        run(house, uninterrupted)


def test_resuming_as_another_contestant_is_refused(house, uninterrupted):
    with pytest.raises(CheckpointError, match="is of contestant 'bpe', not of 'other'"):
        run(house, uninterrupted, contestant="other")


def test_resuming_with_another_history_of_the_same_tokenizer_is_allowed(house, tmp_path, monkeypatch):
    root, _ = house
    at_step(monkeypatch, 2, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(TrainingInterrupted):
        run(house, tmp_path / "run")
    other_file = tmp_path / "tokenizer.json"
    other_file.write_text((root / "tokenizer.json").read_text() + "\n")
    assert run(house, tmp_path / "run", tokenizer_path=other_file).spent.steps == 12
    checkpoint.load_model(tmp_path / "run", "best", TOKENS, other_file)


def test_a_damaged_checkpoint_is_refused(house, tmp_path):
    run(house, tmp_path, tiny_train(1))
    (tmp_path / "last.pt").write_bytes((tmp_path / "last.pt").read_bytes()[:1000])
    with pytest.raises(CheckpointError, match="damaged"):
        run(house, tmp_path, tiny_train(1))


def test_a_lost_metrics_file_is_refused(house, tmp_path, monkeypatch):
    at_step(monkeypatch, 2, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(TrainingInterrupted):
        run(house, tmp_path)
    (tmp_path / "metrics.jsonl").unlink()
    with pytest.raises(CheckpointError, match="has 0 lines, but the checkpoint next to it was written after 2"):
        run(house, tmp_path)


def test_the_vocabulary_comes_from_the_tokenizer(house, tmp_path):
    with pytest.raises(ConfigError, match="vocab_size 99"):
        run(house, tmp_path, model_config=tiny_model(99))


def test_a_train_split_without_a_window_or_an_empty_val_leaves_nothing_behind(house, tmp_path):
    _, splits = house
    short = dataclasses.replace(splits["train"], ids=splits["train"].ids[:8])
    with pytest.raises(DataError, match="8 tokens"):
        run(house, tmp_path / "run", splits=splits | {"train": short})
    empty = dataclasses.replace(splits["val"], ids=splits["val"].ids[:0])
    with pytest.raises(DataError, match="'val'"):
        run(house, tmp_path / "run", splits=splits | {"val": empty})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_last_good_state(house, tmp_path, monkeypatch, value):
    original = Run._step

    def spoil(self, *arguments):
        if self.spent.steps == 7:
            with torch.no_grad():
                self.model.final_norm.bias.fill_(value)
        return original(self, *arguments)

    monkeypatch.setattr(Run, "_step", spoil)
    with pytest.raises(ConfigError) as caught:
        run(house, tmp_path)
    message = str(caught.value)
    assert "at step 8" in message and "lower train.learning_rate" in message and "last.pt keeps" in message
    state = checkpoint.load(tmp_path / "last.pt")
    assert state["spent"]["steps"] == 6  # the last val figure that was better
    assert all(bool(torch.isfinite(value).all()) for value in state["model"].values())


def test_an_absurd_learning_rate_ends_in_that_error_before_anything_is_saved(house, tmp_path):
    with pytest.raises(ConfigError, match="no checkpoint had been saved yet"):
        run(house, tmp_path, tiny_train(learning_rate=1e30, weight_decay=1e9))
    assert not (tmp_path / "last.pt").exists() and not (tmp_path / "best.pt").exists()


def test_a_val_figure_that_is_not_finite_is_no_best(house, tmp_path, monkeypatch):
    monkeypatch.setattr("model.training.loop.quick_bits_per_char", lambda *_: math.nan)
    with pytest.raises(ConfigError, match="the val sample figure became nan at step"):
        run(house, tmp_path)
    assert not (tmp_path / "best.pt").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_that_is_not_there_is_refused(house, tmp_path):
    with pytest.raises(ConfigError, match="torch finds no GPU"):
        run(house, tmp_path, tiny_train(device="cuda"))


def test_the_number_of_threads_is_put_back(house, tmp_path):
    before = torch.get_num_threads()
    run(house, tmp_path, tiny_train(1, num_threads=before + 1))
    assert torch.get_num_threads() == before
    assert checkpoint.load(tmp_path / "last.pt")["environment"]["num_threads"] == before + 1


def test_training_works_outside_the_main_thread(house, tmp_path):
    results = []
    thread = threading.Thread(target=lambda: results.append(run(house, tmp_path, tiny_train(2))))
    thread.start()
    thread.join()
    assert results[0].spent.steps == 2


def test_a_progress_bar_shows_loss_and_bits(house, tmp_path, capsys):
    run(house, tmp_path, tiny_train(3), progress=True)
    shown = capsys.readouterr().err
    assert "bits/char" in shown and "nats/token" in shown and "3.00/3.00" in shown


# The pieces


def test_the_learning_rate_rises_then_falls_as_a_function_of_progress():
    def rate(progress):
        config = tiny_train(budget=Budget("tokens", 1000), warmup_fraction=0.1, min_learning_rate_ratio=0.2)
        return learning_rate_factor(config, 1000 * progress)

    assert rate(0.0) == pytest.approx(0.2)
    assert rate(0.05) == pytest.approx(0.6)
    assert rate(0.1) == pytest.approx(1.0)
    assert rate(0.55) == pytest.approx(0.6)
    assert rate(1.0) == rate(1.7) == pytest.approx(0.2)
    assert learning_rate_factor(tiny_train(warmup_fraction=0.0), 0.0) == pytest.approx(1.0)


def test_evaluations_are_due_at_multiples_and_at_the_end():
    assert not is_evaluation_due(0.0, 0.09, 0.1)
    assert is_evaluation_due(0.09, 0.11, 0.1)
    assert not is_evaluation_due(0.11, 0.19, 0.1)
    assert is_evaluation_due(0.5, 1.0, 1.0) and is_evaluation_due(0.95, 1.02, 0.6)


def test_progress_is_the_spent_share_of_the_budget():
    spent = Spent(characters=50, tokens=20, steps=2, flops=10**9, seconds=1.5)
    for unit, share in {"characters": 0.5, "tokens": 0.2, "steps": 0.02, "flops": 1e7, "seconds": 0.015}.items():
        assert spent.progress(Budget(unit, 100)) == pytest.approx(share)


def test_a_configuration_is_built_from_plain_values():
    values = {"budget": {"unit": "flops", "amount": 1.0e12}, "learning_rate": "3e-4", "num_threads": None}
    config = build(TrainConfig, values, "x.yaml: train")
    assert config.budget == Budget("flops", 10**12) and config.learning_rate == 3e-4
    with pytest.raises(ConfigError, match="amount must be at least 1, found 0: no step could be taken"):
        build(TrainConfig, {"budget": {"amount": 0}}, "x.yaml: train")


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_size": 0}, {"learning_rate": 0.0}, {"learning_rate": math.nan}, {"beta1": 1.0},
        {"warmup_fraction": 1.0},
        {"beta2": -0.1}, {"gradient_clip": 0.0}, {"min_learning_rate_ratio": 1.1}, {"val_every_fraction": 0.0},
        {"val_characters": 0}, {"weight_decay": -1.0}, {"seed": -1}, {"num_threads": 0}, {"log_every_steps": 0},
        {"checkpoint_every_seconds": -1.0}, {"ema_decay": 1.0}, {"warmdown_fraction": 0.0},
        {"muon_rate": 0.0}, {"muon_rate": math.inf}, {"table_rate": -1.0}, {"table_rate": 1e5},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused_by_name(changes):
    with pytest.raises(ConfigError, match=next(iter(changes))):
        TrainConfig(**changes)


def test_metrics_lines_beyond_the_checkpoint_are_cut_and_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, 0)
    whole = {"characters": 1, "tokens": 1, "flops": 1, "seconds": 0.5, "loss_nats": 1.0, "learning_rate": 0}
    one, two, three = ({"step": step} | whole for step in (1, 2, 3))
    log.append(one)
    log.append(two)
    assert log.num_lines == 2
    assert read_metrics(path, mend="make it") == [one, two]
    MetricsLog(path, 1).append(three)
    assert read_metrics(path, mend="make it") == [one, three]
    first = json.dumps(one)
    for damaged, said in (
        ('{"st', "not valid JSON"),
        ("{}", "key 'step' is missing"),
        ("[]", "expected an object, found a list of 0"),
        (json.dumps(one | {"loss_nats": None}), "key 'loss_nats': expected a number, found null"),
        (
            json.dumps(one | {"val_sample_bits_per_char": "1"}),
            "key 'val_sample_bits_per_char' is '1', not a finite number",
        ),
    ):
        path.write_text(f"{first}\n{damaged}\n")
        with pytest.raises(DataError, match=rf"metrics.jsonl, line 2: .*{re.escape(said)}.*; run `make it`$"):
            read_metrics(path, mend="make it")
