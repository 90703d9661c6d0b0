"""The model as a specification: model/gpt.py without its kernels, in torch's own operations, and without dropout.

It takes weights under the names that MiniGPT gives them and computes what the formulas say, one line for each. The
tests hold MiniGPT's loss and gradients against it; nothing else uses it.

Shapes in the comments: B batch, T time (tokens), C channels, H heads, D head size (C / H), V vocabulary.
"""

import math
from collections.abc import Mapping

import torch
from torch.nn import functional

from model.settings import MiniGPTConfig

Weights = Mapping[str, torch.Tensor]
EPSILON = 1e-5
"""Added under the root of every norm."""
ROPE_BASE = 10_000.0


def loss(weights: Weights, config: MiniGPTConfig, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean nats per token of `targets` (B, T) after `ids` (B, T)."""
    return functional.cross_entropy(logits(weights, config, ids).flatten(0, 1), targets.flatten())


def logits(weights: Weights, config: MiniGPTConfig, ids: torch.Tensor) -> torch.Tensor:
    """Logits (B, T, V) of the token after each position of `ids` (B, T)."""
    T = ids.shape[1]
    table = weights["token_embedding.weight"]  # (V, C)
    x = table[ids]  # (B, T, C)
    if not config.rope:
        x = x + weights["position_embedding.weight"][:T]
    for number in range(config.num_layers):
        name = f"blocks.{number}"
        x = x + attention(weights, config, f"{name}.attention", norm(weights, config, f"{name}.attention_norm", x))
        x = x + mlp(weights, config, f"{name}.mlp", norm(weights, config, f"{name}.mlp_norm", x))
    return norm(weights, config, "final_norm", x) @ table.T  # the output head is the token table


def linear(weights: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    """(..., m) -> (..., n), by a matrix (n, m) and a bias (n,)."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def norm(weights: Weights, config: MiniGPTConfig, name: str, x: torch.Tensor) -> torch.Tensor:
    """(..., C) -> (..., C): LayerNorm, or a division by the root mean square, without weights."""
    if config.rms_norm:
        return divided_by_rms(x)
    centred = x - x.mean(-1, keepdim=True)
    return divided_by_rms(centred) * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def divided_by_rms(x: torch.Tensor) -> torch.Tensor:
    """x / sqrt(mean(x^2) + EPSILON) over the last axis."""
    return x / (x.square().mean(-1, keepdim=True) + EPSILON).sqrt()


def attention(weights: Weights, config: MiniGPTConfig, name: str, x: torch.Tensor) -> torch.Tensor:
    """(B, T, C) -> (B, T, C): softmax(Q K^T / sqrt(D)) V in each head; a position sees itself and what is before it."""
    B, T, C = x.shape
    H = config.num_heads
    D = C // H
    packed = linear(weights, f"{name}.qkv", x).view(B, T, 3, H, D)
    queries, keys, values = packed.permute(2, 0, 3, 1, 4)  # each (B, H, T, D)
    if config.qk_norm:
        queries, keys = divided_by_rms(queries), divided_by_rms(keys)
    if config.rope:
        queries, keys = rotated(queries), rotated(keys)
    scores = queries @ keys.mT / math.sqrt(D)  # (B, H, T, T)
    is_later = torch.ones(T, T, dtype=torch.bool).triu(diagonal=1)
    probabilities = scores.masked_fill(is_later, -math.inf).softmax(-1)
    mixed = (probabilities @ values).transpose(1, 2).reshape(B, T, C)
    return linear(weights, f"{name}.projection", mixed)


def rotated(x: torch.Tensor) -> torch.Tensor:
    """(B, H, T, D) -> (B, H, T, D): channels d and d + D/2 at time t are turned by t * ROPE_BASE^(-2d/D)."""
    T, D = x.shape[-2:]
    half = D // 2
    frequencies = ROPE_BASE ** (-2.0 * torch.arange(half, dtype=x.dtype) / D)
    angles = torch.arange(T, dtype=x.dtype)[:, None] * frequencies  # (T, D / 2)
    turns = torch.polar(torch.ones_like(angles), angles)
    turned = torch.complex(x[..., :half].contiguous(), x[..., half:].contiguous()) * turns
    return torch.cat((turned.real, turned.imag), dim=-1)


def mlp(weights: Weights, config: MiniGPTConfig, name: str, x: torch.Tensor) -> torch.Tensor:
    """(B, T, C) -> (B, T, C): widen, GELU or ReLU squared, narrow."""
    hidden = linear(weights, f"{name}.widen", x)
    bent = functional.relu(hidden).square() if config.relu_squared else functional.gelu(hidden)
    return linear(weights, f"{name}.projection", bent)
