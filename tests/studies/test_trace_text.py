"""The trace as text: what it says, and that it can be read."""

import doctest

import pytest

from data.show import shorten
from tokenizer.bpe import BPEKind
from tokenizer.studies import trace_text
from tokenizer.studies.trace import Trace, trace_training
from tokenizer.studies.trace_text import as_text, visible
from tokenizer_helpers import LOSSLESS_TEXTS

KINDS: tuple[BPEKind, ...] = ("char_bpe", "byte_bpe")
WORDS = ["low low lower lowest", "don't  stop 1234 the 12\n", "ααβ ααβ 中文中文 aaaaaaa"]


def test_doctests() -> None:
    result = doctest.testmod(trace_text)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_worked_example_as_text() -> None:
    text = as_text(trace_training(["aaa", "aba"], num_merges=2))
    assert text.split("two spaces part pretokens.\n\n")[1] == "\n".join(
        [
            "start     a a a",
            "          a b a",
            "",
            "round 0   3 candidates, in order of first sight:",
            "            a + a  ( 97,  97)       2  <- winner",
            "            a + b  ( 97,  98)       1",
            "            b + a  ( 98,  97)       1",
            "why       the highest count, 2",
            "merge     256 = [aa]: 2 windows, 1 replacement, because windows overlap",
            "after     [aa] a",
            "          a b a",
            "",
            "round 1   3 candidates, in order of first sight:",
            "            [aa] + a  (256,  97)       1  tied",
            "            a + b     ( 97,  98)       1  <- winner",
            "            b + a     ( 98,  97)       1  tied",
            "why       3 pairs are tied at 1; lowest_ids takes this one, not [aa] + a, b + a",
            "merge     257 = [ab]: 1 window, 1 replacement",
            "after     [aa] a",
            "          [ab] a",
            "",
            "stopped after 2 merges: target reached",
        ]
    )


def traces_to_read() -> list[Trace]:
    long = ["the quick brown fox jumps over the lazy dog\n" * 40, "a" * 3000, "中文" * 200]
    return [
        trace_training(texts, kind=kind, split_pattern=pattern, tie_break=rule, num_merges=14)
        for texts in (WORDS, list(LOSSLESS_TEXTS.values()), long)
        for kind, pattern, rule in (
            ("char_bpe", "none", "greatest_bytes"),
            ("byte_bpe", "none", "first_seen"),
            ("byte_bpe", "gpt2", "lowest_ids"),
        )
    ]


def test_lines_are_short_and_hold_visible_characters_only() -> None:
    for trace in traces_to_read():
        for line in as_text(trace).split("\n"):
            assert len(line) < 100
            assert line.isprintable(), repr(line)
            assert line == line.rstrip()


def test_columns_line_up_also_beside_wide_characters() -> None:
    text = as_text(trace_training(["中文字 ab", "文字 ab"], kind="char_bpe", num_merges=1))
    rows = [line for line in text.split("\n") if " + " in line and "(" in line]
    assert len(rows) > 4
    widths = {sum(2 if "一" <= c <= "龥" else 1 for c in row[: row.index("(")]) for row in rows}
    assert len(widths) == 1


def test_few_candidates_are_shown_and_the_rest_counted() -> None:
    trace = trace_training(["abcdefgh abcdefgh xyxyxy", "hg"], num_merges=1, tie_break="greatest_bytes")
    made = trace.rounds[0]
    assert made.merge.pair == (ord("x"), ord("y"))
    text = as_text(trace, top=2)
    assert f"{len(made.candidates)} candidates, in order of first sight:" in text
    assert f"… and {len(made.candidates) - 2} more, none seen more than 2 times" in text
    assert "<- winner" in text
    assert text.index("a + b  ") < text.index("x + y  ")  # the more frequent one is seen later and stands later


def test_the_winner_is_shown_however_many_are_tied() -> None:
    trace = trace_training(["zy xw vu ts rq ab"], kind="byte_bpe", num_merges=1, tie_break="lowest_ids")
    assert len(trace.rounds[0].tied) == 16
    text = as_text(trace, top=1)
    assert text.count("<- winner") == 1
    assert text.count("  tied\n") == 0
    assert "16 pairs are tied at 1; lowest_ids takes this one, not z + y, y + ␣, " in text
    assert " more\n" in text


def test_long_documents_are_cut_short_and_say_so() -> None:
    lines = as_text(trace_training(["ab" * 5000], num_merges=1)).split("\n")
    assert len(lines) < 40
    first = next(line for line in lines if " more" in line)
    shown = sum(line.count("a") + line.count("b") for line in lines[lines.index("") + 1 : lines.index(first)])
    # "start" holds an `a` that is no token
    assert first.strip() == f"… and {10_000 - (shown - 1):,} tokens more"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\n", "␤"),
        ("\t\r\x00\x1b\x7f", "␉␍␀␛␡"),
        ("a b", "a␣b"),
        ("\u00a0\u2028\u200d\ufeff\u0301\ufe0f", "\\xa0\\u2028\\u200d\\ufeff\\u0301\\ufe0f"),
        ("é中😀", "é中😀"),
    ],
)
def test_every_character_is_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("texts", [[""], ["", ""], ["a"], ["a", "b"], []])
def test_no_pair_at_all_is_no_round(texts: list[str]) -> None:
    for kind in KINDS:
        trace = trace_training(texts, kind=kind)
        assert (trace.rounds, trace.stop_reason) == ([], "no pair left")
        assert as_text(trace).endswith("stopped after 0 merges: no pair left")
    if "" in texts:
        assert "(empty)" in as_text(trace)


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [
        ("abc", 3, "abc"),
        ("abcdefg", 5, "ab…fg"),
        ("abcdefg", 6, "ab…fg"),
        ("中文字符", 7, "中…符"),
        ("中文字符", 8, "中文字符"),
    ],
)
def test_long_texts_keep_their_ends(text: str, width: int, short: str) -> None:
    assert shorten(text, width) == short
