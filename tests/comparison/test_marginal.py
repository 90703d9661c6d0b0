"""The estimate against the exact marginal: vocabularies so small that every segmentation can be scored."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from test_segmentations import BYTE_BPE, enumerate_segmentations

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare.marginal.estimate import (
    as_text,
    marginal_gap,
    mean_log_probabilities,
    next_token_log_probabilities,
    segmentation_nats,
    stratified_estimate,
)
from compare.marginal.result import Gap, MarginalGap
from data.errors import ConfigError, DataError, TokenizerError
from data.files import read_json
from data.shapes import plain
from model.evaluate import context_of
from model.gpt import MiniGPT
from model.windows import score_tokens
from model_helpers import CharTable, tiny_model
from scripts import marginal
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.char import CharTokenizer

WORDS = CharTable("\nabc", ["ab", "bc", "abc", "ca"])
CHARACTERS = CharTokenizer(["\n", "a", "b", "c"])
LOG2 = math.log(2)


def model_for(tokenizer: Tokenizer, *, block_size: int = 16) -> MiniGPT:
    """A random model, far enough from uniform that segmentations differ in probability."""
    torch.manual_seed(5)
    model = MiniGPT(tiny_model(tokenizer.vocab_size, block_size=block_size, dropout=0.5))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6.0 if parameter.ndim > 1 else 1.0)
    return model.eval()


@torch.inference_mode()
def exact_nats(model: MiniGPT, tokenizer: Tokenizer, ids: list[int]) -> float:
    """-log p of one segmentation, token by token from its own prefix."""
    prefix, total = context_of(tokenizer), 0.0
    for index in ids:
        total -= float(torch.log_softmax(model(torch.tensor([prefix]))[0, -1].double(), dim=-1)[index])
        prefix = [*prefix, index]
    return total


def exact_marginal_bits(model: MiniGPT, tokenizer: Tokenizer, text: str) -> float:
    nats = [exact_nats(model, tokenizer, ids) for ids in enumerate_segmentations(tokenizer, text.encode())]
    return -float(np.logaddexp.reduce(-np.array(nats))) / LOG2


@pytest.mark.parametrize(("tokenizer", "text"), [(WORDS, "abcab"), (BYTE_BPE, "éaéé")])
def test_the_estimate_converges_to_the_exact_marginal(tokenizer: Tokenizer, text: str) -> None:
    model = model_for(tokenizer)
    exact = exact_marginal_bits(model, tokenizer, text)
    row = marginal_gap(model, tokenizer, [text], samples=3_000).passages[0]
    canonical = exact_nats(model, tokenizer, tokenizer.encode(text)) / LOG2
    assert row.canonical_bits == pytest.approx(canonical, rel=1e-5)
    assert canonical - exact > 0.01  # the others matter here
    # Standard error of the sum over the others, from the effective sample size: rest * sqrt(1 / ESS - 1 / K).
    rest = 2**-exact - 2**-canonical
    error = rest * math.sqrt(1 / row.effective_samples - 1 / 3_000)
    assert abs(2**-row.marginal_bits - 2**-exact) < 3 * error + 1e-6 * 2**-exact
    assert row.marginal_bits == pytest.approx(exact, abs=0.05 * (canonical - exact))


def test_few_draws_are_unbiased_and_their_gap_is_too_small_rather_than_too_large() -> None:
    model, text = model_for(WORDS), "abcabc"
    exact = 2 ** -exact_marginal_bits(model, WORDS, text)
    estimates = np.array(
        [
            2 ** -marginal_gap(model, WORDS, [text], samples=1, seed=seed).passages[0].marginal_bits
            for seed in range(250)
        ]
    )
    error = estimates.std(ddof=1) / math.sqrt(len(estimates))
    assert error < 0.1 * exact
    assert abs(estimates.mean() - exact) < 3 * error
    assert np.log2(estimates).mean() < math.log2(exact)


@pytest.mark.parametrize("samples", [1, 2, 20])
def test_the_gap_is_never_negative(samples: int) -> None:
    model = model_for(WORDS)
    passages = ["abcab", "cab", "bca", "cc", "abcabcabc"]
    for seed in range(5):
        result = marginal_gap(model, WORDS, passages, samples=samples, seed=seed)
        assert all(row.marginal_bits <= row.canonical_bits for row in result.passages)
        assert result.gap_percent.low >= 0.0
        assert result.passages[3].marginal_bits == result.passages[3].canonical_bits  # "cc": one only


def test_characters_have_one_segmentation_and_no_gap() -> None:
    result = marginal_gap(model_for(CHARACTERS), CHARACTERS, ["abc", "cab"], samples=5)
    assert result.gap_bits_per_char == result.gap_percent == Gap(0.0, 0.0, 0.0)
    assert result.canonical_bits_per_char == result.marginal_bits_per_char > 0
    assert result.effective_samples is None
    assert "exactly 0" in result.note
    assert all(row.log10_segmentations == 0.0 for row in result.passages)


def test_bytes_of_characters_count_as_characters() -> None:
    result = marginal_gap(model_for(BYTE_BPE), BYTE_BPE, ["éé€", "aé"], samples=4)
    assert [row.num_chars for row in result.passages] == [3, 2]
    assert result.num_chars == 5
    total = sum(row.canonical_bits for row in result.passages)
    assert result.canonical_bits_per_char == pytest.approx(total / 5)
    assert 10 ** result.passages[0].log10_segmentations == pytest.approx(5)


def test_a_passage_may_fill_the_block_and_no_more() -> None:
    model = model_for(WORDS, block_size=6)
    marginal_gap(model, WORDS, ["cabcab"], samples=2)  # six tokens after the newline: five are input
    with pytest.raises(DataError, match=r"passage 1 \('abcabca'…\).*up to 7 tokens.*block of 6 scores 6"):
        marginal_gap(model, WORDS, ["a", "abcabca"], samples=2)


def test_what_cannot_be_measured_is_refused() -> None:
    model = model_for(WORDS)
    with pytest.raises(DataError, match="no passages"):
        marginal_gap(model, WORDS, [])
    with pytest.raises(DataError, match="passage 1 is empty"):
        marginal_gap(model, WORDS, ["a", ""])
    with pytest.raises(ConfigError, match="samples"):
        marginal_gap(model, WORDS, ["a"], samples=0)
    with pytest.raises(TokenizerError, match="'x'"):
        marginal_gap(model_for(CHARACTERS), CHARACTERS, ["ax"])


def test_the_same_seed_gives_the_same_result_and_the_model_keeps_its_mode() -> None:
    model = model_for(WORDS).train()
    passages = ["abcab", "cabca"]
    first = marginal_gap(model, WORDS, passages, samples=8)
    assert model.training
    assert first == marginal_gap(model, WORDS, passages, samples=8, progress=True)
    assert first != marginal_gap(model, WORDS, passages, samples=8, seed=2)
    assert MarginalGap.from_json(json.loads(json.dumps(plain(first), allow_nan=False))) == first


def test_one_passage_has_no_interval_and_several_have_one_around_the_value() -> None:
    model = model_for(WORDS)
    one = marginal_gap(model, WORDS, ["abcab"], samples=8).gap_percent
    assert (one.low, one.high) == (None, None)
    gap = marginal_gap(model, WORDS, ["abcab", "cabca", "bcabc", "cc", "ababab"], samples=50).gap_percent
    assert gap.low < gap.value < gap.high


def test_the_interval_over_two_passages_has_the_width_of_students_t() -> None:
    result = marginal_gap(model_for(WORDS), WORDS, ["abcab", "cabca"], samples=40)
    first, second = (row.canonical_bits - row.marginal_bits for row in result.passages)
    gap = result.gap_bits_per_char
    # Two passages of five characters: gaps per character g1, g2 around their mean, standard error |g1 - g2| / 2.
    half_width = 12.7062 * abs(first - second) / 5 / 2
    assert gap.value == pytest.approx((first + second) / 10)
    assert gap.high == pytest.approx(gap.value + half_width, rel=1e-5)
    assert gap.low == pytest.approx(max(0.0, gap.value - half_width), abs=1e-9)


def test_a_special_token_spelled_like_text_adds_no_segmentation() -> None:
    plain = BPETokenizer("\nabc", [("a", "b")])
    special = BPETokenizer("\nabc", [("a", "b")], special_tokens=["bc", "ab"])
    assert special.vocab_size == plain.vocab_size + 2
    result = marginal_gap(model_for(special), special, ["abc"], samples=50)
    assert 10 ** result.passages[0].log10_segmentations == pytest.approx(2)  # a b c, ab c
    exact = [exact_nats(model_for(special), special, ids) for ids in ([1, 2, 3], [4, 3])]
    assert result.marginal_bits_per_char == pytest.approx(-np.logaddexp.reduce(-np.array(exact)) / LOG2 / 3, rel=1e-5)


def test_totals_are_sums_over_sums() -> None:
    result = marginal_gap(model_for(WORDS), WORDS, ["abcabcab", "ca"], samples=8)
    canonical, marginal = (
        sum(getattr(row, key) for row in result.passages) for key in ("canonical_bits", "marginal_bits")
    )
    assert result.gap_bits_per_char.value == pytest.approx((canonical - marginal) / 10)
    assert result.gap_percent.value == pytest.approx(100 * (canonical - marginal) / canonical)


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_batches_of_unlike_lengths_give_the_nats_of_the_ruler(batch_size: int) -> None:
    model = model_for(WORDS)
    segmentations = enumerate_segmentations(WORDS, b"abcab")
    nats = segmentation_nats(model, context_of(WORDS), segmentations, batch_size)
    for ids, found in zip(segmentations, nats, strict=True):
        scores = score_tokens(
            model, torch.tensor(ids), np.array([0, len(ids)]), context_of(WORDS), stride=16, batch_size=1
        )
        assert found == pytest.approx(scores.sliding.sum(dtype=np.float64), rel=1e-5)


def test_weights_come_from_the_models_own_probabilities() -> None:
    model, ids = model_for(WORDS), WORDS.encode("abcca")
    after = next_token_log_probabilities(model, context_of(WORDS), ids)
    assert after.shape == (len(ids), WORDS.vocab_size)
    assert np.exp(after).sum(axis=1) == pytest.approx(1.0)
    assert -sum(after[place, index] for place, index in enumerate(ids)) == pytest.approx(exact_nats(model, WORDS, ids))
    mean = mean_log_probabilities(model, context_of(WORDS), [ids, ids[:1]])
    first = next_token_log_probabilities(model, context_of(WORDS), ids[:1])
    assert np.exp(mean) == pytest.approx(np.exp(np.concatenate([after, first])).mean(axis=0))


def test_the_stratified_estimate_by_hand() -> None:
    # p(c) = 1/8; weights 1/4 and 0 in mean 1/8: p_hat = 1/4; all weight on one draw of two.
    nats, effective = stratified_estimate(math.log(8), np.array([math.log(1 / 4), -math.inf]))
    assert nats == pytest.approx(math.log(4))
    assert effective == pytest.approx(1.0)
    assert stratified_estimate(2.0, np.zeros(0)) == (2.0, None)
    nats, effective = stratified_estimate(2000.0, np.full(4, -2000.0))  # beyond what exp() can hold
    assert nats == pytest.approx(2000.0 - LOG2)
    assert effective == pytest.approx(4.0)


def test_a_low_effective_sample_size_is_said() -> None:
    few = marginal_gap(model_for(WORDS), WORDS, ["abcab", "cabca"], samples=4)
    many = marginal_gap(model_for(WORDS), WORDS, ["abcab", "cabca"], samples=200)
    assert "only a lower bound" in few.note
    assert "only" not in many.note
    assert 1.0 <= many.effective_samples.min <= many.effective_samples.median <= 200


def test_the_table_is_narrow_and_says_what_was_measured() -> None:
    result = marginal_gap(model_for(WORDS), WORDS, ["abcab", "cabca"], samples=40)
    text = as_text("bpe", result)
    assert max(map(len, text.split("\n"))) < 100
    table = dict(line.split("  ", 1) for line in text.split("\n\n")[0].split("\n"))
    assert table["canonical bits per character"].strip() == f"{result.canonical_bits_per_char:.4f}"
    assert table["passages"].strip() == "2 (10 characters)"
    assert f"median {result.effective_samples.median:.1f}" in table["effective sample size"]
    alone = as_text("char", marginal_gap(model_for(CHARACTERS), CHARACTERS, ["abc"]))
    assert "one passage: no interval" in alone
    assert "exactly 0" in alone


def test_the_command_measures_every_contestant_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values = experiment_values(tmp_path / "run", write_corpus(tmp_path / "texts"))
    values["train"] |= {"budget": {"unit": "characters", "amount": 1_000}}  # type: ignore[operator]
    path = write_experiment(tmp_path / "words.yaml", values)
    for name in ("char", "bpe"):
        options = ["--config", str(path), "--contestant", name, "--characters", "100", "--samples", "8"]
        monkeypatch.setattr(sys, "argv", ["marginal", *options])
        marginal.main()
    printed = capsys.readouterr().out
    found = read_json(tmp_path / "run" / "reports" / "marginal.json")
    assert list(found) == ["char", "bpe"]
    assert found["char"]["gap_percent"]["value"] == 0.0 < found["bpe"]["gap_percent"]["value"]
    assert found["bpe"]["test_text_sha256"] == found["char"]["test_text_sha256"]
    assert found["bpe"]["tokenizer_fingerprint"] != found["char"]["tokenizer_fingerprint"]
    assert f"{found['bpe']['marginal_bits_per_char']:.4f}" in printed
    text = (tmp_path / "run" / "data" / "processed" / "words_test_clean.txt").read_text(encoding="utf-8")
    assert all(row["text"] in text for row in found["bpe"]["passages"])
