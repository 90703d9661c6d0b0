"""model/generate.py: streaming, sampling settings, prompts (case 28)."""

import pytest
import torch

from data.errors import ConfigError
from model.generate import generate
from model.gpt import MiniGPT
from model_helpers import ByteTable, CharTable, tiny_model

CHARS = CharTable("\nabcdefghij")


def scripted(model, tokenizer, prompt, **settings):
    """What the plain path draws: a scripted model has no keys and values to keep."""
    return generate(model, tokenizer, prompt, cache=False, **settings)


class Scripted(MiniGPT):
    """Continues with the given ids, whatever came before; remembers its inputs."""

    def __init__(self, vocab_size, script):
        super().__init__(tiny_model(vocab_size))
        self.script, self.seen = list(script), []

    def hidden(self, ids):
        self.seen.append(ids[0].tolist())
        return torch.zeros(*ids.shape, 1)  # (1, T, 1)

    def logits(self, hidden):
        return nn_one_hot(self.script[len(self.seen) - 1], self.config.vocab_size)[None]


def nn_one_hot(index, size):
    return torch.nn.functional.one_hot(torch.tensor(index), size) * 50.0


def random_model():
    torch.manual_seed(3)
    model = MiniGPT(tiny_model(CHARS.vocab_size))
    with torch.no_grad():
        model.token_embedding.weight.mul_(20)  # far from uniform, so that settings matter
    return model


def test_the_continuation_is_streamed_character_by_character():
    model = Scripted(11, CHARS.encode("bad\n"))
    assert list(scripted(model, CHARS, "a", num_tokens=4)) == ["b", "a", "d", "\n"]


def test_bytes_of_an_unfinished_character_are_held_back():
    tokens = ByteTable()
    model = Scripted(256, tokens.encode("é😀x"))
    assert list(scripted(model, tokens, "a", num_tokens=7)) == ["é", "😀", "x"]


def test_a_text_that_ends_inside_a_character_ends_with_a_replacement():
    tokens = ByteTable()
    model = Scripted(256, tokens.encode("a😀")[:4])
    assert list(scripted(model, tokens, "a", num_tokens=4)) == ["a", "\ufffd"]


def test_invalid_bytes_are_replaced_and_the_rest_survives():
    model = Scripted(256, [128, ord("a")])
    assert "".join(scripted(model, ByteTable(), "a", num_tokens=2)) == "\ufffda"


def test_temperature_zero_takes_the_likeliest_whatever_the_seed():
    model = random_model()
    texts = {"".join(generate(model, CHARS, "abc", num_tokens=20, temperature=0, seed=s)) for s in range(3)}
    assert len(texts) == 1
    assert texts == {"".join(generate(model, CHARS, "abc", num_tokens=20, temperature=5, top_k=1))}


def test_a_tiny_temperature_is_greedy_and_does_not_overflow():
    model = random_model()
    greedy = "".join(generate(model, CHARS, "abc", num_tokens=20, temperature=0))
    assert "".join(generate(model, CHARS, "abc", num_tokens=20, temperature=1e-30)) == greedy


def test_the_seed_decides_the_sample_and_nothing_else_does():
    model = random_model()

    def sample(seed):
        torch.rand(5)
        return "".join(generate(model, CHARS, "abc", num_tokens=30, temperature=3.0, seed=seed))

    before = torch.get_rng_state()
    assert len(sample(1)) == 30
    torch.set_rng_state(before)
    assert sample(1) == sample(1)
    assert sample(1) != sample(2)


def test_sampling_leaves_torchs_generator_and_the_models_mode_alone():
    model = random_model().train()
    before = torch.get_rng_state()
    list(generate(model, CHARS, "abc", num_tokens=5))
    assert torch.equal(before, torch.get_rng_state())
    assert model.training


def test_top_k_keeps_to_the_likeliest():
    model = random_model()
    with torch.inference_mode():
        likeliest = model.eval()(torch.tensor([CHARS.encode("abc")]))[0, -1].topk(3).indices.tolist()
    drawn = {
        "".join(generate(model, CHARS, "abc", num_tokens=1, temperature=50.0, top_k=3, seed=seed)) for seed in range(60)
    }
    assert drawn == {CHARS.tokens[i] for i in likeliest}


def test_top_k_above_the_vocabulary_is_no_limit():
    model = random_model()
    free = list(generate(model, CHARS, "abc", num_tokens=20, temperature=2.0))
    assert list(generate(model, CHARS, "abc", num_tokens=20, temperature=2.0, top_k=1000)) == free
    assert list(generate(model, CHARS, "abc", num_tokens=20, temperature=2.0, top_k=11)) == free


def test_an_empty_prompt_starts_after_a_newline():
    model = Scripted(11, CHARS.encode("ab"))
    list(scripted(model, CHARS, "", num_tokens=2))
    assert model.seen == [CHARS.encode("\n"), CHARS.encode("\na")]


def test_of_a_long_prompt_the_last_block_counts_and_then_the_window_moves_on_by_half_a_block():
    model = Scripted(11, CHARS.encode("abcdef"))
    list(scripted(model, CHARS, "abcdefghijabc", num_tokens=6))
    seen = ["fghijabc", "jabca", "jabcab", "jabcabc", "jabcabcd", "abcde"]
    assert model.seen == [CHARS.encode(text) for text in seen]


def test_unknown_characters_raise_the_tokenizers_error_at_once():
    with pytest.raises(LookupError, match="no token for 'X'"):
        generate(random_model(), CHARS, "aX", num_tokens=1)


@pytest.mark.parametrize(
    "settings",
    [
        {"num_tokens": -1},
        {"num_tokens": 1, "temperature": -1.0},
        {"num_tokens": 1, "top_k": 0},
        {"num_tokens": 1, "top_p": 0.0},
        {"num_tokens": 1, "top_p": 1.5},
        {"num_tokens": 1, "stop": ["ab", ""]},
    ],
)
def test_settings_out_of_range_are_refused_at_once(settings):
    with pytest.raises(ConfigError, match=r"must be (0 or )?at (least|most)|stop string is empty"):
        generate(random_model(), CHARS, "a", **settings)


def test_no_tokens_give_no_text():
    assert list(generate(random_model(), CHARS, "a", num_tokens=0)) == []
