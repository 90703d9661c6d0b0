"""What the marginal estimate found, as values: marginal.json, and the same in comparison.json without the passages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data.shapes import plain


@dataclass(frozen=True)
class Gap:
    """How far the canonical segmentation lies above the marginal, with the 95 % interval over passages."""

    value: float
    low: float | None
    """None for one passage, as is `high`."""
    high: float | None


@dataclass(frozen=True)
class EffectiveSamples:
    """The effective sample size over passages."""

    median: float
    min: float


@dataclass(frozen=True)
class PassageGap:
    """One passage."""

    canonical_bits: float
    marginal_bits: float
    effective_samples: float | None
    """None where the passage has one segmentation only."""
    log10_segmentations: float
    text: str
    num_chars: int


@dataclass(frozen=True)
class MarginalGap:
    """All passages of one contestant."""

    samples: int
    """For each passage."""
    seed: int
    num_passages: int
    num_chars: int
    canonical_bits_per_char: float
    marginal_bits_per_char: float
    gap_bits_per_char: Gap
    gap_percent: Gap
    """Of the canonical bits."""
    effective_samples: EffectiveSamples | None
    """None where every passage has one segmentation only."""
    note: str
    passages: tuple[PassageGap, ...]
    """Empty in a comparison, which does not keep them."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "MarginalGap":
        """What `data.shapes.plain` made of it, with or without passages; other keys are left alone."""
        effective = value["effective_samples"]
        given = {name: value[name] for name in cls.__dataclass_fields__ if name != "passages"}
        found = {
            "gap_bits_per_char": Gap(**value["gap_bits_per_char"]),
            "gap_percent": Gap(**value["gap_percent"]),
            "effective_samples": None if effective is None else EffectiveSamples(**effective),
            "passages": tuple(PassageGap(**one) for one in value.get("passages", ())),
        }
        return cls(**given | found)


@dataclass(frozen=True)
class MeasuredRun:
    """A gap, and the run that it was measured on."""

    version: int
    """`compare.marginal.estimate.VERSION` of the code that measured it."""
    test_text_sha256: str
    test_borders_sha256: str
    tokenizer_fingerprint: str
    checkpoint_sha256: str
    gap: MarginalGap

    def as_json(self, *, passages: bool) -> dict[str, Any]:
        """The entry of marginal.json, which holds the passages, or of comparison.json, which does not."""
        values: dict[str, Any] = plain(self)
        gap = values.pop("gap")
        if not passages:
            del gap["passages"]
        return {**values, **gap}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "MeasuredRun":
        """What `as_json` wrote."""
        given = {name: value[name] for name in cls.__dataclass_fields__ if name != "gap"}
        return cls(**given, gap=MarginalGap.from_json(value))
