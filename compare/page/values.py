"""What the page shows, as values: `compare.page.data` makes them, `compare.page.render` draws them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from compare.bits_by.result import WhereBitsGo
from compare.certainty.pairs import Certainty
from compare.grids.sweep import Sweep
from compare.ladder.answer import LadderAnswer
from compare.outputs.comparison import BaselineLine
from compare.sizes.ranking import Ranking
from tokenizer.studies.intrinsic import Intrinsic

Pairs = tuple[tuple[str, str], ...]
"""Labels with their values."""


@dataclass(frozen=True)
class Figure:
    """A contestant or a baseline with its bits per character."""

    name: str
    bits_per_char: float


@dataclass(frozen=True)
class Contestant(Figure):
    """A contestant; its figure is the mean over its seeds."""

    num_seeds: int


@dataclass(frozen=True)
class Series:
    """One contestant's curve: the mean and the range over its seeds."""

    name: str
    num_seeds: int
    x: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Curve:
    """Bits per character on the val sample against one quantity."""

    quantity: str
    """Its key in metrics.jsonl."""
    label: str
    unit: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Documents:
    """Bits per character of the test documents."""

    num_documents: int
    num_shown: int
    names: tuple[str, ...]
    """Of those that are shown, as all lists here are."""
    num_chars: tuple[int, ...]
    bits_per_char: Mapping[str, tuple[float, ...]]
    """By contestant."""
    pairs: Pairs
    """Each contestant that is drawn against the best one."""


class Span(NamedTuple):
    """Characters of one token with equal bits."""

    text: str
    bits: float
    """Of each character."""
    level: int
    """The colour."""
    is_begin: bool
    """A token begins here."""


@dataclass(frozen=True)
class Cell:
    """A word of the passage with the white space behind it."""

    rows: tuple[tuple[Span, ...], ...]
    """One for each contestant."""
    ends_line: bool


@dataclass(frozen=True)
class Passage:
    """A piece of a test document with every contestant's bits per character."""

    contestants: tuple[str, ...]
    document_number: int
    text: str
    is_whole_document: bool
    bits_per_char: Mapping[str, float]
    levels: tuple[float, ...]
    """Where colours change."""
    cells: tuple[Cell, ...]

    @property
    def num_chars(self) -> int:
        """Characters of the passage."""
        return len(self.text)


@dataclass(frozen=True)
class Sample:
    """What a model wrote after a prompt."""

    prompt: str
    text: str
    """Without the prompt."""
    temperature: float
    seed: int


@dataclass(frozen=True)
class Vocabulary:
    """What the browser needs to encode as Python does, or why it has nothing."""

    name: str
    kind: str
    vocab_size: int
    left_out: str = ""
    """Why it is not in the page; empty if it is."""
    split_pattern: str = ""
    base: str = ""
    """Base tokens in the order of their ids, each one character."""
    merges: tuple[int, ...] = ()
    """The ids of both halves of every merge."""

    def as_json(self) -> dict[str, Any]:
        """What the page's script reads."""
        said = {"name": self.name, "kind": self.kind, "vocab_size": self.vocab_size}
        if self.left_out:
            return said | {"left_out": self.left_out}
        return said | {"split_pattern": self.split_pattern, "base": self.base, "merges": list(self.merges)}


@dataclass(frozen=True)
class ViewerStart:
    """What the token viewer starts with."""

    text: str
    word: str


@dataclass(frozen=True)
class Provenance:
    """Hashes and the like under one title."""

    title: str
    lines: Pairs


@dataclass(frozen=True)
class Page:
    """Everything that the page shows."""

    experiment: str
    answer: str
    how_sure: tuple[str, ...]
    noise: str | None
    marginal: tuple[str, ...]
    """One sentence for each contestant with a bound."""
    compared: Pairs
    """What the contestants share: text, model, batch, budget and seeds."""
    contestants: tuple[Contestant, ...]
    test_chars: int
    test_documents: int
    table: tuple[tuple[str, ...], ...]
    not_held_equal: tuple[str, ...]
    curves: tuple[Curve, ...]
    levels: tuple[Figure, ...]
    """The level lines of the curves."""
    documents: Documents
    passage: Passage
    viewer: ViewerStart
    vocabularies: tuple[Vocabulary, ...]
    samples: Mapping[str, tuple[Sample, ...]]
    """By contestant."""
    rule: str
    """How the bits of a token are divided among its characters."""
    flops_formula: str
    provenance: tuple[Provenance, ...]
    certainty: Certainty
    baselines: tuple[BaselineLine, ...]
    where_bits_go: WhereBitsGo
    intrinsic: Mapping[str, Intrinsic]
    """By contestant."""
    sweep: Sweep | None
    ladder: LadderAnswer | None
    sizes: Ranking | None
