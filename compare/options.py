"""How a command reads its options: text as it was typed, numbers as people write them and within a stated range."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from compare.experiment_file import folder_of
from data.config import convert
from data.errors import ConfigError
from data.numbers import Range

PROGRAM = "chars-or-bpe"
"""The console entry of scripts/main.py."""


class Parser(argparse.ArgumentParser):
    """A parser whose options take any text, `-hello` and `--` too, and whose mistakes are one line."""

    def __init__(self, description: str | None) -> None:
        super().__init__(prog=_called(), description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError: `message` on one line, and where the options are listed."""
        raise ConfigError(f"{' '.join(message.split())}; `{_called()} --help` lists the options")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse does, but what follows an option that wants one value is its value, whatever it looks like."""
        given = list(sys.argv[1:] if args is None else args)
        rest: list[str] = []
        dashes: list[tuple[argparse.Action, str]] = []
        while given:
            word = given.pop(0)
            if word == "--":
                rest += [word, *given]
                break
            name, equals, value = word.partition("=")
            action = self._option_string_actions.get(name)
            if action is None or action.nargs is not None or (not equals and not given):
                rest.append(word)
                continue
            value = value if equals else given.pop(0)
            if value == "--":  # argparse drops this one word wherever it stands
                dashes.append((action, name))
            else:
                rest.append(f"{name}={value}")
        found, unknown = super().parse_known_args(rest, namespace)
        for action, name in dashes:
            if action.type is not None or action.choices is not None:
                self.error(f"argument {name}: invalid value: '--'")
            action(self, found, "--", name)
        return found, unknown


def _called() -> str:
    """How this command can be called again: `chars-or-bpe sample` or `python -m scripts.sample`."""
    name = sys.argv[0]
    if name.startswith(f"{PROGRAM} "):
        return name
    if name.startswith(("scripts.", "bench.")):  # it was called by Make, which stands between
        return f"python -m {name}"
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return f"python -m {spec.name if spec is not None else 'scripts.<command>'}"


def whole(limits: Range, *, words: Sequence[str] = ()) -> Callable[[str], Any]:
    """An argparse type: a whole number within `limits`, in every usual spelling, or one of `words` as it is."""
    return _within(limits, int, words)


def number(limits: Range) -> Callable[[str], Any]:
    """An argparse type: a finite number within `limits`."""
    return _within(limits, float, ())


def folder(written: str) -> Path:
    """An argparse type: a folder, `~` being the home folder."""
    try:
        return folder_of(written, "")
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix(":").strip()) from error


def _within(limits: Range, kind: type, words: Sequence[str]) -> Callable[[str], Any]:
    def read(written: str) -> Any:
        if written in words:
            return written
        try:
            value = convert(written, kind, "")
            limits.check("", value)
        except ConfigError as error:
            message = str(error).removeprefix(":").strip()
            raise argparse.ArgumentTypeError(message + "".join(f", or `{word}`" for word in words)) from error
        return value

    read.limits = limits  # type: ignore[attr-defined]
    return read
