"""model/fused/ops.py: every fast path against its formula in float64, values and gradients; dropout's statistics."""

import math

import pytest
import torch
from torch import nn

from model.fused import ops as fused
from model.fused.ops import causal_attention, drop, dropout, gelu, relu_squared, rms_norm, rotate, tied_loss


def gradients(function, *inputs, weight):
    """The value of `function` at `inputs`, and the gradients of its sum weighted with `weight`."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    out = function(*inputs)
    return out.detach(), torch.autograd.grad((out * weight).sum(), inputs)


def assert_like_float64(function, plain, *inputs, tolerance=1e-5):
    """`function` in float32 is `plain` in float64, within float noise, and so are the gradients."""
    torch.manual_seed(5)
    wanted = plain(*(x.double() for x in inputs))
    weight = torch.randn(wanted.shape, dtype=torch.float64)
    out, grads = gradients(function, *inputs, weight=weight.float())
    wanted, wanted_grads = gradients(plain, *(x.double() for x in inputs), weight=weight)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.double(), wanted, rtol=tolerance, atol=tolerance)
    for grad, wanted_grad in zip(grads, wanted_grads, strict=True):
        torch.testing.assert_close(grad.double(), wanted_grad, rtol=10 * tolerance, atol=tolerance)


def plain_attention(qkv):
    return nn.functional.scaled_dot_product_attention(*qkv.unbind(0), is_causal=True)


def test_gelu_is_the_exact_one_from_end_to_end():
    x = torch.cat((torch.linspace(-12, 12, 4001), torch.tensor([0.0, -0.0, 1e-30, 100.0, -100.0])))
    assert_like_float64(gelu, nn.functional.gelu, x, tolerance=1e-6)


def test_gelu_hands_on_what_is_not_finite():
    assert torch.isnan(gelu(torch.tensor([math.nan]))).all()
    assert gelu(torch.tensor([math.inf])).item() == math.inf


def test_relu_squared():
    x = torch.linspace(-3, 3, 101)
    assert_like_float64(relu_squared, lambda x: torch.relu(x) ** 2, x)


@pytest.mark.parametrize("T", [1, 7, 64, 65, 128, 150])
def test_attention_in_blocks_is_the_whole_one(T):
    torch.manual_seed(T)
    assert_like_float64(causal_attention, plain_attention, torch.randn(3, 2, 2, T, 8))


def test_attention_holds_large_scores():
    torch.manual_seed(0)
    assert_like_float64(causal_attention, plain_attention, 10 * torch.randn(3, 1, 2, 70, 8), tolerance=1e-4)


def test_the_plain_path_of_attention_passes_gradcheck_with_and_without_dropout(monkeypatch):
    monkeypatch.setattr(fused, "QUERY_BLOCK", 3)
    torch.manual_seed(0)
    qkv = torch.randn(3, 1, 2, 5, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(causal_attention, (qkv,))
    assert torch.autograd.gradcheck(lambda x: causal_attention(x, 0.4, 7), (qkv,))


def test_attention_with_dropout_is_the_formula_with_its_own_mask():
    T, p, seed = 20, 0.3, 11
    torch.manual_seed(1)
    qkv = torch.randn(3, 2, 2, T, 8)
    kept = drop(torch.ones(4, T, T), p, seed).view(2, 2, T, T).double()  # one block: the mask of the call

    def plain(qkv):
        q, k, v = qkv.unbind(0)
        scores = (q @ k.mT) / math.sqrt(8) + torch.full((T, T), -math.inf, dtype=q.dtype).triu(1)
        return (torch.softmax(scores, -1) * kept) @ v

    assert_like_float64(lambda x: causal_attention(x, p, seed), plain, qkv)


@pytest.mark.parametrize("V", [3, 300])
def test_the_head_and_its_loss_are_cross_entropy_whatever_the_chunk(V, monkeypatch):
    monkeypatch.setattr(fused, "LOGITS_AT_ONCE", 4 * V)  # 4 rows at a time, and a last chunk of 2
    torch.manual_seed(2)
    hidden, table, targets = torch.randn(10, 6), torch.randn(V, 6), torch.randint(V, (10,))
    assert_like_float64(
        lambda h, w: tied_loss(h, w, targets), lambda h, w: nn.functional.cross_entropy(h @ w.T, targets), hidden, table
    )
    with torch.no_grad():
        plain = tied_loss(hidden, table, targets)
    torch.testing.assert_close(plain, nn.functional.cross_entropy(hidden @ table.T, targets))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stays_so(bad):
    hidden = torch.zeros(2, 3)
    hidden[0, 0] = bad
    loss = tied_loss(hidden.requires_grad_(), torch.ones(4, 3), torch.tensor([0, 1]))
    assert not math.isfinite(loss.item())


def test_dropout_keeps_the_mean_and_drops_its_share():
    x = torch.ones(1 << 20)
    for p in (0.1, 0.5, 0.9):
        out = drop(x, p, 3)
        n = x.numel()
        assert (out == 0).sum().item() == pytest.approx(n * p, abs=5 * math.sqrt(n * p * (1 - p)))
        kept = out[out != 0]
        assert kept.unique().numel() == 1 and kept[0].item() == pytest.approx(1 / (1 - p), rel=1e-6)


def test_dropout_of_neighbours_rows_and_seeds_is_independent():
    p, n = 0.3, 1 << 20
    masks = {seed: (drop(torch.ones(n), p, seed) == 0).double() - p for seed in (1, 2, 3, 1 << 20)}
    noise = 5 * p * (1 - p) / math.sqrt(n)
    first = masks[1]
    for other in (masks[2], masks[3], masks[1 << 20], first.roll(1), first.roll(8), first.roll(128), first.roll(4096)):
        assert abs((first * other).mean().item()) < noise


def test_dropout_goes_back_through_the_same_mask():
    x = torch.randn(1000, requires_grad=True)
    out = dropout(x, 0.4, 9)
    (grad,) = torch.autograd.grad(out.sum(), x)
    torch.testing.assert_close(out, x * grad)
    assert torch.equal(dropout(x, 0.4, 9), out) and not torch.equal(dropout(x, 0.4, 10), out)
    assert dropout(x, 0.4, None) is x and dropout(x, 0.0, 9) is x


def test_dropout_without_kernels_has_the_same_statistics_and_is_repeatable():
    x = torch.ones(100_000, dtype=torch.float64)
    out = drop(x, 0.25, 4)
    assert torch.equal(out, drop(x, 0.25, 4))
    assert (out == 0).double().mean().item() == pytest.approx(0.25, abs=0.007)
    assert out.mean().item() == pytest.approx(1.0, abs=0.02)


def test_attention_in_bfloat16_is_close():
    torch.manual_seed(3)
    qkv = torch.randn(3, 2, 2, 70, 8)
    out = causal_attention(qkv.bfloat16())
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), plain_attention(qkv), rtol=0.05, atol=0.05)


def test_rms_norm():
    torch.manual_seed(4)
    x = torch.randn(5, 3, 17) * torch.tensor([1e-3, 1.0, 1e3])[:, None]
    assert_like_float64(rms_norm, lambda x: nn.functional.rms_norm(x, (17,), eps=1e-5), x)


def test_rotation_is_multiplication_by_a_complex_number():
    T, D = 9, 6
    torch.manual_seed(5)

    def plain(x):
        angles = torch.arange(T)[:, None] * 10_000.0 ** (-2 * torch.arange(D // 2) / D)
        turned = torch.complex(x[..., : D // 2], x[..., D // 2 :]) * torch.exp(1j * angles)
        return torch.cat((turned.real, turned.imag), -1)

    assert_like_float64(rotate, plain, torch.randn(2, 4, T, D))
    assert torch.autograd.gradcheck(rotate, (torch.randn(1, 3, 4, dtype=torch.float64, requires_grad=True),))


def test_products_of_rotated_vectors_know_distances_only():
    torch.manual_seed(6)
    query, key = (rotate(torch.randn(8).expand(30, 8)) for _ in range(2))
    products = query @ key.T
    for distance in (0, 3, 11):
        diagonal = products.diagonal(-distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=1e-4, atol=1e-4)


def test_without_a_gradient_the_results_are_the_same_within_float_noise():
    torch.manual_seed(7)
    qkv, x = torch.randn(3, 2, 2, 70, 8), torch.randn(1000)
    with torch.inference_mode():
        attended, bent = causal_attention(qkv), gelu(x)
    torch.testing.assert_close(attended.clone(), causal_attention(qkv), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(bent.clone(), gelu(x), rtol=1e-5, atol=1e-6)
