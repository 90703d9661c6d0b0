"""The user's files, folders and globs -> the files to read. There is one policy, the same for folders and globs:

- Links are followed. What is reached under several names is taken once, under a name without a link if there is one.
- Left out, counted and named: names that begin with a dot (unless the pattern's own part begins with one), what lies
  where this or another experiment writes, the Python files of this program, and a broken link that no pattern asks for.
- What is asked for and cannot be read, or is no regular file, is an error. So is a path that matches nothing.
- A file named outright is taken, whatever its name is. Where this experiment writes, that is an error.
- `*`, `?` and `[…]` match within a name, `**` any number of folders; `[…]` is a name where there is one of that name.
- The order is that of the names, whatever the order of the file system is.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from data.clean import find_lone_surrogate
from data.errors import DataError
from data.sources.left_out import AGAIN, BRACKETS, BROKEN, HIDDEN, OWN, PROGRAM, LeftOut
from data.sources.paths import matches_nothing, not_regular, parsed, real_path, refused, shown
from data.sources.written import Written, is_of_program

_EVERYTHING = ("**", "*")
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True)
class InputFile:
    """One file to read."""

    path: Path
    """As reached from what the user gave, for messages."""
    is_named: bool
    """The user named this very file, and not only a folder or glob that holds it."""
    key: tuple[int, int] | str
    """Equal for two names of one file."""


def find_inputs(
    paths: Mapping[str | None, Sequence[str]], root: Path | None = None
) -> tuple[dict[str | None, list[InputFile]], LeftOut]:
    """The files of each split, and what was left out; `root` is where the experiment writes.

    Raises DataError as `Walker.expand` does, and if a file would be in two splits.
    """
    walker = Walker(root)
    found = {split: walker.expand(given) for split, given in paths.items()}
    owner: dict[tuple[int, int] | str, str | None] = {}
    for split, files in found.items():
        for file in files:
            other = owner.setdefault(file.key, split)
            if other != split:
                raise DataError(
                    f"{shown(file.path)} is given for both {other} and {split}; the splits must not share a file"
                )
    return found, walker.left_out


class Walker:
    """Finds the files of patterns by the policy above and notes in `left_out` what it does not take."""

    def __init__(self, root: Path | None = None) -> None:
        """`root` is where the experiment writes; None: nowhere."""
        self.left_out = LeftOut()
        self.written = Written(root)

    def expand(self, given: Sequence[str]) -> list[InputFile]:
        """Files, folders and globs -> files, each once: in the order given, and sorted by path in each.

        Raises DataError for a path that matches nothing, what cannot be read or is no regular file, a file name that
        is not UTF-8, and a file named outright that this experiment wrote.
        """
        found: dict[tuple[int, int] | str, InputFile] = {}
        for pattern in given:
            walk = _Walk(self, pattern)
            files = walk.run()
            if not files:
                raise matches_nothing(pattern, walk.left_out.lines())
            self.left_out.update(walk.left_out)
            for file in sorted(files, key=lambda file: file.path.parts):
                first = found.setdefault(file.key, file)
                if os.path.abspath(first.path) != os.path.abspath(file.path):  # noqa: PTH100 - links stay as they are
                    self.left_out.add(AGAIN, file.path)
        return list(found.values())


@dataclass(frozen=True)
class _Folder:
    """A folder on the way, and the parts of the pattern that are still to be matched below it."""

    path: Path
    real: str
    parts: tuple[str, ...]
    is_named: bool = False
    """Every part so far was spelled out by the user."""


class _Walk:
    """The walk of one pattern, without recursion, since folders may lie deeper than Python's stack."""

    def __init__(self, walker: Walker, pattern: str) -> None:
        self._walker = walker
        self.left_out = LeftOut()
        path = parsed(pattern)
        start = Path(path.anchor)
        self._base = ""
        self._pending = [_Folder(start, real_path(start), path.parts[bool(path.anchor) :], is_named=True)]
        self._linked: deque[_Folder] = deque()  # entered last, so that names without a link come first
        self._entered: dict[tuple[str, tuple[str, ...]], Path] = {}
        self._files: dict[tuple[int, int] | str, InputFile] = {}
        self._linked_files: list[Path] = []

    def run(self) -> list[InputFile]:
        """All files of the pattern."""
        while self._pending or self._linked or self._linked_files:
            if self._pending:
                self._enter(self._pending.pop())
            elif self._linked_files:
                path = self._linked_files.pop(0)
                self._take(path, real_path(path))
            else:
                self._enter(self._linked.popleft())
        return list(self._files.values())

    def _enter(self, folder: _Folder) -> None:
        parts = folder.parts or _EVERYTHING
        if (folder.real, parts) in self._entered:
            if self._entered[folder.real, parts] != folder.path:
                self.left_out.add(AGAIN, folder.path, is_folder=True)
            return
        self._entered[folder.real, parts] = folder.path
        if self._is_literal(folder.path, parts[0]):
            self._step(folder, parts[0], parts[1:])
            return
        self._base = self._base or folder.real
        entries = _entries(folder.path)
        if parts[0] == "**":
            self._pending.append(_Folder(folder.path, folder.real, parts[1:] or _EVERYTHING))
            for entry in entries:
                self._descend(folder, entry, parts)
            return
        for entry in entries:
            if fnmatch(entry.name, parts[0]):
                self._match(folder, entry, parts)

    def _is_literal(self, folder: Path, part: str) -> bool:
        """Whether `part` is a name. With brackets it is one where there is a file or folder of that name."""
        if part == "**":
            return False
        if "*" in part or "?" in part:
            if "**" not in part:
                return False
        elif "[" not in part:
            return True
        if os.path.lexists(folder / part):
            for entry in _entries(folder):
                if fnmatch(entry.name, part) and entry.name != part and not entry.name.startswith("."):
                    self.left_out.add(BRACKETS, folder / entry.name)
            return True
        if "**" in part:
            raise DataError(
                f"{part!r} is no pattern: `**` must stand alone between slashes; write '**/{part.replace('**', '*')}' "
                f"for this folder and all below it, or {part.replace('**', '*')!r} for this folder alone"
            )
        return False

    def _step(self, folder: _Folder, name: str, rest: tuple[str, ...]) -> None:
        """Go to a name that is spelled out, if it is there."""
        path = folder.path / name
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError) as error:
            if os.path.lexists(path):
                raise refused(path, error) from error
            return
        except OSError as error:
            raise refused(path, error) from error
        real = real_path(path)
        if stat.S_ISDIR(status.st_mode):
            self._pending.append(_Folder(path, real, rest, folder.is_named))
        elif not rest:
            self._take(path, real, is_named=folder.is_named)

    def _descend(self, folder: _Folder, entry: "os.DirEntry[str]", parts: tuple[str, ...]) -> None:
        """Go into the entry if it is a folder, which `**` stands for."""
        path = folder.path / entry.name
        kind = _kind(entry, path)
        if kind == "folder" and entry.name.startswith("."):
            self.left_out.add(HIDDEN, path, is_folder=True)
        elif kind == "folder":
            self._push(folder, entry, parts)
        elif kind == "nothing" and not entry.name.startswith("."):
            self.left_out.add(BROKEN, path)

    def _match(self, folder: _Folder, entry: "os.DirEntry[str]", parts: tuple[str, ...]) -> None:
        """Take what `parts[0]` matches: a file at the end of the pattern, else a folder to go into."""
        path = folder.path / entry.name
        kind = _kind(entry, path)
        is_asked_for = kind == "folder" or len(parts) == 1
        if is_asked_for and entry.name.startswith(".") and not parts[0].startswith("."):
            self.left_out.add(HIDDEN, path, is_folder=kind == "folder")
        elif kind == "folder":
            self._push(folder, entry, parts[1:] or _EVERYTHING)
        elif is_asked_for and entry.is_symlink():
            self._linked_files.append(path)
        elif is_asked_for:
            self._take(path, os.path.join(folder.real, entry.name))  # noqa: PTH118 - real is a string
        elif kind == "nothing" and not entry.name.startswith("."):
            self.left_out.add(BROKEN, path)

    def _push(self, folder: _Folder, entry: "os.DirEntry[str]", parts: tuple[str, ...]) -> None:
        path = folder.path / entry.name
        is_link = entry.is_symlink()
        real = real_path(path) if is_link else os.path.join(folder.real, entry.name)  # noqa: PTH118 - real is a string
        reason = self._walker.written.by(real, self._base)
        if reason is not None:
            self.left_out.add(reason, path, is_folder=True)
        elif is_link:
            self._linked.append(_Folder(path, real, parts))
        else:
            self._pending.append(_Folder(path, real, parts))

    def _take(self, path: Path, real: str, *, is_named: bool = False) -> None:
        """Take a file that the pattern asks for, or note why it is left out."""
        try:
            status = path.stat()
        except OSError as error:
            raise refused(path, error) from error
        reason = self._walker.written.by(real, real if is_named else self._base)
        if reason is None and not is_named and is_of_program(real):
            reason = PROGRAM
        if reason == OWN and is_named:
            raise DataError(
                f"{shown(path)} lies where this experiment itself writes, below its `root`, so it cannot be an input; "
                "give the file it was made from, copy it elsewhere, or give the experiment another `root`"
            )
        if reason is not None:
            self.left_out.add(reason, path)
            return
        if not stat.S_ISREG(status.st_mode):
            kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "something else")
            raise not_regular(path, f"it is {kind}")
        if find_lone_surrogate(str(path)) is not None:
            raise DataError(f"the file name {shown(path)} is not valid UTF-8; rename the file")
        key = (status.st_dev, status.st_ino) if status.st_ino else real
        first = self._files.setdefault(key, InputFile(path, is_named, key))
        if first.path != path:
            self.left_out.add(AGAIN, path)


def _entries(folder: Path) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise refused(folder, error) from error


def _kind(entry: "os.DirEntry[str]", path: Path) -> Literal["folder", "file", "nothing"]:
    """What an entry is, its link followed; what is no folder counts as a file. `nothing` is a link that leads nowhere.

    Raises DataError where that cannot be told, unless the name is hidden.
    """
    try:
        if entry.is_dir():
            return "folder"
        return "file" if not entry.is_symlink() or path.exists() else "nothing"
    except OSError as error:
        if error.errno == errno.ELOOP or entry.name.startswith("."):
            return "nothing"
        raise refused(path, error) from error
