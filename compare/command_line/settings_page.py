"""The text of docs/settings.md: the keys of an experiment file, from the dataclasses that check the values."""

import ast
import dataclasses
import inspect
import json
import math
import textwrap
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compare.experiment import Contestant, Experiment
from data.numbers import NullAs, Range, notes
from model.settings import BatchConfig, LadderConfig

PATH = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
WIDTH = 118
_WRAPPED: Any = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}

INTRODUCTION = """\
An experiment is one YAML file in `configs/`. This page lists every key that it may hold. A key that is not listed is an
error, and the message suggests the closest one.

The file replaces the defaults below. `SET="train.batch_size=64"` on the command line replaces a value of the file. A
contestant's own block replaces the shared block of the same name. Numbers may be written as `1000`, `1_000`, `1e3` or
`1.0e-3`. `null` means that no value is set.

`python -m scripts.settings` writes this page. A test fails when the page is out of date."""

TOP_LEVEL = {
    "corpus": "Required. The text; see [corpus](#corpus).",
    "contestants": "Required. A name and a block for each tokenizer that is compared; see [contestants](#contestants).",
    "model": "The model that all contestants share; see [model](#model).",
    "train": "Required. The training that all contestants share; see [train](#train).",
    "evaluate": "How a trained model is scored; see [evaluate](#evaluate).",
    "seeds": "A list of seeds, such as `[1, 2, 3]`. Every contestant is trained once with each. Default: once, with "
    "`train.seed`. A file may not give both.",
    "ladder": "Finished models at several budgets from one training; see [ladder](#ladder). Default: `null`, the whole "
    "budget only.",
    "sizes": "Other sizes of the models, such as `[0.4, 1, 2.5]`, in times the weights of the blocks: at most 5 "
    "besides 1, which is the `model` block itself. Every contestant is trained with them as well, with the whole "
    "budget and a quarter of it. Default: `null`, one size.",
    "normalized_by": "A contestant whose tokenizer is read from a file. Every document of all splits becomes what this "
    "tokenizer makes of it, encoded and decoded again. All contestants train on that text and are scored on it. For a "
    "tokenizer that changes the text. Default: `null`, the text as it is.",
    "baseline": "The contestant that the verdict compares the others with. Default: `char`, else the first.",
    "root": "The folder below which all files of the experiment are written. Default: `.`, the working directory.",
}
CONTESTANT = {
    "tokenizer": "Required. The tokenizer; see [tokenizer](#tokenizer).",
    "model": "Values that replace those of the shared `model` block for this contestant. The report lists them.",
    "train": "Values that replace those of the shared `train` block. The report lists them.",
    "evaluate": "Values that replace those of the shared `evaluate` block. The report lists them.",
    "context": "The unit of `model.block_size`: `tokens` or `characters`. With `characters`, the block has as many "
    "tokens as span that many characters of train on average. Default: `tokens`.",
}
NOTES = {
    "model": "The vocabulary size is not a setting: the program takes it from the tokenizer. `preset: modern` turns "
    "on {switches}. It also makes `optimizer: muon` and `schedule: linear` the defaults of the train block.",
    "train": "The unit of `budget` decides what is equal for all contestants.",
    "ladder": "`ladder: {{}}` takes these defaults. Every rung has `schedule: linear` with `way_down` as "
    "`warmdown_fraction`, `min_learning_rate_ratio: 0`, `selection: last`, and the same warm-up: "
    "`train.warmup_amount`, or `train.warmup_fraction` of the smallest budget. A run with these settings and the "
    "budget of a rung, without a ladder, gives the same weights.",
}


def settings_page() -> str:
    """The text of docs/settings.md."""
    types_of = typing.get_type_hints(Contestant)
    model = typing.get_type_hints(Contestant.model_config)["return"]
    train = types_of["train"]
    blocks = {
        "corpus": typing.get_type_hints(Experiment)["corpus"],
        "tokenizer": types_of["tokenizer"],
        "model": model,
        "train": train,
        "train.budget": typing.get_type_hints(train)["budget"],
        "train.batch": BatchConfig,
        "evaluate": types_of["evaluate"],
        "ladder": LadderConfig,
    }
    parts = ["# Settings", INTRODUCTION, "## The file", _list(TOP_LEVEL)]
    for name, cls in blocks.items():
        if name == "tokenizer":
            about = "Each contestant has a name of its own, such as `bpe`, and these keys:"
            parts += ["## contestants", about, _list(CONTESTANT)]
        parts.append(f"## {name}")
        if name in NOTES:
            parts.append(textwrap.fill(NOTES[name].format(switches=_switches(model)), WIDTH))
        parts.append("\n".join(_entries(cls, skipped={"vocab_size"} if cls is model else set())))
    return "\n\n".join(parts) + "\n"


def _list(described: dict[str, str]) -> str:
    return "\n".join(_entry(f"- `{key}`: {text}") for key, text in described.items())


def _entry(text: str) -> str:
    return textwrap.fill(text, WIDTH, **_WRAPPED)


def _entries(cls: Any, skipped: set[str]) -> Iterator[str]:
    """One entry of the list for each field of the dataclass `cls`. Raises ValueError for a field without docstring."""
    described = docstrings_of(cls)
    ranges, null_words = notes(cls, Range), notes(cls, NullAs)
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if field.name in skipped:
            continue
        if field.name not in described:
            raise ValueError(f"{cls.__name__}.{field.name} has no docstring")
        kind = type_in_words(hints[field.name], ranges.get(field.name), null_words.get(field.name))
        about = textwrap.fill(described[field.name], WIDTH, initial_indent="  ", **_WRAPPED)
        yield _entry(f"- `{field.name}` ({kind}; {_default(field)})") + f"\n{about}"


def docstrings_of(cls: Any) -> dict[str, str]:
    """Field of the dataclass `cls` -> the string below it in the source, on one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for line, below in zip(body.body, body.body[1:], strict=False):
        is_field = isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        if is_field and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[line.target.id] = " ".join(str(below.value.value).split())  # type: ignore[attr-defined]
    return found


def type_in_words(hint: Any, allowed: Range | None = None, null_as: NullAs | None = None) -> str:
    """What a value of the type `hint` may be.

    >>> type_in_words(int | None, Range(1, 1024), NullAs(("auto",)))
    'whole number from 1 to 1_024, `auto` or `null`'
    """
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        inner = next(argument for argument in typing.get_args(hint) if argument is not type(None))
        words = [f"`{word}`" for word in (*(null_as.words if null_as else ()), "null")]
        return _listed([*type_in_words(inner, allowed).replace(" or ", ", ").split(", "), *words], "or")
    if typing.get_origin(hint) is typing.Literal:
        return _listed([f"`{value}`" for value in typing.get_args(hint)], "or")
    if typing.get_origin(hint) is tuple:
        return f"list of {type_in_words(typing.get_args(hint)[0])}s"
    if dataclasses.is_dataclass(hint):
        return "block"
    name = {int: "whole number", float: "number", bool: "`true` or `false`", str: "string"}[hint]
    return f"{name} {_range(allowed)}" if allowed else name


def _range(allowed: Range) -> str:
    least = f"above {_number(allowed.least)}" if allowed.excludes_least else f"from {_number(allowed.least)}"
    most = f"below {_number(allowed.most)}" if allowed.excludes_most else f"to {_number(allowed.most)}"
    return f"{least} {most}{', or 0' if allowed.or_zero else ''}"


def _number(value: float) -> str:
    if isinstance(value, int) and value >= 10**7:
        power = round(math.log10(value))
        return f"10^{power}" if value == 10**power else "2^63 - 1" if value == 2**63 - 1 else f"{value:_}"
    return f"{value:_}" if isinstance(value, int) else f"{value:g}"


def _default(field: Any) -> str:
    if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
        return "required"
    if dataclasses.is_dataclass(field.type) or field.default_factory is not dataclasses.MISSING:
        return "see below"
    if isinstance(field.default, str):
        return f"default `{field.default}`"
    if type(field.default) is int:
        return f"default `{field.default:_}`"
    return f"default `{json.dumps(field.default)}`"


def _switches(model: Any) -> str:
    """The settings that `preset: modern` turns on in the dataclass `model`."""
    plain, modern = (dataclasses.asdict(model(vocab_size=2, preset=preset)) for preset in ("gpt2", "modern"))
    return _listed([f"`{name}`" for name in plain if plain[name] != modern[name] and name != "preset"], "and")


def _listed(words: Sequence[str], last: str) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return f" {last} ".join(", ".join(words).rsplit(", ", 1))
