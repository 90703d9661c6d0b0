"""model/training/optimizer.py: Muon's step by its formulas, who gets which parameter, going on from a saved state."""

import copy

import pytest
import torch

from model.gpt import MiniGPT
from model.settings import TrainConfig
from model.training.optimizer import Muon, Optimizers, orthogonalize
from model_helpers import tiny_model


@pytest.mark.parametrize("shape", [(12, 12), (12, 40)])
def test_orthogonalised_singular_values_are_near_one_and_directions_are_kept(shape):
    torch.manual_seed(0)
    matrices = torch.randn(3, *shape)
    for matrix, out in zip(matrices, orthogonalize(matrices), strict=True):
        u, _, v = torch.linalg.svd(matrix, full_matrices=False)
        assert out.shape == shape
        core = u.T @ out @ v.T  # diagonal: the same singular vectors
        values = core.diagonal()
        assert values.min() > 0.65 and values.max() < 1.25
        torch.testing.assert_close(core, torch.diag(values), atol=1e-3, rtol=0)


def test_orthogonalising_does_not_depend_on_the_length():
    torch.manual_seed(1)
    matrices = torch.randn(2, 6, 9)
    shorter = matrices * torch.tensor([1e-4, 3.0])[:, None, None]
    torch.testing.assert_close(orthogonalize(shorter), orthogonalize(matrices), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("shapes", [[(4, 6)], [(6, 4)], [(4, 6), (5, 5), (6, 4), (4, 6)]])
def test_muons_step_is_the_formula_for_matrices_lying_standing_and_together(shapes):
    torch.manual_seed(2)
    weights = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
    wanted = [weight.detach().clone() for weight in weights]
    momenta = [torch.zeros(shape) for shape in shapes]
    muon = Muon(weights, lr=0.1, weight_decay=0.5)
    for _ in range(2):
        for weight in weights:
            weight.grad = torch.randn(weight.shape)
        muon.step()
        for number, (rows, columns) in enumerate(shapes):
            gradient = weights[number].grad
            momenta[number] = 0.95 * momenta[number] + 0.05 * gradient
            ahead = 0.05 * gradient + 0.95 * momenta[number]
            is_tall = rows > columns
            move = orthogonalize((ahead.T if is_tall else ahead)[None])[0]
            length = 0.1 * 0.2 * max(rows, columns) ** 0.5
            wanted[number] = wanted[number] * (1 - 0.1 * 0.5) - length * (move.T if is_tall else move)
    for weight, value in zip(weights, wanted, strict=True):
        torch.testing.assert_close(weight.detach(), value)


def test_muon_takes_the_matrices_of_the_blocks_and_adamw_everything_else():
    model = MiniGPT(tiny_model(11))
    muon, adamw = Optimizers(model, TrainConfig(optimizer="muon")).all
    names = {parameter: name for name, parameter in model.named_parameters()}
    own = {names[p] for group in muon.param_groups for p in group["params"]}
    rest = {names[p] for group in adamw.param_groups for p in group["params"]}
    assert own == {name for name in names.values() if name.startswith("blocks.") and names and "norm" not in name
                   and name.endswith("weight")}  # fmt: skip
    assert own | rest == set(names.values()) and not own & rest


def test_adamw_alone_decays_what_has_two_dimensions():
    model = MiniGPT(tiny_model(11))
    (adamw,) = Optimizers(model, TrainConfig(weight_decay=0.3)).all
    decayed, plain = adamw.param_groups
    assert decayed["weight_decay"] == 0.3 and all(p.ndim == 2 for p in decayed["params"])
    assert plain["weight_decay"] == 0.0 and all(p.ndim == 1 for p in plain["params"])


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_saved_state_goes_on_bit_for_bit(optimizer):
    def walk(model, optimizers, steps):
        for step in steps:
            torch.manual_seed(step)
            for parameter in model.parameters():
                parameter.grad = torch.randn_like(parameter)
            optimizers.step(1e-2)

    config = TrainConfig(optimizer=optimizer)
    whole = MiniGPT(tiny_model(11))
    halves = copy.deepcopy(whole)
    walk(whole, Optimizers(whole, config), range(4))
    first = Optimizers(halves, config)
    walk(halves, first, range(2))
    second = Optimizers(halves, config)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    walk(halves, second, range(2, 4))
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), halves.parameters(), strict=True))
