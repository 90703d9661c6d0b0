"""Two numbers computed twice, the second time by code of this file alone.

First, the loss of every token of a short document: one forward pass over the whole document, a softmax written here in
float64, against the nats that the sliding windows stored. Second, bits per character of whole splits: exact fractions
summed token by token in a plain loop, against the figures of the report, characters counted on the text file.
"""

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from chain_helpers import experiment_values, write_experiment
from compare.experiment import load_experiment
from compare.steps import Steps
from model import checkpoint
from model.gpt import MiniGPT
from tokenizer.base import Tokenizer

BLOCK = 48
CONTESTANTS: dict[str, dict[str, Any]] = {
    "char": {"tokenizer": {"kind": "char"}},
    "byte": {"tokenizer": {"kind": "byte"}},
    "char_bpe": {"tokenizer": {"kind": "char_bpe", "vocab_size": 40}},
    "byte_bpe": {"tokenizer": {"kind": "byte_bpe", "vocab_size": 280}},
}
SENTENCES = [
    "the café is old",
    "no one paid 5 €",
    "naïve 😀 jokes",
    "a short line",
    "日本 is far away",
    "the boat is late",
]


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    """Four contestants trained for a moment on short documents with characters of one to four bytes."""
    folder = tmp_path_factory.mktemp("twice")
    corpus: dict[str, Any] = {"source": "text", "name": "short", "separator": "\n", "allow_repeated_documents": True}
    for split, repeats in (("train", 60), ("val", 2), ("test", 3)):
        path = folder / f"{split}.txt"
        path.write_text("\n".join(f"{line} {n % 3}" for n in range(repeats) for line in SENTENCES), encoding="utf-8")
        corpus[split] = str(path)
    values = experiment_values(folder / "run", corpus)
    values["contestants"] = CONTESTANTS
    values["model"] = {"block_size": BLOCK, "embedding_dim": 16, "num_heads": 2, "num_layers": 2, "dropout": 0.1}
    train: dict[str, Any] = {"learning_rate": 2e-2, "batch_size": 4, "budget": {"unit": "steps", "amount": 60}}
    values["train"] = {"val_characters": 100, "val_every_fraction": 1.0, "num_threads": 1, "device": "cpu", **train}
    made = Steps(load_experiment(write_experiment(folder / "twice.yaml", values)), echo=lambda _line: None)
    for name in CONTESTANTS:
        made.train(name)
    return made


def stored_nats(steps: Steps, name: str, split: str) -> dict[str, NDArray[Any]]:
    """The arrays of the losses' file, read without the project's reader."""
    with np.load(steps.layout.checkpoints(name) / f"{split}_nats.npz", allow_pickle=False) as stored:
        return {key: stored[key] for key in ("nats", "document_offsets")}


def model_of(steps: Steps, name: str) -> MiniGPT:
    tokenizer_path = steps.layout.tokenizer(name)
    model, _ = checkpoint.load_model(steps.layout.checkpoints(name), "best", steps.tokenizer(name), tokenizer_path)
    return model.eval()


def nats_of_document(model: MiniGPT, tokenizer: Tokenizer, document: str) -> list[float]:
    """Each token's loss from one pass over newline + document; the softmax is the textbook's, in float64."""
    context, ids = tokenizer.encode("\n"), tokenizer.encode(document)
    sequence = context + ids
    assert len(sequence) - 1 <= BLOCK
    with torch.inference_mode():
        logits = model(torch.tensor([sequence[:-1]]))[0].numpy().astype(np.float64)
    losses = []
    for position, target in enumerate(ids, start=len(context) - 1):
        row = logits[position].tolist()
        top = max(row)
        powers = [math.exp(value - top) for value in row]
        losses.append(-math.log(powers[target] / math.fsum(powers)))
    return losses


@pytest.mark.parametrize("name", CONTESTANTS)
def test_one_pass_over_a_short_document_gives_the_stored_nats(steps: Steps, name: str) -> None:
    stored, model, tokenizer = stored_nats(steps, name, "test"), model_of(steps, name), steps.tokenizer(name)
    lines = Path(steps.experiment.corpus.test or "").read_text(encoding="utf-8").split("\n")
    offsets = stored["document_offsets"].tolist()
    assert len(lines) == len(offsets) - 1 == 3 * len(SENTENCES)
    for number, line in enumerate(lines):
        found = stored["nats"][offsets[number] : offsets[number + 1]]
        wanted = nats_of_document(model, tokenizer, line + "\n")
        assert len(found) == len(wanted)
        assert math.fsum(found.tolist()) == pytest.approx(math.fsum(wanted), rel=1e-4)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_the_documents_do_not_cost_the_same(steps: Steps) -> None:
    """So the test above could fail: the losses of another document are other ones."""
    stored, model, tokenizer = stored_nats(steps, "byte", "test"), model_of(steps, "byte"), steps.tokenizer("byte")
    end = int(stored["document_offsets"][1])
    other = nats_of_document(model, tokenizer, "the boat is late 0\n")
    assert math.fsum(stored["nats"][:end].tolist()) != pytest.approx(math.fsum(other), rel=1e-3)


@pytest.mark.parametrize("split", ["val", "test"])
@pytest.mark.parametrize("name", CONTESTANTS)
def test_bits_per_character_of_a_whole_split_by_exact_fractions(steps: Steps, name: str, split: str) -> None:
    total = Fraction(0)
    for loss in stored_nats(steps, name, split)["nats"].tolist():
        total += Fraction(loss)  # every float is a fraction, so nothing is rounded
    text = steps.layout.split_text("short", split).read_bytes().decode("utf-8")
    num_chars, num_bytes = sum(1 for _ in text), sum(1 for _ in text.encode("utf-8"))
    with localcontext() as context:
        context.prec = 50
        bits = Decimal(total.numerator) / Decimal(total.denominator) / Decimal(2).ln()
        bits_per_char, bits_per_byte = float(bits / num_chars), float(bits / num_bytes)
    report = json.loads((steps.layout.checkpoints(name) / "report.json").read_text(encoding="utf-8"))["splits"][split]
    assert report["bits_per_char"] == pytest.approx(bits_per_char, rel=1e-12)
    assert report["bits_per_byte"] == pytest.approx(bits_per_byte, rel=1e-12)
    assert (report["num_chars"], report["num_bytes"]) == (num_chars, num_bytes)
    assert num_bytes > num_chars


@pytest.mark.parametrize("name", ["byte", "byte_bpe"])
def test_the_bytes_of_a_document_are_those_of_its_tokens(steps: Steps, name: str) -> None:
    """Characters and bytes of every document, counted on the text, against the tokens' stored lengths."""
    with np.load(steps.layout.checkpoints(name) / "test_nats.npz", allow_pickle=False) as stored:
        offsets = stored["document_offsets"].tolist()
        num_chars, num_bytes = stored["token_num_chars"].tolist(), stored["token_num_bytes"].tolist()
    text = steps.layout.split_text("short", "test").read_text(encoding="utf-8")
    for number, document in enumerate(text.splitlines(keepends=True)):
        tokens = slice(offsets[number], offsets[number + 1])
        assert sum(num_chars[tokens]) == len(document)
        assert sum(num_bytes[tokens]) == len(document.encode("utf-8"))
