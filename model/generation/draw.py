"""Tokens drawn one after the other, several samples at once.

Shapes in the comments: R rows (samples at once), T time (tokens), V vocabulary.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from data.config import require
from data.numbers import SEED, Range
from model.generation.cached import CachedGPT
from model.gpt import MiniGPT

TEMPERATURE = Range(1e-30, 1000, or_zero=True)
"""Nearer to 0 the division of the logits would leave float32; 0 itself takes the likeliest token undivided."""
TOP_P = Range(1e-9, 1)


@dataclass(frozen=True)
class Sampling:
    """How a continuation is drawn. Raises ConfigError for a value out of range."""

    num_tokens: int
    """Tokens to draw, unless a stop string ends the text earlier."""
    temperature: float = 1.0
    """The logits are divided by it; 0 takes the likeliest token."""
    top_k: int | None = None
    """Only the k likeliest tokens are drawn; None or anything above the vocabulary: all."""
    top_p: float | None = None
    """Only the likeliest tokens that together reach this probability, after temperature and top_k; None: all."""
    stop: tuple[str, ...] = ()
    """The text ends before the first of these strings."""
    seed: int = 1
    """Of the first sample; the next ones have seed + 1, seed + 2, …"""

    def __post_init__(self) -> None:
        require(self.num_tokens >= 0, f"num_tokens must be at least 0, found {self.num_tokens}")
        TEMPERATURE.check("temperature", self.temperature)
        SEED.check("seed", self.seed)
        require(self.top_k is None or self.top_k >= 1, f"top_k must be at least 1 (or none), found {self.top_k}")
        if self.top_p is not None:
            TOP_P.check("top_p", self.top_p)
        require(all(self.stop), "a stop string is empty; give at least one character")


@dataclass(frozen=True)
class Drawn:
    """One token of one sample."""

    token: int
    log_probability: float
    """Natural logarithm of the model's own probability: before temperature, top_k and top_p."""


def window_starts(num_prompt: int, block_size: int) -> Iterator[int]:
    """The index of the first id that the model sees, for each token that is drawn after `num_prompt` ids.

    Of a long prompt the last block_size ids are seen. A window that would grow beyond block_size moves on by half a
    block, so that from then on the model sees between half a block and a whole one.

    >>> starts = window_starts(3, 4)
    >>> [next(starts) for _ in range(6)]
    [0, 0, 2, 2, 4, 4]
    """
    num_ids, start = num_prompt, max(0, num_prompt - block_size)
    while True:
        if num_ids - start > block_size:
            start += max(1, block_size // 2)
        yield start
        num_ids += 1


def draws(model: MiniGPT, ids: list[int], sampling: Sampling, num_rows: int, *, cache: bool) -> Iterator[list[Drawn]]:
    """Yield the next token of each of `num_rows` samples after `ids`, `num_tokens` times.

    With `cache` the keys and values of the window are kept. When the window moves on, what is left in it is read again
    with positions from 0, because each key depends on all that stood before it, and in a learned table on its position
    too. Without `cache` the whole window is read for every token. Both see the same windows and give the same tokens,
    as long as no two candidates are equally likely within the rounding of float32.
    """
    device = next(model.parameters()).device
    generators = [torch.Generator(device=device).manual_seed(sampling.seed + row) for row in range(num_rows)]
    context = torch.tensor([ids], device=device).expand(num_rows, -1)  # (R, T)
    cached = CachedGPT(model, num_rows)
    starts = window_starts(len(ids), model.config.block_size)
    latest_start, dropped = 0, 0  # the window's start; ids that `context` no longer holds
    for number in range(sampling.num_tokens):
        start = next(starts)
        context, dropped = context[:, start - dropped :], start
        if not cache:
            logits = _plain_logits(model, context)
        elif number == 0 or start != latest_start:
            cached.clear()
            logits = cached.next_logits(context)
        else:
            logits = cached.next_logits(context[:, -1:])
        latest_start = start
        tokens = [draw(row, sampling, generator) for row, generator in zip(logits, generators, strict=True)]
        drawn = torch.tensor(tokens, device=device)[:, None]
        chosen = torch.log_softmax(logits.float(), dim=-1).gather(1, drawn)[:, 0].tolist()
        context = torch.cat((context, drawn), dim=1)
        yield [Drawn(token, found) for token, found in zip(tokens, chosen, strict=True)]


@torch.inference_mode()
def _plain_logits(model: MiniGPT, ids: torch.Tensor) -> torch.Tensor:
    """Logits (R, V) after `ids` (R, T); dropout is off, and the model's mode is restored."""
    was_training = model.training
    model.eval()
    try:
        return model.logits(model.hidden(ids)[:, -1])
    finally:
        model.train(was_training)


@torch.inference_mode()
def draw(logits: torch.Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    """One id by `logits` (V,)."""
    if sampling.temperature == 0.0:
        return int(logits.argmax())
    if sampling.top_k is not None and sampling.top_k < len(logits):
        logits = _only(logits, torch.topk(logits, sampling.top_k).indices)
    # Subtracting the largest logit first keeps a tiny temperature from overflowing.
    probabilities = torch.softmax((logits - logits.max()) / sampling.temperature, dim=-1)
    if sampling.top_p is not None and sampling.top_p < 1.0:
        ordered, order = probabilities.sort(descending=True, stable=True)
        num_kept = 1 + int((ordered.cumsum(0)[:-1] < sampling.top_p).sum())
        kept = order[:num_kept]
        probabilities = torch.zeros_like(probabilities).index_copy(0, kept, probabilities[kept])
    return int(torch.multinomial(probabilities, 1, generator=generator))


def _only(logits: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """`logits` (V,) with all but the entries `kept` at minus infinity."""
    return torch.full_like(logits, float("-inf")).index_copy(0, kept, logits[kept])
