"""JSON files of this program, read with a check of their shape: what is wrong is said with the mending command."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.errors import DataError, command
from data.files import read_json

Kinds = type | tuple[type, ...] | None
"""What a value may be: a type, several of them, or None for anything. `float` takes whole numbers, `int` no bool."""
_WORDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "null",
}
_MOST_SHOWN = 40  # characters of a wrong value that a message repeats


def read_object(path: Path, fields: Mapping[str, Kinds], *, mend: str) -> dict[str, Any]:
    """The JSON object in `path`, each of `fields` present and of its kind; other keys are left as they are.

    Raises DataError if the file is missing, unreadable, no JSON or of another shape; it names the file, the key,
    what was found, and `mend`, the command that makes the file again.
    """
    if not path.exists():
        raise DataError(f"{path} does not exist; run {command(mend)}")
    try:
        value = read_json(path)
    except DataError as error:
        raise DataError(f"{error.text}; run {command(mend)}") from error
    return check_object(value, fields, where=str(path), mend=mend)


def check_object(value: Any, fields: Mapping[str, Kinds], *, where: str, mend: str) -> dict[str, Any]:
    """The same check of a value that is read already; `where` says in messages where it stands, `file: key`."""
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected an object, found {_found(value)}; run {command(mend)}")
    for key, kinds in fields.items():
        if key not in value:
            raise DataError(f"{where}: key {key!r} is missing; run {command(mend)}")
        if not _is_one_of(value[key], kinds):
            found = _found(value[key])
            raise DataError(f"{where}: key {key!r}: expected {_words(kinds)}, found {found}; run {command(mend)}")
    return value


def _is_one_of(value: Any, kinds: Kinds) -> bool:
    if kinds is None:
        return True
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    if isinstance(value, bool):
        return bool in wanted
    return isinstance(value, wanted) or (float in wanted and isinstance(value, int))


def _words(kinds: Kinds) -> str:
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    return " or ".join(_WORDS[kind] for kind in wanted if kind is not None)


def _found(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{_WORDS[type(value)]} of {len(value)}"
    shown = "null" if value is None else repr(value)
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"


def plain(value: Any) -> Any:
    """A dataclass, and all that it holds, as JSON has it: fields by name in their order, tuples as lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value
