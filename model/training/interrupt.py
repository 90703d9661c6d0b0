"""How a training or a program ends early, and what a signal means: in training a wish that is read between two steps,
elsewhere the end of the program, tidily.

The signals are Ctrl-C (SIGINT), SIGTERM (of `kill`, `timeout` and batch systems) and SIGHUP (of a terminal that is
closed). One that was ignored when the program started stays ignored: that is how `nohup` and a shell's background jobs
ask for it.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SAME_SECONDS = 1.0
"""Signals within this time are one: `timeout` sends each twice, and a terminal may send one that `make` hands on."""
_Handler = Callable[[int, FrameType | None], None]


@dataclass
class StopWish:
    """Whether the user asked to stop."""

    signal_name: str | None = None
    """One of NAMES once it has come."""


class TrainingInterrupted(Exception):  # noqa: N818 - an event that the user caused, not an error
    """Ctrl-C, SIGTERM or SIGHUP came; the step was finished and last.pt saved. Ends the program with exit code 130."""


class SaidByProcessZero(Exception):  # noqa: N818 - not an error of its own
    """Process 0 failed and says why; this process has nothing to add and only has to end."""


class StoppedBySignal(KeyboardInterrupt):
    """SIGTERM or SIGHUP came outside of training. Like Ctrl-C it passes whatever handles errors."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


@contextmanager
def stop_on_signals(*, is_repeatable: bool = False) -> Iterator[StopWish]:
    """Catch signals as a wish to stop. A second Ctrl-C, more than a second later, acts as it would have before.

    With `is_repeatable` even that is no more than the same wish: torchrun hands on to its processes what a terminal
    may have sent them already, and kills them itself where they take too long. The former handlers are back afterwards.
    Outside the main thread Python allows no handlers, so the wish stays unset there.
    """
    wish = StopWish()
    came_at = time.monotonic()

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came_at
        is_again = wish.signal_name is not None and time.monotonic() - came_at > _SAME_SECONDS
        before = former.get(number)
        if number == signal.SIGINT and is_again and not is_repeatable and callable(before):
            before(number, frame)
        if wish.signal_name is None:
            wish.signal_name, came_at = signal.Signals(number).name, time.monotonic()

    with _handled_by(note) as former:
        yield wish


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise StoppedBySignal, as Ctrl-C raises KeyboardInterrupt: open files are undone then.

    Repeats within a second are the same signal, and do not cut that short.
    """
    came_at = -_SAME_SECONDS

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal came_at
        now = time.monotonic()
        if now - came_at <= _SAME_SECONDS:
            return
        came_at = now
        if number == signal.SIGINT:
            signal.default_int_handler(number, frame)
        raise StoppedBySignal(number)

    with _handled_by(end):
        yield


@contextmanager
def _handled_by(handler: _Handler) -> Iterator[dict[int, object]]:
    """Let `handler` have the signals that are not ignored; yields the former handlers, which are back afterwards."""
    former: dict[int, object] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]  # Windows has no SIGHUP
        former = {number: signal.getsignal(number) for number in numbers if signal.getsignal(number) != signal.SIG_IGN}
    try:
        for number in former:
            signal.signal(number, handler)
        yield former
    finally:
        for number, before in former.items():
            # None: the handler was not installed from Python, and cannot be put back from here.
            signal.signal(number, signal.SIG_DFL if before is None else before)  # type: ignore[arg-type]
