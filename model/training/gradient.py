"""One step's gradient by several threads: each takes a share of the windows, and all its operations for itself.

torch's own way, all threads inside each operation, waits for the slowest thread some hundred times a step, and cannot
share out the kernels of `model.fused` and `model.step`; this waits once. A share is computed by hand (`model.step`) on
the CPU in float32, elsewhere by the graph. Shares and the order of their sum depend on the number of threads and
processes only, so a run is the same again for the same numbers.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

import numpy as np
import torch

from model.gpt import MiniGPT
from model.step import kernels
from model.step.whole import HandWritten, is_supported
from model.training.flat import layout_of
from model.training.processes import Processes


class ParallelGradient:
    """Computes loss and gradient of `model`; use it as a context, which ends its threads."""

    def __init__(
        self,
        model: MiniGPT,
        *,
        num_threads: int,
        dtype: torch.dtype = torch.float32,
        is_compiled: bool = False,
        processes: Processes | None = None,
    ) -> None:
        """On a GPU one share suffices, whatever `num_threads` says. `dtype` is that of the matrix products.

        With several `processes` each computes its share of the batch by `num_threads` threads of its own.
        """
        self.processes = processes or Processes()
        self.dtype = dtype
        self.loss = torch.compile(model.loss) if is_compiled else model.loss
        layout = layout_of(model)
        self.parameters = layout.parameters
        self.device = self.parameters[0].device
        self.num_shares = num_threads if self.device.type == "cpu" else 1
        # One array for each thread, used again in every step; the first one takes the sum.
        self.arrays = [torch.zeros(layout.size, device=self.device) for _ in range(self.num_shares)]
        self.views = layout.views(self.arrays[0])
        # Where it can, each thread computes its share by hand, and otherwise by the graph of `self.loss`.
        self.by_hand: list[HandWritten] = []
        if is_supported(model, dtype, is_compiled=is_compiled):
            self.by_hand = [HandWritten(model, layout.named(model, array)) for array in self.arrays]
        self.pool = ThreadPoolExecutor(self.num_shares, initializer=torch.set_num_threads, initargs=(1,))

    def __enter__(self) -> "ParallelGradient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.shutdown()

    def backward(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Set the parameters' gradients for the windows `inputs`, `targets` (B, T); returns mean nats per token.

        All processes give the whole batch; each computes its own shares of it. Dropout takes one number from torch's
        generator, so that its saved state suffices to go on; each share counts on from it.
        """
        seed = int(torch.randint(1 << 31, ()))
        num_shares = min(self.num_shares * self.processes.count, len(inputs))
        rows = zip(inputs.tensor_split(num_shares), targets.tensor_split(num_shares), strict=True)
        work = [(ids, wanted, len(ids) / len(inputs), seed + number) for number, (ids, wanted) in enumerate(rows)]
        own = torch.arange(num_shares).tensor_split(self.processes.count)[self.processes.rank].tolist()
        if len(own) == 1:
            losses = [self._share(0, *work[own[0]])]
        else:
            waiting = [self.pool.submit(self._share, place, *work[number]) for place, number in enumerate(own)]
            losses = [future.result() for future in waiting]
        for array in self.arrays[1 : len(own)]:
            # By the kernel where there is one: torch's own threads would go on spinning while those of the pool work.
            if self.by_hand:
                kernels.add_to(self.gradient.numpy(), array.numpy())
            else:
                self.gradient.add_(array)
        loss = self.processes.sum_gradient(sum(losses), self.gradient)
        for parameter, view in zip(self.parameters, self.views, strict=True):
            parameter.grad = view
        return loss

    @property
    def gradient(self) -> torch.Tensor:
        """The gradient that `backward` left, as one array in the order of `flat`."""
        return self.arrays[0]

    def clip(self, longest: float) -> float:
        """Shorten the gradient to `longest` where it is longer; returns how long it was."""
        if self.by_hand:
            norm = math.sqrt(kernels.sum_of_squares(self.gradient.numpy()))
        else:
            norm = float(torch.linalg.vector_norm(self.gradient))
        if norm > longest:
            factor = longest / (norm + 1e-6)
            if self.by_hand:
                kernels.scale(self.gradient.numpy(), np.float32(factor))
            else:
                self.gradient.mul_(factor)
        return norm

    def run(self, work: Sequence[Callable[[], None]]) -> None:
        """Do all of `work`, at most one for each thread, side by side."""
        if len(work) == 1:
            work[0]()
            return
        for future in [self.pool.submit(part) for part in work]:
            future.result()

    def _share(self, place: int, inputs: torch.Tensor, targets: torch.Tensor, weight: float, seed: int) -> float:
        """Loss of some windows, weighted by their share of the batch; its gradient is put into array number `place`."""
        if self.by_hand:
            return self.by_hand[place].run(inputs, targets, weight, seed)
        inputs, targets = inputs.to(self.device), targets.to(self.device)
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            loss = self.loss(inputs, targets, seed) * weight
        parts = torch.autograd.grad(loss, self.parameters)
        torch.cat([part.reshape(-1) for part in parts], out=self.arrays[place])
        return loss.item()
