"""Does a trained model add anything to a character n-gram? Both are mixed, with the weight that is best on val.

Where every token begins exactly one character, each character is mixed. Tokens of several characters are never mixed
one by one, because the n-gram's products are no distribution over overlapping tokens; whole documents are mixed
instead, which is a distribution over texts.

Shapes: S seeds, U units (characters or documents).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from compare.baselines.ngram_search import NGram
from compare.certainty.intervals import ASSUMED_SEED_SD, Estimate, Interval, combined, over_seeds, over_text, t_quantile
from compare.characters import Float64Array, Int64Array, character_nats, document_char_offsets, document_nats
from data.errors import ReportError, command
from data.splits import Split
from model.evaluate import Evaluation

MAX_EXPONENT = 700.0  # e to this power is still a float64


@dataclass(frozen=True)
class Mixture:
    """One contestant mixed with the n-gram; figures are bits per character of test, means over the seeds."""

    contestant: str
    unit: Literal["character", "document"]
    weight: float
    """Of the model, from 0 to 1; chosen on val, one for all seeds."""
    model: float
    ngram: float
    mixture: float
    lead: Interval | None
    """How many bits fewer the mixture needs than the n-gram; None with fewer than two documents."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Mixture":
        """What `dataclasses.asdict` gave to a JSON file."""
        lead = value["lead"]
        return cls(**{**value, "lead": None if lead is None else Interval(**lead)})

    @property
    def sentence(self) -> str:
        """What the model adds, in words."""
        if self.lead is None:
            said = (
                f"{self.contestant} and the n-gram together need {self.mixture:.3f}, the n-gram alone {self.ngram:.3f}"
                "; fewer than two documents give no interval"
            )
        elif self.lead.low <= 0.0:
            said = (
                f"{self.contestant} adds nothing to a character n-gram at this budget "
                f"(mixture {self.mixture:.3f}, n-gram alone {self.ngram:.3f})"
            )
        else:
            said = (
                f"{self.contestant} and the n-gram together need {self.mixture:.3f}, {self.ngram - self.mixture:.3f} "
                f"fewer than the n-gram alone (95 % interval {self.lead})"
            )
        if self.unit == "document":
            said += "; whole documents were mixed, which can gain only where the model alone is better on a document"
        return said


def mixed_nats(model: Float64Array, ngram: Float64Array, weight: float) -> Float64Array:
    """Nats of the mixture of two probabilities given in nats; a weight of 0 or 1 gives one side exactly."""
    if weight in (0.0, 1.0):
        return np.broadcast_to(model if weight else ngram, np.broadcast_shapes(model.shape, ngram.shape)).copy()
    mixed: Float64Array = -np.logaddexp(math.log(weight) - model, math.log1p(-weight) - ngram)
    return mixed


def best_weight(model: Float64Array, ngram: Float64Array) -> float:
    """The weight of the model under which the mixture needs the fewest nats; equal models give 0."""
    ratio = np.clip(ngram - model, -MAX_EXPONENT, MAX_EXPONENT).ravel()
    scale = 1.0 / ratio.size  # a mean: the sum of many large ones would overflow
    if np.sum(np.expm1(ratio) * scale) <= 0.0:
        return 0.0
    if np.sum(-np.expm1(-ratio) * scale) >= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    gain = np.expm1(-np.abs(ratio))  # of the smaller probability over the larger
    for _ in range(80):
        weight = (low + high) / 2.0
        slopes = np.where(ratio > 0.0, -gain / (1.0 + gain * (1.0 - weight)), gain / (1.0 + gain * weight))
        low, high = (weight, high) if float(np.sum(slopes)) > 0.0 else (low, weight)
    return (low + high) / 2.0


def mixture_of(
    name: str, runs: Sequence[Mapping[str, Evaluation]], ngram: NGram, splits: Mapping[str, Split]
) -> Mixture:
    """`runs`: the evaluations of val and test for each seed. Raises ReportError for those of another text."""
    for split in ("val", "test"):
        for run in runs:
            _check(name, split, run[split], splits[split])
    by_character = all(np.all(run[split].token_num_chars == 1) for run in runs for split in ("val", "test"))
    borders = {split: splits[split].document_offsets for split in ("val", "test")}
    model, alone = {}, {}
    for split in ("val", "test"):
        of_each = character_nats if by_character else document_nats
        model[split] = np.array([of_each(run[split]) for run in runs])
        alone[split] = ngram.nats[split] if by_character else _by_document(ngram.nats[split], borders[split])
    weight = best_weight(model["val"], np.broadcast_to(alone["val"], model["val"].shape))
    mixed = [mixed_nats(one, alone["test"], weight) for one in model["test"]]
    by_document = [_by_document(one, borders["test"]) if by_character else one for one in mixed]
    ngram_documents = _by_document(ngram.nats["test"], borders["test"])
    num_chars, per_char = np.diff(borders["test"]), math.log(2) * len(splits["test"].text)
    leads = [float(ngram_documents.sum() - one.sum()) / per_char for one in by_document]
    text = over_text(ngram_documents / math.log(2), np.mean(by_document, axis=0) / math.log(2), num_chars)
    return Mixture(
        contestant=name,
        unit="character" if by_character else "document",
        weight=weight,
        model=float(np.mean([run["test"].bits_per_char for run in runs])),
        ngram=ngram.bits_on("test"),
        mixture=float(np.mean([one.sum() for one in mixed])) / per_char,
        lead=None if text is None else combined(text, _seeds(leads, weight)).interval,
    )


def _seeds(leads: Sequence[float], weight: float) -> Estimate:
    """The lead over seeds; with one seed only the model's noise is assumed, and none where it has no weight."""
    if len(leads) > 1:
        return over_seeds(leads)
    return Estimate(leads[0], ASSUMED_SEED_SD**2 if weight > 0.0 else 0.0, t_quantile(math.inf))


def _by_document(nats: Float64Array, borders: Int64Array) -> Float64Array:
    sums: Float64Array = np.diff(np.concatenate([[0.0], np.cumsum(nats)])[borders])
    return sums


def _check(name: str, split: str, found: Evaluation, text: Split) -> None:
    same = np.array_equal(document_char_offsets(found), text.document_offsets)
    if found.text_sha256 != text.sha256 or not same:
        raise ReportError(f"{name} was scored on another {split} text than this one; run {command('make all')}")
