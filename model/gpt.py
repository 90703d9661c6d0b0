"""The mini-GPT: ids -> logits. GPT-2's shape; it knows torch and its own configuration, nothing else.

Shapes in the comments: B batch, T time (tokens), C channels (embedding_dim), H heads, D head size (C / H),
V vocabulary.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn

from data.config import require

FLOPS_FORMULA = (
    "training FLOPs per token = 6 * N + 12 * L * C * T (PaLM, appendix B, after Kaplan et al. 2020): "
    "N = weights that take part in a matrix product, that is the attention and MLP matrices of all layers and the "
    "tied output head (V * C) once; no biases, no norms, no table look-ups; L layers, C channels, T block size, "
    "the attention term without a discount for the causal mask"
)
INIT_STD = 0.02


@dataclass(frozen=True)
class MiniGPTConfig:
    """Size of the model. `vocab_size` comes from the tokenizer, never from a file."""

    vocab_size: int
    """Number of ids, V."""
    block_size: int = 128
    """Longest context, in tokens, T."""
    embedding_dim: int = 128
    """Channels, C."""
    num_heads: int = 4
    """Attention heads, H; they share the channels evenly."""
    num_layers: int = 4
    """Transformer blocks, L."""
    expansion_factor: int = 4
    """Width of the MLP's hidden layer, as a multiple of embedding_dim."""
    dropout: float = 0.1
    """Probability of dropping an activation while training, in [0, 1)."""

    def __post_init__(self) -> None:
        for name in (
            "vocab_size",
            "block_size",
            "embedding_dim",
            "num_heads",
            "num_layers",
            "expansion_factor",
        ):
            require(getattr(self, name) >= 1, f"{name} must be at least 1, found {getattr(self, name)}")
        require(0.0 <= self.dropout < 1.0, f"dropout must be in [0, 1), found {self.dropout}")
        require(
            self.embedding_dim % self.num_heads == 0,
            f"embedding_dim {self.embedding_dim} is not divisible by num_heads {self.num_heads}",
        )


class CausalSelfAttention(nn.Module):
    """Multi-head attention in which a position sees itself and what stands before it."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.qkv = nn.Linear(config.embedding_dim, 3 * config.embedding_dim)
        self.projection = nn.Linear(config.embedding_dim, config.embedding_dim)
        self.dropout = config.dropout
        self.residual_dropout = nn.Dropout(config.dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, C) -> (B, T, C)."""
        B, T, C = x.shape
        heads = (B, T, self.num_heads, C // self.num_heads)
        queries, keys, values = (part.view(heads).transpose(1, 2) for part in self.qkv(x).split(C, dim=2))
        mixed = nn.functional.scaled_dot_product_attention(  # (B, H, T, D)
            queries, keys, values, is_causal=True, dropout_p=self.dropout if self.training else 0.0
        )
        out: torch.Tensor = self.residual_dropout(self.projection(mixed.transpose(1, 2).reshape(B, T, C)))
        return out


class MLP(nn.Module):
    """Position-wise: widen, GELU, narrow."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        hidden = config.expansion_factor * config.embedding_dim
        self.widen = nn.Linear(config.embedding_dim, hidden)
        self.projection = nn.Linear(hidden, config.embedding_dim)
        self.residual_dropout = nn.Dropout(config.dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, C) -> (B, T, C)."""
        out: torch.Tensor = self.residual_dropout(self.projection(nn.functional.gelu(self.widen(x))))
        return out


class Block(nn.Module):
    """One pre-norm layer: attention, then the MLP, each added to the residual stream."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.embedding_dim)
        self.attention = CausalSelfAttention(config)
        self.mlp_norm = nn.LayerNorm(config.embedding_dim)
        self.mlp = MLP(config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, C) -> (B, T, C)."""
        x = x + self.attention(self.attention_norm(x))
        out: torch.Tensor = x + self.mlp(self.mlp_norm(x))
        return out


class MiniGPT(nn.Module):
    """A small GPT-2: learned positions, pre-norm blocks, and an output head tied to the token table."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocab_size, config.embedding_dim)
        self.position_embedding = nn.Embedding(config.block_size, config.embedding_dim)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.final_norm = nn.LayerNorm(config.embedding_dim)
        self._initialize()

    def _initialize(self) -> None:
        """GPT-2's: normal(0, 0.02), zero biases; what is added to the residual stream starts smaller.

        Each layer adds twice to the stream; dividing by sqrt(2 L) keeps its variance independent of depth.
        """
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                is_residual = name.endswith(".projection")
                scale = 1.0 / math.sqrt(2 * self.config.num_layers) if is_residual else 1.0
                nn.init.normal_(module.weight, mean=0.0, std=INIT_STD * scale)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, mean=0.0, std=INIT_STD)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (B, T, V) of the token after each position of `ids` (B, T), T at most block_size."""
        return self.logits(self.hidden(ids))

    def hidden(self, ids: torch.Tensor) -> torch.Tensor:
        """The last layer's normalised output (B, T, C) for `ids` (B, T)."""
        T = ids.shape[1]
        if self.config.block_size < T:
            raise ValueError(f"{T} tokens do not fit into the block of {self.config.block_size}")
        x = self.token_embedding(ids) + self.position_embedding.weight[:T]  # (B, T, C)
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        out: torch.Tensor = self.final_norm(x)
        return out

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """(..., C) -> (..., V), by the tied token table. Evaluation calls it on the needed positions only."""
        return nn.functional.linear(hidden, self.token_embedding.weight)

    def num_parameters(self) -> int:
        """All weights; the tied table counts once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def num_embedding_parameters(self) -> int:
        """Weights of the token and the position table."""
        return self.token_embedding.weight.numel() + self.position_embedding.weight.numel()

    def num_matrix_parameters(self) -> int:
        """N of FLOPS_FORMULA: weights of all linear layers, and of the tied head once."""
        linear = sum(module.weight.numel() for module in self.modules() if isinstance(module, nn.Linear))
        return linear + self.token_embedding.weight.numel()

    def flops_per_token(self) -> int:
        """Floating-point operations of one training step per token, by FLOPS_FORMULA."""
        config = self.config
        attention = 12 * config.num_layers * config.embedding_dim * config.block_size
        return 6 * self.num_matrix_parameters() + attention
