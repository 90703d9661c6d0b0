"""Optimizer steps of one run: its model, its windows, its random numbers, and exactly what was spent."""

import contextlib
import math
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data.errors import DivergedError, command
from model import checkpoint
from model.batches import windows_of
from model.gpt import MiniGPT
from model.run_spec import RunSpec
from model.settings import Spent
from model.training.device import choose_compile, choose_device, choose_dtype
from model.training.gradient import ParallelGradient
from model.training.interrupt import SaidByProcessZero
from model.training.optimizer import Optimizers
from model.training.processes import Processes
from model.training.schedule import learning_rate_factor
from tokenizer.base import prefix_of, separator_of


class Stepper:
    """What a run computes with. It takes steps; it writes and evaluates nothing."""

    def __init__(self, spec: RunSpec, processes: Processes | None = None) -> None:
        """A run at its beginning. Raises ConfigError for a device or processes that there are not, DataError when train
        has no whole window.
        """
        config, tokenizer = spec.train_config, spec.tokenizer
        self.spec, self.config, self.folder = spec, config, spec.folder
        self.identity = checkpoint.identity_of(spec)
        self.processes = processes or Processes()
        self.device = choose_device(config.device)
        self.processes.check(config.batch_size, self.device)
        self.windows = windows_of(
            config.order,
            spec.splits["train"],
            block_size=spec.model_config.block_size,
            batch_size=config.batch_size,
            seed=config.seed,
        )
        self.token_num_chars = torch.from_numpy(tokenizer.token_num_chars.copy())
        if (separator := separator_of(tokenizer)) is not None:
            self.token_num_chars[separator] = 0  # no character of the text, whatever its spelling
        self.document_prefix = prefix_of(tokenizer)
        train_offsets = spec.splits["train"].document_offsets
        self.document_starts = train_offsets[:-1][np.diff(train_offsets) > 0]
        torch.manual_seed(config.seed)
        # Weights are drawn on the CPU, so that they are the same for every device.
        self.model = MiniGPT(spec.model_config).to(self.device).train()
        self.optimizer = Optimizers(self.model, config)
        self.average = {name: weight.clone() for name, weight in self.model.state_dict().items()}
        self.dtype = choose_dtype(config.dtype, self.device)
        self.is_compiled = choose_compile(config.compile, self.device)
        self.spent = Spent()
        self.learning_rate = 0.0  # of the latest step

    def is_over(self) -> bool:
        """Whether no further step is to be taken."""
        return self.spent.progress(self.config.budget) >= 1.0

    def steps(self) -> Generator[float, None, None]:
        """Take steps until the run is over; yields the loss of each one's batch, in nats per token.

        Nothing is evaluated, logged or saved between two of them. Raises DivergedError.
        """
        with ParallelGradient(
            self.model,
            num_threads=torch.get_num_threads(),
            dtype=self.dtype,
            is_compiled=self.is_compiled,
            processes=self.processes,
        ) as gradient:
            while not self.is_over():
                yield self._step(gradient)

    def _step(self, gradient: ParallelGradient) -> float:
        """One optimizer step; returns the loss of its batch in nats per token.

        Raises DivergedError for a loss or gradient that is not finite, before it can reach the weights.
        """
        started = time.perf_counter()
        config = self.config
        factor = learning_rate_factor(config, self.spent.amount(config.budget.unit))
        self.learning_rate = config.learning_rate * factor
        inputs, targets = self.windows.batch(self.spent.steps)
        num_chars = int(self.token_num_chars[targets].sum())
        if self.document_prefix:  # no character of the text, though a token holds it
            num_chars -= len(self.document_prefix) * self.windows.num_targets_at(self.spent.steps, self.document_starts)
        loss_nats = gradient.backward(inputs, targets)
        norm = gradient.clip(config.gradient_clip)
        self._require_finite(loss_nats, "loss")
        self._require_finite(norm, "gradient")
        self.optimizer.step(self.learning_rate, gradient.gradient, gradient.run, gradient.num_shares)
        if config.ema_decay > 0.0:
            with torch.no_grad():
                weights = list(self.model.state_dict().values())
                torch._foreach_lerp_(list(self.average.values()), weights, 1.0 - config.ema_decay)
        spent = self.spent
        self.spent = Spent(
            characters=spent.characters + num_chars,
            tokens=spent.tokens + targets.numel(),
            steps=spent.steps + 1,
            flops=spent.flops + targets.numel() * self.model.flops_per_token(),
            seconds=spent.seconds + time.perf_counter() - started,
            evaluation_seconds=spent.evaluation_seconds,
        )
        return loss_nats

    def _require_finite(self, value: float, what: str) -> None:
        if math.isfinite(value):
            return
        if not self.processes.is_main:
            raise SaidByProcessZero  # losses and gradients are sums over all processes
        last: Path = self.folder / checkpoint.LAST
        kept = f"{last} keeps the last good state" if last.exists() else "no checkpoint had been saved yet"
        restart = checkpoint.restart_command(self.identity["contestant"])
        raise DivergedError(
            f"{self.identity['contestant']}: the {what} became {value} at step {self.spent.steps + 1} "
            f"(learning rate {self.learning_rate:.3g}); {kept}; lower train.learning_rate "
            f"(now {self.config.learning_rate:g}) and run {command(restart)}"
        )

    @contextlib.contextmanager
    def scored_model(self) -> Iterator[MiniGPT]:
        """The model with the weights that are scored, in evaluation mode; afterwards it has those in training again."""
        trained = {name: weight.clone() for name, weight in self.model.state_dict().items()}
        self.model.load_state_dict(self.scored_weights())
        self.model.eval()
        try:
            yield self.model
        finally:
            self.model.train().load_state_dict(trained)

    def scored_weights(self) -> dict[str, torch.Tensor]:
        """The weights that val figures and best.pt are of: the moving average if there is one."""
        return self.average if self.config.ema_decay > 0.0 else self.model.state_dict()

    def take(self, state: dict[str, Any]) -> None:
        """Take weights, moments and what was spent from `state` (see `state`); the random numbers come last."""
        self.model.load_state_dict(state["model"])
        self.average = state["average"] or self.average
        self.optimizer.load_state_dict(state["optimizer"])
        self.spent = Spent(**state["spent"])
        torch.set_rng_state(state["rng_cpu"])
        if self.device.type == "cuda" and state["rng_cuda"] is not None:
            torch.cuda.set_rng_state(state["rng_cuda"])

    def resuming(self) -> dict[str, Any]:
        """What `take` needs besides the weights and what was spent."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "average": self.average if self.config.ema_decay > 0.0 else None,
            "rng_cpu": torch.get_rng_state(),
            "rng_cuda": torch.cuda.get_rng_state() if self.device.type == "cuda" else None,
        }

    def environment(self) -> dict[str, Any]:
        """What the steps are computed by, for checkpoints and reports."""
        return {
            "device": self.device.type,
            "num_processes": self.processes.count,
            "num_threads": torch.get_num_threads(),  # of each
            "torch": str(torch.__version__),
            "dtype": str(self.dtype).removeprefix("torch."),
            "compile": self.is_compiled,
        }

    def _how(self) -> str:
        """How the steps are computed, in words."""
        dtype = str(self.dtype).removeprefix("torch.")
        compiled = "with" if self.is_compiled else "without"
        count, threads = self.processes.count, f"{torch.get_num_threads()} threads"
        workers = threads if count == 1 else f"{count} processes of {threads}"
        return f"{self.device.type}, {workers}, {dtype} products, {compiled} torch.compile"
