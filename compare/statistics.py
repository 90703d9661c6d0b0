"""How sure the comparison is: paired bootstrap over documents and over blocks, seeds, and the verdict in words.

Everything is derived from stored nats (method.md section 4). A pair of contestants is resampled together, because both
were scored on the same text: what a hard document costs both of them cancels in the difference. The unit that is drawn
is a document, since the characters inside one are anything but independent; blocks of fixed length serve texts with
few documents. The intervals answer "would other text say the same?" for the mean over the seeds; what another seed
would say is told beside them, as the standard deviation over seeds, and is not part of the interval.

Method: B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993), chapter 13 (percentile intervals).
Shapes: U units (documents or blocks), C characters, D documents of the split.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compare.characters import Float64Array, Int64Array, character_nats, document_char_offsets, document_nats
from data.config import require
from data.errors import ReportError, command
from model.evaluate import Evaluation

TIE_SHARE = 0.005  # a smaller share of the bits is a tie: the canonical segmentation bounds BPE only from above
# With few units a percentile interval is too narrow: simulated ones of 95 % cover 80 % of the time with 4 documents,
# 86 % with 8, 92 % with 20, 94 % with 60. Below this number the interval over blocks has a say too, and it is said.
FEW_DOCUMENTS = 20
_TAIL = 0.025  # on each side of a 95 % interval
_DRAWS_AT_ONCE = 500_000  # bounds the memory: unit indices drawn together, 8 bytes each


class Interval(NamedTuple):
    """A 95 % interval of a difference in bits per character."""

    low: float
    high: float

    def mirrored(self) -> "Interval":
        """The interval of the difference the other way round; zero stays positive zero."""
        return Interval(0.0 - self.high, 0.0 - self.low)

    @property
    def holds_zero(self) -> bool:
        """Whether no difference at all lies in the interval."""
        return self.low <= 0.0 <= self.high

    def __str__(self) -> str:
        return f"{self.low:z.3f} to {self.high:z.3f}"


@dataclass(frozen=True)
class Units:
    """One contestant on one division of the text."""

    bits: Float64Array
    """(U,) bits of each unit, mean over the seeds."""
    num_chars: Int64Array
    """(U,) characters of each unit."""


def document_units(evaluations: Sequence[Evaluation]) -> Units:
    """The documents of one contestant's evaluations (one for each seed, same text)."""
    bits = np.mean([document_nats(evaluation) for evaluation in evaluations], axis=0) / math.log(2)
    return Units(bits, np.diff(document_char_offsets(evaluations[0])))


def block_units(evaluations: Sequence[Evaluation], block_characters: int) -> Units:
    """Consecutive spans of `block_characters` of one contestant's whole split.

    The documents are taken as one text, so a block may span the border of two of them; the last block may be shorter
    and counts with the characters it has. All contestants get the same spans, whatever their tokens: a token that
    crosses a border is shared as `compare.characters` says. Neighbouring blocks are treated as independent.
    """
    starts = np.arange(0, evaluations[0].num_chars, block_characters)
    sums = [np.add.reduceat(character_nats(evaluation), starts) for evaluation in evaluations]
    bits = np.mean(sums, axis=0) / math.log(2)
    return Units(bits, np.diff(np.append(starts, evaluations[0].num_chars)))


def paired_bootstrap(
    bits_a: Float64Array, bits_b: Float64Array, num_chars: Int64Array, *, resamples: int, seed: int
) -> Interval | None:
    """95 % percentile interval of bits per character of a minus b, over U units drawn with replacement.

    `bits_a`, `bits_b` and `num_chars` are (U,). The statistic of a resample is sum(bits_a - bits_b) / sum(num_chars)
    of the drawn units: a ratio of sums, so a long document weighs what it holds. Units without characters are left
    out; fewer than two units give None. The order of the units changes nothing, and (b, a) gives exactly the mirrored
    interval of (a, b). Raises ConfigError unless there is at least one resample.
    """
    require(resamples >= 1, f"resamples must be at least 1, found {resamples}")
    kept = num_chars > 0
    difference, chars = (bits_a - bits_b)[kept], num_chars[kept]
    if len(chars) < 2:
        return None
    # Only the set of units may matter: they are sorted, and of the two directions a - b and b - a always the same one
    # is resampled, the greater in lexicographic order.
    forward, backward = np.lexsort((difference, chars)), np.lexsort((-difference, chars))
    unequal = np.flatnonzero(difference[forward] != -difference[backward])
    mirror = len(unequal) > 0 and difference[forward][unequal[0]] < -difference[backward][unequal[0]]
    oriented = -difference[backward] if mirror else difference[forward]
    interval = _percentile_interval(oriented, chars[forward], resamples, seed)
    if len(unequal) == 0:  # symmetric around zero, so the true bootstrap distribution is; the drawn one only nearly
        half_width = (interval.high - interval.low) / 2.0
        return Interval(0.0 - half_width, half_width)
    return interval.mirrored() if mirror else interval


def _percentile_interval(difference: Float64Array, num_chars: Int64Array, resamples: int, seed: int) -> Interval:
    statistics = np.empty(resamples, np.float64)
    rng = np.random.default_rng(seed)
    chunk = max(1, _DRAWS_AT_ONCE // len(num_chars))
    for start in range(0, resamples, chunk):
        drawn = rng.integers(len(num_chars), size=(min(chunk, resamples - start), len(num_chars)))
        statistics[start : start + len(drawn)] = difference[drawn].sum(axis=1) / num_chars[drawn].sum(axis=1)
    low, high = np.quantile(statistics, (_TAIL, 1.0 - _TAIL))
    return Interval(float(low), float(high))


def summarize(
    contestants: Mapping[str, Sequence[Evaluation]],
    seeds: Sequence[int],
    *,
    resamples: int = 10_000,
    seed: int = 1,
    block_characters: int = 2000,
) -> dict[str, Any]:
    """The "statistics" of the comparison: every contestant over its seeds and every pair of them, ready for JSON.

    `contestants` holds, for each name, one evaluation of the same split for each of `seeds`, in that order; `seed` is
    the bootstrap's own. Differences are bits per character of the first of a pair minus the second. Raises ReportError
    if the evaluations do not fit together, ConfigError for impossible settings.
    """
    require(block_characters >= 1, f"block_characters must be at least 1, found {block_characters}")
    _check(contestants, seeds)
    documents = {name: document_units(evaluations) for name, evaluations in contestants.items()}
    blocks = {name: block_units(evaluations, block_characters) for name, evaluations in contestants.items()}
    by_seed = {name: [one.bits_per_char for one in evaluations] for name, evaluations in contestants.items()}
    first = next(iter(contestants))
    summary: dict[str, Any] = {
        "resamples": resamples,
        "seed": seed,
        "num_documents": int(np.count_nonzero(documents[first].num_chars)),
        "block_characters": block_characters,
        "num_blocks": len(blocks[first].num_chars),
        "contestants": {
            name: {"seeds": list(seeds), "bits_per_char": bits, "mean": float(np.mean(bits)), "sd": _deviation(bits)}
            for name, bits in by_seed.items()
        },
        "pairs": [],
    }
    for a, b in combinations(contestants, 2):
        differences = [one - other for one, other in zip(by_seed[a], by_seed[b], strict=True)]
        intervals = {
            kind: paired_bootstrap(units[a].bits, units[b].bits, units[a].num_chars, resamples=resamples, seed=seed)
            for kind, units in (("documents", documents), ("blocks", blocks))
        }
        pair: dict[str, Any] = {
            "a": a,
            "b": b,
            "difference": float(np.mean(differences)),
            **{kind: None if interval is None else interval._asdict() for kind, interval in intervals.items()},
            "by_seed": differences,
            "by_seed_sd": _deviation(differences),
        }
        pair["verdict"], pair["why"] = verdict_of(pair, summary)
        summary["pairs"].append(pair)
    return summary


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


def _deviation(values: Sequence[float]) -> float | None:
    """Sample standard deviation (divisor n - 1); None for one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def verdict_of(pair: Mapping[str, Any], statistics: Mapping[str, Any]) -> tuple[str, str]:
    """("a", "b" or "tie", why): the one of the pair that needs fewer bits, unless that may be chance or too little.

    A tie when the interval over documents holds zero, or the gap is under TIE_SHARE of the larger figure. With fewer
    than FEW_DOCUMENTS documents the interval over blocks must not hold zero either; with one document it decides alone.
    """
    intervals = _intervals(pair, statistics)
    for over, interval in intervals:
        if interval.holds_zero:
            return "tie", f"the 95 % interval of the difference, {interval} over {over}, holds zero"
    larger = max(statistics["contestants"][pair[side]]["mean"] for side in ("a", "b"))
    gap = abs(pair["difference"])
    sure = _interval_words(intervals)
    if gap < TIE_SHARE * larger:
        return "tie", f"the difference of {gap:.3f} ({sure}) is under {100 * TIE_SHARE:g} % of the larger figure"
    beyond = " without zero" if intervals else ""
    return ("a" if pair["difference"] < 0 else "b"), f"{gap:.3f} fewer bits per character, {sure}{beyond}"


def _intervals(pair: Mapping[str, Any], statistics: Mapping[str, Any]) -> list[tuple[str, Interval]]:
    """What decides, as (units in words, interval of the larger figure minus the smaller)."""
    kinds = [("documents", _count(statistics["num_documents"], "document"))]
    if statistics["num_documents"] < FEW_DOCUMENTS:
        kinds.append(("blocks", _block_words(statistics)))
    found = [(over, Interval(**pair[kind])) for kind, over in kinds if pair[kind] is not None]
    return [(over, interval.mirrored() if pair["difference"] <= 0 else interval) for over, interval in found]


def _interval_words(intervals: Sequence[tuple[str, Interval]]) -> str:
    if not intervals:
        return "no interval: the text is a single block"
    return "95 % interval " + ", ".join(f"{interval} over {over}" for over, interval in intervals)


def ranked_names(statistics: Mapping[str, Any]) -> list[str]:
    """The contestants, fewest bits per character first; equal ones by name."""
    return sorted(statistics["contestants"], key=lambda name: (statistics["contestants"][name]["mean"], name))


def sentence(pair: Mapping[str, Any], statistics: Mapping[str, Any], budget_words: str) -> str:
    """The verdict on one pair with interval, documents, seeds; `budget_words` such as "at equal characters seen"."""
    return f"{_clause(pair, statistics)}, {budget_words}."


def verdict_sentence(statistics: Mapping[str, Any], names_ranked: Sequence[str], budget_words: str) -> str:
    """The verdict on all contestants: each against the next in the ranking `names_ranked`, in one sentence."""
    if len(names_ranked) == 1:
        only = statistics["contestants"][names_ranked[0]]
        spread = _seed_words(only["seeds"], only["sd"])
        return (
            f"{names_ranked[0]} needs {only['mean']:.3f} bits per character ({spread}), {budget_words}; "
            "there is no other contestant to compare with."
        )
    pairs = {frozenset((pair["a"], pair["b"])): pair for pair in statistics["pairs"]}
    clauses = [_clause(pairs[frozenset(neighbours)], statistics) for neighbours in pairwise(names_ranked)]
    return f"{'; '.join(clauses)}, {budget_words}."


def _clause(pair: Mapping[str, Any], statistics: Mapping[str, Any]) -> str:
    better, worse = (pair["a"], pair["b"]) if pair["difference"] <= 0 else (pair["b"], pair["a"])
    aside = []
    if statistics["num_documents"] == 1:
        aside.append("one document, so no interval over documents")
    elif statistics["num_documents"] < FEW_DOCUMENTS:
        aside.append("few documents, so the interval over them tends to be too narrow")
    spread = _seed_words(pair["by_seed"], pair["by_seed_sd"])
    opposite = sum(one * pair["difference"] < 0 for one in pair["by_seed"])
    if opposite:
        spread += f", {opposite} of them the other way round"
    if pair["verdict"] == "tie":
        named = (f"{name} ({statistics['contestants'][name]['mean']:.3f})" for name in (better, worse))
        return f"{' and '.join(named)} are a tie: {pair['why']} ({'; '.join([*aside, spread])})"
    sure = f"{_interval_words(_intervals(pair, statistics))}, {spread}"
    gap = abs(pair["difference"])
    return f"{better} needs {gap:.3f} fewer bits per character than {worse} ({'; '.join([sure, *aside])})"


def _seed_words(by_seed: Sequence[float], deviation: float | None) -> str:
    count = _count(len(by_seed), "seed")
    return count if deviation is None else f"{count} with standard deviation {deviation:.3f}"


def _block_words(statistics: Mapping[str, Any]) -> str:
    characters = _count(statistics["block_characters"], "character")
    return f"{_count(statistics['num_blocks'], 'block')} of {characters}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
