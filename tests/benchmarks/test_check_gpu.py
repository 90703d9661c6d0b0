"""The GPU check on the CPU: rate, MFU, stop and resume; and the command without a GPU and with one that is imitated."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from bench import gpu
from bench.gpu import Check, as_text, measure, resume_once
from chain_helpers import experiment_values, write_corpus, write_experiment
from compare import cli
from compare.experiment import load_experiment
from compare.steps import Steps
from data.files import read_json
from model import checkpoint
from model.gpt import MiniGPT
from model.settings import MiniGPTConfig


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    folder = tmp_path_factory.mktemp("check")
    values = experiment_values(folder / "run", write_corpus(folder / "texts"))
    config = write_experiment(folder / "words.yaml", values)
    return Check(Steps(load_experiment(config), echo=lambda _line: None), "char", folder / "check")


@pytest.fixture(scope="module")
def speed(check: Check) -> dict[str, Any]:
    return measure(check, device="cpu", seconds=1)


@pytest.fixture(scope="module")
def resume(check: Check) -> dict[str, Any]:
    return resume_once(check, device="cpu", steps=200)


def test_the_rate_is_that_of_the_run_after_its_warm_part(check: Check, speed: dict[str, Any]) -> None:
    assert 1.0 <= speed["seconds"] < 1.5
    assert speed["tokens_per_step"] == 8 * 16
    whole = speed["steps"] * speed["tokens_per_step"] / speed["seconds"]
    assert 0.5 * whole < speed["tokens_per_second"] < 2.0 * whole
    config = read_json(check.folder / "speed" / "config.json")["model_config"]
    model = MiniGPT(MiniGPTConfig(**config))
    assert speed["model_tflops"] * 1e12 == pytest.approx(speed["tokens_per_second"] * model.flops_per_token())
    assert speed["parameters"] == model.num_parameters()
    assert (speed["device"], speed["torch"]) == ("cpu", str(torch.__version__))
    assert speed["last_loss_nats"] < speed["first_loss_nats"]


def test_a_resumed_run_is_equal_bit_for_bit_on_the_cpu(check: Check, resume: dict[str, Any]) -> None:
    assert 100 <= resume["stopped_at"] < 200
    assert (resume["repeat_difference"], resume["resume_difference"], resume["is_equal"]) == (0.0, 0.0, True)
    assert checkpoint.load(check.folder / "stopped" / "last.pt")["spent"]["steps"] == 200


@pytest.mark.parametrize(
    ("repeat", "resumed", "is_equal"),
    [(0.0, 1e-9, False), (1e-6, 0.0, True), (1e-6, 1e-3, True), (1e-3, 2e-2, False)],
)
def test_where_equal_runs_are_equal_a_resumed_one_must_be_and_elsewhere_nearly(
    check: Check, monkeypatch: pytest.MonkeyPatch, repeat: float, resumed: float, is_equal: bool
) -> None:
    differences = iter([repeat, resumed])
    monkeypatch.setattr(gpu, "_difference", lambda *_: next(differences))
    monkeypatch.setattr(gpu, "_train_and_stop", lambda *_, **__: 1)
    monkeypatch.setattr(Check, "train", lambda *_, **__: None)
    monkeypatch.setattr(gpu, "_weights", lambda _folder: torch.zeros(1))
    assert resume_once(check, device="cpu", steps=2)["is_equal"] is is_equal


def test_a_resume_that_forgets_something_is_found(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dropout of the second half follows from torch's generator: without it the weights come out otherwise."""
    from model.training.loop import Run

    original = Run.resume

    def forgetful(run: Run, state: dict[str, Any]) -> None:
        original(run, state)
        torch.manual_seed(99)

    monkeypatch.setattr(Run, "resume", forgetful)
    found = resume_once(Check(check.steps, "char", tmp_path), device="cpu", steps=120)
    assert found["repeat_difference"] == 0.0 < found["resume_difference"] and not found["is_equal"]


def test_a_run_too_short_to_be_stopped_is_a_bug_that_says_so(check: Check, tmp_path: Path) -> None:
    from model.settings import Budget

    fresh = Check(check.steps, "char", tmp_path)
    with pytest.raises(RuntimeError, match="2 steps are too few"):
        gpu._train_and_stop(fresh, Budget("steps", 2), {"device": "cpu"}, after=10)


def test_the_text_states_the_peak_and_what_was_allowed(speed: dict[str, Any], resume: dict[str, Any]) -> None:
    text = as_text(speed | {"model_tflops": 98.95}, resume, "NVIDIA H200", 989.5)
    assert "MFU 10.00% of 989.5 TFLOP/s, the peak given" in text
    assert "resumed as it should" in text and "(allowed: 0)" in text
    assert max(map(len, text.split("\n"))) < 120
    worse = resume | {"repeat_difference": 1e-6, "resume_difference": 0.5, "is_equal": False}
    text = as_text(speed, worse, "Tesla T4", None)
    assert "MFU unknown: give the data sheet's peak" in text
    assert "resumed NOT as it should" in text and "(allowed: 0.01)" in text


def run_command(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["check_gpu", *options])
    try:
        cli.run(gpu.main)
    except SystemExit as stop:
        return int(str(stop.code))
    return 0


def test_without_a_gpu_one_line_says_so_and_the_exit_code_is_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert run_command(monkeypatch) == 2
    captured = capsys.readouterr()
    assert captured.err == "torch finds no GPU on this machine, so nothing was checked\n" and captured.out == ""
    assert run_command(monkeypatch, "--device", "cpu", "--seconds", "0") == 2


def test_the_command_runs_all_of_it_on_the_cpu_and_a_bent_resume_is_exit_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["block_size=8", "embedding_dim=8", "num_heads=1", "num_layers=1"]
    settings = [f"model.{setting}" for setting in small] + ["train.batch_size=2", "train.val_characters=100"]
    monkeypatch.setattr(gpu, "_SETTINGS", (_readme(), gpu._SETTINGS[1]))
    monkeypatch.setattr(cli, "CONFIGS", Path(__file__).resolve().parents[2] / "configs")
    options = ["--device", "cpu", "--seconds", "1", "--resume-steps", "200", "--peak-tflops", "2"]
    options += [option for setting in settings for option in ("--set", setting)]
    assert run_command(monkeypatch, *options) == 0
    printed = capsys.readouterr().out
    assert "of 2 TFLOP/s, the peak given" in printed and "tokens/s" in printed and "resumed as it should" in printed
    monkeypatch.setattr(gpu, "resume_once", lambda *_, **__: bent)
    bent = {"steps": 2, "stopped_at": 1, "repeat_difference": 0.0, "resume_difference": 0.1, "is_equal": False}
    assert run_command(monkeypatch, *options) == 1
    assert "resumed NOT as it should" in capsys.readouterr().out


def _readme() -> str:
    readme = Path(__file__).resolve().parents[2] / "README.md"
    return f"corpus={{source: text, paths: ['{readme}'], separator: \"\\n\\n\", fractions: [0.8, 0.1, 0.1]}}"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_real_thing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(monkeypatch, "--seconds", "5", "--peak-tflops", "1000") == 0
    assert "tokens/s" in capsys.readouterr().out
