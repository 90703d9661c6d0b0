"""The training loop of one contestant: resumable bit for bit, interruptible, and exact about what it spent.

On the CPU a run is a pure function of its configuration, data and number of threads and processes: the windows of a
step follow from (seed, step), the learning rate from the progress, dropout from torch's generator, which is saved and
restored. Only a budget in seconds depends on the machine. Several processes (`processes`) take every step
together; what is written, printed and evaluated is the work of process 0.
"""

import contextlib
import dataclasses
import math
import time
from collections.abc import Generator, Iterator
from typing import Any, NoReturn

import numpy as np
import torch
from torch import nn

from data.errors import DivergedError, command
from data.files import atomic_write, sha256_file, write_json
from model import checkpoint
from model.batches import windows_of
from model.evaluate import context_of
from model.gpt import MiniGPT
from model.run_spec import RunSpec
from model.settings import Spent
from model.training.device import choose_compile, choose_device, choose_dtype
from model.training.gradient import ParallelGradient
from model.training.interrupt import SaidByProcessZero, TrainingInterrupted, stop_on_signals
from model.training.metrics import MetricsLog
from model.training.optimizer import Optimizers
from model.training.processes import Processes
from model.training.progress import ProgressBar, say
from model.training.result import TrainResult, result_of
from model.training.schedule import is_evaluation_due, learning_rate_factor
from model.val_sample import quick_bits_per_char, val_sample
from tokenizer.base import prefix_of

FIRST_SAVE_SECONDS = 10.0
"""A run that has begun is saved for the first time after so long, if not sooner: the first minute counts as well."""


class Run:
    """The state of one run, and its loop."""

    def __init__(self, spec: RunSpec, processes: Processes | None = None) -> None:
        """A run at its beginning. Raises ConfigError for a device or processes that there are not, DataError when train
        has no whole window or val is empty.
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
        self.val_sample = val_sample(spec.splits["val"], tokenizer, config.val_characters)
        self.context_ids = context_of(tokenizer)
        self.token_num_chars = torch.from_numpy(tokenizer.token_num_chars.copy())
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
        self.best: dict[str, Any] | None = None
        self.num_lines = 0
        self.learning_rate = 0.0  # of the latest step
        self.val_sample_bits_per_char = math.nan  # the latest figure

    def start(self) -> None:
        """Clear what an earlier run left, and describe this one."""
        if not self.processes.is_main:
            return
        for name in (checkpoint.LAST, checkpoint.BEST, checkpoint.METRICS, *checkpoint.RESULTS):
            (self.folder / name).unlink(missing_ok=True)
        with atomic_write(self.folder / checkpoint.TOKENIZER_COPY) as file:
            file.write(self.spec.tokenizer_path.read_bytes())
        write_json(self.folder / checkpoint.CONFIG, self.identity)

    def resume(self, state: dict[str, Any]) -> None:
        """Take everything from `state`, which is of this run; the random numbers come last."""
        # The copy in the folder stays the run's own: a tokenizer file that tells another history is the same tokenizer.
        self.identity["tokenizer_sha256"] = state["tokenizer_sha256"]
        self.model.load_state_dict(state["model"])
        self.average = state["average"] or self.average
        self.optimizer.load_state_dict(state["optimizer"])
        self.spent = Spent(**state["spent"])
        self.best = state["best"]
        self.num_lines = state["metrics_lines"]
        before, now = state["environment"].get("num_processes", 1), self.processes.count
        if self.processes.is_main:
            say(f"{self.identity['contestant']}: going on {self._where()}, from {self.folder / checkpoint.LAST}")
            if before != now:
                say(f"the run had {before} process(es) until its last save and goes on with {now}")
        torch.set_rng_state(state["rng_cpu"])
        if self.device.type == "cuda" and state["rng_cuda"] is not None:
            torch.cuda.set_rng_state(state["rng_cuda"])

    def until_spent(self, progress: bool) -> TrainResult:
        """Take steps until the budget is spent; save last.pt now and then, at the end, and when asked to stop."""
        budget, first_step = self.config.budget, self.spent.steps
        processes, progress = self.processes, progress and self.processes.is_main
        processes.require_same(first_step, "the step they go on from")
        if processes.is_main:
            self.metrics = MetricsLog(self.folder / checkpoint.METRICS, self.num_lines)
        if progress:
            say(f"{self.identity['contestant']}: {self._how()}")
            say(f"{self.identity['contestant']}: val sample, for the figures while training: {self.val_sample}")
        label = f"{self.identity['contestant']}, seed {self.config.seed}"
        bar = ProgressBar(label, budget, self.spent, is_shown=progress)
        save_at = time.monotonic() + min(FIRST_SAVE_SECONDS, self.config.checkpoint_every_seconds)
        before, asked = self.spent.progress(budget), None
        with (
            bar,
            stop_on_signals(is_repeatable=processes.count > 1) as wish,
            contextlib.closing(self.steps()) as steps,
        ):
            for loss in steps:
                seconds, asked = processes.agree(self.spent.seconds, wish.signal_name)
                self.spent = dataclasses.replace(self.spent, seconds=seconds)
                after = self.spent.progress(budget)
                improved = self._log(loss, before, is_evaluation_due(before, after, self.config.val_every_fraction))
                if processes.count == 1:
                    asked = wish.signal_name  # it may have come since
                if improved or after >= 1.0 or asked or time.monotonic() >= save_at:
                    self._save()
                    save_at = time.monotonic() + self.config.checkpoint_every_seconds
                bar.show(self.spent, loss, self.val_sample_bits_per_char)
                if asked:
                    break
                before = after
            _, asked = processes.agree(self.spent.seconds, wish.signal_name)  # also one that came during the last save
        if asked:
            self._stop(asked)
        return self._result(first_step)

    def steps(self) -> Generator[float, None, None]:
        """Take steps until the budget is spent; yields the loss of each one's batch, in nats per token.

        Nothing is evaluated, logged or saved between two of them. Raises DivergedError.
        """
        with ParallelGradient(
            self.model,
            num_threads=torch.get_num_threads(),
            dtype=self.dtype,
            is_compiled=self.is_compiled,
            processes=self.processes,
        ) as gradient:
            while (progress := self.spent.progress(self.config.budget)) < 1.0:
                yield self._step(progress, gradient)

    def _step(self, progress: float, gradient: ParallelGradient) -> float:
        """One optimizer step at `progress`; returns the loss of its batch in nats per token.

        Raises DivergedError for a loss or gradient that is not finite, before it can reach the weights.
        """
        started = time.perf_counter()
        config = self.config
        factor = learning_rate_factor(
            progress,
            warmup_fraction=config.warmup_fraction,
            minimum=config.min_learning_rate_ratio,
            warmdown_fraction=config.warmdown_fraction if config.schedule == "linear" else None,
        )
        self.learning_rate = config.learning_rate * factor
        inputs, targets = self.windows.batch(self.spent.steps)
        num_chars = int(self.token_num_chars[targets].sum())
        if self.document_prefix:  # no character of the text, though a token holds it
            num_chars -= len(self.document_prefix) * self.windows.num_targets_at(self.spent.steps, self.document_starts)
        loss_nats = gradient.backward(inputs, targets)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), config.gradient_clip)
        self._require_finite(loss_nats, "loss")
        self._require_finite(norm.item(), "gradient")
        self.optimizer.step(self.learning_rate)
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
        last = self.folder / checkpoint.LAST
        kept = f"{last} keeps the last good state" if last.exists() else "no checkpoint had been saved yet"
        restart = checkpoint.restart_command(self.identity["contestant"])
        raise DivergedError(
            f"{self.identity['contestant']}: the {what} became {value} at step {self.spent.steps + 1} "
            f"(learning rate {self.learning_rate:.3g}); {kept}; lower train.learning_rate "
            f"(now {self.config.learning_rate:g}) and run {command(restart)}"
        )

    def _log(self, loss_nats: float, before: float, is_val_due: bool) -> bool:
        """Write a metrics line where one is due, take the val figure where that is due; whether best.pt is new."""
        if not is_val_due and self.spent.steps % self.config.log_every_steps:
            return False
        improved = self._evaluate() if is_val_due else False
        spent = self.spent
        record: dict[str, Any] = {
            "step": spent.steps,
            "characters": spent.characters,
            "tokens": spent.tokens,
            "flops": spent.flops,
            "seconds": round(spent.seconds, 3),
            "loss_nats": loss_nats,
            "learning_rate": self.learning_rate,
        }
        if is_val_due:
            record["val_sample_bits_per_char"] = self.val_sample_bits_per_char
        if self.processes.is_main:
            self.metrics.append(record)
        return improved

    def _evaluate(self) -> bool:
        """Take the val figure; save best.pt and return True if it is the lowest so far."""
        started = time.perf_counter()
        self.val_sample_bits_per_char = self.processes.from_main(self._val_figure)
        self._require_finite(self.val_sample_bits_per_char, "val sample figure")
        elapsed = self.spent.evaluation_seconds + time.perf_counter() - started
        self.spent = dataclasses.replace(self.spent, evaluation_seconds=elapsed)
        if self.best is not None and self.val_sample_bits_per_char >= self.best["val_sample_bits_per_char"]:
            return False
        self.best = {"step": self.spent.steps, "val_sample_bits_per_char": self.val_sample_bits_per_char}
        if self.processes.is_main:
            checkpoint.save(self.folder / checkpoint.BEST, {**self._state(), "model": self.scored_weights()})
        return True

    def _val_figure(self) -> float:
        """Bits per character on the val sample, by the scored weights."""
        with self.scored_model() as model:
            return quick_bits_per_char(model, self.val_sample, self.context_ids)

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

    def _where(self) -> str:
        """How far the run has come, in words."""
        budget, step = self.config.budget, self.spent.steps
        if budget.unit == "steps":
            return f"at step {step:,} of {budget.amount:,}"
        spent = round(self.spent.amount(budget.unit))
        return f"at step {step:,}, after {spent:,} of {budget.amount:,} {budget.unit}"

    def _how(self) -> str:
        """How the steps are computed, in words."""
        dtype = str(self.dtype).removeprefix("torch.")
        compiled = "with" if self.is_compiled else "without"
        count, threads = self.processes.count, f"{torch.get_num_threads()} threads"
        workers = threads if count == 1 else f"{count} processes of {threads}"
        return f"{self.device.type}, {workers}, {dtype} products, {compiled} torch.compile"

    def _state(self) -> dict[str, Any]:
        """Everything a checkpoint holds but what only resuming needs."""
        return {
            **self.identity,
            "model": self.model.state_dict(),
            "spent": dataclasses.asdict(self.spent),
            "best": self.best,
            "finished": self.spent.progress(self.config.budget) >= 1.0,
            "environment": {
                "device": self.device.type,
                "num_processes": self.processes.count,
                "num_threads": torch.get_num_threads(),  # of each
                "torch": str(torch.__version__),
                "dtype": str(self.dtype).removeprefix("torch."),
                "compile": self.is_compiled,
            },
        }

    def _save(self) -> None:
        if not self.processes.is_main:
            return
        resuming = {
            "optimizer": self.optimizer.state_dict(),
            "average": self.average if self.config.ema_decay > 0.0 else None,
            "metrics_lines": self.metrics.num_lines,
            "metrics_sha256": sha256_file(self.metrics.path),
            "rng_cpu": torch.get_rng_state(),
            "rng_cuda": torch.cuda.get_rng_state() if self.device.type == "cuda" else None,
        }
        checkpoint.save(self.folder / checkpoint.LAST, {**self._state(), **resuming})

    def _stop(self, signal_name: str) -> NoReturn:
        is_finished = self.spent.progress(self.config.budget) >= 1.0
        way_on = "the run is finished" if is_finished else "run the same command again to go on from there"
        message = (
            f"{signal_name}: stopped after step {self.spent.steps}, saved {self.folder / checkpoint.LAST}; {way_on}"
        )
        if self.processes.is_main:
            say(message)
        raise TrainingInterrupted(message)

    def _result(self, first_step: int) -> TrainResult:
        if self.best is None:
            raise RuntimeError("a finished run has been evaluated at least once")
        return result_of(self.folder, self.spent, self.best, num_steps_now=self.spent.steps - first_step)
