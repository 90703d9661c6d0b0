"""Ranks of tiktoken as a contestant: a file with one `base64 rank` a line, and the pattern that cuts a text."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import regex

from data.errors import TokenizerError
from tokenizer.foreign.libraries import library
from tokenizer.foreign.pieces import MOST_VOCABULARY, ForeignTokenizer


class TiktokenTokenizer(ForeignTokenizer):
    """Every text is ordinary text: what is spelled like a special token is cut as the rest is (`encode_ordinary`)."""

    kind = "tiktoken"

    def _load(self, name: str) -> list[bytes]:
        tiktoken = library("tiktoken")
        ranks = read_ranks(self.source, name)
        pattern = self.options.get("pattern")
        check_pattern(pattern, name)
        try:
            self._library = tiktoken.Encoding("contestant", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        except ValueError as error:
            raise TokenizerError(f"{name}: tiktoken cannot use the pattern {pattern!r}: {error}") from error
        pieces = [b""] * (max(ranks.values()) + 1)
        for token, rank in ranks.items():
            pieces[rank] = token
        return pieces

    def _encode_group(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._library.encode_ordinary(text) for text in texts]


def check_pattern(pattern: Any, name: str) -> None:
    """Raise TokenizerError for a pattern that is none."""
    if not isinstance(pattern, str) or not pattern:
        raise TokenizerError(f"{name}: pattern {pattern!r} is no pattern")
    try:
        regex.compile(pattern)
    except regex.error as error:
        raise TokenizerError(f"{name}: the pattern {pattern!r} is wrong: {error}") from error


def read_ranks(source: bytes, name: str) -> dict[bytes, int]:
    """The bytes of every token -> its rank. Raises TokenizerError naming the line that is wrong."""
    ranks: dict[bytes, int] = {}
    seen: set[int] = set()
    for number, line in enumerate(source.split(b"\n"), start=1):
        if not line.strip():
            continue
        parts = line.split()
        try:
            if len(parts) != 2 or not parts[1].isdigit() or len(parts[1]) > 9:
                raise ValueError("it is not `base64 rank`")
            token, rank = base64.b64decode(parts[0], validate=True), int(parts[1])
        except (ValueError, binascii.Error) as error:
            shown = line[:60].decode("utf-8", "backslashreplace")
            raise TokenizerError(
                f"{name}: line {number} is {shown!r}, no token and rank of tiktoken: {error}"
            ) from error
        if rank >= MOST_VOCABULARY:
            raise TokenizerError(f"{name}: line {number} has rank {rank:,}; ranks are below {MOST_VOCABULARY:,}")
        if not token or token in ranks or rank in seen:
            raise TokenizerError(f"{name}: line {number} has an empty token, or a token or rank that stands twice")
        ranks[token] = rank
        seen.add(rank)
    missing = next((byte for byte in range(256) if bytes([byte]) not in ranks), None)
    if missing is not None:
        raise TokenizerError(f"{name} has no token for the byte 0x{missing:02x}; it is cut short, or of another format")
    return ranks


def ranks_file(ranks: dict[bytes, int]) -> bytes:
    """`ranks` as tiktoken writes them, in the order of the ranks."""
    ordered = sorted(ranks.items(), key=lambda item: item[1])
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ordered)
