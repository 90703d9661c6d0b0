"""The whole model by hand: loss and gradient of a batch, every result in a buffer that is made once for its shape.

It computes what `MiniGPT.loss` and its graph compute, dropout included, and `model/reference.py` is the specification
of both. A step of some thousand tokens is short, so what a graph costs (nodes, new tensors, gradients of tables that
are zeroed and summed, parts that are joined) is a large part of it. This writes each gradient where it belongs.

Shapes: B batch, T time, C channels, H heads, D head size (C / H), V vocabulary, R rows (B * T).
"""

from collections.abc import Mapping

import numpy as np
import torch

from model.fused import kernels as fused
from model.fused.ops import LOGITS_AT_ONCE, has_kernels, turns
from model.gpt import MiniGPT
from model.settings import MiniGPTConfig
from model.step import kernels
from model.step.attention import Attention, Scratch
from model.step.dropping import Dropping
from model.step.layers import EPSILON, MLP, LayerNorm, Linear, RMSNorm, Tensors


def is_supported(model: MiniGPT, dtype: torch.dtype, *, is_compiled: bool) -> bool:
    """Whether the pass by hand computes the steps of `model`: on the CPU in float32, with any settings of the model.

    Elsewhere (a GPU, products in bfloat16, torch.compile) the graph of `MiniGPT.loss` does.
    """
    return has_kernels(model.token_embedding.weight) and dtype == torch.float32 and not is_compiled


class Buffers:
    """What all layers share for one shape of batch: results that are used up before the next layer needs the place."""

    def __init__(self, config: MiniGPTConfig, batch: int, time: int) -> None:
        rows, C, H = batch * time, config.embedding_dim, config.num_heads
        self.batch, self.time, self.heads, self.head = batch, time, H, C // H
        self.stream = torch.empty(rows, C)
        self.grad = torch.empty(rows, C)  # by the stream
        self.part, self.dropped = torch.empty(rows, C), torch.empty(rows, C)
        self.packed, self.wide = torch.empty(rows, 3 * C), torch.empty(rows, config.expansion_factor * C)
        self.by_head = torch.empty(batch * H, time, C // H)
        self.grad_qkv = torch.empty(3, batch * H, time, C // H)
        self.scratch = Scratch(batch * H, time, C // H)
        # Angles of the rotary positions; empty where there are none.
        cosine, sine = turns(time, C // H, self.stream) if config.rope else (torch.empty(0, 0), torch.empty(0, 0))
        self.cosine, self.sine = cosine.numpy(), sine.numpy()

    def heads_of(self, rows: torch.Tensor) -> torch.Tensor:
        """(R, C) seen as (B, H, T, D)."""
        return rows.view(self.batch, self.time, self.heads, self.head).transpose(1, 2)


class Layer:
    """One pre-norm block: attention, then the MLP, each added to the stream."""

    def __init__(self, tensors: Tensors, config: MiniGPTConfig, number: int, buffers: Buffers) -> None:
        self.buffers, self.probability = buffers, config.dropout
        name, rows = f"blocks.{number}", len(buffers.stream)
        self.attention_norm = make_norm(tensors, config, f"{name}.attention_norm", rows)
        self.mlp_norm = make_norm(tensors, config, f"{name}.mlp_norm", rows)
        self.qkv = Linear(tensors, f"{name}.attention.qkv")
        self.projection = Linear(tensors, f"{name}.attention.projection")
        self.attention = Attention(buffers.batch * buffers.heads, buffers.time, buffers.head, buffers.scratch)
        self.mixed = torch.empty(rows, config.embedding_dim)  # what the heads give, side by side
        self.mlp = MLP(tensors, f"{name}.mlp", rows, is_relu_squared=bool(config.relu_squared))
        counted = (2, buffers.batch, buffers.heads, buffers.time) if config.qk_norm else (2, 0, 0, 0)
        self.inverse = np.empty(counted, dtype=np.float32)  # of the root mean squares of queries and keys
        five = (3, buffers.batch, buffers.heads, buffers.time, buffers.head)
        self.split = self.attention.qkv.view(five).numpy()
        self.grad_split = buffers.grad_qkv.view(five).numpy()
        self.packed = buffers.packed.view(buffers.batch, buffers.time, 3, buffers.heads, buffers.head).numpy()

    def forward(self, seeds: list[int | None]) -> None:
        """The stream of `buffers` after this layer; three seeds of dropout."""
        own, (attending, mixing, narrowing) = self.buffers, (Dropping(self.probability, seed) for seed in seeds)
        # Attention: queries, keys and values by head, normed and turned; then all heads side by side again.
        self.qkv.forward(self.attention_norm.forward(own.stream), own.packed)
        kernels.split_heads(self.packed, own.cosine, own.sine, EPSILON, self.inverse, self.split)
        out = self.attention.forward(attending)
        own.heads_of(self.mixed).copy_(out.view(own.batch, own.heads, own.time, own.head))
        part = self.projection.forward(self.mixed, own.part)
        own.stream.add_(mixing.into(part, part))
        # The MLP.
        part = self.mlp.forward(self.mlp_norm.forward(own.stream), own.part)
        own.stream.add_(narrowing.into(part, part))

    def backward(self, seeds: list[int | None]) -> None:
        """The gradient by the stream before this layer, in place of that after it; those of all its weights."""
        own, (attending, mixing, narrowing) = self.buffers, (Dropping(self.probability, seed) for seed in seeds)
        # The MLP.
        grad = narrowing.into(own.dropped, own.grad)
        self.mlp_norm.backward(self.mlp.backward(self.mlp_norm.out, grad, own.wide, own.part), own.grad)
        # Attention: from all heads side by side to each, and back to the packed queries, keys and values.
        grad = mixing.into(own.dropped, own.grad)
        by_head = own.by_head.view(own.batch, own.heads, own.time, own.head)
        by_head.copy_(own.heads_of(self.projection.backward(self.mixed, grad, own.part)))
        self.attention.backward(own.by_head, own.grad_qkv, attending)
        made = (self.grad_split, self.split)
        kernels.split_heads_backward(*made, own.cosine, own.sine, self.inverse, self.packed)
        self.attention_norm.backward(self.qkv.backward(self.attention_norm.out, own.packed, own.part), own.grad)


class Pass:
    """Loss and gradient of batches of one shape (B, T)."""

    def __init__(self, tensors: Tensors, config: MiniGPTConfig, shape: tuple[int, int]) -> None:
        self.config, self.buffers = config, Buffers(config, *shape)
        self.layers = [Layer(tensors, config, number, self.buffers) for number in range(config.num_layers)]
        self.final_norm = make_norm(tensors, config, "final_norm", len(self.buffers.stream))
        self.table, self.grad_table = tensors.of("token_embedding.weight")
        nothing = torch.empty(0, config.embedding_dim)
        places = "position_embedding.weight"
        self.places, self.grad_places = (nothing, nothing) if config.rope else tensors.of(places)
        # Head and loss take some rows at a time, so that their logits stay in the cache until they are used up.
        num_rows = len(self.buffers.stream)
        rows = min(num_rows, max(1, LOGITS_AT_ONCE // config.vocab_size))
        self.parts = [slice(begin, min(begin + rows, num_rows)) for begin in range(0, num_rows, rows)]
        self.logits, self.losses = torch.empty(rows, config.vocab_size), torch.empty(num_rows)

    def run(self, ids: torch.Tensor, targets: torch.Tensor, weight: float, seeds: list[int | None]) -> float:
        """`weight` times the mean loss of `targets` (B, T) after `ids` (B, T); all gradients are set.

        `seeds` are those of `MiniGPT.seeds_of`.
        """
        own, places = self.buffers, ids.numpy()
        three = (own.batch, own.time, self.config.embedding_dim)
        entering = Dropping(self.config.dropout, seeds[0])
        kernels.embed(places, self.table.numpy(), self.places.numpy(), own.stream.view(three).numpy())
        entering.into(own.stream, own.stream)
        for number, layer in enumerate(self.layers):
            layer.forward(seeds[1 + 3 * number :][:3])
        loss = self._head(targets.reshape(-1), weight)
        for number, layer in reversed(list(enumerate(self.layers))):
            layer.backward(seeds[1 + 3 * number :][:3])
        entering.into(own.grad, own.grad)
        self.grad_places.zero_()
        grads = (self.grad_table.numpy(), self.grad_places.numpy())
        kernels.embed_backward(places, own.grad.view(three).numpy(), *grads)
        return loss

    def _head(self, targets: torch.Tensor, weight: float) -> float:
        """The loss; the gradient by the stream and the head's part of that by the table are set."""
        own = self.buffers
        hidden = self.final_norm.forward(own.stream)
        for part in self.parts:
            logits = torch.mm(hidden[part], self.table.T, out=self.logits[: part.stop - part.start])
            scale = np.float32(weight / len(hidden))
            fused.cross_entropy(logits.numpy(), targets[part].numpy(), scale, self.losses[part].numpy())
            torch.mm(logits, self.table, out=own.part[part])
            if part.start == 0:
                torch.mm(logits.T, hidden[part], out=self.grad_table)
            else:
                self.grad_table.addmm_(logits.T, hidden[part])
        own.grad.zero_()
        self.final_norm.backward(own.part, own.grad)
        return self.losses.mean().item() * weight


def make_norm(tensors: Tensors, config: MiniGPTConfig, name: str, rows: int) -> LayerNorm | RMSNorm:
    """The norm `name` of the preset, over C."""
    shape = (rows, config.embedding_dim)
    return RMSNorm(shape) if config.rms_norm else LayerNorm(tensors, name, shape)


class HandWritten:
    """Loss and gradient of a model's batches of any shape. One thread uses it at a time."""

    def __init__(self, model: MiniGPT, gradients: Mapping[str, torch.Tensor]) -> None:
        """`gradients`, by the names of the parameters, are what `run` writes into."""
        self.model, self.gradients = model, gradients
        self.parameters = dict(model.named_parameters())
        self.passes: dict[tuple[int, int], Pass] = {}
        self.places: list[int] = []

    @torch.no_grad()
    def run(self, ids: torch.Tensor, targets: torch.Tensor, weight: float, seed: int) -> float:
        """`weight` times the mean loss of `targets` (B, T) after `ids` (B, T), nats; its gradient is written."""
        config, (batch, time) = self.model.config, ids.shape
        self.model.require_fits(time)
        places = [parameter.data_ptr() for parameter in self.parameters.values()]
        if places != self.places:  # weights that have moved: an optimizer or a checkpoint laid them elsewhere
            self.places = places
            self.passes.clear()
        if (batch, time) not in self.passes:
            tensors = Tensors({name: parameter.detach() for name, parameter in self.parameters.items()}, self.gradients)
            self.passes[batch, time] = Pass(tensors, config, (batch, time))
        seeds = self.model.seeds_of(seed)
        return self.passes[batch, time].run(ids.contiguous(), targets.contiguous(), weight, seeds)
