"""Small stand-ins for the model tests: two tokenizers, splits from strings, encoded splits on disk."""

import json
import signal
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data.files import sha256_text, write_json
from data.splits import Split
from model.run_spec import RunSpec
from model.settings import Budget, MiniGPTConfig, TrainConfig
from model.train import train
from model.training.result import TrainResult
from tokenizer.base import Int64Array, fingerprint_of
from tokenizer.encode_splits import EncodedSplit, load_encoded, write_encoded

# Tiny models gain nothing from threads, and lose much where the cores are shared.
torch.set_num_threads(1)
# A shell starts background jobs with SIGINT ignored, and then a run ignores it as well; the tests mean the foreground.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class _Table:
    """What both stand-ins share: a table of the bytes of each id."""

    kind = "table"

    def __init__(self, table: list[bytes]) -> None:
        self.table = table
        self.vocab_size = len(table)
        self.token_num_bytes = np.array([len(token) for token in table], dtype=np.int64)
        begins = [sum(byte & 0xC0 != 0x80 for byte in token) for token in table]
        self.token_num_chars = np.array(begins, dtype=np.int64)

    def encode(self, text: str) -> list[int]:
        raise NotImplementedError

    def encode_documents(self, texts: Sequence[str]) -> tuple[Int64Array, Int64Array]:
        pieces = [self.encode(text) for text in texts]
        offsets = np.cumsum([0] + [len(piece) for piece in pieces], dtype=np.int64)
        return np.array([i for piece in pieces for i in piece], dtype=np.int64), offsets

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return b"".join(self.table[i] for i in ids)

    def decode(self, ids: Sequence[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8")

    def fingerprint(self) -> str:
        return fingerprint_of({"kind": self.kind, "table": [token.hex() for token in self.table]})

    def save(self, path: Path) -> None:
        write_json(path, {"type": self.kind, "table": [token.hex() for token in self.table]})


class CharTable(_Table):
    """One id for each character of `alphabet`, and one for each of the longer `words`, taken greedily."""

    kind = "chars"

    def __init__(self, alphabet: str, words: Sequence[str] = ()) -> None:
        self.tokens = [*words, *alphabet]
        self.stoi = {token: i for i, token in enumerate(self.tokens)}
        super().__init__([token.encode("utf-8") for token in self.tokens])

    def encode(self, text: str) -> list[int]:
        ids, position = [], 0
        longest_first = sorted(self.tokens, key=len, reverse=True)
        while position < len(text):
            token = next((t for t in longest_first if text.startswith(t, position)), None)
            if token is None:
                raise LookupError(f"no token for {text[position]!r}")
            ids.append(self.stoi[token])
            position += len(token)
        return ids


class ByteTable(_Table):
    """The 256 bytes."""

    kind = "bytes"

    def __init__(self) -> None:
        super().__init__([bytes([i]) for i in range(256)])

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8"))


def split_of(name: str, documents: Sequence[str]) -> Split:
    """A Split of `documents`."""
    text = "".join(documents)
    offsets = np.cumsum([0] + [len(document) for document in documents], dtype=np.int64)
    return Split(name, text, offsets, sha256_text(text))


def encoded_splits(
    folder: Path,
    tokenizer: _Table,
    train: Sequence[str],
    val: Sequence[str],
    test: Sequence[str] = ("\n",),
) -> dict[str, EncodedSplit]:
    """Write and load the three splits under `folder`/encoded, and the tokenizer as `folder`/tokenizer.json."""
    documents = {"train": train, "val": val, "test": test}
    write_encoded(folder / "encoded", {name: split_of(name, texts) for name, texts in documents.items()}, tokenizer)
    tokenizer.save(folder / "tokenizer.json")
    return load_encoded(folder / "encoded", tokenizer, tokenizer_path=folder / "tokenizer.json", make="make encode")


def tiny_model(vocab_size: int, **changes: float | str) -> MiniGPTConfig:
    """A model that takes a millisecond a step."""
    settings = {"block_size": 8, "embedding_dim": 16, "num_heads": 2, "num_layers": 2, "dropout": 0.1} | changes
    return MiniGPTConfig(vocab_size=vocab_size, **settings)  # type: ignore[arg-type]


def tiny_train(steps: int = 12, **changes: object) -> TrainConfig:
    """A run of `steps` steps, logged at each, without a save between."""
    settings: dict[str, object] = {
        "budget": Budget("steps", steps),
        "batch_size": 4,
        "val_characters": 4,
        "val_every_fraction": 0.25,
        "log_every_steps": 1,
        "checkpoint_every_seconds": 1e9,
        "num_threads": 1,
        "device": "cpu",
    }
    return TrainConfig(**(settings | changes))  # type: ignore[arg-type]


def train_tiny(**settings: Any) -> TrainResult:
    """Train by the fields of RunSpec and the options of `train`, told apart by their names."""
    names = {field.name for field in fields(RunSpec)}
    spec = RunSpec(**{name: value for name, value in settings.items() if name in names})
    return train(spec, **{name: value for name, value in settings.items() if name not in names})


def json_lines(path: Path) -> list[dict[str, object]]:
    """The records of a JSON-lines file, timing left out."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


ENGLISH = [
    "The tower was built in 1889 and is old.\n",
    "A river runs through the old town, and boats go by.\n",
    "No one knows why the birds came back that year.\n",
    "In the north the winters are long and the nights are longer.\n",
] * 6
ALPHABET = "\n" + "".join(sorted({c for document in ENGLISH for c in document} - {"\n"}))
