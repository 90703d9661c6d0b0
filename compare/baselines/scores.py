"""What a model must beat: bits per character of the test text without any neural network.

Uniform and order-0 guessing, the compressors of the standard library and PPMd where it is installed (alone, and after
they have read train), and a character n-gram. All are figures on exactly the characters that the contestants are scored
on; each is kept on disk under the hash of the texts, so that it is worked out once.
"""

import bz2
import gzip
import hashlib
import lzma
import math
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from compare.baselines import ngram_search, ppmd
from compare.baselines.ngram import Int64Array, alphabet_of, symbols_of
from compare.baselines.ngram_search import NGram, search_order
from compare.baselines.result import Result, size_per_char
from data.errors import DataError, command
from data.files import canonical_json, read_json, write_json
from data.inputs import SEAL, borders_sha256, is_sealed, seal
from data.splits import Split

FILE = "baselines.json"
NGRAM = "character n-gram"
GUESSES = ("uniform", "order-0")
"""The baselines that look at no context."""
PRIMED = " after train"
"""What the names of compressors that have read train end with."""

_MAX_THREADS = 4  # more would only hold more copies of the text in memory
_SILENT_SECONDS = 1.0  # no bar for what is done before anyone wonders


@dataclass(frozen=True)
class Baseline:
    """A way to get a figure."""

    name: str
    version: str
    """To be raised with every change that can change the figure or the note: kept figures are then made again. It holds
    the version of the library that does the work, where that is known."""
    compute: Callable[[Mapping[str, Split]], Result]


def uniform(splits: Mapping[str, Split]) -> Result:
    """Every character of the alphabet equally likely: log2 of their number, whatever the text."""
    size = len(_alphabet(splits))
    return Result(math.log2(size), f"log2 of the {size:,} characters that train, val and test hold together")


def order_0(splits: Mapping[str, Split]) -> Result:
    """Characters by their frequency in train, each counted once more than it occurs, scored on test.

    Laplace's rule p(x) = (n(x) + 1) / (n + A) for the A characters of the alphabet: a prediction, unlike the
    entropy of test's own frequencies, which presumes that they are known.
    """
    alphabet = _alphabet(splits)
    train, test = (_character_counts(splits[name], alphabet) for name in ("train", "test"))
    bits = -np.log2((train + 1) / (train.sum() + len(alphabet)))
    return Result(
        float(test @ bits / test.sum()),
        "each character by its frequency in train (add-one over the alphabet), without context; scored on test",
    )


def alone(compress: Callable[[bytes], bytes], remark: str, splits: Mapping[str, Split]) -> Result:
    """8 size(test) / C, with size in bytes after `compress` of the UTF-8 text, file headers included."""
    test = splits["test"].text
    size = len(compress(test.encode("utf-8")))
    return Result(size_per_char(size, splits["test"]), f"the test text by itself, {size:,} bytes; {remark}")


def primed(compress: Callable[[bytes], bytes], remark: str, splits: Mapping[str, Split]) -> Result:
    """8 (size(train + test) - size(train)) / C: what test adds to train."""
    test = splits["test"].text
    train = splits["train"].text.encode("utf-8")
    size = len(compress(train + test.encode("utf-8"))) - len(compress(train))
    return Result(size_per_char(size, splits["test"]), f"what test adds to train, {size:,} bytes; {remark}")


def n_gram(splits: Mapping[str, Split]) -> Result:
    """Interpolated modified Kneser-Ney, counted on train; its order is chosen on val and scored on test."""
    return result_of(search_order(splits))


def result_of(ngram: NGram) -> Result:
    """The n-gram's figure, where it was found already."""
    return Result(ngram.bits_on("test"), ngram.note)


def _alphabet(splits: Mapping[str, Split]) -> str:
    return alphabet_of([split.text for split in splits.values()])


def _character_counts(split: Split, alphabet: str) -> Int64Array:
    text = symbols_of(split, alphabet)
    return np.bincount(text.symbols[text.is_predicted], minlength=len(alphabet))


_COMPRESSORS: tuple[tuple[str, Callable[[bytes], bytes], str, str], ...] = (
    ("gzip", partial(gzip.compress, compresslevel=9, mtime=0), "level 9", "its window of 32 KiB has little use of it"),
    ("bz2", partial(bz2.compress, compresslevel=9), "level 9", "its blocks of 900 kB are compressed one by one"),
    ("xz", partial(lzma.compress, preset=9), "preset 9", "it looks back 64 MiB"),
)
_ZLIB = f" with zlib {zlib.ZLIB_RUNTIME_VERSION}"  # gzip's size depends on it; bz2 and lzma do not tell theirs
_LIBRARIES = {"gzip": _ZLIB, "bz2": "", "xz": ""}


def baselines_with(pyppmd_version: str | None) -> tuple[Baseline, ...]:
    """All baselines in the order of the table; PPMd where a version of pyppmd is given."""
    ppmd_version = f"1 with pyppmd {pyppmd_version}"
    has_ppmd = pyppmd_version is not None
    return (
        *(Baseline(name, "1", guess) for name, guess in zip(GUESSES, (uniform, order_0), strict=True)),
        *(Baseline(name, "1" + _LIBRARIES[name], partial(alone, run, level)) for name, run, level, _ in _COMPRESSORS),
        *([Baseline("PPMd", ppmd_version, ppmd.alone)] if has_ppmd else []),
        *(
            Baseline(f"{name}{PRIMED}", "1" + _LIBRARIES[name], partial(primed, run, f"{level}; {remark}"))
            for name, run, level, remark in _COMPRESSORS
        ),
        *([Baseline(f"PPMd{PRIMED}", ppmd_version, ppmd.after_train)] if has_ppmd else []),
        Baseline(NGRAM, str(ngram_search.VERSION), n_gram),
    )


BASELINES = baselines_with(ppmd.installed_version())
"""In the order of the table. The slowest come last; they are started first."""


def baselines_of(
    splits: Mapping[str, Split],
    cache_folder: Path,
    *,
    ngram: NGram | None = None,
    echo: Callable[[str], None] = print,
) -> dict[str, Result]:
    """All baselines on `splits["test"]` by name, in the order of the table.

    `ngram` is the n-gram of these splits where the caller has it (kept_ngram); otherwise it is counted here if need be.
    Figures are kept in `cache_folder`/baselines.json with a hash of method, version, texts and document borders, and
    taken from there while it holds. A damaged file costs nothing but time: `echo` gets a line, and all is made again.
    Raises DataError for a split without any character.
    """
    for name, split in splits.items():
        if not split.text:
            raise DataError(
                f"the {name} split holds no character, so baselines have no figure; run {command('make data')}"
            )
    path = cache_folder / FILE
    kept = _read_kept(path, echo)
    keys = {baseline.name: _key(baseline, splits) for baseline in BASELINES}
    missing = [b for b in BASELINES if b.name not in kept or kept[b.name]["key"] != keys[b.name]]
    found = {} if ngram is None else {NGRAM: result_of(ngram)}
    found |= _compute([b for b in missing if b.name not in found], splits)
    for name in (b.name for b in missing):
        result = found[name]
        kept[name] = seal({"key": keys[name], "bits_per_char": result.bits_per_char, "note": result.note})
    if missing:
        write_json(path, {b.name: kept[b.name] for b in BASELINES})
    return {b.name: Result(kept[b.name]["bits_per_char"], kept[b.name]["note"]) for b in BASELINES}


def _key(baseline: Baseline, splits: Mapping[str, Split]) -> str:
    """Hex sha256 of all that decides the figure."""
    texts = {name: [split.sha256, borders_sha256(split.document_offsets)] for name, split in sorted(splits.items())}
    identity = canonical_json({"name": baseline.name, "version": baseline.version, "texts": texts})
    return hashlib.sha256(identity.encode("utf-8")).hexdigest()


def _read_kept(path: Path, echo: Callable[[str], None]) -> dict[str, Any]:
    """The file's entries by name; none without a file, or (with a line) if the file is damaged."""
    if not path.exists():
        return {}
    try:
        kept = read_json(path)
        if not isinstance(kept, dict) or not all(_is_entry(entry) for entry in kept.values()):
            raise DataError(f"{path} does not hold baselines as they were written")
    except DataError as error:
        echo(f"  {error}: making the baselines again")
        return {}
    return kept


def _is_entry(entry: Any) -> bool:
    wanted: dict[str, type] = {"key": str, "bits_per_char": float, "note": str}
    return (
        is_sealed(entry)
        and set(entry) == {*wanted, SEAL}
        and all(isinstance(entry[name], kind) for name, kind in wanted.items())
        and math.isfinite(entry["bits_per_char"])
    )


def _compute(baselines: Sequence[Baseline], splits: Mapping[str, Split]) -> dict[str, Result]:
    """The figures of `baselines`, several at a time: compressors and sorting let other threads run."""
    if not baselines:
        return {}
    results: dict[str, Result] = {}
    with ThreadPoolExecutor(max_workers=min(_MAX_THREADS, os.cpu_count() or 1)) as pool:
        waiting = {pool.submit(baseline.compute, splits): baseline.name for baseline in reversed(baselines)}
        done = as_completed(waiting)
        for future in tqdm(
            done, total=len(waiting), desc="baselines", unit="baseline", leave=False, delay=_SILENT_SECONDS
        ):
            results[waiting[future]] = future.result()
    return results
