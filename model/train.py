"""Training one contestant under one budget: what the scripts call. The loop itself is `model.training.loop`."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from data.lock import alone
from model import checkpoint
from model.machine.threads import threads_of
from model.run_spec import RunSpec
from model.settings import Spent
from model.training import same_run
from model.training.loop import Run
from model.training.processes import Processes
from model.training.result import TrainResult, result_of


def train(
    spec: RunSpec,
    *,
    restart: bool = False,
    progress: bool = True,
    processes: Processes | None = None,
) -> TrainResult:
    """Train the run `spec` in its folder until its budget is spent, going on from last.pt if there is one.

    `restart` starts again. A finished run returns at once. Raises CheckpointError when last.pt is damaged or belongs
    to another tokenizer, text or configuration; DataError when train has no whole window or val is empty;
    DivergedError when the loss stops being finite; InUseError while another process is at work in the folder, also with
    `restart`; TrainingInterrupted after Ctrl-C, SIGTERM or SIGHUP. All `processes` of a run call it alike; it then
    raises ProcessLostError when one of them ends.
    """
    processes = processes or Processes()

    def saved() -> dict[str, Any] | None:
        return None if restart else saved_state(spec)

    state = processes.main_first(saved)
    if state is not None and state["finished"]:  # before a model and an optimizer are built, which takes seconds
        return _finished(spec.folder, state)
    with contextlib.ExitStack() as turn:
        processes.only_main(lambda: turn.enter_context(alone(spec.folder, patience_seconds=0.0)))
        state = processes.main_first(saved)  # once more: before the lock another process may have trained
        if state is not None and state["finished"]:
            return _finished(spec.folder, state)
        turn.enter_context(threads(threads_of(spec, state, processes)))
        run = processes.together(lambda: Run(spec, processes))
        if state is None:
            run.start()
        else:
            run.resume(state)
        return run.until_spent(progress)


def _finished(folder: Path, state: dict[str, Any]) -> TrainResult:
    return result_of(folder, Spent(**state["spent"]), state["best"], num_steps_now=0)


@contextlib.contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Let torch have `number` threads, or leave it its own choice."""
    before = torch.get_num_threads()
    if number is not None:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def saved_state(spec: RunSpec) -> dict[str, Any] | None:
    """last.pt of the run `spec`, None if there is none yet.

    Raises CheckpointError, naming the command that trains again, when it is damaged or was made from other inputs.
    """
    last = spec.folder / checkpoint.LAST
    if not last.exists():
        return None
    state = checkpoint.load(last)
    checkpoint.verify_tokenizer(state, last, spec.tokenizer, spec.tokenizer_path)
    same_run.verify_run(state, last, checkpoint.identity_of(spec))
    if state["finished"]:
        same_run.verify_environment(state, last, spec.train_config)
        same_run.verify_metrics(state, spec.folder / checkpoint.METRICS, last)
    return state
