"""Stubs of everything that writes: the process dies, or the system refuses, at a chosen one of its writes."""

import builtins
import errno
import io
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fault_chain import Ended

SECONDS = 120.0
"""No command of the tiny experiment takes so long; one that does is killed, and that is a finding."""


class Fault:
    """What happens at write number `number`; with `number` None writes are only counted."""

    def __init__(self, number: int | None = None, how: str = "kill", *, below: Path) -> None:
        self.number, self.how, self.below, self.count = number, how, str(below), 0
        self.last = ""

    def meet(self, kind: str, path: object = None) -> None:
        """Called before and after each step of a write."""
        name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else None
        at, self.count = self.count, self.count + 1
        if self.number is None or at < self.number:
            return
        self.last = f"{kind} {name}"
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif not kind.startswith("after"):
            number = getattr(errno, self.how)
            raise OSError(number, os.strerror(number), *([name] if name is not None else []))


def install(fault: Fault) -> None:
    """Let every write of this process below the fault's folder meet `fault`. For a process of its own."""

    def is_ours(path: object) -> bool:
        return str(Path(os.fsdecode(path)).absolute()).startswith(fault.below)  # type: ignore[arg-type]

    def around(kind: str, original: Callable[..., Any], named: Callable[..., object]) -> Callable[..., Any]:
        def stub(*arguments: Any, **options: Any) -> Any:
            path = named(*arguments, **options)
            if path is not None and not is_ours(path):
                return original(*arguments, **options)
            fault.meet(kind, path)
            made = original(*arguments, **options)
            fault.meet(f"after {kind}", path)
            return made

        return stub

    class Counted(io.BufferedWriter):
        def write(self, data: Any) -> int:
            whole = memoryview(data).cast("B")
            if fault.how == "kill" and fault.number == fault.count:
                super().write(whole[: len(whole) // 2])
                super().flush()
            fault.meet("write")
            return super().write(data)

    os_open, io_open = os.open, io.open

    def made_file(name: Any, flags: int, *rest: Any, **options: Any) -> int:
        if flags & os.O_CREAT and not isinstance(name, int) and is_ours(name):
            fault.meet("open", name)
        return os_open(name, flags, *rest, **options)

    def opened(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if any(letter in mode for letter in "wax+") and not isinstance(file, int) and is_ours(file):
            fault.meet("open", file)
        return io_open(file, mode, *rest, **options)

    os.open = made_file  # type: ignore[assignment]
    io.open = builtins.open = opened  # type: ignore[assignment]
    os.fdopen = lambda handle, mode="r": (  # type: ignore[assignment, misc]
        Counted(io.FileIO(handle, "wb", closefd=True)) if mode == "wb" else io_open(handle, mode)
    )
    os.fsync = around("fsync", os.fsync, lambda _handle: None)
    os.write = around("write", os.write, lambda handle, _data: None if handle > 2 else "/")
    tempfile.mkstemp = around("open", tempfile.mkstemp, lambda **options: options.get("dir") or "/")
    Path.replace = around("replace", Path.replace, lambda self, _target: self)  # type: ignore[method-assign]


def in_child(work: Callable[[], Ended], fault: Fault, seconds: float = SECONDS, after: float | None = None) -> Ended:
    """Run `work` in a forked process that meets `fault`; code -9 if it was killed, -1 if it ran too long.

    With `after` the process is killed from outside so many seconds later.
    """
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "ended.json"
        child = os.fork()
        if child == 0:
            _as_child(work, fault, told)
        start, status = time.monotonic(), None
        while status is None:
            found, code = os.waitpid(child, os.WNOHANG)
            passed = time.monotonic() - start
            if found:
                status = code
            elif passed > seconds or (after is not None and passed > after):
                os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
                if passed > seconds:
                    return Ended(-1, "", "it ran too long")
            else:
                time.sleep(0.005)
        if os.WIFSIGNALED(status):
            return Ended(-os.WTERMSIG(status), "", "")
        code, out, err, fault.count, fault.last = json.loads(told.read_text(encoding="utf-8"))
        return Ended(code, out, err)


def _as_child(work: Callable[[], Ended], fault: Fault, told: Path) -> None:
    """The forked process: it does `work`, tells how that ended, and ends without its parent's clean-up."""
    try:
        install(fault)
        ended = work()
        told.write_text(json.dumps([ended.code, ended.out, ended.err, fault.count, fault.last]), encoding="utf-8")
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(3)
    os._exit(0)
