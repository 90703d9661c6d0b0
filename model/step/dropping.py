"""Dropout of the hand-written pass: the same entries as `model.fused.ops.drop`, into a buffer."""

from dataclasses import dataclass

import numpy as np
import torch

from model.fused import kernels

_SEEDS = 1 << 32


@dataclass(frozen=True)
class Dropping:
    """One place that drops, in one step; nothing is dropped there where `seed` is None."""

    probability: float
    seed: int | None

    def into(self, buffer: torch.Tensor, x: torch.Tensor, offset: int = 0) -> torch.Tensor:
        """`x` after dropout by the seed plus `offset`, in `buffer`, which may be `x`; without dropout `x` itself."""
        if self.seed is None:
            return x
        threshold = min(round(self.probability * _SEEDS), _SEEDS - 1)
        seed, kept_scale = np.uint32((self.seed + offset) % _SEEDS), np.float32(_SEEDS / (_SEEDS - threshold))
        kernels.drop(x.view(-1).numpy(), buffer.view(-1).numpy(), seed, np.uint32(threshold), kept_scale)
        return buffer
