"""The reference against right values worked out by hand; `engine` must give every one of them as well."""

import doctest

import pytest

from tokenizer import reference
from tokenizer.reference import TIE_BREAKS
from tokenizer_helpers import EVERY_BYTE, encode_with, train_on_words, train_with

both = pytest.mark.parametrize("trainer", ["reference", "engine"])
every_rule = pytest.mark.parametrize("tie_break", TIE_BREAKS)

EXHAUSTED = "no pair left"
TOO_RARE = "best pair below the minimum frequency"
REACHED = "target reached"


def test_doctests() -> None:
    result = doctest.testmod(reference)
    assert result.attempted > 0
    assert result.failed == 0


# ------------------------------------------------------------------------------------------------------- ties

# dd and cc stand at 3, bb and aa at 2; both texts hold the same pair counts.
SAME_COUNTS = {
    ("bbbaaaddddcccc", "first_seen"): ["dd", "cc", "bb", "aa"],
    ("bbbaaaddddcccc", "lowest_ids"): ["cc", "dd", "aa", "bb"],
    ("bbbaaaddddcccc", "greatest_bytes"): ["dd", "cc", "bb", "aa"],
    ("aaabbbccccdddd", "first_seen"): ["cc", "dd", "aa", "bb"],
    ("aaabbbccccdddd", "lowest_ids"): ["cc", "dd", "aa", "bb"],
    ("aaabbbccccdddd", "greatest_bytes"): ["dd", "cc", "bb", "aa"],
}


@both
@pytest.mark.parametrize(("text", "tie_break"), SAME_COUNTS)
def test_tie_between_equal_counts_in_another_order(trainer: str, text: str, tie_break: reference.TieBreak) -> None:
    rows, stop = train_on_words(trainer, [text], num_merges=99, min_pair_frequency=2, tie_break=tie_break)
    figures = {"aa": (2, 1), "bb": (2, 1), "cc": (3, 2), "dd": (3, 2)}  # windows, replacements
    assert rows == [(token[0], token[1], *figures[token]) for token in SAME_COUNTS[text, tie_break]]
    assert stop == TOO_RARE


# Six pairs at 2 in the first round: DC CB BA AB BC CD.
PALINDROME = {
    "first_seen": [("D", "C"), ("DC", "B"), ("A", "B"), ("AB", "C")],
    "lowest_ids": [("A", "B"), ("B", "AB"), ("C", "D"), ("BAB", "CD")],
    "greatest_bytes": [("D", "C"), ("DC", "B"), ("B", "C"), ("A", "BC")],
}


@both
@every_rule
def test_tie_between_many_pairs(trainer: str, tie_break: reference.TieBreak) -> None:
    rows, stop = train_on_words(trainer, ["DCBBABCDCBABCD"], num_merges=99, min_pair_frequency=2, tie_break=tie_break)
    assert rows == [(left, right, 2, 2) for left, right in PALINDROME[tie_break]]
    assert stop == TOO_RARE


@both
def test_greatest_bytes_compares_the_bytes_of_both_halves(trainer: str) -> None:
    rows, stop = train_on_words(trainer, ["aaab"], num_merges=99, min_pair_frequency=1, tie_break="greatest_bytes")
    # After (a,a) it is (aa,a) against (a,b): "aa" is greater than its own prefix "a".
    assert rows == [("a", "a", 2, 1), ("aa", "a", 1, 1), ("aaa", "b", 1, 1)]
    assert stop == EXHAUSTED


@both
def test_greatest_bytes_uses_bytes_not_ids(trainer: str) -> None:
    base = [b"z", b"a", b"m"]  # ids do not follow the bytes
    training = train_with(
        trainer, [[0, 0], [1, 1], [2, 2]], base, num_merges=3, min_pair_frequency=1, tie_break="greatest_bytes"
    )
    assert [merge.pair for merge in training.merges] == [(0, 0), (2, 2), (1, 1)]


@both
def test_greatest_bytes_compares_bytes_as_unsigned(trainer: str) -> None:
    training = train_with(
        trainer,
        [[0x7F, 0x7F], [0x80, 0x80], [0xFF, 0xFF]],
        EVERY_BYTE,
        num_merges=3,
        min_pair_frequency=1,
        tie_break="greatest_bytes",
    )
    assert [merge.pair[0] for merge in training.merges] == [0xFF, 0x80, 0x7F]


@both
def test_first_seen_is_about_the_first_window_that_is_left(trainer: str) -> None:
    # ab and cb stand at 2; (a,b) was first, but merging (x,a) takes its first window away.
    rows, _ = train_on_words(
        trainer, ["xab", "cb", "xa", "ab", "ab", "cb", "xa"], num_merges=3, min_pair_frequency=2, tie_break="first_seen"
    )
    assert rows == [("x", "a", 3, 3), ("c", "b", 2, 2), ("a", "b", 2, 2)]


# --------------------------------------------------------------------------------------------------- overlaps

OVERLAPS = {
    ("aaaababab", "first_seen"): [("a", "a", 3, 2), ("b", "a", 2, 2)],
    ("aaaababab", "lowest_ids"): [("a", "a", 3, 2), ("a", "b", 2, 2)],
    ("aaaababab", "greatest_bytes"): [("a", "b", 3, 3), ("ab", "ab", 2, 1), ("a", "a", 2, 1)],
    ("aaabdaaabac", "first_seen"): [("a", "a", 4, 2), ("aa", "a", 2, 2), ("aaa", "b", 2, 2)],
    ("aaabdaaabac", "lowest_ids"): [("a", "a", 4, 2), ("a", "b", 2, 2), ("aa", "ab", 2, 2)],
    ("aaabdaaabac", "greatest_bytes"): [("a", "a", 4, 2), ("aa", "a", 2, 2), ("aaa", "b", 2, 2)],
}


@both
@pytest.mark.parametrize(("text", "tie_break"), OVERLAPS)
def test_overlapping_windows(trainer: str, text: str, tie_break: reference.TieBreak) -> None:
    rows, stop = train_on_words(trainer, [text], num_merges=99, min_pair_frequency=2, tie_break=tie_break)
    assert rows == OVERLAPS[text, tie_break]
    assert stop == TOO_RARE


def test_window_counts_include_the_overlapping_ones() -> None:
    counts = reference.count_pairs([[ord(character) for character in "aaaababab"]])
    a, b = ord("a"), ord("b")
    assert counts == {(a, a): 3, (a, b): 3, (b, a): 2}
    assert list(counts) == [(a, a), (a, b), (b, a)]


@pytest.mark.parametrize("encoder", ["reference", "engine"])
@pytest.mark.parametrize(("run", "wanted"), [("a", "a"), ("aa", "X"), ("aaa", "Xa"), ("aaaa", "XX"), ("aaaaa", "XXa")])
def test_replacement_runs_from_the_left(encoder: str, run: str, wanted: str) -> None:
    [ids] = encode_with(encoder, [[0] * len(run)], [(0, 0)], base_size=1)
    assert "".join("aX"[index] for index in ids) == wanted


def test_replace_pair_counts_replacements() -> None:
    for length, made in ((1, 0), (2, 1), (3, 1), (4, 2), (5, 2)):
        assert reference.replace_pair([7] * length, (7, 7), 8)[1] == made


@both
def test_trace_of_two_documents(trainer: str) -> None:
    documents = [list(b"aaa"), list(b"aba")]
    training = train_with(trainer, documents, EVERY_BYTE, num_merges=10, min_pair_frequency=1, tie_break="lowest_ids")
    rounds = [(merge.rank, merge.pair, merge.new_id, merge.count, merge.replacements) for merge in training.merges]
    assert rounds == [
        (0, (97, 97), 256, 2, 1),
        (1, (97, 98), 257, 1, 1),
        (2, (256, 97), 258, 1, 1),
        (3, (257, 97), 259, 1, 1),
    ]
    assert training.stop_reason == EXHAUSTED
    pairs = [merge.pair for merge in training.merges]
    states = [encode_with(trainer, documents, pairs, base_size=256, limit=limit) for limit in range(5)]
    assert states == [
        [[97, 97, 97], [97, 98, 97]],
        [[256, 97], [97, 98, 97]],
        [[256, 97], [257, 97]],
        [[258], [257, 97]],
        [[258], [259]],
    ]


# ------------------------------------------------------------------------------------- borders and lost pairs


@both
@every_rule
def test_nothing_is_counted_across_documents(trainer: str, tie_break: reference.TieBreak) -> None:
    rows, stop = train_on_words(trainer, ["a", "a"], num_merges=9, min_pair_frequency=1, tie_break=tie_break)
    assert (rows, stop) == ([], EXHAUSTED)


@both
@every_rule
def test_no_live_pair_is_lost(trainer: str, tie_break: reference.TieBreak) -> None:
    rows, stop = train_on_words(
        trainer, ["ab", "abc", "bcd", "bc"], num_merges=10, min_pair_frequency=1, tie_break=tie_break
    )
    singles = [("a", "b", 1, 1), ("a", "bc", 1, 1), ("bc", "d", 1, 1)]
    if tie_break == "greatest_bytes":
        singles.reverse()
    assert rows == [("b", "c", 3, 3), *singles]
    assert stop == EXHAUSTED


@both
def test_words_with_frequencies(trainer: str) -> None:
    # Sennrich's example without an end mark: es 9, st 9, lo 7, ow 7, we 2+6 = 8, ...
    words = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
    rows, stop = train_on_words(trainer, words, num_merges=3, min_pair_frequency=2, tie_break="first_seen")
    assert rows == [("e", "s", 9, 9), ("es", "t", 9, 9), ("l", "o", 7, 7)]
    assert stop == REACHED


# ---------------------------------------------------------------------------------------------- where it ends


@both
@every_rule
@pytest.mark.parametrize("words", [[], [""], ["", ""], ["a"], ["", "a", ""]])
def test_text_without_any_pair(trainer: str, tie_break: reference.TieBreak, words: list[str]) -> None:
    rows, stop = train_on_words(trainer, words, num_merges=5, min_pair_frequency=1, tie_break=tie_break)
    assert (rows, stop) == ([], EXHAUSTED)


@both
@every_rule
def test_whitespace_only(trainer: str, tie_break: reference.TieBreak) -> None:
    rows, stop = train_on_words(trainer, ["    "], num_merges=5, min_pair_frequency=1, tie_break=tie_break)
    assert rows == [(" ", " ", 3, 2), ("  ", "  ", 1, 1)]
    assert stop == EXHAUSTED


@both
@every_rule
@pytest.mark.parametrize("words", [[], ["abab"]])
def test_zero_merges_is_legal(trainer: str, tie_break: reference.TieBreak, words: list[str]) -> None:
    rows, stop = train_on_words(trainer, words, num_merges=0, min_pair_frequency=1, tie_break=tie_break)
    assert (rows, stop) == ([], REACHED)


@both
def test_one_merge(trainer: str) -> None:
    rows, stop = train_on_words(trainer, ["abab"], num_merges=1, min_pair_frequency=1, tie_break="first_seen")
    assert (rows, stop) == ([("a", "b", 2, 2)], REACHED)


@both
@every_rule
def test_target_of_a_million_on_a_short_text(trainer: str, tie_break: reference.TieBreak) -> None:
    rows, stop = train_on_words(trainer, ["abcabc"], num_merges=10**6, min_pair_frequency=1, tie_break=tie_break)
    assert stop == EXHAUSTED
    assert rows[-1][0] + rows[-1][1] == "abcabc"
    assert len(rows) == 3


@both
@pytest.mark.parametrize(("minimum", "num_merges"), [(1, 3), (2, 2), (3, 0)])
def test_minimum_frequency(trainer: str, minimum: int, num_merges: int) -> None:
    # abcabc: ab 2, then abc 2, then abcabc 1.
    rows, stop = train_on_words(trainer, ["abcabc"], num_merges=99, min_pair_frequency=minimum, tie_break="first_seen")
    assert len(rows) == num_merges
    assert stop == (EXHAUSTED if minimum == 1 else TOO_RARE)


@both
def test_reaching_the_target_comes_before_the_other_reasons(trainer: str) -> None:
    rows, stop = train_on_words(trainer, ["abcabc"], num_merges=3, min_pair_frequency=1, tie_break="first_seen")
    assert len(rows) == 3
    assert stop == REACHED


@both
@every_rule
def test_one_long_run(trainer: str, tie_break: reference.TieBreak) -> None:
    rows, stop = train_on_words(trainer, ["a" * 10**5], num_merges=5, min_pair_frequency=2, tie_break=tie_break)
    # 100,000 halves evenly five times: 50,000, 25,000, 12,500, 6,250, 3,125.
    length, wanted = 10**5, []
    for level in range(5):
        wanted.append(("a" * 2**level, "a" * 2**level, length - 1, length // 2))
        length //= 2
    assert (rows, stop) == (wanted, REACHED)


@both
def test_one_long_run_to_its_end(trainer: str) -> None:
    rows, stop = train_on_words(trainer, ["a" * 10**5], num_merges=99, min_pair_frequency=2, tie_break="first_seen")
    # From 3,125 on there is a tail: 1,562 + tail, 781 + tail, 390 + 1 + tail, 195, 97, 48, 24, 12, 6, 3.
    assert [count for *_, count, _ in rows] == [
        99_999, 49_999, 24_999, 12_499, 6_249, 3_124, 1_561, 780, 389, 194, 96, 47, 23, 11, 5, 2,
    ]  # fmt: skip
    assert [made for *_, made in rows] == [
        50_000, 25_000, 12_500, 6_250, 3_125, 1_562, 781, 390, 195, 97, 48, 24, 12, 6, 3, 1,
    ]  # fmt: skip
    assert stop == TOO_RARE


# --------------------------------------------------------------------------------------------------- encoding


@pytest.mark.parametrize("encoder", ["reference", "engine"])
def test_encoding_follows_the_learned_order(encoder: str) -> None:
    # cc, bb, cb over b=0 c=1: in `cbb` the pair bb was learned before cb.
    merges = [(1, 1), (0, 0), (1, 0)]
    assert encode_with(encoder, [[1, 0, 0]], merges, base_size=2) == [[1, 3]]


@pytest.mark.parametrize("encoder", ["reference", "engine"])
def test_encoding_builds_on_earlier_merges(encoder: str) -> None:
    merges = [(0, 1), (2, 2)]  # ab, abab
    assert encode_with(encoder, [[0, 1] * 4, [1, 0, 1], []], merges, base_size=2) == [[3, 3], [1, 2], []]


def test_ranks_replay_in_order_even_where_a_later_pair_stands_first() -> None:
    # a=0 b=1 c=2; bc was learned before ab: `abc` is a, bc.
    assert reference.encode([0, 1, 2], [(1, 2), (0, 1)], base_size=3) == [0, 3]
