"""The n-gram with its nats kept on disk, so that a new comparison of the same text does not count it again."""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from compare.baselines.ngram_search import (
    ALWAYS_TRIED,
    MAX_ORDER,
    MAX_SYMBOLS_READ,
    SCORED,
    VERSION,
    NGram,
    search_order,
)
from compare.baselines.result import MIN_GAIN
from data.errors import DataError, command
from data.files import atomic_write
from data.inputs import inputs_of, is_sealed, seal, text_input
from data.splits import Split

FILE = "ngram_nats.npz"


def kept_ngram(splits: Mapping[str, Split], cache_folder: Path, *, echo: Callable[[str], None] = print) -> NGram:
    """The n-gram of `splits`, from `cache_folder`/ngram_nats.npz while that was made from these texts.

    A damaged file costs nothing but time: `echo` gets a line, and it is made again. Raises DataError for a split
    without any character.
    """
    for name, split in splits.items():
        if not split.text:
            raise DataError(
                f"the {name} split holds no character, so the n-gram has no figure; run {command('make data')}"
            )
    path = cache_folder / FILE
    inputs = inputs_of(
        VERSION,
        texts={name: text_input(split.sha256, split.document_offsets) for name, split in splits.items()},
        settings=[ALWAYS_TRIED, MIN_GAIN, MAX_ORDER, MAX_SYMBOLS_READ],
    )
    try:
        kept = _read(path, inputs, splits)
    except DataError as error:
        echo(f"  {error}: making the n-gram again")
        kept = None
    if kept is not None:
        return kept
    ngram = search_order(splits, progress=True)
    _write(path, inputs, ngram)
    return ngram


def _write(path: Path, inputs: Mapping[str, Any], ngram: NGram) -> None:
    about = seal(
        {
            "inputs": inputs,
            "order": ngram.order,
            "val_bits_per_char": list(ngram.val_bits_per_char),
            "ended_at_bound": ngram.ended_at_bound,
            "fixed_discounts": list(ngram.fixed_discounts),
            "sha256": {name: _sha256(ngram.nats[name]) for name in SCORED},
        }
    )
    with atomic_write(path) as file:
        np.savez_compressed(file, about=np.array(json.dumps(about)), val=ngram.nats["val"], test=ngram.nats["test"])


def _read(path: Path, inputs: Mapping[str, Any], splits: Mapping[str, Split]) -> NGram | None:
    """What `_write` wrote; None without a file or for other inputs. Raises DataError for a damaged file."""
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        about = json.loads(str(arrays.pop("about")))
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"cannot read {path} ({type(error).__name__}: {error})") from error
    if not is_sealed(about) or set(arrays) != set(SCORED):
        raise DataError(f"{path} does not hold an n-gram as it was written")
    if about["inputs"] != inputs:
        return None
    for name in SCORED:
        nats = arrays[name]
        if (
            nats.dtype != np.float64
            or nats.shape != (len(splits[name].text),)
            or _sha256(nats) != about["sha256"][name]
        ):
            raise DataError(f"{path} does not hold the nats of {name} as they were written")
    return NGram(
        order=about["order"],
        val_bits_per_char=tuple(about["val_bits_per_char"]),
        ended_at_bound=about["ended_at_bound"],
        fixed_discounts=tuple(about["fixed_discounts"]),
        nats=arrays,
    )


def _sha256(array: np.ndarray[Any, Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
