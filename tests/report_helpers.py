"""A whole report.json, made up, so that tests name only what they are about."""

import math
from collections.abc import Mapping
from typing import Any

from model.report_file import Report


def split_score(bits: float = 2.0, **changes: Any) -> dict[str, Any]:
    """The part of one scored split."""
    return {
        "text_sha256": "t" * 64,
        "ids_sha256": "i" * 64,
        "nats_sha256": "n" * 64,
        "num_chars": 1200,
        "num_bytes": 2400,
        "num_words": 0,
        "num_tokens": 400,
        "num_documents": 3,
        "total_nats": 1200 * bits * math.log(2),
        "bits_per_char": bits,
        "bits_per_byte": bits / 2,
        "disjoint_bits_per_char": bits + 0.03,
        "chars_per_token": 3.0,
        "word_perplexity": None,
    } | changes


def stored_report(changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """report.json; `changes` are merged into it, block by block."""
    whole: dict[str, Any] = {
        "contestant": "bpe",
        "tokenizer": {"kind": "char_bpe", "fingerprint": "f" * 64, "vocab_size": 50},
        "model": {"vocab_size": 50, "block_size": 16, "embedding_dim": 8, "num_heads": 2, "num_layers": 1},
        "train": {"learning_rate": 0.001, "seed": 1, "batch_size": 4, "budget": {"unit": "characters", "amount": 1000}},
        "parameters": {"total": 30, "embedding": 10, "rest": 20},
        "seen": {"characters": 1010, "tokens": 900, "steps": 10, "flops": 12345, "seconds": 2.0, "epochs": 1.5},
        "tokens_per_second": 450.0,
        "flops_formula": "6 N",
        "environment": {"torch": "2", "device": "cpu", "num_threads": 1, "dtype": "float32"},
        "block": {"tokens": 16, "mean_characters": 48.0},
        "splits": {"val": split_score(), "test": split_score()},
        "evaluate": {"stride": 8},
        "checkpoint_sha256": "c" * 64,
        "train_text_sha256": "a" * 64,
    }
    return merged(whole, changes or {})


def report_of(changes: Mapping[str, Any] | None = None) -> Report:
    """The same as it is read."""
    return read(stored_report(changes))


def changed(report: Report, changes: Mapping[str, Any]) -> Report:
    """`report` with `changes` of the file it was read from."""
    return read(merged(dict(report.stored), changes))


def read(stored: Mapping[str, Any]) -> Report:
    """The report that a file with this content holds."""
    return Report.from_json(stored, where="report.json", mend="make train")


def merged(whole: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`changes` over `whole`, block by block."""
    return whole | {
        key: merged(whole[key], value) if isinstance(value, Mapping) and isinstance(whole.get(key), dict) else value
        for key, value in changes.items()
    }
