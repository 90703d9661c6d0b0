"""Random training windows: a pure function of (seed, step), so resuming needs no more than the step.

Shapes: B batch, T block size, N tokens of the split.
"""

import numpy as np
import torch

from data.errors import DataError
from tokenizer.encode_splits import EncodedSplit


class RandomWindows:
    """Draws `batch_size` windows a step, uniformly from all that lie wholly inside the data."""

    def __init__(self, split: EncodedSplit, *, block_size: int, batch_size: int, seed: int) -> None:
        """Raises DataError when the split is too short to hold one window and its last target."""
        num_tokens = len(split.ids)
        if num_tokens < block_size + 1:
            raise DataError(
                f"split {split.name!r} ({split.path}) has {num_tokens} tokens, but block_size {block_size} needs at "
                f"least {block_size + 1}; use more text or set model.block_size to {max(num_tokens - 1, 1)} or less"
            )
        self.ids = split.ids
        self.num_starts = num_tokens - block_size
        self.batch_size = batch_size
        self.seed = seed
        self.window = torch.arange(block_size + 1)

    def starts(self, step: int) -> torch.Tensor:
        """First positions (B,) of the windows of `step`: each in [0, N - T - 1], whatever was drawn before."""
        generator = np.random.default_rng(np.random.SeedSequence([self.seed, step]))
        return torch.from_numpy(generator.integers(0, self.num_starts, size=self.batch_size, dtype=np.int64))

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs (B, T) and targets (B, T) of `step`; targets are the inputs moved on by one token."""
        windows = self.ids[self.starts(step)[:, None] + self.window]  # (B, T + 1)
        return windows[:, :-1], windows[:, 1:]
