"""Causal attention of the hand-written pass, a block of queries at a time, over buffers that are made once.

The formulas are those of `model.fused.ops`: with P the probabilities and P' those after dropout, dV = P'^T dO;
dP' = dO V^T; dP = mask * dP'; dS = P * (dP - sum of P * dP); dQ = dS K / sqrt(D); dK = dS^T Q / sqrt(D).

Shapes: N batch * heads, T time, D head size.
"""

from dataclasses import dataclass

import numpy as np
import torch

from model.fused import kernels as fused
from model.fused.ops import QUERY_BLOCK
from model.step import kernels
from model.step.dropping import Dropping


@dataclass(frozen=True)
class _Block:
    """Some queries: their own probabilities, and their parts of what all layers share."""

    begin: int
    end: int
    probabilities: torch.Tensor  # (N, queries, end)


class Scratch:
    """Buffers that one layer fills and uses up before the next one: all layers share them."""

    def __init__(self, num_heads_in_all: int, time: int, head: int) -> None:
        """For N = `num_heads_in_all`, T = `time`, D = `head`."""
        self.bounds = [(begin, min(begin + QUERY_BLOCK, time)) for begin in range(0, time, QUERY_BLOCK)]
        widths = [(end - begin, end) for begin, end in self.bounds]
        self.scores = [torch.empty(num_heads_in_all, *width) for width in widths]
        self.mixing = [torch.empty(num_heads_in_all, *width) for width in widths]
        self.queries = [torch.empty(num_heads_in_all, queries, head) for queries, _ in widths]
        self.keys = [torch.empty(num_heads_in_all, keys, head) for _, keys in widths]


class Attention:
    """One layer's attention of queries, keys and values (3, N, T, D) into (N, T, D)."""

    def __init__(self, num_heads_in_all: int, time: int, head: int, scratch: Scratch) -> None:
        """For N = `num_heads_in_all`, T = `time`, D = `head`."""
        self.time, self.scale, self.scratch = time, head**-0.5, scratch
        self.qkv = torch.empty(3, num_heads_in_all, time, head)
        self.out = torch.empty(num_heads_in_all, time, head)
        self.blocks = [
            _Block(begin, end, torch.empty(num_heads_in_all, end - begin, end)) for begin, end in scratch.bounds
        ]

    def forward(self, dropping: Dropping) -> torch.Tensor:
        """(N, T, D) from `qkv`; dropout acts on the probabilities."""
        queries, keys, values = self.qkv
        for number, block in enumerate(self.blocks):
            part, probabilities = slice(block.begin, block.end), block.probabilities
            torch.bmm(queries[:, part], keys[:, : block.end].mT, out=probabilities)
            fused.causal_softmax(probabilities.numpy(), block.begin, np.float32(self.scale))
            mixing = dropping.into(self.scratch.mixing[number], probabilities, number)
            if len(self.blocks) == 1:
                return torch.bmm(mixing, values, out=self.out)
            self.out[:, part] = torch.bmm(mixing, values[:, : block.end], out=self.scratch.queries[number])
        return self.out

    def backward(self, grad: torch.Tensor, grad_qkv: torch.Tensor, dropping: Dropping) -> None:
        """The gradient by `qkv` into `grad_qkv` (3, N, T, D), from `grad` (N, T, D) by the output."""
        queries, keys, values = self.qkv
        grad_queries, grad_keys, grad_values = grad_qkv
        for number, block in reversed(list(enumerate(self.blocks))):  # the last one reaches all keys
            part, end, probabilities = slice(block.begin, block.end), block.end, block.probabilities
            grad_block, scores = grad[:, part], self.scratch.scores[number]
            mixing = dropping.into(self.scratch.mixing[number], probabilities, number)
            # From the output to the scores.
            torch.bmm(grad_block, values[:, :end].mT, out=scores)
            dropping.into(scores, scores, number)
            kernels.softmax_backward(scores.numpy(), probabilities.numpy(), block.begin, np.float32(self.scale))
            # From the scores to queries and keys, and from the output to values. A product into a part of a tensor
            # would be split into one for each head: only the last block writes where the result belongs.
            if len(self.blocks) == 1:
                torch.bmm(scores, keys, out=grad_queries)
            else:
                grad_queries[:, part] = torch.bmm(scores, keys[:, :end], out=self.scratch.queries[number])
            for whole, left, right in (
                (grad_values, mixing.mT, grad_block),
                (grad_keys, scores.mT, queries[:, part]),
            ):
                if end == self.time:
                    torch.bmm(left, right, out=whole)
                else:
                    whole[:, :end] += torch.bmm(left, right, out=self.scratch.keys[number])
