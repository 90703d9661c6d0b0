"""A model of ours as one of transformers: the same function, in a layout that the library has.

Three layouts hold all that the presets make:

- GPT-2: learned positions, LayerNorm, GELU or ReLU squared. The tensors are the same ones, transposed.
- Persimmon: rotary positions, LayerNorm, GELU or ReLU squared. The tensors are the same ones.
- Persimmon twice as wide: what has queries and keys divided by their root mean square (`qk_norm`), or `rms_norm`.
  Persimmon normalises with LayerNorm, which subtracts a mean first. Of (q, -q) the mean is zero and the variance is the
  mean square of q, so that its LayerNorm is (q, -q) divided by the root mean square of q, exactly. Each vector is
  therefore kept twice, the second time with another sign where a mean has to vanish; the second half is multiplied by
  zero wherever it is read. So the function is the same, with up to four times the weights, many of them zero.

Shapes: V vocabulary, T block size, C channels, H heads, D head size (C / H), F width of the MLP, L layers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from data.errors import ConfigError
from model.fused.ops import NORM_EPSILON, ROPE_BASE
from model.gpt import MiniGPT
from model.settings import MiniGPTConfig

Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Converted:
    """A model for transformers."""

    architecture: str
    """The class, such as GPT2LMHeadModel."""
    config: dict[str, Any]
    """The settings that config.json holds besides those of the library."""
    weights: dict[str, torch.Tensor]
    """Under the names of that class, the tied head left out."""
    is_widened: bool
    """Whether every vector is kept twice."""


def convert(model: MiniGPT) -> Converted:
    """`model` in the smallest layout that computes exactly its function. Raises ConfigError where there is none."""
    config = model.config
    with torch.inference_mode():
        weights = {name: value.detach().cpu().float().clone() for name, value in model.state_dict().items()}
    if config.rope:
        return _persimmon(config, weights)
    unfit = [name for name in ("qk_norm", "rms_norm") if getattr(config, name)]
    if unfit:
        raise ConfigError(
            f"no architecture of transformers has {unfit[0]} with learned positions; export with FORMAT=safetensors, "
            "or train with rope"
        )
    return _gpt2(config, weights)


def _shared(config: MiniGPTConfig) -> dict[str, Any]:
    """Settings that both layouts have. No token begins or ends a document, so none may be set by default."""
    return {
        "vocab_size": config.vocab_size,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }


def _gpt2(config: MiniGPTConfig, weights: Tensors) -> Converted:
    """GPT-2's matrices are (in, out), ours (out, in)."""
    named = {
        "transformer.wte.weight": weights["token_embedding.weight"],
        "transformer.wpe.weight": weights["position_embedding.weight"],
    }
    for number in range(config.num_layers):
        ours, theirs = f"blocks.{number}", f"transformer.h.{number}"
        for a, b in (("attention_norm", "ln_1"), ("mlp_norm", "ln_2")):
            named |= _both(weights, f"{ours}.{a}", f"{theirs}.{b}")
        for a, b in (
            ("attention.qkv", "attn.c_attn"),
            ("attention.projection", "attn.c_proj"),
            ("mlp.widen", "mlp.c_fc"),
            ("mlp.projection", "mlp.c_proj"),
        ):
            named[f"{theirs}.{b}.weight"] = weights[f"{ours}.{a}.weight"].T.contiguous()
            named[f"{theirs}.{b}.bias"] = weights[f"{ours}.{a}.bias"]
    named |= _both(weights, "final_norm", "transformer.ln_f")
    settings = _shared(config) | {
        "n_positions": config.block_size,
        "n_embd": config.embedding_dim,
        "n_layer": config.num_layers,
        "n_head": config.num_heads,
        "n_inner": config.expansion_factor * config.embedding_dim,
        "activation_function": "relu2" if config.relu_squared else "gelu",
        "layer_norm_epsilon": NORM_EPSILON,
        **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), config.dropout),
    }
    return Converted("GPT2LMHeadModel", settings, named, is_widened=False)


def _both(weights: Tensors, ours: str, theirs: str) -> dict[str, torch.Tensor]:
    return {f"{theirs}.{part}": weights[f"{ours}.{part}"] for part in ("weight", "bias")}


def _persimmon(config: MiniGPTConfig, weights: Tensors) -> Converted:
    """Persimmon's layout, twice as wide where a LayerNorm has to stand for a division by the root mean square."""
    wide = _Widened(config) if config.qk_norm or config.rms_norm else _Plain(config)
    named = {"model.embed_tokens.weight": wide.written(weights["token_embedding.weight"].T).T.contiguous()}
    for number in range(config.num_layers):
        ours, theirs = f"blocks.{number}", f"model.layers.{number}"
        attention, mlp = f"{theirs}.self_attn", f"{theirs}.mlp"
        for a, b in (("attention_norm", "input_layernorm"), ("mlp_norm", "post_attention_layernorm")):
            named |= wide.norm(weights, f"{ours}.{a}", f"{theirs}.{b}")
        qkv, bias = weights[f"{ours}.attention.qkv.weight"], weights[f"{ours}.attention.qkv.bias"]
        named[f"{attention}.query_key_value.weight"] = wide.read(wide.heads(qkv))
        named[f"{attention}.query_key_value.bias"] = wide.heads(bias[:, None])[:, 0]
        mix, mix_bias = weights[f"{ours}.attention.projection.weight"], weights[f"{ours}.attention.projection.bias"]
        named[f"{attention}.dense.weight"] = wide.written(wide.mixed(mix))
        named[f"{attention}.dense.bias"] = wide.written(mix_bias[:, None])[:, 0]
        if config.qk_norm:
            for which in ("q_layernorm", "k_layernorm"):
                named[f"{attention}.{which}.weight"], named[f"{attention}.{which}.bias"] = wide.head_norm()
        named[f"{mlp}.dense_h_to_4h.weight"] = wide.read(weights[f"{ours}.mlp.widen.weight"])
        named[f"{mlp}.dense_h_to_4h.bias"] = weights[f"{ours}.mlp.widen.bias"]
        named[f"{mlp}.dense_4h_to_h.weight"] = wide.written(weights[f"{ours}.mlp.projection.weight"])
        named[f"{mlp}.dense_4h_to_h.bias"] = wide.written(weights[f"{ours}.mlp.projection.bias"][:, None])[:, 0]
    named |= wide.norm(weights, "final_norm", "model.final_layernorm")
    settings = _shared(config) | {
        "hidden_size": wide.factor * config.embedding_dim,
        "intermediate_size": config.expansion_factor * config.embedding_dim,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "max_position_embeddings": config.block_size,
        "hidden_act": "relu2" if config.relu_squared else "gelu",
        "layer_norm_eps": NORM_EPSILON,
        "qk_layernorm": bool(config.qk_norm),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": ROPE_BASE,
            "partial_rotary_factor": 1.0 / wide.factor,
        },
        **dict.fromkeys(("hidden_dropout", "attention_dropout"), config.dropout),
    }
    named = {name: value.contiguous() for name, value in named.items()}
    return Converted("PersimmonForCausalLM", settings, named, is_widened=wide.factor == 2)


class _Plain:
    """Every vector as it is."""

    factor = 1

    def __init__(self, config: MiniGPTConfig) -> None:
        self.config = config
        self.head_size = config.embedding_dim // config.num_heads

    def written(self, matrix: torch.Tensor) -> torch.Tensor:
        """A matrix (C, n) that adds to the residual stream."""
        return matrix

    def read(self, matrix: torch.Tensor) -> torch.Tensor:
        """A matrix (n, C) that reads what a norm gave."""
        return matrix

    def norm(self, weights: Tensors, ours: str, theirs: str) -> dict[str, torch.Tensor]:
        """The norm over the residual stream."""
        return _both(weights, ours, theirs)

    def heads(self, matrix: torch.Tensor) -> torch.Tensor:
        """Rows (3C, n) for queries, keys and values, in Persimmon's order: by head first, then by part."""
        parts = matrix.view(3, self.config.num_heads, self.head_size, -1)
        return self.of_head(parts).transpose(0, 1).reshape(3 * self.factor * self.config.embedding_dim, -1)

    def of_head(self, parts: torch.Tensor) -> torch.Tensor:
        """Queries, keys and values (3, H, D, n) of each head."""
        return parts

    def mixed(self, matrix: torch.Tensor) -> torch.Tensor:
        """A matrix (C, C) that reads what the heads gave."""
        return matrix

    def head_norm(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Weight and bias of the norm of queries and keys."""
        raise NotImplementedError("a division by the root mean square needs the wide layout")


class _Widened(_Plain):
    """Every vector twice: (x, x), or (x, -x) where its LayerNorm is to be a division by the root mean square.

    Only the first half is ever read. Heads have 2D channels, so scores are divided by sqrt(2D) instead of sqrt(D);
    queries and keys are multiplied by the fourth root of 2 for that. Half of each head is turned: the first.
    """

    factor = 2

    def written(self, matrix: torch.Tensor) -> torch.Tensor:
        return torch.cat((matrix, -matrix if self.config.rms_norm else matrix))

    def read(self, matrix: torch.Tensor) -> torch.Tensor:
        return torch.cat((matrix, torch.zeros_like(matrix)), dim=1)

    def norm(self, weights: Tensors, ours: str, theirs: str) -> dict[str, torch.Tensor]:
        C = self.config.embedding_dim
        if self.config.rms_norm:
            weight, bias = torch.ones(C), torch.zeros(C)
        else:
            weight, bias = weights[f"{ours}.weight"], weights[f"{ours}.bias"]
        return {
            f"{theirs}.weight": torch.cat((weight, torch.zeros(C))),
            f"{theirs}.bias": torch.cat((bias, torch.zeros(C))),
        }

    def of_head(self, parts: torch.Tensor) -> torch.Tensor:
        second = torch.zeros_like(parts)
        if self.config.qk_norm:
            second[:2] = -parts[:2]
            return torch.cat((parts, second), dim=2)  # the norm's weight has the factor
        return torch.cat((parts * torch.tensor([2**0.25, 2**0.25, 1.0]).view(3, 1, 1, 1), second), dim=2)

    def mixed(self, matrix: torch.Tensor) -> torch.Tensor:
        C = self.config.embedding_dim
        by_head = matrix.view(C, self.config.num_heads, self.head_size)
        return torch.cat((by_head, torch.zeros_like(by_head)), dim=2).reshape(C, 2 * C)

    def head_norm(self) -> tuple[torch.Tensor, torch.Tensor]:
        weight = torch.cat((torch.full((self.head_size,), 2**0.25), torch.zeros(self.head_size)))
        return weight, torch.zeros(2 * self.head_size)
