"""One step's gradient by several threads: each takes a share of the windows, and all its operations for itself.

torch's own way, all threads inside each operation, waits for the slowest thread some hundred times a step, and cannot
share out the kernels of `model.fused`; this waits once. Shares and the order of their sum depend on the number of
threads and processes only, so a run is the same again for the same numbers.
"""

from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

import torch

from model.gpt import MiniGPT
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
        self.parameters = list(model.parameters())
        self.device = self.parameters[0].device
        self.num_shares = num_threads if self.device.type == "cpu" else 1
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
            shares = [self._share(*work[own[0]])]
        else:
            waiting = [self.pool.submit(self._share, *work[number]) for number in own]
            shares = [future.result() for future in waiting]
        total = list(shares[0][1])
        for _, gradients in shares[1:]:
            torch._foreach_add_(total, list(gradients))
        loss, total = self.processes.sum_gradients(sum(loss for loss, _ in shares), total)
        for parameter, gradient in zip(self.parameters, total, strict=True):
            parameter.grad = gradient
        return loss

    def _share(
        self, inputs: torch.Tensor, targets: torch.Tensor, weight: float, seed: int
    ) -> tuple[float, tuple[torch.Tensor, ...]]:
        """Loss and gradient of some windows, weighted by their share of the batch."""
        inputs, targets = inputs.to(self.device), targets.to(self.device)
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            loss = self.loss(inputs, targets, seed) * weight
        return loss.item(), torch.autograd.grad(loss, self.parameters)
