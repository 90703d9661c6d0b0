"""model/gpt.py: shapes, causality, counts, initial weights, configuration."""

import math

import pytest
import torch
from torch import nn

from data.errors import ConfigError
from model.gpt import MiniGPT
from model.settings import SWITCHES, MiniGPTConfig
from model_helpers import tiny_model

# 20 losses of `walk`. gpt2's were the same before attention and loss were written by hand (within 1e-6).
GOLDEN_MODELS = {
    "gpt2": {"preset": "gpt2"},
    "modern": {"preset": "modern"},
    "every switch": dict.fromkeys(SWITCHES, True),
}
GOLDEN = {
    "gpt2": [
        3.933768, 3.809837, 3.663100, 3.566863, 3.461362, 3.389890, 3.400158, 3.298374, 3.202121, 3.117743,
        3.063341, 2.979059, 2.936764, 2.846974, 2.773373, 2.731908, 2.726713, 2.623286, 2.534609, 2.480411,
    ],
    "modern": [
        3.940131, 3.773941, 3.627566, 3.511098, 3.426437, 3.332273, 3.238038, 3.154675, 3.113431, 3.057431,
        2.972009, 2.907851, 2.844074, 2.773945, 2.714925, 2.630450, 2.528912, 2.483206, 2.442543, 2.370483,
    ],
    "every switch": [
        3.938902, 3.797324, 3.644194, 3.516114, 3.417108, 3.331009, 3.232504, 3.154001, 3.103019, 3.054011,
        2.972055, 2.912462, 2.859918, 2.784342, 2.725906, 2.655764, 2.568316, 2.523404, 2.482333, 2.418491,
    ],
}  # fmt: skip


def awake(model):
    """`model` with projections that are not zero, so that its layers do something before any training."""
    for name, parameter in model.named_parameters():
        if name.endswith("projection.weight"):
            nn.init.normal_(parameter, std=0.5)
    return model


def walk(**settings):
    """Losses of 20 steps of AdamW on sequences that count by threes."""
    torch.manual_seed(1)
    sizes = {"block_size": 16, "embedding_dim": 32, "num_heads": 2, "num_layers": 2, "dropout": 0.0}
    model = MiniGPT(MiniGPTConfig(vocab_size=50, **sizes, **settings))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99))
    generator = torch.Generator().manual_seed(2)
    losses = []
    for _ in range(20):
        ids = (torch.randint(50, (8, 1), generator=generator) + 3 * torch.arange(17)) % 50
        loss = model.loss(ids[:, :-1], ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_losses(name):
    assert walk(**GOLDEN_MODELS[name]) == pytest.approx(GOLDEN[name], abs=2e-4)


def test_forward_gives_one_distribution_for_each_position():
    model = MiniGPT(tiny_model(11))
    assert model(torch.zeros(3, 5, dtype=torch.long)).shape == (3, 5, 11)


@pytest.mark.parametrize("preset", ["gpt2", "modern"])
@pytest.mark.parametrize("is_training", [False, True])
def test_a_position_does_not_see_what_comes_after_it(preset, is_training):
    torch.manual_seed(0)
    model = awake(MiniGPT(tiny_model(11, preset=preset, dropout=0.0))).train(is_training)
    ids = torch.randint(11, (2, 8))
    changed = ids.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 11
    before, after = model(ids), model(changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])


@pytest.mark.parametrize("preset", ["gpt2", "modern"])
def test_a_position_sees_all_that_came_before_it(preset):
    torch.manual_seed(0)
    model = awake(MiniGPT(tiny_model(11, preset=preset))).eval()
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


def test_the_modern_preset_sets_its_switches_and_each_can_be_set_apart():
    modern = MiniGPTConfig(vocab_size=5, preset="modern", rope=False, zero_init=True)
    assert {name for name in SWITCHES if getattr(modern, name)} == {"qk_norm", "relu_squared", "zero_init"}
    plain = MiniGPTConfig(vocab_size=5, qk_norm=True)
    assert {name for name in SWITCHES if getattr(plain, name)} == {"qk_norm"}
    with pytest.raises(ConfigError, match="rope needs an even head size, found 3"):
        MiniGPTConfig(vocab_size=5, embedding_dim=6, num_heads=2, rope=True)


def test_the_modern_presets_parameters_and_flops():
    V, T, C, layers = 11, 8, 16, 2
    model = MiniGPT(tiny_model(V, preset="modern"))
    matrices = layers * 12 * C * C
    norms = (2 * layers + 1) * 2 * C
    assert model.num_parameters() == V * C + matrices + layers * (3 * C + C + 4 * C + C) + norms  # no positions
    bare = MiniGPT(tiny_model(V, preset="modern", rms_norm=True))
    assert bare.num_parameters() == model.num_parameters() - norms
    assert model.num_embedding_parameters() == V * C
    assert model.flops_per_token() == 6 * (matrices + V * C) + 12 * layers * C * T


def test_with_zero_init_a_model_begins_as_the_identity():
    torch.manual_seed(0)
    model = MiniGPT(tiny_model(11, preset="modern", rms_norm=True, zero_init=True)).eval()
    ids = torch.randint(11, (2, 8))
    torch.testing.assert_close(model.hidden(ids), nn.functional.rms_norm(model.token_embedding(ids), (16,), eps=1e-5))


def test_the_loss_is_the_cross_entropy_of_the_logits():
    torch.manual_seed(0)
    model = MiniGPT(tiny_model(11)).eval()
    ids, targets = torch.randint(11, (2, 8)), torch.randint(11, (2, 8))
    wanted = nn.functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
    torch.testing.assert_close(model.loss(ids, targets), wanted)


def test_a_dropout_seed_decides_all_masks():
    model = MiniGPT(tiny_model(11, dropout=0.5))
    ids = torch.zeros(1, 8, dtype=torch.long)
    assert torch.equal(model.hidden(ids, 7), model.hidden(ids, 7))
    assert not torch.equal(model.hidden(ids, 7), model.hidden(ids, 8))


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
