"""Training seconds to a stated val loss: both presets next to nanoGPT's model and settings, in turns.

Every contestant is a process of its own and trains for a slice, is evaluated, and waits for its next turn; what the
machine does to one it does to all. Evaluation is not counted. The measure is the same for all: mean nats per character
over the whole val text, in windows of nanoGPT's 64 characters, so that none sees more context.
"""

import dataclasses
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench import nanogpt, turns
from compare.table import as_text
from data.files import sha256_text
from data.splits import Split
from model.run_spec import RunSpec
from model.settings import Budget, MiniGPTConfig, TrainConfig, with_preset
from model.training.loop import Run
from tokenizer.encode_splits import load_encoded, write_encoded
from tokenizer.train import TokenizerConfig, train_tokenizer

SIZES: dict[str, Any] = {"block_size": 64, "embedding_dim": 128, "num_heads": 4, "num_layers": 4, "dropout": 0.0}
_STEPS_AND_RATES: dict[str, dict[str, Any]] = {
    "modern": {
        "steps": 310,
        "batch_size": 16,
        "learning_rate": 6e-3,
        "min_learning_rate_ratio": 0.0,
    },
    "gpt2": {"steps": 1000, "batch_size": 16, "learning_rate": 4e-3},
}
OURS = {name: own | with_preset({"preset": name}, own)[1] for name, own in _STEPS_AND_RATES.items()}
EVALUATION_WINDOWS = 64  # at once
Evaluate = Callable[[], float]


@dataclass(frozen=True)
class Task:
    """What all contestants of a speedrun share."""

    train_text: str
    val_text: str
    target: float
    """Mean nats per character to reach on `val_text`."""
    num_threads: int
    slice_seconds: float = 0.5
    """Training between two evaluations."""
    ours: dict[str, dict[str, Any]] = field(default_factory=lambda: OURS)
    """Preset -> its `steps` and its settings of TrainConfig."""


@dataclass
class Result:
    """One contestant's runs, one entry for each seed."""

    name: str
    settings: str
    seconds: list[float | None] = field(default_factory=list)
    """Training time at the first evaluation at or below the target; None when it was not reached."""
    spent: list[float] = field(default_factory=list)
    """Training time of the whole run, as far as it went."""
    best: list[float] = field(default_factory=list)
    """Lowest val loss."""
    steps: list[int] = field(default_factory=list)
    """Steps taken."""


def ids_of(task: Task) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Train and val text as character ids, in the order of code points, and the size of the vocabulary."""
    alphabet = sorted(set(task.train_text) | set(task.val_text))
    number = {character: index for index, character in enumerate(alphabet)}
    train, val = (torch.tensor([number[c] for c in text]) for text in (task.train_text, task.val_text))
    return train, val, len(alphabet)


def val_loss(loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], ids: torch.Tensor, block_size: int) -> float:
    """Mean nats over every character of `ids` but the first, in windows side by side; the last one may be shorter."""
    num_targets = len(ids) - 1
    border = num_targets // block_size * block_size
    inputs, targets = (ids[shift : shift + border].view(-1, block_size) for shift in (0, 1))
    parts = [
        (inputs[row : row + EVALUATION_WINDOWS], targets[row : row + EVALUATION_WINDOWS])
        for row in range(0, len(inputs), EVALUATION_WINDOWS)
    ]
    if border < num_targets:
        parts.append((ids[None, border:-1], ids[None, border + 1 :]))
    total = 0.0
    with torch.no_grad():
        for part in parts:
            total += loss(*part).item() * part[1].numel()
    return total / num_targets


def nanogpt_steps(task: Task, seed: int, folder: str) -> tuple[Iterator[None], Evaluate]:
    """nanoGPT's training loop by its published settings: an iterator of steps, and its val loss."""
    torch.manual_seed(seed)
    train, val, vocab_size = ids_of(task)
    config = MiniGPTConfig(vocab_size, **SIZES)
    model: Any = nanogpt.from_folder(folder, config) if folder else nanogpt.PlainGPT2(config, has_bias=False)

    def evaluate() -> float:
        model.eval()
        loss = val_loss(lambda inputs, targets: model(inputs, targets)[1], val, config.block_size)
        model.train()
        return loss

    return nanogpt.training_steps(model, train, config.block_size), evaluate


def our_steps(task: Task, seed: int, preset: str) -> tuple[Iterator[float], Evaluate]:
    """This project's own training (model/training/loop.py) on the same text: an iterator of steps, and its val loss."""
    settings = dict(task.ours[preset])
    budget = Budget("steps", settings.pop("steps"))
    splits = {name: _split(name, text) for name, text in (("train", task.train_text), ("val", task.val_text))}
    splits["test"] = splits["val"]
    tokenizer, _ = train_tokenizer(TokenizerConfig(kind="char"), splits)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_encoded(folder, splits, tokenizer)
        path = folder / "tokenizer.json"
        tokenizer.save(path)
        on_disk = load_encoded(folder, tokenizer, tokenizer_path=path, make="make speedrun")
        # In memory: the folder is gone when the first step is taken.
        encoded = {split: replace(found, ids=found.ids.clone()) for split, found in on_disk.items()}
        model_settings, train_settings = with_preset({"preset": preset, **SIZES}, settings)
        spec = RunSpec(
            contestant=preset,
            tokenizer=tokenizer,
            tokenizer_path=path,
            splits=encoded,
            model_config=MiniGPTConfig(tokenizer.vocab_size, **model_settings),
            train_config=TrainConfig(budget=budget, seed=seed, device="cpu", **train_settings),
            folder=folder,
        )
        run = Run(spec)

    def evaluate() -> float:
        with run.scored_model() as model:
            return val_loss(model.loss, encoded["val"].ids, SIZES["block_size"])

    return run.steps(), evaluate


def _split(name: str, text: str) -> Split:
    return Split(name, text, np.array([0, len(text)], dtype=np.int64), sha256_text(text))


def contestants(folder: str, ours: dict[str, dict[str, Any]] | None = None) -> dict[str, tuple[str, str, str]]:
    """Name -> the function that makes its steps, that function's argument, and its settings in words."""
    who = "nanoGPT" if folder else "nanoGPT's settings"
    found = {f"ours, {preset}": ("ours", preset, in_words(settings)) for preset, settings in (ours or OURS).items()}
    return found | {who: ("nanogpt", folder, in_words(nanogpt.SETTINGS))}


def in_words(settings: dict[str, Any]) -> str:
    """Settings on one line.

    >>> in_words({"steps": 5, "learning_rate": 0.001})
    'steps 5, learning_rate 0.001'
    """
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def serve(pipe: Connection, maker: str, argument: str, task: Task, seed: int) -> None:
    """A contestant's process: for each message one slice of training; answers (seconds, steps, val loss, is done)."""
    torch.set_num_threads(task.num_threads)
    makers: dict[str, Callable[[Task, int, str], tuple[Iterator[object], Evaluate]]]
    makers = {"ours": our_steps, "nanogpt": nanogpt_steps}
    steps, evaluate = makers[maker](task, seed, argument)
    spent, num_steps, is_done = 0.0, 0, False
    pipe.send(turns.READY)
    while pipe.recv() is not None:
        started = time.perf_counter()
        while not is_done and time.perf_counter() - started < task.slice_seconds:
            is_done = next(steps, "end") == "end"
            num_steps += not is_done
        spent += time.perf_counter() - started
        pipe.send((spent, num_steps, evaluate(), is_done))


def measure(
    task: Task, seeds: Sequence[int], folder: str, *, echo: Callable[[str], None] = print, limit: float = math.inf
) -> list[Result]:
    """All contestants for each of `seeds`, in turns; one that has spent `limit` seconds of training is stopped."""
    entries = contestants(folder, task.ours)
    results = {name: Result(name, settings) for name, (_, _, settings) in entries.items()}
    for seed in seeds:
        targets = {name: (serve, (maker, argument, task, seed)) for name, (maker, argument, _) in entries.items()}
        with turns.started(targets) as running:
            for name, reason in running.failed.items():
                raise RuntimeError(f"{name}, seed {seed}: {reason}")
            _race(task, running, results, limit)
        for result in results.values():
            reached = result.seconds[-1]
            when = f"reached after {reached:.1f} s" if reached is not None else "not reached"
            echo(f"seed {seed}: {result.name}: {when}, {result.steps[-1]:,} steps, best {result.best[-1]:.3f} nats")
    return list(results.values())


def _race(task: Task, turns_of: turns.Turns, results: dict[str, Result], limit: float) -> None:
    """Slices in turns until each has reached the target, or has no steps left."""
    for name in turns_of.pipes:
        results[name].best.append(math.inf)
    running = list(turns_of.pipes)
    while running:
        for name in list(running):
            spent, num_steps, loss, is_done = turns_of.ask(name)
            own = results[name]
            own.best[-1] = min(own.best[-1], loss)
            if loss <= task.target or is_done or spent >= limit:
                running.remove(name)
                own.seconds.append(spent if loss <= task.target else None)
                own.spent.append(spent)
                own.steps.append(num_steps)


def table(task: Task, results: Sequence[Result]) -> str:
    """Best and median time, and the median as a share of nanoGPT's; where it was not reached, time spent and `>`."""
    cells = [[f"to {task.target:g} nats/char", "reached", "best s", "median s", "of nanoGPT's", "steps", "best loss"]]
    theirs, is_bound = _median(results[-1])
    for result in results:
        times = [time for time in result.seconds if time is not None]
        median, is_open = _median(result)
        share = "-" if is_open else f"{'<' if is_bound else ''}{median / theirs:.0%}"
        cells.append(
            [
                result.name,
                f"{len(times)} of {len(result.seconds)}",
                f"{min(times):.1f}" if times else "-",
                f"{'>' if is_open else ''}{median:.1f}",
                share,
                f"{round(statistics.median(result.steps)):,}",
                f"{min(result.best):.3f}",
            ]
        )
    return as_text(cells)


def _median(result: Result) -> tuple[float, bool]:
    """The median time, and whether it is only a lower bound because too few runs reached the target."""
    times = [
        (spent if reached is None else reached, reached is None)
        for reached, spent in zip(result.seconds, result.spent, strict=True)
    ]
    ordered = sorted(times, key=lambda pair: (pair[1], pair[0]))  # those that did not reach it would take longer
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    return statistics.mean(pair[0] for pair in middle), any(pair[1] for pair in middle)


def as_json(task: Task, results: Sequence[Result]) -> dict[str, Any]:
    """Everything measured, and on what."""
    facts = {"target": task.target, "slice_seconds": task.slice_seconds, "num_threads": task.num_threads}
    texts = {"train_characters": len(task.train_text), "val_characters": len(task.val_text)}
    hashes = {"train_sha256": sha256_text(task.train_text), "val_sha256": sha256_text(task.val_text)}
    return {**facts, **texts, **hashes, "sizes": SIZES, "results": [dataclasses.asdict(result) for result in results]}
