"""Files that are either whole or absent: atomic writes, hashes, strict reading of text and JSON."""

import errno
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from data.errors import DataError, cause_of, shown_path
from data.kinds import recognise

try:
    import fcntl
except ImportError:  # Windows, which lets nobody remove a file that is open
    fcntl = None  # type: ignore[assignment]

_SETTLED_NS = 2_000_000_000  # FAT rounds times to two seconds
_NAME_BYTES = 100
"""So much of a file's name is in its temporary file's, which is longer and must not exceed 255 bytes."""
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM)


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file next to `path` for writing bytes; it takes the place of `path` only if all went well.

    The parent folder is made. On any failure the previous file survives and the temporary one is removed; what a
    killed process left is removed by the next write of the same file. Raises DataError naming the path and the cause
    when the file system refuses (disk full, read-only folder).
    """
    temporary: Path | None = None
    lock: int | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_temporary_prefix(path), suffix=".part")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            lock = _lock(file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes private files; these are ordinary ones
        temporary.replace(path)
        temporary = None
    except OSError as error:
        if not _is_about(error, path, temporary):
            raise
        raise _cannot_write(path, cause_of(error)) from error
    except RuntimeError as error:
        # torch.save reports a failing write as RuntimeError; anything else is not ours to explain.
        cause = _write_failure(error)
        if cause is None:
            raise
        raise _cannot_write(path, cause) from error
    finally:
        if lock is not None:
            os.close(lock)
        if temporary is not None:
            with suppress(OSError):  # the failing disk may refuse this too; the next write tries again
                temporary.unlink(missing_ok=True)
    _sync_folder(path)


def _cannot_write(path: Path, cause: str) -> DataError:
    said, _, advice = cause.partition("; ")
    return DataError(f"cannot write {path}: {said}; nothing was changed" + (f"; {advice}" if advice else ""))


def _is_about(error: OSError, path: Path, temporary: Path | None) -> bool:
    """Whether `error` is about the file that is written, and not about another that the caller reads meanwhile."""
    if error.filename is None:
        return not isinstance(error, ConnectionError)
    named = Path(os.fsdecode(error.filename))
    return named in (path, temporary) or named == path.parent or named in path.parents or named.parent == path.parent


def _write_failure(error: RuntimeError) -> str | None:
    """The cause if `error` says that a write failed; None if it says something else."""
    for inner in (error.__cause__, error.__context__):
        if isinstance(inner, OSError):
            return cause_of(inner)
    text = str(error).splitlines()[0] if str(error) else ""
    is_known = "PytorchStreamWriter failed" in text or os.strerror(errno.ENOSPC) in text
    return text if is_known else None


def _temporary_prefix(path: Path) -> str:
    start = os.fsencode(path.name)[:_NAME_BYTES].decode(errors="ignore")
    return f".{start}."


def _lock(handle: int) -> int | None:
    """Mark a temporary file as being written: another handle of it that holds a lock until it is closed.

    The system drops the lock with the process, however that ends. None where the file system knows no locks.
    """
    if fcntl is None:
        return None
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.dup(handle)
    return None


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of `path` whose writer was killed: those that nobody holds a lock on."""
    if fcntl is None:
        return
    prefix = _temporary_prefix(path)
    try:
        found = [file for file in path.parent.iterdir() if file.name.startswith(prefix) and file.suffix == ".part"]
    except PermissionError:  # a folder that may be written but not listed
        return
    for file in found:
        with suppress(OSError):  # being written, of another user, or already removed by another process
            handle = os.open(file, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.unlink()
            finally:
                os.close(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _sync_folder(path: Path) -> None:
    """Make the rename itself durable, where the file system can. Windows cannot open a folder and needs no such step.

    Raises DataError if the disk fails; `path` has been replaced by then.
    """
    if os.name == "nt":
        return
    try:
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise DataError(f"{path} was written, but the disk does not confirm it: {cause_of(error)}") from error


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, line ends untouched, atomically."""
    with atomic_write(path) as file:
        file.write(text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented UTF-8 JSON with a final newline, atomically. NaN and infinity are refused."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def read_text(path: Path) -> str:
    """Read a UTF-8 file with its line ends untouched.

    Raises DataError with the byte offset of the first invalid byte, or saying what the file is: UTF-16, compressed, ….
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {shown_path(path)}: {cause_of(error)}") from error
    return decode_utf8(raw, str(path))


def decode_utf8(raw: bytes, name: str) -> str:
    """Decode `raw`, read from `name`, as UTF-8; a byte order mark stays in the text, cleaning removes it."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        kind = recognise(raw)
        if kind is not None:
            raise DataError(f"{name} is {kind}") from error
        if error.reason == "unexpected end of data":
            way_on = "the file is cut short in the middle of a character; put it back whole, or leave it out"
        else:
            way_on = (
                "convert it to UTF-8 or leave the file out; if it is Latin-1 or Windows-1252: "
                "`iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW`"
            )
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name} is not valid UTF-8: byte 0x{raw[error.start]:02x} at offset {error.start}, line {line} "
            f"({error.reason}); {way_on}"
        ) from error


def read_json(path: Path) -> Any:
    """Read JSON; raises DataError with line and column when it is damaged.

    A byte order mark, which some editors put first, is passed over. NaN and infinity are no JSON.
    """
    text = read_text(path).removeprefix("\ufeff")
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path} is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise DataError(f"{path} is not valid JSON: its lists or objects are nested too deep") from error
    except ValueError as error:  # also a whole number of thousands of digits
        raise DataError(f"{path} is not valid JSON: {error}") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def canonical_json(value: Any) -> str:
    """The one spelling of `value` that hashes are taken of: no spaces, characters as they are, keys as given."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def sha256_text(text: str) -> str:
    """Hex sha256 of the UTF-8 bytes of `text`."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file's bytes. One that stayed the same since this process hashed it is not read again.

    The same is: file number, size and both times, of which no program can set the second. A file changed so lately that
    another change could get the same times is always read.
    """
    try:
        with path.open("rb") as file:
            before = _state_of(file)
            if before not in _HASHES:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                if not (_is_settled(before) and _state_of(file) == before):
                    return digest
                _HASHES[before] = digest
            return _HASHES[before]
    except OSError as error:
        raise DataError(f"cannot read {shown_path(path)}: {cause_of(error)}") from error


class _FileState(NamedTuple):
    """What tells one content of a file from another without reading it."""

    device: int
    inode: int
    size: int
    changed_ns: int
    """When the content was written last."""
    touched_ns: int
    """When anything about the file changed last, its times included (on Windows: when it was made)."""


_HASHES: dict[_FileState, str] = {}


def _state_of(file: IO[bytes]) -> _FileState:
    found = os.fstat(file.fileno())
    return _FileState(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _is_settled(state: _FileState) -> bool:
    """Whether the clock has gone on by more than the coarsest file system rounds it to since the last change."""
    return time.time_ns() - max(state.changed_ns, state.touched_ns) > _SETTLED_NS
