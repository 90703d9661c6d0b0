"""Tokens per second of a training step: both presets beside nanoGPT, in turns, and the bound that products set; then
whole runs of `make train-char` on the demo's text: start-up, what saving and logging cost, one process or several.

Give nanoGPT's folder with --nanogpt; without it a plain GPT-2 of torch's own modules, written here, stands in.
Ratios mean something, tokens per second only on this machine and in this run.
"""

import argparse
import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from bench import step_times as bench_train
from bench import whole_runs as bench_run
from bench.step_times import Shape
from bench.texts import Target, as_targets, at_least, below
from compare import cli
from compare.options import Parser, folder, number, whole
from data.config import require
from data.files import write_json
from data.layout import Layout
from data.numbers import Range
from model.training.schedule import choose_dtype

SHAPES = {Shape(256, 0.0): 2.0, Shape(256, 0.1): 2.0, Shape(4096, 0.0): 1.5}  # and the ratio wanted


def main(argv: Sequence[str] | None = None) -> None:
    """Verb `bench-train`."""
    parser = Parser(description=__doc__)
    parser.add_argument("--nanogpt", type=folder, help="folder with nanoGPT's model.py")
    parser.add_argument("--repeat", type=whole(Range(1, 1000)), default=5, help="rounds, of which the best counts")
    parser.add_argument("--threads", type=whole(Range(1, 1024)), default=torch.get_num_threads())
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile")
    parser.add_argument(
        "--patience",
        type=number(Range(0.001, 10**6)),
        default=180.0,
        help="seconds after which a contestant is left out",
    )
    parser.add_argument(
        "--run-seconds", type=whole(Range(0, 10**6)), default=20, help="of each whole run; 0: without whole runs"
    )
    parser.add_argument("--config", default="demo", help="the experiment of the whole runs")
    arguments = parser.parse_args(argv)
    nanogpt = str(arguments.nanogpt or "")
    model = Path(nanogpt) / "model.py"
    require(not nanogpt or model.exists(), f"--nanogpt: {model} does not exist; name nanoGPT's folder")
    has_bfloat16 = choose_dtype("auto", torch.device("cpu")) == torch.bfloat16
    if not has_bfloat16:
        print("left out: bfloat16, for which this CPU has no instructions\n")
    entries = bench_train.contestants(
        nanogpt, arguments.threads, compiled=not arguments.no_compile, bfloat16=has_bfloat16
    )
    lines: list[bench_train.Line] = []
    targets: list[Target] = []
    for shape, wanted in SHAPES.items():
        own = bench_train.measure(
            shape, entries, repeat=arguments.repeat, num_threads=arguments.threads, patience=arguments.patience
        )
        lines += own
        print(f"{bench_train.table(own)}\n", flush=True)
        fastest = bench_train.best_peer(own)
        ratio = own[0].best / fastest.best if fastest and not own[0].failed else None
        targets.append(at_least(shape.name, "times the best peer", wanted, ratio))
    runs = _whole_runs(arguments, targets) if arguments.run_seconds else []
    path = Layout(Path()).reports / "bench_train.json"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}"
    facts = {"torch": str(torch.__version__), "machine": machine, "threads": arguments.threads}
    measured = {"lines": [asdict(line) for line in lines], "runs": [asdict(run) for run in runs]}
    write_json(path, {**facts, **measured, "targets": [asdict(target) for target in targets]})
    print(f"{as_targets(targets)}\n\nwrote {path}")


def _whole_runs(arguments: argparse.Namespace, targets: list[Target]) -> list[bench_run.Watched]:
    """Measure them, print their table, and add what they were to reach."""
    arguments.set = []
    root = cli.experiment_of(arguments).layout.reports / "bench_run"
    arguments.set = [f"root={json.dumps(str(root))}"]
    found = bench_run.measure(
        cli.experiment_of(arguments),
        seconds=arguments.run_seconds,
        repeat=arguments.repeat,
        num_threads=arguments.threads,
    )
    print(f"{bench_run.table(found)}\n", flush=True)
    alone, several = found
    row = "whole runs"
    targets.append(below(row, "seconds from the command to the first step, one process", 5, min(alone.first_step)))
    what = f"% of the time beside steps, median, saving every {bench_run.SAVE_EVERY_SECONDS} s"
    targets.append(below(row, what, 2, 100 * statistics.median(alone.overhead)))
    ratio = max(several.tokens_per_second) / max(alone.tokens_per_second)
    what = f"tokens/s of {several.processes} processes, in times one process with {alone.threads} threads"
    targets.append(at_least(row, what, 1, ratio))
    return found


if __name__ == "__main__":
    cli.run(main)
