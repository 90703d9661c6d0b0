"""Guards of training: killed processes, full disks, broken steps, moved folders.

What is tested elsewhere is not repeated: interrupts in one process, a loss that is not finite and refusals of other
settings in test_train.py, damaged files in test_checkpoint.py and test_files.py, prompts on stand-ins in
test_generate.py.
"""

import ast
import contextlib
import errno
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare import cli
from compare.experiment import load_experiment
from compare.steps import Steps
from data import files
from data.errors import CheckpointError, ConfigError, DataError
from model import checkpoint
from model.report import evaluate_contestant
from model.run_spec import RunSpec
from model.training import same_run
from model.training.device import explain_out_of_memory, is_out_of_memory
from model.training.gradient import ParallelGradient
from model.training.interrupt import TrainingInterrupted
from model.training.loop import Run
from model.training.metrics import MetricsLog
from model_helpers import ALPHABET, ENGLISH, CharTable, encoded_splits, json_lines, tiny_model, tiny_train, train_tiny
from scripts import sample
from scripts import train as train_script

ROOT = Path(__file__).resolve().parents[2]
TOKENS = CharTable(ALPHABET, ["the ", "er"])


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tokenizer and encoded splits."""
    root = tmp_path_factory.mktemp("house")
    encoded_splits(root, TOKENS, ENGLISH, ENGLISH[:3], ENGLISH[:2])
    return root


def run(house: Path, folder: Path, config: Any = None, **changes: Any) -> Any:
    settings = {
        "contestant": "bpe",
        "tokenizer": TOKENS,
        "tokenizer_path": house / "tokenizer.json",
        "splits": splits_in(house),
        "model_config": tiny_model(TOKENS.vocab_size),
        "train_config": config or tiny_train(),
        "folder": folder,
        "progress": False,
    }
    return train_tiny(**(settings | changes))


def splits_in(house: Path) -> dict[str, Any]:
    from tokenizer.encode_splits import load_encoded

    return load_encoded(house / "encoded", TOKENS, tokenizer_path=house / "tokenizer.json", make="make encode")


def before_step(monkeypatch: pytest.MonkeyPatch, step: int, action: Callable[[Run], None]) -> None:
    """Call `action` right before optimizer step `step`."""
    original = Run._step

    def spied(self: Run, *arguments: Any) -> float:
        if self.spent.steps == step - 1:
            action(self)
        return original(self, *arguments)

    monkeypatch.setattr(Run, "_step", spied)


def tensors_of(state: Any) -> Iterator[torch.Tensor]:
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, dict | list | tuple):
        for value in state.values() if isinstance(state, dict) else state:
            yield from tensors_of(value)


def assert_same_end(one: Path, other: Path) -> None:
    """The same weights, optimizer and random numbers, bit for bit, and the same lines of metrics."""
    for name in (checkpoint.LAST, checkpoint.BEST):
        left, right = checkpoint.load(one / name), checkpoint.load(other / name)
        pairs = list(zip(tensors_of(left), tensors_of(right), strict=True))
        assert len(pairs) > 10 and all(torch.equal(a, b) for a, b in pairs)
        assert left["best"] == right["best"] and left["spent"]["steps"] == right["spent"]["steps"]
    assert json_lines(one / checkpoint.METRICS) == json_lines(other / checkpoint.METRICS)


# Killed and stopped processes


def chain(folder: Path, **train_settings: Any) -> Path:
    """An experiment of one contestant with 150 steps, that saves after each of them."""
    values = experiment_values(folder / "run", write_corpus(folder / "texts"))
    values["contestants"] = {"char": {"tokenizer": {"kind": "char"}}}
    settings = {"budget": {"unit": "steps", "amount": 150}, "log_every_steps": 1, "checkpoint_every_seconds": 0.0}
    values["train"] |= settings | {"val_every_fraction": 0.5, "device": "cpu"} | train_settings  # type: ignore[operator]
    return write_experiment(folder / "words.yaml", values)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds an experiment whose run was never stopped."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    steps = Steps(load_experiment(chain(folder, checkpoint_every_seconds=60.0)), echo=lambda _line: None)
    steps.train("char")
    return folder


def start_and_signal(config: Path, number: signal.Signals) -> tuple[int, str]:
    """Start the command in a process of its own, send it a signal in the middle; its exit code and stderr."""
    metrics = config.parent / "run/checkpoints/char" / checkpoint.METRICS
    command = [sys.executable, "-m", "scripts.train", "--config", str(config)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and process.poll() is None:
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= 20:
            break
        time.sleep(0.002)
    process.send_signal(number)
    return process.wait(timeout=60), process.communicate()[1]


# Each starts a process and trains in it: seconds. The other two signals are raised in-process in test_train.py as well.
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_a_process_that_was_stopped_at_any_moment_ends_as_if_it_had_not_been(
    uninterrupted: Path, tmp_path: Path, number: signal.Signals
) -> None:
    shutil.copytree(uninterrupted, tmp_path / "copy")  # corpus and tokenizer are there already
    shutil.rmtree(tmp_path / "copy/run/checkpoints")
    config = chain(tmp_path / "copy")
    code, shown = start_and_signal(config, number)
    folder = tmp_path / "copy/run/checkpoints/char"
    stopped = checkpoint.load(folder / checkpoint.LAST)  # whole, whatever was being written
    assert not stopped["finished"] and stopped["spent"]["steps"] >= 19
    if number == signal.SIGKILL:
        assert code == -signal.SIGKILL
    else:
        assert code == 130
        assert f"{number.name}: stopped after step {stopped['spent']['steps']}, saved" in shown
        assert "Traceback" not in shown
    taken = []
    with pytest.MonkeyPatch.context() as patch:
        original = Run._step
        patch.setattr(Run, "_step", lambda self, *a: (taken.append(self.spent.steps), original(self, *a))[1])
        Steps(load_experiment(config), echo=lambda _line: None).train("char")
    assert taken == list(range(stopped["spent"]["steps"], 150))
    assert_same_end(folder, uninterrupted / "run/checkpoints/char")
    if number != signal.SIGKILL:  # what a killed write leaves is a hidden file that nothing reads
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]


# Disks and folders


@contextlib.contextmanager
def largest_file(num_bytes: int) -> Iterator[None]:
    """No file may grow beyond `num_bytes`: a disk that is full in the middle of a file, as the kernel says it."""
    resource = pytest.importorskip("resource")
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_disk_that_fills_up_during_a_save_keeps_the_previous_checkpoint(house: Path, tmp_path: Path) -> None:
    config = tiny_train(8, checkpoint_every_seconds=0.0)
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as full:
        before_step(patch, 5, lambda _run: full.enter_context(largest_file(30_000)))
        with pytest.raises(DataError) as caught:
            run(house, tmp_path, config)
    message = str(caught.value)
    assert str(tmp_path / "last.pt") in message and os.strerror(errno.EFBIG) in message
    assert "nothing was changed" in message and "\n" not in message
    assert checkpoint.load(tmp_path / "last.pt")["spent"]["steps"] == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [checkpoint.LAST, checkpoint.BEST, checkpoint.TOKENIZER_COPY, checkpoint.CONFIG, checkpoint.METRICS]
    )
    assert run(house, tmp_path, config).num_steps_now == 4
    run(house, tmp_path / "whole", config)
    assert_same_end(tmp_path, tmp_path / "whole")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_device_that_is_really_full_keeps_the_previous_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "last.pt"
    checkpoint.save(path, {"weights": torch.zeros(10)})
    before = path.read_bytes()

    def on_the_full_device(dir: Path, prefix: str, suffix: str) -> tuple[int, str]:
        temporary = Path(dir) / f"{prefix}x{suffix}"
        temporary.touch()
        return os.open("/dev/full", os.O_WRONLY), str(temporary)

    monkeypatch.setattr(files.tempfile, "mkstemp", on_the_full_device)
    with pytest.raises(DataError, match=r"cannot write .*last\.pt: .*; nothing was changed") as caught:
        checkpoint.save(path, {"weights": torch.zeros(1_000_000)})
    assert os.strerror(errno.ENOSPC) in str(caught.value)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["last.pt"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_under_the_metrics_is_named(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl", 0)
    log.path = Path("/dev/full")
    with pytest.raises(DataError, match=f"cannot write /dev/full: {os.strerror(errno.ENOSPC)}"):
        log.append({"step": 1})
    assert log.num_lines == 0


@contextlib.contextmanager
def read_only_folder() -> Iterator[Path]:
    """A folder that nobody may write into; root, whom no right stops, becomes somebody else for the while."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if is_root:
                os.seteuid(0)
            folder.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="rights of folders are POSIX")
def test_a_read_only_folder_is_named_with_the_cause() -> None:
    with read_only_folder() as folder:
        for attempt in (
            lambda: checkpoint.save(folder / "last.pt", {"step": 1}),
            lambda: files.write_json(folder / "report.json", {}),
            lambda: files.write_text(folder / "below" / "text.txt", "x"),
            lambda: MetricsLog(folder / "metrics.jsonl", 0),
        ):
            with pytest.raises(DataError, match=f"cannot write {folder}.*{os.strerror(errno.EACCES)}"):
                attempt()
        assert list(folder.iterdir()) == []


# Steps that go wrong


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_gradient_that_is_not_finite_stops_the_run_before_it_reaches_the_weights(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    clip, calls = ParallelGradient.clip, []

    def spoil(gradient: ParallelGradient, longest: float) -> float:
        calls.append(1)
        if len(calls) == 8:
            gradient.gradient[0] = value
        return clip(gradient, longest)

    monkeypatch.setattr(ParallelGradient, "clip", spoil)
    with pytest.raises(ConfigError) as caught:
        run(house, tmp_path)
    message = str(caught.value)
    assert f"bpe: the gradient became {value} at step 8" in message and "\n" not in message
    assert f"{tmp_path / 'last.pt'} keeps the last good state" in message and "lower train.learning_rate" in message
    state = checkpoint.load(tmp_path / "last.pt")
    assert state["spent"]["steps"] == 6 and all(bool(t.isfinite().all()) for t in tensors_of(state["model"]))


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), MemoryError()]
)
def test_out_of_memory_says_what_to_lower(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def no_memory(_run: Run) -> None:
        raise error

    before_step(monkeypatch, 3, no_memory)
    config = chain(tmp_path, budget={"unit": "steps", "amount": 5})
    assert run_command(monkeypatch, train_script.main, "--config", str(config)) == 2
    last = capsys.readouterr().err.strip().split("\n")[-1]
    assert last.split("\r")[-1].startswith("char: out of memory (")
    for what in ("batch_size 8 x block_size 16 = 128 tokens", "lower train.batch_size first", "evaluate.batch_size"):
        assert what in last


def test_a_real_failed_allocation_is_recognised_and_other_errors_are_not() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(10**15)
    assert is_out_of_memory(caught.value)
    with pytest.raises(MemoryError):
        np.empty(10**15)
    sizes = tiny_model(TOKENS.vocab_size)
    spec = RunSpec("bpe", TOKENS, Path("tokenizer.json"), {}, sizes, tiny_train(), Path("run"))
    with pytest.raises(RuntimeError, match="shape"), explain_out_of_memory(spec):
        raise RuntimeError("shape mismatch")
    with (
        pytest.raises(ConfigError, match="bpe: out of memory") as explained,
        explain_out_of_memory(spec),
    ):
        torch.empty(10**15)
    assert explained.value.__cause__ is not None and "\n" not in str(explained.value)


# Budgets, splits, and runs that exist


def run_command(monkeypatch: pytest.MonkeyPatch, main: Callable[[], None], *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["command", *options])
    try:
        cli.run(main)
    except SystemExit as stop:
        return int(str(stop.code))
    return 0


@pytest.mark.parametrize("unit", ["steps", "characters", "tokens", "flops", "seconds"])
def test_a_budget_of_nothing_is_one_line_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    config = chain(tmp_path)
    options = ["--config", str(config), "--set", f"train.budget={{unit: {unit}, amount: 0}}"]
    assert run_command(monkeypatch, train_script.main, *options) == 2
    err = capsys.readouterr().err
    assert "amount must be at least 1, found 0: no step could be taken" in err and err.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("num_tokens", [7, 8, 9, 10])
def test_a_train_split_of_about_one_block_trains_from_one_window_on(
    house: Path, tmp_path: Path, num_tokens: int
) -> None:
    import dataclasses

    splits = splits_in(house)
    splits["train"] = dataclasses.replace(splits["train"], ids=splits["train"].ids[:num_tokens])
    if num_tokens < 9:
        with pytest.raises(DataError, match=rf"has {num_tokens} tokens, but block_size 8 needs at least 9"):
            run(house, tmp_path / "run", tiny_train(2), splits=splits)
        assert not (tmp_path / "run").exists()
    else:
        assert run(house, tmp_path / "run", tiny_train(2), splits=splits).spent.steps == 2
        assert all(math.isfinite(float(str(line["loss_nats"]))) for line in json_lines(tmp_path / "run/metrics.jsonl"))


def test_a_run_that_exists_is_resumed_refused_or_with_force_restarted_and_never_mixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = str(chain(tmp_path, budget={"unit": "steps", "amount": 6}))
    folder = tmp_path / "run/checkpoints/char"
    assert run_command(monkeypatch, train_script.main, "--config", config) == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    other = ["--config", config, "--set", "train.learning_rate=0.01"]
    assert run_command(monkeypatch, train_script.main, *other) == 2
    err = capsys.readouterr().err.strip().split("\n")[-1]
    assert "train.learning_rate was 0.003, is 0.01" in err
    assert f"`make train-char FORCE=1 EXPERIMENT={config} SET=train.learning_rate=0.01`" in err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert run_command(monkeypatch, train_script.main, *other, "--force") == 0
    records = json_lines(folder / "metrics.jsonl")
    assert [record["step"] for record in records] == [1, 2, 3, 4, 5, 6]
    for name in (checkpoint.LAST, checkpoint.BEST):
        assert checkpoint.load(folder / name)["train_config"]["learning_rate"] == 0.01
    assert files.read_json(folder / "report.json")["train"]["learning_rate"] == 0.01


def test_a_copied_run_folder_resumes_and_is_scored_elsewhere(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine: run, splits and tokenizer lie at other places, and another number of threads is free."""
    here, there = tmp_path / "here", tmp_path / "there"
    with monkeypatch.context() as patch:
        # Step 12 of 12 is the only val figure after the stop, and here not a better one: best.pt stays the old one.
        figures = iter([2.0, 3.0, 3.0, 3.0])
        patch.setattr("model.training.loop.quick_bits_per_char", lambda *_: next(figures))
        before_step(patch, 5, lambda _run: signal.raise_signal(signal.SIGINT))
        with pytest.raises(TrainingInterrupted):
            run(house, here / "run")
        shutil.copytree(here, there)
        shutil.copytree(house, there / "house")
        run(house, here / "run")
        figures = iter([3.0, 3.0, 3.0])
        run(there / "house", there / "run")
    for name in (checkpoint.LAST, checkpoint.BEST):
        left, right = checkpoint.load(here / "run" / name), checkpoint.load(there / "run" / name)
        assert all(torch.equal(a, b) for a, b in zip(tensors_of(left), tensors_of(right), strict=True))
    assert checkpoint.load(there / "run" / "best.pt")["spent"]["steps"] == 3
    from model.settings import EvaluateConfig

    spec = RunSpec(
        contestant="bpe",
        tokenizer=TOKENS,
        tokenizer_path=there / "house" / "tokenizer.json",
        splits=splits_in(there / "house"),
        model_config=tiny_model(TOKENS.vocab_size),
        train_config=tiny_train(),
        folder=there / "run",
    )
    config = EvaluateConfig(alarm_below_bits_per_char=0.0)
    report = evaluate_contestant(spec, {"val": 1, "test": 1}, config, progress=False)
    assert report["selected"]["step"] == 3


def test_files_of_two_texts_are_still_no_run(house: Path, tmp_path: Path) -> None:
    run(house, tmp_path, tiny_train(2))
    best, last = (checkpoint.load(tmp_path / name) for name in (checkpoint.BEST, checkpoint.LAST))
    elsewhere = {name: data | {"path": "/elsewhere"} for name, data in last["data"].items()}
    same_run.verify_same_run(best, last | {"data": elsewhere}, tmp_path)
    other = {name: data | {"text_sha256": "f" * 64} for name, data in last["data"].items()}
    with pytest.raises(CheckpointError, match=r"\(data differs\)"):
        same_run.verify_same_run(best, last | {"data": other}, tmp_path)


# What is written, and how it is read


def test_no_file_that_is_written_needs_unpickling(uninterrupted: Path) -> None:
    paths = [path for path in (uninterrupted / "run").rglob("*") if path.suffix in (".pt", ".npy", ".npz")]
    assert {path.name for path in paths} >= {
        "last.pt",
        "best.pt",
        "train_ids.pt",
        "test_nats.npz",
        "words_val_docs.npy",
    }
    for path in paths:
        if path.suffix == ".pt":
            assert torch.load(path, weights_only=True) is not None
        else:
            with path.open("rb") as file:
                stored = np.load(file, allow_pickle=False)
                arrays = [stored[name] for name in stored.files] if path.suffix == ".npz" else [stored]
                assert all(array.dtype != object for array in arrays)
    kept = [path.name for path in (uninterrupted / "run/checkpoints/char").glob("*.pt")]
    assert sorted(kept) == ["best.pt", "last.pt"]


def reads_of(packages: Path) -> list[tuple[str, bool]]:
    """Every call in the files below `packages` that can unpickle, and whether it says that it must not."""
    guards = {("torch", "load"): ("weights_only", True), ("np", "load"): ("allow_pickle", False)}
    found = []
    for package in ("data", "tokenizer", "model", "compare", "bench", "scripts"):
        for path in (packages / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
                called = (owner, node.func.attr)
                given = {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}
                where = f"{owner}.{node.func.attr} in {path}, line {node.lineno}"
                if called in {("pickle", "load"), ("pickle", "loads"), ("joblib", "load")}:
                    found.append((where, False))
                elif called in guards:
                    name, value = guards[called]
                    found.append((where, given.get(name) is value))
    return found


def test_no_line_of_the_project_unpickles() -> None:
    """Every torch.load says weights_only=True and every np.load allow_pickle=False; nothing calls pickle's readers."""
    found = reads_of(ROOT)
    assert {where.split()[0] for where, _ in found} == {"torch.load", "np.load"}
    assert [where for where, is_guarded in found if not is_guarded] == []


@pytest.mark.parametrize(
    "line", ["torch.load(p)", "np.load(p, allow_pickle=True)", "pickle.loads(b)", "joblib.load(p)"]
)
def test_a_line_that_unpickles_is_found_in_any_subfolder(tmp_path: Path, line: str) -> None:
    planted = tmp_path / "model" / "training" / "deeper" / "planted.py"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"x = 1\n{line}\n")
    assert reads_of(tmp_path) == [(f"{line.partition('(')[0]} in {planted}, line 2", False)]


# Prompts (case 28), through the command and a model that was trained


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        (["--prompt", ""], ""),
        (["--prompt", "the of and to in a is that for it as was"], "the of and to in a is that for it as was"),
        (["--prompt", "the", "--temperature", "0"], "the"),
        (["--prompt", "the", "--top-k", "100000"], "the"),
        (["--prompt", "the", "--top-k", "1", "--temperature", "5"], "the"),
    ],
    ids=["empty", "longer than the block", "temperature 0", "top-k above the vocabulary", "top-k 1"],
)
def test_prompts_through_the_command(
    uninterrupted: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    begins: str,
) -> None:
    fixed = ["--config", str(uninterrupted / "words.yaml"), "--contestant", "char", "--tokens", "30"]
    assert run_command(monkeypatch, sample.main, *fixed, *options) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(begins) and len(printed) == len(begins) + 30 + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prompt", "aΩ"], "'Ω' (U+03A9) first at offset 1"),
        (["--temperature", "-1"], "--temperature: must be 0 or at least 1e-30, found -1.0"),
        (["--top-k", "0"], "--top-k: must be at least 1, found 0"),
        (["--tokens", "-1"], "--tokens: must be at least 0, found -1"),
    ],
)
def test_prompts_and_settings_that_cannot_be_are_one_line(
    uninterrupted: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    fixed = ["--config", str(uninterrupted / "words.yaml"), "--contestant", "char"]
    assert run_command(monkeypatch, sample.main, *fixed, *options) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and captured.out == ""
