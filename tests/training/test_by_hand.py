"""model/step against the graph of model/gpt.py and against model/reference.py: equal losses and gradients."""

import numpy as np
import pytest
import torch

from model import reference
from model.gpt import MiniGPT
from model.settings import PRESETS, SWITCHES, MiniGPTConfig
from model.step import whole
from model.step.whole import HandWritten, is_supported
from model.training.flat import layout_of
from model.training.gradient import ParallelGradient

CASES = {
    **{preset: {"preset": preset} for preset in PRESETS},
    **{f"gpt2 and {name}": {name: True} for name in SWITCHES},
    "every switch": dict.fromkeys(SWITCHES, True),
}
SHAPES = {
    # vocabulary, block, channels, heads, layers, expansion, batch, time
    "one token": (2, 1, 2, 1, 1, 1, 1, 1),
    "odd sizes": (37, 19, 30, 3, 2, 3, 5, 19),
    "shorter than the block": (11, 33, 24, 2, 3, 4, 2, 7),
    "several blocks of queries": (13, 150, 16, 4, 1, 2, 2, 149),
}


def awake(switches, shape, dropout):
    """A model at whose weights every part matters, and a batch."""
    vocab_size, block_size, channels, heads, layers, expansion, batch, time = shape
    config = MiniGPTConfig(vocab_size, block_size, channels, heads, layers, expansion, dropout, **switches)
    generator = torch.Generator().manual_seed(1)
    model = MiniGPT(config).train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model, torch.randint(vocab_size, (2, batch, time), generator=generator)


def by_hand(model, ids, targets, *, weight=1.0, seed=5):
    """Loss and gradients; what the buffers held before must not matter."""
    gradients = {name: torch.full_like(parameter, 7.0) for name, parameter in model.named_parameters()}
    loss = HandWritten(model, gradients).run(ids, targets, weight, seed)
    return loss, gradients


def assert_near(found, expected):
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        error = (found[name].double() - gradient).norm()
        assert error <= 1e-4 * gradient.norm() + 1e-6, name


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("switches", CASES.values(), ids=CASES)
def test_loss_and_gradients_are_those_of_the_specification(switches, shape):
    model, (ids, targets) = awake(switches, shape, 0.0)
    weights = {name: value.detach().double().requires_grad_() for name, value in model.named_parameters()}
    expected = reference.loss(weights, model.config, ids, targets)
    expected.backward()
    loss, gradients = by_hand(model, ids, targets)
    assert loss == pytest.approx(expected.item(), rel=1e-5, abs=1e-6)
    assert_near(gradients, {name: weight.grad for name, weight in weights.items()})


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("switches", CASES.values(), ids=CASES)
def test_dropout_drops_what_it_drops_in_the_graph(switches, shape):
    model, (ids, targets) = awake(switches, shape, 0.3)
    expected = model.loss(ids, targets, 5)
    expected.backward()
    loss, gradients = by_hand(model, ids, targets)
    assert loss == pytest.approx(expected.item(), rel=1e-5, abs=1e-6)
    assert_near(gradients, {name: weight.grad.double() for name, weight in model.named_parameters()})
    assert by_hand(model, ids, targets, seed=6)[0] != loss or ids.numel() == 1


@pytest.mark.parametrize("preset", PRESETS)
def test_logits_may_be_taken_some_rows_at_a_time(preset, monkeypatch):
    monkeypatch.setattr(whole, "LOGITS_AT_ONCE", 4 * 37)
    test_loss_and_gradients_are_those_of_the_specification({"preset": preset}, SHAPES["odd sizes"])


@pytest.mark.parametrize("preset", PRESETS)
def test_one_pass_takes_batches_of_any_shape_in_turn_and_a_share_of_them(preset):
    model, (ids, targets) = awake({"preset": preset}, SHAPES["odd sizes"], 0.3)
    gradients = {name: torch.zeros_like(parameter) for name, parameter in model.named_parameters()}
    passes = HandWritten(model, gradients)
    for rows, time in ((5, 19), (2, 19), (5, 3), (5, 19)):
        part = ids[:rows, :time], targets[:rows, :time]
        loss = passes.run(*part, 0.5, 5)
        alone, expected = by_hand(model, *part, weight=0.5)
        assert loss == alone
        assert all(torch.equal(gradients[name], expected[name]) for name in expected)
    assert loss == pytest.approx(0.5 * by_hand(model, ids, targets)[0])


def test_weights_that_were_laid_elsewhere_are_found():
    model, (ids, targets) = awake({"preset": "modern"}, SHAPES["odd sizes"], 0.0)
    passes = HandWritten(model, {name: torch.zeros_like(value) for name, value in model.named_parameters()})
    passes.run(ids, targets, 1.0, 5)
    layout_of(model).lay().mul_(1.5)
    assert passes.run(ids, targets, 1.0, 5) == by_hand(model, ids, targets)[0]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_weight_that_is_no_number_reaches_the_loss(preset):
    model, (ids, targets) = awake({"preset": preset}, SHAPES["odd sizes"], 0.0)
    with torch.no_grad():
        model.blocks[0].mlp.widen.weight[0, 0] = np.nan
    assert np.isnan(by_hand(model, ids, targets)[0])


def test_training_in_float32_on_the_cpu_is_by_hand_and_nothing_else_is():
    model = MiniGPT(MiniGPTConfig(5, 4, 8, 2, 1))
    assert is_supported(model, torch.float32, is_compiled=False)
    assert not is_supported(model, torch.bfloat16, is_compiled=False)
    assert not is_supported(model, torch.float32, is_compiled=True)
    with ParallelGradient(model, num_threads=2) as shares:
        assert len(shares.by_hand) == 2
    with ParallelGradient(model, num_threads=2, dtype=torch.bfloat16) as shares:
        assert not shares.by_hand
