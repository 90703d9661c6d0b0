"""What was not held equal: every resolved setting, and every figure of the runs, that differs between contestants."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compare.experiment import Experiment
from compare.figures import NO_FIGURE, figure
from compare.runs import Entry, Run
from compare.table import Row
from tokenizer.base import Tokenizer

Values = Mapping[str, tuple[str, ...]]
"""Dotted name of a setting -> its values as they are shown, one for each that a contestant's runs had."""

_ABOUT_THE_TOKENIZER = frozenset({"model.vocab_size"})
_TOLD_ELSEWHERE = frozenset({"model.block_size", "train.seed"})  # as the figure "block in tokens", and as "seeds"
_OF_THE_TRAINING_TEXT = ("training_characters", "min_pair_frequency", "split_pattern", "tie_break", "special_tokens")
_ENVIRONMENT = ("torch", "device", "num_threads", "dtype")
_FIGURES: tuple[tuple[Callable[[Row], float], str, str], ...] = (
    (lambda row: row.parameters_embedding, "embedding parameters", "{:,}"),
    (lambda row: row.parameters_rest, "parameters besides the embedding", "{:,}"),
    (lambda row: row.block_tokens, "block in tokens", "{:,}"),
    (lambda row: row.block_characters, "context in characters (mean)", "{:,.0f}"),
    (lambda row: row.tokens_seen, "tokens seen", "{:,.0f}"),
    (lambda row: row.characters_seen, "characters seen (the last step overshoots a budget in characters)", "{:,.0f}"),
    (lambda row: row.steps, "optimizer steps (every step takes batch_size blocks)", "{:,.0f}"),
    (lambda row: row.flops, "training FLOPs", "{:.2e}"),
    (lambda row: row.seconds, "seconds", "{:,.0f}"),
)


def not_held_equal(
    experiment: Experiment, entries: Sequence[Entry], rows: Sequence[Row], tokenizers: Mapping[str, Tokenizer]
) -> list[str]:
    """Sentences about everything that differs between the contestants besides kind and size of the tokenizer.

    Settings are those that the runs were made with (after presets, defaults and overrides), and those that a tokenizer
    was trained with. Each differing one is named with every contestant's value.
    """
    sentences = [_given_to_the_command(name, tokenizer) for name, tokenizer in tokenizers.items()]
    of_all = {
        entry.name: {
            "context": (_shown(experiment.contestants[entry.name].context),),
            "what a document is read after": (_start(tokenizers.get(entry.name)),),
            **_of_the_runs(entry),
            "seeds": (", ".join(str(run.seed) for run in entry.runs),),
        }
        for entry in entries
    }
    trained = {
        entry.name: found for entry in entries if (found := _of_the_tokenizer(tokenizers.get(entry.name))) is not None
    }
    return [
        *(sentence for found in sentences for sentence in found),
        *_differing(of_all),
        *_differing(trained),
        *_differing_figures(rows),
    ]


def _start(tokenizer: Tokenizer | None) -> str:
    separator = getattr(tokenizer, "document_separator", None)
    return "a newline" if separator is None else repr(separator)


def _of_the_runs(entry: Entry) -> dict[str, tuple[str, ...]]:
    """The resolved settings and the environment of a contestant's runs."""
    found: dict[str, dict[str, None]] = {}
    for run in entry.runs:
        settings = _flat(run.report.settings, "")
        environment = run.report.environment
        settings |= {f"environment.{key}": getattr(environment, key) for key in _ENVIRONMENT}
        for key, value in settings.items():
            if key not in _ABOUT_THE_TOKENIZER | _TOLD_ELSEWHERE:
                found.setdefault(key, {})[_shown(value)] = None
    return {key: tuple(values) for key, values in found.items()}


def settings_in_words(run: Run) -> str:
    """All resolved settings of `run`, as an experiment file has them."""
    return ", ".join(f"{key} {_shown(value)}" for key, value in _flat(run.report.settings, "").items())


def _of_the_tokenizer(tokenizer: Tokenizer | None) -> dict[str, tuple[str, ...]] | None:
    """How a tokenizer was trained, kind and size aside; None for one that learns nothing."""
    trained_on: Mapping[str, Any] = getattr(tokenizer, "trained_on", None) or {}
    if "min_pair_frequency" not in trained_on:
        return None
    return {f"tokenizer.{key}": (_shown(trained_on.get(key)),) for key in _OF_THE_TRAINING_TEXT}


def _given_to_the_command(name: str, tokenizer: Tokenizer) -> list[str]:
    """The settings that a tokenizer was given when it was made, in place of the experiment's."""
    trained_on: Mapping[str, Any] = getattr(tokenizer, "trained_on", None) or {}
    return [
        f"{name}: its tokenizer was made with {key} {_shown(own['used'])}, given on the command line; the experiment "
        f"says {_shown(own['configured'])}"
        for key, own in trained_on.get("own_settings", {}).items()
    ]


def _flat(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Nested settings under dotted names."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def _differing(settings: Mapping[str, Values]) -> list[str]:
    """One sentence for each setting that is not the same for all contestants, or not for all runs of one."""
    names = dict.fromkeys(key for values in settings.values() for key in values)
    sentences = []
    for key in names:
        values = {name: of_one.get(key, (NO_FIGURE,)) for name, of_one in settings.items()}
        if len(set(values.values())) > 1 or any(len(one) > 1 for one in values.values()):
            sentences.append(f"{key}: " + ", ".join(f"{name} {' and '.join(one)}" for name, one in values.items()))
    return sentences


def _differing_figures(rows: Sequence[Row]) -> list[str]:
    return [
        f"{label}: " + ", ".join(f"{row.contestant} {figure(value(row), form)}" for row in rows)
        for value, label, form in _FIGURES
        if len({value(row) for row in rows}) > 1
    ]


def _shown(value: Any) -> str:
    """A setting as an experiment file has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, int | float):
        return figure(value, "{:g}" if isinstance(value, float) else "{:,}", _MOST_COLUMNS)
    return str(value)


_MOST_COLUMNS = 26
