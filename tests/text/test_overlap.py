"""Shared strings: exact at every length and border, equal to a naive search, groups that keep sharers together."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.dividing import overlap
from data.dividing.overlap import Text, covered, shared_groups
from factories import examples

SHARED = "abcdefghij"


def naive_covered(held_out: list[str], train: list[str], length: int) -> list[bool]:
    found = []
    for document in held_out:
        marks = [False] * len(document)
        for start in range(len(document) - length + 1):
            if any(document[start : start + length] in other for other in train):
                marks[start : start + length] = [True] * length
        found += marks
    return found


def naive_groups(documents: list[str], length: int) -> list[int]:
    group = list(range(len(documents)))
    strings = [{text[at : at + length] for at in range(len(text) - length + 1)} for text in documents]
    for one, other in combinations(range(len(documents)), 2):
        if strings[one] & strings[other]:
            low, high = sorted((group[one], group[other]))
            group = [low if number == high else number for number in group]
    return group


@pytest.mark.parametrize(("num_shared", "num_covered"), [(9, 0), (10, 10), (11, 11)])
def test_a_string_counts_from_the_length_on(num_shared: int, num_covered: int) -> None:
    string = (SHARED + "k")[:num_shared]
    marks = covered(Text.of([f"12{string}34\n"]), Text.of([f"XY{string}Z\n"]), 10)
    assert np.flatnonzero(marks).tolist() == list(range(2, 2 + num_covered))


@pytest.mark.parametrize("place", ["{}!", "!{}", "{}"])
def test_strings_at_the_ends_of_texts(place: str) -> None:
    marks = covered(Text.of([place.format(SHARED)]), Text.of([SHARED]), 10)
    assert int(marks.sum()) == 10
    marks = covered(Text.of([SHARED]), Text.of([place.format(SHARED)]), 10)
    assert marks.all()


def test_no_string_reaches_over_a_border_of_documents() -> None:
    halves = [SHARED[:5], SHARED[5:]]
    assert not covered(Text.of(halves), Text.of([SHARED]), 10).any()
    assert not covered(Text.of([SHARED]), Text.of(halves), 10).any()
    assert covered(Text.of(["x", SHARED, "y"]), Text.of(["y", SHARED]), 10).tolist() == [False] + [True] * 10 + [False]


def test_repeated_and_overlapping_strings_count_each_character_once() -> None:
    marks = covered(Text.of([f"{SHARED}--{SHARED}", SHARED]), Text.of([SHARED, SHARED]), 10)
    assert int(marks.sum()) == 30
    assert covered(Text.of(["a" * 40]), Text.of(["a" * 12]), 10).all()


def test_texts_shorter_than_the_length_share_nothing() -> None:
    assert covered(Text.of(["abc"]), Text.of(["abc"]), 10).tolist() == [False] * 3
    assert covered(Text.of([]), Text.of(["abc"]), 2).tolist() == []
    assert shared_groups(Text.of(["abc", "abc"]), 10).tolist() == [0, 1]
    assert shared_groups(Text.of([]), 10).tolist() == []


documents = st.lists(st.text("ab", max_size=14), max_size=6)


@examples(60)
@given(held_out=documents, train=documents, length=st.integers(1, 6), block=st.sampled_from([1, 3, 1 << 22]))
def test_equal_to_a_naive_search(held_out: list[str], train: list[str], length: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "_BLOCK_WINDOWS", block)
        found = covered(Text.of(held_out), Text.of(train), length)
        assert found.tolist() == naive_covered(held_out, train, length)
        longer = covered(Text.of(held_out), Text.of(train), length + 2, within=found)
        assert longer.tolist() == naive_covered(held_out, train, length + 2)
        assert shared_groups(Text.of(held_out), length).tolist() == naive_groups(held_out, length)


@examples(40)
@given(held_out=documents, train=documents, length=st.integers(1, 5), num_hashes=st.sampled_from([1, 2, 5]))
def test_colliding_hashes_change_nothing(held_out: list[str], train: list[str], length: int, num_hashes: int) -> None:
    true_hashes = overlap._hashes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "_hashes", lambda codes, size: true_hashes(codes, size) % np.uint64(num_hashes))
        found = covered(Text.of(held_out), Text.of(train), length)
        assert found.tolist() == naive_covered(held_out, train, length)
        assert shared_groups(Text.of(held_out), length).tolist() == naive_groups(held_out, length)


def test_groups_are_connected_through_others() -> None:
    texts = ["--abcdefghij", "klmnopqrst--", "0123456789", "abcdefghij klmnopqrst"]
    assert shared_groups(Text.of(texts), 10).tolist() == [0, 0, 2, 0]
