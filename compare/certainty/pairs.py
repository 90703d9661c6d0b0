"""Every pair of contestants with its interval, one of three outcomes, and what would decide an undecided one.

Two questions belong to a verdict. Would other text say the same? The test documents answer it. Would another training
say the same? The seeds answer it. Both contestants are scored on the same documents and trained with the same seeds, so
differences are taken within a document and within a seed: what is hard for both cancels.

Shapes: U units (documents or blocks), S seeds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from compare.certainty.decision import Outcome, decide
from compare.certainty.intervals import Combined, Interval, over_seeds, over_text
from compare.characters import Float64Array, Int64Array, character_nats, document_char_offsets, document_nats
from data.config import require
from data.errors import ReportError, command
from model.evaluate import Evaluation

EQUAL_SHARE = 0.005
"""A difference below this share of the larger figure is none: the canonical segmentation bounds BPE only from above."""
BLOCK_CHARACTERS = 2000


@dataclass(frozen=True)
class Units:
    """One contestant on one division of the text."""

    bits: Float64Array
    """(S, U) bits of each unit, for each seed."""
    num_chars: Int64Array
    """(U,) characters of each unit."""


@dataclass(frozen=True)
class Spread:
    """One contestant over its seeds."""

    name: str
    seeds: tuple[int, ...]
    bits_per_char: tuple[float, ...]
    """For each seed."""

    @property
    def mean(self) -> float:
        """Bits per character, mean over the seeds."""
        return float(np.mean(self.bits_per_char))

    @property
    def sd(self) -> float | None:
        """Sample standard deviation over the seeds; None for one."""
        return float(np.std(self.bits_per_char, ddof=1)) if len(self.bits_per_char) > 1 else None


@dataclass(frozen=True)
class Pair:
    """Two contestants compared. Differences are bits per character of `a` minus `b`: negative where `a` is better."""

    a: str
    b: str
    by_seed: tuple[float, ...]
    """The difference for each seed."""
    documents: Interval | None
    """Over documents, training noise left out; None with fewer than two documents."""
    blocks: Interval | None
    """The same over blocks of equal length, whose neighbours are taken as independent."""
    interval: Interval | None
    """Over text and training noise: it decides. None where the text is a single block."""
    margin: float
    """Differences up to this are no difference."""
    outcome: Outcome
    reason: str
    """Why it is undecided, and what would decide it; empty otherwise."""

    @property
    def by_seed_sd(self) -> float | None:
        """Sample standard deviation of the differences over the seeds; None for one."""
        return float(np.std(self.by_seed, ddof=1)) if len(self.by_seed) > 1 else None

    @property
    def difference(self) -> float:
        """Mean over the seeds."""
        return float(np.mean(self.by_seed))

    @property
    def better(self) -> str:
        """The one with fewer bits, whether or not that is decided."""
        return self.a if self.difference <= 0 else self.b

    @property
    def worse(self) -> str:
        """The other one."""
        return self.b if self.difference <= 0 else self.a

    @property
    def lead_interval(self) -> Interval | None:
        """The interval of the lead of `better`, which is not negative."""
        return self.interval.mirrored() if self.interval and self.difference <= 0 else self.interval


@dataclass(frozen=True)
class Certainty:
    """Every contestant over its seeds and every pair of them, on one split."""

    num_documents: int
    """With at least one character."""
    num_blocks: int
    seeds: tuple[int, ...]
    contestants: tuple[Spread, ...]
    """As listed in the experiment."""
    pairs: tuple[Pair, ...]
    baseline: str
    """The contestant that the others are compared with in the verdict."""
    block_characters: int = BLOCK_CHARACTERS

    def spread(self, name: str) -> Spread:
        """The contestant of that name."""
        return next(one for one in self.contestants if one.name == name)

    def pair(self, one: str, other: str) -> Pair:
        """The pair of these two, in either order."""
        return next(pair for pair in self.pairs if {pair.a, pair.b} == {one, other})

    @property
    def ranked(self) -> tuple[str, ...]:
        """The contestants, fewest bits per character first; equal ones by name."""
        return tuple(one.name for one in sorted(self.contestants, key=lambda one: (one.mean, one.name)))

    @property
    def pairs_with_baseline(self) -> tuple[Pair, ...]:
        """The pairs that the verdict answers, in the order of the ranking."""
        others = [name for name in self.ranked if name != self.baseline]
        return tuple(self.pair(self.baseline, name) for name in others)


def document_units(evaluations: Sequence[Evaluation]) -> Units:
    """The documents of one contestant's evaluations (one for each seed, same text)."""
    bits = np.array([document_nats(evaluation) for evaluation in evaluations]) / math.log(2)
    return Units(bits, np.diff(document_char_offsets(evaluations[0])))


def block_units(evaluations: Sequence[Evaluation], block_characters: int) -> Units:
    """Consecutive spans of `block_characters` of one contestant's whole split.

    The documents are taken as one text, so a block may reach over a border of two of them; the last block may be
    shorter and counts with the characters it has. All contestants get the same spans, whatever their tokens: a token
    that crosses a border is shared as `compare.characters` says.
    """
    starts = np.arange(0, evaluations[0].num_chars, block_characters)
    sums = [np.add.reduceat(character_nats(evaluation), starts) for evaluation in evaluations]
    return Units(np.array(sums) / math.log(2), np.diff(np.append(starts, evaluations[0].num_chars)))


def summarize(
    contestants: Mapping[str, Sequence[Evaluation]],
    seeds: Sequence[int],
    *,
    baseline: str | None = None,
    margins: Mapping[str, float] | None = None,
    block_characters: int = BLOCK_CHARACTERS,
) -> Certainty:
    """The certainty of a comparison on one split.

    `contestants` holds, for each name, one evaluation of the same split for each of `seeds`, in that order. `baseline`
    is whom the verdict compares with: by default `char`, else the first. `margins` are measured bounds of a
    contestant's canonical segmentation as shares (0.02: 2 %), which replace EQUAL_SHARE where they are larger. Raises
    ReportError if the evaluations do not fit together, ConfigError for impossible settings.
    """
    require(block_characters >= 1, f"block_characters must be at least 1, found {block_characters}")
    _check(contestants, seeds)
    names = list(contestants)
    documents = {name: document_units(evaluations) for name, evaluations in contestants.items()}
    blocks = {name: block_units(evaluations, block_characters) for name, evaluations in contestants.items()}
    spreads = {
        name: Spread(name, tuple(seeds), tuple(one.bits_per_char for one in evaluations))
        for name, evaluations in contestants.items()
    }
    if baseline is not None:
        require(baseline in contestants, f"baseline: no contestant {baseline!r}; there are {', '.join(names)}")
    pairs = []
    for a, b in combinations(names, 2):
        share = max(EQUAL_SHARE, *((margins or {}).get(name, 0.0) for name in (a, b)))
        pairs.append(
            _pair(
                spreads[a],
                spreads[b],
                (documents[a], documents[b]),
                (blocks[a], blocks[b]),
                margin_share=share,
                block_characters=block_characters,
            )
        )
    first = names[0]
    return Certainty(
        num_documents=int(np.count_nonzero(documents[first].num_chars)),
        num_blocks=len(blocks[first].num_chars),
        seeds=tuple(seeds),
        contestants=tuple(spreads.values()),
        pairs=tuple(pairs),
        baseline=baseline or ("char" if "char" in names else first),
        block_characters=block_characters,
    )


def _pair(
    a: Spread,
    b: Spread,
    documents: tuple[Units, Units],
    blocks: tuple[Units, Units],
    *,
    margin_share: float,
    block_characters: int,
) -> Pair:
    by_seed = tuple(one - other for one, other in zip(a.bits_per_char, b.bits_per_char, strict=True))
    over = {
        name: over_text(one.bits.mean(axis=0), other.bits.mean(axis=0), one.num_chars)
        for name, (one, other) in (("documents", documents), ("blocks", blocks))
    }
    text, seeds = over["documents"] or over["blocks"], over_seeds(by_seed)
    margin = margin_share * max(a.mean, b.mean)
    num_units = int(np.count_nonzero((documents if over["documents"] else blocks)[0].num_chars))
    unit = "documents" if over["documents"] else f"blocks of {block_characters:,} characters"
    outcome, reason = decide(text, seeds, margin, num_seeds=len(by_seed), num_units=num_units, unit=unit)
    return Pair(
        a=a.name,
        b=b.name,
        by_seed=by_seed,
        documents=over["documents"].interval if over["documents"] else None,
        blocks=over["blocks"].interval if over["blocks"] else None,
        interval=Combined(text, seeds).interval if text else None,
        margin=margin,
        outcome=outcome,
        reason=reason,
    )


def _check(contestants: Mapping[str, Sequence[Evaluation]], seeds: Sequence[int]) -> None:
    """Raise ReportError unless there is one evaluation for each seed, all of the same documents."""
    if not contestants or not seeds:
        raise ReportError(f"there is nothing to compare: no contestant or no seed; run {command('make all')}")
    if len(set(seeds)) != len(seeds):
        raise ReportError(f"the seeds {list(seeds)} repeat one; list each seed once")
    reference: tuple[str, Evaluation, NDArray[np.int64]] | None = None
    for name, evaluations in contestants.items():
        if len(evaluations) != len(seeds):
            raise ReportError(
                f"{name} has {len(evaluations)} runs for the {len(seeds)} seeds {list(seeds)}; "
                f"run {command(f'make train-{name}')} to complete them"
            )
        for evaluation in evaluations:
            if not evaluation.num_chars:
                raise ReportError(f"{name} was scored on an empty text; give the split text")
            offsets = document_char_offsets(evaluation)
            reference = reference or (name, evaluation, offsets)
            if evaluation.text_sha256 != reference[1].text_sha256 or not np.array_equal(offsets, reference[2]):
                raise ReportError(
                    f"{reference[0]} and {name} were scored on different texts or documents "
                    f"({reference[1].text_sha256[:12]}…, {evaluation.text_sha256[:12]}…); run {command('make all')}"
                )
