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
from compare.certainty.intervals import ASSUMED_SEED_SD, Combined, Estimate, Interval, over_seeds, over_text
from compare.certainty.pairs import EQUAL_SHARE
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
    def outcome(self) -> Literal["adds", "nothing", "undecided"]:
        """`adds`: the whole interval of the gain is above zero, and the gain is not below the margin of equality.

        `nothing`: the whole interval is below that margin, so that no gain worth the name is left. Else `undecided`.
        """
        margin = EQUAL_SHARE * self.ngram
        if self.lead is None:
            return "undecided"
        if self.lead.high <= margin:
            return "nothing"
        return "adds" if self.lead.low > 0.0 and self.ngram - self.mixture >= margin else "undecided"

    @property
    def sentence(self) -> str:
        """What the model adds, in words."""
        together = f"{self.contestant} and the n-gram together need {self.mixture:.3f}"
        if self.lead is None:
            said = f"{together}, the n-gram alone {self.ngram:.3f}; fewer than two documents give no interval"
        elif self.outcome == "nothing":
            said = (
                f"{self.contestant} adds nothing to a character n-gram at this budget "
                f"(mixture {self.mixture:.3f}, n-gram alone {self.ngram:.3f}, 95 % interval of the gain {self.lead})"
            )
        else:
            gain = self.ngram - self.mixture
            change = f"{abs(gain):.3f} {'fewer' if gain >= 0.0 else 'more'} than the n-gram alone"
            said = f"{together}, {change} (95 % interval of the gain {self.lead})"
            if self.outcome == "undecided":
                said += f"; whether {self.contestant} adds anything is not decided"
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
    sizes: Int64Array | int = 1 if by_character else num_chars
    share = float(np.mean([share_of_model(m, one, weight, sizes) for m, one in zip(mixed, model["test"], strict=True)]))
    return Mixture(
        contestant=name,
        unit="character" if by_character else "document",
        weight=weight,
        model=float(np.mean([run["test"].bits_per_char for run in runs])),
        ngram=ngram.bits_on("test"),
        # Without weight it is the n-gram's figure, to the last digit: not the same sum in another order.
        mixture=ngram.bits_on("test") if weight == 0.0 else float(np.mean([one.sum() for one in mixed])) / per_char,
        lead=None if text is None else Combined(text, _seeds(leads, share)).interval,
    )


def _seeds(leads: Sequence[float], model_share: float) -> Estimate:
    """The lead over seeds; with one seed the model's assumed noise, of which the mixture takes `model_share`."""
    if len(leads) > 1:
        return over_seeds(leads)
    return Estimate(leads[0], (model_share * ASSUMED_SEED_SD) ** 2, math.inf)


def share_of_model(mixed: Float64Array, model: Float64Array, weight: float, num_chars: Int64Array | int) -> float:
    """By how much the mixture's bits per character rise where the model's rise by 1 everywhere: from 0 to 1.

    It is the derivative: the model's share of the mixed probability of each unit, weighted by the unit's characters.
    """
    if weight == 0.0:
        return 0.0
    shares = np.exp(np.minimum(0.0, math.log(weight) - model + mixed))
    return float(np.average(shares, weights=np.broadcast_to(num_chars, shares.shape)))


def _by_document(nats: Float64Array, borders: Int64Array) -> Float64Array:
    sums: Float64Array = np.diff(np.concatenate([[0.0], np.cumsum(nats)])[borders])
    return sums


def _check(name: str, split: str, found: Evaluation, text: Split) -> None:
    same = np.array_equal(document_char_offsets(found), text.document_offsets)
    if found.text_sha256 != text.sha256 or not same:
        raise ReportError(f"{name} was scored on another {split} text than this one; run {command('make all')}")
