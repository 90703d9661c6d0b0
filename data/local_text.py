"""The user's own files, folders and globs as documents. Nothing that was asked for is skipped without a word."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from data.clean import find_lone_surrogate
from data.errors import DataError
from data.files import decode_utf8, sha256_file
from data.separator import describe_separator, is_removed
from data.splits import Corpus, Document

_GLOB_CHARACTERS = re.compile(r"[*?\[]")


def load_local_text(paths: Mapping[str | None, Sequence[str]], separator: str | None) -> Corpus:
    """Read UTF-8 files as documents: each file one, or cut at `separator`.

    `paths` maps a split (None: by hash) to files, folders and globs. Raises DataError for a path that matches
    nothing, for a file that is unreadable, empty, binary, not UTF-8, or given for two splits, and for a separator that
    occurs in no file.
    """
    documents: list[Document] = []
    hashes: dict[str, str] = {}
    occurrences: dict[str, int] = {}
    for split, files in expand_splits(paths).items():
        for path in files:
            raw = _read_bytes(path)
            hashes[path.as_posix()] = hashlib.sha256(raw).hexdigest()
            pieces = cut(decode_text(raw, path), separator)
            occurrences[path.as_posix()] = len(pieces) - 1
            documents.extend(Document(_name(path, number, pieces), piece, split) for number, piece in enumerate(pieces))
    provenance: dict[str, Any] = {"num_files": len(hashes)}
    if separator is not None:
        provenance["separator"] = describe_separator(separator, occurrences)
    return Corpus(documents=documents, identity={"files": hashes}, provenance=provenance)


def local_text_identity(paths: Mapping[str | None, Sequence[str]]) -> dict[str, Any]:
    """sha256 of every input file by path. Raises DataError as `expand` does."""
    files = [path for found in expand_splits(paths).values() for path in found]
    return {"files": {path.as_posix(): sha256_file(path) for path in files}}


def expand_splits(paths: Mapping[str | None, Sequence[str]]) -> dict[str | None, list[Path]]:
    """The files of each split. Raises DataError if a file would stand in two of them."""
    expanded = {split: expand(given) for split, given in paths.items()}
    owner: dict[Path, str | None] = {}
    for split, files in expanded.items():
        for path in files:
            other = owner.setdefault(path.resolve(), split)
            if other != split:
                raise DataError(f"{path} is given for both {other} and {split}; the splits must not share a file")
    return expanded


def expand(given: Sequence[str]) -> list[Path]:
    """Files, folders (with everything below them, sorted) and globs -> files, each once, in the order given.

    In folders and globs, names that start with a dot are left out, as a shell does; a file named outright is
    always taken. Symbolic links are followed, each real folder is entered once. Raises DataError for a path that
    matches nothing, something that is no regular file, and a file name that is not UTF-8.
    """
    found: dict[Path, Path] = {}  # real path -> path as reached
    for pattern in given:
        matches = _matches(pattern)
        if not matches:
            raise DataError(f"{pattern!r} matches no file; correct the path (it is relative to {Path.cwd()})")
        for path in matches:
            if find_lone_surrogate(str(path)) is not None:
                raise DataError(f"the file name {str(path)!r} is not valid UTF-8; rename the file")
            if not path.is_file():
                raise DataError(f"{path} is not a readable regular file; remove it or leave it out")
            found.setdefault(path.resolve(), path)
    return list(found.values())


def _matches(pattern: str) -> list[Path]:
    path = Path(pattern).expanduser()
    if path.is_dir():
        return _files_below(path)
    if path.exists() or path.is_symlink() or not _GLOB_CHARACTERS.search(pattern):
        return [path] if path.exists() or path.is_symlink() else []
    parts = path.parts
    first_magic = next(index for index, part in enumerate(parts) if _GLOB_CHARACTERS.search(part))
    base, rest = Path(*parts[:first_magic]), parts[first_magic:]
    wants_hidden = any(part.startswith(".") for part in rest)
    matches: list[Path] = []
    for match in sorted(base.glob("/".join(rest))):  # Path.glob does not follow links below **, so it ends
        if not wants_hidden and any(part.startswith(".") for part in match.relative_to(base).parts):
            continue
        matches.extend(_files_below(match) if match.is_dir() else [match])
    return matches


def _files_below(folder: Path) -> list[Path]:
    """Everything below `folder` that is not a folder, sorted by path; a loop of links is entered once."""
    found: list[Path] = []
    entered: set[str] = set()

    def refuse(error: OSError) -> None:
        raise DataError(f"cannot read {error.filename}: {error.strerror or error}") from error

    for parent, folders, names in os.walk(folder, followlinks=True, onerror=refuse):
        if os.path.realpath(parent) in entered:
            folders.clear()
            continue
        entered.add(os.path.realpath(parent))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found.extend(Path(parent) / name for name in names if not name.startswith("."))
    return sorted(found)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def decode_text(raw: bytes, path: Path) -> str:
    """Decode a text file. Raises DataError naming file and byte offset if it is empty, binary or not UTF-8."""
    if not raw:
        raise DataError(f"{path} is empty; leave it out")
    text = decode_utf8(raw, str(path))
    offset = raw.find(b"\0")
    if offset >= 0:
        raise DataError(
            f"{path} is not a text file: NUL byte at offset {offset} (binary, or UTF-16 without a byte order mark); "
            "convert it to UTF-8 or leave it out"
        )
    return text


def cut(text: str, separator: str | None) -> list[str]:
    r"""Cut `text` at every `separator`; a `\n` in it matches one line end of any kind: `\n`, `\r\n` or `\r`.

    A separator of white space belongs to no document. Any other is text: it stays at the end of the document before
    it, so that the documents joined are `text`.

    >>> cut("one\r\ntwo\r\n\r\nthree\n\nfour\n", "\n\n")
    ['one\r\ntwo', 'three', 'four\n']
    >>> cut("One. Two.", ". ")
    ['One. ', 'Two.']
    """
    if separator is None:
        return [text]
    # (?>…) is atomic: once it took a \r\n, it is never tried again as a \r alone with a \n left over
    pattern = re.compile(r"(?>\r\n|\r|\n)".join(re.escape(line) for line in separator.split("\n")))
    if is_removed(separator):
        return pattern.split(text)
    ends = [match.end() for match in pattern.finditer(text)]
    return [text[start:end] for start, end in pairwise([0, *ends, len(text)])]


def _name(path: Path, number: int, pieces: list[str]) -> str:
    return str(path) if len(pieces) == 1 else f"{path} (document {number})"
