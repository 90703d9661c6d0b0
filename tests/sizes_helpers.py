"""Rankings at several sizes from made-up pairs."""

from collections.abc import Mapping, Sequence

from compare.certainty.decision import Outcome
from compare.certainty.intervals import Interval
from compare.certainty.pairs import Certainty, Pair, Spread
from compare.sizes.ranking import AtLevel, Ranking

MADE: Mapping[str, tuple[float, Outcome]] = {
    "a": (-0.1, "a"),
    "b": (0.1, "b"),
    "=": (0.001, "equal"),
    "?": (-0.02, "undecided"),
}
"""What a pair is at one size: the first better, the second better, equal, or not decided."""


def pair_of(a: str, b: str, made: str) -> Pair:
    difference, outcome = MADE[made]
    interval = Interval(difference - 0.03, difference + 0.03)
    return Pair(a, b, (difference,), None, None, interval, 0.01, outcome, "too little text" if made == "?" else "")


def level_of(size: float, is_whole: bool, names: Sequence[str], made: Sequence[str]) -> AtLevel:
    """The first contestant against each other one: a letter of MADE for each."""
    spreads = tuple(Spread(name, (1,), (2.0 + number,)) for number, name in enumerate(names))
    pairs = tuple(pair_of(names[0], other, one) for other, one in zip(names[1:], made, strict=True))
    certainty = Certainty(4, 9, (1,), spreads, pairs, names[0])
    count = len(names)
    return AtLevel(size, is_whole, (2,) * count, (32,) * count, (round(1000 * size),) * count, certainty)


def ranking_for(names: Sequence[str], quarter: Mapping[float, str], whole: Mapping[float, str]) -> Ranking:
    """By size, the letters of MADE for the first contestant against every other one, at T/4 and at T."""
    levels = []
    for size in sorted(whole):
        levels += [level_of(size, False, names, quarter[size]), level_of(size, True, names, whole[size])]
    return Ranking(tuple(levels), tuple((names[0], other) for other in names[1:]))
