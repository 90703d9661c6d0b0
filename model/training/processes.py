"""One run by many processes, which torchrun starts: each takes a share of every batch, and all take the same steps.

Process 0 alone writes, talks and evaluates. Two messages a step go round: the flat sum of all gradients with the loss,
and process 0's clock with every process's wish to stop. That sum is explicit, instead of by DistributedDataParallel,
because a step's gradient is already a sum over the shares of `gradient`: processes add terms to the same sum,
and N processes of K threads compute, dropout included, what one process of N * K threads computes, up to the order of
addition. DDP would hide that sum in hooks of the backward pass, which model/training/gradient.py runs in threads.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from data.config import require
from data.errors import UserError
from model.training.interrupt import NAMES, SaidByProcessZero

STEP_SECONDS = 300
"""How long a process waits for the others' share of a step; one that ended is noticed at once."""
_PATIENCE = timedelta(days=2)  # while process 0 prepares data or evaluates
T = TypeVar("T")


class ProcessLostError(UserError):
    """Another process of the run ended or fell silent, so that no further step can be taken."""


@dataclass(frozen=True)
class Processes:
    """This process's place among those of a run. Without arguments: the only one, for which nothing is sent."""

    rank: int = 0
    """Number of this process."""
    count: int = 1
    """Number of processes."""
    local_rank: int = 0
    """Number of this process on its machine, and of the GPU it takes."""
    patient: Any = None
    """The group that waits for process 0's longer work."""

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes and talks."""
        return self.rank == 0

    def check(self, batch_size: int, device: torch.device) -> None:
        """Take this process's GPU. Raises ConfigError when there are too few windows or GPUs for all processes."""
        if self.count == 1:
            return
        require(
            batch_size >= self.count,
            f"train.batch_size {batch_size} is less than the {self.count} processes, which share out the windows of a "
            f"step; set it to {self.count} or more, or start fewer processes",
        )
        if device.type == "cuda":
            num_gpus = torch.cuda.device_count()
            require(
                self.local_rank < num_gpus,
                f"process {self.local_rank} of this machine finds {num_gpus} GPUs; start one process for each GPU, or "
                "set train.device to cpu",
            )
            torch.cuda.set_device(self.local_rank)

    def sum_gradient(self, loss: float, gradient: torch.Tensor) -> float:
        """The sum of `loss` over all processes; `gradient` (n,) becomes its sum, the same bits in each of them."""
        if self.count == 1:
            return loss
        message = torch.cat((gradient, gradient.new_tensor([loss])))
        with self.reaching():
            dist.all_reduce(message)
        gradient.copy_(message[:-1])
        return message[-1].item()

    def agree(self, seconds: float, wish: str | None) -> tuple[float, str | None]:
        """Process 0's `seconds`, and a signal that any process has got, or None."""
        if self.count == 1:
            return seconds, wish
        sent = [seconds if self.is_main else 0.0, *(float(wish == name) for name in NAMES)]
        message = torch.tensor(sent, dtype=torch.float64)
        with self.reaching():
            dist.all_reduce(message)
        wishes = [name for name, times in zip(NAMES, message[1:].tolist(), strict=True) if times > 0.0]
        return message[0].item(), wishes[0] if wishes else None

    def from_main(self, compute: Callable[[], float]) -> float:
        """What `compute` returns in process 0, for as long as that takes; the others do not call it.

        An error in process 0 is raised there, and as SaidByProcessZero in the others.
        """
        if self.count == 1:
            return compute()
        message = torch.zeros(2, dtype=torch.float64)  # whether it went well, and the result
        try:
            if self.is_main:
                message = torch.tensor([1.0, compute()], dtype=torch.float64)
        finally:
            with self.reaching():
                dist.broadcast(message, src=0, group=self.patient)
        if message[0].item() == 0.0:
            raise SaidByProcessZero
        return message[1].item()

    def only_main(self, work: Callable[[], Any]) -> None:
        """Let process 0 do `work`, and the others wait for its end. Errors as in `from_main`."""

        def done() -> float:
            work()
            return 0.0

        self.from_main(done)

    def main_first(self, work: Callable[[], T]) -> T:
        """What `work` returns: process 0 does it before all others, which then find its files. All end together."""
        if self.count == 1:
            return work()
        results: list[T] = []
        self.only_main(lambda: results.append(work()))
        if not self.is_main:
            results.append(work())
        self.require_same(len(results), "what they have prepared")  # nobody goes on to change what others still read
        return results[0]

    def together(self, work: Callable[[], T]) -> T:
        """What `work` returns; all do it at the same time. Where process 0 fails too, the others leave it to say so."""
        if self.count == 1:
            return work()
        results, error = [], None
        try:
            results.append(work())
        except UserError as found:
            error = found
        failed = torch.tensor([float(error is not None and self.is_main), float(error is not None)])
        with self.reaching():
            dist.all_reduce(failed)
        if failed[0] and not self.is_main:
            raise SaidByProcessZero from error
        if error is not None:
            raise error
        if failed[1]:
            raise ProcessLostError(f"process {self.rank} stops: another process has failed, and says why")
        return results[0]

    def require_same(self, number: int, what: str) -> None:
        """Raise ProcessLostError unless `number` is the same in all processes."""
        if self.count == 1:
            return
        message = torch.tensor([number, -number], dtype=torch.int64)
        with self.reaching():
            dist.all_reduce(message, op=dist.ReduceOp.MAX)
        if message[0] != -message[1]:
            raise ProcessLostError(
                f"the processes differ in {what} ({-int(message[1])} to {int(message[0])}); on several machines they "
                "need one shared folder and the same files"
            )

    @contextmanager
    def reaching(self) -> Iterator[None]:
        """Turns the failure of a message into the one thing that it means."""
        try:
            yield
        except RuntimeError as error:
            raise ProcessLostError(
                f"process {self.rank} stops: another of the {self.count} processes ended, or was silent for "
                f"{STEP_SECONDS} s; run the same command again to go on from the last save"
            ) from error


@contextmanager
def joined_processes() -> Iterator[Processes]:
    """The processes that torchrun started, joined until the end of the context; outside of torchrun just this one.

    Sums go by gloo on a CPU and by NCCL on a GPU. Raises ProcessLostError when not all arrive.
    """
    if "RANK" not in os.environ or (count := _number_in("WORLD_SIZE", "1")) == 1:
        yield Processes()
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    rank, local_rank = _number_in("RANK", "0"), _number_in("LOCAL_RANK", "0")
    processes = Processes(rank, count, local_rank)
    with processes.reaching():
        dist.init_process_group(backend, timeout=timedelta(seconds=STEP_SECONDS))
        patient = dist.new_group(backend="gloo", timeout=_PATIENCE)
    yield Processes(rank, count, local_rank, patient)
    dist.destroy_process_group()  # not after an error: it would wait for a process that is gone


def _number_in(variable: str, default: str) -> int:
    """A count or number that torchrun sets. Raises ConfigError where somebody set something else."""
    written = os.environ.get(variable, default)
    require(
        written.isascii() and written.isdigit(),
        f"{variable}={written!r}: expected the whole number that torchrun sets; unset it",
    )
    return int(written)
