"""How a figure is written: in a width that a table can bear, whatever its size, and never as nan or inf."""

import math
from collections.abc import Sequence
from decimal import Decimal

MOST_COLUMNS = 15
"""Columns of a figure; one that takes more is written as a power of ten."""
NO_FIGURE = "–"
NOT_DIVIDED = "this text is not divided by spaces"

_LARGEST_FLOAT = 10**300
_MOST_SEEDS_COLUMNS = 24


def figure(value: float | None, form: str, most: int = MOST_COLUMNS) -> str:
    """`value` in the format `form`, or with three decimals and a power of ten where that takes over `most` columns.

    None is a dash. Raises ValueError for a number that is not finite: readers refuse those, with the file's name.

    >>> figure(1234.5, "{:,.1f}"), figure(10**220, "{:,}"), figure(None, "{:,}")
    ('1,234.5', '1.000e+220', '–')
    """
    if value is None:
        return NO_FIGURE
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"a figure must be finite, found {value}")
    if abs(value) >= _LARGEST_FLOAT:  # whole numbers may be larger than any float
        return f"{Decimal(value):.3e}"
    written = form.format(value)
    return written if len(written) <= most else f"{Decimal(value):.3e}"


def power_of_ten(log10: float) -> str:
    """The number with this logarithm, which may be beyond every float.

    >>> power_of_ten(400.5), power_of_ten(math.log10(9.9999))
    ('3.162e+400', '1.000e+1')
    """
    exponent = math.floor(log10)
    digits = f"{10.0 ** (log10 - exponent):.3f}"
    if digits == "10.000":
        digits, exponent = "1.000", exponent + 1
    return f"{digits}e{exponent:+d}"


def seeds_in_words(seeds: Sequence[int]) -> str:
    """The seeds themselves, or where they take too much room the first, the last and how many they are.

    >>> seeds_in_words([4, 2, 9]), seeds_in_words(range(1, 101))
    ('4 2 9', '1 … 100 (100)')
    """
    written = " ".join(map(str, seeds))
    return written if len(written) <= _MOST_SEEDS_COLUMNS else f"{seeds[0]} … {seeds[-1]} ({len(seeds)})"
