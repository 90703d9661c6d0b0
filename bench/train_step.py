"""Tokens per second of a training step: both presets next to nanoGPT, in turns, and the bound that products set; what
a step costs whatever its number of windows; then whole runs of `make train-char` on the demo's text: start-up, what
saving and logging cost, one process or several.

Give nanoGPT's folder with --nanogpt; without it ours are measured alone.
Ratios mean something, tokens per second only on this machine and in this run.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bench import nanogpt, turns, whole_runs
from bench.step_table import BOUND, DEMO_SHAPES, SHAPES, Line, Shape, fixed_costs, table
from compare import cli
from compare.options import Parser, folder, number, whole
from data.files import write_json
from data.layout import Layout
from data.numbers import Range
from model.gpt import MiniGPT
from model.settings import PRESETS, SWITCHES, MiniGPTConfig, TrainConfig, with_preset
from model.training.gradient import ParallelGradient
from model.training.optimizer import NUM_SMALL_PRODUCTS, Optimizers

EMBEDDING_DIM, NUM_HEADS, NUM_LAYERS = 128, 4, 4
TOKENS_A_TURN = 8192
Step = Callable[[], Any]


def ours(shape: Shape, preset: str, num_threads: int) -> Step:
    """This project's training step."""
    model = MiniGPT(dataclasses.replace(config_of(shape), preset=preset, **dict.fromkeys(SWITCHES))).train()  # type: ignore[arg-type]
    _, train = with_preset({"preset": preset}, {})
    optimizer = Optimizers(model, TrainConfig(**train))
    shares = ParallelGradient(model, num_threads=num_threads)
    inputs, targets = batch(shape)

    def step() -> None:
        shares.backward(inputs, targets)
        shares.clip(1.0)
        optimizer.step(1e-3, shares.gradient, shares.run, shares.num_shares)

    return step


def batch(shape: Shape) -> tuple[torch.Tensor, torch.Tensor]:
    """Random ids: inputs and targets (B, T)."""
    ids = torch.randint(shape.vocab_size, (shape.batch_size, shape.block_size + 1))
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def config_of(shape: Shape) -> MiniGPTConfig:
    """The sizes of every model of a table."""
    return MiniGPTConfig(
        shape.vocab_size,
        block_size=shape.block_size,
        embedding_dim=EMBEDDING_DIM,
        num_heads=NUM_HEADS,
        num_layers=NUM_LAYERS,
        dropout=shape.dropout,
    )


def peer(shape: Shape, folder: str, dtype: torch.dtype, is_compiled: bool) -> Step:
    """nanoGPT's model.py in `folder` with the step of its train.py."""
    model: Any = nanogpt.from_folder(folder, config_of(shape))
    with contextlib.redirect_stdout(None):
        optimizer = model.configure_optimizers(0.1, 1e-3, (0.9, 0.99), "cpu")
    run = torch.compile(model) if is_compiled else model
    inputs, targets = batch(shape)

    def step() -> None:
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            _, loss = run(inputs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def bare_products(shape: Shape, preset: str) -> Step:
    """The matrix products of a step and nothing else: every weight three times, attention's two three times, and for
    `modern` those of Muon, with which each of its steps multiplies.

    Attention's are counted whole, without the half that the causal mask lets one leave out.
    """
    rows, C, head = shape.batch_size * shape.block_size, EMBEDDING_DIM, EMBEDDING_DIM // NUM_HEADS
    sizes = [(C, 3 * C), (C, C), (C, 4 * C), (4 * C, C)] * NUM_LAYERS + [(C, shape.vocab_size)]
    weights = {size: torch.randn(size) for size in sizes}
    inputs = {width: torch.randn(rows, width) for width in {size[0] for size in sizes}}
    q = torch.randn(shape.batch_size * NUM_HEADS, shape.block_size, head)
    p = torch.randn(shape.batch_size * NUM_HEADS, shape.block_size, shape.block_size)
    hidden = [torch.randn(NUM_LAYERS, C, factor * C) for factor in (3, 1, 4, 4)]
    grams = torch.randn(4 * NUM_LAYERS, C, C)

    def step() -> None:
        for size in sizes:
            x, w = inputs[size[0]], weights[size]
            y = x @ w
            y @ w.T
            x.T @ y
        for _ in range(NUM_LAYERS):
            for _ in range(2):
                torch.bmm(q, q.mT)
            for side in (p, p.mT) * 2:
                torch.bmm(side, q)
        if preset == "modern":
            for x in hidden:
                torch.bmm(x, x.mT)
                torch.bmm(grams[: len(x)], x)
            for _ in range(NUM_SMALL_PRODUCTS):
                torch.bmm(grams, grams)

    return step


def contestants(
    folder: str, num_threads: int, *, compiled: bool, bfloat16: bool
) -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Name -> which of the functions above makes its step, and its arguments after the shape."""
    found: dict[str, tuple[str, tuple[Any, ...]]] = {}
    for preset in PRESETS:
        found[f"ours, {preset}"] = ("ours", (preset, num_threads))
        found[f"{BOUND}, {preset}"] = ("bare_products", (preset,))
    if not folder:
        return found
    for dtype in (torch.float32, torch.bfloat16) if bfloat16 else (torch.float32,):
        for is_compiled in (False, True) if compiled else (False,):
            how = f"{str(dtype).removeprefix('torch.')} {'compile' if is_compiled else 'eager'}"
            found[f"nanoGPT, {how}"] = ("peer", (folder, dtype, is_compiled))
    return found


def serve(pipe: Connection, maker: str, shape: Shape, arguments: tuple[Any, ...], num_threads: int) -> None:
    """A contestant's process: build, warm up, then one turn for each message until None comes."""
    torch.set_num_threads(num_threads)
    torch.manual_seed(1)
    makers: dict[str, Callable[..., Step]] = {"ours": ours, "peer": peer, "bare_products": bare_products}
    step = makers[maker](shape, *arguments)
    step()
    step()
    pipe.send(turns.READY)
    tokens_a_step = shape.batch_size * shape.block_size
    num_steps = max(2, TOKENS_A_TURN // tokens_a_step)
    while pipe.recv() is not None:
        started = time.perf_counter()
        for _ in range(num_steps):
            step()
        pipe.send((num_steps * tokens_a_step / (time.perf_counter() - started), turns.peak_bytes()))


def measure(
    shape: Shape, entries: dict[str, tuple[str, tuple[Any, ...]]], *, repeat: int, num_threads: int, patience: float
) -> list[Line]:
    """`repeat` interleaved rounds of all `entries`; one that is not ready, or has no turn, in `patience` s is left."""
    lines = {name: Line(shape.name, name) for name in entries}
    targets = {name: (serve, (maker, shape, arguments, num_threads)) for name, (maker, arguments) in entries.items()}
    with turns.started(targets, patience=patience) as contestants_ready:
        for name, reason in contestants_ready.failed.items():
            lines[name].failed = reason
        for _ in range(repeat):
            for name in contestants_ready.pipes:
                line = lines[name]
                if line.failed:
                    continue
                try:
                    rate, line.peak_bytes = contestants_ready.ask(name, patience)
                    line.tokens_per_second.append(rate)
                except turns.NoAnswerError as error:
                    line.failed = str(error)
    return list(lines.values())


def main(argv: Sequence[str] | None = None) -> None:
    """Command `bench-train`."""
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
    peer_folder = str(arguments.nanogpt or "")
    nanogpt.check_folder(peer_folder)
    capabilities = torch.cpu.get_capabilities()
    has_bfloat16 = bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
    if not peer_folder:
        print("left out: nanoGPT, whose folder was not named (NANOGPT=folder); ours are measured alone\n")
    elif not has_bfloat16:
        print("left out: bfloat16, for which this CPU has no instructions\n")
    entries = contestants(peer_folder, arguments.threads, compiled=not arguments.no_compile, bfloat16=has_bfloat16)
    lines: list[Line] = []
    for shape in (*SHAPES, *DEMO_SHAPES):
        own = measure(
            shape, entries, repeat=arguments.repeat, num_threads=arguments.threads, patience=arguments.patience
        )
        lines += own
        print(f"{table(own)}\n", flush=True)
    print(f"{fixed_costs(lines)}\n", flush=True)
    runs = _whole_runs(arguments) if arguments.run_seconds else []
    path = Layout(Path()).reports / "bench_train.json"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}"
    facts = {"torch": str(torch.__version__), "machine": machine, "threads": arguments.threads}
    write_json(path, facts | {"lines": [asdict(line) for line in lines], "runs": [asdict(run) for run in runs]})
    print(f"wrote {path}")


def _whole_runs(arguments: argparse.Namespace) -> list[whole_runs.Watched]:
    """Measure them below the experiment's reports, and print their table."""
    arguments.set = []
    root = cli.experiment_of(arguments).layout.reports / "bench_run"
    arguments.set = [f"root={json.dumps(str(root))}"]
    found = whole_runs.measure(
        cli.experiment_of(arguments),
        seconds=arguments.run_seconds,
        repeat=arguments.repeat,
        num_threads=arguments.threads,
    )
    print(f"{whole_runs.table(found)}\n", flush=True)
    return found


if __name__ == "__main__":
    cli.run(main)
