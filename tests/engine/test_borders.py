"""Marks of borders are the borders of the patterns, whatever is where: neighbours, doubts, ends, spans."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import examples
from tokenizer.engine.borders import (
    CUTS,
    WHOLE,
    cutter_for,
    eight_at_a_time,
    first_marked,
    list_ends,
    mark_borders,
    num_up_to,
    quick_class,
    taken_together,
)
from tokenizer.engine.cuts import NEVER, Cuts
from tokenizer.engine.scan import PATTERN_NUMBERS, character_classes, quick_classes, scan
from tokenizer.pretokenize import SplitPattern, pretokenize
from tokenizer_helpers import LOSSLESS_TEXTS, read_shared

SCANNED: list[SplitPattern] = ["space", "gpt2", "gpt4"]

# Dense in what makes a doubt (apostrophes, bytes outside ASCII, spaces before either) and in what hides one.
TELLING = (
    "aaZ1_.'''   \n\r\t\x0b\x1c\x00\x7f\u0085\u00a0\u00a0\u2028\u3000\u200b\u0301\u00e9\u0434\u6771\u0661\u00bd\u017f"
    "\U0001f600\U0010ffff"
)
telling = st.text(st.sampled_from(TELLING), max_size=60)
QUOTES = ["'s", "'ll", "'re'", " '", "''"]
SPACES = ["  ", " \u00a0", "\u00a0 ", "\n\n"]
WORDS = ["a", "bc", " 12", "\u00e9", " \u00e9"]
snippets = st.lists(st.sampled_from(QUOTES + SPACES + WORDS), max_size=20).map("".join)
ascii_runs = st.lists(st.tuples(st.sampled_from("a1. \n'\u00e9\u00a0"), st.integers(1, 40)), max_size=6).map(
    lambda pieces: "".join(character * length for character, length in pieces)
)
texts = st.one_of(telling, snippets, ascii_runs, st.text(max_size=30))


def borders_of(raw: bytes, pattern: int, start: int, end: int, *, dirty: int = 0, cuts: Cuts = NEVER) -> list[int]:
    """What is marked of the span [start, end), counted from the start; the room holds `dirty` bytes from before."""
    text = np.frombuffer(bytearray(raw + bytes(16)), dtype=np.uint8)  # writable, as the kernels are compiled for
    spans = np.array([[start, end]], dtype=np.int64)
    cutter = cutter_for(spans, pattern, cuts)
    marks = cutter.marks
    marks[:], cutter.kinds[:] = dirty, dirty
    mark_borders(text, start, spans, cutter)
    size = end - start
    assert set(marks[1 : size + 1].tolist()) <= {0, 1}, "a doubt is left"
    marked = (np.flatnonzero(marks[1 : size + 1]) + 1).tolist()
    marks[:], cutter.kinds[:] = dirty, dirty
    count = list_ends(text, start, spans, cutter)
    assert (cutter.ends[:count] - start).tolist() == marked
    return marked


def check_borders(text: str, pattern: SplitPattern) -> None:
    raw, number = text.encode(), PATTERN_NUMBERS[pattern]
    wanted = np.cumsum([len(pretoken.encode()) for pretoken in pretokenize(text, pattern)], dtype=np.int64).tolist()
    if not wanted:
        return  # an empty span is not marked at all
    for dirty in (0, 1, 3, 255):
        assert borders_of(raw, number, 0, len(raw), dirty=dirty) == wanted, (pattern, text)
    scanned = scan(np.frombuffer(bytearray(raw), dtype=np.uint8), number, quick_classes(number), character_classes())
    assert scanned.tolist() == wanted


@pytest.fixture(scope="module", autouse=True)
def _compile_the_kernels() -> None:
    """The first call compiles, which is nobody's example."""
    check_borders("a b", "gpt2")


@pytest.mark.parametrize("pattern", SCANNED)
@examples(200)
@given(text=texts)
def test_equal_to_the_pattern(pattern: SplitPattern, text: str) -> None:
    check_borders(text, pattern)


@pytest.mark.parametrize("pattern", SCANNED)
@examples(100)
@given(before=texts, text=texts.filter(bool), after=texts)
def test_a_span_sees_nothing_beyond_its_ends(pattern: SplitPattern, before: str, text: str, after: str) -> None:
    """What is before the start or behind the end is another document."""
    start = len(before.encode())
    end = start + len(text.encode())
    found = borders_of((before + text + after).encode(), PATTERN_NUMBERS[pattern], start, end, dirty=1)
    assert found == np.cumsum([len(pretoken.encode()) for pretoken in pretokenize(text, pattern)]).tolist()


@pytest.mark.parametrize("pattern", SCANNED)
@pytest.mark.parametrize("text", LOSSLESS_TEXTS.values(), ids=LOSSLESS_TEXTS.keys())
def test_texts_that_others_lose(text: str, pattern: SplitPattern) -> None:
    check_borders(text, pattern)


@pytest.mark.parametrize("pattern", SCANNED)
def test_every_short_string_of_what_makes_doubts(pattern: SplitPattern) -> None:
    strings = [""]
    for _ in range(4):
        strings = [string + character for string in strings for character in "as1!' \u00a0"]
        for string in strings:
            raw = string.encode()
            found = borders_of(raw, PATTERN_NUMBERS[pattern], 0, len(raw), dirty=3)
            wanted = np.cumsum([len(pretoken.encode()) for pretoken in pretokenize(string, pattern)]).tolist()
            assert found == wanted, string


@pytest.mark.parametrize("pattern", SCANNED)
@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65])
def test_lengths_around_a_word_with_a_doubt_at_every_place(pattern: SplitPattern, length: int) -> None:
    for filling in ("a", " ", "."):
        for doubt in ("'", "\u00e9", "\u00a0"):
            for place in range(length):
                check_borders(filling * place + doubt + filling * (length - place - 1), pattern)


@pytest.mark.parametrize("pattern", SCANNED)
def test_wikitext(pattern: SplitPattern) -> None:
    text = read_shared("wikitext2/wiki.test.raw")
    raw = text.encode()
    wanted = np.cumsum([len(pretoken.encode()) for pretoken in pretokenize(text, pattern)]).tolist()
    assert borders_of(raw, PATTERN_NUMBERS[pattern], 0, len(raw)) == wanted


def test_whole_spans_have_one_border() -> None:
    assert borders_of("it's \u00e9 . ".encode(), WHOLE, 0, 11, dirty=1) == [11]
    assert borders_of(b"a b c d", WHOLE, 2, 5, dirty=255) == [3]


@examples(100)
@given(st.binary(min_size=1, max_size=50), st.sets(st.tuples(st.integers(0, 255), st.integers(0, 255))), st.booleans())
def test_cuts_are_where_two_bytes_do_not_join(raw: bytes, together: set[tuple[int, int]], of_the_text: bool) -> None:
    joins = np.zeros((256, 256), dtype=np.uint16)
    pairs = {pair for index, pair in enumerate(pairwise(raw)) if of_the_text and index % 2} | together
    for left, right in pairs:
        joins[left, right] = 1
    wanted = [k for k in range(1, len(raw)) if (raw[k - 1], raw[k]) not in pairs] + [len(raw)]
    assert borders_of(raw, CUTS, 0, len(raw), dirty=1, cuts=Cuts(joins, NEVER.contexts)) == wanted


# ------------------------------------------------------------------------------------------------------ eight at a time


@examples(100)
@given(st.binary(min_size=8, max_size=40))
def test_eight_at_a_time(raw: bytes) -> None:
    text = np.frombuffer(bytearray(raw), dtype=np.uint8)
    at = eight_at_a_time(text)
    assert [int(word) for word in at] == [int.from_bytes(raw[i : i + 8], "little") for i in range(len(raw) - 7)]
    text[3] ^= 0xFF
    assert int(at[0]) == int.from_bytes(text[:8].tobytes(), "little")  # a view, not a copy


def test_first_marked_of_every_word() -> None:
    for bits in range(1, 256):
        marked = [k for k in range(8) if bits >> k & 1]
        assert first_marked(np.uint64(sum(1 << (8 * k) for k in marked))) == marked[0]


@pytest.mark.parametrize("pattern", ["space", "gpt2"])
def test_classes_by_comparison_are_those_of_the_table(pattern: str) -> None:
    table = quick_classes(PATTERN_NUMBERS[pattern])
    assert [quick_class(np.uint8(byte), pattern == "gpt2") for byte in range(256)] == table.tolist()


def test_room_for_the_longest_span() -> None:
    cutter = cutter_for(np.array([[0, 3], [3, 40], [40, 41]], dtype=np.int64), PATTERN_NUMBERS["gpt2"], NEVER)
    size = len(cutter.marks)
    assert (
        size >= 37 + 72 and len(cutter.ends) >= 37 and len(cutter.marks_at) == size - 7 and len(cutter.kinds) >= 37 + 1
    )
    nothing = cutter_for(np.zeros((0, 2), dtype=np.int64), WHOLE, NEVER)
    for array in (nothing.marks, nothing.marks_at, nothing.kinds):
        assert not array.any()


@pytest.mark.parametrize("pattern", SCANNED)
@examples(200)
@given(documents=st.lists(texts, max_size=8), skipped=st.integers(0, 3))
def test_spans_taken_together_are_as_by_themselves(pattern: SplitPattern, documents: list[str], skipped: int) -> None:
    raws = [document.encode() for document in ["\u00e9" * skipped, *documents, "a"]]
    wanted = [[len(pretoken.encode()) for pretoken in pretokenize(document, pattern)] for document in documents]
    ends = np.cumsum(list(map(len, raws)), dtype=np.int64)
    spans = np.stack([ends[:-1], ends[1:]], axis=1)[: len(documents)]
    if not documents:
        return
    assert taken_together(spans, 0) == len(spans)
    text = np.frombuffer(bytearray(b"".join(raws) + bytes(16)), dtype=np.uint8)
    cutter = cutter_for(spans, PATTERN_NUMBERS[pattern], NEVER)
    cutter.marks[:], cutter.kinds[:] = 255, 255
    count = list_ends(text, int(ends[0]), spans, cutter)
    assert np.diff(cutter.ends[:count], prepend=ends[0]).tolist() == [size for sizes in wanted for size in sizes]


def test_spans_are_taken_together_while_they_are_neighbours_and_short() -> None:
    spans = np.array([[0, 5], [5, 5], [5, 9], [10, 12], [12, 12 + (1 << 16)], [12 + (1 << 16), 99_999]], dtype=np.int64)
    assert [taken_together(spans, first) for first in range(6)] == [3, 3, 3, 4, 5, 6]


def test_number_of_ends_up_to_a_place() -> None:
    ends = np.array([2, 3, 7], dtype=np.int64)
    assert [num_up_to(ends, place) for place in (0, 2, 3, 6, 7, 9)] == [0, 1, 2, 2, 3, 3]
