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

    Raises DataError with the byte offset of the first invalid byte, and says so when the file is UTF-16.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    return decode_utf8(raw, str(path))


def decode_utf8(raw: bytes, name: str) -> str:
    """Decode `raw`, read from `name`, as UTF-8; a byte order mark stays in the text, cleaning removes it."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{name} is UTF-16 (it starts with the byte order mark {raw[:2].hex()}); save it as UTF-8")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        found = raw[error.start]
        raise DataError(
            f"{name} is not valid UTF-8: byte 0x{found:02x} at offset {error.start} ({error.reason}); "
            "convert it to UTF-8 or leave the file out"
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
    """Hex sha256 of a file's bytes, read in pieces."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    return digest.hexdigest()
