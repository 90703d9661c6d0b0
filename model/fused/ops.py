"""The pieces of a training step that autograd would cut into many passes: each with its gradient written out.

On the CPU in float32 they use the kernels of `kernels`; everywhere else (a GPU, bfloat16, float64) the plain
formula of torch, which is also what the tests hold the kernels to.

Shapes: B batch, T time, C channels, H heads, D head size, R rows (B * T), V vocabulary.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable

from model.fused import kernels

QUERY_BLOCK = 64  # queries whose scores are computed at once: more means more masked scores, fewer means more calls
LOGITS_AT_ONCE = 1 << 20  # of one product, so that they stay in the cache until they are used up
_SEEDS = 1 << 32
NORM_EPSILON = 1e-5
ROPE_BASE = 10_000.0


def has_kernels(x: torch.Tensor) -> bool:
    """Whether the kernels apply to `x`."""
    return x.device.type == "cpu" and x.dtype == torch.float32


def drop(x: torch.Tensor, probability: float, seed: int) -> torch.Tensor:
    """`x` after dropout, without a gradient; the same seed drops the same entries again.

    On the CPU in float32 an entry is dropped with probability round(p * 2**32) / 2**32, and what is kept is divided
    by exactly what remains; elsewhere torch's own generator decides, seeded for this call.
    """
    if has_kernels(x):
        threshold = min(round(probability * _SEEDS), _SEEDS - 1)
        x = x.contiguous()
        out = torch.empty_like(x)
        kept_scale = np.float32(_SEEDS / (_SEEDS - threshold))
        number, limit = np.uint32(seed % _SEEDS), np.uint32(threshold)
        kernels.drop(x.detach().view(-1).numpy(), out.view(-1).numpy(), number, limit, kept_scale)
        return out
    generator = torch.Generator(device=x.device).manual_seed(seed)
    kept = torch.rand(x.shape, device=x.device, generator=generator) >= probability
    return x * kept / (1.0 - probability)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, probability: float, seed: int) -> torch.Tensor:
        ctx.how = (probability, seed)
        return drop(x, probability, seed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return drop(grad, *ctx.how), None, None


def dropout(x: torch.Tensor, probability: float, seed: int | None) -> torch.Tensor:
    """Dropout of `x`; none where `seed` is None or the probability 0."""
    if seed is None or probability == 0.0:
        return x
    out: torch.Tensor = _Dropout.apply(x, probability, seed)  # type: ignore[no-untyped-call]
    return out


class _Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out, slope = torch.empty_like(x), torch.empty_like(x)
        kernels.gelu(x.detach().view(-1).numpy(), out.view(-1).numpy(), slope.view(-1).numpy())
        ctx.save_for_backward(slope)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (slope,) = ctx.saved_tensors
        product: torch.Tensor = grad * slope
        return product


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Exact GELU. Without a gradient torch's own is as good, and shares itself out over all threads."""
    if has_kernels(x) and torch.is_grad_enabled():
        out: torch.Tensor = _Gelu.apply(x)  # type: ignore[no-untyped-call]
        return out
    return nn.functional.gelu(x)


class _ReluSquared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        positive = torch.relu(x)
        ctx.save_for_backward(positive)
        return positive.square()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (positive,) = ctx.saved_tensors
        product: torch.Tensor = (grad * positive).mul_(2.0)
        return product


def relu_squared(x: torch.Tensor) -> torch.Tensor:
    """max(x, 0) squared (So et al. 2021, Primer)."""
    out: torch.Tensor = _ReluSquared.apply(x)  # type: ignore[no-untyped-call]
    return out


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        rows = x.contiguous().view(-1, x.shape[-1])
        out, inverse = torch.empty_like(rows), rows.new_empty(len(rows))
        epsilon = np.float32(NORM_EPSILON)
        kernels.rms_norm(rows.detach().numpy(), epsilon, out.numpy(), inverse.numpy())
        ctx.save_for_backward(out, inverse)
        return out.view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        normed, inverse = ctx.saved_tensors
        rows, out = grad.contiguous().view(normed.shape), torch.empty_like(normed)
        kernels.rms_norm_backward(normed.numpy(), inverse.numpy(), rows.numpy(), out.numpy())
        return out.view(grad.shape)


def rms_norm(x: torch.Tensor) -> torch.Tensor:
    """`x` divided by the root mean square of its last dimension."""
    if has_kernels(x):
        out: torch.Tensor = _RMSNorm.apply(x)  # type: ignore[no-untyped-call]
        return out
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + NORM_EPSILON)


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(cosine, sine)
        return _turn(x, cosine, sine)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        cosine, sine = ctx.saved_tensors
        return _turn(grad, cosine, -sine), None, None  # turned back


def _turn(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    if has_kernels(x):
        x = x.contiguous()
        out, flat = torch.empty_like(x), (-1, *x.shape[-2:])
        kernels.rotate(x.detach().view(flat).numpy(), cosine.numpy(), sine.numpy(), out.view(flat).numpy())
        return out
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, first * sine + second * cosine), dim=-1)


def rotate(x: torch.Tensor) -> torch.Tensor:
    """Turn each pair (d, d + D/2) of `x` (..., T, D) by t * ROPE_BASE**(-2d/D): products then know distances only."""
    out: torch.Tensor = _Rotate.apply(x, *turns(x.shape[-2], x.shape[-1], x))  # type: ignore[no-untyped-call]
    return out


def turns(T: int, D: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine (T, D / 2) of the angles of `rotate`, of the type and on the device of `like`."""
    frequencies = ROPE_BASE ** -torch.arange(0.0, 1.0, 2.0 / D, device=like.device)
    angles = torch.outer(torch.arange(T, device=like.device, dtype=torch.float32), frequencies)
    return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


class _CausalAttention(torch.autograd.Function):
    """softmax(Q K^T / sqrt(D)) V by explicit batched products, a block of queries at a time.

    A block sees the keys up to its own end, so of the masked half of the scores most is never computed. With P the
    probabilities and P' those after dropout, the gradients are dV = P'^T dO; dP' = dO V^T; dS = P * (mask * dP' -
    dO . O); dQ = dS K / sqrt(D); dK = dS^T Q / sqrt(D): the row sum of P' * dP' is dO . O (FlashAttention, eq. 4).
    """

    @staticmethod
    def forward(ctx: Any, qkv: torch.Tensor, probability: float, seed: int | None) -> torch.Tensor:
        _, B, H, T, D = qkv.shape
        queries, keys, values = qkv.view(3, B * H, T, D).unbind(0)
        blocks, saved = [], []
        for block, begin in enumerate(range(0, T, QUERY_BLOCK)):
            end = min(begin + QUERY_BLOCK, T)
            probabilities = causal_softmax(torch.bmm(queries[:, begin:end], keys[:, :end].mT), begin, D**-0.5)
            saved.append(probabilities)
            mixing = probabilities if seed is None else drop(probabilities, probability, seed + block)
            blocks.append(torch.bmm(mixing, values[:, :end]))
        out = torch.cat(blocks, dim=1)
        ctx.save_for_backward(qkv, out, *saved)
        ctx.how = (probability, seed)
        return out.view(B, H, T, D)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        qkv, out, *saved = ctx.saved_tensors
        probability, seed = ctx.how
        _, B, H, T, D = qkv.shape
        queries, keys, values = qkv.view(3, B * H, T, D).unbind(0)
        grad = grad.reshape(B * H, T, D)
        inner = (grad * out).sum(dim=-1)  # (B * H, T)
        grad_qkv = torch.empty_like(qkv)
        grad_queries, grad_keys, grad_values = grad_qkv.view(3, B * H, T, D).unbind(0)
        for block, begin in reversed(list(enumerate(range(0, T, QUERY_BLOCK)))):  # the last one reaches all keys
            end = min(begin + QUERY_BLOCK, T)
            probabilities, grad_block = saved[block], grad[:, begin:end]
            mixing, grad_scores = probabilities, torch.bmm(grad_block, values[:, :end].mT)
            if seed is not None:
                mixing = drop(probabilities, probability, seed + block)
                grad_scores = drop(grad_scores, probability, seed + block)
            _score_grad(grad_scores, probabilities, inner[:, begin:end], D**-0.5)
            # A product into a part of a tensor would be split into one for each head: products are made new.
            grad_queries[:, begin:end] = torch.bmm(grad_scores, keys[:, :end])
            for whole, part in (
                (grad_values, torch.bmm(mixing.mT, grad_block)),
                (grad_keys, torch.bmm(grad_scores.mT, queries[:, begin:end])),
            ):
                if end == T:
                    whole.copy_(part)
                else:
                    whole[:, :end] += part
        return grad_qkv, None, None


def causal_softmax(scores: torch.Tensor, begin: int, scale: float) -> torch.Tensor:
    """softmax(scale * scores), (N, Q, K), maybe in place: query i is number begin + i and sees no later key."""
    if has_kernels(scores):
        kernels.causal_softmax(scores.numpy(), begin, np.float32(scale))
        return scores
    mask = scores.new_full(scores.shape[1:], -math.inf).triu_(begin + 1)
    return torch.softmax(torch.add(mask, scores, alpha=scale), dim=-1)


def _score_grad(grad: torch.Tensor, probabilities: torch.Tensor, inner: torch.Tensor, scale: float) -> None:
    """The gradient of the probabilities `grad` (N, Q, K) becomes that of the scores, in place; `inner` (N, Q)."""
    if has_kernels(grad):
        rows = (grad.view(-1, grad.shape[-1]).numpy(), probabilities.view(-1, grad.shape[-1]).numpy())
        kernels.score_grad(*rows, inner.reshape(-1).numpy(), np.float32(scale))
    else:
        grad.sub_(inner.unsqueeze(-1)).mul_(probabilities).mul_(scale)


def causal_attention(qkv: torch.Tensor, probability: float = 0.0, seed: int | None = None) -> torch.Tensor:
    """Attention of packed queries, keys and values (3, B, H, T, D), contiguous, into (B, H, T, D).

    Dropout acts on the probabilities, unless `seed` is None. Without dropout, torch's own kernel serves on a GPU, and
    where no gradient is wanted: on a CPU only its way back is slow.
    """
    seed = None if probability == 0.0 else seed
    if seed is None and (qkv.device.type == "cuda" or not torch.is_grad_enabled()):
        queries, keys, values = qkv.unbind(0)
        return nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    out: torch.Tensor = _CausalAttention.apply(qkv, probability, seed)  # type: ignore[no-untyped-call]
    return out


class _TiedLoss(torch.autograd.Function):
    """Head and loss in one: some rows at a time, logits become their own gradient and are used up at once."""

    @staticmethod
    def forward(ctx: Any, hidden: torch.Tensor, table: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        num_rows = len(hidden)
        rows = max(1, LOGITS_AT_ONCE // len(table))
        losses = hidden.new_empty(num_rows)
        grad_hidden, grad_table = torch.empty_like(hidden), torch.zeros_like(table)
        for begin in range(0, num_rows, rows):
            part = slice(begin, begin + rows)
            logits = hidden[part] @ table.T  # (rows, V)
            scale = np.float32(1.0 / num_rows)
            kernels.cross_entropy(logits.numpy(), targets[part].numpy(), scale, losses[part].numpy())
            torch.mm(logits, table, out=grad_hidden[part])
            grad_table.addmm_(logits.T, hidden[part])
        ctx.save_for_backward(grad_hidden, grad_table)
        return losses.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        grad_hidden, grad_table = ctx.saved_tensors
        return grad_hidden * grad, grad_table * grad, None


def tied_loss(hidden: torch.Tensor, table: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy in nats of `targets` (R,) under logits hidden (R, C) @ table (V, C) transposed."""
    if has_kernels(hidden) and torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu"):
        loss: torch.Tensor = _TiedLoss.apply(hidden.contiguous(), table, targets.contiguous())  # type: ignore[no-untyped-call]
        return loss
    return nn.functional.cross_entropy(nn.functional.linear(hidden, table).float(), targets)
