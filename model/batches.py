"""Training windows: a pure function of (seed, step), so resuming needs no more than the step.

Shapes: B batch, T block size, N tokens of the split.
"""

from typing import Literal

import numpy as np
import torch

from data.errors import DataError
from tokenizer.base import Int64Array
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

    def positions(self, step: int) -> torch.Tensor:
        """Positions (B, T + 1) in the split of the tokens of `step`'s windows."""
        return self.starts(step)[:, None] + self.window

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs (B, T) and targets (B, T) of `step`; targets are the inputs moved on by one token."""
        windows = self.ids[self.positions(step)]  # (B, T + 1)
        return windows[:, :-1], windows[:, 1:]

    def num_targets_at(self, step: int, places: Int64Array) -> int:
        """How many targets of `step` lie at one of the `places`, which are sorted positions in the split."""
        targets = self.positions(step)[:, 1:].numpy()
        found = np.minimum(np.searchsorted(places, targets), len(places) - 1)
        return int(np.count_nonzero(places[found] == targets))


class EpochWindows(RandomWindows):
    """Cuts the text into windows side by side and takes each once an epoch, in an order of the epoch's own.

    The text is a ring of N tokens, its first token follows its last, and where the cutting begins is drawn again for
    every epoch. So every token is a target in every epoch: once, but for the (-N) mod T tokens that fill the last
    window, which are targets twice. Batches go on over the end of an epoch.
    """

    def __init__(self, split: EncodedSplit, *, block_size: int, batch_size: int, seed: int) -> None:
        """Raises DataError when the split is too short to hold one window and its last target."""
        super().__init__(split, block_size=block_size, batch_size=batch_size, seed=seed)
        self.block_size = block_size
        self.num_tokens = len(split.ids)
        self.per_epoch = -(-self.num_tokens // block_size)
        self.known: tuple[int, torch.Tensor] = (-1, torch.empty(0))

    def starts(self, step: int) -> torch.Tensor:
        """First positions (B,) of the windows of `step`: each in [0, N - 1], a window may go on at the beginning."""
        numbers = torch.arange(step * self.batch_size, (step + 1) * self.batch_size)
        epochs = numbers // self.per_epoch
        parts = [
            self._epoch(epoch)[numbers[epochs == epoch] % self.per_epoch]
            for epoch in range(int(epochs[0]), int(epochs[-1]) + 1)
        ]
        return torch.cat(parts)

    def positions(self, step: int) -> torch.Tensor:
        """Positions (B, T + 1) in the split; the text's first token follows its last."""
        return (self.starts(step)[:, None] + self.window) % self.num_tokens

    def _epoch(self, epoch: int) -> torch.Tensor:
        """All starts of `epoch` (per_epoch,), in its order."""
        if self.known[0] != epoch:
            generator = np.random.default_rng(np.random.SeedSequence([self.seed, 1, epoch]))
            first = int(generator.integers(0, self.num_tokens))
            order = torch.from_numpy(generator.permutation(self.per_epoch))
            self.known = (epoch, (first + order * self.block_size) % self.num_tokens)
        return self.known[1]


def windows_of(
    order: Literal["random", "epochs"], split: EncodedSplit, *, block_size: int, batch_size: int, seed: int
) -> RandomWindows:
    """The windows for `train.order`. Raises DataError when the split is too short for one."""
    kind = EpochWindows if order == "epochs" else RandomWindows
    return kind(split, block_size=block_size, batch_size=batch_size, seed=seed)
