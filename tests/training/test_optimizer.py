"""model/training/optimizer.py: Muon's step by its formulas, who gets which parameter, going on from a saved state."""

import copy

import pytest
import torch

from model.gpt import MiniGPT
from model.settings import TrainConfig
from model.training.optimizer import Muon, Optimizers, adamw, orthogonalize
from model_helpers import tiny_model


@pytest.mark.parametrize("shape", [(12, 12), (12, 40)])
def test_orthogonalised_singular_values_are_near_one_and_directions_are_kept(shape):
    torch.manual_seed(0)
    matrices = torch.randn(3, *shape)
    for matrix, out in zip(matrices, orthogonalize([matrices])[0], strict=True):
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
    torch.testing.assert_close(orthogonalize([shorter]), orthogonalize([matrices]), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("size", [1e-30, 1e-18, 1e-8, 1.0, 1e8, 1e15])
def test_orthogonalising_holds_gradients_of_any_size(size):
    torch.manual_seed(1)
    matrices = torch.randn(2, 6, 9)
    found = orthogonalize([matrices * size])[0]
    assert torch.isfinite(found).all()
    if size >= 1e-6:
        torch.testing.assert_close(found, orthogonalize([matrices])[0], rtol=1e-2, atol=1e-3)


def test_a_gradient_of_zero_moves_nothing():
    assert torch.equal(orthogonalize([torch.zeros(2, 3, 5)])[0], torch.zeros(2, 3, 5))


@pytest.mark.parametrize("shapes", [[(1, 4, 6)], [(2, 6, 4)], [(2, 4, 6), (1, 5, 5), (3, 6, 4)]])
def test_muons_step_is_the_formula_for_matrices_lying_standing_and_together(shapes):
    torch.manual_seed(2)
    weights = [torch.randn(shape) for shape in shapes]
    wanted = [weight.clone() for weight in weights]
    momenta = [torch.zeros(shape) for shape in shapes]
    muon = Muon(weights, [torch.zeros(shape) for shape in shapes], weight_decay=0.5)
    for _ in range(2):
        gradients = [torch.randn(shape) for shape in shapes]
        muon.step(gradients, 0.1)
        for number, (_, rows, columns) in enumerate(shapes):
            momenta[number] = 0.95 * momenta[number] + 0.05 * gradients[number]
            ahead = 0.05 * gradients[number] + 0.95 * momenta[number]
            is_tall = rows > columns
            move = orthogonalize([ahead.mT if is_tall else ahead])[0]
            length = 0.1 * 0.2 * max(rows, columns) ** 0.5
            wanted[number] = wanted[number] * (1 - 0.1 * 0.5) - length * (move.mT if is_tall else move)
    for weight, value in zip(weights, wanted, strict=True):
        torch.testing.assert_close(weight, value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # the kernel, and the formula by operations
def test_adamw_is_torchs(dtype):
    torch.manual_seed(3)
    weights = torch.randn(1001, dtype=dtype)
    wanted = torch.nn.Parameter(weights.clone())
    theirs = torch.optim.AdamW([wanted], lr=1e-2, betas=(0.8, 0.97), weight_decay=0.3)
    moments = torch.zeros_like(weights), torch.zeros_like(weights)
    for step in range(1, 6):
        wanted.grad = torch.randn(1001, dtype=dtype)
        theirs.step()
        adamw(weights, wanted.grad, moments, betas=(0.8, 0.97), step=step, learning_rate=1e-2, weight_decay=0.3)
    torch.testing.assert_close(weights, wanted.detach(), rtol=1e-5, atol=1e-6)


def test_the_array_holds_hidden_matrices_then_tables_then_vectors_and_weights_are_views_of_it():
    model = MiniGPT(tiny_model(11))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizers = Optimizers(model, TrainConfig(optimizer="muon"))
    names = {parameter: name for name, parameter in model.named_parameters()}
    order = [names[parameter] for parameter in optimizers.layout.parameters]
    assert sorted(order) == sorted(names.values())
    num_hidden = sum(number for number, _, _ in optimizers.layout.shapes)
    assert set(order[:num_hidden]) == {
        name for name in order if name.startswith("blocks.") and "norm" not in name and name.endswith("weight")
    }
    assert order[num_hidden : num_hidden + 2] == ["token_embedding.weight", "position_embedding.weight"]
    assert all(model.get_parameter(name).ndim == 1 for name in order[num_hidden + 2 :])
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    optimizers.weights.zero_()
    assert all(not parameter.any() for parameter in model.parameters())


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_what_has_two_dimensions_decays_and_nothing_else(optimizer):
    model = MiniGPT(tiny_model(11))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0).grad = torch.zeros_like(parameter)
    Optimizers(model, TrainConfig(weight_decay=0.3, optimizer=optimizer)).step(0.1)
    for name, parameter in model.named_parameters():
        wanted = 0.97 if parameter.ndim == 2 else 1.0
        torch.testing.assert_close(parameter.detach(), torch.full_like(parameter, wanted), msg=name)


def test_a_step_without_a_gradient_is_refused():
    with pytest.raises(ValueError, match="backward"):
        Optimizers(MiniGPT(tiny_model(11)), TrainConfig()).step(0.1, torch.zeros(3))


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


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
@pytest.mark.parametrize("num_shares", [1, 2, 3, 5])
def test_a_step_shared_out_is_the_step(optimizer, num_shares):
    # Three layers, so that stacks leave a rest; the formula taken by operations in float64 is the measure.
    torch.manual_seed(4)
    model = MiniGPT(tiny_model(11, num_layers=3))
    config = TrainConfig(optimizer=optimizer)
    wanted = copy.deepcopy(model).double()
    optimizers, theirs = Optimizers(model, config), Optimizers(wanted, config)
    gradient = torch.empty_like(optimizers.weights)
    order = []

    def run(work):
        order.append(len(work))
        for part in reversed(work):
            part()

    for _ in range(3):
        gradient.normal_()
        optimizers.step(1e-2, gradient, run, num_shares)
        theirs.step(1e-2, gradient.double())
    assert order == [num_shares] * 3
    torch.testing.assert_close(optimizers.weights.double(), theirs.weights, rtol=1e-3, atol=1e-4)
    for name, state in theirs.state_dict().items():
        if name != "num_steps":
            torch.testing.assert_close(optimizers.state_dict()[name].double(), state, rtol=1e-4, atol=1e-5)


def test_muons_kernels_move_nothing_for_a_gradient_of_zero():
    model = MiniGPT(tiny_model(11))
    optimizers = Optimizers(model, TrainConfig(optimizer="muon", weight_decay=0.0))
    before = optimizers.weights.clone()
    optimizers.step(1e-2, torch.zeros_like(before))
    assert torch.equal(optimizers.weights, before)


@pytest.mark.parametrize("num_shares", [1, 3])
@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_each_rate_moves_its_own_group_and_no_other(optimizer, num_shares):
    """The first step from zero moments is proportional to the rate, but for the decay, which is off here."""

    def moved(**rates):
        torch.manual_seed(5)
        model = MiniGPT(tiny_model(11))
        optimizers = Optimizers(model, TrainConfig(optimizer=optimizer, weight_decay=0.0, **rates))
        before = optimizers.weights.clone()
        optimizers.step(1e-2, torch.randn_like(before), _all_of, num_shares)
        layout = optimizers.layout
        sizes = layout.num_hidden, layout.num_decayed - layout.num_hidden, layout.size - layout.num_decayed
        return (optimizers.weights - before).split(sizes)

    plain, changed = moved(), moved(muon_rate=2.0, table_rate=3.0)
    for own, other, ratio in zip(plain, changed, (2.0 if optimizer == "muon" else 1.0, 3.0, 1.0), strict=True):
        torch.testing.assert_close(other, ratio * own, rtol=1e-3, atol=1e-6)


def _all_of(work):
    for part in work:
        part()
