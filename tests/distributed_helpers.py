"""Several real processes for test_distributed.py: they join by gloo, do one task, and report what came of it."""

import contextlib
import io
import multiprocessing
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from data.errors import DataError, UserError
from model import checkpoint
from model.training.interrupt import SaidByProcessZero, TrainingInterrupted
from model.training.loop import Run
from model.training.processes import Processes, joined_processes
from model_helpers import ALPHABET, ENGLISH, CharTable, encoded_splits, tiny_model, tiny_train
from model_helpers import train_tiny as train_for_tests

TOKENS = CharTable(ALPHABET, ["the ", "er"])
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch", "torch._dynamo", "numba", "model.train"])  # once, instead of in each
Outcome = tuple[str, Any, str]
Task = Callable[..., Any]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def launch(task: Task, *arguments: Any, count: int = 2) -> list[Outcome]:
    """What `task(processes, *arguments)` came to in each of `count` processes: (kind, value, stderr)."""
    port, pipes, children = free_port(), [], []
    for rank in range(count):
        ours, theirs = CONTEXT.Pipe()
        child = CONTEXT.Process(target=_child, args=(theirs, rank, count, port, task, arguments), daemon=True)
        child.start()
        theirs.close()
        pipes.append(ours)
        children.append(child)
    try:
        return [_outcome(pipe) for pipe in pipes]
    finally:
        for child in children:
            child.kill()
            child.join()


def _outcome(pipe: Any) -> Outcome:
    if not pipe.poll(60):
        return ("hung", None, "")
    try:
        kind, value, said = pipe.recv()
    except EOFError:
        return ("died", None, "")
    return (kind, value, said)


def _child(pipe: Any, rank: int, count: int, port: int, task: Task, arguments: Sequence[Any]) -> None:
    values = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "MASTER_PORT": port, "MASTER_ADDR": "127.0.0.1"}
    os.environ.update({name: str(value) for name, value in values.items()})
    torch.set_num_threads(1)
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            with joined_processes() as processes:
                outcome = ("done", task(processes, *arguments))
        except (UserError, SaidByProcessZero, TrainingInterrupted) as error:
            outcome = (type(error).__name__, str(error))
        except Exception:
            outcome = ("bug", traceback.format_exc())
    pipe.send((*outcome, said.getvalue()))


def train_tiny(
    processes: Processes | None,
    root: Path,
    folder: Path,
    model: dict[str, Any],
    settings: dict[str, Any],
    at_step: dict[int, tuple[int, str]] | None = None,
) -> dict[str, Any]:
    """A tiny run in `folder`; returns its weights and random state. `at_step`: step -> (process, what befalls it)."""
    splits = encoded_splits(root, TOKENS, ENGLISH, ENGLISH[:3], ENGLISH[:2]) if processes is None else None
    if splits is None:
        from tokenizer.encode_splits import load_encoded

        splits = load_encoded(root / "encoded", TOKENS, tokenizer_path=root / "tokenizer.json", make="make encode")
    seen: list[Run] = []
    original = Run._step

    def spied(self: Run, *arguments: Any) -> float:
        seen[:] = [self]
        rank, action = (at_step or {}).get(self.spent.steps + 1, (-1, ""))
        if self.processes.rank == rank:
            _happens(self, action)
        return original(self, *arguments)

    Run._step = spied  # type: ignore[method-assign]
    try:
        result = train_for_tests(
            contestant="bpe",
            tokenizer=TOKENS,
            tokenizer_path=root / "tokenizer.json",
            splits=splits,
            model_config=tiny_model(TOKENS.vocab_size, **model),
            train_config=tiny_train(10, **settings),
            folder=folder,
            progress=False,
            processes=processes,
        )
    finally:
        Run._step = original  # type: ignore[method-assign]
    weights = {name: value.numpy().copy() for name, value in seen[0].model.state_dict().items()}
    return {"weights": weights, "rng": torch.get_rng_state().numpy().copy(), "spent": result.spent}


def _happens(run: Run, action: str) -> None:
    if action == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action in ("SIGTERM", "SIGINT", "SIGHUP"):
        signal.raise_signal(signal.Signals[action])
        signal.raise_signal(signal.Signals[action])  # the launcher hands on what the terminal has sent already
    elif action == "nan":
        with torch.no_grad():
            next(run.model.parameters()).fill_(float("nan"))
    elif action == "slow":
        time.sleep(0.2)


def steps_of(folder: Path) -> int:
    """Steps of last.pt."""
    steps: int = checkpoint.load(folder / "last.pt")["spent"]["steps"]
    return steps


def send_all(processes: Processes, folder: Path) -> dict[str, Any]:
    """Sends one message of each kind; returns what this process got."""
    mark = folder / "made"

    def make() -> str:
        if processes.is_main:
            time.sleep(0.1)
            mark.write_text("by process 0")
        return mark.read_text()

    seen: dict[str, Any] = {
        "first": processes.main_first(make),
        "from_main": processes.from_main(lambda: processes.rank + 2.5),
        "agree": processes.agree(processes.rank + 1.0, "SIGTERM" if processes.rank == 1 else None),
    }
    gradient = torch.tensor([1.0 + processes.rank, 1.0])
    loss = processes.sum_gradient(0.5, gradient)
    seen["sums"] = (loss, gradient.tolist())
    processes.require_same(7, "a number")
    try:
        processes.require_same(processes.rank, "their numbers")
    except UserError as error:
        seen["difference"] = str(error)

    def fails_in_one() -> str:
        if processes.rank == 1:
            raise DataError("only process 1 sees this")
        return "sound"

    try:
        processes.together(fails_in_one)
    except UserError as error:
        seen["together"] = f"{type(error).__name__}: {error}"
    return seen
