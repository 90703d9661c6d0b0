"""A corpus and an experiment small enough for tests that run the whole chain."""

import random
from pathlib import Path
from typing import Any

import yaml

from data.layout import SPLITS

WORDS = ["the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not"]
CHAIN = "words.yaml"
"""The experiment file that `make_chain` writes."""
CHAIN_WORDS = 1_200
CHAIN_TRAIN = {"budget": {"unit": "characters", "amount": 1_500}, "device": "cpu"}


def write_corpus(folder: Path, *, num_words: int = 3_000, seed: int = 1, extra: str = "") -> dict[str, str]:
    """Three local files of seeded random words, two documents each; returns the corpus block of an experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    paths = {}
    for split, share in (("train", 1.0), ("val", 0.1), ("test", 0.1)):
        documents = [" ".join(rng.choices(WORDS, k=int(num_words * share / 2))) + f"{extra}\n" for _ in range(2)]
        path = folder / f"{split}.txt"
        path.write_text("\x1e".join(documents), encoding="utf-8")
        paths[split] = str(path)
    return {"source": "text", "name": "words", "separator": "\x1e", **paths}


def experiment_values(root: Path, corpus: dict[str, str]) -> dict[str, object]:
    """An experiment of two contestants that trains in about a second."""
    return {
        "corpus": corpus,
        "contestants": {
            "char": {"tokenizer": {"kind": "char"}},
            "bpe": {"tokenizer": {"kind": "char_bpe", "vocab_size": 60}},
        },
        "model": {"block_size": 16, "embedding_dim": 16, "num_heads": 2, "num_layers": 1, "dropout": 0.1},
        "train": {
            "budget": {"unit": "characters", "amount": 6_000},
            "batch_size": 8,
            "learning_rate": 3e-3,
            "val_characters": 500,
            "num_threads": 1,
        },
        "root": str(root),
    }


def write_experiment(path: Path, values: dict[str, object]) -> Path:
    """Write an experiment file and return its path."""
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


def make_chain(folder: Path) -> Path:
    """An experiment whose paths are relative, so that a copy of the folder is the same experiment; returns `folder`."""
    values: dict[str, Any] = experiment_values(Path("run"), write_corpus(folder / "texts", num_words=CHAIN_WORDS))
    values["corpus"] |= {split: f"texts/{split}.txt" for split in SPLITS}
    values["train"] |= CHAIN_TRAIN
    write_experiment(folder / CHAIN, values)
    return folder
