"""What the rest of the project knows of a tokenizer: one protocol, and how its identity is computed."""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from data.files import canonical_json

UInt8Array = NDArray[np.uint8]
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
UInt64Array = NDArray[np.uint64]

Placement = Literal["last", "first"]
"""Whether special tokens have the last ids, after the vocabulary, or the first."""


@runtime_checkable
class Tokenizer(Protocol):
    """Text <-> ids. `decode(encode(s)) == s` for every string the tokenizer can represent."""

    @property
    def kind(self) -> str:
        """`char`, `byte`, `char_bpe` or `byte_bpe`; a tokenizer from outside may have another name."""

    @property
    def vocab_size(self) -> int:
        """Number of ids; they are 0 … vocab_size - 1."""

    def encode(self, text: str) -> list[int]:
        """Ids of `text`. Raises TokenizerError for a character that has no token."""

    def encode_documents(self, texts: Sequence[str]) -> tuple[Int64Array, Int64Array]:
        """Ids of all documents, one after the other, and D+1 offsets into them: document d is ids[o[d]:o[d+1]].

        Nothing is merged across the border of two documents.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`. Raises TokenizerError for an id out of range or bytes that are not UTF-8."""

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """The UTF-8 bytes of `ids`; for byte tokenizers they need not be whole characters."""

    @property
    def token_num_chars(self) -> Int64Array:
        """Characters that begin in each token, shape (vocab_size,).

        A byte token counts its bytes that are not UTF-8 continuation bytes, so that the sum over any encoded
        text is the exact number of its characters even where a character is spread over several tokens.
        """

    @property
    def token_num_bytes(self) -> Int64Array:
        """UTF-8 bytes of each token, shape (vocab_size,)."""

    def fingerprint(self) -> str:
        """Hex sha256 of everything that decides which ids a text gets; the training's history stays out."""

    def save(self, path: Path) -> None:
        """Write the tokenizer file atomically."""


class Conveniences:
    """What every tokenizer of this project has besides the protocol."""

    def __len__(self: Tokenizer) -> int:
        """Number of ids."""
        return self.vocab_size

    def __repr__(self: Tokenizer) -> str:
        return f"<tokenizer {self.kind}, {self.vocab_size:,} tokens, {self.fingerprint()[:12]}…>"

    def encode_batch(self: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text; faster than one call for each. Raises what `encode_documents` raises."""
        ids, offsets = self.encode_documents(texts)
        return [ids[begin:end].tolist() for begin, end in pairwise(offsets.tolist())]


def prefix_of(tokenizer: Tokenizer) -> str:
    """What `tokenizer` puts before every document and takes away when it decodes: a space with SentencePiece, or "".

    It is no part of the text, so its character and byte are counted on no side.
    """
    prefix: str = getattr(tokenizer, "document_prefix", "")
    return prefix


def separator_of(tokenizer: Tokenizer) -> int | None:
    """The id that encoded splits hold before every document; None for most tokenizers.

    It stands for no text: it is never scored, and its spelling is counted on no side.
    """
    separator: int | None = getattr(tokenizer, "document_separator_id", None)
    return separator


def token_lengths(tokenizer: Tokenizer, ids: Int64Array, document_offsets: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Characters that begin in each token of `ids` (n,) and its bytes, both (n,); they add up to those of the text.

    `document_offsets` (D+1,) say where documents begin: the first token of one holds the tokenizer's prefix, which is
    not counted. A token that is the prefix alone has no character and no byte.
    """
    num_chars, num_bytes = tokenizer.token_num_chars[ids], tokenizer.token_num_bytes[ids]
    prefix = prefix_of(tokenizer)
    if prefix:
        first = document_offsets[:-1][np.diff(document_offsets) > 0]
        num_chars[first] -= len(prefix)
        num_bytes[first] -= len(prefix.encode("utf-8"))
    return num_chars, num_bytes


def fingerprint_of(identity: dict[str, Any]) -> str:
    """Hex sha256 of the canonical JSON of `identity` (design: keys in the given order, no spaces, UTF-8)."""
    return hashlib.sha256(canonical_json(identity).encode("utf-8")).hexdigest()


def groups_of(texts: Sequence[str], most_characters: int) -> Iterator[Sequence[str]]:
    """Consecutive texts of together about `most_characters`, one at least."""
    start = size = 0
    for index, text in enumerate(texts):
        if index > start and size + len(text) > most_characters:
            yield texts[start:index]
            start, size = index, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]
