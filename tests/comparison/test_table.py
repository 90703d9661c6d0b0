import json
import math
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from compare.runs import Entry
from compare.table import (
    TERMINAL_COLUMNS,
    Row,
    as_markdown,
    as_text,
    budget_words,
    row_of,
    table_cells,
)
from report_helpers import report_of, split_score


def run_of(name: str, bits: float, *, budget: int = 1000, unit: str = "characters", seed: int = 1, **own: Any) -> Any:
    """A run's report; `own` replaces figures of the test split and of what was seen."""
    tokens = own.get("tokens", 400)
    test = split_score(bits, num_tokens=tokens, num_words=own.get("num_words", 0))
    seen = {"characters": own.get("characters", 1010), "tokens": own.get("seen", 900), "seconds": own.get("seconds", 2)}
    report = report_of(
        {
            "contestant": name,
            "block": {"mean_characters": 16 * 1200 / tokens},
            "seen": seen,
            "train": {"seed": seed, "budget": {"unit": unit, "amount": budget}},
            "splits": {"val": split_score(bits), "test": test},
        }
    )
    return SimpleNamespace(contestant=name, report=report, test=report.splits.test, seed=seed)


def entry_of(name: str, *bits: float, **settings: Any) -> Entry:
    """One contestant with one run for each of `bits`, under seeds 1, 2, …"""
    return Entry(name, tuple(run_of(name, one, seed=seed, **settings) for seed, one in enumerate(bits, start=1)))


def table_of(*entries: Entry) -> dict[str, list[str]]:
    """The table by label."""
    return {line[0].strip(): line[1:] for line in table_cells([row_of(entry) for entry in entries])}


def test_the_table_holds_every_figure_the_reader_needs() -> None:
    table = table_of(entry_of("char", 2.0), entry_of("bpe", 1.75, tokens=300))
    assert table[""] == ["char", "bpe"]
    assert table["bits per character (test)"] == ["2.0000", "1.7500"]
    assert table["disjoint windows"] == ["2.0300", "1.7800"]
    assert table["characters per token (test)"] == ["3.000", "4.000"]
    assert table["block in characters (mean)"] == ["48", "64"]
    assert table["word perplexity (test)"] == ["–", "–"]  # beyond float64: said, not invented
    assert table["training FLOPs"] == ["1.234e+04", "1.234e+04"]
    assert table["characters seen"] == ["1,010", "1,010"]
    assert table["learning rate (peak)"] == ["0.001", "0.001"]
    assert table["seeds"] == ["1", "1"]
    assert "standard deviation over seeds" not in table  # one seed has none


def test_several_seeds_give_mean_and_standard_deviation() -> None:
    runs = (run_of("char", 2.0, seed=4), run_of("char", 2.1, seed=2), run_of("char", 2.3, seed=9, seconds=5.0))
    row = row_of(Entry("char", runs))
    assert row.bits_per_char == pytest.approx(6.4 / 3)
    assert row.disjoint_bits_per_char == pytest.approx(6.4 / 3 + 0.03)
    assert row.bits_per_char_sd == pytest.approx(np.std([2.0, 2.1, 2.3], ddof=1))
    assert row.seconds == pytest.approx(3.0)
    assert row.seeds == (4, 2, 9)
    table = table_of(Entry("char", runs), entry_of("bpe", 1.5))
    assert table["standard deviation over seeds"] == ["0.1528", "–"]
    assert table["seeds"] == ["4 2 9", "1"]


def test_whole_numbers_stay_whole_where_the_seeds_agree() -> None:
    same = row_of(entry_of("char", 2.0, 2.5))
    for key in ("vocab_size", "parameters_embedding", "parameters_rest", "block_tokens", "tokens_seen", "flops"):
        assert isinstance(getattr(same, key), int), key
    differing = Entry("char", (run_of("char", 2.0), run_of("char", 2.0, characters=1011)))
    assert row_of(differing).characters_seen == 1010.5
    assert table_of(differing)["characters seen"] == ["1,010"]


def test_word_perplexity_over_seeds_is_that_of_the_mean_bits() -> None:
    entry = Entry("char", (run_of("char", 2.0, num_words=240), run_of("char", 3.0, seed=2, num_words=240)))
    row = row_of(entry)
    assert row.bits_per_char == 2.5
    assert row.word_perplexity == pytest.approx(2.0 ** (2.5 * 1200 / 240))  # not the mean of 2^10 and 2^15
    assert row.log10_word_perplexity == pytest.approx(12.5 * math.log10(2.0))
    assert row_of(entry, has_words=False).word_perplexity is None
    assert row_of(entry_of("char", 2.0)).word_perplexity is None  # a text without a word


def test_tokens_per_second_are_all_tokens_over_all_seconds() -> None:
    row = row_of(Entry("a", (run_of("a", 2.0, seen=1000, seconds=1), run_of("a", 2.0, seed=2, seen=1000, seconds=9))))
    assert row.tokens_per_second == pytest.approx(200.0)  # not (1000 + 111) / 2
    assert row.tokens_per_second == pytest.approx(row.tokens_seen / row.seconds)


def test_a_row_comes_back_from_json() -> None:
    row = row_of(entry_of("char", 2.0, 2.5))
    assert Row.from_json(json.loads(json.dumps(asdict(row)))) == row


def test_text_is_aligned_and_narrow() -> None:
    lines = as_text(table_cells([row_of(entry_of("char", 2.0, 2.2)), row_of(entry_of("bpe", 1.75, 1.8))])).split("\n")
    assert len({len(line) for line in lines}) == 1
    assert max(map(len, lines)) <= TERMINAL_COLUMNS == 99


def test_contestants_beyond_the_terminal_stand_in_further_tables() -> None:
    names = [f"contestant_{number}" for number in range(9)]
    cells = table_cells([row_of(entry_of(name, 2.0 + number)) for number, name in enumerate(names)])
    text = as_text(cells)
    assert max(map(len, text.split("\n"))) <= TERMINAL_COLUMNS
    tables = [table.split("\n") for table in text.split("\n\n")]
    assert [name for table in tables for name in table[0].split()] == names
    assert [len(table[0].split()) for table in tables] == [5, 4]
    for table in tables:
        assert [line[: len(cells[-1][0])] for line in table[1:]] == [line[0][: len(cells[-1][0])] for line in cells[1:]]
    bits = [line.split()[4:] for table in tables for line in table if line.startswith("bits per character")]
    assert [figure for figures in bits for figure in figures] == [f"{2 + number}.0000" for number in range(9)]


@pytest.mark.parametrize(("width", "num_tables"), [(14, 1), (13, 2), (8, 2), (7, 3), (1, 3)])
def test_a_table_is_wrapped_exactly_at_the_width(width: int, num_tables: int) -> None:
    cells = [["", "aa", "b", "cccc"], ["x", "1", "2", "3"]]  # 1, then 2 + 2, 2 + 1, 2 + 4
    text = as_text(cells, width)
    assert len(text.split("\n\n")) == num_tables
    assert [line.split()[0] for line in text.split("\n") if line][1::2] == ["x"] * num_tables


def test_no_line_ends_with_blanks() -> None:
    assert as_text([["", "name"], ["x", ""]]) == "   name\nx"


def test_markdown_has_one_column_for_each_contestant() -> None:
    lines = as_markdown([["", "a"], ["  x", "1"]]).split("\n")
    assert lines == ["|  | a |", "| --- | ---: |", "| x | 1 |"]


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ("characters", "at equal characters seen (1,000), on 1,200 test characters"),
        ("tokens", "at equal tokens seen (1,000), on 1,200 test characters"),
        ("steps", "at equal optimizer steps (1,000), on 1,200 test characters"),
        ("flops", "at equal training FLOPs (1,000), on 1,200 test characters"),
        ("seconds", "at equal seconds of training (1,000), on 1,200 test characters"),
    ],
)
def test_the_budget_is_said_in_words(unit: str, words: str) -> None:
    assert budget_words([entry_of("char", 2.0, 2.1, unit=unit), entry_of("bpe", 1.75, unit=unit)]) == words


@pytest.mark.parametrize("other", [{"budget": 5}, {"unit": "tokens"}])
def test_unequal_budgets_are_said(other: dict[str, Any]) -> None:
    words = budget_words([entry_of("a", 2.0), entry_of("b", 1.0, **other)])
    assert words == "under unequal budgets, on 1,200 test characters"


def test_the_budget_of_every_seed_counts() -> None:
    uneven = Entry("a", (run_of("a", 2.0), run_of("a", 2.0, budget=5, seed=2)))
    assert budget_words([entry_of("b", 1.0), uneven]).startswith("under unequal budgets")


def test_without_a_width_there_is_one_table_however_wide() -> None:
    cells = [["", *(f"contestant {number}" for number in range(20))], ["figure", *("1.0" for _ in range(20))]]
    assert len(as_text(cells, width=None).split("\n")) == 2
    assert len(as_text(cells).split("\n\n")) > 1
