"""The one table, as data and as text."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compare.figures import NOT_DIVIDED, figure, power_of_ten, seeds_in_words
from compare.runs import Entry, all_runs
from data.show import columns, counted, pad, pad_left, short_names, visible, wrapped
from model.report_file import SplitScore

TERMINAL_COLUMNS = 99
_NAME_COLUMNS = 24  # a longer name is a letter in the tables for a terminal
_BUDGET_COLUMNS = 26  # a budget is a setting: it is written out where that is possible
_LARGEST_LOG = math.log(sys.float_info.max)

_UNITS = {
    "characters": "characters seen",
    "tokens": "tokens seen",
    "steps": "optimizer steps",
    "flops": "training FLOPs",
    "seconds": "seconds of training",
}


@dataclass(frozen=True)
class Row:
    """The table's figures for one contestant: over its seeds, on the test split, with sliding windows.

    Means of what adds up; what is a ratio or an exponential is formed of sums and means: the word perplexity of the
    mean bits, the tokens of all seeds over the seconds of all seeds. So no two lines of the table contradict.
    """

    contestant: str
    bits_per_char: float
    bits_per_char_sd: float | None
    """Over seeds; None with one."""
    bits_per_byte: float
    disjoint_bits_per_char: float
    val_bits_per_char: float
    word_perplexity: float | None
    """None for a text without words, or one that is not divided by spaces, and where no float can hold it."""
    log10_word_perplexity: float | None
    """Its logarithm, which is there for one that no float can hold."""
    has_words: bool
    chars_per_token: float
    vocab_size: int
    parameters_embedding: int
    parameters_rest: int
    block_tokens: int
    block_characters: float
    characters_seen: float
    tokens_seen: float
    steps: float
    epochs: float
    flops: float
    seconds: float
    tokens_per_second: float | None
    """Tokens of all seeds over the seconds of all seeds."""
    learning_rate: float
    seeds: tuple[int, ...]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Row":
        """The row that `dataclasses.asdict` made a JSON object of."""
        return cls(**{**value, "seeds": tuple(value["seeds"])})


def row_of(entry: Entry, *, has_words: bool = True) -> Row:
    """The table's figures for one contestant; `has_words` is false for a text that is not divided by spaces."""
    reports = [run.report for run in entry.runs]
    first, tests = reports[0], [run.test for run in entry.runs]
    bits = [test.bits_per_char for test in tests]
    log_perplexity = _log_word_perplexity(tests) if has_words else None
    seconds = math.fsum(report.seen.seconds for report in reports)
    return Row(
        contestant=entry.name,
        bits_per_char=_mean(bits),
        bits_per_char_sd=float(np.std(bits, ddof=1)) if len(bits) > 1 else None,
        bits_per_byte=_mean([test.bits_per_byte for test in tests]),
        disjoint_bits_per_char=_mean([test.disjoint_bits_per_char for test in tests]),
        val_bits_per_char=_mean([report.splits.val.bits_per_char for report in reports]),
        word_perplexity=None if log_perplexity is None or log_perplexity > _LARGEST_LOG else math.exp(log_perplexity),
        log10_word_perplexity=None if log_perplexity is None else log_perplexity / math.log(10),
        has_words=has_words,
        chars_per_token=tests[0].num_chars / tests[0].num_tokens,
        vocab_size=first.tokenizer.vocab_size,
        parameters_embedding=first.parameters.embedding,
        parameters_rest=first.parameters.rest,
        block_tokens=first.block.tokens,
        block_characters=first.block.mean_characters,
        characters_seen=_mean([report.seen.characters for report in reports]),
        tokens_seen=_mean([report.seen.tokens for report in reports]),
        steps=_mean([report.seen.steps for report in reports]),
        epochs=_mean([report.seen.epochs for report in reports]),
        flops=_mean([report.seen.flops for report in reports]),
        seconds=_mean([report.seen.seconds for report in reports]),
        tokens_per_second=sum(report.seen.tokens for report in reports) / seconds if seconds else None,
        learning_rate=first.train.learning_rate,
        seeds=tuple(run.seed for run in entry.runs),
    )


def _log_word_perplexity(tests: Sequence[SplitScore]) -> float | None:
    """Natural logarithm of the word perplexity of the mean nats over the seeds; None for a text without a word."""
    if not tests[0].num_words:
        return None
    return _mean([test.total_nats for test in tests]) / tests[0].num_words


def _mean(values: Sequence[float]) -> float:
    """The mean; a whole number that all seeds share stays one, however large."""
    if all(value == values[0] for value in values):
        return values[0]
    return float(np.mean(values))


def budget_words(entries: Sequence[Entry]) -> str:
    """What was equal, and on how much text it was measured: the end of the verdict."""
    runs = all_runs(entries)
    budgets = {run.report.train.budget for run in runs}
    if len(budgets) == 1:
        budget = budgets.pop()
        equal = f"at equal {_UNITS[budget.unit]} ({figure(budget.amount, '{:,}', _BUDGET_COLUMNS)})"
    else:
        equal = "under unequal budgets"
    return f"{equal}, on {counted(runs[0].test.num_chars, 'test character')}"


_ROWS: tuple[tuple[str, Callable[[Row], float | None], str], ...] = (
    ("bits per character (test)", lambda row: row.bits_per_char, "{:.4f}"),
    ("  standard deviation over seeds", lambda row: row.bits_per_char_sd, "{:.4f}"),
    ("  disjoint windows", lambda row: row.disjoint_bits_per_char, "{:.4f}"),
    ("  whole val, sliding windows", lambda row: row.val_bits_per_char, "{:.4f}"),
    ("bits per byte (test)", lambda row: row.bits_per_byte, "{:.4f}"),
    ("word perplexity (test)", lambda row: row.word_perplexity, "{:,.1f}"),
    ("characters per token (test)", lambda row: row.chars_per_token, "{:.3f}"),
    ("vocabulary", lambda row: row.vocab_size, "{:,}"),
    ("parameters: embedding", lambda row: row.parameters_embedding, "{:,}"),
    ("parameters: rest", lambda row: row.parameters_rest, "{:,}"),
    ("block in tokens", lambda row: row.block_tokens, "{:,}"),
    ("block in characters (mean)", lambda row: row.block_characters, "{:,.0f}"),
    ("characters seen", lambda row: row.characters_seen, "{:,.0f}"),
    ("tokens seen", lambda row: row.tokens_seen, "{:,.0f}"),
    ("optimizer steps", lambda row: row.steps, "{:,.0f}"),
    ("epochs over train", lambda row: row.epochs, "{:.2f}"),
    ("training FLOPs", lambda row: row.flops, "{:.3e}"),
    ("seconds of training", lambda row: row.seconds, "{:,.1f}"),
    ("tokens per second", lambda row: row.tokens_per_second, "{:,.0f}"),
    ("learning rate (peak)", lambda row: row.learning_rate, "{:g}"),
)
_SPREAD, _PERPLEXITY = _ROWS[1][0], _ROWS[5][0]


def table_cells(rows: Sequence[Row], names: Mapping[str, str] | None = None) -> list[list[str]]:
    """Header and lines of the table as strings: one line for each figure, one column for each contestant.

    The line of the spread over seeds is left out where there is one seed. `names` are the contestants' names in the
    header, where they are not the full ones.
    """
    cells = [["", *(row.contestant if names is None else names[row.contestant] for row in rows)]]
    for label, value, form in _ROWS:
        if label == _SPREAD and all(value(row) is None for row in rows):
            continue
        if label == _PERPLEXITY:
            cells.append([label, *(_perplexity_cell(row, form) for row in rows)])
            if not all(row.has_words for row in rows):
                cells.append([f"  {NOT_DIVIDED}", *("" for _ in rows)])
        else:
            cells.append([label, *(figure(value(row), form) for row in rows)])
    return [*cells, ["seeds", *(seeds_in_words(row.seeds) for row in rows)]]


def _perplexity_cell(row: Row, form: str) -> str:
    if row.word_perplexity is None and row.log10_word_perplexity is not None:
        return power_of_ten(row.log10_word_perplexity)
    return figure(row.word_perplexity, form)


def table_values(rows: Sequence[Row]) -> list[list[str | float | None]]:
    """The same lines with the figures themselves, in full, for programs; the seeds as one text."""
    values: list[list[str | float | None]] = [["", *(row.contestant for row in rows)]]
    for label, value, _ in _ROWS:
        values.append([label.strip(), *(value(row) for row in rows)])
    return [*values, ["seeds", *(" ".join(map(str, row.seeds)) for row in rows)]]


def names_in_tables(contestants: Sequence[str]) -> dict[str, str]:
    """What the tables for a terminal call each contestant: its name, or a letter where that is long."""
    return short_names(contestants, _NAME_COLUMNS)


def legend(names: Mapping[str, str]) -> list[str]:
    """A line `A = the long name` for each name that the tables shorten."""
    return [
        wrapped(f"{short} = {visible(name)}", TERMINAL_COLUMNS, 4) for name, short in names.items() if short != name
    ]


def as_text(cells: Sequence[Sequence[str]], width: int | None = TERMINAL_COLUMNS) -> str:
    """The table aligned for a terminal; contestants that do not fit into `width` go into further tables below.

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
