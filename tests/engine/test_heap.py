"""The queue of pairs: rows come off in the order of count and tie rule, whatever order they went on in."""

from functools import cmp_to_key

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import examples
from tokenizer.engine import heap as module
from tokenizer.engine.heap import FIRST_SEEN, GREATEST_BYTES, LOWEST_IDS, TokenBytes
from tokenizer.reference import TIE_BREAKS, choose_pair

# Equal bytes, prefixes of each other, bytes above 0x7F (which are no negative numbers), a NUL.
TOKENS = [b"a", b"b", b"ab", b"abc", b"\x00", b"a\x00", b"\x80", b"\xff", b"b\xff", b"ba", b"a"]

rows = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 10), st.integers(0, len(TOKENS) - 1), st.integers(0, len(TOKENS) - 1)),
    max_size=40,
    unique_by=lambda row: (row[2], row[3]),
)
Row = tuple[int, int, int, int]


class Queue:
    """The kernels with their arrays in one place."""

    def __init__(self, found: list[Row], rule: int) -> None:
        self.heap, self.size = np.zeros((len(found) + 1, 3), dtype=np.int64), 0
        self.halves = np.array([row[2:] for row in found], dtype=np.int32).reshape(-1, 2)
        self.rest = (rule, self.halves, layout(TOKENS))

    def push(self, count: int, tie: int, number: int) -> None:
        self.size = module.push(self.heap, self.size, count, tie, number, *self.rest)

    def pop(self) -> tuple[int, int, int]:
        count, tie, number = self.heap[0].tolist()
        self.size = module.pop(self.heap, self.size, *self.rest)
        return count, tie, number

    def resift(self, count: int, tie: int) -> None:
        """Make the row on top worse."""
        self.heap[0, :2] = count, tie
        module.resift(self.heap, self.size, *self.rest)


def layout(tokens: list[bytes]) -> TokenBytes:
    lengths = np.array([len(token) for token in tokens], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    return TokenBytes(starts, lengths, np.array(bytearray(b"".join(tokens)), dtype=np.uint8))


def order_key(row: Row, rule: int) -> tuple[object, ...]:
    """Sorts rows as the queue should: what it does not define (equal rows) is left equal."""
    count, tie, left, right = row
    if rule == GREATEST_BYTES:
        greater = cmp_to_key(lambda a, b: (a < b) - (a > b))
        return (-count, greater((TOKENS[left], TOKENS[right])))
    return (-count, tie)


def test_rules_stand_in_the_order_of_their_names() -> None:
    assert [TIE_BREAKS[rule] for rule in (FIRST_SEEN, LOWEST_IDS, GREATEST_BYTES)] == [
        "first_seen",
        "lowest_ids",
        "greatest_bytes",
    ]


@pytest.mark.parametrize("rule", [FIRST_SEEN, LOWEST_IDS, GREATEST_BYTES])
@examples(50)
@given(found=rows)
def test_rows_come_off_in_order(rule: int, found: list[Row]) -> None:
    queue = Queue(found, rule)
    for number, (count, tie, *_) in enumerate(found):
        queue.push(count, tie, number)
    assert queue.size == len(found)
    came = [found[queue.pop()[2]] for _ in found]
    assert queue.size == 0
    assert sorted(came) == sorted(found)
    keys = [order_key(row, rule) for row in came]
    assert keys == sorted(keys)  # type: ignore[type-var]


@pytest.mark.parametrize("rule", [FIRST_SEEN, LOWEST_IDS, GREATEST_BYTES])
@examples(40)
@given(found=rows.filter(bool), less=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30))
def test_a_row_that_got_worse_sinks_to_its_place(rule: int, found: list[Row], less: list[tuple[int, int]]) -> None:
    queue = Queue(found, rule)
    for number, (count, tie, *_) in enumerate(found):
        queue.push(count, tie, number)
    present = dict(enumerate(found))
    for fewer, later in less:
        number = int(queue.heap[0, 2])
        count, tie, left, right = present[number]
        present[number] = count - fewer, tie + later, left, right
        queue.resift(count - fewer, tie + later)
        assert order_key(present[int(queue.heap[0, 2])], rule) == min(  # type: ignore[type-var]
            order_key(row, rule) for row in present.values()
        )
    came = [queue.pop() for _ in found]
    keys = [order_key(present[number], rule) for _, _, number in came]
    assert keys == sorted(keys)  # type: ignore[type-var]
    assert all(present[number][:2] == (count, tie) for count, tie, number in came)


def test_greatest_bytes_agrees_with_the_reference() -> None:
    """Every pair of these tokens at the same count, two at a time."""
    distinct = TOKENS[:-1]
    pairs = [(left, right) for left in range(len(distinct)) for right in range(len(distinct))]
    for one in pairs[::3]:
        for other in pairs[1::7]:
            if distinct[one[0]] + distinct[one[1]] == distinct[other[0]] + distinct[other[1]]:
                continue
            queue = Queue([(1, 0, *one), (1, 0, *other)], GREATEST_BYTES)
            queue.push(1, 0, 0)
            queue.push(1, 0, 1)
            assert (one, other)[queue.pop()[2]] == choose_pair({one: 1, other: 1}, "greatest_bytes", distinct)


def test_counts_beyond_32_bits() -> None:
    found = [(2**31 + 5, 0, 0, 1), (2**33, 2**40, 1, 0), (2**33, 2**40 - 1, 1, 1), (7, 0, 2, 2)]
    queue = Queue(found, FIRST_SEEN)
    for number, (count, tie, *_) in enumerate(found):
        queue.push(count, tie, number)
    assert [queue.pop()[2] for _ in found] == [2, 1, 0, 3]


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=12))
def test_token_bytes_are_their_halves_joined(choices: list[tuple[int, int]]) -> None:
    tokens = [b"a", b"bc", b"\xff"]
    base_pool = np.array(bytearray(b"".join(tokens)), dtype=np.uint8)
    laid_out = module.base_token_bytes(np.array([1, 2, 1], dtype=np.int64), base_pool, len(tokens) + len(choices))
    for left, right in choices:
        left, right = left % len(tokens), right % len(tokens)
        if len(tokens[left]) + len(tokens[right]) > 5_000:
            continue
        laid_out = module.add_token_bytes(laid_out, len(tokens), left, right)
        tokens.append(tokens[left] + tokens[right])
    for index, token in enumerate(tokens):
        start = laid_out.starts[index]
        assert laid_out.pool[start : start + laid_out.lengths[index]].tobytes() == token
    assert base_pool.tobytes() == b"abc\xff"  # the caller's own bytes are left alone
