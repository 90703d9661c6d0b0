"""What is said of other sizes in each outcome, from rankings by construction."""

import pytest

from compare.outputs.further_lines import further_lines
from compare.sizes.ranking import Ranking, word_of
from compare.sizes.stored import ranking_as_json, ranking_from_json, sizes_for_verdict
from compare.sizes.words import cells, headline, lines
from compare.table import TERMINAL_COLUMNS, as_text
from data.files import canonical_json
from sizes_helpers import pair_of, ranking_for


def two(small: str, own: str, large: str) -> Ranking:
    """Two contestants at three sizes, the same at T/4 as at T."""
    by_size = {0.4: small, 1.0: own, 2.5: large}
    return ranking_for(["char", "bpe"], by_size, by_size)


@pytest.mark.parametrize(
    ("own", "there", "word"),
    [
        *(("a", "a", "holds"), ("b", "b", "holds"), ("=", "=", "holds")),
        *(("a", "b", "turns"), ("b", "a", "turns")),
        *(("a", "=", "changes"), ("=", "b", "changes")),
        *(("?", "a", "unsaid"), ("a", "?", "unsaid"), ("?", "?", "unsaid"), ("=", "?", "unsaid")),
    ],
)
def test_the_word_of_a_pair(own: str, there: str, word: str) -> None:
    assert word_of(pair_of("char", "bpe", own), pair_of("char", "bpe", there)) == word


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (two("a", "a", "a"), "The ranking holds at 0.4 and 2.5 times the size."),
        (two("=", "=", "="), "The ranking holds at 0.4 and 2.5 times the size."),
        (
            two("b", "b", "a"),
            "The ranking turns at 2.5 times the size: char is better than bpe there. The ranking holds at 0.4 times "
            "the size.",
        ),
        (
            two("a", "b", "a"),
            "The ranking turns at 0.4 times the size: char is better than bpe there. The ranking turns at 2.5 times "
            "the size: char is better than bpe there.",
        ),
        (
            two("a", "a", "="),
            "The ranking changes at 2.5 times the size: char and bpe are equal there. The ranking holds at 0.4 times "
            "the size.",
        ),
        (
            two("b", "=", "="),
            "The ranking changes at 0.4 times the size: bpe is better than char there, and they are equal at this "
            "size. The ranking holds at 2.5 times the size.",
        ),
        (
            two("a", "a", "?"),
            "The ranking holds at 0.4 times the size. Whether the order of char and bpe holds at 2.5 times the size "
            "cannot be said: it is not decided there.",
        ),
        (
            two("?", "a", "?"),
            "Whether the order of char and bpe holds at 0.4 and 2.5 times the size cannot be said: it is not decided "
            "there.",
        ),
        (
            two("a", "?", "b"),
            "Whether the order of char and bpe holds at another size cannot be said: it is not decided at this one.",
        ),
    ],
)
def test_the_headline_in_each_outcome(found: Ranking, said: str) -> None:
    assert headline(found) == said


def test_of_several_contestants_the_ranking_holds_only_where_every_pair_does() -> None:
    by_size = {0.4: "aa", 1.0: "aa", 2.5: "ba"}
    found = ranking_for(["char", "bpe", "word"], by_size, by_size)
    assert headline(found) == (
        "The ranking turns at 2.5 times the size: bpe is better than char there. The ranking holds at 0.4 times the "
        "size. At 2.5 times the size the order of char and word holds."
    )


def test_a_single_contestant_has_no_ranking() -> None:
    by_size = {1.0: "", 2.5: ""}
    assert headline(ranking_for(["char"], by_size, by_size)) == ""


def test_a_turn_at_a_quarter_of_the_budget_is_a_line_and_no_headline() -> None:
    found = ranking_for(["char", "bpe"], {1.0: "a", 2.5: "b"}, {1.0: "b", 2.5: "b"})
    assert headline(found) == "The ranking holds at 2.5 times the size."
    said = lines(found)
    assert said[0] == headline(found)
    assert said[1] == (
        "At a quarter of the budget: the ranking turns at 2.5 times the size: bpe is better than char there."
    )
    assert said[2] == (
        "2.5 times the size: 2 layers of 32, 2,500 parameters besides the embedding (2.50 times those of size 1)."
    )
    assert "none was chosen for another size" in said[3]


def test_the_table_has_every_size_at_both_budgets() -> None:
    found = cells(two("a", "a", "?"))
    assert found[0] == ["size, budget", "char", "bpe", "char - bpe"]
    assert [line[0].strip() for line in found[1:]] == [
        *("0.4, T/4", "0.4, T", "1, T/4", "1, T", "2.5, T/4", "2.5, T"),
    ]
    assert found[-1][1:] == ["2.0000", "3.0000", "-0.020 (-0.050 to +0.010)"]
    assert max(map(len, as_text(found).split("\n"))) <= TERMINAL_COLUMNS


def test_it_comes_back_from_json_and_stands_in_the_verdict() -> None:
    found = two("a", "b", "?")
    assert ranking_from_json(ranking_as_json(found)) == found
    canonical_json(ranking_as_json(found))  # plain values only
    verdict = sizes_for_verdict(found)
    assert verdict["answer"] == headline(found)
    assert [(one["size"], one["budget"]) for one in verdict["levels"]][:2] == [(0.4, "quarter"), (0.4, "whole")]
    words = {(one["size"], one["budget"]): one["word"] for one in verdict["pairs"]}
    assert words == {
        (0.4, "quarter"): "turns",
        (0.4, "whole"): "turns",
        (2.5, "quarter"): "cannot_be_said",
        (2.5, "whole"): "cannot_be_said",
    }
    assert verdict["pairs"][0]["interval"] == pytest.approx({"low": -0.13, "high": -0.07})


def test_lines_for_csv_and_latex_are_differences_from_the_baseline() -> None:
    found = two("a", "b", "?")
    by_label = {line.label: line for line in further_lines(None, found, "char")}
    line = by_label["size 2.5, T: difference from char"]
    assert line.values == pytest.approx({"bpe": 0.02}) and line.words == {"bpe": "+0.020 (-0.010 to +0.050)"}
    assert by_label["size 2.5, T: difference from char, 95 % interval from"].values == pytest.approx({"bpe": -0.01})
    other = {line.label: line for line in further_lines(None, found, "bpe")}
    assert other["size 2.5, T: difference from bpe"].words == {"char": "-0.020 (-0.050 to +0.010)"}
    assert by_label["size 0.4, T/4: bits per character (test)"].words == {"char": "2.0000", "bpe": "3.0000"}
