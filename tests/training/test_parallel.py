"""model/training/gradient.py: shares of a batch give the batch's gradient, the same again each time."""

import pytest
import torch

from model.gpt import MiniGPT
from model.training.gradient import ParallelGradient
from model_helpers import tiny_model


def loss_and_gradient(num_threads, *, seed=3, batch_size=5, **changes):
    torch.manual_seed(1)
    model = MiniGPT(tiny_model(11, **changes)).train()
    ids = torch.randint(11, (batch_size, 9))
    torch.manual_seed(seed)
    with ParallelGradient(model, num_threads=num_threads) as shares:
        loss = shares.backward(ids[:, :-1], ids[:, 1:])
    return loss, [parameter.grad for parameter in model.parameters()], (model, ids)


@pytest.mark.parametrize("num_threads", [1, 2, 3, 8])  # 5 windows: unequal shares, and threads without one
@pytest.mark.parametrize("preset", ["gpt2", "modern"])
def test_any_number_of_threads_gives_the_gradient_of_the_whole_batch(num_threads, preset):
    loss, gradients, (model, ids) = loss_and_gradient(num_threads, dropout=0.0, preset=preset)
    model.double().zero_grad()
    wanted = torch.nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    wanted.backward()
    assert loss == pytest.approx(wanted.item(), rel=1e-5)
    for (name, parameter), gradient in zip(model.named_parameters(), gradients, strict=True):
        torch.testing.assert_close(gradient.double(), parameter.grad, rtol=1e-3, atol=1e-6, msg=name)


def test_the_same_number_of_threads_gives_the_same_bits_with_dropout():
    first, again = loss_and_gradient(3, dropout=0.4), loss_and_gradient(3, dropout=0.4)
    assert first[0] == again[0]
    assert all(torch.equal(a, b) for a, b in zip(first[1], again[1], strict=True))
    assert loss_and_gradient(3, dropout=0.4, seed=4)[0] != first[0]


def test_shares_of_one_batch_drop_different_entries():
    torch.manual_seed(1)
    model = MiniGPT(tiny_model(11, dropout=0.5)).train()
    ids = torch.zeros(2, 8, dtype=torch.long)  # two equal windows, one for each thread
    losses = []
    with ParallelGradient(model, num_threads=2) as shares:
        original = shares._share
        shares._share = lambda *given: losses.append(original(*given)) or losses[-1]
        shares.backward(ids, ids)
    assert losses[0] != losses[1]


def test_threads_of_torch_are_left_alone():
    before = torch.get_num_threads()
    loss_and_gradient(2)
    assert torch.get_num_threads() == before


def test_an_error_in_a_share_is_raised():
    model = MiniGPT(tiny_model(11))
    with ParallelGradient(model, num_threads=2) as shares, pytest.raises(ValueError, match="do not fit"):
        shares.backward(torch.zeros(4, 20, dtype=torch.long), torch.zeros(4, 20, dtype=torch.long))


def test_products_in_bfloat16_are_close():
    torch.manual_seed(1)
    model = MiniGPT(tiny_model(11, dropout=0.0)).train()
    ids = torch.randint(11, (4, 9))
    with ParallelGradient(model, num_threads=1, dtype=torch.bfloat16) as shares:
        rounded = shares.backward(ids[:, :-1], ids[:, 1:])
    assert all(parameter.grad.dtype == torch.float32 for parameter in model.parameters())
    assert rounded == pytest.approx(model.loss(ids[:, :-1], ids[:, 1:]).item(), rel=0.02)
