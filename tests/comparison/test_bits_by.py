"""Where the bits go: classes by hand, conservation of the total, and the windows against slow enumeration."""

import json
import math
import random
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.bits_by import divide
from compare.bits_by.classes import KINDS, code_points, kinds_of, word_spans
from compare.bits_by.losses import context_seen
from compare.bits_by.result import WhereBitsGo
from data.errors import ReportError
from data.files import sha256_text
from model.evaluate import Evaluation

LN2 = math.log(2)


def evaluation_of(
    text: str,
    documents: list[list[int]],
    bits: list[float] | None = None,
    *,
    sizes: list[int] | None = None,
    block_size: int = 8,
    stride: int = 4,
) -> Evaluation:
    """An evaluation of `text`, whose `documents` are lists of the characters that begin in each token.

    `sizes` are the bytes of the tokens; by default each holds all bytes of the characters that begin in it.
    """
    chars = [length for document in documents for length in document]
    ends = list(accumulate(chars))
    whole = [len(text[end - length : end].encode()) for end, length in zip(ends, chars, strict=True)]
    assert sum(chars) == len(text)
    nats = np.array([1.0] * len(chars) if bits is None else bits, np.float32) * np.float32(LN2)
    return Evaluation(
        nats=nats,
        token_num_chars=np.array(chars, np.int32),
        token_num_bytes=np.array(sizes or whole, np.int32),
        document_offsets=np.array([0, *accumulate(map(len, documents))], np.int64),
        disjoint_total_nats=0.0,
        text_sha256=sha256_text(text),
        tokenizer_fingerprint="",
        stride=stride,
        block_size=block_size,
    )


def where_bits_go(evaluations: Mapping[str, Evaluation], test_text: str, train_text: str) -> dict[str, Any]:
    """The same as comparison.json holds it, which is read back without a loss."""
    found = divide.where_bits_go(evaluations, test_text, train_text)
    stored: dict[str, Any] = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert WhereBitsGo.from_json(stored) == found
    return stored


def kind_names(text: str, offsets: list[int] | None = None) -> list[str]:
    bounds = np.array(offsets or [0, len(text)], np.int64)
    return [KINDS[kind][0] for kind in kinds_of(code_points(text), word_spans(text, bounds))]


START, INSIDE, MARK, OTHER = "word start", "inside a word", "punctuation", "non-ASCII"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ab c", [START, INSIDE, "space", START]),
        ("1a\n", ["digit", START, "newline"]),
        ("\t\r\n", ["space", "space", "newline"]),
        ("don't", [START, INSIDE, INSIDE, INSIDE, INSIDE]),
        ("'a' s'", [MARK, START, MARK, "space", START, MARK]),
        ("a''b", [START, MARK, MARK, START]),
        ("a’b", [START, OTHER, INSIDE]),  # the word goes on behind a typographic apostrophe
        ("x_y.z", [START, MARK, START, MARK, START]),
        ("éa", [OTHER, INSIDE]),  # the word began with the é
        ("e\u0301a", [START, OTHER, INSIDE]),
        ("\u0301a", [OTHER, START]),  # a mark without a letter begins no word
        ("\u00a0٣½中😀\x00", [OTHER] * 5 + [MARK]),
        ("", []),
    ],
)
def test_every_character_has_one_kind(text: str, expected: list[str]) -> None:
    assert kind_names(text) == expected


def test_no_word_reaches_across_a_document() -> None:
    assert kind_names("abcd", [0, 2, 2, 4]) == [START, INSIDE, START, INSIDE]
    assert kind_names("a'b", [0, 2, 3]) == [START, MARK, START]


def test_every_ascii_character_and_every_plane_has_a_kind() -> None:
    names = kind_names("".join(map(chr, range(128))))
    assert {name: names.count(name) for name in set(names)} == {
        "newline": 1,
        "space": 9,  # tab, VT, FF, CR, the four separators and the space itself
        "digit": 10,
        START: 2,
        INSIDE: 50,
        MARK: 56,
    }
    assert set(kind_names("\x80\ud7ff\ue000\uffff\U00010000\U0010ffff")) == {OTHER}


def test_kinds_by_hand() -> None:
    text = "ab 7.\n"
    by_char = evaluation_of(text, [[1] * 6], [1, 2, 3, 4, 5, 6])
    by_token = evaluation_of(text, [[3, 1, 2]], [6, 1, 4])  # "ab ", "7", ".\n"
    kinds = {row["name"]: row for row in where_bits_go({"char": by_char, "bpe": by_token}, text, text)["kinds"]}
    assert list(kinds) == ["newline", "space", "digit", START, INSIDE, MARK]  # no non-ASCII character, so no row
    assert all(row["num_chars"] == 1 for row in kinds.values())
    figures = {name: (row["bits"]["char"], row["bits"]["bpe"], row["cut_share"]) for name, row in kinds.items()}
    assert figures == {
        "newline": (pytest.approx(6), pytest.approx(2), {"char": 0.0, "bpe": 1.0}),
        "space": (pytest.approx(3), pytest.approx(2), {"char": 0.0, "bpe": 1.0}),
        "digit": (pytest.approx(4), pytest.approx(1), {"char": 0.0, "bpe": 0.0}),
        START: (pytest.approx(1), pytest.approx(2), {"char": 0.0, "bpe": 1.0}),
        INSIDE: (pytest.approx(2), pytest.approx(2), {"char": 0.0, "bpe": 1.0}),
        MARK: (pytest.approx(5), pytest.approx(2), {"char": 0.0, "bpe": 1.0}),
    }


def test_bits_per_char_and_cut_share_are_over_the_characters_of_the_class() -> None:
    text = "1 234"
    result = where_bits_go({"x": evaluation_of(text, [[2, 1, 2]], [8, 1, 3])}, text, text)  # "1 ", "2", "34"
    digit = next(row for row in result["kinds"] if row["name"] == "digit")
    assert digit["num_chars"] == 4
    assert digit["bits"]["x"] == pytest.approx(8)
    assert digit["bits_per_char"]["x"] == pytest.approx(2)
    assert digit["cut_share"]["x"] == 0.25  # the 1 alone shares its token with another kind


def test_a_token_with_the_rest_of_one_character_and_the_next_cuts_both() -> None:
    text = "é1é1é"  # é has two bytes: "é" whole, "1" whole, é's first byte, its second with the 1, "é" whole
    evaluation = evaluation_of(text, [[1, 1, 1, 1, 1]], sizes=[2, 1, 1, 2, 2])
    rows = {row["name"]: row["cut_share"]["x"] for row in where_bits_go({"x": evaluation}, text, text)["kinds"]}
    assert rows == {OTHER: pytest.approx(1 / 3), "digit": pytest.approx(1 / 2)}
    text = "éé"  # of one kind: nothing is divided between kinds
    same = where_bits_go({"x": evaluation_of(text, [[1, 1]], sizes=[1, 3])}, text, text)
    assert [row["cut_share"]["x"] for row in same["kinds"]] == [0.0]
    text = "😀1"  # four bytes in three tokens; the last one holds the digit as well
    spread = where_bits_go({"x": evaluation_of(text, [[1, 0, 1]], sizes=[1, 2, 2])}, text, text)
    assert [row["cut_share"]["x"] for row in spread["kinds"]] == [1.0, 1.0]


def test_the_bytes_of_a_character_all_go_to_it() -> None:
    text = "a😀\n"
    row = where_bits_go({"byte": evaluation_of(text, [[1, 1, 0, 0, 0, 1]], [1, 2, 3, 4, 5, 6])}, text, "a\n")
    other = next(kind for kind in row["kinds"] if kind["name"] == OTHER)
    assert (other["num_chars"], other["bits"]["byte"]) == (1, pytest.approx(14))
    assert row["unseen"]["bits"]["byte"] == pytest.approx(14)


def test_positions_begin_anew_in_every_document_and_are_the_same_for_all() -> None:
    text = "a" * 20 + "b" * 2
    char = evaluation_of(text, [[1] * 20, [], [1, 1]], [*range(20), 100, 200])
    bpe = evaluation_of(text, [[5] * 4, [], [2]])
    rows = where_bits_go({"char": char, "bpe": bpe}, text, text)["positions"]
    assert [(row["from"], row["to"], row["num_chars"]) for row in rows] == [
        (0, 0, {"char": 2, "bpe": 2}),
        (1, 3, {"char": 4, "bpe": 4}),
        (4, 15, {"char": 12, "bpe": 12}),
        (16, 63, {"char": 4, "bpe": 4}),
    ]
    assert rows[0]["bits_per_char"]["char"] == pytest.approx((0 + 100) / 2)
    assert rows[1]["bits_per_char"]["char"] == pytest.approx((1 + 2 + 3 + 200) / 4)
    assert rows[3]["bits_per_char"]["char"] == pytest.approx((16 + 17 + 18 + 19) / 4)
    assert rows[0]["bits_per_char"]["bpe"] == pytest.approx((0.2 + 0.5) / 2)


def test_the_last_position_class_is_open() -> None:
    text = "a" * 1500
    rows = where_bits_go({"x": evaluation_of(text, [[1] * 1500])}, text, text)["positions"]
    assert [(row["from"], row["to"], row["num_chars"]["x"]) for row in rows[-2:]] == [
        (256, 1023, 768),
        (1024, None, 476),
    ]


def test_context_by_hand() -> None:
    # 7 tokens of 2 characters, blocks of 4 inputs, stride 2: the inputs are the newline and tokens 0 … 5.
    # Window 0 (newline, 0, 1, 2) scores tokens 0 to 3; window 1 (1 … 4) tokens 4 and 5; window 2 (3, 4, 5) token 6.
    evaluation = evaluation_of("ab" * 7, [[2] * 7], block_size=4, stride=2)
    assert context_seen(evaluation).tolist() == [0, 2, 4, 6, 6, 8, 6]


def test_context_classes_count_the_characters_of_each_contestant() -> None:
    text = "abcdefgh"
    char = evaluation_of(text, [[1] * 8], block_size=2, stride=1)  # sees 2 tokens at most
    bpe = evaluation_of(text, [[4, 2, 2]], [4, 2, 8], block_size=2, stride=1)
    rows = where_bits_go({"char": char, "bpe": bpe}, text, text)["context_seen"]
    assert [(row["from"], row["to"], row["num_chars"]) for row in rows] == [
        (0, 0, {"char": 1, "bpe": 4}),
        (1, 3, {"char": 7, "bpe": 0}),
        (4, 15, {"char": 0, "bpe": 4}),
    ]
    assert [row["bits_per_char"]["bpe"] for row in rows] == [pytest.approx(1), None, pytest.approx(2.5)]
    assert rows[1]["cut_share"] == {"char": 0.0, "bpe": None}


def seen_by_enumeration(evaluation: Evaluation) -> list[int]:
    """Every window of every document, input by input, as the method describes them: no code of the project's."""
    block, stride = evaluation.block_size, evaluation.stride
    bounds = evaluation.document_offsets.tolist()
    seen = []
    for begin, end in pairwise(bounds):
        lengths = evaluation.token_num_chars[begin:end].tolist()
        inputs = [0, *lengths[:-1]]  # characters of each input; the first one is the newline before the document
        scored: dict[int, int] = {}
        start = 0
        while len(scored) < len(lengths):
            for last in range(start, min(start + block, len(inputs))):
                scored.setdefault(last, sum(inputs[start : last + 1]))  # the first window that reaches it scores it
            start += stride
        seen += [scored[index] for index in range(len(lengths))]
    return seen


token_lengths = st.lists(st.integers(0, 4), max_size=40).map(lambda lengths: lengths and [1, *lengths[1:]])


@given(st.lists(token_lengths, min_size=1, max_size=4), st.integers(1, 9), st.data())
def test_context_against_slow_enumeration(documents: list[list[int]], block_size: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, block_size))
    text = "x" * sum(map(sum, documents))
    evaluation = evaluation_of(text, documents, block_size=block_size, stride=stride)
    assert context_seen(evaluation).tolist() == seen_by_enumeration(evaluation)


def test_word_frequency_by_hand() -> None:
    train = "the " * 12 + "The it's it's cat"
    text = "the The it's dog cat! dog"
    rows = where_bits_go({"x": evaluation_of(text, [[1] * 25], [*range(25)])}, text, train)["word_frequency"]
    assert [(row["name"], row["num_words"], row["num_chars"]) for row in rows] == [
        ("never in train", 2, 6),  # dog, twice
        ("1", 2, 6),  # The, cat
        ("2-9", 1, 4),  # it's
        ("10-99", 1, 3),  # the
    ]
    dogs = [13, 14, 15, 22, 23, 24]
    assert rows[0]["bits_per_char"]["x"] == pytest.approx(sum(dogs) / 6)
    assert rows[2]["bits"]["x"] == pytest.approx(8 + 9 + 10 + 11)


@pytest.mark.parametrize(
    ("count", "name"),
    [
        *[(0, "never in train"), (1, "1"), (2, "2-9"), (9, "2-9"), (10, "10-99"), (99, "10-99")],
        *[(100, "100-999"), (999, "100-999"), (1000, "1000+"), (5000, "1000+")],
    ],
)
def test_the_borders_of_the_word_frequencies(count: int, name: str) -> None:
    [row] = where_bits_go({"x": evaluation_of("w", [[1]])}, "w", "." + "w " * count)["word_frequency"]
    assert row["name"] == name


def test_words_that_share_tokens_with_what_is_no_word_say_so() -> None:
    [row] = where_bits_go({"x": evaluation_of("ab cd", [[2, 3]])}, "ab cd", "ab cd")["word_frequency"]
    assert row["cut_share"]["x"] == 0.5  # " cd" holds a space as well


def test_unseen_characters_are_counted_and_priced_the_most_frequent_first() -> None:
    text, train = "aßb😀ß", "ab"
    unseen = where_bits_go({"x": evaluation_of(text, [[1] * 5], [1, 2, 4, 8, 16])}, text, train)["unseen"]
    assert unseen["num_distinct"] == 2
    assert unseen["num_chars"] == 3
    assert unseen["characters"] == [
        {"character": "ß", "code_point": "U+00DF", "count": 2},
        {"character": "😀", "code_point": "U+1F600", "count": 1},
    ]
    assert unseen["bits"]["x"] == pytest.approx(26)
    assert unseen["bits_per_char"]["x"] == pytest.approx(26 / 3)


def test_nothing_unseen_costs_nothing_and_a_text_without_words_has_no_word_rows() -> None:
    result = where_bits_go({"x": evaluation_of("1\n", [[1, 1]])}, "1\n", "1\n")
    assert result["unseen"] == {
        "num_distinct": 0,
        "num_chars": 0,
        "characters": [],
        "bits": {"x": 0.0},
        "bits_per_char": {"x": None},
        "cut_share": {"x": None},
    }
    assert result["word_frequency"] == []


CHARACTERS = st.sampled_from(list("aZé中😀\u0301'’ \t\n\r7.-_\u00a0\x00ß"))


SEEDS = st.integers(0, 2**32)
DOCUMENTS = st.lists(st.text(CHARACTERS, max_size=40), min_size=1, max_size=4).filter(any)


def cut_at_random(document: str, rng: random.Random) -> list[int]:
    """Characters that begin in each token of `document`, up to 4; where some stand before it a token may have none."""
    lengths: list[int] = []
    while sum(lengths) < len(document):
        lengths.append(rng.randint(0 if lengths else 1, min(4, len(document) - sum(lengths))))
    return lengths


@given(DOCUMENTS, st.text(CHARACTERS, max_size=60), SEEDS, st.integers(1, 12))
def test_no_bit_and_no_character_is_lost_or_counted_twice(
    documents: list[str], train: str, seed: int, block_size: int
) -> None:
    rng = random.Random(seed)
    text = "".join(documents)
    evaluations = {}
    for name in ("one", "two"):
        cut = [cut_at_random(document, rng) for document in documents]
        bits = [rng.expovariate(0.5) for _ in range(sum(map(len, cut)))]
        evaluations[name] = evaluation_of(text, cut, bits, block_size=block_size, stride=rng.randint(1, block_size))
    result = where_bits_go(evaluations, text, train)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["num_chars"] == len(text)
    for name, evaluation in evaluations.items():
        total = evaluation.total_nats / LN2
        assert math.isclose(result["total_bits"][name], total, rel_tol=1e-12)
        for part in ("kinds", "positions", "context_seen"):
            rows = result[part]
            assert math.isclose(sum(row["bits"][name] for row in rows), total, rel_tol=1e-12)
            counts = [row["num_chars"] if part == "kinds" else row["num_chars"][name] for row in rows]
            assert sum(counts) == len(text)
        assert all(row["cut_share"][name] in (None, 0.0) for row in result["context_seen"])
        assert sum(row["bits"][name] for row in result["word_frequency"]) <= total * (1 + 1e-12)
    assert sum(row["num_chars"] for row in result["word_frequency"]) == sum(map(len, words_by_scan(documents)))
    assert result["unseen"]["num_chars"] == sum(character not in train for character in text)


def words_by_scan(documents: list[str]) -> list[str]:
    """The words of `documents`, character by character, by Unicode's categories."""
    words = []
    for document in documents:
        category = [unicodedata.category(character)[0] for character in document] + ["end"]
        place = 0
        while place < len(document):
            start = place
            while category[place] == "L" or (
                place > start
                and (
                    category[place] == "M" or (document[place : place + 1] in ("'", "’") and category[place + 1] == "L")
                )
            ):
                place += 1
            words += [document[start:place]] if place > start else []
            place += place == start
    return words


@given(DOCUMENTS)
def test_words_against_a_scan(documents: list[str]) -> None:
    text = "".join(documents)
    spans = word_spans(text, np.array([0, *accumulate(map(len, documents))], np.int64))
    assert [text[begin:end] for begin, end in spans.tolist()] == words_by_scan(documents)


@given(DOCUMENTS, SEEDS)
def test_cut_share_against_counting(documents: list[str], seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(documents)
    cut = [cut_at_random(document, rng) for document in documents]
    result = where_bits_go({"x": evaluation_of(text, cut)}, text, text)
    kinds = kind_names(text, [0, *accumulate(map(len, documents))])
    mixed: dict[str, list[bool]] = {}
    start = 0
    for length in (length for document in cut for length in document):
        token = kinds[start : start + length]
        for kind in token:
            mixed.setdefault(kind, []).append(len(set(token)) > 1)
        start += length
    expected = {kind: pytest.approx(sum(flags) / len(flags)) for kind, flags in mixed.items()}
    assert {row["name"]: row["cut_share"]["x"] for row in result["kinds"]} == expected


def test_the_parts_of_a_long_text_add_up_as_exactly_as_those_of_a_short_one() -> None:
    rng = np.random.default_rng(1)
    text = "".join(rng.choice(list("abcdefgh é😀.,1\n"), 200_000))
    evaluation = evaluation_of(
        text, [[1] * len(text)], rng.exponential(2.0, len(text)).tolist(), block_size=64, stride=32
    )
    result = where_bits_go({"x": evaluation}, text, text)
    for part in ("kinds", "positions", "context_seen"):
        bits = sum(row["bits"]["x"] for row in result[part])
        assert math.isclose(bits, evaluation.total_nats / LN2, rel_tol=1e-12)


def test_no_contestant_another_text_and_other_documents_are_refused() -> None:
    evaluation = evaluation_of("abc", [[1, 2]])
    with pytest.raises(ReportError, match="no contestant"):
        where_bits_go({}, "abc", "abc")
    with pytest.raises(ReportError, match=r"^bpe was scored on 3 characters .* the test text has 4 .*make all"):
        where_bits_go({"bpe": evaluation}, "abcd", "abc")
    with pytest.raises(ReportError, match="bpe was scored on 3 characters"):
        where_bits_go({"bpe": evaluation}, "abd", "abc")
    with pytest.raises(ReportError, match=r"bpe was scored on documents with other borders than char"):
        where_bits_go(
            {"char": evaluation, "bpe": replace(evaluation, document_offsets=np.array([0, 1, 2]))}, "abc", "abc"
        )
