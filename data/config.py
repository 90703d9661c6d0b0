"""Strict mapping -> frozen dataclass, shared by every room that has a configuration.

The dataclasses live beside the code they configure and check their own ranges in `__post_init__`.
"""

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from data.errors import ConfigError

T = TypeVar("T")


def build(cls: type[T], values: Mapping[str, Any], where: str, *, given: Mapping[str, Any] | None = None) -> T:
    """Make a `cls` from the mapping `values` read at `where` (file and key, for messages).

    `given` are fields that the program sets and a file may not. Unknown keys, missing keys and wrong types
    raise ConfigError; a close spelling is suggested. A string like "3e-4", which YAML 1.1 does not take for a
    number, is accepted where a float is wanted.
    """
    given = given or {}
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where}: expected a mapping of settings, found {values!r}")
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    settable = [name for name in fields if name not in given]
    for key in values:
        if key in given:
            raise ConfigError(f"{where}.{key}: this is not set in a file; the program takes it from {given[key]!r}")
        if key not in fields:
            raise ConfigError(f"{where}: unknown key {key!r}{did_you_mean(str(key), settable)}")
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values and name not in given:
            raise ConfigError(f"{where}: key {name!r} is missing")
    converted = {key: convert(value, hints[key], f"{where}.{key}") for key, value in values.items()}
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
        if value not in arguments:
            choices = [str(argument) for argument in arguments]
            raise ConfigError(f"{where}: {value!r} is not one of {', '.join(choices)}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where}: expected a list, found {value!r}")
        return tuple(convert(item, arguments[0], f"{where}[{index}]") for index, item in enumerate(value))
    return _convert_plain(value, hint, where)


def _convert_plain(value: Any, hint: Any, where: str) -> Any:
    if hint is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError:
            raise ConfigError(f"{where}: expected a number, found {value!r}") from None
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    is_bool_for_int = hint is int and isinstance(value, bool)
    if hint in (int, str, bool) and isinstance(value, hint) and not is_bool_for_int:
        return value
    raise ConfigError(f"{where}: expected {getattr(hint, '__name__', hint)}, found {value!r}")


def require(condition: bool, message: str) -> None:
    """Raise ConfigError with `message` unless `condition` holds; for range checks in `__post_init__`."""
    if not condition:
        raise ConfigError(message)
