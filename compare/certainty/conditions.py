"""Conditions on the verdict that end `compare` with an exit code of their own, such as `worse:bpe`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from compare.certainty.pairs import Certainty
from compare.certainty.verdict import seen_from
from data.config import did_you_mean
from data.errors import ConfigError
from data.numbers import shown

Word = Literal["worse", "better", "equal", "undecided"]
WORDS: tuple[Word, ...] = get_args(Word)
HOLDS, CANNOT_BE_SAID = 3, 4
"""Exit codes: a condition holds; it cannot be said whether one does."""
HELP = (
    "exit with 3 if this holds, and with 4 if it cannot be said: `worse:NAME`, `better:NAME` or `equal:NAME` for a "
    "contestant next to the baseline contestant; `undecided:NAME` (3 if that pair is undecided), `undecided` (3 if any "
    "pair with the baseline contestant is); may be repeated, and 3 goes before 4"
)


@dataclass(frozen=True)
class Condition:
    """One condition: what a contestant would have to be, seen from the baseline contestant."""

    word: Word
    contestant: str | None
    """None: any of them."""

    def __str__(self) -> str:
        return self.word if self.contestant is None else f"{self.word}:{self.contestant}"


def condition_of(written: str, contestants: Sequence[str], baseline: str) -> Condition:
    """The condition that `written` means.

    Raises ConfigError for an unknown word, a contestant that is not there, and the baseline contestant itself.
    """
    where = f"--fail-if {written}"
    stated, colon, name = written.strip().partition(":")
    word = next((word for word in WORDS if word == stated), None)
    if word is None:
        close = did_you_mean(stated, list(WORDS))
        raise ConfigError(f"{where}: {shown(stated)} is not one of {', '.join(WORDS)}{close}")
    if not colon and word == "undecided":
        return Condition(word, None)
    if not name:
        raise ConfigError(f"{where}: expected a contestant behind the word, such as {word}:{contestants[-1]}")
    if name not in contestants:
        raise ConfigError(f"{where}: no contestant {shown(name)}{did_you_mean(name, list(contestants))}")
    if name == baseline:
        raise ConfigError(f"{where}: {name} is the baseline contestant, with which the others are compared")
    return Condition(word, name)


def exit_code(conditions: Sequence[Condition], certainty: Certainty) -> int:
    """0, HOLDS or CANNOT_BE_SAID; HOLDS goes first."""
    codes = {_code(condition, certainty) for condition in conditions}
    return HOLDS if HOLDS in codes else max(codes, default=0)


def _code(condition: Condition, certainty: Certainty) -> int:
    base = certainty.baseline
    if condition.contestant is None:
        found = {seen_from(pair, base) for pair in certainty.pairs_with_baseline}
    else:
        found = {seen_from(certainty.pair(base, condition.contestant), base)}
    if condition.word in found:
        return HOLDS
    return CANNOT_BE_SAID if "undecided" in found else 0
