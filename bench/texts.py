"""The texts of `make bench`: what it measures on, and the lines of the table that it prints.

It measures on an experiment's corpus as one file, and on as much text as wanted drawn from a model of it. Drawn text is
not repeated text: a file that says the same thing twelve times has the pretokens of one; here new ones keep turning up
as they do in a real corpus, which is what a trainer's memory and its merging depend on.
"""

import contextlib
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.peers import OURS, spawn
from compare.table import as_text
from data.errors import DataError
from data.files import atomic_write, read_text, sha256_file, write_text
from data.splits import Split

ORDER = 4  # characters of context
_MOST_SYMBOLS = 1 << (64 // ORDER)  # a context is one 64-bit key
# Chains are drawn side by side, a few numpy calls for each step; each is a document and ends with a newline.
_NUM_CHAINS, _CHAIN_LENGTH = 1024, 4096
Prepare = Callable[[], Callable[[], Any]]  # what is not timed; gives what is
Processes = Mapping[str, Sequence[str]]  # contestant -> arguments of `bench.peers.child`


@dataclass(frozen=True)
class BenchText:
    """A text, in memory and as the file that peers read."""

    name: str
    path: Path
    text: str
    document_offsets: tuple[int, ...]
    """D+1 offsets in characters: document d is text[o[d]:o[d+1]]."""
    num_bytes: int
    """Of the file, which is the text as UTF-8."""
    num_distinct_bytes: int
    """How many of the 256 byte values occur in it."""
    sha256: str
    """Hex, of the file."""

    def documents(self) -> list[str]:
        """The documents as new strings, so that none brings along what an earlier call cached in it."""
        return [self.text[start:end] for start, end in pairwise(self.document_offsets)]

    def facts(self) -> dict[str, Any]:
        """What the report says of it."""
        return {
            "name": self.name,
            "num_bytes": self.num_bytes,
            "num_chars": len(self.text),
            "num_documents": len(self.document_offsets) - 1,
            "sha256": self.sha256,
        }


@dataclass(frozen=True)
class CharacterModel:
    """Every place of a text, which is taken as a ring, sorted by the `ORDER` characters before it (its context).

    To draw the next character, draw one of the context's places.
    """

    group_starts: NDArray[np.int64]
    """(G+1,): the places of context g are group_starts[g] … group_starts[g+1] - 1."""
    next_codes: NDArray[np.uint32]
    """(N,): the code point at each place."""
    next_groups: NDArray[np.int64]
    """(N,): the context that this character brings about."""


def one_file(name: str, splits: Sequence[Split], folder: Path, *, most_bytes: int | None = None) -> BenchText:
    """All documents of the splits in one file below `folder`; with `most_bytes`, whole documents up to that size.

    Raises DataError if not even the first document fits.
    """
    documents = [document for split in splits for document in split.documents()]
    if most_bytes is not None:
        ends = accumulate(len(document.encode("utf-8")) for document in documents)
        documents = [document for document, end in zip(documents, ends, strict=True) if end <= most_bytes]
        if not documents:
            raise DataError(f"{name}: the first document is larger than {most_bytes:,} bytes; ask for more")
    text, path = "".join(documents), folder / f"{name}.txt"
    write_text(path, text)
    return _bench_text(name, path, text, tuple(accumulate(map(len, documents), initial=0)))


def synthetic_file(source: BenchText, megabytes: int, folder: Path, *, seed: int = 1) -> BenchText:
    """`megabytes` million bytes drawn from the character model of `source`; written once, read again afterwards.

    The name of the file says what it depends on: the source's hash, the size and the seed.
    """
    name = f"order{ORDER}_{megabytes}MB"
    path = folder / f"{name}_{source.sha256[:12]}_seed{seed}.txt"
    if not path.exists():
        with atomic_write(path) as file:
            for piece in draw(fit(source.text), megabytes * 1_000_000, seed=seed):
                file.write(piece)
    text = read_text(path)
    return _bench_text(name, path, text, (0, len(text)))


def fit(text: str) -> CharacterModel:
    """The character model of `text`; raises DataError if it has too few characters or too many different ones."""
    if len(text) <= ORDER:
        raise DataError(f"a character model of order {ORDER} needs more than {len(text)} characters")
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    alphabet, symbols = np.unique(codes, return_inverse=True)
    if len(alphabet) > _MOST_SYMBOLS:
        raise DataError(f"a character model of order {ORDER} takes {_MOST_SYMBOLS:,} characters, not {len(alphabet):,}")
    keys = np.zeros(len(codes), dtype=np.uint64)
    for back in range(ORDER, 0, -1):  # the key of a place: the characters before it, the nearest in the lowest bits
        keys = keys << np.uint64(64 // ORDER) | np.roll(symbols, back).astype(np.uint64)
    places = np.argsort(keys, kind="stable")
    is_first = np.diff(keys[places], prepend=keys[places[0]] + np.uint64(1)) != 0
    group_of = np.empty(len(codes), dtype=np.int64)
    group_of[places] = np.cumsum(is_first) - 1
    return CharacterModel(
        group_starts=np.append(np.flatnonzero(is_first), len(codes)),
        next_codes=codes[places],
        next_groups=np.roll(group_of, -1)[places],
    )


def draw(model: CharacterModel, num_bytes: int, *, seed: int) -> Iterator[bytes]:
    """Pieces of UTF-8, `num_bytes` together less what a character cut in two leaves out at the end."""
    rng = np.random.default_rng(seed)
    group_sizes = np.diff(model.group_starts)
    while num_bytes > 0:
        codes = np.full((_CHAIN_LENGTH, _NUM_CHAINS), ord("\n"), dtype="<u4")
        groups = model.next_groups[rng.integers(len(model.next_codes), size=_NUM_CHAINS)]
        for step in range(_CHAIN_LENGTH - 1):
            places = model.group_starts[groups] + (rng.random(_NUM_CHAINS) * group_sizes[groups]).astype(np.int64)
            codes[step] = model.next_codes[places]
            groups = model.next_groups[places]
        piece = codes.T.tobytes().decode("utf-32-le").encode("utf-8")[:num_bytes]
        num_bytes -= len(piece)
        yield piece.decode("utf-8", "ignore").encode("utf-8")


def _bench_text(name: str, path: Path, text: str, document_offsets: tuple[int, ...]) -> BenchText:
    num_distinct_bytes = len(set("".join(set(text)).encode("utf-8")))
    return BenchText(name, path, text, document_offsets, path.stat().st_size, num_distinct_bytes, sha256_file(path))


@dataclass
class Line:
    """One contestant in one row of the table."""

    row: str
    engine: str
    num_bytes: int
    """What it worked through in one repetition."""
    seconds: list[float] = field(default_factory=list)
    """Each repetition inside a running process: everything imported and compiled, no text seen before."""
    process_seconds: list[float] = field(default_factory=list)
    """Each repetition as a process of its own, from its start to its end."""
    peak_bytes: int | None = None
    """Most memory of that process, interpreter and libraries included."""
    result: str = ""
    """How the result compares with the one it should be equal to, or how the contestant failed."""
    failed: bool = False

    @property
    def best(self) -> float:
        """The shortest time inside a running process."""
        return min(self.seconds)


def measure(
    row: str, num_bytes: int, calls: Mapping[str, Prepare], processes: Processes, *, repeat: int
) -> tuple[dict[str, Line], dict[str, Any]]:
    """Time `calls` in this process and `processes` of their own, in turns.

    Returns the lines and the last result of each call. A peer that fails is not called again, and its line says why;
    a failure of ours is raised.
    """
    lines = {name: Line(row, name, num_bytes) for name in {**calls, **processes}}
    results: dict[str, Any] = {}
    for _ in range(repeat):
        for name, line in lines.items():
            if line.failed:
                continue
            try:
                if name in calls:
                    results.pop(name, None)  # the one before is not kept in memory beside the new one
                    with _quiet():
                        seconds, results[name] = timed(calls[name]())
                    line.seconds.append(seconds)
                if name in processes:
                    seconds, peak = spawn(*processes[name])
                    line.process_seconds.append(seconds)
                    line.peak_bytes = max(peak, line.peak_bytes or 0)
            except Exception as error:
                if name.startswith(OURS):
                    raise
                line.failed, line.result = True, f"failed: {' '.join(str(error).split())[:100]}"
                results.pop(name, None)
    return lines, results


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that `call` took, and its result."""
    gc.collect()
    gc.disable()  # else a call pays for going through the objects that others left
    try:
        started = time.perf_counter()
        result = call()
        return time.perf_counter() - started, result
    finally:
        gc.enable()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what engines print, also from below Python, out of our table."""
    sys.stdout.flush()
    kept = {stream: os.dup(stream) for stream in (1, 2)}
    try:
        with Path(os.devnull).open("wb") as nowhere:
            for stream in kept:
                os.dup2(nowhere.fileno(), stream)
        yield
    finally:
        sys.stdout.flush()
        for stream, copy in kept.items():
            os.dup2(copy, stream)
            os.close(copy)


_HEADER = ["", "min s", "median s", "MB/s", "x ours", "process min s", "median s", "x ours", "peak MB", "result"]


def as_table(lines: Sequence[Line]) -> str:
    """One block for each row; `x ours` is the best time in multiples of our best."""
    cells = [_HEADER]
    for row in dict.fromkeys(line.row for line in lines):
        block = [line for line in lines if line.row == row]
        own = next((line for line in block if line.engine == OURS), Line(row, OURS, 0))
        cells.append([row, *[""] * (len(_HEADER) - 1)])
        for line in block:
            times = [*_times(line.seconds, own.seconds), *_times(line.process_seconds, own.process_seconds)]
            times.insert(2, f"{line.num_bytes / 1e6 / line.best:,.1f}" if line.seconds else "–")
            peak = "–" if line.peak_bytes is None else f"{line.peak_bytes / 1e6:,.0f}"
            cells.append([f"  {line.engine}", *times, peak, line.result])
    return as_text(cells, width=None)


def _times(seconds: Sequence[float], ours: Sequence[float]) -> list[str]:
    if not seconds:
        return ["–", "–", "–"]
    ratio = f"{min(seconds) / min(ours):,.2f}" if ours else "–"
    return [f"{min(seconds):,.4f}", f"{statistics.median(seconds):,.4f}", ratio]
