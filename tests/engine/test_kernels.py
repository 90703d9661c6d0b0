"""The pair map and the replay: equal to the reference for every input, and `limit` is a prefix of the table."""

from itertools import zip_longest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import examples
from tokenizer.engine import kernels, piece
from tokenizer.engine.encode import encode_short
from tokenizer.reference import TIE_BREAKS, Pair
from tokenizer_helpers import encode_with, flatten, merge_table, train_with

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


@examples(150)
@given(sequences, tables, st.integers(0, 20))
def test_encode_equals_the_reference(texts: list[list[int]], merges: list[Pair], limit: int) -> None:
    check_encoding(texts, merges, limit)


@examples(100)
@given(sequences, tables, st.integers(0, 20))
def test_limit_is_the_tokenizer_of_the_first_merges(texts: list[list[int]], merges: list[Pair], limit: int) -> None:
    limit = min(limit, len(merges))
    limited = encode_with("engine", texts, merges, BASE_SIZE, limit)
    assert limited == encode_with("engine", texts, merges[:limit], BASE_SIZE)


@examples(100)
@given(sequences, tables)
def test_neighbours_do_not_change_a_pretoken(texts: list[list[int]], merges: list[Pair]) -> None:
    together = encode_with("engine", texts, merges, BASE_SIZE)
    assert together == [encode_with("engine", [text], merges, BASE_SIZE)[0] for text in texts]


def test_encode_leaves_its_input_alone() -> None:
    table = merge_table([(0, 0)], base_size=1, limit=1)
    symbols, offsets = flatten([[0, 0, 0], [0] * (piece._LONG_PIECE + 1)])
    text = symbols.astype(np.uint8)
    arrays = text, symbols, offsets, table.base_ids, table.pairs, table.ranks, table.low_ranks
    before = [array.copy() for array in arrays]
    encode_short(text, offsets, *table)
    piece.replay(symbols, table)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_encode_of_a_million_equal_symbols_is_near_linear() -> None:
    merges = [(0, 0)] + [(rank, rank) for rank in range(1, 19)]
    [ids] = encode_with("engine", [[0] * 10**6], merges, base_size=1)  # a quadratic step would take hours
    # Token k spells 2**k symbols: one for each bit of 10**6, except that bit 19 takes two tokens of 2**18.
    assert ids == [19] + [bit for bit in range(18, -1, -1) if 10**6 & 2**bit]


# ------------------------------------------------------------------------------------- long pieces and short ones

# Runs of up to 60 symbols, so that overlaps are long and the whole is longer than a short piece.
long_texts = st.lists(st.tuples(st.integers(0, BASE_SIZE - 1), st.integers(1, 60)), min_size=4, max_size=14).map(
    lambda pieces: [symbol for symbol, length in pieces for _ in range(length)]
)


def replay(text: list[int], merges: list[Pair], limit: int) -> list[int]:
    """One piece by the linear way, whatever its length."""
    ids: list[int] = piece.replay(np.array(text, dtype=np.int32), merge_table(merges, BASE_SIZE, limit)).tolist()
    return ids


def check_replay(text: list[int], merges: list[Pair], limit: int) -> None:
    limit = min(limit, len(merges))
    [wanted] = encode_with("reference", [text], merges, BASE_SIZE, limit)
    assert replay(text, merges, limit) == wanted


@examples(100)
@given(st.lists(st.integers(0, BASE_SIZE - 1), min_size=1, max_size=40), tables, st.integers(0, 20))
def test_replay_equals_the_reference(text: list[int], merges: list[Pair], limit: int) -> None:
    check_replay(text, merges, limit)


@examples(100)
@given(long_texts, tables, st.integers(0, 20))
def test_replay_equals_the_reference_on_runs(text: list[int], merges: list[Pair], limit: int) -> None:
    check_replay(text, merges, limit)


@examples(100)
@given(st.lists(long_texts, max_size=3), sequences, tables, st.integers(0, 20))
def test_long_and_short_pieces_side_by_side(
    long: list[list[int]], short: list[list[int]], merges: list[Pair], limit: int
) -> None:
    mixed = [piece for pair in zip_longest(long, short, fillvalue=[1, 1, 0]) for piece in pair]
    check_encoding(mixed, merges, limit)


@pytest.mark.parametrize("difference", [-1, 0, 1])
def test_both_ways_agree_where_one_takes_over(difference: int) -> None:
    generator = np.random.default_rng(7)
    size = piece._LONG_PIECE + difference
    texts = [[0] * size, ([0, 0, 1] * size)[:size], generator.integers(0, BASE_SIZE, size).tolist()]
    merges = [(0, 0), (3, 3), (1, 3), (0, 1), (2, 2), (4, 4), (5, 5)]
    check_encoding(texts, merges, len(merges))


# --------------------------------------------------------------------------------------------------- pair map

pair_lists = st.lists(
    st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)) | st.tuples(st.integers(0, 5), st.integers(0, 5)),
    max_size=60,
    unique=True,
)
NO_RANK = 2**30


def rank_or_none(ranks: np.ndarray, pair: Pair) -> int | None:
    """The rank of `pair`, or None where it has none."""
    rank = int(kernels.rank_of(ranks, *pair, NO_RANK))
    return None if rank == NO_RANK else rank


@examples(100)
@given(pair_lists, pair_lists, st.integers(0, 60))
def test_ranks_finds_what_it_holds_and_nothing_else(pairs: list[Pair], others: list[Pair], limit: int) -> None:
    ranks = kernels.build_ranks(np.array(pairs, dtype=np.int32).reshape(-1, 2))
    assert 2 * len(pairs) <= len(ranks)  # never more than half full, so every search ends
    for rank, pair in enumerate(pairs):
        assert rank_or_none(ranks, pair) == rank
        assert kernels.rank_of(ranks, *pair, limit) == min(rank, limit)
    for pair in set(others) - set(pairs):
        assert rank_or_none(ranks, pair) is None


def test_pairs_of_swapped_halves_are_different() -> None:
    ranks = kernels.build_ranks(np.array([[1, 2], [2, 1]], dtype=np.int32))
    assert (rank_or_none(ranks, (1, 2)), rank_or_none(ranks, (2, 1))) == (0, 1)


def test_ranks_of_many_merges() -> None:
    pairs = np.random.default_rng(3).permutation(300 * 300)[:50_000]
    pairs = np.stack([pairs // 300, pairs % 300], axis=1).astype(np.int32)
    ranks = kernels.build_ranks(pairs)
    assert [rank_or_none(ranks, (left, right)) for left, right in pairs[::50].tolist()] == list(range(0, 50_000, 50))
    assert rank_or_none(ranks, (300, 0)) is None


def put(keys: np.ndarray, values: np.ndarray, pair: Pair, value: int) -> None:
    key = int(kernels.pair_key(*pair))
    cell = kernels.find(keys, key)
    keys[cell], values[cell] = key, value


def lookup(keys: np.ndarray, values: np.ndarray, pair: Pair) -> int | None:
    """The value of `pair` in a map that can grow, or None where it has none."""
    cell = kernels.find(keys, int(kernels.pair_key(*pair)))
    return None if keys[cell] == kernels.NONE else int(values[cell])


@examples(100)
@given(pair_lists, pair_lists)
def test_a_map_that_grows_loses_nothing(pairs: list[Pair], others: list[Pair]) -> None:
    keys, values = np.full(8, kernels.NONE, dtype=np.int64), np.empty(8, dtype=np.int32)
    for value, pair in enumerate(pairs):
        if 2 * value >= len(keys):
            size = len(keys)
            keys, values = kernels.rehash(keys, values)
            assert len(keys) == len(values) == 2 * size
        put(keys, values, pair, value)
    assert [lookup(keys, values, pair) for pair in pairs] == list(range(len(pairs)))
    assert {lookup(keys, values, pair) for pair in set(others) - set(pairs)} <= {None}
    assert np.count_nonzero(keys != kernels.NONE) == len(pairs)
