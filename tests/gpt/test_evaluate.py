"""model/evaluate.py, model/windows.py: known answers, the exact-count rule, files (case 29, method 2 and 6)."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from data.errors import ConfigError, DataError, ReportError, TokenizerError
from model.evaluate import (
    check_lengths,
    context_of,
    evaluate_split,
    read_nats,
    write_nats,
)
from model.gpt import MiniGPT
from model.settings import EvaluateConfig
from model.windows import ScoringError, check_counts, plan_windows, score_tokens
from model_helpers import ALPHABET, ENGLISH, ByteTable, CharTable, encoded_splits, tiny_model

CONFIG = EvaluateConfig(batch_size=4)
LETTERS = CharTable("abc\n")


class ByTable(MiniGPT):
    """Order-1 model: the logits after an id are a row of the table, exactly."""

    def __init__(self, table, block_size=8):
        super().__init__(tiny_model(len(table), block_size=block_size))
        self.table = table

    def hidden(self, ids):
        return self.table[ids]

    def logits(self, hidden):
        return hidden


def trained_like(vocab_size, **changes):
    """A random model far from uniform, whose losses depend on the whole context."""
    torch.manual_seed(5)
    model = MiniGPT(tiny_model(vocab_size, **changes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6)
    return model


@pytest.mark.parametrize("tokenizer", [CharTable(ALPHABET), CharTable(ALPHABET, ["the ", "long"]), ByteTable()])
def test_a_uniform_model_scores_exactly_log2_of_the_vocabulary(tmp_path, tokenizer):
    val = encoded_splits(tmp_path, tokenizer, ["a\n"], ENGLISH)["val"]
    V = tokenizer.vocab_size
    evaluation = evaluate_split(ByTable(torch.zeros(V, V)), val, tokenizer, CONFIG)
    wanted = math.log2(V) * len(val.ids) / val.num_chars
    assert evaluation.bits_per_char == pytest.approx(wanted, rel=1e-6)
    assert evaluation.disjoint_bits_per_char == pytest.approx(wanted, rel=1e-6)
    assert evaluation.nats.dtype == np.float32


def test_an_oracle_scores_the_sources_own_bits_on_the_sample(tmp_path):
    generator = np.random.default_rng(0)
    transitions = generator.dirichlet(np.ones(4), size=4)  # over a, b, c, newline
    documents, state = [], 3
    for _ in range(30):
        symbols = []
        for _ in range(int(generator.integers(1, 40))):
            state = int(generator.choice(4, p=transitions[state]))
            symbols.append("abc\n"[state])
        documents.append("".join(symbols) + "\n")
        state = 3
    bits = sum(
        -math.log2(transitions["abc\n".index(before), "abc\n".index(after)])
        for document in documents
        for before, after in zip("\n" + document, document, strict=False)
    )
    val = encoded_splits(tmp_path, LETTERS, ["a\n"], documents)["val"]
    oracle = ByTable(torch.tensor(np.log(transitions), dtype=torch.float32))
    evaluation = evaluate_split(oracle, val, LETTERS, CONFIG)
    assert evaluation.total_nats / math.log(2) == pytest.approx(bits, rel=1e-6)
    assert evaluation.bits_per_char == pytest.approx(bits / val.num_chars, rel=1e-6)
    assert evaluation.disjoint_bits_per_char == pytest.approx(bits / val.num_chars, rel=1e-6)


@torch.inference_mode()
def brute_force(model, ids, context, block_size, stride):
    """Each token scored by a forward pass of its own, from the window that docs/method.md gives it."""
    sequence = context + ids
    losses = []
    for position in range(len(context), len(sequence)):  # the token to score
        # The first window that reaches it: windows start at multiples of the stride.
        start = max(0, -(-(position - block_size) // stride)) * stride
        logits = model(torch.tensor([sequence[start:position]]))[0, -1]
        losses.append(float(-torch.log_softmax(logits, -1)[sequence[position]]))
    return losses


@pytest.mark.parametrize("stride", [1, 3, 4, 8])
@pytest.mark.parametrize("context", [[3], [3, 0], [1, 2, 3, 0, 1, 2, 3, 0, 1, 2]])
def test_batched_windows_equal_scoring_token_by_token(stride, context):
    model = trained_like(4).eval()
    documents = [[0, 3], [1] * 7, [0, 1, 2, 1, 0, 2, 2, 3], [2, 1, 0] * 3, [], [0, 0, 1, 2] * 6 + [3], [2]]
    offsets = np.cumsum([0] + [len(document) for document in documents])
    ids = torch.tensor([i for document in documents for i in document])
    scores = score_tokens(model, ids, offsets, context, stride=stride, batch_size=3)
    wanted = [loss for d in documents for loss in brute_force(model, d, context, 8, stride)]
    np.testing.assert_allclose(scores.sliding, wanted, rtol=1e-4, atol=1e-5)
    disjoint = [loss for d in documents for loss in disjoint_brute_force(model, d, context)]
    np.testing.assert_allclose(scores.disjoint, disjoint, rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def disjoint_brute_force(model, ids, context, block_size=8):
    sequence = context + ids
    losses = []
    for position in range(len(context), len(sequence)):
        start = (position - 1) // block_size * block_size
        logits = model(torch.tensor([sequence[start:position]]))[0, -1]
        losses.append(float(-torch.log_softmax(logits, -1)[sequence[position]]))
    return losses


def test_half_a_block_of_context_is_certain_but_at_a_documents_start():
    windows = plan_windows(np.array([0, 100, 103]), num_context=1, block_size=8, stride=4)
    for start, score_from in zip(windows.starts.tolist(), windows.score_from.tolist(), strict=True):
        assert score_from >= 4 or start in (0, 101)


def test_the_disjoint_figure_costs_at_most_one_window_more():
    offsets = np.array([0, 1000])
    sliding_only = 1 + math.ceil((1000 - 8) / 4)
    assert len(plan_windows(offsets, num_context=1, block_size=8, stride=4).starts) <= sliding_only + 1


def test_sliding_windows_help_a_model_that_uses_its_context(tmp_path):
    class Copies(MiniGPT):
        """Sure of a token that stood anywhere before it in the window, uniform otherwise."""

        def hidden(self, ids):
            return torch.nn.functional.one_hot(ids, self.config.vocab_size).cumsum(1).clamp(max=1) * 3.0

        def logits(self, hidden):
            return hidden

    tokens = CharTable(ALPHABET)
    val = encoded_splits(tmp_path, tokens, ["a\n"], ENGLISH)["val"]
    evaluation = evaluate_split(Copies(tiny_model(tokens.vocab_size)), val, tokens, CONFIG)
    assert evaluation.bits_per_char < evaluation.disjoint_bits_per_char - 0.05


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_the_result_does_not_depend_on_the_batch_size(tmp_path, batch_size):
    tokens = CharTable(ALPHABET)
    val = encoded_splits(tmp_path, tokens, ["a\n"], ENGLISH)["val"]
    model = trained_like(tokens.vocab_size)
    one = evaluate_split(model, val, tokens, CONFIG)
    other = evaluate_split(model, val, tokens, EvaluateConfig(batch_size=batch_size))
    np.testing.assert_allclose(one.nats, other.nats, rtol=1e-4, atol=1e-5)
    assert one.bits_per_char == pytest.approx(other.bits_per_char, rel=1e-6)


def test_a_document_is_scored_the_same_wherever_it_stands(tmp_path):
    tokens = CharTable(ALPHABET)
    model = trained_like(tokens.vocab_size)
    alone = encoded_splits(tmp_path / "a", tokens, ["a\n"], [ENGLISH[1]])["val"]
    among = encoded_splits(tmp_path / "b", tokens, ["a\n"], [ENGLISH[0], ENGLISH[1], ENGLISH[2]])["val"]
    offsets = among.document_offsets
    one = evaluate_split(model, alone, tokens, CONFIG).nats
    other = evaluate_split(model, among, tokens, CONFIG).nats[offsets[1] : offsets[2]]
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_bytes_and_characters_of_multibyte_text_are_both_exact(tmp_path):
    documents = ["naïve café 😀\n", "日本語のテキスト\n", "👨‍👩‍👧\n"]
    val = encoded_splits(tmp_path, ByteTable(), ["a\n"], documents)["val"]
    evaluation = evaluate_split(ByTable(torch.zeros(256, 256)), val, ByteTable(), CONFIG)
    text = "".join(documents)
    assert (evaluation.num_chars, evaluation.num_bytes) == (len(text), len(text.encode()))
    assert evaluation.bits_per_byte == pytest.approx(8.0, rel=1e-6)
    assert evaluation.bits_per_char == pytest.approx(8.0 * len(text.encode()) / len(text), rel=1e-6)
    assert evaluation.word_perplexity(6) == pytest.approx(256.0 ** (len(text.encode()) / 6), rel=1e-5)
    assert evaluation.word_perplexity(0) is None


@pytest.mark.parametrize("cut", [slice(1, None), slice(None, -1)])
def test_a_skipped_first_token_or_a_dropped_tail_trips_the_integer_check(tmp_path, cut):
    val = encoded_splits(tmp_path, LETTERS, ["a\n"], ["abcab\n"])["val"]
    short = dataclasses.replace(val, ids=val.ids[cut], document_offsets=np.array([0, len(val.ids) - 1]))
    with pytest.raises(ScoringError, match="scored 5 characters and 5 bytes, the text has 6 and 6"):
        evaluate_split(ByTable(torch.zeros(4, 4)), short, LETTERS, CONFIG)


def test_document_offsets_that_leave_tokens_out_trip_the_count(tmp_path):
    val = encoded_splits(tmp_path, LETTERS, ["a\n"], ["abcab\n", "ab\n"])["val"]
    holed = dataclasses.replace(val, document_offsets=np.array([0, 5]))
    with pytest.raises(ScoringError, match="4 tokens were not scored exactly once; token 5 was scored 0 times"):
        evaluate_split(ByTable(torch.zeros(4, 4)), holed, LETTERS, CONFIG)


def test_a_token_scored_twice_trips_the_count():
    with pytest.raises(ScoringError, match="token 1 was scored 2 times"):
        check_counts(torch.tensor([1, 2, 1]), "sliding")
    check_counts(torch.tensor([1, 1, 1]), "sliding")


def test_wrong_byte_lengths_trip_the_integer_check(tmp_path):
    val = encoded_splits(tmp_path, LETTERS, ["a\n"], ["abcab\n"])["val"]
    evaluation = evaluate_split(ByTable(torch.zeros(4, 4)), val, LETTERS, CONFIG)
    with pytest.raises(ScoringError, match="6 bytes"):
        check_lengths(evaluation, dataclasses.replace(val, num_bytes=7))


def test_the_models_mode_and_the_random_numbers_are_left_alone(tmp_path):
    val = encoded_splits(tmp_path, LETTERS, ["a\n"], ["abcab\n"])["val"]
    model = trained_like(4, dropout=0.5)
    before = torch.get_rng_state()
    for training in (True, False):
        model.train(training)
        first = evaluate_split(model, val, LETTERS, EvaluateConfig(alarm_below_bits_per_char=0)).nats
        assert model.training is training
        np.testing.assert_array_equal(
            first, evaluate_split(model, val, LETTERS, EvaluateConfig(alarm_below_bits_per_char=0)).nats
        )
    assert torch.equal(before, torch.get_rng_state())


def sure_model():
    """Sure that a follows a, and b follows everything else."""
    table = torch.full((4, 4), -10.0)
    table[:, 0] = 10.0
    return ByTable(table)


def test_a_figure_too_good_to_be_true_is_refused_and_the_alarm_can_be_lowered(tmp_path):
    val = encoded_splits(tmp_path, LETTERS, ["a\n"], ["a" * 200 + "\n"])["val"]
    with pytest.raises(ReportError, match=r"below the alarm of 0\.5") as caught:
        evaluate_split(sure_model(), val, LETTERS, CONFIG)
    assert "evaluate.alarm_below_bits_per_char" in str(caught.value)
    low = evaluate_split(sure_model(), val, LETTERS, EvaluateConfig(alarm_below_bits_per_char=0.01))
    assert 0.01 < low.bits_per_char < 0.5


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_losses_that_are_not_finite_are_refused(tmp_path, value):
    val = encoded_splits(tmp_path, LETTERS, ["a\n"], ["abcab\n"])["val"]
    table = torch.zeros(4, 4)
    table[1, 0] = value
    with pytest.raises(ReportError, match="2 of 6 losses are not finite, the first at token 2"):
        evaluate_split(ByTable(table), val, LETTERS, EvaluateConfig(alarm_below_bits_per_char=0))


def test_an_empty_split_and_foreign_ids_are_refused(tmp_path):
    val = encoded_splits(tmp_path, LETTERS, ["a\n"], ["abcab\n"])["val"]
    empty = dataclasses.replace(val, ids=val.ids[:0], document_offsets=np.array([0]))
    with pytest.raises(DataError, match="is empty"):
        evaluate_split(ByTable(torch.zeros(4, 4)), empty, LETTERS, CONFIG)
    with pytest.raises(DataError, match="encode the split again"):
        evaluate_split(ByTable(torch.zeros(4, 4)), val, CharTable("abd\n"), CONFIG)


def test_a_tokenizer_without_a_newline_is_refused(monkeypatch):
    assert context_of(LETTERS) == [3]
    with pytest.raises(LookupError):
        context_of(CharTable("abc"))
    silent = CharTable("abc")
    monkeypatch.setattr(silent, "encode", lambda _text: [])
    with pytest.raises(TokenizerError, match="encodes a newline as nothing"):
        context_of(silent)


def test_a_stride_that_skips_tokens_is_refused():
    assert EvaluateConfig().stride_for(128) == 64
    assert EvaluateConfig().stride_for(1) == 1
    assert EvaluateConfig(stride=8).stride_for(8) == 8
    with pytest.raises(ConfigError, match="stride 9 is greater than block_size 8"):
        EvaluateConfig(stride=9).stride_for(8)
    with pytest.raises(ConfigError):
        EvaluateConfig(stride=0)
    with pytest.raises(ConfigError):
        EvaluateConfig(batch_size=0)


def test_few_logits_at_a_time_give_the_same_losses(tmp_path, monkeypatch):
    val = encoded_splits(tmp_path, LETTERS, ["a\n"], ["abcab\n" * 5])["val"]
    model = trained_like(4)
    whole = evaluate_split(model, val, LETTERS, CONFIG).nats
    monkeypatch.setattr("model.windows._LOGITS_AT_ONCE", 12)  # three rows
    np.testing.assert_allclose(whole, evaluate_split(model, val, LETTERS, CONFIG).nats, rtol=1e-4, atol=1e-6)


def test_nats_survive_the_file(tmp_path):
    val = encoded_splits(tmp_path, LETTERS, ["a\n"], ["abcab\n", "ab\n"])["val"]
    evaluation = evaluate_split(trained_like(4), val, LETTERS, CONFIG)
    path = tmp_path / "val_nats.npz"
    write_nats(path, evaluation)
    again = read_nats(path)
    for name in ("nats", "token_num_chars", "token_num_bytes", "document_offsets"):
        assert getattr(again, name).dtype == getattr(evaluation, name).dtype
        np.testing.assert_array_equal(getattr(again, name), getattr(evaluation, name))
    assert again.bits_per_char == evaluation.bits_per_char
    assert again.disjoint_total_nats == evaluation.disjoint_total_nats
    assert (again.text_sha256, again.tokenizer_fingerprint) == (val.text_sha256, LETTERS.fingerprint())
    assert (again.stride, again.block_size) == (4, 8)


def test_a_damaged_nats_file_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "val_nats.npz"
    with pytest.raises(ReportError, match=r"val_nats\.npz"):
        read_nats(path)
    val = encoded_splits(tmp_path, LETTERS, ["a\n"], ["abcab\n"])["val"]
    write_nats(path, evaluate_split(trained_like(4), val, LETTERS, CONFIG))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ReportError, match="evaluate again"):
        read_nats(path)
    path.write_bytes(whole[:100] + b"\0\0\0\0" + whole[104:])
    with pytest.raises(ReportError, match="evaluate again"):
        read_nats(path)
