"""Ctrl-C and SIGTERM as a wish that is read between two steps, so that no step is ever cut in half."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopWish:
    """Whether the user asked to stop."""

    signal_name: str | None = None
    """`SIGINT` or `SIGTERM` once it has come."""


@contextmanager
def stop_on_signals(*, is_repeatable: bool = False) -> Iterator[StopWish]:
    """Catch the first SIGINT or SIGTERM as a wish; a second one acts as it would have before.

    With `is_repeatable` a second one is no more than the same wish: torchrun hands on to its processes what a terminal
    may have sent them already, and kills them itself where they take too long. The former handlers are back afterwards.
    Outside the main thread Python allows no handlers, so the wish stays unset there.
    """
    wish = StopWish()
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in former.items():
            # None: the handler was not installed from Python, and cannot be put back from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def note(number: int, _frame: FrameType | None) -> None:
        wish.signal_name = signal.Signals(number).name
        if not is_repeatable:
            restore()

    try:
        for number in former:
            signal.signal(number, note)
        yield wish
    finally:
        restore()
