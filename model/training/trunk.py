"""The trunk of a ladder: the training at constant rate that all rungs share, and where each rung leaves it."""

import json
import math
from collections.abc import Sequence
from typing import Any

from data.files import read_text, sha256_file, write_json, write_text
from model import checkpoint
from model.run_spec import RunSpec
from model.settings import Budget
from model.training.gradient import ParallelGradient
from model.training.loop import FIGURE, Run, describe_run
from model.training.processes import Processes
from model.training.schedule import is_evaluation_due, learning_rate_factor
from model.training.validation import validation_of
from model.val_sample import val_sample

_BEFORE, _SAMPLE = "progress_before", "val_sample_characters"


class Trunk(Run):
    """A run whose rate never comes down. It leaves the beginning of each rung in the rung's own folder."""

    def __init__(self, spec: RunSpec, rungs: Sequence[RunSpec], processes: Processes | None = None) -> None:
        """`rungs`, ascending by budget, are to leave the trunk `spec`, whose schedule is `constant`."""
        super().__init__(spec, processes)
        self.rungs = list(rungs)
        self.before = 0.0  # spent before the latest step, in the budget's unit

    def start(self) -> None:
        """As a run does. A rung that never has the trunk's rate leaves before the first step."""
        super().start()
        if self.processes.is_main:
            write_text(self.folder / checkpoint.METRICS, "")
        self.after_step()

    def resume(self, state: dict[str, Any]) -> None:
        """As a run does. A rung that would have left before is no longer waited for."""
        super().resume(state)
        if self.processes.is_main:
            write_json(self.folder / checkpoint.CONFIG, self.identity)  # its budget may have grown
        self.rungs = [rung for rung in self.rungs if not self._leaves(rung)]

    def is_over(self) -> bool:
        """Whether all rungs have left."""
        return not self.rungs

    def is_finished(self) -> bool:
        """Never: a greater budget goes on from here."""
        return False

    def goal(self) -> Budget:
        """Where the last rung leaves."""
        budget = self.config.budget
        return Budget(budget.unit, max(1, math.ceil(budget.amount * (1.0 - self.config.warmdown_fraction))))

    def after_step(self) -> None:
        """Let the rungs leave whose next step has another rate than the trunk's."""
        for rung in [rung for rung in self.rungs if self._leaves(rung)]:
            if self.processes.is_main:
                self._leave(rung)
            self.rungs.remove(rung)

    def _step(self, gradient: ParallelGradient) -> float:
        self.before = self.spent.amount(self.config.budget.unit)
        return super()._step(gradient)

    def more_of_record(self) -> dict[str, Any]:
        """What tells a rung whether a figure of the trunk is one of its own."""
        return {_BEFORE: self.before, _SAMPLE: self.val_sample.num_chars}

    def _leaves(self, rung: RunSpec) -> bool:
        spent = self.spent.amount(self.config.budget.unit)
        return learning_rate_factor(rung.train_config, spent) != learning_rate_factor(self.config, spent)

    def _leave(self, rung: RunSpec) -> None:
        """Write the beginning of `rung`: the trunk's state as its own. last.pt comes last and says that it is there.

        A budget that one step has taken from before its way down to beyond its end has none: the rung is then trained
        from its own beginning, which is a few steps long.
        """
        if self.spent.progress(rung.train_config.budget) >= 1.0:
            return
        identity = checkpoint.identity_of(rung)
        describe_run(rung, identity)
        lines = self._lines_of(rung)
        path = rung.folder / checkpoint.METRICS
        write_text(path, "".join(line + "\n" for line in lines))
        log = {"metrics_lines": len(lines), "metrics_sha256": sha256_file(path)}
        checkpoint.save(rung.folder / checkpoint.LAST, {**self._state(), **identity, **self.resuming(), **log})

    def _lines_of(self, rung: RunSpec) -> list[str]:
        """The trunk's lines of metrics.jsonl that a run of the rung's budget would have written as well."""
        config, budget = rung.train_config, rung.train_config.budget
        own = validation_of(config, rung.model_config, self.model.flops_per_token(), rung.splits["train"])
        num_chars = val_sample(rung.splits["val"], rung.tokenizer, own.max_characters).num_chars
        spent = "step" if budget.unit == "steps" else budget.unit
        lines = []
        for line in read_text(self.folder / checkpoint.METRICS).splitlines():
            record = json.loads(line)
            before, is_same_sample = record.pop(_BEFORE), record.pop(_SAMPLE) == num_chars
            is_due = is_evaluation_due(before / budget.amount, record[spent] / budget.amount, own.every_fraction)
            if not (is_due and is_same_sample):
                record.pop(FIGURE, None)
            if FIGURE in record or record["step"] % config.log_every_steps == 0:
                lines.append(json.dumps(record, ensure_ascii=False, allow_nan=False))
        return lines
