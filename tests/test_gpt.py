"""model/gpt.py: shapes, causality, counts, initial weights, configuration."""

import math

import pytest
import torch
from torch import nn

from data.errors import ConfigError
from model.gpt import MiniGPT, MiniGPTConfig
from model_helpers import tiny_model


def test_forward_gives_one_distribution_for_each_position():
    model = MiniGPT(tiny_model(11))
    assert model(torch.zeros(3, 5, dtype=torch.long)).shape == (3, 5, 11)


def test_a_position_does_not_see_what_comes_after_it():
    torch.manual_seed(0)
    model = MiniGPT(tiny_model(11)).eval()
    ids = torch.randint(11, (2, 8))
    changed = ids.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 11
    before, after = model(ids), model(changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])


def test_a_position_sees_all_that_came_before_it():
    torch.manual_seed(0)
    model = MiniGPT(tiny_model(11)).eval()
    ids = torch.randint(11, (1, 8))
    changed = ids.clone()
    changed[0, 0] = (changed[0, 0] + 1) % 11
    assert not torch.allclose(model(ids)[0, 7], model(changed)[0, 7])


def test_parameter_count_is_the_sum_written_out_by_hand():
    V, T, C, layers, expansion = 11, 8, 16, 2, 4
    model = MiniGPT(tiny_model(V))
    layer = (C * 3 * C + 3 * C) + (C * C + C) + 2 * expansion * C * C + expansion * C + C + 4 * C
    assert model.num_parameters() == V * C + T * C + layers * layer + 2 * C
    assert model.num_embedding_parameters() == V * C + T * C


def test_flops_follow_the_formula():
    V, T, C, layers = 11, 8, 16, 2
    matrices = layers * (3 * C * C + C * C + 2 * 4 * C * C) + V * C
    assert MiniGPT(tiny_model(V)).flops_per_token() == 6 * matrices + 12 * layers * C * T


def test_the_head_is_the_token_table():
    model = MiniGPT(tiny_model(11))
    assert [name for name, _ in model.named_parameters() if "embedding" in name or "head" in name] == [
        "token_embedding.weight",
        "position_embedding.weight",
    ]
    model(torch.tensor([[1, 2]])).sum().backward()
    assert model.token_embedding.weight.grad[7].abs().sum() > 0  # an id that was no input still gets a gradient


def test_initial_weights_are_gpt2s():
    torch.manual_seed(0)
    config = MiniGPTConfig(vocab_size=500, num_layers=4)
    for name, module in MiniGPT(config).named_modules():
        if isinstance(module, nn.Linear):
            wanted = 0.02 / math.sqrt(8) if name.endswith("projection") else 0.02
            assert module.weight.std().item() == pytest.approx(wanted, rel=0.05), name
            assert not module.bias.any()
        elif isinstance(module, nn.Embedding):
            assert module.weight.std().item() == pytest.approx(0.02, rel=0.05)


def test_an_untrained_model_is_near_uniform():
    torch.manual_seed(0)
    logits = MiniGPT(MiniGPTConfig(vocab_size=100)).eval()(torch.randint(100, (2, 128)))
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), torch.randint(100, (256,)))
    assert loss.item() == pytest.approx(math.log(100), abs=0.15)


def test_dropout_acts_in_training_only():
    model = MiniGPT(tiny_model(11, dropout=0.5))
    ids = torch.zeros(1, 8, dtype=torch.long)
    assert not torch.equal(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))


def test_a_sequence_longer_than_the_block_is_refused():
    with pytest.raises(ValueError, match="9 tokens do not fit into the block of 8"):
        MiniGPT(tiny_model(11))(torch.zeros(1, 9, dtype=torch.long))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embedding_dim": 10, "num_heads": 4}, "embedding_dim 10 is not divisible by num_heads 4"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), found 1.0"),
        ({"dropout": -0.1}, "dropout"),
        ({"block_size": 0}, "block_size must be at least 1, found 0"),
        ({"num_layers": 0}, "num_layers"),
        ({"num_heads": -1}, "num_heads"),
        ({"expansion_factor": 0}, "expansion_factor"),
        ({"embedding_dim": 0}, "embedding_dim"),
    ],
)
def test_impossible_sizes_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        MiniGPTConfig(vocab_size=5, **changes)
