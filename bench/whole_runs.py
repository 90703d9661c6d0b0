"""Whole runs of `make train-…`, watched from outside: start-up, what logging and saving cost, and several processes.

A run is the real command in its own process. Its metrics.jsonl is watched: the first line tells when the first step
was taken, and between two lines whatever was not spent in training steps was spent beside them.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from compare.experiment import Experiment
from compare.steps import Steps
from compare.table import as_text
from model import checkpoint

CONTESTANT, SAVE_EVERY_SECONDS = "char", 5
"""Whose settings are taken, and how often it saves: twelve times as often as by default."""
_LOOK_EVERY = 0.02  # seconds
_PATIENCE = 120.0


@dataclass
class Watched:
    """What was seen of the runs with one number of processes."""

    processes: int
    threads: int
    """Of each process."""
    first_step: list[float] = field(default_factory=list)
    """Seconds from the command to the first line of metrics, which is written after the first step."""
    tokens_per_second: list[float] = field(default_factory=list)
    """In training steps."""
    overhead: list[float] = field(default_factory=list)
    """Share of the time between the first and the last line that was not spent in steps."""


def measure(experiment: Experiment, *, seconds: int, repeat: int, num_threads: int) -> list[Watched]:
    """`repeat` rounds of one process with `num_threads` threads and of as many processes with one, in turns."""
    steps = Steps(experiment, echo=lambda line: None)
    steps.encode(CONTESTANT)
    found = [Watched(1, num_threads), Watched(num_threads, 1)]
    for _ in range(repeat):
        for watched in found:
            _watch(experiment, watched, seconds)
    return found


def _watch(experiment: Experiment, watched: Watched, seconds: int) -> None:
    """One run of `seconds` of training, ended when it begins to score."""
    metrics = experiment.run_folder(CONTESTANT, experiment.seeds_of(CONTESTANT)[0]) / checkpoint.METRICS
    metrics.unlink(missing_ok=True)
    settings = {
        "root": experiment.layout.root,
        "ladder": "null",  # whose branches would be scored between two lines
        "train.budget": f"{{unit: seconds, amount: {seconds}}}",
        "train.checkpoint_every_seconds": SAVE_EVERY_SECONDS,
        "train.log_every_steps": 1,
        "train.val_every_fraction": 1.0,
    }
    several = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={watched.processes}"]
    command = [sys.executable, *(several if watched.processes > 1 else []), "-m", "scripts.train"]
    command += ["--config", str(experiment.path), "--contestant", CONTESTANT, "--force"]
    command += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    environment = os.environ | {"OMP_NUM_THREADS": str(watched.threads)}
    with tempfile.TemporaryFile("w+") as said:
        started = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
        try:
            first, seen_first = _line_after(metrics, process, 0.0)
            # The last second is left out: the val figure at the end belongs to no step and is no overhead.
            last, seen_last = _line_after(metrics, process, seconds - 1.0)
        except TimeoutError as error:
            said.seek(0)
            raise RuntimeError(f"{' '.join(command)}: {error}\n{said.read()}") from error
        finally:
            process.terminate()
            process.wait()
    in_steps = last["seconds"] - first["seconds"]
    watched.first_step.append(seen_first - started)
    watched.tokens_per_second.append((last["tokens"] - first["tokens"]) / in_steps)
    watched.overhead.append(1.0 - in_steps / (seen_last - seen_first))


def _line_after(metrics: Path, process: "subprocess.Popen[bytes]", seconds: float) -> tuple[dict[str, float], float]:
    """The latest line of `metrics` once it has at least `seconds` of training, and when it was seen.

    Raises TimeoutError when none comes, or none can come any more.
    """
    until = time.perf_counter() + _PATIENCE + seconds
    while time.perf_counter() < until:
        time.sleep(_LOOK_EVERY)
        is_over = process.poll() is not None
        lines = metrics.read_text().split("\n")[:-1] if metrics.exists() else []
        if lines and (record := json.loads(lines[-1]))["seconds"] >= seconds:
            return record, time.perf_counter()
        if is_over:
            raise TimeoutError(f"ended with exit code {process.returncode} before {seconds:g} s of training")
    raise TimeoutError(f"no line of metrics with {seconds:g} s of training in {_PATIENCE + seconds:.0f} s")


def table(found: list[Watched]) -> str:
    """Best and median of each, aligned."""
    cells = [
        ["make train-char, whole runs", "tokens/s", "median", "first step after s", "median", "overhead", "median"]
    ]
    for watched in found:
        processes = "1 process" if watched.processes == 1 else f"{watched.processes} processes"
        threads = "1 thread" if watched.threads == 1 else f"{watched.threads} threads"
        rates, starts, overheads = watched.tokens_per_second, watched.first_step, watched.overhead
        cells.append(
            [
                f"{processes}, {threads}{' each' if watched.processes > 1 else ''}",
                f"{max(rates):,.0f}",
                f"{statistics.median(rates):,.0f}",
                f"{min(starts):.1f}",
                f"{statistics.median(starts):.1f}",
                f"{min(overheads):.2%}",
                f"{statistics.median(overheads):.2%}",
            ]
        )
    return as_text(cells)
