from types import SimpleNamespace
from typing import Any

import pytest

from compare.experiment import Override
from compare.table import as_markdown, as_text, not_held_equal, row_of, table_cells, verdict


def run_of(name: str, bits: float, *, budget: int = 1000, seed: int = 1, tokens: int = 400) -> Any:
    test = {
        "bits_per_char": bits,
        "bits_per_byte": bits / 2,
        "disjoint_bits_per_char": bits + 0.03,
        "word_perplexity": None,
        "num_chars": 1200,
        "num_tokens": tokens,
        "num_documents": 3,
    }
    report = {
        "tokenizer": {"vocab_size": 50},
        "parameters": {"embedding": 10, "rest": 20},
        "block": {"tokens": 16, "mean_characters": 16 * 1200 / tokens},
        "seen": {"characters": 1010, "tokens": 900, "epochs": 1.5, "flops": 12345, "seconds": 2.0},
        "train": {"learning_rate": 0.001, "seed": seed, "budget": {"unit": "characters", "amount": budget}},
        "tokens_per_second": 450.0,
        "splits": {"val": {"bits_per_char": bits}, "test": test},
    }
    return SimpleNamespace(contestant=name, report=report, test=test)


def experiment_of(*overrides: Override) -> Any:
    return SimpleNamespace(contestants={"bpe": SimpleNamespace(name="bpe", overrides=overrides)})


def test_the_table_holds_every_figure_the_reader_needs() -> None:
    cells = table_cells([row_of(run_of("char", 2.0)), row_of(run_of("bpe", 1.75, tokens=300))])
    table = {line[0].strip(): line[1:] for line in cells}
    assert table[""] == ["char", "bpe"]
    assert table["bits per character (test)"] == ["2.0000", "1.7500"]
    assert table["disjoint windows"] == ["2.0300", "1.7800"]
    assert table["characters per token (test)"] == ["3.000", "4.000"]
    assert table["block in characters (mean)"] == ["48", "64"]
    assert table["word perplexity (test)"] == ["–", "–"]  # beyond float64: said, not invented
    assert table["training FLOPs"] == ["1.234e+04", "1.234e+04"]


def test_text_is_aligned_and_narrow() -> None:
    lines = as_text(table_cells([row_of(run_of("char", 2.0)), row_of(run_of("bpe", 1.75))])).split("\n")
    assert len({len(line) for line in lines}) == 1
    assert max(map(len, lines)) < 100


def test_markdown_has_one_column_for_each_contestant() -> None:
    lines = as_markdown([["", "a"], ["x", "1"]]).split("\n")
    assert lines == ["|  | a |", "| --- | ---: |", "| x | 1 |"]


def test_the_verdict_ranks_and_states_budget_text_and_seeds() -> None:
    sentence = verdict(experiment_of(), [run_of("char", 2.0), run_of("bpe", 1.75)])
    assert sentence == (
        "bpe (1.750) needs 0.250 fewer bits per character than char (2.000), at equal characters seen (1,000), "
        "on 1,200 test characters in 3 documents, 1 seed, no interval."
    )


def test_the_verdict_does_not_depend_on_the_order_of_contestants() -> None:
    runs = [run_of("char", 2.0), run_of("bpe", 1.75), run_of("byte", 2.5)]
    assert verdict(experiment_of(), runs) == verdict(experiment_of(), runs[::-1])


@pytest.mark.parametrize(("bits", "tie"), [(1.991, True), (1.989, False), (2.0, True)])
def test_under_half_a_per_cent_is_a_tie(bits: float, tie: bool) -> None:
    sentence = verdict(experiment_of(), [run_of("char", 2.0), run_of("bpe", bits)])
    assert ("are a tie" in sentence) == tie
    assert ("fewer bits" in sentence) == (not tie)


def test_unequal_budgets_are_said() -> None:
    assert "under unequal budgets" in verdict(experiment_of(), [run_of("a", 2.0), run_of("b", 1.0, budget=5)])


def test_a_single_contestant_gets_no_victory() -> None:
    assert "no other contestant" in verdict(experiment_of(), [run_of("char", 2.0)])


def test_overrides_and_differences_are_named() -> None:
    rows = [row_of(run_of("char", 2.0)), row_of(run_of("bpe", 1.75, tokens=300))]
    sentences = not_held_equal(experiment_of(Override("train.learning_rate", 0.001, 0.01)), rows)
    assert sentences[0] == "bpe: train.learning_rate = 0.01 where the others have 0.001"
    assert any(line.startswith("context in characters") and "char 48, bpe 64" in line for line in sentences)
    assert not any(line.startswith("seconds") for line in sentences)  # equal here
