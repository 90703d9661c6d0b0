"""What is printed stays in the width of a terminal, whatever the figures, names and numbers of contestants."""

import itertools
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_experiment
from compare.bits_by.result import Unseen, WhereBitsGo
from compare.certainty.intervals import Interval
from compare.certainty.pairs import Certainty, Pair, Spread
from compare.experiment import load_experiment
from compare.figures import NOT_DIVIDED, figure, power_of_ten, seeds_in_words
from compare.marginal.result import Gap, MarginalGap, MeasuredRun
from compare.outputs.comparison import BaselineLine, Comparison, Details, Identity
from compare.outputs.text import comparison_text
from compare.page.render import render_page
from compare.runs import Entry
from compare.steps import Steps
from compare.table import TERMINAL_COLUMNS, as_text, names_in_tables, row_of, table_cells
from data.clean import is_divided_by_spaces
from data.errors import UserError
from data.files import read_json
from data.show import columns, counted, pad, short_names, shorten, wrapped
from page_helpers import entries_of, every_tokenizer, full_page
from report_helpers import changed
from tokenizer.studies.pictures import picture_names

LONG, CHINESE, OTHER = "n" * 60, "字" * 60, "m" * 59 + "x"


def comparison_of(names: list[str], **of_all: Any) -> Comparison:
    """A comparison with these contestants, every pair of them, and `of_all` in each row of the table."""
    one = every_tokenizer()["char"]
    entries = [Entry(name, entries_of({"char": one}, (1, 2))[0].runs) for name in names]
    interval = Interval(-0.3, -0.2)
    pairs = (
        Pair(a, b, (-0.25, -0.26), interval, interval, interval, margin=0.01, outcome="a", reason="")
        for a, b in itertools.combinations(names, 2)
    )
    gap = MarginalGap(8, 1, 1, 7, 2.0, 1.98, Gap(0.02, None, None), Gap(1.0, None, None), None, "", ())
    spreads = tuple(Spread(name, (1, 2), (2.0, 2.01)) for name in names)
    return Comparison(
        experiment="small",
        budget="at equal characters seen (1,000), on 1,000 test characters",
        certainty=Certainty(12, 3, (1, 2), spreads, tuple(pairs), baseline=names[0]),
        rows=tuple(replace(row_of(entry), **of_all) for entry in entries),
        not_held_equal=(f"tokens seen: {', '.join(f'{name} 1' for name in names)}",),
        baselines=(BaselineLine("xz after train", 1.9, "what test adds to train", Interval(0.05, 0.15)),),
        details=Details(
            where_bits_go=WhereBitsGo("", "", 0, {}, (), (), "", (), "", (), "", Unseen(0, (), 0, {}, {}, {})),
            intrinsic={},
            sweep=None,
            marginal={names[0]: MeasuredRun(2, "t" * 64, "b" * 64, "f" * 64, "c" * 64, gap)},
            corpus={},
        ),
        identity=Identity({}, {}, "t" * 64, 1000, "test.txt", "1 layer of 8", "4 blocks", "6 N", ()),
        clean=None,
        mixtures=(),
    )


def widest(text: str) -> int:
    return max(map(columns, text.split("\n")))


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (10**220, "{:,}", "1.000e+220"),
        (1e220, "{:,.1f}", "1.000e+220"),
        (10**4000, "{:,}", "1.000e+4000"),
        (10**400, "{:.3e}", "1.000e+400"),
        (-1e300, "{:,.0f}", "-1.000e+300"),
        (123_456_789_012, "{:,}", "123,456,789,012"),
        (1_234_567_890_123, "{:,}", "1.235e+12"),
        (1234.5, "{:,.1f}", "1,234.5"),
        (None, "{:,}", "–"),
    ],
)
def test_case_39_a_figure_has_a_limit(value: float | None, form: str, shown: str) -> None:
    assert figure(value, form) == shown
    assert len(shown) <= 15


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_case_39_what_is_no_number_is_never_printed_as_one(value: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        figure(value, "{:.4f}")


def test_case_39_powers_of_ten_go_beyond_every_float() -> None:
    assert power_of_ten(1234.0) == "1.000e+1234"
    assert power_of_ten(-0.5) == "3.162e-1"


@pytest.mark.parametrize("nats_per_word", [506.5, 700.5, 5_000.0, 1e9])
def test_case_39_word_perplexity_is_reckoned_in_logarithms(nats_per_word: float) -> None:
    entry = entries_of({"char": every_tokenizer()["char"]})[0]
    test = {"total_nats": nats_per_word * 3, "num_words": 3}
    run = entry.runs[0]
    entry = Entry("char", (replace(run, report=changed(run.report, {"splits": {"test": test}})),))
    [shown] = next(line[1:] for line in table_cells([row_of(entry)]) if line[0] == "word perplexity (test)")
    digits, exponent = shown.split("e+")
    log10 = math.log10(float(digits)) + int(exponent)
    assert log10 == pytest.approx(nats_per_word / math.log(10), abs=1e-3) and len(shown) <= 16


@pytest.mark.parametrize(
    ("text", "has_words"),
    [
        ("", True),
        ("one\n", True),
        ("中文没有空格。" * 15, False),
        ("中文没有空格。\n" * 15, False),  # lines are no words
        ("中文没有空格。" * 14 + " ", True),  # one in 99 characters
        ("\u3000\u3000中文没有空格。\n" * 30, False),  # indents of paragraphs
        ("ordinary words " * 20, True),
    ],
)
def test_case_39_words_mean_nothing_without_spaces(text: str, has_words: bool) -> None:
    assert is_divided_by_spaces(text) == has_words


def test_case_39_a_text_without_spaces_says_so_instead_of_a_perplexity() -> None:
    no_words = {"word_perplexity": None, "log10_word_perplexity": None, "has_words": False}
    text = comparison_text(comparison_of(["a", "b"], **no_words))
    lines = text.split("\n")
    [number] = [number for number, line in enumerate(lines) if line.startswith("word perplexity (test)")]
    assert lines[number].split()[-2:] == ["–", "–"]
    assert lines[number + 1].strip() == NOT_DIVIDED


@pytest.mark.parametrize(
    "names",
    [
        ["char", LONG],
        [LONG, OTHER, CHINESE],
        [CHINESE, "字" * 59 + "母", "A"],
        [f"contestant_number_{number}" for number in range(10)],
        [f"{'long' * 15}{number}" for number in range(10)],
        ["字" * 200, "b"],
    ],
    ids=["one long", "three long", "Chinese", "ten", "ten long", "very long"],
)
def test_case_60_no_line_is_wider_than_the_terminal(names: list[str]) -> None:
    comparison = comparison_of(names)
    text = comparison_text(comparison)
    assert widest(text) <= TERMINAL_COLUMNS
    short = names_in_tables([row.contestant for row in comparison.rows])
    assert len(set(short.values())) == len(names)
    flat = "".join(text.split())
    for name, shown in short.items():
        assert shown in text
        assert shown == name or f"{shown}={name}" in flat  # the legend holds the whole name
        assert name in flat  # and so do the sentences


def test_case_60_letters_are_never_names_of_others() -> None:
    names = ["A", LONG, "B", OTHER]
    assert short_names(names, 20) == {"A": "A", LONG: "C", "B": "B", OTHER: "D"}
    many = [f"{LONG}{number}" for number in range(60)]
    assert len(set(short_names(many, 20).values())) == 60


def test_case_60_columns_are_those_of_a_terminal() -> None:
    assert (columns("字a"), columns("e\u0301"), columns("")) == (3, 1, 0)
    assert columns(pad("字", 6)) == 6
    table = as_text([["", "名字", "b"], ["x", "1", "2"]])
    assert [columns(line) for line in table.split("\n")] == [10, 10]
    assert columns(shorten("字" * 40, 21)) <= 21


@pytest.mark.parametrize("width", [10, 33, 99])
@pytest.mark.parametrize("text", ["one two  three", "字" * 300, "x " + "y" * 250 + " z", "  - indented words " * 9])
def test_wrapped_text_loses_nothing(text: str, width: int) -> None:
    lines = wrapped(text, width, 4).split("\n")
    assert max(map(columns, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_case_60_pictures_name_everyone_in_characters_that_their_font_has() -> None:
    same_ends = [f"{'x' * 40}{middle}{'x' * 40}" for middle in "ab"]
    found = picture_names(["char", "字符", "a$b$", *same_ends])
    assert (found["char"], found["字符"], found["a$b$"]) == ("char", r"\u5b57\u7b26", r"a\$b\$")
    assert [found[name][-11:] for name in same_ends] == [" (number 4)", " (number 5)"]
    assert max(map(columns, found.values())) <= 41


def test_many_seeds_take_the_room_of_few() -> None:
    assert seeds_in_words([1, 2, 3]) == "1 2 3"
    assert seeds_in_words(list(range(1, 101))) == "1 … 100 (100)"
    comparison = comparison_of(["a", "b"], seeds=tuple(range(100)))
    [pair] = comparison.certainty.pairs
    by_seed = tuple(0.001 * number for number in range(-50, 50))
    certainty = replace(comparison.certainty, pairs=(replace(pair, by_seed=by_seed),))
    text = comparison_text(replace(comparison, certainty=certainty))
    assert widest(text) <= TERMINAL_COLUMNS
    assert "-0.0500 to +0.0490 (100 seeds)" in text


def test_plurals_are_right() -> None:
    assert (counted(1, "seed"), counted(2, "seed"), counted(1234, "token")) == ("1 seed", "2 seeds", "1,234 tokens")
    comparison = comparison_of(["a", "b"])
    text = comparison_text(replace(comparison, certainty=replace(comparison.certainty, num_documents=1, num_blocks=1)))
    assert "over 1 document " in text and "over 1 block of 2,000" in text
    page = full_page()
    certainty = replace(page.certainty, num_documents=1, num_blocks=1)
    html = render_page(replace(page, test_documents=1, certainty=certainty))
    assert "in 1 document, is scored" in html and "over 1 document, and over 1 block of 2,000 characters" in html


# --- a text without spaces, in one document, through the whole chain ---------------------------------------------


def experiment_of(folder: Path, texts: dict[str, str]) -> Any:
    paths = {}
    for split, text in texts.items():
        paths[split] = str(folder / f"{split}.txt")
        Path(paths[split]).write_text(text, encoding="utf-8")
    values = experiment_values(folder / "run", {"source": "text", "name": "t", **paths})
    values["contestants"] = {"字" * 60: {"tokenizer": {"kind": "char"}}, LONG: {"tokenizer": {"kind": "byte"}}}
    return load_experiment(write_experiment(folder / "t.yaml", values))


def test_case_39_a_chinese_text_is_compared_within_the_terminal(tmp_path: Path) -> None:
    rng = random.Random(1)
    texts = {
        split: "".join(rng.choices("天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏。", k=size)) + "\n"
        for split, size in (("train", 3_000), ("val", 600), ("test", 600))
    }
    steps = Steps(experiment_of(tmp_path, texts), echo=lambda _line: None)
    printed = comparison_text(steps.compare())
    assert widest(printed) <= TERMINAL_COLUMNS
    assert NOT_DIVIDED in printed and "nan" not in printed and "inf" not in printed.replace("info", "")
    summary = read_json(tmp_path / "run/reports/comparison.json")
    assert all(row["word_perplexity"] is None for row in summary["rows"])
    assert summary["where_bits_go"]["word_frequency"] == []
    assert all(one["tokens_per_word"] is None for one in summary["intrinsic"].values())
    page = (tmp_path / "run/reports/index.html").read_text(encoding="utf-8")
    assert f"{NOT_DIVIDED}, so it has no words to sort" in page


@pytest.mark.parametrize("test", ["word\n", "", "a\n"], ids=["one word", "nothing", "one character"])
def test_case_39_splits_of_a_word_or_less_end_in_a_figure_or_a_sentence(tmp_path: Path, test: str) -> None:
    words = "".join(random.Random(2).choices(["the ", "of ", "word ", "a "], k=900)) + "\n"
    try:
        experiment = experiment_of(tmp_path, {"train": words, "val": words[:900] + "\n", "test": test})
        printed = comparison_text(Steps(experiment, echo=lambda _line: None).compare())
    except UserError as error:
        assert "\n" not in str(error) and test == ""
    else:
        assert widest(printed) <= TERMINAL_COLUMNS and "nan" not in printed and test
