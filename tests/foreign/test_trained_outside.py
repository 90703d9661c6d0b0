"""Kinds that another library trains: on the same prefix, always the same result, lossless, of the size asked for."""

import subprocess
import sys
from typing import Any

import pytest

from data.errors import TokenizerError
from tokenizer.config import TRAINED_OUTSIDE
from tokenizer.encode_splits import encode_split
from tokenizer.export.texts import HOSTILE_TEXTS
from tokenizer.foreign.libraries import LIBRARY_OF
from tokenizer.train import TokenizerConfig, provenance, train_tokenizer
from tokenizer_helpers import PROJECT, make_splits

WORDS = "the cat sat on the mat and the dog ate what the cat had left, again and again.\n\n  12345 café\n"
TRAIN = [WORDS * 10, "the other " * 30, "never seen in training, zebra quagga"]
SIZES = {"hf_bpe": 290, "hf_wordpiece": 540, "spm_bpe": 320, "spm_unigram": 290}
PREFIX = len(TRAIN[0]) + len(TRAIN[1])


def config_of(kind: str, **changes: Any) -> TokenizerConfig:
    pytest.importorskip(LIBRARY_OF[kind])
    pattern = "gpt2" if kind.startswith("hf") else "none"
    settings = {"vocab_size": SIZES[kind], "training_characters": PREFIX, "split_pattern": pattern} | changes
    return TokenizerConfig(kind, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", TRAINED_OUTSIDE)
def test_size_losslessness_and_the_prefix(kind: str) -> None:
    texts = [text for text in HOSTILE_TEXTS.values() if "▁" not in text]
    splits = make_splits(TRAIN, texts, ["the dog and the cat "])
    tokenizer, training = train_tokenizer(config_of(kind), splits)
    assert training is None
    assert tokenizer.vocab_size == SIZES[kind]
    for split in splits.values():
        encode_split(split, tokenizer)
    assert len(tokenizer.encode("the cat the cat ")) <= 12  # 16 characters: it learned something
    shorter = make_splits([*TRAIN[:2], "other words behind the prefix " * 50], texts, ["x"])
    assert train_tokenizer(config_of(kind), shorter)[0].fingerprint() == tokenizer.fingerprint()
    longer = config_of(kind, training_characters=None, vocab_size=SIZES[kind] + (kind == "hf_bpe"))
    assert train_tokenizer(longer, splits)[0].fingerprint() != tokenizer.fingerprint()


@pytest.mark.parametrize("kind", TRAINED_OUTSIDE)
def test_another_process_trains_the_same(kind: str) -> None:
    config = config_of(kind)
    splits = make_splits(TRAIN, ["a"], ["b"])
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from tokenizer_helpers import make_splits\n"
        "from tokenizer.train import TokenizerConfig, train_tokenizer\n"
        f"config = TokenizerConfig({kind!r}, vocab_size={config.vocab_size}, training_characters={PREFIX}, "
        f"split_pattern={config.split_pattern!r})\n"
        f"print(train_tokenizer(config, make_splits({TRAIN!r}, ['a'], ['b']))[0].fingerprint())"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == train_tokenizer(config, splits)[0].fingerprint()


@pytest.mark.parametrize("kind", TRAINED_OUTSIDE)
def test_a_size_that_cannot_be_is_refused(kind: str) -> None:
    splits = make_splits(TRAIN, ["a"], ["b"])
    with pytest.raises(TokenizerError, match=f"vocab_size 200 is below the minimum of {kind}, "):
        train_tokenizer(config_of(kind, vocab_size=200), splits)


def test_sentencepieces_own_refusal_is_one_sentence() -> None:
    with pytest.raises(
        TokenizerError, match=r"a spm_unigram of 9,000 tokens: Vocabulary size too high \(9000\)"
    ) as caught:
        train_tokenizer(config_of("spm_unigram", vocab_size=9_000), make_splits(TRAIN, ["a"], ["b"]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", TRAINED_OUTSIDE)
def test_what_it_was_made_from_names_the_library(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    splits = make_splits(TRAIN, ["a"], ["b"])
    before = provenance(config_of(kind), splits, {})
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "0.0.1")
    assert provenance(config_of(kind), splits, {}) == before | {"library": f"{LIBRARY_OF[kind]} 0.0.1"}


def test_wordpiece_marks_no_text_as_its_own() -> None:
    """Its mark of a piece inside a word, spelled out in a text, is plain text."""
    tokenizer, _ = train_tokenizer(config_of("hf_wordpiece"), make_splits(TRAIN, ["a"], ["b"]))
    for text in ("▁", "▁a", "a▁b ##c <unk>", "the▁t"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
