"""What the rest of the project knows of a tokenizer: one protocol, and how its identity is computed."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from data.files import canonical_json

UInt8Array = NDArray[np.uint8]
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
UInt64Array = NDArray[np.uint64]


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


def fingerprint_of(identity: dict[str, Any]) -> str:
    """Hex sha256 of the canonical JSON of `identity` (design: keys in the given order, no spaces, UTF-8)."""
    return hashlib.sha256(canonical_json(identity).encode("utf-8")).hexdigest()
