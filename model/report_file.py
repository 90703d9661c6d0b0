"""report.json read back: every figure that is used later is there, of its kind and finite, or the file is refused."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from data.errors import DataError, command
from data.shapes import check_object, read_object
from model.settings import Unit

_SPLIT: dict[str, Any] = {
    "text_sha256": str,
    "ids_sha256": str,
    "nats_sha256": str,
    "num_chars": int,
    "num_bytes": int,
    "num_words": int,
    "num_tokens": int,
    "num_documents": int,
    "total_nats": float,
    "bits_per_char": float,
    "bits_per_byte": float,
    "disjoint_bits_per_char": float,
    "chars_per_token": float,
    "word_perplexity": (float, type(None)),
}
_REPORT: dict[str, Any] = {
    "contestant": str,
    "tokenizer": {"kind": str, "fingerprint": str, "vocab_size": int},
    "model": {"block_size": int},
    "train": {"learning_rate": float, "seed": int, "budget": {"unit": str, "amount": int}},
    "parameters": {"total": int, "embedding": int, "rest": int},
    "seen": {
        "characters": int,
        "tokens": int,
        "steps": int,
        "flops": float,
        "seconds": float,
        "epochs": float,
    },
    "tokens_per_second": float,
    "flops_formula": str,
    "environment": {"torch": str, "device": str, "num_threads": int, "dtype": str},
    "block": {"tokens": int, "mean_characters": float},
    "splits": {"val": _SPLIT, "test": _SPLIT},
    "evaluate": {},
    "checkpoint_sha256": str,
    "train_text_sha256": str,
}
# What later figures are divided by, or what cannot be empty.
_POSITIVE = frozenset({"num_chars", "num_bytes", "num_tokens", "num_documents", "vocab_size", "total", "block_size"})


def read_report(path: Path, *, mend: str) -> dict[str, Any]:
    """The report in `path`; `mend` is the command that makes it again.

    Raises DataError naming the file, the key and what was found there if one is missing, of another kind, not finite,
    negative, or 0 where it cannot be.
    """
    report: dict[str, Any] = read_object(path, {}, mend=mend)
    _check(report, _REPORT, str(path), mend)
    if report["train"]["budget"]["unit"] not in get_args(Unit):
        unit = report["train"]["budget"]["unit"]
        raise DataError(f"{path}: train.budget: unknown unit {unit!r}; run {command(mend)}")
    if not report["flops_formula"]:
        raise DataError(f"{path}: key 'flops_formula' is empty; run {command(mend)}")
    return report


def _check(value: Any, fields: Mapping[str, Any], where: str, mend: str) -> None:
    """`value` against `fields`, in which an object stands for an object; `where` names the file and the keys above."""
    flat = {key: dict if isinstance(kinds, Mapping) else kinds for key, kinds in fields.items()}
    check_object(value, flat, where=where, mend=mend)
    for key, kinds in fields.items():
        if isinstance(kinds, Mapping):
            _check(value[key], kinds, f"{where}: {key}", mend)
        elif isinstance(value[key], int | float) and key != "seed":
            check_figure(value[key], f"{where}: key {key!r}", mend, is_positive=key in _POSITIVE)


def check_figure(value: float, where: str, mend: str, *, is_positive: bool = False) -> None:
    """Raise DataError unless `value` is a finite number that is not negative and, if it has to be, not 0."""
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"{where}: expected a finite number, found {value}; run {command(mend)}")
    if value < 0 or (is_positive and value == 0):
        least = "greater than 0" if is_positive else "at least 0"
        raise DataError(f"{where}: expected a number {least}, found {value}; run {command(mend)}")
