"""model/generation: the cache, several samples at once, top-p, stop strings, log-probabilities of characters."""

import codecs
import doctest
import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from data.errors import ConfigError
from factories import examples
from model import reference
from model.generate import generate, generate_samples
from model.generation import draw as draw_module
from model.generation.cached import CachedGPT
from model.generation.draw import Sampling, draw, draws, window_starts
from model.generation.text import TextStream, character_log_probabilities
from model.gpt import MiniGPT
from model.settings import SWITCHES
from model_helpers import ByteTable, CharTable, tiny_model

CHARS = CharTable("\nabcdefghij")
WORDS = CharTable("\nabcdefghij", words=["abc", "de"])
PRESETS = ["gpt2", "modern"]


def random_model(vocab_size=CHARS.vocab_size, **changes):
    torch.manual_seed(3)
    model = MiniGPT(tiny_model(vocab_size, **changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))  # biases and norms too
        model.token_embedding.weight.mul_(4)
    return model


def tokens_of(model, ids, settings, *, cache, num_rows=1):
    return [[one.token for one in step] for step in draws(model, ids, settings, num_rows, cache=cache)]


def test_doctests():
    result = doctest.testmod(draw_module)
    assert result.attempted > 0 and result.failed == 0


# The cache


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("block_size", [1, 2, 7, 128])
@pytest.mark.parametrize("temperature", [0.0, 1.3])
def test_500_tokens_are_the_same_with_the_cache_and_without(preset, block_size, temperature):
    model = random_model(preset=preset, block_size=block_size)
    settings = Sampling(500, temperature=temperature, top_k=9, top_p=0.95, seed=5)
    plain = tokens_of(model, [1, 2, 3, 4], settings, cache=False)
    assert tokens_of(model, [1, 2, 3, 4], settings, cache=True) == plain
    assert len(plain) == 500 and (temperature == 0.0 or len({token for (token,) in plain}) > 2)


@pytest.mark.parametrize("switches", [{name: True} for name in SWITCHES] + [dict.fromkeys(SWITCHES, True), {}])
@pytest.mark.parametrize("num_read_at_once", [1, 5, 8])
@pytest.mark.parametrize("use_kernels", [True, False])
def test_logits_with_the_cache_are_those_of_the_specification(switches, num_read_at_once, use_kernels):
    model = random_model(**switches)
    ids = torch.randint(CHARS.vocab_size, (3, 8), generator=torch.Generator().manual_seed(1))
    wanted = reference.logits(model.state_dict(), model.config, ids)
    cached = CachedGPT(model, 3, use_kernels=use_kernels)
    found = [cached.next_logits(ids[:, :num_read_at_once])]
    found += [cached.next_logits(ids[:, [position]]) for position in range(num_read_at_once, 8)]
    torch.testing.assert_close(torch.stack(found, dim=1), wanted[:, num_read_at_once - 1 :], atol=2e-5, rtol=2e-5)


def test_a_full_cache_takes_no_more_and_a_cleared_one_starts_again():
    model, cached = random_model(), CachedGPT(random_model())
    first = cached.next_logits(torch.tensor([[1] * 8]))
    with pytest.raises(ValueError, match="9 tokens do not fit into the block of 8"):
        cached.next_logits(torch.tensor([[1]]))
    cached.clear()
    torch.testing.assert_close(cached.next_logits(torch.tensor([[1] * 8])), first)
    cached.clear()
    cached.next_logits(torch.tensor([[2]]))
    with pytest.raises(ValueError, match="one token at a time"):
        cached.next_logits(torch.tensor([[1, 2]]))
    assert model.training is False


@pytest.mark.parametrize("num_prompt", [1, 4, 8, 9, 30])
@pytest.mark.parametrize("block_size", [1, 2, 3, 8])
def test_windows_never_exceed_the_block_and_keep_half_of_it(num_prompt, block_size):
    starts = window_starts(num_prompt, block_size)
    found = [next(starts) for _ in range(60)]
    sizes = [num_prompt + number - start for number, start in enumerate(found)]
    assert sizes[0] == min(num_prompt, block_size) and max(sizes) <= block_size
    assert min(sizes[1:]) >= min(num_prompt, block_size // 2)
    assert {after - before for before, after in pairwise(found)} <= {0, max(1, block_size // 2)}


def test_the_mode_of_the_model_and_dropout_do_not_matter_to_the_cache():
    model = random_model(dropout=0.5)
    settings = Sampling(20, temperature=0.0)
    quiet = tokens_of(model, [1], settings, cache=True)
    assert tokens_of(model.train(), [1], settings, cache=True) == quiet and model.training
    assert tokens_of(model, [1], settings, cache=False) == quiet and model.training


# Several samples at once


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("cache", [True, False])
def test_samples_drawn_together_are_those_drawn_alone_with_their_seeds(preset, cache):
    model = random_model(preset=preset)
    together = generate_samples(model, CHARS, "abc", Sampling(40, temperature=2.0, seed=7), 3, cache=cache)
    alone = ["".join(generate(model, CHARS, "abc", num_tokens=40, temperature=2.0, seed=7 + k)) for k in range(3)]
    assert [one.text for one in together] == alone and len(set(alone)) == 3
    assert [one.seed for one in together] == [7, 8, 9]


def test_a_sample_that_stops_early_does_not_stop_the_others():
    model = random_model()
    sampling = Sampling(60, temperature=3.0, seed=1, stop=("b",))
    samples = generate_samples(model, CHARS, "a", sampling, 6)
    for sample in samples:
        alone = generate(model, CHARS, "a", num_tokens=60, temperature=3.0, seed=sample.seed, stop=["b"])
        assert "".join(alone) == sample.text
    assert len({len(sample.drawn) for sample in samples}) > 1


@pytest.mark.parametrize(("number", "seed", "said"), [(0, 1, "num_samples"), (2, 2**63 - 1, "seed of the last sample")])
def test_numbers_of_samples_out_of_range_are_refused(number, seed, said):
    with pytest.raises(ConfigError, match=said):
        generate_samples(random_model(), CHARS, "a", Sampling(1, seed=seed), number)


# Top-p


def drawn_tokens(logits, **settings):
    generator = torch.Generator().manual_seed(1)
    sampling = Sampling(1, **settings)
    return Counter(draw(torch.tensor(logits), sampling, generator) for _ in range(2_000))


@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.3, {1}), (0.5, {1}), (0.51, {1, 3}), (0.8, {1, 3}), (0.81, {0, 1, 3}), (1.0, {0, 1, 2, 3})]
)
def test_top_p_keeps_the_fewest_likeliest_that_reach_it(top_p, kept):
    logits = [math.log(p) for p in (0.15, 0.5, 0.05, 0.3)]
    logits[1] += 1e-6  # not exactly a half
    found = drawn_tokens(logits, top_p=top_p)
    assert set(found) == kept


def test_what_top_p_keeps_is_drawn_in_proportion():
    found = drawn_tokens([math.log(p) for p in (0.15, 0.5, 0.05, 0.3)], top_p=0.75)
    assert found[1] / 2_000 == pytest.approx(5 / 8, abs=0.04)


def test_top_p_counts_after_temperature_and_top_k():
    logits = [math.log(p) for p in (0.4, 0.3, 0.2, 0.1)]
    assert set(drawn_tokens(logits, top_p=0.5)) == {0, 1}
    assert set(drawn_tokens(logits, top_p=0.5, temperature=0.2)) == {0}
    assert set(drawn_tokens(logits, top_p=0.5, top_k=2)) == {0}


# Stop strings


def streamed(tokens, stop):
    stream = TextStream(ByteTable(), stop)
    pieces = []
    for token in tokens:
        pieces.append(stream.add(token))
        if stream.stopped_by is not None:
            break
    return [*pieces, stream.end()], stream.stopped_by


@pytest.mark.parametrize(
    ("text", "stop", "kept", "by"),
    [
        ("one\n\ntwo", ["\n\n"], "one", "\n\n"),
        ("aab", ["ab"], "a", "ab"),
        ("ababac", ["abac"], "ab", "abac"),
        ("abab", ["abac"], "abab", None),
        ("xé!", ["é"], "x", "é"),
        ("abcd", ["cd", "bc"], "a", "bc"),
        ("abc", ["b", "bc"], "a", "b"),
        ("abc", [], "abc", None),
    ],
)
def test_the_text_ends_before_the_first_stop_string(text, stop, kept, by):
    pieces, stopped_by = streamed(text.encode(), stop)
    assert ("".join(pieces), stopped_by) == (kept, by)


@given(
    st.lists(st.sampled_from([*b"ab", 0xC3, 0xA9, 0xF0]), max_size=40),
    st.lists(st.text("abé", min_size=1, max_size=4), max_size=3),
)
@examples(150)
def test_streaming_with_stop_strings_is_cutting_the_whole_text(raw, stop):
    pieces, _ = streamed(raw, stop)
    whole = bytes(raw).decode("utf-8", "replace")
    # The stream ends as soon as a stop string is whole, so the one that ends first decides.
    ends = [(at + len(word), at) for word in stop if (at := whole.find(word)) >= 0]
    first = min(ends, default=None)
    cuts = [at for end, at in ends if first is not None and end == first[0]]
    assert "".join(pieces) == (whole[: min(cuts)] if cuts else whole)


def test_characters_are_held_back_only_while_they_may_begin_a_stop_string():
    assert streamed(b"abxab", ["abc"])[0] == ["", "", "abx", "", "", "ab"]


# Log-probabilities


@given(st.lists(st.binary(max_size=5), max_size=12), st.integers(0, 9000))
@examples(150)
def test_characters_have_the_log_probabilities_of_their_tokens(tokens, num_letters):
    tokens = [*tokens, b"x" * num_letters, "é".encode()]
    values = [-float(number + 1) for number in range(len(tokens))]
    found = character_log_probabilities(tokens, values)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    assert "".join(c for c, _ in found) == decoder.decode(b"".join(tokens), final=True)
    assert math.fsum(value for _, value in found) == pytest.approx(sum(values))


def test_tokens_are_shared_out_among_the_characters_that_begin_in_them():
    assert character_log_probabilities([b"ab", b"c"], [-2.0, -3.0]) == [("a", -1.0), ("b", -1.0), ("c", -3.0)]
    assert character_log_probabilities([b"\xc3", b"\xa9", b"x"], [-1.0, -2.0, -4.0]) == [("é", -3.0), ("x", -4.0)]
    assert character_log_probabilities([b"\xa9", b"x"], [-1.0, -2.0]) == [("\ufffd", -1.0), ("x", -2.0)]
    assert character_log_probabilities([], []) == []


def test_log_probabilities_are_the_models_own_whatever_the_sampling():
    model = random_model(WORDS.vocab_size)
    sample = generate_samples(model, WORDS, "abc", Sampling(30, temperature=3.0, top_k=5, top_p=0.9), 1)[0]
    ids = WORDS.encode("abc")
    for one in sample.drawn[:7]:
        logits = reference.logits(model.state_dict(), model.config, torch.tensor([ids]))[0, -1]
        assert one.log_probability == pytest.approx(float(logits.log_softmax(-1)[one.token]), abs=1e-4)
        ids.append(one.token)
    assert "".join(c for c, _ in sample.characters) == sample.text
    total = sum(one.log_probability for one in sample.drawn)
    assert sum(value for _, value in sample.characters) == pytest.approx(total)


def test_of_a_stopped_sample_the_characters_are_those_of_its_text():
    model = random_model(WORDS.vocab_size)
    samples = generate_samples(model, WORDS, "a", Sampling(50, temperature=3.0, stop=("c", "j")), 8)
    assert any(sample.stopped_by for sample in samples)
    for sample in samples:
        assert "".join(c for c, _ in sample.characters) == sample.text
        assert not set("cj") & set(sample.text)
