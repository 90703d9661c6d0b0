"""model/report.py: the facts of a run, when it is up to date, and a source whose entropy is known."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from data.errors import CheckpointError
from data.files import sha256_file
from model import checkpoint
from model.evaluate import read_nats
from model.gpt import MiniGPT
from model.report import evaluate_contestant, report_is_up_to_date
from model.run_spec import RunSpec
from model.settings import Budget, EvaluateConfig, TrainConfig
from model.train import train
from model.training.interrupt import TrainingInterrupted
from model.training.loop import Run
from model_helpers import ALPHABET, ENGLISH, CharTable, encoded_splits, tiny_model, tiny_train

TOKENS = CharTable(ALPHABET, ["the ", "er"])
CONFIG = EvaluateConfig(batch_size=16)
WORDS = dict.fromkeys(("train", "val", "test"), 7)


def house(root, **changes):
    splits = encoded_splits(root, TOKENS, ENGLISH, ENGLISH[:3], ENGLISH[1:4])
    train(spec_of(root, splits, **changes), progress=False)
    return splits


def spec_of(root, splits, **changes):
    settings = {
        "contestant": "bpe",
        "tokenizer": TOKENS,
        "tokenizer_path": root / "tokenizer.json",
        "splits": splits,
        "model_config": tiny_model(TOKENS.vocab_size),
        "train_config": tiny_train(8),
        "folder": root / "run",
    }
    return RunSpec(**(settings | changes))


def evaluated(root, splits, **changes):
    return evaluate_contestant(spec_of(root, splits, **changes), WORDS, CONFIG, progress=False)


def test_the_report_holds_the_facts_and_agrees_with_the_losses_on_disk(tmp_path):
    splits = house(tmp_path)
    report = evaluated(tmp_path, splits)
    folder = tmp_path / "run"
    assert json.loads((folder / "report.json").read_text()) == report
    model = MiniGPT(tiny_model(TOKENS.vocab_size))
    total, embedding = model.num_parameters(), model.num_embedding_parameters()
    assert report["parameters"] == {"total": total, "embedding": embedding, "rest": total - embedding}
    assert report["contestant"] == "bpe"
    assert report["tokenizer"] == {
        "kind": "chars",
        "fingerprint": TOKENS.fingerprint(),
        "vocab_size": TOKENS.vocab_size,
    }
    assert (report["seen"]["steps"], report["seen"]["tokens"]) == (8, 8 * 32)
    assert report["seen"]["epochs"] == pytest.approx(256 / len(splits["train"].ids))
    assert report["seen"]["flops"] == 256 * report["flops_per_token"]
    assert report["tokens_per_second"] == pytest.approx(256 / report["seen"]["seconds"])
    assert report["block"]["tokens"] == 8
    assert report["block"]["mean_characters"] == pytest.approx(8 * splits["train"].num_chars / len(splits["train"].ids))
    assert report["selected"] == checkpoint.load(folder / "best.pt")["best"]
    assert report["environment"] == {
        "device": "cpu",
        "num_threads": 1,
        "torch": torch.__version__,
        "dtype": "float32",
        "compile": False,
        "num_processes": 1,
    }
    assert report["evaluate"] == {"batch_size": 16, "stride": 4, "alarm_below_bits_per_char": 0.5}
    for name in ("val", "test"):
        scored, split = report["splits"][name], splits[name]
        nats = read_nats(folder / scored["nats_file"])
        assert scored["nats_sha256"] == sha256_file(folder / f"{name}_nats.npz")
        assert (scored["text_sha256"], scored["num_chars"], scored["num_bytes"]) == (
            split.text_sha256,
            split.num_chars,
            split.num_bytes,
        )
        assert (scored["num_tokens"], scored["num_documents"], scored["num_words"]) == (len(split.ids), 3, 7)
        assert scored["total_nats"] == nats.nats.astype(np.float64).sum()
        assert scored["bits_per_char"] == pytest.approx(scored["total_nats"] / math.log(2) / split.num_chars)
        assert scored["disjoint_bits_per_char"] == nats.disjoint_bits_per_char
        assert scored["word_perplexity"] == pytest.approx(math.exp(scored["total_nats"] / 7))


def test_the_selected_checkpoint_is_scored_not_the_last(tmp_path, monkeypatch):
    figures = iter([2.0, 3.0, 4.0, 5.0])
    monkeypatch.setattr("model.training.loop.quick_bits_per_char", lambda *_: next(figures))
    splits = house(tmp_path)
    report = evaluated(tmp_path, splits)
    assert report["selected"] == {"step": 2, "val_sample_bits_per_char": 2.0}
    assert report["seen"]["steps"] == 8
    assert report["checkpoint_sha256"] == sha256_file(tmp_path / "run" / "best.pt")


def test_a_report_is_up_to_date_until_something_it_rests_on_changes(tmp_path):
    splits, folder = house(tmp_path), tmp_path / "run"

    def up_to_date(splits=splits, config=CONFIG, words=WORDS):
        return report_is_up_to_date(spec_of(tmp_path, splits), words, config)

    assert not up_to_date()
    evaluated(tmp_path, splits)
    assert up_to_date()
    assert up_to_date(config=dataclasses.replace(CONFIG, stride=4))  # what null stands for
    assert not up_to_date(config=dataclasses.replace(CONFIG, stride=8))
    assert not up_to_date(words=WORDS | {"test": 8})
    for split in ("train", "val", "test"):
        for key in ("ids_sha256", "text_sha256", "borders_sha256"):
            other = splits | {split: dataclasses.replace(splits[split], **{key: "0" * 64})}
            assert not up_to_date(other), (split, key)
    for name in ("val_nats.npz", "best.pt", "last.pt", "report.json"):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[:-5])
        assert not up_to_date(), name
        (folder / name).unlink()
        assert not up_to_date(), name
        (folder / name).write_bytes(whole)
    assert up_to_date()


@pytest.mark.parametrize("text", ["{}", "[]", "null", '{"splits": null}', ""])
def test_a_report_of_another_shape_is_made_again(tmp_path, text):
    splits, folder = house(tmp_path), tmp_path / "run"
    report = evaluated(tmp_path, splits)
    (folder / "report.json").write_text(text)
    assert not report_is_up_to_date(spec_of(tmp_path, splits), WORDS, CONFIG)
    report["splits"]["test"]["bits_per_char"] = 0.7  # an edited figure
    (folder / "report.json").write_text(json.dumps(report))
    assert not report_is_up_to_date(spec_of(tmp_path, splits), WORDS, CONFIG)


def test_an_unfinished_run_is_not_scored(tmp_path, monkeypatch):
    original = Run._step

    def stop_at_3(self, *arguments):
        import signal

        loss = original(self, *arguments)
        if self.spent.steps == 3:
            signal.raise_signal(signal.SIGINT)
        return loss

    monkeypatch.setattr(Run, "_step", stop_at_3)
    with pytest.raises(TrainingInterrupted):
        house(tmp_path)
    splits = encoded_splits(tmp_path, TOKENS, ENGLISH, ENGLISH[:3], ENGLISH[1:4])
    with pytest.raises(CheckpointError, match="is at step 3, before the end of its budget"):
        evaluated(tmp_path, splits)
    assert not (tmp_path / "run" / "report.json").exists()


def test_a_checkpoint_of_another_tokenizer_or_text_is_not_scored(tmp_path):
    house(tmp_path)
    other = CharTable(ALPHABET, ["the ", "en"])
    assert other.vocab_size == TOKENS.vocab_size
    others = encoded_splits(tmp_path / "other", other, ENGLISH, ENGLISH[:3])
    with pytest.raises(CheckpointError, match="was trained with tokenizer"):
        evaluated(tmp_path, others, tokenizer=other, tokenizer_path=tmp_path / "other" / "tokenizer.json")
    changed = encoded_splits(tmp_path / "changed", TOKENS, ENGLISH, ENGLISH[:2])
    with pytest.raises(CheckpointError, match="was trained on val data with text_sha256"):
        evaluated(tmp_path, changed)


# A source whose entropy is known


def markov_documents(generator, transitions, num_chars):
    """Lines of an order-1 source over `symbols`; the last symbol is the newline that ends a document."""
    symbols = "abcdefghijk\n"
    cumulative = transitions.cumsum(axis=1)
    documents, current, state = [], [], 11
    for draw in generator.random(num_chars):
        state = min(int(np.searchsorted(cumulative[state], draw)), 11)
        current.append(symbols[state])
        if state == 11:
            documents.append("".join(current))
            current = []
    return [*documents, "".join([*current, "\n"])]


def own_bits(documents, transitions):
    """Bits that the source itself gives to `documents`."""
    index = {symbol: i for i, symbol in enumerate("abcdefghijk\n")}
    log2 = np.log2(transitions)
    return -sum(
        log2[index[before], index[after]]
        for document in documents
        for before, after in zip("\n" + document, document, strict=False)
    )


def test_a_trained_model_comes_close_to_a_known_entropy_and_never_below_it(tmp_path):
    generator = np.random.default_rng(7)
    transitions = generator.dirichlet(np.full(12, 0.4), size=12) * 0.97 + 0.03 / 12
    train_text, val, test = (markov_documents(generator, transitions, n) for n in (80_000, 10_000, 20_000))
    tokens = CharTable("abcdefghijk\n")
    splits = encoded_splits(tmp_path, tokens, train_text, val, test)
    spec = spec_of(
        tmp_path,
        splits,
        contestant="char",
        tokenizer=tokens,
        model_config=tiny_model(12, block_size=16, embedding_dim=32, num_layers=1, dropout=0.0),
        train_config=TrainConfig(
            budget=Budget("characters", 100_000),
            batch_size=32,
            learning_rate=1e-2,
            val_characters=10_000,
            device="cpu",
            num_threads=1,
        ),
    )
    train(spec, progress=False)
    report = evaluate_contestant(spec, WORDS, CONFIG, progress=False)
    for name, documents in (("val", val), ("test", test)):
        true_bits = own_bits(documents, transitions) / splits[name].num_chars
        measured = report["splits"][name]["bits_per_char"]
        assert true_bits <= measured <= 1.05 * true_bits, (name, true_bits, measured)
