"""The scoring pass: every token of every document is a target exactly once, by batches of padded windows.

The model reads k context ids (one encoded newline) before a document of n tokens: their sequence is
context + document, of which input position p predicts the token at p + 1. Windows lie inside one sequence.

Shapes: W windows, B batch, T block size, C channels, V vocabulary, n tokens of the split.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from tqdm import tqdm

from model.gpt import MiniGPT
from tokenizer.base import Int64Array

_LOGITS_AT_ONCE = 1 << 24  # at most 64 MiB of float32 logits at a time, whatever the vocabulary


class ScoringError(RuntimeError):
    """The measurement itself is wrong: a token or character was not scored exactly once. A bug, not a user's error."""


@dataclass(frozen=True)
class Windows:
    """W windows over the stream that holds all sequences, one after the other."""

    starts: torch.Tensor
    """(W,) first input position, in the stream."""
    lengths: torch.Tensor
    """(W,) input positions, at most T."""
    score_from: torch.Tensor
    """(W,) position inside the window from which it scores for the sliding figure; its length if it does not."""
    is_disjoint: torch.Tensor
    """(W,) whether it scores, with all its positions, for the disjoint figure."""
    shifts: torch.Tensor
    """(W,) stream position + shift = index of the target in the split, for targets that are not context."""
    first_target: torch.Tensor
    """(W,) index in the split of the document's first token; smaller indices are context and are not scored."""


def plan_windows(document_offsets: Int64Array, *, num_context: int, block_size: int, stride: int) -> Windows:
    """Lay the windows: sliding ones at multiples of `stride`, disjoint ones at multiples of `block_size`.

    Where the two coincide one forward pass serves both. A sliding window scores what the one before did not reach.
    """
    rows: list[tuple[int, int, int, bool, int, int]] = []
    offsets = document_offsets.tolist()
    for number, (begin, end) in enumerate(pairwise(offsets)):
        if begin == end:
            continue
        length = num_context + end - begin - 1  # input positions of this sequence
        base = begin + number * num_context
        num_sliding = 1 + max(0, -(-(length - block_size) // stride))
        sliding = {index * stride for index in range(num_sliding)}
        disjoint = set(range(0, length, block_size))
        for start in sorted(sliding | disjoint):
            size = min(block_size, length - start)
            score_from = size if start not in sliding else 0 if start == 0 else block_size - stride
            shift = begin - base - (num_context - 1)
            rows.append((base + start, size, score_from, start in disjoint, shift, begin))
    table = torch.tensor(rows, dtype=torch.long).reshape(-1, 6)
    # Longest first: windows of one length share a batch, so little is padded.
    columns = table[torch.argsort(table[:, 1], descending=True, stable=True)].unbind(1)
    return Windows(columns[0], columns[1], columns[2], columns[3].bool(), columns[4], columns[5])


def stream_of(ids: torch.Tensor, document_offsets: Int64Array, context_ids: list[int]) -> torch.Tensor:
    """All sequences, one after the other: (n + D * k,)."""
    context = torch.tensor(context_ids, dtype=torch.long)
    pieces = [context]
    bounds = document_offsets.tolist()
    for begin, end in pairwise(bounds):
        pieces += [ids[begin:end], context]
    return torch.cat(pieces[:-1])


@dataclass(frozen=True)
class Scores:
    """Losses of every token of a split, in nats."""

    sliding: NDArray[np.float32]
    """(n,) under sliding windows."""
    disjoint: NDArray[np.float32]
    """(n,) under disjoint windows."""


@torch.inference_mode()
def score_tokens(
    model: MiniGPT,
    ids: torch.Tensor,
    document_offsets: Int64Array,
    context_ids: list[int],
    *,
    stride: int,
    batch_size: int,
    description: str | None = None,
) -> Scores:
    """Nats of every token of `ids`; the training mode of `model` is restored afterwards.

    `description` names a progress bar, None shows none. Raises ScoringError unless every token was scored exactly
    once for either figure.
    """
    stream = stream_of(ids, document_offsets, context_ids)
    windows = plan_windows(
        document_offsets, num_context=len(context_ids), block_size=model.config.block_size, stride=stride
    )
    nats = torch.zeros(2, len(ids))  # sliding, disjoint
    counts = torch.zeros(2, len(ids), dtype=torch.int32)
    batches = torch.split(torch.arange(len(windows.starts)), batch_size)
    was_training = model.training
    model.eval()
    try:
        for rows in tqdm(batches, desc=description, disable=description is None, unit="batch", leave=False):
            _score_batch(model, stream, windows, rows, nats, counts)
    finally:
        model.train(was_training)
    for figure, count in zip(("sliding", "disjoint"), counts, strict=True):
        check_counts(count, figure)
    return Scores(nats[0].numpy(), nats[1].numpy())


def _score_batch(
    model: MiniGPT,
    stream: torch.Tensor,
    windows: Windows,
    rows: torch.Tensor,
    nats: torch.Tensor,
    counts: torch.Tensor,
) -> None:
    """Score the windows `rows` (B,) into `nats` and `counts`, both (2, n)."""
    lengths = windows.lengths[rows][:, None]  # (B, 1)
    positions = torch.arange(int(lengths.max()))[None, :]  # (1, T)
    # Padding repeats the last input; it stands behind all real positions, which causal attention cannot see.
    where = windows.starts[rows][:, None] + torch.minimum(positions, lengths - 1)  # (B, T)
    target_index = where + windows.shifts[rows][:, None]  # (B, T)
    is_target = (positions < lengths) & (target_index >= windows.first_target[rows][:, None])
    is_sliding = is_target & (positions >= windows.score_from[rows][:, None])
    is_disjoint = is_target & windows.is_disjoint[rows][:, None]
    needed = is_sliding | is_disjoint  # (B, T)

    device = next(model.parameters()).device
    hidden = model.hidden(stream[where].to(device))[needed.to(device)]  # (needed, C)
    losses = token_losses(model, hidden, stream[where + 1][needed].to(device)).cpu()
    indices = target_index[needed]
    for figure, chosen in enumerate((is_sliding[needed], is_disjoint[needed])):
        nats[figure, indices[chosen]] = losses[chosen]
        counts[figure].index_add_(0, indices[chosen], torch.ones(int(chosen.sum()), dtype=torch.int32))


def token_losses(model: MiniGPT, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Nats (P,) of `targets` (P,) after the hidden states (P, C), a bounded number of logits at a time."""
    rows = max(1, _LOGITS_AT_ONCE // model.config.vocab_size)
    losses = [
        nn.functional.cross_entropy(model.logits(part).float(), wanted, reduction="none")
        for part, wanted in zip(torch.split(hidden, rows), torch.split(targets, rows), strict=True)
    ]
    return torch.cat(losses) if losses else torch.zeros(0)


def check_counts(counts: torch.Tensor, figure: str) -> None:
    """Raise ScoringError unless each of the tokens behind `counts` (n,) was scored exactly once."""
    wrong = torch.nonzero(counts != 1).flatten()
    if len(wrong):
        first = int(wrong[0])
        raise ScoringError(
            f"{figure} windows: {len(wrong)} tokens were not scored exactly once; "
            f"token {first} was scored {int(counts[first])} times"
        )
