"""One contestant's losses by character, and how much of the document it could see before each.

Shapes: n tokens, C characters.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compare.characters import Float64Array, Int64Array, character_nats, character_starts
from model.evaluate import Evaluation
from model.windows import plan_windows

BoolArray = NDArray[np.bool_]

_NUM_CONTEXT = 1  # a newline is a base token of every kind, so the context before a document is one token


@dataclass(frozen=True)
class Losses:
    """One contestant's losses by character."""

    nats: Float64Array
    """(C,) under the rule of `compare.characters`."""
    token_starts: Int64Array
    """(tokens in which a character begins,) its first character."""
    holds_rest: BoolArray
    """(tokens in which a character begins,) whether the token begins with the last bytes of the character before."""
    context: Int64Array
    """(C,) characters of the document that were in sight."""


def losses_of(evaluation: Evaluation, codes: NDArray[np.uint32]) -> Losses:
    """The losses of a scored text whose characters have `codes` (C,)."""
    lengths = evaluation.token_num_chars
    token_starts = character_starts(evaluation)[:-1][lengths > 0]
    character_sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    byte_of_character = np.cumsum(character_sizes) - character_sizes
    byte_of_token = np.cumsum(evaluation.token_num_bytes, dtype=np.int64) - evaluation.token_num_bytes
    return Losses(
        nats=character_nats(evaluation),
        token_starts=token_starts,
        holds_rest=byte_of_character[token_starts] > byte_of_token[lengths > 0],
        context=np.repeat(context_seen(evaluation), lengths),
    )


def context_seen(evaluation: Evaluation) -> Int64Array:
    """(n,) characters of its document that were in sight when each token was predicted: those that begin in the tokens
    before it in the sliding window that scored it (`model.windows.plan_windows`)."""
    windows = plan_windows(
        evaluation.document_offsets,
        num_context=_NUM_CONTEXT,
        block_size=evaluation.block_size,
        stride=evaluation.stride,
    )
    begin, lengths, score_from = (column.numpy() for column in (windows.starts, windows.lengths, windows.score_from))
    shifts, first_target = windows.shifts.numpy(), windows.first_target.numpy()
    num_scored = lengths - score_from
    window = np.repeat(np.arange(len(begin)), num_scored)
    # Positions score_from … length - 1 of each window, one window after the other.
    position = np.arange(len(window)) - np.repeat(np.cumsum(num_scored) - num_scored, num_scored) + score_from[window]
    target = (begin + shifts)[window] + position
    # The input at a position is the target of the position before; those before the document are its context.
    first_in_sight = np.maximum(begin + shifts - 1, first_target)[window]
    starts = character_starts(evaluation)
    seen = np.zeros(len(evaluation.nats), dtype=np.int64)
    seen[target] = starts[target] - starts[first_in_sight]
    return seen


def bits_of(nats: Float64Array) -> float:
    """The sum of `nats` in bits."""
    return float(nats.sum()) / math.log(2)


def cut_characters(losses: Losses, classes: Int64Array) -> BoolArray:
    """(C,) whether a character is, whole or in part, in a token with characters of several `classes` (C,).

    A token of bytes may hold the rest of one character and the next one; both are cut then.
    """
    starts = losses.token_starts
    lowest, highest = (reduce.reduceat(classes, starts) for reduce in (np.minimum, np.maximum))
    before = np.where(losses.holds_rest, classes[starts - 1], classes[starts])
    is_mixed = np.minimum(lowest, before) != np.maximum(highest, before)
    cut: BoolArray = np.repeat(is_mixed, np.diff(np.append(starts, len(classes))))
    cut[starts[is_mixed & losses.holds_rest] - 1] = True
    return cut
