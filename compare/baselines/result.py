"""What every baseline gives, and the rule by which those with an order choose it."""

import math
from dataclasses import dataclass

from compare.characters import Float64Array
from data.splits import Split

BITS_PER_BYTE = 8
MIN_GAIN = 0.002
"""Bits per character on val that another order must save; below that the search for the order ends."""


@dataclass(frozen=True)
class Result:
    """One baseline's figure on the test split."""

    bits_per_char: float
    note: str
    """How it was made, in one or two sentences for the reader of the report."""


def bits_per_char(nats: Float64Array) -> float:
    """Mean bits of characters with these nats (C,), of which there is at least one."""
    return float(nats.mean() / math.log(2))


def size_per_char(size: int, split: Split) -> float:
    """Bits per character of `split` where it takes `size` bytes."""
    return BITS_PER_BYTE * size / len(split.text)
