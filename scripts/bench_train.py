"""Tokens per second of a training step: both presets beside nanoGPT, in turns, and the bound that products set.

Give nanoGPT's folder with --nanogpt; without it a plain GPT-2 of torch's own modules, written here, stands in.
Ratios mean something, tokens per second only on this machine and in this run.
"""

import argparse
import os
import platform
from dataclasses import asdict
from pathlib import Path

import torch

from compare import bench_train
from compare.bench_train import Shape
from data.config import require
from data.files import write_json
from data.layout import Layout
from model.schedule import choose_dtype
from scripts import cli

SHAPES = {Shape(256, 0.0): 2.0, Shape(256, 0.1): 2.0, Shape(4096, 0.0): 1.5}  # and the ratio wanted


def main() -> None:
    """Verb `bench-train`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nanogpt", default="", help="folder with nanoGPT's model.py")
    parser.add_argument("--repeat", type=int, default=5, help="rounds, of which the best counts")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile")
    parser.add_argument("--patience", type=float, default=180.0, help="seconds after which a contestant is left out")
    arguments = parser.parse_args()
    require(arguments.repeat > 0, f"--repeat: must be 1 or more, found {arguments.repeat}")
    require(arguments.threads > 0, f"--threads: must be 1 or more, found {arguments.threads}")
    model = Path(arguments.nanogpt) / "model.py"
    require(not arguments.nanogpt or model.exists(), f"--nanogpt: {model} does not exist; name nanoGPT's folder")
    has_bfloat16 = choose_dtype("auto", torch.device("cpu")) == torch.bfloat16
    if not has_bfloat16:
        print("left out: bfloat16, for which this CPU has no instructions\n")
    entries = bench_train.contestants(
        arguments.nanogpt, arguments.threads, compiled=not arguments.no_compile, bfloat16=has_bfloat16
    )
    lines, targets = [], []
    for shape, wanted in SHAPES.items():
        own = bench_train.measure(
            shape, entries, repeat=arguments.repeat, num_threads=arguments.threads, patience=arguments.patience
        )
        lines += own
        print(f"{bench_train.table(own)}\n", flush=True)
        fastest = bench_train.best_peer(own)
        ratio = own[0].best / fastest.best if fastest and not own[0].failed else None
        reached = ratio is not None and ratio >= wanted
        targets.append({"shape": shape.name, "wanted": wanted, "found": ratio, "reached": reached})
    path = Layout(Path()).reports / "bench_train.json"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}"
    facts = {"torch": str(torch.__version__), "machine": machine, "threads": arguments.threads}
    write_json(path, {**facts, "lines": [asdict(line) for line in lines], "targets": targets})
    for target in targets:
        found = "not measured" if target["found"] is None else f"{target['found']:.2f}"
        verdict = "reached" if target["reached"] else "NOT REACHED"
        print(f"{target['shape']}: wanted {target['wanted']} times the best peer, found {found}: {verdict}")
    print(f"wrote {path}")


if __name__ == "__main__":
    cli.run(main)
