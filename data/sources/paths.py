"""Paths as the user writes them and as messages show them."""

import errno
import os
import re
from pathlib import Path

from data.clean import find_lone_surrogate
from data.errors import DataError

_MAX_NAME_BYTES = 255
_MAX_SHOWN = 200  # characters of a path in a message
_PLAIN = re.compile(r"[^\s'\"\\`$]+")
_HINTS = (
    (re.compile(r"^[a-z]+://"), "an address on the net is no path: download the file first"),
    (re.compile(r"\{.*,.*\}"), "braces are no pattern here: give one path each"),
    (re.compile(r"\$\w|\$\{"), "variables of the shell are not replaced: write the path out"),
    (re.compile(r"\["), "`[…]` stands for one of the characters in it; for a bracket itself write `[[]`"),
)


def shown(path: Path | str) -> str:
    r"""A path for a message, so that it can be copied from there: quoted where it holds more than plain characters.

    >>> shown("a/b.txt"), shown("two  spaces"), shown("a\nb")
    ('a/b.txt', "'two  spaces'", "'a\\nb'")
    """
    text = path.as_posix() if isinstance(path, Path) else path
    if len(text) > _MAX_SHOWN:
        return f"{text[:_MAX_SHOWN]!r}… ({len(text):,} characters)"
    return text if _PLAIN.fullmatch(text) and text.isprintable() else repr(text)


def parsed(pattern: str) -> Path:
    """`pattern` as a path, with `~` and `~user` replaced by home folders. Raises DataError for what can be no path.

    A name such as `~draft.txt` stands for that file where there is one; `~` alone always means the home folder.
    """
    if not pattern.strip():
        raise DataError(f"an empty path is given ({pattern!r}); name a file, folder or glob")
    if "\0" in pattern or find_lone_surrogate(pattern) is not None:
        raise DataError(f"{shown(pattern)!s} is no path: it holds a character that no file name can hold")
    longest = max(len(part.encode("utf-8")) for part in pattern.split("/"))
    if longest > _MAX_NAME_BYTES:
        what = "text where a path belongs" if "\n" in pattern or " " in pattern else "no path"
        raise DataError(
            f"{shown(pattern)} is {what}: it has a name of {longest:,} bytes, and file systems take {_MAX_NAME_BYTES}; "
            "give the path of a file that holds the text"
        )
    first = pattern.split("/")[0]
    if not first.startswith("~") or (first != "~" and os.path.lexists(first)):
        return Path(pattern)
    expanded = os.path.expanduser(pattern)  # noqa: PTH111 - Path.expanduser raises RuntimeError for an unknown user
    if expanded != pattern:
        return Path(expanded)
    if first == "~":
        raise DataError(f"{shown(pattern)} begins with the home folder, but none is known; write the path out")
    raise DataError(
        f"{shown(pattern)} matches no file: {working_folder()} holds no {shown(first)}, and there is no user "
        f"{shown(first[1:])}; correct the path"
    )


def working_folder() -> str:
    """The working directory, for messages."""
    try:
        return shown(Path.cwd())
    except OSError:
        return "the working directory, which was removed"


def real_path(path: Path) -> str:
    """The absolute path of `path` with all links followed as far as they lead. Raises DataError without a folder to
    start from."""
    try:
        return os.path.realpath(path)
    except OSError as error:
        raise DataError("the working directory was removed; change to a folder that exists") from error


def refused(path: Path, error: OSError) -> DataError:
    """The error for `path`, which is asked for and cannot be read."""
    if error.errno == errno.ELOOP:
        return not_regular(path, "links lead round in a circle")
    if error.errno == errno.ENOENT and path.is_symlink():
        return not_regular(path, f"it is a link to {shown(path.readlink())}, which does not exist")
    why = error.strerror or str(error)
    if error.errno not in (errno.EACCES, errno.EPERM):
        return DataError(f"cannot read {shown(path)}: {why}")
    closed = next((parent for parent in reversed(path.parents) if not os.access(parent, os.X_OK)), None)
    place = "" if closed is None else f" (the folder {shown(closed)} may not be entered)"
    return DataError(
        f"cannot read {shown(path)}: {why}{place}; give yourself the right to read it, or a path that leaves it out"
    )


def not_regular(path: Path, why: str) -> DataError:
    """The error for something that is asked for and is no regular file."""
    return DataError(
        f"{shown(path)} is not a readable regular file; remove it or give a path that leaves it out ({why})"
    )


def matches_nothing(pattern: str, left_out: list[str]) -> DataError:
    """The error for a pattern that gives no file: what was left out, or what may be wrong with it."""
    quoted = repr(pattern) if len(pattern) <= _MAX_SHOWN else shown(pattern)
    if left_out:
        return DataError(f"{quoted} matches no file that may be read ({'; '.join(left_out)}); give another path")
    if "\n" in pattern:
        return DataError(f"{quoted} is text where a path belongs; give the path of a file that holds the text")
    path = parsed(pattern)
    is_expanded = pattern.startswith("~") and path != Path(pattern)
    where = f"it stands for {shown(path)}" if is_expanded else f"it is relative to {working_folder()}"
    hint = next((f"; {hint}" for found, hint in _HINTS if found.search(pattern)), "")
    return DataError(f"{quoted} matches no file; correct the path ({where}){hint}")
