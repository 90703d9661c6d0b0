"""Compile the kernels of tokenizers and model once, so that no later command waits; numba keeps them on disk."""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

PROCESSES = 2
"""Training a tokenizer is one kernel that takes as long to compile as all others together, so more would not help."""


def compile_training() -> None:
    """The engine that learns merges: one kernel for every kind and tie rule."""
    import numpy as np

    from tokenizer.engine.loop import train

    symbols = np.array([0, 1, 0, 1], dtype=np.int32)
    offsets, weights = np.array([0, 4], dtype=np.int64), np.ones(1, dtype=np.int64)
    train(symbols, offsets, weights, [b"a", b"b"], num_merges=1, min_pair_frequency=2, tie_break="first_seen")


def compile_encoding() -> None:
    """Counting pretokens, and encoding of short and long texts by both kinds, with and without a split pattern."""
    from tokenizer.bpe import BPETokenizer
    from tokenizer.bytelevel import BYTE_CHARACTERS
    from tokenizer.engine.counts import count_pretokens

    count_pretokens(["low lower lowest"], "gpt2")
    character = BPETokenizer(list(" elorstw"), [("l", "o")])
    byte = BPETokenizer(BYTE_CHARACTERS, [("l", "o")], kind="byte_bpe", split_pattern="gpt2")
    for tokenizer in (character, byte):
        tokenizer.encode_documents(["lowest", "low " * 5_000])  # too long for plain Python
        tokenizer.encode("lowest")


def compile_model() -> None:
    """One step of one tiny batch, with dropout, and one generated token, for both presets."""
    import torch

    from model.generation.cached import CachedGPT
    from model.gpt import MiniGPT
    from model.settings import PRESETS, MiniGPTConfig, TrainConfig
    from model.training.gradient import ParallelGradient
    from model.training.optimizer import Optimizers

    ids = torch.zeros(1, 4, dtype=torch.long)
    for preset in PRESETS:
        config = MiniGPTConfig(
            vocab_size=5, block_size=4, embedding_dim=8, num_heads=2, num_layers=1, dropout=0.1, preset=preset
        )
        model = MiniGPT(config).train()
        optimizers = Optimizers(model, TrainConfig())
        with ParallelGradient(model, num_threads=1) as gradient:
            gradient.backward(ids, ids)
            optimizers.step(1e-3, gradient.gradient)
        CachedGPT(model).next_logits(ids[:, :1])


PARTS: dict[str, Callable[[], None]] = {  # the longest first
    "training of tokenizers": compile_training,
    "encoding": compile_encoding,
    "model": compile_model,
}
"""What is compiled -> the function that does it. Each imports only what it needs, in its own process."""


def seconds_of(name: str) -> float:
    """Compile one of PARTS; returns how long that took, in seconds."""
    started = time.perf_counter()
    PARTS[name]()
    return time.perf_counter() - started


def compile_all() -> None:
    """Compile all parts, two at once, and print the seconds of each."""
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        for name, seconds in zip(PARTS, pool.map(seconds_of, PARTS), strict=True):
            print(f"  kernels, {name}: {seconds:.0f} s", flush=True)
