"""With models of this project on a tiny alphabet, what is mixed is a distribution, found by enumeration.

Losses are stored as float32, so sums of probabilities hold to about 1e-6.
"""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from compare.baselines.mixture import mixed_nats, mixture_of
from compare.baselines.ngram_search import NGram, search_order
from compare.characters import Float64Array, character_nats, document_nats
from data.splits import Split
from model.evaluate import Evaluation, evaluate_split
from model.gpt import MiniGPT
from model.settings import EvaluateConfig
from model_helpers import split_of, tiny_model
from ngram_helpers import KneserNey, NGramCounts
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.char import CharTokenizer
from tokenizer.encode_splits import load_encoded, write_encoded

ALPHABET = "\nab"
TRAIN = ["abab\n", "aab\n", "b\n", "abba\n", "ab\n"]
WEIGHTS = (0.0, 0.3, 0.9, 1.0)
CONFIG = EvaluateConfig(alarm_below_bits_per_char=0.0)


def model_for(tokenizer: Tokenizer, preset: str) -> MiniGPT:
    torch.manual_seed(1)
    model = MiniGPT(tiny_model(tokenizer.vocab_size, dropout=0.0, preset=preset)).eval()
    with torch.no_grad():  # far from uniform, so that a wrong sum would show
        for parameter in model.parameters():
            parameter += 0.5 * torch.randn_like(parameter)
    return model


def evaluated(model: MiniGPT, tokenizer: Tokenizer, documents: Sequence[str], folder: Path) -> Evaluation:
    splits: dict[str, Split] = {name: split_of(name, documents) for name in ("train", "val", "test")}
    write_encoded(folder / "encoded", splits, tokenizer)
    tokenizer.save(folder / "tokenizer.json")
    loaded = load_encoded(folder / "encoded", tokenizer, tokenizer_path=folder / "tokenizer.json", make="make encode")
    return evaluate_split(model, loaded["test"], tokenizer, CONFIG)


def ngram_nats(documents: Sequence[str]) -> Float64Array:
    """(C,) nats of each character under an order-3 model of TRAIN."""
    return KneserNey(NGramCounts(split_of("train", TRAIN), ALPHABET, 3), 3).character_nats(split_of("test", documents))


@pytest.mark.parametrize("preset", ["gpt2", "modern"])
@pytest.mark.parametrize("context", ["", "a", "abba", "bbbbbbbbbbbbb"])
def test_a_character_model_and_the_ngram_sum_to_one_over_the_alphabet(
    preset: str, context: str, tmp_path: Path
) -> None:
    tokenizer = CharTokenizer(list(ALPHABET))
    documents = [context + character for character in ALPHABET]
    evaluation = evaluated(model_for(tokenizer, preset), tokenizer, documents, tmp_path)
    last = np.cumsum([len(document) for document in documents]) - 1
    model, ngram = character_nats(evaluation)[last], ngram_nats(documents)[last]
    assert np.ptp(np.exp(-model)) > 0.05, "the model is not uniform here"
    for weight in WEIGHTS:
        assert np.exp(-mixed_nats(model, ngram, weight)).sum() == pytest.approx(1.0, abs=1e-5)


def all_sequences(tokenizer: Tokenizer, longest: int) -> tuple[list[list[int]], list[list[int]]]:
    """Token sequences that end with their only newline, and those of `longest` tokens that have none yet."""
    texts = [tokenizer.decode([i]) for i in range(tokenizer.vocab_size)]
    ended, open_ones = [], [[]]
    for _ in range(longest):
        grown = [[*one, i] for one in open_ones for i in range(len(texts))]
        ended += [one for one in grown if "\n" in texts[one[-1]]]
        open_ones = [one for one in grown if "\n" not in texts[one[-1]]]
    return ended, open_ones


def probability(model: MiniGPT, tokenizer: Tokenizer, ids: Sequence[int]) -> float:
    """Of the sequence after one newline, by the plain forward pass."""
    given = torch.tensor([[*tokenizer.encode("\n"), *ids]])
    with torch.no_grad():
        log_probabilities = torch.log_softmax(model(given[:, :-1])[0].double(), -1)
    return math.exp(float(log_probabilities.gather(1, given[0, 1:, None]).sum()))


@pytest.mark.parametrize("preset", ["gpt2", "modern"])
def test_documents_of_a_bpe_model_and_the_ngram_are_a_distribution_over_texts(preset: str, tmp_path: Path) -> None:
    """What the whole texts lack to one is what the model gives to other segmentations and to longer texts."""
    tokenizer = BPETokenizer.train("ababab", len(ALPHABET) + 1, base_tokens=list(ALPHABET), verbose=False)
    assert [tokenizer.decode([i]) for i in range(tokenizer.vocab_size)] == [*ALPHABET, "ab"]
    model = model_for(tokenizer, preset)
    ended, open_ones = all_sequences(tokenizer, 5)
    canonical = [ids for ids in ended if tokenizer.encode(tokenizer.decode(ids)) == ids]
    others = [ids for ids in ended if ids not in canonical]
    documents = [tokenizer.decode(ids) for ids in canonical]
    assert len(set(documents)) == len(documents) == len(canonical) and others and open_ones

    of_model = document_nats(evaluated(model, tokenizer, documents, tmp_path))
    assert np.exp(-of_model) == pytest.approx([probability(model, tokenizer, ids) for ids in canonical], rel=1e-4)
    rest = sum(probability(model, tokenizer, ids) for ids in (*others, *open_ones))
    assert float(np.exp(-of_model).sum()) + rest == pytest.approx(1.0, abs=1e-5)

    ends = np.cumsum([len(document) for document in documents])
    of_ngram = np.add.reduceat(ngram_nats(documents), [0, *ends[:-1]])
    sums = np.exp(-of_model).sum(), np.exp(-of_ngram).sum()
    assert 0.01 < sums[0] < 1.0 and 0.01 < sums[1] < 1.0
    for weight in WEIGHTS:
        mixed = float(np.exp(-mixed_nats(of_model, of_ngram, weight)).sum())
        assert mixed == pytest.approx(weight * sums[0] + (1.0 - weight) * sums[1], abs=1e-9)
        assert mixed < 1.0


def test_all_texts_of_a_length_have_probability_one_under_the_ngram() -> None:
    documents = ["".join(letters) for letters in itertools.product(ALPHABET, repeat=4)]
    totals = ngram_nats(documents).reshape(len(documents), 4).sum(axis=1)
    assert np.exp(-totals).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["char", "char_bpe"])
def test_weight_0_gives_the_figure_of_the_ngram_to_the_last_digit(kind: str, tmp_path: Path) -> None:
    """A model far worse than the n-gram gets no weight on val, and the mixture is the n-gram."""
    tokenizer: Tokenizer = CharTokenizer(list(ALPHABET))
    if kind == "char_bpe":
        tokenizer = BPETokenizer.train("ababab", len(ALPHABET) + 1, base_tokens=list(ALPHABET), verbose=False)
    splits = {name: split_of(name, TRAIN * 3) for name in ("train", "val", "test")}
    ngram: NGram = search_order(splits)
    model = model_for(tokenizer, "gpt2")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 4.0
    run = evaluated(model, tokenizer, TRAIN * 3, tmp_path)
    found = mixture_of("m", [{"val": run, "test": run}] * 2, ngram, splits)
    assert found.weight == 0.0 and found.model > found.ngram
    assert found.mixture == found.ngram == ngram.bits_on("test")
    assert found.lead is not None and (found.lead.low, found.lead.high) == (0.0, 0.0)
