"""The contestants of `make bench-train`: one process each, which take turns, and the bound of bare matrix products.

A turn is a few whole training steps: forward, backward, clipping, optimizer. A process of its own gives each its own
threads and its own peak memory.
"""

import contextlib
import importlib.util
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bench.peers import _peak_bytes
from compare.table import as_text
from model.gpt import MiniGPT, MiniGPTConfig
from model.training.gradient import ParallelGradient
from model.training.optimizer import Optimizers
from model.training.schedule import MODERN_TRAIN, TrainConfig

EMBEDDING_DIM, NUM_HEADS, NUM_LAYERS, BLOCK_SIZE, BATCH_SIZE = 128, 4, 4, 128, 32
STEPS_A_TURN = 2
BOUND = "bound: bare products"
Step = Callable[[], Any]


@dataclass(frozen=True)
class Shape:
    """What varies between the tables."""

    vocab_size: int
    dropout: float

    @property
    def name(self) -> str:
        """In words."""
        return f"V = {self.vocab_size:,}, dropout {self.dropout:g}"


@dataclass
class Line:
    """One contestant of one table."""

    shape: str
    name: str
    tokens_per_second: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    failed: str = ""

    @property
    def best(self) -> float:
        """Of all turns."""
        return max(self.tokens_per_second)


def ours(shape: Shape, preset: str, num_threads: int) -> Step:
    """This project's training step."""
    model = MiniGPT(MiniGPTConfig(shape.vocab_size, dropout=shape.dropout, preset=preset)).train()  # type: ignore[arg-type]
    settings = MODERN_TRAIN["optimizer"] if preset == "modern" else "adamw"
    optimizer = Optimizers(model, TrainConfig(optimizer=settings))  # type: ignore[arg-type]
    shares = ParallelGradient(model, num_threads=num_threads)
    inputs, targets = batch(shape)

    def step() -> None:
        shares.backward(inputs, targets)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step(1e-3)

    return step


def batch(shape: Shape) -> tuple[torch.Tensor, torch.Tensor]:
    """Random ids: inputs and targets (B, T)."""
    ids = torch.randint(shape.vocab_size, (BATCH_SIZE, BLOCK_SIZE + 1))
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


class PlainGPT2(nn.Module):
    """Stands in for nanoGPT where its folder is not given: the same operations and first weights, by torch's modules.

    As in nanoGPT, `has_bias` says whether linear layers and norms have one.
    """

    def __init__(self, config: MiniGPTConfig, *, has_bias: bool = True) -> None:
        super().__init__()
        C, self.config = config.embedding_dim, config
        self.tokens, self.positions = nn.Embedding(config.vocab_size, C), nn.Embedding(config.block_size, C)
        names = ("norm1", "qkv", "out", "norm2", "up", "down")
        sizes = [(C, 3 * C), (C, C), (C, 4 * C), (4 * C, C)]
        self.layers = nn.ModuleList()
        for _ in range(config.num_layers):
            qkv, out, up, down = (nn.Linear(*size, bias=has_bias) for size in sizes)
            parts = (nn.LayerNorm(C, bias=has_bias), qkv, out, nn.LayerNorm(C, bias=has_bias), up, down)
            self.layers.append(nn.ModuleDict(dict(zip(names, parts, strict=True))))
        self.norm = nn.LayerNorm(C, bias=has_bias)
        for name, weight in self.named_parameters():
            if weight.ndim >= 2:  # GPT-2's: what is added to the residual stream starts smaller
                is_residual = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / (2 * config.num_layers) ** 0.5 if is_residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)

    def forward(self, ids: torch.Tensor, targets: torch.Tensor) -> tuple[None, torch.Tensor]:
        """(None, mean loss), which is the order of nanoGPT's results."""
        B, T = ids.shape
        F = nn.functional  # noqa: N806 - the field's name for it
        p = self.config.dropout if self.training else 0.0
        x = F.dropout(self.tokens(ids) + self.positions.weight[:T], p)
        for layer in self.layers:
            assert isinstance(layer, nn.ModuleDict)
            packed = layer["qkv"](layer["norm1"](x)).view(B, T, 3, self.config.num_heads, -1)
            q, k, v = packed.permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)
            x = x + F.dropout(layer["out"](mixed.transpose(1, 2).reshape(B, T, -1)), p)
            x = x + F.dropout(layer["down"](F.gelu(layer["up"](layer["norm2"](x)))), p)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return None, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def config_of(shape: Shape) -> MiniGPTConfig:
    """The sizes of every model of a table."""
    return MiniGPTConfig(
        shape.vocab_size,
        block_size=BLOCK_SIZE,
        embedding_dim=EMBEDDING_DIM,
        num_heads=NUM_HEADS,
        num_layers=NUM_LAYERS,
        dropout=shape.dropout,
    )


def nanogpt(folder: str, config: MiniGPTConfig) -> Any:
    """nanoGPT's own model, without biases as its train.py has it, from model.py in `folder`."""
    spec = importlib.util.spec_from_file_location("nanogpt_model", Path(folder) / "model.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sizes = module.GPTConfig(
        block_size=config.block_size, vocab_size=config.vocab_size, n_layer=config.num_layers,
        n_head=config.num_heads, n_embd=config.embedding_dim, dropout=config.dropout, bias=False,
    )  # fmt: skip
    with contextlib.redirect_stdout(None):  # it says how many parameters it has
        return module.GPT(sizes)


def peer(shape: Shape, folder: str, dtype: torch.dtype, is_compiled: bool) -> Step:
    """nanoGPT's model.py in `folder` with the step of its train.py, or the stand-in when there is no folder."""
    model: Any
    if folder:
        model = nanogpt(folder, config_of(shape))
        with contextlib.redirect_stdout(None):
            optimizer = model.configure_optimizers(0.1, 1e-3, (0.9, 0.99), "cpu")
    else:
        model = PlainGPT2(config_of(shape))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
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


def bare_products(shape: Shape) -> Step:
    """The matrix products of a step and nothing else: every weight three times, attention's two three times.

    Attention's are counted whole, without the half that the causal mask lets one leave out.
    """
    rows, C, head = BATCH_SIZE * BLOCK_SIZE, EMBEDDING_DIM, EMBEDDING_DIM // NUM_HEADS
    sizes = [(C, 3 * C), (C, C), (C, 4 * C), (4 * C, C)] * NUM_LAYERS + [(C, shape.vocab_size)]
    weights = {size: torch.randn(size) for size in sizes}
    inputs = {width: torch.randn(rows, width) for width in {size[0] for size in sizes}}
    q = torch.randn(BATCH_SIZE * NUM_HEADS, BLOCK_SIZE, head)
    p = torch.randn(BATCH_SIZE * NUM_HEADS, BLOCK_SIZE, BLOCK_SIZE)

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

    return step


def contestants(
    folder: str, num_threads: int, *, compiled: bool, bfloat16: bool
) -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Name -> which of the functions above makes its step, and its arguments after the shape."""
    who = "nanoGPT" if folder else "plain GPT-2"
    found: dict[str, tuple[str, tuple[Any, ...]]] = {
        "ours, gpt2": ("ours", ("gpt2", num_threads)),
        "ours, modern": ("ours", ("modern", num_threads)),
        BOUND: ("bare_products", ()),
    }
    for dtype in (torch.float32, torch.bfloat16) if bfloat16 else (torch.float32,):
        for is_compiled in (False, True) if compiled else (False,):
            how = f"{str(dtype).removeprefix('torch.')} {'compile' if is_compiled else 'eager'}"
            found[f"{who}, {how}"] = ("peer", (folder, dtype, is_compiled))
    return found


def serve(pipe: Connection, maker: str, shape: Shape, arguments: tuple[Any, ...], num_threads: int) -> None:
    """A contestant's process: build, warm up, then one turn for each message until None comes."""
    torch.set_num_threads(num_threads)
    torch.manual_seed(1)
    makers: dict[str, Callable[..., Step]] = {"ours": ours, "peer": peer, "bare_products": bare_products}
    step = makers[maker](shape, *arguments)
    step()
    step()
    pipe.send("ready")
    while pipe.recv() is not None:
        started = time.perf_counter()
        for _ in range(STEPS_A_TURN):
            step()
        tokens = STEPS_A_TURN * BATCH_SIZE * BLOCK_SIZE
        pipe.send((tokens / (time.perf_counter() - started), _peak_bytes()))


def measure(
    shape: Shape, entries: dict[str, tuple[str, tuple[Any, ...]]], *, repeat: int, num_threads: int, patience: float
) -> list[Line]:
    """`repeat` interleaved rounds of all `entries`; one that is not ready, or has no turn, in `patience` s is left."""
    context = multiprocessing.get_context("spawn")
    lines = {name: Line(shape.name, name) for name in entries}
    pipes: dict[str, Connection] = {}
    processes = []
    try:
        for name, (maker, arguments) in entries.items():  # one after the other, so that none compiles beside a turn
            pipe, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs, maker, shape, arguments, num_threads), daemon=True)
            process.start()
            processes.append(process)
            theirs.close()
            pipes[name] = pipe
            _ask(pipe, lines[name], patience)
        for _ in range(repeat):
            for name, pipe in pipes.items():
                if not lines[name].failed:
                    pipe.send(True)
                    answer = _ask(pipe, lines[name], patience)
                    if answer is not None:
                        lines[name].tokens_per_second.append(answer[0])
                        lines[name].peak_bytes = answer[1]
    finally:
        for process in processes:
            process.kill()
            process.join()
    return list(lines.values())


def _ask(pipe: Connection, line: Line, patience: float) -> Any:
    """The next message, or None with the reason in `line.failed`."""
    try:
        if pipe.poll(patience):
            return pipe.recv()
        line.failed = f"no answer in {patience:.0f} s"
    except EOFError:
        line.failed = "its process ended"
    return None


def best_peer(lines: Sequence[Line]) -> Line | None:
    """The fastest that is neither ours nor the bound."""
    peers = [line for line in lines if not line.name.startswith("ours") and line.name != BOUND and not line.failed]
    return max(peers, key=lambda line: line.best, default=None)


def table(lines: Sequence[Line]) -> str:
    """One shape's lines, aligned."""
    fastest = best_peer(lines)
    bound = next((line.best for line in lines if line.name == BOUND and not line.failed), math.nan)
    cells = [[lines[0].shape, "tokens/s", "median", "x best peer", "of bound", "peak MB"]]
    for line in lines:
        if line.failed:
            cells.append([f"{line.name}: {line.failed}", "-", "-", "-", "-", "-"])
            continue
        ratio = f"{line.best / fastest.best:.2f}" if fastest else "-"
        median = statistics.median(line.tokens_per_second)
        share = f"{line.best / bound:.0%}" if math.isfinite(bound) else "-"
        cells.append([line.name, f"{line.best:,.0f}", f"{median:,.0f}", ratio, share, f"{line.peak_bytes / 1e6:,.0f}"])
    return as_text(cells)
