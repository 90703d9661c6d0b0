"""Training one contestant under one budget: what the scripts call. The loop itself is `model.training.loop`."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from data.errors import ConfigError
from data.lock import alone
from model import checkpoint
from model.gpt import MiniGPTConfig
from model.training.loop import Run, TrainingInterrupted, TrainResult, result_of
from model.training.processes import Processes
from model.training.schedule import Budget, Spent, TrainConfig
from tokenizer.base import Tokenizer
from tokenizer.encode_splits import EncodedSplit

__all__ = ["Budget", "Spent", "TrainConfig", "TrainResult", "TrainingInterrupted", "train"]


def train(
    *,
    contestant: str,
    tokenizer: Tokenizer,
    tokenizer_path: Path,
    splits: dict[str, EncodedSplit],
    model_config: MiniGPTConfig,
    train_config: TrainConfig,
    folder: Path,
    restart: bool = False,
    progress: bool = True,
    processes: Processes | None = None,
) -> TrainResult:
    """Train `contestant` in `folder` until its budget is spent, going on from last.pt if there is one.

    `restart` begins anew. A finished run returns at once. Raises CheckpointError when last.pt is damaged or belongs
    to another tokenizer, text or configuration; DataError when train has no whole window or val is empty;
    DivergedError when the loss stops being finite; InUseError while another process is at work in `folder`, also with
    `restart`; TrainingInterrupted after Ctrl-C, SIGTERM or SIGHUP. All `processes` of a run call it alike; it then
    raises ProcessLostError when one of them ends.
    """
    if model_config.vocab_size != tokenizer.vocab_size:
        raise ConfigError(
            f"the model has vocab_size {model_config.vocab_size}, but {tokenizer_path} has {tokenizer.vocab_size} "
            "tokens; take vocab_size from the tokenizer"
        )
    identity = checkpoint.identity_of(
        contestant=contestant,
        tokenizer=tokenizer,
        tokenizer_path=tokenizer_path,
        splits=splits,
        model_config=model_config,
        train_config=train_config,
    )
    processes = processes or Processes()

    def saved() -> dict[str, Any] | None:
        return None if restart else saved_state(folder, identity, tokenizer, tokenizer_path, train_config)

    state = processes.main_first(saved)
    if state is not None and state["finished"]:  # before a model and an optimizer are built, which takes seconds
        return _finished(folder, state)
    with contextlib.ExitStack() as turn, _threads(train_config.num_threads):
        processes.only_main(lambda: turn.enter_context(alone(folder, patience_seconds=0.0)))
        state = processes.main_first(saved)  # once more: before the lock another process may have trained
        if state is not None and state["finished"]:
            return _finished(folder, state)
        run = processes.together(
            lambda: Run(tokenizer, splits, model_config, train_config, folder, identity, processes)
        )
        if state is None:
            run.start(tokenizer_path)
        else:
            run.resume(state)
        return run.until_spent(progress)


def _finished(folder: Path, state: dict[str, Any]) -> TrainResult:
    return result_of(folder, Spent(**state["spent"]), state["best"], num_steps_now=0)


@contextlib.contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """Let torch have `number` threads, or leave it its own choice."""
    before = torch.get_num_threads()
    if number is not None:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def saved_state(
    folder: Path, identity: dict[str, Any], tokenizer: Tokenizer, tokenizer_path: Path, train_config: TrainConfig
) -> dict[str, Any] | None:
    """last.pt of the run in `folder`, None if there is none yet; it must be of `identity` (checkpoint.identity_of).

    Raises CheckpointError, naming the command that trains anew, when it is damaged or was made from other inputs.
    """
    last = folder / checkpoint.LAST
    if not last.exists():
        return None
    state = checkpoint.load(last)
    checkpoint.verify_tokenizer(state, last, tokenizer, tokenizer_path)
    checkpoint.verify_run(state, last, identity)
    if state["finished"]:
        checkpoint.verify_environment(state, last, train_config)
        checkpoint.verify_metrics(state, folder / checkpoint.METRICS, last)
    return state
