"""The pair map and the replay: equal to the reference for every input, and `limit` is a prefix of the table."""

import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokenizer import kernels
from tokenizer.reference import TIE_BREAKS, Pair
from tokenizer_helpers import encode_with, flatten, train_with

BASE_SIZE = 3
sequences = st.lists(st.lists(st.integers(0, BASE_SIZE - 1), max_size=30), max_size=6)


@st.composite
def merge_tables(draw: st.DrawFn) -> list[Pair]:
    """Any table that a file could hold: both halves exist, no two tokens are spelled alike."""
    spellings: set[tuple[int, ...]] = {(symbol,) for symbol in range(BASE_SIZE)}
    tokens = sorted(spellings)
    merges: list[Pair] = []
    for left, right in draw(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=14)):
        pair = left % len(tokens), right % len(tokens)
        spelled = tokens[pair[0]] + tokens[pair[1]]
        if spelled not in spellings and len(spelled) <= 12:
            spellings.add(spelled)
            tokens.append(spelled)
            merges.append(pair)
    return merges


@st.composite
def learned_tables(draw: st.DrawFn) -> list[Pair]:
    """A table that training gives."""
    training = train_with(
        "reference",
        draw(sequences),
        [bytes([symbol]) for symbol in range(BASE_SIZE)],
        num_merges=draw(st.integers(0, 20)),
        min_pair_frequency=1,
        tie_break=draw(st.sampled_from(TIE_BREAKS)),
    )
    return [merge.pair for merge in training.merges]


tables = st.one_of(merge_tables(), learned_tables())


@pytest.fixture(scope="module", autouse=True)
def _compile_the_kernels() -> None:
    """The first call compiles, which is nobody's example."""
    encode_with("engine", [[0, 0]], [(0, 0)], 1)


def check_encoding(texts: list[list[int]], merges: list[Pair], limit: int) -> None:
    found = encode_with("engine", texts, merges, BASE_SIZE, min(limit, len(merges)))
    assert found == encode_with("reference", texts, merges, BASE_SIZE, min(limit, len(merges)))


@settings(max_examples=300, deadline=None)
@given(sequences, tables, st.integers(0, 20))
def test_encode_equals_the_reference(texts: list[list[int]], merges: list[Pair], limit: int) -> None:
    check_encoding(texts, merges, limit)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sequences, tables, st.integers(0, 20))
def test_encode_equals_the_reference_at_length(texts: list[list[int]], merges: list[Pair], limit: int) -> None:
    check_encoding(texts, merges, limit)


@settings(max_examples=100, deadline=None)
@given(sequences, tables, st.integers(0, 20))
def test_limit_is_the_tokenizer_of_the_first_merges(texts: list[list[int]], merges: list[Pair], limit: int) -> None:
    limit = min(limit, len(merges))
    limited = encode_with("engine", texts, merges, BASE_SIZE, limit)
    assert limited == encode_with("engine", texts, merges[:limit], BASE_SIZE)


@settings(max_examples=100, deadline=None)
@given(sequences, tables)
def test_neighbours_do_not_change_a_pretoken(texts: list[list[int]], merges: list[Pair]) -> None:
    together = encode_with("engine", texts, merges, BASE_SIZE)
    assert together == [encode_with("engine", [text], merges, BASE_SIZE)[0] for text in texts]


def test_encode_leaves_its_input_alone() -> None:
    symbols, offsets = flatten([[0, 0, 0]])
    pairs = np.array([[0, 0]], dtype=np.int32)
    keys, values = kernels.build_ranks(pairs)
    kernels.encode(symbols, offsets, pairs, keys, values, 1, 1)
    assert symbols.tolist() == [0, 0, 0]
    assert offsets.tolist() == [0, 3]


def test_encode_of_a_million_equal_symbols_is_near_linear() -> None:
    merges = [(0, 0)] + [(rank, rank) for rank in range(1, 19)]
    started = time.perf_counter()
    [ids] = encode_with("engine", [[0] * 10**6], merges, base_size=1)
    assert time.perf_counter() - started < 10  # a quadratic step would take hours
    # Token k spells 2**k symbols: one for each bit of 10**6, except that bit 19 takes two tokens of 2**18.
    assert ids == [19] + [bit for bit in range(18, -1, -1) if 10**6 & 2**bit]


# --------------------------------------------------------------------------------------------------- pair map

pair_lists = st.lists(
    st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)) | st.tuples(st.integers(0, 5), st.integers(0, 5)),
    max_size=60,
    unique=True,
)


def lookup(keys: np.ndarray, values: np.ndarray, pair: Pair) -> int | None:
    """The value of `pair`, or None where it has none."""
    cell = kernels.find(keys, (pair[0] << 32) | pair[1])
    return None if keys[cell] == kernels.NONE else int(values[cell])


@settings(max_examples=100, deadline=None)
@given(pair_lists, pair_lists)
def test_map_of_ranks_finds_what_it_holds_and_nothing_else(pairs: list[Pair], others: list[Pair]) -> None:
    array = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    keys, values = kernels.build_ranks(array)
    grown_keys, grown_values = kernels.rehash(keys, values)
    assert len(grown_keys) == 2 * len(keys)
    assert 2 * len(pairs) <= len(keys)  # never more than half full, so every search ends
    for rank, pair in enumerate(pairs):
        assert lookup(keys, values, pair) == rank
        assert lookup(grown_keys, grown_values, pair) == rank
    for pair in set(others) - set(pairs):
        assert lookup(keys, values, pair) is None
        assert lookup(grown_keys, grown_values, pair) is None


def test_pairs_of_swapped_halves_are_different() -> None:
    keys, values = kernels.build_ranks(np.array([[1, 2], [2, 1]], dtype=np.int32))
    assert (lookup(keys, values, (1, 2)), lookup(keys, values, (2, 1))) == (0, 1)


def test_links_end_at_the_borders_of_pretokens() -> None:
    following, preceding = kernels.link(np.array([0, 2, 2, 3, 6], dtype=np.int64), 6)
    none = kernels.NONE
    assert following.tolist() == [1, none, none, 4, 5, none]
    assert preceding.tolist() == [none, 0, none, none, 3, 4]
