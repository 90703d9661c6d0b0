"""Standard output and error: nothing is lost silently, and a reader that has gone is no error."""

import errno
import io
import os
import sys
import unicodedata
from pathlib import Path
from typing import Any, TextIO

from data.errors import UserError, cause_of

USE_UTF8 = "set LC_ALL=C.UTF-8, or unset PYTHONUTF8"
"""How to go on where an encoding cannot spell a character."""


class OutputError(Exception):
    """The standard output or error takes nothing more. No OSError, which would be taken for one of a file."""

    def __init__(self, number: int, error: OSError) -> None:
        super().__init__(f"cannot write the output: {cause_of(error)}")
        self.number = number
        is_pipe_on_windows = os.name == "nt" and error.errno == errno.EINVAL
        self.is_reader_gone = isinstance(error, BrokenPipeError) or is_pipe_on_windows


class _Output(io.FileIO):
    """The file of standard output or error, with errors of its own."""

    def write(self, data: Any, /) -> int:
        """Write bytes; raises OutputError."""
        try:
            return super().write(data)
        except OSError as error:
            raise OutputError(self.fileno(), error) from error


def is_stdout_utf8() -> bool:
    """Whether what is printed comes out as UTF-8; where it does not, JSON has to be escaped to stay JSON."""
    return (sys.stdout.encoding or "").lower().replace("-", "").replace("_", "") == "utf8"


def prepare_streams() -> None:
    """See that printing loses nothing: what an encoding cannot spell is shown as its code, a closed stdout refused.

    Raises UserError.
    """
    for number in range(3):  # a closed one would be taken by the first file that is opened, and be printed into
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    is_closed = sys.stdout is None
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    if sys.stdout is sys.__stdout__:  # else it has been replaced, as under a test or by an earlier call
        sys.stdout = _guarded(sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _guarded(sys.stderr)
    if is_closed:
        raise UserError("the standard output is closed; send it to a file, or to /dev/null")
    unreadable = [argument for argument in sys.argv[1:] if not argument.isascii() and _has_surrogate(argument)]
    if unreadable and not has_utf8_names():
        raise UserError(f"{unreadable[0]!r} cannot be read in {sys.getfilesystemencoding()}; {USE_UTF8}")


def _guarded(stream: Any) -> TextIO:
    """The same stream with OutputErrors, and with codes for the characters that its encoding cannot spell."""
    raw = _Output(stream.fileno(), "w", closefd=False)
    is_unbuffered = isinstance(stream.buffer, io.RawIOBase)
    return io.TextIOWrapper(
        raw if is_unbuffered else io.BufferedWriter(raw),  # as the interpreter itself does
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _has_surrogate(text: str) -> bool:
    return any(unicodedata.category(character) == "Cs" for character in text)


def has_utf8_names() -> bool:
    """Whether the names of files and the arguments are read as UTF-8."""
    return sys.getfilesystemencoding().lower().replace("-", "") == "utf8"


def send_nowhere(number: int) -> None:
    """Let what is still written to the stream `number` be lost, without an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
