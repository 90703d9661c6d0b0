"""Where the bits go, as values: what `where_bits_go` of comparison.json holds, and back.

Every figure is by contestant. `bits` are totals; `bits_per_char` is over the characters of the class, and None where a
contestant has none; `cut_share` is explained by CUT_NOTE.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data.shapes import plain


@dataclass(frozen=True)
class Figures:
    """One class of characters, which may hold other characters for each contestant."""

    num_chars: Mapping[str, int]
    bits: Mapping[str, float]
    bits_per_char: Mapping[str, float | None]
    cut_share: Mapping[str, float | None]


@dataclass(frozen=True)
class KindRow:
    """The characters of one kind."""

    name: str
    description: str
    num_chars: int
    bits: Mapping[str, float]
    bits_per_char: Mapping[str, float | None]
    cut_share: Mapping[str, float | None]


@dataclass(frozen=True)
class RangeRow:
    """The characters with a number in a range: of characters before them, or of characters in sight."""

    first: int
    last: int | None
    """Included; None for a range without an end."""
    num_chars: Mapping[str, int]
    bits: Mapping[str, float]
    bits_per_char: Mapping[str, float | None]
    cut_share: Mapping[str, float | None]

    def as_json(self) -> dict[str, Any]:
        """The row with its range as `from` and `to`."""
        figures = {name: value for name, value in plain(self).items() if name not in ("first", "last")}
        return {"from": self.first, "to": self.last, **figures}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "RangeRow":
        """What `as_json` wrote."""
        figures = {name: found for name, found in value.items() if name not in ("from", "to")}
        return cls(first=value["from"], last=value["to"], **figures)


@dataclass(frozen=True)
class WordRow:
    """The characters of words that are as frequent in train as `name` says."""

    name: str
    num_words: int
    num_chars: int
    bits: Mapping[str, float]
    bits_per_char: Mapping[str, float | None]
    cut_share: Mapping[str, float | None]


@dataclass(frozen=True)
class UnseenCharacter:
    """A character of the test text that train does not hold."""

    character: str
    code_point: str
    """Such as `U+00E9`."""
    count: int


@dataclass(frozen=True)
class Unseen:
    """All characters of the test text that train does not hold."""

    num_distinct: int
    characters: tuple[UnseenCharacter, ...]
    """The most frequent first."""
    num_chars: int
    bits: Mapping[str, float]
    bits_per_char: Mapping[str, float | None]
    cut_share: Mapping[str, float | None]


@dataclass(frozen=True)
class WhereBitsGo:
    """The bits of the test text by class of character. Kinds and positions hold every character once each."""

    rule: str
    cut_note: str
    num_chars: int
    total_bits: Mapping[str, float]
    kinds: tuple[KindRow, ...]
    positions: tuple[RangeRow, ...]
    position_note: str
    context_seen: tuple[RangeRow, ...]
    context_note: str
    word_frequency: tuple[WordRow, ...]
    word_note: str
    unseen: Unseen

    def as_json(self) -> dict[str, Any]:
        """What comparison.json holds."""
        values: dict[str, Any] = plain(self)
        return values | {
            "positions": [row.as_json() for row in self.positions],
            "context_seen": [row.as_json() for row in self.context_seen],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "WhereBitsGo":
        """What `as_json` wrote."""
        unseen = value["unseen"]
        characters = tuple(UnseenCharacter(**one) for one in unseen["characters"])
        rows = {
            "kinds": tuple(KindRow(**row) for row in value["kinds"]),
            "positions": tuple(RangeRow.from_json(row) for row in value["positions"]),
            "context_seen": tuple(RangeRow.from_json(row) for row in value["context_seen"]),
            "word_frequency": tuple(WordRow(**row) for row in value["word_frequency"]),
            "unseen": Unseen(**unseen | {"characters": characters}),
        }
        return cls(**{**value, **rows})
