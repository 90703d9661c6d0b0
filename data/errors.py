"""The errors a user can cause, and what a refusal of the operating system means for a user.

Each is one readable sentence and ends the program with exit code 2. Anything else that is raised is a bug and ends it
with a traceback and exit code 1. The classes live in the lowest package so that every other package can raise them.
"""

import errno
import os
import secrets
from collections.abc import Callable

_MARK = f"\0{secrets.token_hex(8)}\0"
"""Stands around a command on its way into an error. Made again by every process: no text that a user gives holds it."""


def command(words: str) -> str:
    """A command such as `make data` for the message of a UserError, and for nothing else.

    The error keeps it apart from the text around it, so that the command line can complete it with the experiment.
    """
    return f"{_MARK}{words}{_MARK}"


class UserError(ValueError):
    """Something the user gave is wrong; the message says what was found, where, and how to go on.

    >>> error = UserError(f"too old; run {command('make data')} again")
    >>> str(error)
    'too old; run `make data` again'
    >>> error.completed(" EXPERIMENT=demo")
    'too old; run `make data EXPERIMENT=demo` again'
    """

    def __init__(self, message: str = "") -> None:
        self._pieces = message.split(_MARK)  # text, command, text, …
        super().__init__(self.completed(""))

    @property
    def text(self) -> str:
        """The message for the message of another error, in which its commands are still commands."""
        return _MARK.join(self._pieces)

    @property
    def commands(self) -> list[str]:
        """The commands that the message names."""
        return self._pieces[1::2]

    def completed(self, options: str) -> str:
        """The message with `options` at the end of every command it names, each in backticks."""
        return self.with_commands(lambda words: f"{words}{options}")

    def with_commands(self, spelled: Callable[[str], str]) -> str:
        """The message with every command as `spelled` writes it, in backticks."""
        return "".join(f"`{spelled(piece)}`" if number % 2 else piece for number, piece in enumerate(self._pieces))


class ConfigError(UserError):
    """An experiment file, an option or one of its values."""


class DivergedError(ConfigError):
    """Training settings under which a loss, gradient or val figure became infinite or no number."""


class DataError(UserError):
    """A corpus: missing, unreadable, changed, or too short."""


class TokenizerError(UserError):
    """A tokenizer, its file, or text that it cannot represent."""


class LibraryError(UserError):
    """A package that a setting needs and that is not installed."""


class CheckpointError(UserError):
    """A checkpoint that is damaged or belongs to another tokenizer, text or configuration."""


class ReportError(UserError):
    """Results that cannot be compared."""


class InUseError(UserError):
    """Something that another process is at work on."""


_RIGHTS = "you lack the rights; change them, or choose another place"
_HOW_TO_GO_ON = {
    "EACCES": _RIGHTS,
    "EPERM": _RIGHTS,
    "EROFS": "nothing can be written there; choose another place",
    "ENOSPC": "make room on that disk, or choose another place",
    "EDQUOT": "your share of that disk is used up; make room, or choose another place",
    "EFBIG": "the file system or `ulimit -f` takes no file of that size; choose another place",
    "ENAMETOOLONG": "most file systems take names of up to 255 bytes; choose a shorter one",
    "EMFILE": "raise the limit on open files (`ulimit -n`)",
    "ENFILE": "the whole machine has too many files open; close some",
    "ENOMEM": "free some memory, or use less text or a smaller model",
    "EIO": "the disk or its connection fails; check it, or choose another place",
    "ESTALE": "the network folder has changed; mount it again",
    "ETIMEDOUT": "the network folder does not answer; try again",
    "ENXIO": "the device does not answer; choose another place",
    "ENODEV": "the device is not there; choose another place",
    "EBUSY": "another program uses it; try again",
    "ETXTBSY": "another program uses it; try again",
    "ELOOP": "symbolic links lead round in a circle; correct them",
    "ENOTDIR": "a file lies where a folder is needed; move it, or choose another place",
    "EISDIR": "a folder lies where a file is needed; move it, or choose another place",
    "EEXIST": "something else lies there; move it, or choose another place",
    "ENOENT": "it is not there, or was removed meanwhile",
}
_ADVICE = {getattr(errno, name): advice for name, advice in _HOW_TO_GO_ON.items() if hasattr(errno, name)}
_WITHOUT_A_PATH = {"ENOSPC", "EDQUOT", "EROFS", "EFBIG", "EIO", "EMFILE", "ENFILE", "ENOMEM"}
_MAX_SHOWN = 300


def cause_of(error: OSError) -> str:
    """What the operating system says, and how to go on: `No space left on device; make room on that disk, …`."""
    said = error.strerror or str(error) or type(error).__name__
    advice = _ADVICE.get(error.errno) if error.errno is not None else None
    return f"{said}; {advice}" if advice else said


def is_circumstance(error: OSError) -> bool:
    """Whether `error` tells of the files, disks and limits of this machine, so that it is no bug of the program.

    It names a path, or it is a refusal that needs none, such as a full disk. Others (a closed handle, a wrong
    argument of a system call, a broken connection) are not explained here.
    """
    known = errno.errorcode.get(error.errno or 0, "")
    return known in _WITHOUT_A_PATH or (error.filename is not None and error.errno in _ADVICE)


def explained(error: OSError) -> UserError:
    """The one sentence for a circumstance: which path, the cause, and how to go on."""
    paths = [shown_path(path) for path in (error.filename, error.filename2) if path is not None]
    where = " -> ".join(paths) or "a file"
    return UserError(f"cannot use {where}: {cause_of(error)}")


def shown_path(path: object) -> str:
    """A path for a message; of one as long as a text, its start."""
    text = f"file number {path}" if isinstance(path, int) else os.fsdecode(path)  # type: ignore[arg-type]
    return text if len(text) <= _MAX_SHOWN else f"{text[:60]}… ({len(os.fsencode(text)):,} bytes)"
