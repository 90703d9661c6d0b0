"""Counting a file block by block: equal to counting its text; the UTF-8 check equals Python's own."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import DataError
from tokenizer.counts import PretokenCounts, count_pretokens
from tokenizer.counts_file import count_file, first_invalid
from tokenizer.intern import lay_out
from tokenizer.pretokenize import SplitPattern
from tokenizer_helpers import LOSSLESS_TEXTS, assert_same_counts

SCANNED: list[SplitPattern] = ["space", "gpt2", "gpt4"]
PIECES = [
    b"a",
    b"abcdefgh",
    b"\x00",
    "é".encode(),
    "中".encode(),
    "🙂".encode(),
    "\U0010ffff".encode(),
    b"\xed\x9f\xbf",  # the last code point before the surrogates
    b"\xed\xa0\x80",  # a surrogate
    b"\xf4\x90\x80\x80",  # beyond Unicode
    b"\xe0\x80\x80",  # longer than need be
    b"\xc0\x80",
    b"\x80",
    b"\xff",
    b"\xe4\xb8",  # cut short
]


def invalid_at(raw: bytes) -> int:
    """Where Python says that `raw` is not UTF-8, or its length."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return len(raw)


def check_utf8(raw: bytes) -> None:
    laid_out = lay_out(np.frombuffer(raw, dtype=np.uint8), np.array([len(raw)], dtype=np.int64))
    assert first_invalid(laid_out.text, laid_out.at, len(raw)) == invalid_at(raw)


# The first and the last byte of every kind in the Unicode standard's table of well-formed sequences.
EDGES = bytes.fromhex("00 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")


def test_validity_of_every_short_sequence_of_edge_bytes() -> None:
    for first in EDGES:
        for second in EDGES:
            for third in EDGES:
                check_utf8(bytes([first, second, third]))
                for fourth in EDGES[3:10]:
                    check_utf8(bytes([first, second, third, fourth]))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=9).map(str.encode), st.binary(max_size=3), st.sampled_from([b"eight by", b"x" * 17])
        ),
        max_size=8,
    ).map(b"".join)
)
def test_validity_of_any_bytes(raw: bytes) -> None:
    check_utf8(raw)


def test_the_check_equals_pythons() -> None:
    rng = random.Random(3)
    num_invalid = 0
    for _ in range(20_000):
        raw = b"".join(rng.choices(PIECES, k=rng.randint(0, 6)))
        check_utf8(raw)
        num_invalid += invalid_at(raw) < len(raw)
    assert 5_000 < num_invalid < 19_000  # both outcomes were tried


def counted(tmp_path: Path, text: str, pattern: SplitPattern, block_bytes: int) -> PretokenCounts:
    path = tmp_path / "text.txt"
    path.write_bytes(text.encode())
    return count_file(path, pattern, block_bytes=block_bytes)


@pytest.mark.parametrize("pattern", SCANNED)
@pytest.mark.parametrize("name", LOSSLESS_TEXTS)
def test_a_file_counts_as_its_text(name: str, pattern: SplitPattern, tmp_path: Path) -> None:
    text = LOSSLESS_TEXTS[name]
    for block_bytes in (1, 7, 64, 1 << 20):
        assert_same_counts(counted(tmp_path, text, pattern, block_bytes), count_pretokens([text], pattern))


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(st.sampled_from("ab' 1\n\r\u00a0\u4e2d.")),
    pattern=st.sampled_from(SCANNED),
    block_bytes=st.integers(1, 40),
)
def test_blocks_of_any_size_change_nothing(
    text: str, pattern: SplitPattern, block_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = counted(tmp_path_factory.mktemp("blocks"), text, pattern, block_bytes)
    assert_same_counts(found, count_pretokens([text], pattern))


def test_a_line_longer_than_many_blocks_is_one_piece(tmp_path: Path) -> None:
    text = "x " + "y" * 5000 + " z" + " " * 3000
    for pattern in SCANNED:
        assert_same_counts(counted(tmp_path, text, pattern, 16), count_pretokens([text], pattern))


def test_an_empty_file_has_no_pretokens(tmp_path: Path) -> None:
    assert_same_counts(counted(tmp_path, "", "gpt4", 16), count_pretokens([], "gpt4"))


@pytest.mark.parametrize("block_bytes", [4, 1 << 20])
@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"abc \xff", r"not valid UTF-8 at byte 4 \(0xff\)"),
        (b"fine so far \xe4\xb8 not", r"not valid UTF-8 at byte 12 \(0xe4\)"),
        ("caf\u00e9".encode()[:-1], r"not valid UTF-8 at byte 3 \(0xc3\)"),
        (b"long enough for whole words \xed\xa0\x80", r"not valid UTF-8 at byte 28 \(0xed\)"),
        ("abc".encode("utf-16"), r"not valid UTF-8 at byte 0 \(0xff\)"),
        (None, "cannot read"),
    ],
)
def test_files_that_are_no_text(raw: bytes | None, said: str, block_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(DataError, match=said) as raised:
        count_file(path, "gpt2", block_bytes=block_bytes)
    assert str(path) in str(raised.value)
