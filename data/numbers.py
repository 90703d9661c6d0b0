"""Numbers: as people write them, and the range that each may have.

YAML 1.1 and Python read some spellings in ways that nobody means: `010` as 8, `1:30:00` as 5400, `1.000` as 1. Such a
spelling is refused, with one that works; what has one meaning only is read.
"""

import math
import re
import typing
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from data.errors import ConfigError

_MOST_DIGITS = 40
_LONGEST_SHOWN = 60
# 1000, 1_000, and groups of three that one and the same mark separates: 1,000  1 000  1'000
_WHOLE = re.compile(
    r"[+-]?(?:[0-9]+(?:_[0-9]+)*|[0-9]{1,3}(?P<mark>[, '\u00a0\u2009\u202f])[0-9]{3}(?:(?P=mark)[0-9]{3})*)"
)
_DECIMAL = re.compile(
    r"[+-]?(?=\.?[0-9])(?P<whole>[0-9_]*)(?:\.(?P<fraction>[0-9]*))?(?:[eE](?P<exponent>[+-]?[0-9]+))?"
)
_GROUPS_OF_POINTS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
_OTHER_BASE = re.compile(r"[+-]?0[xXoObB][0-9a-fA-F_]+")


def read_whole(written: str) -> int:
    """The whole number that a person means by `written`: `1000`, `1_000`, `1,000`, `1e3`, `1.0e3`.

    Raises ValueError with what to write instead, such as for `010`, `1.000`, `0x10` and `1:30:00`.

    >>> read_whole("20_000_000"), read_whole("1,000"), read_whole("1.5e6"), read_whole("64.0")
    (20000000, 1000, 1500000, 64)
    """
    text = written.strip()
    if _WHOLE.fullmatch(text):
        digits = re.sub(r"[^0-9]", "", text)
        _refuse_leading_zero(digits)
        if len(digits) > _MOST_DIGITS:
            raise ValueError(f"it has {len(digits)} digits, and no setting needs more than {_MOST_DIGITS}")
        return -int(digits) if text.startswith("-") else int(digits)
    if may_mean_thousands(text):
        raise ValueError(f"it may mean {text.partition('.')[0]} or {text.replace('.', '')}; write one of them")
    value = _decimal(text)
    numerator, denominator = value.as_integer_ratio()
    if denominator != 1:
        raise ValueError("it is not whole")
    if abs(numerator) >= 10**_MOST_DIGITS:
        raise ValueError(f"no setting needs more than {_MOST_DIGITS} digits")
    return numerator


def read_number(written: str) -> float:
    """The finite number that a person means by `written`: `0.001`, `1e-3`, `.5`, `1_000`.

    Raises ValueError with what to write instead, such as for `0,5`, `010`, `.inf` and what float64 cannot hold.

    >>> read_number("3e-4"), read_number("-1"), read_number("1_000")
    (0.0003, -1.0, 1000.0)
    """
    text = written.strip()
    if "," in text and _DECIMAL.fullmatch(text.replace(",", "")):
        raise ValueError("a comma may mean two things; write a point before the fraction and nothing between thousands")
    value = _decimal(text)
    number = float(value)
    if math.isinf(number) or (number == 0.0 and value != 0):
        raise ValueError(f"a number so {'large' if number else 'close to 0'} cannot be held")
    return number


def may_mean_thousands(text: str) -> bool:
    """Whether `text` is written like `1.000`: one with three decimals, or a thousand."""
    return _GROUPS_OF_POINTS.fullmatch(text) is not None


def _decimal(text: str) -> Decimal:
    if _OTHER_BASE.fullmatch(text):
        raise ValueError("write it in decimal digits")
    if re.fullmatch(r"[+-]?\.?(inf|infinity|nan)", text, re.IGNORECASE):
        raise ValueError("it must be finite")
    if re.fullmatch(r"[0-9]+(:[0-9.]+)+", text):
        raise ValueError("a time is written as one number in the unit of the setting")
    match = _DECIMAL.fullmatch(text)
    if match is None or match["whole"].startswith("_") or match["whole"].endswith("_") or "__" in match["whole"]:
        raise ValueError("")
    _refuse_leading_zero(match["whole"])
    exponent = match["exponent"] or "0"
    if len(text) > 10 * _MOST_DIGITS or len(exponent) > 4:
        raise ValueError(
            f"it is written with {len(text)} characters; no setting needs so many"
            if len(exponent) <= 4
            else "its exponent is beyond what can be held"
        )
    return Decimal(text.replace("_", ""))


def _refuse_leading_zero(digits: str) -> None:
    if len(digits) > 1 and digits.startswith("0"):
        raise ValueError(f"a number does not begin with 0; write {digits.lstrip('0_') or 0}")


def shown(value: Any) -> str:
    """`value` as a message shows it: its repr, cut short."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**_MOST_DIGITS:
        return f"a number of about {round(value.bit_length() * math.log10(2)):,} digits"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


@dataclass(frozen=True)
class Range:
    """The values that a number may have, both ends included unless said otherwise."""

    least: float
    most: float
    excludes_least: bool = False
    excludes_most: bool = False
    or_zero: bool = False
    """0 is allowed besides."""

    def check(self, name: str, value: float) -> None:
        """Raise ConfigError, naming `name`, unless `value` lies in the range."""
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{name} must be a finite number, found {value}")
        if self.or_zero and value == 0:
            return
        is_low = value <= self.least if self.excludes_least else value < self.least
        is_high = value >= self.most if self.excludes_most else value > self.most
        if not is_low and not is_high:
            return
        zero = "0 or " if self.or_zero else ""
        if self.excludes_least or self.excludes_most:
            left, right = "(" if self.excludes_least else "[", ")" if self.excludes_most else "]"
            wanted = f"in {left}{_end(self.least)}, {_end(self.most)}{right}"
        else:
            wanted = f"at least {_end(self.least)}" if is_low else f"at most {_end(self.most)}"
        raise ConfigError(f"{name} must be {zero}{wanted}, found {shown(value)}")


def _end(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


@dataclass(frozen=True)
class NullAs:
    """Words that a file may use for null in this setting, such as `all`."""

    words: tuple[str, ...]


SEED = Range(0, 2**63 - 1)
"""What torch and numpy both take."""
COUNT = Range(1, 10**12)
"""Of characters, windows, rounds: more than any machine gets through."""


def notes(cls: Any, kind: Any) -> dict[str, Any]:
    """Field of the dataclass `cls` -> the note of class `kind` in its `Annotated[...]`, where it has one."""
    found = {}
    for name, hint in typing.get_type_hints(cls, include_extras=True).items():
        for note in getattr(hint, "__metadata__", ()):
            if isinstance(note, kind):
                found[name] = note
    return found


def check_ranges(settings: Any) -> None:
    """Check every number of the dataclass `settings` against the Range in its annotation; for `__post_init__`.

    None stays None. Raises ConfigError with the field and its value.
    """
    ranges = notes(type(settings), Range)
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name in ranges and value is not None:
            ranges[field.name].check(field.name, value)
