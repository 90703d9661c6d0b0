"""The command line: one small file for each Make command. Ctrl-C ends every one of them without a traceback."""

import sys
from types import TracebackType


def _quiet_interrupt(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Exit code 130 for a Ctrl-C while a command still imports, which is before `cli.run` can catch it."""
    if issubclass(kind, KeyboardInterrupt):
        sys.exit(130)
    sys.__excepthook__(kind, error, traceback)


sys.excepthook = _quiet_interrupt
