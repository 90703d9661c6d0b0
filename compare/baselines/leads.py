"""How sure the lead of a baseline over the best model is: the 95 % interval of the difference.

The n-gram has a figure for each character, so it is paired with the model document by document. A compressor has one
figure for the whole text; it is spread evenly over the characters, and the interval then holds the variance of the
model's own figures over documents. Training noise is the model's: a baseline has none.

Shapes: S seeds, U units (documents, or blocks of a single document).
"""

import math
from collections.abc import Sequence

import numpy as np

from compare.certainty.intervals import ASSUMED_SEED_SD, Combined, Estimate, Interval, over_seeds, over_text
from compare.certainty.pairs import BLOCK_CHARACTERS, block_units, document_units
from compare.characters import Float64Array
from model.evaluate import Evaluation


def lead_over(
    runs: Sequence[Evaluation],
    bits_per_char: float,
    nats: Float64Array | None = None,
    *,
    block_characters: int = BLOCK_CHARACTERS,
) -> Interval | None:
    """How many bits per character fewer a baseline needs than the model of `runs` (one evaluation for each seed).

    `nats` (C,) are the baseline's of each character; without them `bits_per_char` counts for every character alike.
    None for a text of a single block, over which nothing can vary.
    """
    units = document_units(runs)
    if np.count_nonzero(units.num_chars) < 2:
        units = block_units(runs, block_characters)
    baseline: Float64Array = bits_per_char * units.num_chars.astype(np.float64)
    if nats is not None:
        ends = np.cumsum(units.num_chars)
        sums = np.concatenate([[0.0], np.cumsum(nats)]) / math.log(2)
        baseline = sums[ends] - sums[ends - units.num_chars]
    text = over_text(np.asarray(units.bits.mean(axis=0), np.float64), baseline, units.num_chars)
    if text is None:
        return None
    leads = [run.bits_per_char - bits_per_char for run in runs]
    one_seed = Estimate(leads[0], ASSUMED_SEED_SD**2, math.inf)
    return Combined(text, over_seeds(leads) if len(leads) > 1 else one_seed).interval
