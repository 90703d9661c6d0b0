"""Keys and comparisons of pretokens: what differs is told apart, in whatever way the hash goes."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import examples
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.engine import pretoken_map as module
from tokenizer.engine.borders import WHOLE
from tokenizer.engine.cuts import NEVER
from tokenizer.engine.encode import encode_texts
from tokenizer.engine.intern import TextBytes, intern, lay_out
from tokenizer.engine.pretoken_map import FREE, home_of, is_same, key_of
from tokenizer_helpers import merge_table

MASK = 2**64 - 1


def laid_out_of(pieces: Sequence[bytes]) -> TextBytes:
    """Every piece as a document."""
    return lay_out(np.frombuffer(b"".join(pieces), dtype=np.uint8), np.cumsum([*map(len, pieces)], dtype=np.int64))


def key(piece: bytes, before: bytes = b"", after: bytes = b"") -> tuple[int, int]:
    """The two words of the key of a piece that stands between others."""
    one, two = key_of(laid_out_of([before + piece + after]).at, len(before), len(piece))
    return int(one), int(two)


def mixed(state: int, word: int) -> int:
    """One step of the hash of long pretokens."""
    product = (state ^ word) * int(module._FIRST_FACTOR) & MASK
    return product ^ (product >> 32)


def colliding(first_words: Sequence[int]) -> list[bytes]:
    """Pieces of 32 bytes that all have one hash: the second word undoes what the first one did."""
    pieces, wanted = [], None
    for first in first_words:
        state = mixed(32, first)
        wanted = state if wanted is None else wanted
        second = state ^ wanted ^ 12345
        pieces.append(b"".join(word.to_bytes(8, "little") for word in (first, second, 777, 888)))
    assert len({key(piece)[1] for piece in pieces}) == 1, "the hash has changed: make this collide again"
    return pieces


def test_interned_pieces_of_equal_key_stay_apart() -> None:
    pieces = colliding(range(100)) * 2
    laid_out = laid_out_of(pieces)
    spans = np.stack([laid_out.ends - 32, laid_out.ends], axis=1)
    interned = intern(laid_out, spans, WHOLE, keep_sequence=True)
    assert interned.sequence.tolist() == [*range(100)] * 2
    assert interned.counts.tolist() == [2] * 100


@pytest.mark.parametrize("num_threads", [1, 2])
def test_encoded_pieces_of_equal_key_stay_apart(num_threads: int) -> None:
    """So many that the map grows with all of them in one chain, each met again after that."""
    pieces = colliding(range(200)) * 2
    table = merge_table([], base_size=256, limit=0)
    ids, offsets = encode_texts(laid_out_of(pieces), table, "none", NEVER, num_threads=num_threads)
    assert ids.astype(np.uint8).tobytes() == b"".join(pieces)
    assert offsets.tolist() == [*range(0, 32 * 400 + 1, 32)]


def test_pieces_of_one_slot_stay_apart() -> None:
    """Short pieces, whose keys are unique, that begin their search in the same row of a small map."""
    same: dict[int, list[bytes]] = {}
    for number in range(40_000):
        piece = number.to_bytes(3, "little")
        one, two = key(piece)
        same.setdefault(int(home_of(np.uint64(one), np.uint64(two), module.WORDS * 2 * module.GROUP)), []).append(piece)
    pieces = max(same.values(), key=len)[:25]
    assert len(pieces) == 25
    ids, _ = encode_texts(laid_out_of(pieces * 2), merge_table([], 256, 0), "none", NEVER)
    assert ids.astype(np.uint8).tobytes() == b"".join(pieces * 2)


@examples(100)
@given(st.binary(min_size=1, max_size=40), st.binary(max_size=9), st.binary(max_size=9))
def test_a_key_depends_on_the_piece_alone(piece: bytes, before: bytes, after: bytes) -> None:
    (one, two), (same_one, same_two) = key(piece), key(piece, before, after)
    assert two == same_two != int(FREE)
    if len(piece) <= 15:
        assert one == same_one
    else:  # where it stands, and its length
        assert one == len(piece) << 34 and same_one == len(piece) << 34 | len(before)


@examples(100)
@given(st.binary(min_size=1, max_size=15), st.binary(min_size=1, max_size=20))
def test_a_short_piece_is_its_key(one: bytes, other: bytes) -> None:
    assert (key(one) == key(other)) == (one == other)  # a longer one never has the key of a short one either


@pytest.mark.parametrize("size", range(16, 42))
def test_comparison_sees_every_byte(size: int) -> None:
    for offset in (0, 3):  # aligned to words and not
        for differing in range(size):
            raw = np.full(120, 7, dtype=np.uint8)
            raw[48 + offset + differing] ^= 0x80
            at = lay_out(raw, np.array([120], dtype=np.int64)).at
            where = [np.uint64(start | size << 34) for start in (0, offset, 48 + offset)]
            assert not is_same(at, where[1], where[2])
            assert is_same(at, where[0], where[1])
            assert not is_same(at, where[0], np.uint64(size + 1 << 34))


@pytest.mark.parametrize("num_threads", [1, 2])
def test_the_map_of_an_encoder_grows(num_threads: int) -> None:
    """More distinct pretokens than it has room for at first, of one to many ids, each met again later."""
    words = [f" {number:x}{'x' * (number % 23)}" for number in range(90_000)]
    text = "".join(words + words[::7])
    x8 = "x" * 8
    tokenizer = BPETokenizer(
        BYTE_CHARACTERS, [("x", "x"), ("xx", "xx"), ("xxxx", "xxxx"), (x8, x8)], kind="byte_bpe", split_pattern="space"
    )
    ids, _ = tokenizer.encode_documents([text], num_threads=num_threads)
    assert tokenizer.decode(ids.tolist()) == text
    # Short texts are encoded without the map.
    wanted = [index for at in range(0, len(words), 60) for index in tokenizer.encode("".join(words[at : at + 60]))]
    again = [index for at in range(0, len(words), 420) for index in tokenizer.encode("".join(words[at : at + 420 : 7]))]
    assert ids.tolist() == wanted + again
