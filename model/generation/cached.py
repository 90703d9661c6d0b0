"""The model with a cache of keys and values: a new token costs one position, not the whole context again.

It computes what `MiniGPT.logits(MiniGPT.hidden(ids))` does in evaluation mode, from the same weights. Rounding may
differ in the last digits, because products of other shapes add in another order.

Shapes in the comments: R rows (samples at once), T time (tokens), C channels, H heads, D head size, V vocabulary.
"""

import numpy as np
import torch
from torch import nn

from model.fused.ops import NORM_EPSILON, ROPE_BASE, has_kernels
from model.generation import kernels
from model.gpt import Block, CausalSelfAttention, MiniGPT

MOST_PARAMETERS_FOR_KERNELS = 1 << 24
"""The kernels use one thread and hold a second copy of the weights; larger models are left to torch's operations."""


class CachedGPT:
    """A model and the keys and values of the positions that it has read; at most block_size of them."""

    def __init__(self, model: MiniGPT, num_rows: int = 1, *, use_kernels: bool | None = None) -> None:
        """An empty cache for `num_rows` samples. Dropout is never applied, and the mode of `model` is not changed.

        `use_kernels` None takes the kernels for a small model in float32 on the CPU.
        """
        self.model = model
        self.config = config = model.config
        table = model.token_embedding.weight
        if use_kernels is None:
            use_kernels = has_kernels(table) and model.num_parameters() <= MOST_PARAMETERS_FOR_KERNELS
        D = config.embedding_dim // config.num_heads
        shape = (config.num_layers, num_rows, config.num_heads, config.block_size, D)
        self.num_positions = 0
        """Positions read so far."""
        with torch.inference_mode():
            self._keys, self._values = table.new_zeros(shape), table.new_zeros(shape)
            self._turns = _turns_of(model) if config.rope else None
            self._kernel_step = _KernelStep(model, self._turns, num_rows) if use_kernels else None

    def clear(self) -> None:
        """Forget all positions. The next ids have positions from 0 on."""
        self.num_positions = 0

    @torch.inference_mode()
    def next_logits(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (R, V) of the token after `ids` (R, T), which continue what was read; the cache then holds them too.

        Several ids at once are taken by an empty cache only. Raises ValueError for more than block_size positions.
        """
        T = ids.shape[1]
        begin, end = self.num_positions, self.num_positions + T
        if end > self.config.block_size:
            raise ValueError(f"{end} tokens do not fit into the block of {self.config.block_size}")
        if begin and T > 1:
            raise ValueError("a cache that holds positions takes one token at a time")
        if self._kernel_step is not None and T == 1:
            self.num_positions = end
            return self._kernel_step(ids[:, 0], begin, self._keys, self._values)
        x = self.model.token_embedding(ids)  # (R, T, C)
        if self.model.position_embedding is not None:
            x = x + self.model.position_embedding.weight[begin:end]
        for number, block in enumerate(self.model.blocks):
            assert isinstance(block, Block)
            x = x + self._attention(block.attention, number, block.attention_norm(x))
            x = x + block.mlp(block.mlp_norm(x))
        self.num_positions = end
        return self.model.logits(self.model.final_norm(x[:, -1]))

    def _attention(self, attention: CausalSelfAttention, number: int, x: torch.Tensor) -> torch.Tensor:
        """(R, T, C) -> (R, T, C); the keys and values of `x` go into the cache of layer `number`."""
        num_rows, T, C = x.shape
        H = self.config.num_heads
        D = C // H
        queries, keys, values = attention.qkv(x).view(num_rows, T, 3, H, D).permute(2, 0, 3, 1, 4)  # each (R, H, T, D)
        if self.config.qk_norm:
            queries = nn.functional.rms_norm(queries, (D,), eps=NORM_EPSILON)
            keys = nn.functional.rms_norm(keys, (D,), eps=NORM_EPSILON)
        begin, end = self.num_positions, self.num_positions + T
        if self._turns is not None:
            cosine, sine = self._turns
            queries = _turned(queries, cosine[begin:end], sine[begin:end])
            keys = _turned(keys, cosine[begin:end], sine[begin:end])
        self._keys[number, :, :, begin:end] = keys
        self._values[number, :, :, begin:end] = values
        seen_keys, seen_values = self._keys[number, :, :, :end], self._values[number, :, :, :end]
        mixed = nn.functional.scaled_dot_product_attention(queries, seen_keys, seen_values, is_causal=T > 1)
        out: torch.Tensor = attention.projection(mixed.transpose(1, 2).reshape(num_rows, T, C))
        return out


def _turns_of(model: MiniGPT) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines (block_size, D / 2) of the angles by which each position is turned."""
    config, table = model.config, model.token_embedding.weight
    D = config.embedding_dim // config.num_heads
    frequencies = ROPE_BASE ** -torch.arange(0.0, 1.0, 2.0 / D, device=table.device)
    angles = torch.outer(torch.arange(config.block_size, device=table.device, dtype=torch.float32), frequencies)
    return angles.cos().to(table.dtype), angles.sin().to(table.dtype)


def _turned(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """The pairs (d, d + D/2) of `x` (R, H, T, D), turned; `cosine` and `sine` are (T, D / 2)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, first * sine + second * cosine), dim=-1)


class _KernelStep:
    """One token of every row by `kernels.next_logits`."""

    def __init__(self, model: MiniGPT, turns: tuple[torch.Tensor, torch.Tensor] | None, num_rows: int) -> None:
        config = model.config
        C, width = config.embedding_dim, config.expansion_factor * config.embedding_dim
        self._weights = _weights_of(model, turns)
        self._switches = kernels.Switches(
            rope=bool(config.rope),
            qk_norm=bool(config.qk_norm),
            relu_squared=bool(config.relu_squared),
            rms_norm=bool(config.rms_norm),
            epsilon=np.float32(NORM_EPSILON),
        )

        def room(*shape: int) -> kernels.Float:
            return np.zeros(shape, np.float32)

        self._room = kernels.Room(
            stream=room(num_rows, C),
            normed=room(num_rows, C),
            packed=room(num_rows, 3 * C),
            mixed=room(num_rows, C),
            hidden=room(num_rows, width),
            slope=room(num_rows * width),
            scores=room(num_rows * config.num_heads, 1, config.block_size),
        )

    def __call__(self, ids: torch.Tensor, position: int, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Logits (R, V) after `ids` (R,) at `position`; keys and values are (L, R, H, T, D)."""
        logits = np.empty((len(ids), len(self._weights.table)), np.float32)
        kernels.next_logits(
            self._weights,
            self._switches,
            self._room,
            keys.numpy(),
            values.numpy(),
            ids.contiguous().numpy(),
            position,
            logits,
        )
        return torch.from_numpy(logits)


def _weights_of(model: MiniGPT, turns: tuple[torch.Tensor, torch.Tensor] | None) -> kernels.Weights:
    """The weights of `model` for the kernels: those of all layers in one array each."""
    C = model.config.embedding_dim
    state = model.state_dict()

    def of_layers(name: str) -> kernels.Float:
        return torch.stack([state[f"blocks.{n}.{name}"] for n in range(model.config.num_layers)]).numpy()

    def norm(name: str) -> torch.Tensor:
        if model.config.rms_norm:  # which has no weights
            return torch.zeros(2, C)
        return torch.stack((state[f"{name}.weight"], state[f"{name}.bias"]))

    norms = [
        torch.stack([norm(f"blocks.{n}.{which}") for which in ("attention_norm", "mlp_norm")])
        for n in range(model.config.num_layers)
    ]
    nothing = torch.zeros(0, 0)
    cosine, sine = turns or (nothing, nothing)
    return kernels.Weights(
        table=state["token_embedding.weight"].contiguous().numpy(),
        positions=state.get("position_embedding.weight", nothing).contiguous().numpy(),
        norms=torch.stack(norms).numpy(),
        final_norm=norm("final_norm").numpy(),
        qkv=of_layers("attention.qkv.weight"),
        qkv_bias=of_layers("attention.qkv.bias"),
        mix=of_layers("attention.projection.weight"),
        mix_bias=of_layers("attention.projection.bias"),
        widen=of_layers("mlp.widen.weight"),
        widen_bias=of_layers("mlp.widen.bias"),
        narrow=of_layers("mlp.projection.weight"),
        narrow_bias=of_layers("mlp.projection.bias"),
        cosine=cosine.contiguous().numpy(),
        sine=sine.contiguous().numpy(),
    )
