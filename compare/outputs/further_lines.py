"""Lines of other budgets and sizes for table.csv and table.tex: one value for each contestant.

What is known of a pair only, a forecast above all, stands in the column of the contestant that the verdict compares
with the baseline.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from compare.certainty.pairs import Pair
from compare.ladder.answer import LadderAnswer
from compare.ladder.forecast import Range
from compare.ladder.words import amount, range_words
from compare.sizes.ranking import Ranking
from compare.sizes.words import level_words

_WORDS = {"stays": "stays", "turns": "turns", "unsaid": "cannot be said"}


@dataclass(frozen=True)
class Line:
    """One line of both files, or of one of them."""

    label: str
    values: Mapping[str, float | str] = field(default_factory=dict)
    """For programs, in full, by contestant; empty: the line is for LaTeX only."""
    words: Mapping[str, str] = field(default_factory=dict)
    """As they are printed, by contestant; empty: the line is for programs only."""

    @property
    def is_for_programs(self) -> bool:
        """Whether it stands in table.csv."""
        return bool(self.values)


def further_lines(ladder: LadderAnswer | None, sizes: Ranking | None, baseline: str) -> list[Line]:
    """The lines of a comparison's ladder and sizes; none without them. Differences are from `baseline`."""
    of_ladder = [] if ladder is None else _of_ladder(ladder, baseline)
    return [*of_ladder, *([] if sizes is None else _of_sizes(sizes, baseline))]


def _of_ladder(answer: LadderAnswer, baseline: str) -> list[Line]:
    found = []
    for number, budget in enumerate(answer.amounts):
        bits = {one.curve.contestant: one.curve.points[number].mean for one in answer.curves}
        label = f"bits per character (test) after {amount(budget, answer.unit)}"
        found.append(Line(label, bits, {name: f"{value:.4f}" for name, value in bits.items()}))
    for number, outlook in enumerate(answer.pairs[0].outlooks if answer.pairs else ()):
        of_pairs = {(pair.a, pair.b): pair.outlooks[number] for pair in answer.pairs}
        label = f"forecast at {outlook.times} times the budget"
        found += _differences(label, "90 %", {pair: one.expected.gap for pair, one in of_pairs.items()}, baseline)
        order = {_other(pair, baseline): _WORDS[one.word] for pair, one in of_pairs.items()}
        found.append(Line(f"{label}: the order", order))
    return found


def _of_sizes(ranking: Ranking, baseline: str) -> list[Line]:
    found = []
    for one in ranking.levels:
        label = f"size {level_words(one)}"
        bits = {spread.name: spread.mean for spread in one.certainty.contestants}
        words = {name: f"{value:.4f}" for name, value in bits.items()}
        found.append(Line(f"{label}: bits per character (test)", bits, words))
        ranges = {pair: _range(one.certainty.pair(*pair)) for pair in ranking.pairs}
        known = {pair: found_range for pair, found_range in ranges.items() if found_range is not None}
        found += _differences(label, "95 %", known, baseline)
    return found


def _range(pair: Pair) -> Range | None:
    return None if pair.interval is None else Range(pair.interval.low, pair.difference, pair.interval.high)


def _differences(label: str, interval: str, gaps: Mapping[tuple[str, str], Range], baseline: str) -> list[Line]:
    """Lines of the differences of every other contestant from `baseline`; `gaps` are of pairs, first minus second."""
    if not gaps:
        return []
    of_others = {
        _other(pair, baseline): gap if pair[1] == baseline else Range(-gap.high, -gap.middle, -gap.low)
        for pair, gap in gaps.items()
    }
    label = f"{label}: difference from {baseline}"
    found = [Line(label, {name: gap.middle for name, gap in of_others.items()}, _in_words(of_others))]
    found.append(Line(f"{label}, {interval} interval from", {name: gap.low for name, gap in of_others.items()}))
    found.append(Line(f"{label}, {interval} interval to", {name: gap.high for name, gap in of_others.items()}))
    return found


def _in_words(gaps: Mapping[str, Range]) -> dict[str, str]:
    return {name: range_words(gap, signed=True) for name, gap in gaps.items()}


def _other(pair: tuple[str, str], baseline: str) -> str:
    return pair[0] if pair[1] == baseline else pair[1]
