"""The one table and what was not held equal, as data and as text."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compare.experiment import Experiment
from compare.figures import NOT_DIVIDED, figure, log10_mean, power_of_ten, seeds_in_words
from compare.runs import Entry, all_runs
from data.show import columns, counted, pad, pad_left, short_names, visible, wrapped

TERMINAL_COLUMNS = 99
_NAME_COLUMNS = 24  # a longer name is a letter in the tables for a terminal
_BUDGET_COLUMNS = 26  # a budget is a setting: it is written out where that is possible

_UNITS = {
    "characters": "characters seen",
    "tokens": "tokens seen",
    "steps": "optimizer steps",
    "flops": "training FLOPs",
    "seconds": "seconds of training",
}


def row_of(entry: Entry, *, has_words: bool = True) -> dict[str, Any]:
    """The table's figures for one contestant: means over its seeds.

    Test split, sliding windows unless the name says otherwise. Without `has_words` (a text that is not divided by
    spaces) there is no word perplexity. `log10_word_perplexity` is there for one that no float can hold.
    """
    first = entry.runs[0]
    rows = [_figures(run.report) for run in entry.runs]
    mean = {key: _mean([row[key] for row in rows]) for key in rows[0]}
    spread = float(np.std([row["bits_per_char"] for row in rows], ddof=1)) if len(rows) > 1 else None
    return {
        "contestant": entry.name,
        **mean,
        "word_perplexity": mean["word_perplexity"] if has_words else None,
        "log10_word_perplexity": _log10_word_perplexity(entry) if has_words else None,
        "has_words": has_words,
        "bits_per_char_sd": spread,
        "learning_rate": first.report["train"]["learning_rate"],
        "seeds": [run.seed for run in entry.runs],
    }


def _log10_word_perplexity(entry: Entry) -> float | None:
    """Of the mean over the seeds; None for a text without a word."""
    tests = [run.test for run in entry.runs]
    if not all(test.get("num_words") for test in tests):
        return None
    return log10_mean([test["total_nats"] / test["num_words"] / math.log(10) for test in tests])


def _mean(values: Sequence[float | int | None]) -> float | int | None:
    """The mean; a whole number that all seeds share stays one, and what one seed lacks has no mean."""
    if any(value is None for value in values):
        return None
    if all(value == values[0] for value in values):
        return values[0]
    return float(np.mean([value for value in values if value is not None]))


def _figures(report: Mapping[str, Any]) -> dict[str, Any]:
    test = report["splits"]["test"]
    return {
        "bits_per_char": test["bits_per_char"],
        "bits_per_byte": test["bits_per_byte"],
        "disjoint_bits_per_char": test["disjoint_bits_per_char"],
        "val_bits_per_char": report["splits"]["val"]["bits_per_char"],
        "word_perplexity": test["word_perplexity"],
        "chars_per_token": test["num_chars"] / test["num_tokens"],
        "vocab_size": report["tokenizer"]["vocab_size"],
        "parameters_embedding": report["parameters"]["embedding"],
        "parameters_rest": report["parameters"]["rest"],
        "block_tokens": report["block"]["tokens"],
        "block_characters": report["block"]["mean_characters"],
        "characters_seen": report["seen"]["characters"],
        "tokens_seen": report["seen"]["tokens"],
        "steps": report["seen"]["steps"],
        "epochs": report["seen"]["epochs"],
        "flops": report["seen"]["flops"],
        "seconds": report["seen"]["seconds"],
        "tokens_per_second": report["tokens_per_second"],
    }


def budget_words(entries: Sequence[Entry]) -> str:
    """What was equal, and on how much text it was measured: the end of the verdict."""
    runs = all_runs(entries)
    budgets = {(run.report["train"]["budget"]["unit"], run.report["train"]["budget"]["amount"]) for run in runs}
    if len(budgets) == 1:
        unit, amount = budgets.pop()
        equal = f"at equal {_UNITS[unit]} ({figure(amount, '{:,}', _BUDGET_COLUMNS)})"
    else:
        equal = "under unequal budgets"
    return f"{equal}, on {counted(runs[0].test['num_chars'], 'test character')}"


_ROWS = (
    ("bits per character (test)", "bits_per_char", "{:.4f}"),
    ("  standard deviation over seeds", "bits_per_char_sd", "{:.4f}"),
    ("  disjoint windows", "disjoint_bits_per_char", "{:.4f}"),
    ("  whole val, sliding windows", "val_bits_per_char", "{:.4f}"),
    ("bits per byte (test)", "bits_per_byte", "{:.4f}"),
    ("word perplexity (test)", "word_perplexity", "{:,.1f}"),
    ("characters per token (test)", "chars_per_token", "{:.3f}"),
    ("vocabulary", "vocab_size", "{:,}"),
    ("parameters: embedding", "parameters_embedding", "{:,}"),
    ("parameters: rest", "parameters_rest", "{:,}"),
    ("block in tokens", "block_tokens", "{:,}"),
    ("block in characters (mean)", "block_characters", "{:,.0f}"),
    ("characters seen", "characters_seen", "{:,.0f}"),
    ("tokens seen", "tokens_seen", "{:,.0f}"),
    ("optimizer steps", "steps", "{:,.0f}"),
    ("epochs over train", "epochs", "{:.2f}"),
    ("training FLOPs", "flops", "{:.3e}"),
    ("seconds of training", "seconds", "{:,.1f}"),
    ("tokens per second", "tokens_per_second", "{:,.0f}"),
    ("learning rate (peak)", "learning_rate", "{:g}"),
    ("seeds", "seeds", "{}"),
)


def table_cells(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str] | None = None) -> list[list[str]]:
    """Header and lines of the table as strings: one line for each figure, one column for each contestant.

    A line without any figure, such as the spread over seeds where there is one seed, is left out. `names` are the
    contestants' names in the header, where they are not the full ones.
    """
    contestants = [str(row["contestant"]) for row in rows]
    cells = [["", *(contestants if names is None else (names[name] for name in contestants))]]
    for label, key, form in _ROWS:
        if all(row[key] is None for row in rows) and key == "bits_per_char_sd":
            continue
        cells.append([label, *(_cell(row, key, form) for row in rows)])
        if key == "word_perplexity" and not all(row["has_words"] for row in rows):
            cells.append([f"  {NOT_DIVIDED}", *("" for _ in rows)])
    return cells


def _cell(row: Mapping[str, Any], key: str, form: str) -> str:
    if key == "seeds":
        return seeds_in_words(row[key])
    if key == "word_perplexity" and row[key] is None and row["log10_word_perplexity"] is not None:
        return power_of_ten(row["log10_word_perplexity"])
    return figure(row[key], form)


def names_in_tables(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What the tables for a terminal call each contestant: its name, or a letter where that is long."""
    return short_names([str(row["contestant"]) for row in rows], _NAME_COLUMNS)


def legend(names: Mapping[str, str]) -> list[str]:
    """A line `A = the long name` for each name that the tables shorten."""
    return [
        wrapped(f"{short} = {visible(name)}", TERMINAL_COLUMNS, 4) for name, short in names.items() if short != name
    ]


def as_text(cells: Sequence[Sequence[str]], width: int | None = TERMINAL_COLUMNS) -> str:
    """The table aligned for a terminal; contestants that do not fit into `width` stand in further tables below.

    Without a `width` the table is as wide as it has to be.
    """
    cells = [[visible(cell) for cell in line] for line in cells]
    widths = [max(columns(line[column]) for line in cells) for column in range(len(cells[0]))]
    tables, column = [], 1
    while column < len(widths):
        last, used = column, widths[0]
        while last < len(widths) and (last == column or width is None or used + 2 + widths[last] <= width):
            used += 2 + widths[last]
            last += 1
        chosen = range(column, last)
        lines = [
            "  ".join([pad(line[0], widths[0]), *(pad_left(line[c], widths[c]) for c in chosen)]) for line in cells
        ]
        tables.append("\n".join(line.rstrip() for line in lines))
        column = last
    return "\n\n".join(tables)


def as_markdown(cells: Sequence[Sequence[str]]) -> str:
    """The table in Markdown, figures to the right."""
    rule = ["---", *("---:" for _ in cells[0][1:])]
    lines = [[in_markdown(cell.strip()) for cell in line] for line in cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])


def in_markdown(text: str) -> str:
    r"""`text` as Markdown shows it literally: no markup, no HTML, no cell border, nothing hidden.

    >>> in_markdown("a|b <script>")
    'a\\|b &lt;script&gt;'
    """
    escaped = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("|", "\\|")


def not_held_equal(experiment: Experiment, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences about everything that differs between the contestants besides the tokenizer itself."""
    sentences = [
        f"{contestant.name}: {override.key} = {override.own!r} where the others have {override.shared!r}"
        for contestant in experiment.contestants.values()
        for override in contestant.overrides
    ]
    differing = (
        ("parameters_embedding", "embedding parameters", "{:,}"),
        ("block_tokens", "block in tokens", "{:,}"),
        ("block_characters", "context in characters (mean)", "{:,.0f}"),
        ("tokens_seen", "tokens seen", "{:,.0f}"),
        ("characters_seen", "characters seen (the last step overshoots a budget in characters)", "{:,.0f}"),
        ("steps", "optimizer steps (every step takes batch_size blocks)", "{:,.0f}"),
        ("flops", "training FLOPs", "{:.2e}"),
        ("seconds", "seconds", "{:,.0f}"),
    )
    for key, label, form in differing:
        if len({row[key] for row in rows}) > 1:
            sentences.append(f"{label}: " + ", ".join(f"{row['contestant']} {figure(row[key], form)}" for row in rows))
    return sentences
