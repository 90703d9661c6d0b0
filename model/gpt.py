"""The mini-GPT: ids -> logits. GPT-2's shape, or a modern one; it knows torch and its own configuration, nothing else.

Shapes in the comments: B batch, T time (tokens), C channels (embedding_dim), H heads, D head size (C / H),
V vocabulary.
"""

import math

import numpy as np
import torch
from torch import nn

from model.fused.ops import (
    NORM_EPSILON,
    causal_attention,
    dropout,
    gelu,
    relu_squared,
    rms_norm,
    rotate,
    tied_loss,
)
from model.settings import MiniGPTConfig

FLOPS_FORMULA = (
    "training FLOPs per token = 6 * N + 12 * L * C * T (PaLM, appendix B, after Kaplan et al. 2020): "
    "N = weights that take part in a matrix product, that is the attention and MLP matrices of all layers and the "
    "tied output head (V * C) once; no biases, no norms, no table look-ups; L layers, C channels, T block size, "
    "the attention term without a discount for the causal mask"
)
INIT_STD = 0.02


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + epsilon), without weights."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., C) -> (..., C)."""
        return rms_norm(x)


def make_norm(config: MiniGPTConfig) -> nn.Module:
    """The norm of the preset, over C."""
    return RMSNorm() if config.rms_norm else nn.LayerNorm(config.embedding_dim, eps=NORM_EPSILON)


class CausalSelfAttention(nn.Module):
    """Multi-head attention in which a position sees itself and what comes before it."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.config = config
        self.qkv = nn.Linear(config.embedding_dim, 3 * config.embedding_dim)
        self.projection = nn.Linear(config.embedding_dim, config.embedding_dim)

    def forward(self, x: torch.Tensor, seed: int | None) -> torch.Tensor:
        """(B, T, C) -> (B, T, C)."""
        B, T, C = x.shape
        H = self.config.num_heads
        packed = self.qkv(x).view(B, T, 3, H, C // H).permute(2, 0, 3, 1, 4).contiguous()  # (3, B, H, T, D)
        if self.config.rope or self.config.qk_norm:
            queries_keys, values = packed.split((2, 1))
            if self.config.qk_norm:
                queries_keys = rms_norm(queries_keys)
            if self.config.rope:
                queries_keys = rotate(queries_keys)
            packed = torch.cat((queries_keys, values))
        mixed = causal_attention(packed, self.config.dropout, seed)  # (B, H, T, D)
        out: torch.Tensor = self.projection(mixed.transpose(1, 2).reshape(B, T, C))
        return out


class MLP(nn.Module):
    """Position-wise: widen, bend, narrow."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        hidden = config.expansion_factor * config.embedding_dim
        self.activation = relu_squared if config.relu_squared else gelu
        self.widen = nn.Linear(config.embedding_dim, hidden)
        self.projection = nn.Linear(hidden, config.embedding_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, C) -> (B, T, C)."""
        out: torch.Tensor = self.projection(self.activation(self.widen(x)))
        return out


class Block(nn.Module):
    """One pre-norm layer: attention, then the MLP, each added to the residual stream."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.attention_norm = make_norm(config)
        self.attention = CausalSelfAttention(config)
        self.mlp_norm = make_norm(config)
        self.mlp = MLP(config)

    def forward(self, x: torch.Tensor, seeds: list[int | None]) -> torch.Tensor:
        """(B, T, C) -> (B, T, C); three seeds of dropout."""
        x = x + dropout(self.attention(self.attention_norm(x), seeds[0]), self.dropout, seeds[1])
        out: torch.Tensor = x + dropout(self.mlp(self.mlp_norm(x)), self.dropout, seeds[2])
        return out


class MiniGPT(nn.Module):
    """A small GPT: pre-norm blocks, and an output head tied to the token table."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocab_size, config.embedding_dim)
        self.position_embedding = None if config.rope else nn.Embedding(config.block_size, config.embedding_dim)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.final_norm = make_norm(config)
        self._initialize()

    def _initialize(self) -> None:
        """GPT-2's: normal(0, 0.02), zero biases; what is added to the residual stream starts smaller.

        Each layer adds twice to the stream; dividing by sqrt(2 L) keeps its variance independent of depth. With
        `zero_init` it starts at zero: every layer begins as the identity.
        """
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                is_residual = name.endswith(".projection")
                scale = 1.0 / math.sqrt(2 * self.config.num_layers) if is_residual else 1.0
                nn.init.normal_(module.weight, mean=0.0, std=INIT_STD * scale)
                nn.init.zeros_(module.bias)
                if is_residual and self.config.zero_init:
                    nn.init.zeros_(module.weight)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, mean=0.0, std=INIT_STD)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (B, T, V) of the token after each position of `ids` (B, T), T at most block_size."""
        return self.logits(self.hidden(ids))

    def loss(self, ids: torch.Tensor, targets: torch.Tensor, dropout_seed: int | None = None) -> torch.Tensor:
        """Mean nats per token of `targets` (B, T) after `ids` (B, T)."""
        hidden = self.hidden(ids, dropout_seed)
        return tied_loss(hidden.flatten(0, 1), self.token_embedding.weight, targets.flatten())

    def hidden(self, ids: torch.Tensor, dropout_seed: int | None = None) -> torch.Tensor:
        """The last layer's normalised output (B, T, C) for `ids` (B, T).

        While training, dropout is decided by `dropout_seed`; without one, by a number from torch's generator.
        """
        T = ids.shape[1]
        self.require_fits(T)
        seeds = self.seeds_of(dropout_seed)
        x = self.token_embedding(ids)  # (B, T, C)
        if self.position_embedding is not None:
            x = x + self.position_embedding.weight[:T]
        x = dropout(x, self.config.dropout, seeds[0])
        for number, block in enumerate(self.blocks):
            x = block(x, seeds[1 + 3 * number :][:3])
        out: torch.Tensor = self.final_norm(x)
        return out

    def require_fits(self, num_tokens: int) -> None:
        """Raise ValueError for a window of more tokens than the block holds."""
        if self.config.block_size < num_tokens:
            raise ValueError(f"{num_tokens} tokens do not fit into the block of {self.config.block_size}")

    def seeds_of(self, dropout_seed: int | None) -> list[int | None]:
        """One 32-bit seed for each place that drops; None where nothing is dropped."""
        num_places = 1 + 3 * self.config.num_layers
        if not self.training or self.config.dropout == 0.0:
            return [None] * num_places
        if dropout_seed is None:
            dropout_seed = int(torch.randint(1 << 31, ()))
        drawn = np.random.SeedSequence(dropout_seed).generate_state(num_places)
        return [int(seed) for seed in drawn]

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """(..., C) -> (..., V), by the tied token table. Evaluation calls it on the needed positions only."""
        return nn.functional.linear(hidden, self.token_embedding.weight)

    def num_parameters(self) -> int:
        """All weights; the tied table counts once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def num_embedding_parameters(self) -> int:
        """Weights of the token and, if there is one, the position table."""
        return sum(module.weight.numel() for module in self.modules() if isinstance(module, nn.Embedding))

    def num_matrix_parameters(self) -> int:
        """N of FLOPS_FORMULA: weights of all linear layers, and of the tied head once."""
        linear = sum(module.weight.numel() for module in self.modules() if isinstance(module, nn.Linear))
        return linear + self.token_embedding.weight.numel()

    def flops_per_token(self) -> int:
        """Floating-point operations of one training step per token, by FLOPS_FORMULA."""
        config = self.config
        attention = 12 * config.num_layers * config.embedding_dim * config.block_size
        return 6 * self.num_matrix_parameters() + attention
