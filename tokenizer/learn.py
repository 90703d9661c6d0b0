"""Merges from sequences of symbols: by plain Python for a small text, else by the engine. The answer is the same."""

import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from tokenizer import small
from tokenizer.base import Int32Array
from tokenizer.reference import TieBreak, Training

PLAIN_CHARACTERS = 150_000
"""A text of so many characters at most is learned from in plain Python where the engine is not loaded yet: loading it
takes longer."""


def is_small(num_chars: int) -> bool:
    """Whether a text of `num_chars` is done sooner without the engine."""
    return num_chars <= PLAIN_CHARACTERS and "tokenizer.engine.loop" not in sys.modules


def learn(
    sequences: Sequence[Int32Array],
    base_bytes: Sequence[bytes],
    *,
    num_merges: int,
    min_pair_frequency: int,
    tie_break: TieBreak,
) -> Training:
    """Learn merges from `sequences` of base ids, in the order of the text; equal to `reference.train`.

    Raises TokenizerError where the text is too long for the engine.
    """
    if is_small(sum(map(len, sequences))):
        counts = Counter(tuple(sequence.tolist()) for sequence in sequences)
        return small.train(
            list(counts),
            list(counts.values()),
            base_bytes,
            num_merges=num_merges,
            min_pair_frequency=min_pair_frequency,
            tie_break=tie_break,
        )
    from tokenizer.engine import loop

    return loop.train(
        np.concatenate([np.zeros(0, dtype=np.int32), *sequences]),
        np.cumsum([0, *map(len, sequences)], dtype=np.int64),
        np.ones(len(sequences), dtype=np.int64),
        list(base_bytes),
        num_merges=num_merges,
        min_pair_frequency=min_pair_frequency,
        tie_break=tie_break,
    )
