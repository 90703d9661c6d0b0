"""model/gpt.py against its specification model/reference.py: equal losses and gradients, dropout off."""

import pytest
import torch

from model import reference
from model.gpt import MiniGPT
from model.settings import PRESETS, SWITCHES, MiniGPTConfig

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


def awake(model: MiniGPT, generator: torch.Generator) -> MiniGPT:
    """Weights of a size at which every part matters, biases and norms included."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("switches", CASES.values(), ids=CASES)
def test_loss_and_gradients_are_those_of_the_specification(switches: dict[str, object], shape: tuple[int, ...]) -> None:
    vocab_size, block_size, channels, heads, layers, expansion, batch, time = shape
    config = MiniGPTConfig(
        vocab_size=vocab_size,
        block_size=block_size,
        embedding_dim=channels,
        num_heads=heads,
        num_layers=layers,
        expansion_factor=expansion,
        dropout=0.0,
        **switches,  # type: ignore[arg-type]
    )
    generator = torch.Generator().manual_seed(1)
    model = awake(MiniGPT(config), generator).train()
    ids, targets = torch.randint(vocab_size, (2, batch, time), generator=generator)
    # The specification in float64: what differs then is the rounding of the model alone.
    weights = {name: value.detach().double().requires_grad_() for name, value in model.named_parameters()}

    expected = reference.loss(weights, config, ids, targets)
    found = model.loss(ids, targets)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(model(ids).double(), reference.logits(weights, config, ids), rtol=1e-4, atol=1e-4)

    expected.backward()
    found.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and weights[name].grad is not None, name
        error = (parameter.grad.double() - weights[name].grad).norm()  # type: ignore[operator]
        assert error <= 1e-4 * weights[name].grad.norm() + 1e-6, name  # type: ignore[union-attr]


@pytest.mark.parametrize("preset", PRESETS)
def test_the_comparison_notices_a_changed_weight(preset: str) -> None:
    config = MiniGPTConfig(
        vocab_size=11, block_size=8, embedding_dim=8, num_heads=2, num_layers=1, dropout=0.0, preset=preset  # type: ignore[arg-type]
    )  # fmt: skip
    generator = torch.Generator().manual_seed(1)
    model = awake(MiniGPT(config), generator)
    ids, targets = torch.randint(11, (2, 2, 8), generator=generator)
    for changed in dict(model.named_parameters()):
        weights = {name: value.detach().clone() for name, value in model.named_parameters()}
        weights[changed] = weights[changed] + 0.1 * torch.randn(weights[changed].shape, generator=generator)
        difference = (reference.loss(weights, config, ids, targets) - model.loss(ids, targets)).abs().item()
        assert difference > 1e-5, changed
