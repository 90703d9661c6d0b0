"""report.json read back: every figure that is used later is there, of its kind and finite, or the file is refused."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, cast, get_args, get_origin, get_type_hints

from data.errors import DataError, command
from data.shapes import check_object, read_object
from model.settings import Unit


@dataclass(frozen=True)
class SplitScore:
    """The figures of one scored split."""

    text_sha256: str
    ids_sha256: str
    nats_sha256: str
    num_chars: int
    num_bytes: int
    num_words: int
    num_tokens: int
    num_documents: int
    total_nats: float
    bits_per_char: float
    bits_per_byte: float
    disjoint_bits_per_char: float
    chars_per_token: float
    word_perplexity: float | None


@dataclass(frozen=True)
class Splits:
    """Both scored splits."""

    val: SplitScore
    test: SplitScore

    def of(self, name: str) -> SplitScore:
        """The split called `name`, `val` or `test`."""
        return {"val": self.val, "test": self.test}[name]


@dataclass(frozen=True)
class TokenizerFacts:
    """Which tokenizer a run had."""

    kind: str
    fingerprint: str
    vocab_size: int


@dataclass(frozen=True)
class ModelFacts:
    """What is needed of the model's settings; all of them are `Report.settings`."""

    block_size: int


@dataclass(frozen=True)
class BudgetFacts:
    """What a run might spend."""

    unit: str
    amount: int


@dataclass(frozen=True)
class TrainFacts:
    """What is needed of the training's settings; all of them are `Report.settings`."""

    learning_rate: float
    seed: int
    budget: BudgetFacts


@dataclass(frozen=True)
class Parameters:
    """Numbers of the model's parameters."""

    total: int
    embedding: int
    rest: int


@dataclass(frozen=True)
class Seen:
    """What a run has spent."""

    characters: int
    tokens: int
    steps: int
    flops: float
    seconds: float
    """Time in training steps."""
    epochs: float


@dataclass(frozen=True)
class Environment:
    """Where a run was trained."""

    torch: str
    device: str
    num_threads: int
    dtype: str


@dataclass(frozen=True)
class Block:
    """The length of a window."""

    tokens: int
    mean_characters: float
    """So many characters of train are in it on average."""


@dataclass(frozen=True)
class Report:
    """report.json: what a finished run was, and what its selected checkpoint scored."""

    contestant: str
    tokenizer: TokenizerFacts
    model: ModelFacts
    train: TrainFacts
    parameters: Parameters
    seen: Seen
    tokens_per_second: float
    flops_formula: str
    environment: Environment
    block: Block
    splits: Splits
    evaluate: Mapping[str, Any]
    """The settings of the scoring, the stride resolved."""
    checkpoint_sha256: str
    train_text_sha256: str
    stored: Mapping[str, Any] = field(repr=False, default_factory=dict)
    """The whole file as it was read, for what is shown or compared as it stands."""

    @property
    def settings(self) -> dict[str, Mapping[str, Any]]:
        """The resolved settings of the blocks `model`, `train` and `evaluate`: after presets, defaults, overrides."""
        return {block: self.stored[block] for block in ("model", "train", "evaluate")}

    @classmethod
    def from_json(cls, value: Any, *, where: str, mend: str) -> "Report":
        """The report that `value`, read from JSON, holds; other keys are left as they are.

        Raises DataError beginning with `where` if a key is missing, of another kind, not finite, negative, or 0 where
        it cannot be; `mend` is the command that makes the file again.
        """
        report = cast(Report, _read(cls, value, where, mend, leave={"stored": value}))
        if report.train.budget.unit not in get_args(Unit):
            raise DataError(f"{where}: train.budget: unknown unit {report.train.budget.unit!r}; run {command(mend)}")
        if not report.flops_formula:
            raise DataError(f"{where}: key 'flops_formula' is empty; run {command(mend)}")
        return report


# What later figures are divided by, or what cannot be empty.
_POSITIVE = frozenset({"num_chars", "num_bytes", "num_tokens", "num_documents", "vocab_size", "total", "block_size"})


def read_report(path: Path, *, mend: str) -> Report:
    """The report in `path`; `mend` is the command that makes it again.

    Raises DataError naming the file, the key and what was found there; see `Report.from_json`.
    """
    return Report.from_json(read_object(path, {}, mend=mend), where=str(path), mend=mend)


def _read(cls: type, value: Any, where: str, mend: str, *, leave: Mapping[str, Any] | None = None) -> Any:
    """A `cls` from a JSON object; its annotations say what every key must be. `leave` are fields that are given."""
    given = leave or {}
    hints = {name: hint for name, hint in get_type_hints(cls).items() if name not in given}
    check_object(value, {key: _kinds(hint) for key, hint in hints.items()}, where=where, mend=mend)
    found = dict(given)
    for one in fields(cls):
        if one.name in given:
            continue
        hint, part = hints[one.name], value[one.name]
        if is_dataclass(hint):
            part = _read(cast(type, hint), part, f"{where}: {one.name}", mend)
        elif isinstance(part, int | float) and one.name != "seed":
            check_figure(part, f"{where}: key {one.name!r}", mend, is_positive=one.name in _POSITIVE)
        found[one.name] = part
    return cls(**found)


def _kinds(hint: Any) -> Any:
    """What a JSON value of the annotation `hint` may be, for `check_object`."""
    if is_dataclass(hint) or (get_origin(hint) is not None and issubclass(get_origin(hint), Mapping)):
        return dict
    return get_args(hint) or hint


def check_figure(value: float, where: str, mend: str, *, is_positive: bool = False) -> None:
    """Raise DataError unless `value` is a finite number that is not negative and, if it has to be, not 0."""
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"{where}: expected a finite number, found {value}; run {command(mend)}")
    if value < 0 or (is_positive and value == 0):
        least = "greater than 0" if is_positive else "at least 0"
        raise DataError(f"{where}: expected a number {least}, found {value}; run {command(mend)}")
