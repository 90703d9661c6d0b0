"""The user's own files, folders and globs as documents. Nothing that was asked for is skipped without a word."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from typing import Any

from data.dividing.separator import describe_separator, is_removed
from data.errors import DataError
from data.files import decode_utf8
from data.kinds import recognise
from data.sources.left_out import EMPTY
from data.sources.paths import not_regular, refused, shown
from data.sources.walk import InputFile, find_inputs
from data.splits import Corpus, Document

_SHA256_OF_NOTHING = hashlib.sha256(b"").hexdigest()


def load_local_text(
    paths: Mapping[str | None, Sequence[str]], separator: str | None, root: Path | None = None
) -> Corpus:
    """Read UTF-8 files as documents: each file one, or cut at `separator`.

    `paths` maps a split (None: by hash) to files, folders and globs; `walk` says what is taken. `root` is where the
    experiment writes. An empty file is left out, unless it is named outright. The hashes are of the bytes that were
    read. Raises DataError for a path that matches nothing and for a file that is unreadable, binary, not UTF-8, given
    for two splits, empty and named outright, or changed while it was read, and for a separator that occurs in no file.
    """
    found, left_out = find_inputs(paths, root)
    documents: list[Document] = []
    hashes: dict[str, str] = {}
    occurrences: dict[str, int] = {}
    for split, files in found.items():
        num_before = len(hashes)
        for file in files:
            with _opened(file.path) as opened:
                raw = opened.read()
            if not raw and not file.is_named:
                left_out.add(EMPTY, file.path)
                continue
            hashes[file.path.as_posix()] = hashlib.sha256(raw).hexdigest()
            name = shown(file.path)
            pieces = cut(decode_text(raw, file.path), separator)
            occurrences[file.path.as_posix()] = len(pieces) - 1
            documents.extend(Document(_name(name, number, pieces), piece, split) for number, piece in enumerate(pieces))
        if len(hashes) == num_before:
            given = ", ".join(shown(path) for path in paths[split])
            what = "its only file is empty" if len(files) == 1 else f"all of its {len(files):,} files are empty"
            raise DataError(f"{given} gives no text: {what}; give files with text")
    provenance: dict[str, Any] = {"num_files": len(hashes), "left_out": left_out.as_json()}
    if separator is not None:
        provenance["separator"] = describe_separator(separator, occurrences)
    return Corpus(documents=documents, identity={"files": hashes}, provenance=provenance)


def local_text_identity(paths: Mapping[str | None, Sequence[str]], root: Path | None = None) -> dict[str, Any]:
    """sha256 of every file that `load_local_text` takes, by path. Raises DataError as `find_inputs` does."""
    files = [file for found in find_inputs(paths, root)[0].values() for file in found]
    hashes = {file.path.as_posix(): _sha256(file) for file in files}
    return {"files": {path: found for path, found in hashes.items() if found != _SHA256_OF_NOTHING}}


def read_own_text(path: Path) -> str:
    """The text of one file that the user named. Raises DataError as `load_local_text` does."""
    with _opened(path) as file:
        return decode_text(file.read(), path)


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file. Raises DataError if it is none (any more), unreadable, or changed while it was open."""
    try:
        # Opening a pipe that has taken the file's place would wait for a writer for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(handle, "rb") as file:  # noqa: PTH123 - it is a handle, no path
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                raise not_regular(path, "it was replaced")
            yield file
            after = os.fstat(handle)
    except OSError as error:
        raise refused(path, error) from error
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise DataError(f"{shown(path)} changed while it was read; run the command again when nothing writes to it")


def _sha256(file: InputFile) -> str:
    with _opened(file.path) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def decode_text(raw: bytes, path: Path) -> str:
    """Decode a text file. Raises DataError naming file and byte offset if it is empty, binary or not UTF-8."""
    name = shown(path)
    if not raw:
        raise DataError(f"{name} is empty; leave it out")
    kind = recognise(raw)
    if kind is not None:
        raise DataError(f"{name} is {kind}")
    text = decode_utf8(raw, name)
    offset = raw.find(b"\0")
    if offset >= 0:
        raise DataError(
            f"{name} is not a text file: NUL byte at offset {offset} (binary, or UTF-16 without a byte order mark); "
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


def _name(path: str, number: int, pieces: list[str]) -> str:
    return path if len(pieces) == 1 else f"{path} (document {number})"
