"""Files that are either whole or absent: atomic writes, hashes, strict reading of text and JSON."""

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from data.errors import DataError
from data.kinds import recognise

_CHUNK_BYTES = 1 << 20


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path` for writing bytes; it takes the place of `path` only if all went well.

    The parent folder is made. On any failure the previous file survives and the temporary one is removed.
    Raises DataError naming the path and the cause when the file system refuses (disk full, read-only folder).
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes private files; these are ordinary ones
        temporary.replace(path)
        temporary = None
        _sync_folder(path.parent)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}; nothing was changed") from error
    except RuntimeError as error:
        # torch.save reports a full disk as RuntimeError; anything else is not ours to explain.
        if _is_write_failure(error):
            raise DataError(f"cannot write {path}: {error}; nothing was changed") from error
        raise
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _is_write_failure(error: RuntimeError) -> bool:
    if isinstance(error.__context__, OSError) or isinstance(error.__cause__, OSError):
        return True
    text = str(error)
    return "PytorchStreamWriter failed" in text or os.strerror(errno.ENOSPC) in text


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable. Windows cannot open a folder and needs no such step."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
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
            way_on = "the file is cut short in the middle of a character; restore it, or leave the file out"
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
    """Read JSON; raises DataError with line and column when it is damaged."""
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path} is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error


def canonical_json(value: Any) -> str:
    """The one spelling of `value` that hashes are taken of: no spaces, characters as they are, keys as given."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def sha256_text(text: str) -> str:
    """Hex sha256 of the UTF-8 bytes of `text`."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file's bytes, read in pieces."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    return digest.hexdigest()
