"""Reading a file straight into the kernels' layout: the UTF-8 check equals Python's own."""

import random
from pathlib import Path

import numpy as np
import pytest

from data.errors import DataError
from tokenizer.counts import count_pretokens, first_invalid, read_text_bytes
from tokenizer.intern import lay_out

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
    laid_out = lay_out(np.frombuffer(raw, dtype=np.uint8), np.array([len(raw)]))
    return int(first_invalid(laid_out.text, laid_out.at, len(raw)))


def test_the_check_equals_pythons() -> None:
    rng = random.Random(3)
    num_invalid = 0
    for _ in range(20_000):
        raw = b"".join(rng.choices(PIECES, k=rng.randint(0, 6)))
        try:
            raw.decode("utf-8")
            wanted = len(raw)
        except UnicodeDecodeError as error:
            wanted = error.start
            num_invalid += 1
        assert invalid_at(raw) == wanted, raw
    assert 5_000 < num_invalid < 19_000  # both outcomes were tried


def test_a_file_counts_as_its_text(tmp_path: Path) -> None:
    text = "The cat's 12 naïve cats\n\n  sat 中文 🙂 .\r\n" * 50
    (tmp_path / "text.txt").write_bytes(text.encode("utf-8"))
    from_file = count_pretokens(read_text_bytes(tmp_path / "text.txt"), "gpt2")
    from_text = count_pretokens([text], "gpt2")
    assert from_file.pretokens() == from_text.pretokens()
    assert from_file.counts.tolist() == from_text.counts.tolist()
    assert from_file.first_seen.tolist() == from_text.first_seen.tolist()


def test_an_empty_file_has_no_pretokens(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    assert count_pretokens(read_text_bytes(tmp_path / "empty.txt"), "gpt4").pretokens() == []


def test_invalid_bytes_are_named_with_file_and_offset(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"fine so far \xe4\xb8 not")
    with pytest.raises(DataError, match=r"bad\.txt is not valid UTF-8 at byte 12 \(0xe4\)"):
        read_text_bytes(tmp_path / "bad.txt")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        read_text_bytes(tmp_path / "none.txt")
