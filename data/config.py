"""Strict mapping -> frozen dataclass, shared by every package that has a configuration.

The dataclasses are next to the code they configure. Their numbers carry a `Range` in the annotation, which
`__post_init__` checks by `check_ranges`, with whatever else belongs together.
"""

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from data.errors import ConfigError
from data.numbers import NullAs, notes, read_number, read_whole, shown
from data.yaml_file import PlainWord

T = TypeVar("T")
_LARGEST_EXACT_FLOAT = 2**53


def build(cls: type[T], values: Mapping[str, Any], where: str, *, given: Mapping[str, Any] | None = None) -> T:
    """Make a `cls` from the mapping `values` read at `where` (file and key, for messages).

    `given` are fields that the program sets and a file may not. Unknown keys, missing keys and wrong types
    raise ConfigError; a close spelling is suggested. Numbers may be spelled in every usual way.
    """
    given = given or {}
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where}: expected a mapping of settings, found {shown(values)}")
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    settable = [name for name in fields if name not in given]
    for key in values:
        if key in given:
            raise ConfigError(f"{where}.{key}: this is not set in a file; the program takes it from {given[key]!r}")
        if key not in fields:
            raise ConfigError(f"{where}: unknown key {shown(key)}{did_you_mean(str(key), settable)}")
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values and name not in given:
            raise ConfigError(f"{where}: key {name!r} is missing")
    null_words = notes(cls, NullAs)
    converted = {}
    for key, value in values.items():
        is_null = key in null_words and isinstance(value, str) and value.lower() in null_words[key].words
        converted[key] = None if is_null else convert(value, hints[key], f"{where}.{key}")
    try:
        return cls(**converted, **given)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def did_you_mean(found: str, known: list[str]) -> str:
    """The end of an error message: the closest known spelling, or the list of all."""
    close = difflib.get_close_matches(found, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(known))}"


def convert(value: Any, hint: Any, where: str) -> Any:
    """Check `value` against the type `hint`, converting what YAML spells differently; raises ConfigError."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        inner = [argument for argument in arguments if argument is not type(None)]
        if len(inner) != 1:
            raise TypeError(f"{where}: only `X | None` unions are supported, not {hint}")
        return convert(value, inner[0], where)
    if dataclasses.is_dataclass(hint):
        return value if isinstance(value, hint) else build(hint, value, where)  # type: ignore[arg-type]
    if origin is typing.Literal:
        for argument in arguments:
            if value == argument and isinstance(value, type(argument)):
                return argument
        raise ConfigError(f"{where}: {shown(value)} is not one of {', '.join(map(str, arguments))}")
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where}: expected a list, found {shown(value)}; write one as [first, second]")
        return tuple(convert(item, arguments[0], f"{where}[{index}]") for index, item in enumerate(value))
    return _convert_plain(value, hint, where)


def _convert_plain(value: Any, hint: Any, where: str) -> Any:
    if hint is int:
        return _whole(value, where)
    if hint is float:
        return _number(value, where)
    if hint is bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, PlainWord) and value.lower() in ("yes", "on", "no", "off"):
            return value.lower() in ("yes", "on")
        raise ConfigError(f"{where}: expected true or false, found {shown(value)}")
    if hint is str:
        return _free_text(value, where)
    if not isinstance(value, hint):
        raise ConfigError(f"{where}: expected {getattr(hint, '__name__', hint)}, found {shown(value)}")
    return value


def _whole(value: Any, where: str) -> int:
    reason = ""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_EXACT_FLOAT:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        reason = "write one so large in digits"
    if isinstance(value, str):
        try:
            return read_whole(value)
        except ValueError as error:
            reason = str(error)
    raise ConfigError(f"{where}: expected a whole number such as 1000, found {_with_reason(value, reason)}")


def _number(value: Any, where: str) -> float:
    reason = ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            reason = "it is too large"
    if isinstance(value, str):
        try:
            return read_number(value)
        except ValueError as error:
            reason = str(error)
    raise ConfigError(f"{where}: expected a number such as 0.001, found {_with_reason(value, reason)}")


def _with_reason(value: Any, reason: str) -> str:
    return f"{shown(value)}: {reason}" if reason else shown(value)


def _free_text(value: Any, where: str) -> str:
    if isinstance(value, str) and not isinstance(value, PlainWord):
        return value
    if value is None:
        raise ConfigError(f"{where}: expected text, found nothing (null)")
    if isinstance(value, list | tuple | Mapping):
        raise ConfigError(f"{where}: expected text, found {shown(value)}")
    raise ConfigError(f"{where}: expected text, found {shown(value)}; put it in quotes if text is meant")


def require(condition: bool, message: str) -> None:
    """Raise ConfigError with `message` unless `condition` holds; for range checks in `__post_init__`."""
    if not condition:
        raise ConfigError(message)
