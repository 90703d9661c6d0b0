"""The training loop of one contestant: resumable bit for bit, interruptible, and exact about what it spent.

On the CPU a run is a pure function of its configuration, data and number of threads and processes: the windows of a
step follow from (seed, step), the learning rate from what was spent, dropout from torch's generator, which is saved and
restored. Only a budget in seconds depends on the machine. Several processes (`processes`) take every step
together; what is written, printed and evaluated is the work of process 0.
"""

import contextlib
import dataclasses
import math
import time
from typing import Any, NoReturn

from data.files import atomic_write, sha256_file, write_json
from data.show import counted
from model import checkpoint
from model.evaluate import context_of
from model.run_spec import RunSpec
from model.settings import Budget
from model.training.interrupt import TrainingInterrupted, stop_on_signals
from model.training.metrics import MetricsLog
from model.training.processes import Processes
from model.training.progress import ProgressBar, say
from model.training.result import TrainResult, result_of
from model.training.schedule import is_evaluation_due
from model.training.stepper import Stepper
from model.training.validation import validation_of
from model.val_sample import quick_bits_per_char, val_sample

FIRST_SAVE_SECONDS = 10.0
"""A run that has begun is saved for the first time after so long, if not sooner: the first minute counts as well."""
FIGURE = "val_sample_bits_per_char"
"""Key of a val figure in metrics.jsonl."""


class Run(Stepper):
    """The state of one run, and its loop."""

    def __init__(self, spec: RunSpec, processes: Processes | None = None) -> None:
        """A run at its beginning. Raises ConfigError for a device or processes that there are not, DataError when train
        has no whole window or val is empty.
        """
        super().__init__(spec, processes)
        self.validation = validation_of(
            spec.train_config, spec.model_config, self.model.flops_per_token(), spec.splits["train"]
        )
        self.val_sample = val_sample(spec.splits["val"], spec.tokenizer, self.validation.max_characters)
        self.context_ids = context_of(spec.tokenizer)
        self.best: dict[str, Any] | None = None
        self.num_lines = 0
        self.val_sample_bits_per_char = math.nan  # the latest figure

    def start(self) -> None:
        """Clear what an earlier run left, and describe this one."""
        if self.processes.is_main:
            describe_run(self.spec, self.identity)

    def resume(self, state: dict[str, Any]) -> None:
        """Take everything from `state`, which is of this run."""
        # The copy in the folder stays the run's own: a tokenizer file that tells another history is the same tokenizer.
        self.identity["tokenizer_sha256"] = state["tokenizer_sha256"]
        self.best = state["best"]
        self.num_lines = state["metrics_lines"]
        self.take(state)
        before, now = state["environment"].get("num_processes", 1), self.processes.count
        if self.processes.is_main:
            say(f"{self.spec.label}: going on {self._where()}, from {self.folder / checkpoint.LAST}")
            if before != now:
                say(f"the run had {before} process{'es' * (before != 1)} until its last save and goes on with {now}")

    def until_spent(self, progress: bool) -> TrainResult:
        """Take steps until the budget is spent; save last.pt now and then, at the end, and when asked to stop."""
        first_step = self.spent.steps
        self.until_over(progress)
        if self.best is None:
            raise RuntimeError("a finished run has been evaluated at least once")
        return result_of(self.folder, self.spent, self.best, num_steps_now=self.spent.steps - first_step)

    def until_over(self, progress: bool) -> None:
        """Take the steps, log and save. Raises TrainingInterrupted after a signal, once everything is saved."""
        budget, processes = self.config.budget, self.processes
        progress = progress and processes.is_main
        processes.require_same(self.spent.steps, "the step they go on from")
        if processes.is_main:
            self.metrics = MetricsLog(self.folder / checkpoint.METRICS, self.num_lines)
        if progress:
            if not (self.spec.part and self.spent.steps):  # the trunk has said it
                say(f"{self.spec.label}: {self._how()}")
            figures = counted(math.ceil(1.0 / self.validation.every_fraction), "figure")
            say(f"{self.spec.label}: val sample, for {figures} while training: {self.val_sample}")
        bar = ProgressBar(f"{self.spec.label}, seed {self.config.seed}", self.goal(), self.spent, is_shown=progress)
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
                improved = self._log(loss, is_evaluation_due(before, after, self.validation.every_fraction))
                self.after_step()
                if processes.count == 1:
                    asked = wish.signal_name  # it may have come since
                if improved or self.is_over() or asked or time.monotonic() >= save_at:
                    self._save()
                    save_at = time.monotonic() + self.config.checkpoint_every_seconds
                bar.show(self.spent, loss, self.val_sample_bits_per_char)
                if asked:
                    break
                before = after
            _, asked = processes.agree(self.spent.seconds, wish.signal_name)  # also one that came during the last save
        if asked:
            self._stop(asked)

    def goal(self) -> Budget:
        """Where the run ends, for its progress bar."""
        return self.config.budget

    def after_step(self) -> None:
        """What else belongs to a step, before it can be saved: nothing."""

    def _log(self, loss_nats: float, is_val_due: bool) -> bool:
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
            record[FIGURE] = self.val_sample_bits_per_char
        if self.processes.is_main:
            self.metrics.append(record | self.more_of_record())
        return improved

    def more_of_record(self) -> dict[str, Any]:
        """What else a line of metrics.jsonl holds."""
        return {}

    def _evaluate(self) -> bool:
        """Take the val figure; save best.pt and return True if these weights are the ones to score so far."""
        started = time.perf_counter()
        self.val_sample_bits_per_char = self.processes.from_main(self._val_figure)
        self._require_finite(self.val_sample_bits_per_char, "val sample figure")
        elapsed = self.spent.evaluation_seconds + time.perf_counter() - started
        self.spent = dataclasses.replace(self.spent, evaluation_seconds=elapsed)
        if not self._is_selected():
            return False
        self.best = {"step": self.spent.steps, "val_sample_bits_per_char": self.val_sample_bits_per_char}
        if self.processes.is_main:
            checkpoint.save(self.folder / checkpoint.BEST, {**self._state(), "model": self.scored_weights()})
        return True

    def _is_selected(self) -> bool:
        """Whether the weights with the latest figure are better than those in best.pt, by `train.selection`."""
        if self.config.selection == "last":
            return self.is_finished()
        return self.best is None or self.val_sample_bits_per_char < self.best["val_sample_bits_per_char"]

    def _val_figure(self) -> float:
        """Bits per character on the val sample, by the scored weights."""
        with self.scored_model() as model:
            return quick_bits_per_char(model, self.val_sample, self.context_ids)

    def is_finished(self) -> bool:
        """Whether its budget is spent, as last.pt records it."""
        return self.spent.progress(self.config.budget) >= 1.0

    def _where(self) -> str:
        """How far the run has come, in words."""
        budget, step = self.config.budget, self.spent.steps
        if budget.unit == "steps":
            return f"at step {step:,} of {budget.amount:,}"
        spent = round(self.spent.amount(budget.unit))
        return f"at step {step:,}, after {spent:,} of {budget.amount:,} {budget.unit}"

    def _state(self) -> dict[str, Any]:
        """Everything a checkpoint holds but what only resuming needs."""
        return {
            **self.identity,
            "model": self.model.state_dict(),
            "spent": dataclasses.asdict(self.spent),
            "best": self.best,
            "finished": self.is_finished(),
            "environment": self.environment(),
        }

    def _save(self) -> None:
        if not self.processes.is_main:
            return
        lines = {"metrics_lines": self.metrics.num_lines, "metrics_sha256": sha256_file(self.metrics.path)}
        checkpoint.save(self.folder / checkpoint.LAST, {**self._state(), **self.resuming(), **lines})

    def _stop(self, signal_name: str) -> NoReturn:
        way_on = "run the same command again to go on from there"
        if self.is_finished():
            left = f"{self.spec.part} is finished; run the same command again for what is left"
            way_on = left if self.spec.part else "the run is finished"
        message = (
            f"{signal_name}: stopped after step {self.spent.steps}, saved {self.folder / checkpoint.LAST}; {way_on}"
        )
        if self.processes.is_main:
            say(message)
        raise TrainingInterrupted(message)


def describe_run(spec: RunSpec, identity: dict[str, Any]) -> None:
    """Clear what an earlier run left in the folder of `spec`, and write there what the run with `identity` is."""
    for name in (checkpoint.LAST, checkpoint.BEST, checkpoint.METRICS, *checkpoint.RESULTS):
        (spec.folder / name).unlink(missing_ok=True)
    with atomic_write(spec.folder / checkpoint.TOKENIZER_COPY) as file:
        file.write(spec.tokenizer_path.read_bytes())
    write_json(spec.folder / checkpoint.CONFIG, identity)
