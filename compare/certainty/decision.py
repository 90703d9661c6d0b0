"""From a difference and its noise to one of three outcomes, and to what would decide an undecided one."""

import math
from bisect import bisect_left
from typing import Literal

from compare.certainty.intervals import Combined, Estimate

Outcome = Literal["a", "b", "equal", "undecided"]
"""Which of a pair is better, that they are equal, or that it cannot be said."""

_MOST_SEEDS, _MOST_TIMES_TEXT = 50, 1000  # beyond them more of the same does not decide in practice


def decide(
    text: Estimate | None, seeds: Estimate, margin: float, *, num_seeds: int, num_units: int, unit: str
) -> tuple[Outcome, str]:
    """The outcome of a difference a - b, and where it is undecided the reason with what would decide it.

    Equal: the whole interval lies within the margin (a test of equivalence). Better: the interval lies on one side of
    zero, and the lead is not smaller than the margin. Anything else is undecided.
    """
    if text is None:
        return "undecided", "the test text is too short for an interval; give more test text"
    both = Combined(text, seeds)
    if both.interval.is_within(margin):
        return "equal", ""
    if not both.interval.holds_zero and abs(both.difference) >= margin:
        return ("a" if both.difference < 0 else "b"), ""
    if num_seeds == 1 and not text.interval.holds_zero:
        why = (
            f"one seed: another training may change the difference by {1.96 * math.sqrt(seeds.variance):.3f} "
            "(assumed noise), which is not excluded"
        )
    elif both.interval.holds_zero:
        why = f"the interval of the difference includes zero and reaches beyond {margin:.3f}"
    else:
        why = f"the lead is below {margin:.3f}, the smallest difference that counts, and may be above it"
    return "undecided", f"{why}; {_what_decides(text, seeds, margin, num_seeds, num_units, unit)}"


def _what_decides(text: Estimate, seeds: Estimate, margin: float, num_seeds: int, num_units: int, unit: str) -> str:
    """How much more of the same would decide, if the difference and the noise stay what they are.

    An interval shrinks with the square root of its units, and with the smaller quantile of more of them. Effective
    units grow as units do.
    """
    difference = abs(seeds.difference)
    # The interval of a lead that counts must leave zero; that of a smaller difference must stay within the margin.
    target = difference if difference >= margin else margin - difference
    seed_variance = seeds.variance * num_seeds  # of one seed

    def decides(more_seeds: int, more_units: int) -> bool:
        own = seeds.degrees_of_freedom if more_seeds == num_seeds else max(1.0, more_seeds - 1.0)
        times = more_units / num_units
        grown = Estimate(difference, text.variance / times, (text.degrees_of_freedom + 1.0) * times - 1.0)
        return Combined(grown, Estimate(difference, seed_variance / more_seeds, own)).half_width < target

    def enough_units(given_seeds: int) -> int | None:
        """The least number of units, rounded up to two figures, that decides with so many seeds."""
        most = num_units * _MOST_TIMES_TEXT
        if not decides(given_seeds, most):
            return None
        tried = range(num_units + 1, most + 1)
        return _rounded_up(tried[bisect_left(tried, True, key=lambda units: decides(given_seeds, units))])

    ways = []
    enough_seeds = next((s for s in range(num_seeds + 1, _MOST_SEEDS + 1) if decides(s, num_units)), None)
    if enough_seeds:
        ways.append(f"about {enough_seeds} seeds (now {num_seeds})")
    if units := enough_units(num_seeds):
        ways.append(f"about {units:,} {unit} of test text (now {num_units:,})")
    if ways:
        return f"{' or '.join(ways)} would decide"
    for both in range(num_seeds + 1, _MOST_SEEDS + 1):
        if units := enough_units(both):
            more_text = f"{units:,} {unit} of test text (now {num_units:,})"
            return f"about {both} seeds (now {num_seeds}) and {more_text} together would decide"
    return "the difference is too small to be decided by more text or seeds; a larger budget may show one"


def _rounded_up(number: int) -> int:
    """To two figures: 1,237 becomes 1,300."""
    step: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step
