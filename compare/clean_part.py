"""The contestants on the part of test that train does not hold: does the ranking there say the same?

Test characters inside strings of 50 or more characters that are in train can be learned by heart, and contestants
differ in how well they do that. The rest of test, the clean part, asks what was learned of the language.

Shapes: C characters of test.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compare.characters import Float64Array, character_nats
from data.dividing.overlap import BoolArray, Text, covered
from data.dividing.shared import DECISIVE_LENGTH
from data.errors import ReportError, command
from data.splits import Split
from model.evaluate import Evaluation

NGRAM = "character n-gram"
"""The name under which the n-gram is ranked among the contestants."""


@dataclass(frozen=True)
class CleanPart:
    """Bits per character on the clean part of test and on all of it."""

    characters: int
    """Of the clean part."""
    share: float
    """Of test, above 0 and at most 1."""
    bits_per_char: dict[str, float]
    """On the clean part, for each contestant (mean over its seeds) and, where it was scored, the n-gram."""
    whole_bits_per_char: dict[str, float]
    """The same on all of test."""

    @property
    def ranking(self) -> tuple[str, ...]:
        """Fewest bits per character on the clean part first; of equals, the one that comes first in `bits_per_char`."""
        return _ranked(self.bits_per_char)

    @property
    def whole_ranking(self) -> tuple[str, ...]:
        """The same on all of test."""
        return _ranked(self.whole_bits_per_char)

    @property
    def ranking_differs(self) -> bool:
        """Whether the clean part orders them otherwise than the whole of test does."""
        return self.ranking != self.whole_ranking


def is_clean(train: Split, test: Split) -> BoolArray:
    """(C,): which characters of `test` lie in no string of DECISIVE_LENGTH characters that is in `train`."""
    return ~covered(Text.of(test.documents()), Text.of(train.documents()), DECISIVE_LENGTH)


def clean_part(
    clean: BoolArray, contestants: Mapping[str, Sequence[Evaluation]], ngram_nats: Float64Array | None = None
) -> CleanPart | None:
    """Everyone's figures on the characters that are `clean`, (C,), and on all of test; None if no character is clean.

    `contestants`: the evaluations of each, one for each seed. `ngram_nats`, (C,): what the n-gram gives
    for test. Raises ReportError for figures that were made on another text.
    """
    if not clean.any():
        return None
    nats = {name: [character_nats(one) for one in evaluations] for name, evaluations in contestants.items()}
    if ngram_nats is not None:
        nats[NGRAM] = [ngram_nats]
    for name, by_seed in nats.items():
        for found in by_seed:
            if len(found) != len(clean):
                raise ReportError(
                    f"{name} was scored on {len(found):,} characters, but test holds {len(clean):,}; "
                    f"run {command('make all')}"
                )
    return CleanPart(
        characters=int(np.count_nonzero(clean)),
        share=float(clean.mean()),
        bits_per_char={name: _bits_per_char([found[clean] for found in by_seed]) for name, by_seed in nats.items()},
        whole_bits_per_char={name: _bits_per_char(by_seed) for name, by_seed in nats.items()},
    )


def clean_sentence(part: CleanPart) -> str:
    """For the report: the ranking on the clean part, and that on all of test where it differs."""
    found = (
        f"On the {100 * part.share:.1f} % of test that share no {DECISIVE_LENGTH} characters with train the ranking is "
        f"{_with_bits(part.ranking, part.bits_per_char)}"
    )
    if not part.ranking_differs:
        return f"{found} (bits per character, fewest first), the same as on all of test."
    whole = _with_bits(part.whole_ranking, part.whole_bits_per_char)
    return f"{found}; on all of test it is {whole} (bits per character, fewest first)."


def _bits_per_char(by_seed: Sequence[Float64Array]) -> float:
    return float(np.mean([nats.mean() for nats in by_seed])) / math.log(2)


def _ranked(bits_per_char: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(sorted(bits_per_char, key=lambda name: bits_per_char[name]))


def _with_bits(ranking: Sequence[str], bits_per_char: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {bits_per_char[name]:.3f}" for name in ranking)
