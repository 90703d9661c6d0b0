"""Two processes at one artefact (case 40): who comes second waits or is refused, and nothing is lost or mixed."""

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare.experiment import load_experiment
from compare.steps import Steps
from data import lock
from data.errors import DataError, InUseError
from data.files import read_json
from data.layout import Layout
from data.lock import alone
from model.training.loop import Run
from model_helpers import ALPHABET, ENGLISH, CharTable, encoded_splits, json_lines, tiny_model, tiny_train, train_tiny

ROOT = Path(__file__).resolve().parents[2]
TOKENS = CharTable(ALPHABET, ["the ", "er"])
pytestmark = pytest.mark.skipif(os.name != "posix", reason="other processes are sent POSIX signals here")

# Without torch, so that it starts in a moment. NO_LOCKS stands for a network file system that keeps none.
HOLDER = """
import errno, os, sys
from pathlib import Path
from data import lock
if os.environ.get("NO_LOCKS"):
    kept = lock.fcntl.flock
    def flock(descriptor, how):
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(os.environ["NO_LOCKS"]):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        kept(descriptor, how)
    lock.fcntl.flock = flock
"""


def process(code: str, *arguments: object, **environment: str) -> "subprocess.Popen[str]":
    """A process that runs `code` after HOLDER."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER + code, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def held_elsewhere(path: Path, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """Another process holds the lock of `path`; it ends when a line comes in, at the latest with the context."""
    code = "with lock.alone(Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.readline()\n"
    with process(code, path, **environment) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        try:
            yield other
        finally:
            other.kill()


def without_locks(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let `folder` be on a file system that keeps no locks."""
    kept = lock.fcntl.flock

    def flock(descriptor: int, how: int) -> None:
        if str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith(str(folder)):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        kept(descriptor, how)

    monkeypatch.setattr(lock.fcntl, "flock", flock)


@pytest.fixture(params=["locks", "no locks"])
def file_system(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, dict[str, str]]:
    """A folder on a file system that keeps locks, and on one that does not; what other processes must be told."""
    if request.param == "locks":
        return tmp_path, {}
    if not Path("/proc/self/fd").exists():
        pytest.skip("which file a descriptor is of is asked from /proc")
    without_locks(monkeypatch, tmp_path)
    return tmp_path, {"NO_LOCKS": str(tmp_path)}


def owner_of(**changes: object) -> str:
    here = {"pid": 7, "host": socket.gethostname(), "boot": lock._this_process().boot, "since": "then", "command": "x"}
    return json.dumps(here | changes)


def test_case_40_the_second_process_is_refused_in_one_sentence_that_names_the_first(
    file_system: tuple[Path, dict[str, str]],
) -> None:
    folder, environment = file_system
    with held_elsewhere(folder / "char", **environment) as other:
        with pytest.raises(InUseError) as caught, alone(folder / "char", patience_seconds=0.0):
            raise AssertionError
        message = str(caught.value)
        assert message.startswith(
            f"{folder / 'char'} is in use by process {other.pid} on {socket.gethostname()}, since "
        )
        assert "\n" not in message and f"or stop it (kill {other.pid}), then run the same command again" in message
        with alone(folder / "bpe", patience_seconds=0.0) as has_waited:  # its neighbour is free
            assert not has_waited
        other.communicate("end\n", timeout=30)
    with alone(folder / "char", patience_seconds=0.0) as has_waited:
        assert not has_waited and [path.name for path in folder.iterdir()] == [".char.lock"]
    assert list(folder.iterdir()) == []


def test_case_40_who_waits_says_so_and_knows_it(
    file_system: tuple[Path, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, environment = file_system
    with held_elsewhere(folder / "char", **environment) as other:
        assert other.stdin is not None
        timer = threading.Timer(0.5, lambda: (other.stdin.write("end\n"), other.stdin.flush()))  # type: ignore[union-attr]
        timer.start()
        with alone(folder / "char") as has_waited:
            assert has_waited
        timer.join()
    assert capsys.readouterr().err.startswith(f"waiting for {folder / 'char'}, which is in use by process {other.pid} ")


def test_case_40_the_lock_of_a_killed_process_is_taken_over(file_system: tuple[Path, dict[str, str]]) -> None:
    folder, environment = file_system
    with held_elsewhere(folder / "char", **environment) as other:
        other.send_signal(signal.SIGKILL)
        other.wait(timeout=30)
        assert (folder / ".char.lock").exists()
        with alone(folder / "char", patience_seconds=0.0) as has_waited:
            assert not has_waited and json.loads((folder / ".char.lock").read_text())["pid"] == os.getpid()
    assert list(folder.iterdir()) == []


def test_case_40_a_forked_worker_does_not_keep_the_lock_of_its_parent(tmp_path: Path) -> None:
    code = """
with lock.alone(Path(sys.argv[1])):
    forked = os.fork()
    if forked:
        print(forked, flush=True)
        sys.stdin.readline()
    else:
        import time
        time.sleep(60)
        os._exit(0)
"""
    with process(code, tmp_path / "char") as other:
        assert other.stdout is not None
        forked = int(other.stdout.readline())
        try:
            with pytest.raises(InUseError), alone(tmp_path / "char", patience_seconds=0.0):
                raise AssertionError
            other.kill()
            other.wait(timeout=30)
            with alone(tmp_path / "char", patience_seconds=10.0):
                os.kill(forked, 0)  # it is still there
        finally:
            os.kill(forked, signal.SIGKILL)


def test_case_40_another_machines_lock_is_refused_with_the_way_to_remove_it(
    file_system: tuple[Path, dict[str, str]],
) -> None:
    folder, _ = file_system
    file = folder / ".char.lock"
    file.write_text(owner_of(host="elsewhere", boot="another", command="make \x1b[31mtrain"))
    with pytest.raises(InUseError) as caught, alone(folder / "char"):  # a step that waits does not wait for that
        raise AssertionError
    assert "process 7 on elsewhere, since then: `make ?[31mtrain`" in str(caught.value)
    assert f"delete {file} and run the same command again" in str(caught.value)
    file.unlink()
    with alone(folder / "char", patience_seconds=0.0):
        pass


@pytest.mark.parametrize("changes", [{"boot": "before the restart"}, {"host": "a container of this machine"}])
def test_case_40_a_restart_and_a_container_of_this_machine_are_not_another_machine(
    file_system: tuple[Path, dict[str, str]], changes: dict[str, str]
) -> None:
    if not lock._this_process().boot:
        pytest.skip("this system does not tell its starts apart")
    folder, _ = file_system
    (folder / ".char.lock").write_text(owner_of(**changes))
    with alone(folder / "char", patience_seconds=0.0) as has_waited:
        assert not has_waited


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1e999}', "\x00" * 50, '{"pid": 3, "host": 5}'])
def test_case_40_a_damaged_lock_file_that_nobody_holds_is_taken_over(tmp_path: Path, text: str) -> None:
    (tmp_path / ".char.lock").write_text(text)
    with alone(tmp_path / "char", patience_seconds=0.0) as has_waited:
        assert not has_waited
    assert list(tmp_path.iterdir()) == []


def test_case_40_another_users_left_lock_is_replaced() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as name:  # not tmp_path, which is below a folder that others cannot pass
        folder = Path(name)
        folder.chmod(0o777)
        (folder / ".char.lock").write_text(owner_of())
        os.seteuid(65534)
        try:
            with alone(folder / "char", patience_seconds=0.0) as has_waited:
                assert not has_waited and (folder / ".char.lock").stat().st_uid == 65534
        finally:
            os.seteuid(0)
        assert list(folder.iterdir()) == []


def test_case_40_a_finished_experiment_is_compared_in_a_folder_that_nobody_may_write_into(tmp_path: Path) -> None:
    config = experiment(tmp_path)
    done = Steps(load_experiment(config), echo=lambda _line: None)
    text = done.compare()
    locks: list[Path] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lock, "_take", locks.append)  # root, who runs many tests, may write anywhere
        again = Steps(load_experiment(config), echo=lambda _line: None)
        assert again.compare() == text and again.num_done == 0
    assert locks == []


def test_a_thread_takes_its_lock_again_and_no_other_thread_does(tmp_path: Path) -> None:
    found: list[BaseException] = []

    def second() -> None:
        try:
            with alone(tmp_path / "char", patience_seconds=0.0):
                pass
        except InUseError as error:
            found.append(error)

    (tmp_path / "link").symlink_to(tmp_path / "char")
    with alone(tmp_path / "char"):
        with alone(tmp_path / "link", patience_seconds=0.0) as has_waited:  # the same folder by another name
            assert not has_waited
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert len(found) == 1 and f"process {os.getpid()} " in str(found[0])
    assert not (tmp_path / ".char.lock").exists()


def test_a_lock_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(DataError, match=r"cannot write .*/file/\.char\.lock: ") as caught,
        alone(tmp_path / "file/char"),
    ):
        raise AssertionError
    assert "\n" not in str(caught.value)


def test_case_40_a_file_that_several_processes_add_to_loses_nothing(file_system: tuple[Path, dict[str, str]]) -> None:
    folder, environment = file_system
    code = """
path = Path(sys.argv[1])
lock._POLL_SECONDS = lock._WRITING_SECONDS = 0.001
for _ in range(20):
    with lock.alone(path):
        path.write_text(str(int(path.read_text()) + 1))
"""
    (folder / "count").write_text("0")
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(process(code, folder / "count", **environment)) for _ in range(3)]
        assert [other.wait(timeout=60) for other in others] == [0, 0, 0]
    assert (folder / "count").read_text() == "60"


def test_case_40_corpora_of_one_root_that_are_made_at_once_are_all_in_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\x1e".join(f"line {number}\n" for number in range(200)))
    code = """
import time
from data import splits
from data.layout import Layout
from data.corpus import CorpusConfig, prepare
read = splits.read_manifests
splits.read_manifests = lambda layout: (read(layout), time.sleep(0.3))[0]  # time for the others to write in between
folder, name = Path(sys.argv[1]), sys.argv[2]
prepare(CorpusConfig(source="text", name=name, paths=(str(folder / "text.txt"),), separator="\\x1e"), Layout(folder))
"""
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(process(code, tmp_path, name)) for name in ("one", "two", "three")]
        assert [other.wait(timeout=60) for other in others] == [0, 0, 0]
    assert set(read_json(Layout(tmp_path).corpus_manifest)) == {"one", "two", "three"}


# Training refuses


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


@pytest.mark.parametrize("restart", [False, True])
def test_case_40_a_second_training_is_refused_and_the_first_is_as_if_alone(
    house: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restart: bool
) -> None:
    refusals: list[str] = []
    others: list[int] = []
    original = Run._step

    def second() -> None:
        try:
            run(house, tmp_path / "char", restart=restart)
        except InUseError as error:
            refusals.append(str(error))
        others.append(run(house, tmp_path / "neighbour", tiny_train(2, seed=2)).spent.steps)  # another run of this root

    def spied(self: Run, *arguments: Any) -> float:
        loss = original(self, *arguments)
        if self.spent.steps == 5 and self.folder == tmp_path / "char" and not refusals:
            thread = threading.Thread(target=second)
            thread.start()
            thread.join()
        return loss

    run(house, tmp_path / "alone")
    monkeypatch.setattr(Run, "_step", spied)
    # The neighbour draws from torch's one generator of this process: processes have one each.
    run(house, tmp_path / "char", model_config=tiny_model(TOKENS.vocab_size))
    assert len(refusals) == 1 and f"{tmp_path / 'char'} is in use by process {os.getpid()}" in refusals[0]
    assert others == [2]
    assert [line["step"] for line in json_lines(tmp_path / "char/metrics.jsonl")] == list(range(1, 13))
    assert json_lines(tmp_path / "char/metrics.jsonl")[:5] == json_lines(tmp_path / "alone/metrics.jsonl")[:5]
    assert [line["step"] for line in json_lines(tmp_path / "neighbour/metrics.jsonl")] == [1, 2]
    assert not list(tmp_path.glob(".*"))


def test_case_40_a_finished_run_is_read_without_a_lock(house: tuple[Path, Any], tmp_path: Path) -> None:
    run(house, tmp_path / "char")
    with held_elsewhere(tmp_path / "char"):
        assert run(house, tmp_path / "char").num_steps_now == 0
        before = {path: path.read_bytes() for path in (tmp_path / "char").iterdir()}
        with pytest.raises(InUseError):
            run(house, tmp_path / "char", restart=True)
        assert before == {path: path.read_bytes() for path in (tmp_path / "char").iterdir()}


# Steps that can be waited for


def experiment(folder: Path) -> Path:
    values = experiment_values(folder / "run", write_corpus(folder / "texts"))
    values["train"] |= {"budget": {"unit": "steps", "amount": 3}, "device": "cpu"}  # type: ignore[operator]
    return write_experiment(folder / "words.yaml", values)


COMMANDS: dict[str, tuple[Callable[[Steps], object], Callable[[Layout], Path], str]] = {
    "data": (Steps.data, lambda layout: layout.processed, "data: up to date"),
    "tokenizer": (lambda s: s.tokenizer("bpe"), lambda layout: layout.tokenizer("bpe"), "tokenizer bpe: up to date"),
    "encode": (lambda s: s.encode("bpe"), lambda layout: layout.encoded("bpe"), "encode bpe: up to date"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_case_40_what_another_process_makes_is_waited_for_and_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    do, path_of, up_to_date = COMMANDS[command]
    config = experiment(tmp_path)
    path = path_of(load_experiment(config).layout)
    is_held = threading.Event()

    def first() -> None:
        steps = Steps(load_experiment(config), echo=lambda _line: None)
        with alone(path):
            is_held.set()
            while "waiting for" not in err[0]:
                err[0] += capsys.readouterr().err
                time.sleep(0.01)
            do(steps)

    err = [""]
    thread = threading.Thread(target=first)
    thread.start()
    is_held.wait()
    lines: list[str] = []
    do(Steps(load_experiment(config), echo=lines.append))
    thread.join()
    assert f"waiting for {path}, which is in use by process {os.getpid()}" in err[0]
    assert any(line.startswith(up_to_date) for line in lines)
    assert not [line for line in lines if line.startswith(up_to_date.replace("up to date", "wrote"))]


def test_case_40_scores_that_another_process_takes_are_waited_for(tmp_path: Path) -> None:
    config = experiment(tmp_path)
    report = Steps(load_experiment(config), echo=lambda _line: None).train("char")
    report.unlink()
    is_held = threading.Event()

    def first() -> None:
        steps = Steps(load_experiment(config), echo=lambda _line: None)
        with alone(report.parent):
            is_held.set()
            time.sleep(0.5)
            steps.train("char")

    thread = threading.Thread(target=first)
    thread.start()
    is_held.wait()
    lines: list[str] = []
    Steps(load_experiment(config), echo=lines.append).train("char")
    thread.join()
    assert lines[-1] == f"train char: up to date ({report})"


@pytest.mark.slow
def test_case_40_the_command_twice_at_once(tmp_path: Path) -> None:
    config = experiment(tmp_path)
    endless = ["--set", "train.budget.amount=100_000_000", "--set", "train.log_every_steps=1"]
    command = [sys.executable, "-m", "scripts.train", "--config", str(config), "--contestant", "char", *endless]
    metrics = tmp_path / "run/checkpoints/char/metrics.jsonl"
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as first:
        deadline = time.monotonic() + 200
        while not metrics.exists() or len(metrics.read_bytes()) < 1000:
            assert time.monotonic() < deadline and first.poll() is None
            time.sleep(0.1)
        second = subprocess.run([*command, "--force"], cwd=ROOT, capture_output=True, text=True, timeout=200)
        assert second.returncode == 2
        assert second.stderr.count("\n") == 1 and f"is in use by process {first.pid} on" in second.stderr
        first.send_signal(signal.SIGHUP)
        first.send_signal(signal.SIGHUP)
        errors = first.communicate(timeout=100)[1]
        assert first.returncode == 130 and "SIGHUP: stopped after step" in errors
    steps = [line["step"] for line in json_lines(metrics)]
    assert steps == list(range(1, len(steps) + 1))
    assert not list(metrics.parent.parent.glob(".*"))
