"""Processes that take turns: what the machine does to one of them it does to all.

Each contestant is built in a process of its own, with its own threads and memory. It then works only when it is asked
to, so that no two of them compete for the cores.
"""

import contextlib
import importlib
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

READY = "ready"
"""What a process sends once it is built and warm."""


class NoAnswerError(RuntimeError):
    """A process ended, or did not answer in time; the message says which."""


class Turns:
    """Started processes by name; see `started`."""

    def __init__(self, pipes: dict[str, Connection], failed: dict[str, str]) -> None:
        self.pipes = pipes
        """Those that are ready."""
        self.failed = failed
        """The others, each with the reason."""

    def ask(self, name: str, patience: float | None = None) -> Any:
        """Give `name` its turn and return its answer; raises NoAnswerError after `patience` seconds (None: never)."""
        self.pipes[name].send(True)
        return _answer(self.pipes[name], patience)


@contextlib.contextmanager
def started(
    targets: Mapping[str, tuple[Callable[..., None], tuple[Any, ...]]], *, patience: float | None = None
) -> Iterator[Turns]:
    """Start a process for each target (function, arguments after the pipe), one after the other, so that none is built
    beside another. A process sends READY, then answers each message. All are killed at the end.
    """
    context = multiprocessing.get_context("spawn")
    processes: list[SpawnProcess] = []
    turns = Turns({}, {})
    try:
        for name, (function, arguments) in targets.items():
            ours, theirs = context.Pipe()
            process = context.Process(target=function, args=(theirs, *arguments), daemon=True)
            process.start()
            processes.append(process)
            theirs.close()
            try:
                _answer(ours, patience)
                turns.pipes[name] = ours
            except NoAnswerError as error:
                turns.failed[name] = str(error)
        yield turns
    finally:
        for process in processes:
            process.kill()
            process.join()


def _answer(pipe: Connection, patience: float | None) -> Any:
    try:
        if pipe.poll(patience):
            return pipe.recv()
    except EOFError:
        raise NoAnswerError("its process ended") from None
    raise NoAnswerError(f"no answer in {patience:.0f} s")


def peak_bytes() -> int:
    """The most memory that this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():  # a new program's ru_maxrss begins at the size of the one that started it; VmHWM does not
        return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line[:6] == "VmHWM:")
    resource = importlib.import_module("resource")
    peak: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
