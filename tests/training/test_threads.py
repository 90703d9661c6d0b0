"""model/machine/threads.py: who says how many threads a run takes, and that a measured number is kept."""

import dataclasses
import json

import pytest
import torch

from model import checkpoint
from model.machine import threads
from model.run_spec import RunSpec
from model.settings import TrainConfig
from model.train import train
from model.training.processes import Processes
from model_helpers import ALPHABET, ENGLISH, CharTable, encoded_splits, tiny_model, tiny_train


@pytest.fixture
def spec(tmp_path):
    """A run whose settings leave the number open."""
    tokenizer = CharTable(ALPHABET)
    splits = encoded_splits(tmp_path, tokenizer, ENGLISH, ENGLISH[:3], ENGLISH[:2])
    model, config = tiny_model(tokenizer.vocab_size), tiny_train(2, num_threads=None)
    return RunSpec("char", tokenizer, tmp_path / "tokenizer.json", splits, model, config, tmp_path / "run")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Of two threads one is found to be faster; where that is kept, and how often it was found."""
    path, calls = tmp_path / "cache" / "threads.json", []
    monkeypatch.setattr(threads, "kept_in", lambda: path)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(threads, "measured", lambda *_: calls.append(1) or {2: 0.02, 1: 0.01})
    return path, calls


def changed(spec, **settings):
    return dataclasses.replace(spec, train_config=dataclasses.replace(spec.train_config, **settings))


def test_the_fastest_number_is_taken_said_and_kept(spec, kept, capsys):
    path, calls = kept
    assert threads.threads_of(spec, None, Processes()) == 1
    assert f"1 of 2 threads, by ms a step (2: 20.0, 1: 10.0); kept in {path}" in capsys.readouterr().err
    assert threads.threads_of(spec, None, Processes()) == 1
    assert len(calls) == 1 and capsys.readouterr().err == ""


def test_other_shapes_are_measured_for_themselves(spec, kept):
    path, calls = kept
    others = [
        spec,
        changed(spec, batch_size=7),
        changed(spec, optimizer="muon"),
        dataclasses.replace(spec, model_config=dataclasses.replace(spec.model_config, num_layers=5)),
    ]
    for other in others * 2:
        threads.threads_of(other, None, Processes())
    assert len(calls) == len(json.loads(path.read_text())) == len(others)


def test_contestants_that_differ_in_the_vocabulary_have_the_same_threads():
    keys = {threads.key_of(tiny_model(size), TrainConfig(), 2) for size in (11, 12)}
    assert len(keys) == 1
    assert threads.key_of(tiny_model(11), TrainConfig(), 4) not in keys


@pytest.mark.parametrize("content", ["", "[]", "no json", '{"KEY": 0}', '{"KEY": "1"}', '{"KEY": true}', '{"KEY": 3}'])
def test_what_is_kept_and_makes_no_sense_is_measured_again(spec, kept, content):
    path, calls = kept
    path.parent.mkdir()
    path.write_text(content.replace("KEY", threads.key_of(spec.model_config, spec.train_config, 2)))
    assert threads.threads_of(spec, None, Processes()) == 1
    assert len(calls) == 1
    assert threads.threads_of(spec, None, Processes()) == 1
    assert len(calls) == 1


def test_a_folder_that_keeps_nothing_is_said(spec, kept, capsys):
    path, _ = kept
    path.parent.write_text("a file")
    assert threads.threads_of(spec, None, Processes()) == 1
    assert "set train.num_threads to have the same again" in capsys.readouterr().err


def test_the_setting_wins_then_the_checkpoint(spec, kept):
    _, calls = kept
    state = {"environment": {"num_threads": 5, "num_processes": 1, "device": "cpu"}}
    assert threads.threads_of(changed(spec, num_threads=3), state, Processes()) == 3
    assert threads.threads_of(spec, state, Processes()) == 5
    assert not calls


def test_several_processes_and_a_single_thread_measure_nothing(spec, kept, monkeypatch):
    _, calls = kept
    state = {"environment": {"num_threads": 5, "num_processes": 1, "device": "cpu"}}
    assert threads.threads_of(spec, None, Processes(0, 2)) is None
    assert threads.threads_of(spec, state, Processes(0, 2)) is None
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert threads.threads_of(spec, None, Processes()) is None
    assert not calls


def test_a_measurement_changes_nothing_else(monkeypatch):
    monkeypatch.setattr(threads, "SECONDS", 0.0)
    torch.manual_seed(5)
    before = torch.get_rng_state(), torch.get_num_threads()
    assert list(threads.measured(tiny_model(11), TrainConfig(batch_size=3), 2)) == [2, 1]
    assert torch.equal(torch.get_rng_state(), before[0]) and torch.get_num_threads() == before[1]
    monkeypatch.setattr(threads, "_LONG_STEP", 0.0)
    assert list(threads.measured(tiny_model(11), TrainConfig(batch_size=3), 4)) == [4]


def test_halves_are_tried():
    assert [threads.candidates(most) for most in (1, 2, 6)] == [[1], [2, 1], [6, 3, 1]]


def test_a_run_records_the_measured_number_and_goes_on_with_it(spec, monkeypatch):
    monkeypatch.setattr(threads, "kept_or_measured", lambda *_: 2)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        train(spec, progress=False)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    state = checkpoint.load(spec.folder / checkpoint.LAST)
    assert state["environment"]["num_threads"] == 2
    assert threads.threads_of(spec, state, Processes()) == 2
