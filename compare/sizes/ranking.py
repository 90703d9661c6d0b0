"""Whether the ranking holds at other sizes of the models: what was measured, and one word for each pair and size.

A pair is taken at each size with the interval and the three outcomes that the comparison has for its own size. Nothing
is fitted: a word is said only where both sizes are decided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from compare.certainty.pairs import Certainty, Pair, summarize
from compare.sizes.levels import Level

Word = Literal["holds", "turns", "changes", "unsaid"]
"""`turns`: the other one is better there. `changes`: they are equal at one of the two sizes, and not at the other."""


@dataclass(frozen=True)
class AtLevel:
    """All contestants at one size and budget."""

    size: float
    """In times the model block."""
    is_whole: bool
    """Whether the budget is T, or else T/4."""
    layers: tuple[int, ...]
    """Of each contestant's model, in their order."""
    channels: tuple[int, ...]
    parameters: tuple[int, ...]
    """Besides the embedding."""
    certainty: Certainty
    """Figures, pairs and intervals, on test."""


@dataclass(frozen=True)
class SizeWord:
    """What is said of a pair at another size, compared with the experiment's own size under the same budget."""

    a: str
    b: str
    size: float
    is_whole: bool
    word: Word
    own: Pair
    """The pair at the experiment's own size."""
    there: Pair
    """The pair at `size`."""


@dataclass(frozen=True)
class Ranking:
    """Everything that the report says about other sizes."""

    levels: tuple[AtLevel, ...]
    """By size, and T/4 before T."""
    pairs: tuple[tuple[str, str], ...]
    """The pairs that the verdict answers."""

    @property
    def sizes(self) -> tuple[float, ...]:
        """The other sizes, ascending."""
        return tuple(one.size for one in self.levels if one.is_whole and one.size != 1.0)

    @property
    def contestants(self) -> tuple[str, ...]:
        """In the order of the experiment."""
        return tuple(one.name for one in self.levels[0].certainty.contestants)

    def at(self, size: float, *, is_whole: bool = True) -> AtLevel:
        """The level of that size and budget."""
        return next(one for one in self.levels if (one.size, one.is_whole) == (size, is_whole))

    def words(self, *, is_whole: bool = True) -> list[SizeWord]:
        """One for each pair and other size, pair by pair."""
        own = self.at(1.0, is_whole=is_whole).certainty
        found = []
        for a, b in self.pairs:
            for size in self.sizes:
                pairs = own.pair(a, b), self.at(size, is_whole=is_whole).certainty.pair(a, b)
                found.append(SizeWord(a, b, size, is_whole, word_of(*pairs), *pairs))
        return found


def word_of(own: Pair, there: Pair) -> Word:
    """What `there`, a pair at another size, says of the order that `own` has."""
    if "undecided" in (own.outcome, there.outcome):
        return "unsaid"
    if own.outcome == there.outcome:
        return "holds"
    return "changes" if "equal" in (own.outcome, there.outcome) else "turns"


def ranking_of(levels: Sequence[Level], whole: Certainty, margins: Mapping[str, float]) -> Ranking | None:
    """The ranking at every level, on test; None without levels.

    `whole` is the certainty of the comparison itself, and `margins` are the shares that it was made with.
    """
    if not levels:
        return None
    found = [_at_level(level, whole, margins) for level in levels]
    found.sort(key=lambda one: (one.size, one.is_whole))
    return Ranking(tuple(found), tuple((pair.a, pair.b) for pair in whole.pairs_with_baseline))


def _at_level(level: Level, whole: Certainty, margins: Mapping[str, float]) -> AtLevel:
    reports = [runs[0].report for runs in level.runs.values()]
    models = [report.settings["model"] for report in reports]
    certainty = whole
    if not (level.size == 1.0 and level.is_whole):
        certainty = summarize(
            {name: [run.evaluations["test"] for run in runs] for name, runs in level.runs.items()},
            whole.seeds,
            baseline=whole.baseline,
            margins=margins,
            block_characters=whole.block_characters,
        )
    return AtLevel(
        size=level.size,
        is_whole=level.is_whole,
        layers=tuple(model["num_layers"] for model in models),
        channels=tuple(model["embedding_dim"] for model in models),
        parameters=tuple(report.parameters.rest for report in reports),
        certainty=certainty,
    )
