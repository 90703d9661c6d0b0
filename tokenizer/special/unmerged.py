"""Characters or bytes with special tokens: a BPE without merges gives the ids, under the simpler kind's name."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from data.files import write_json
from tokenizer.base import Conveniences, Int64Array, Placement
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, StreamingDecoder
from tokenizer.stored import FILE_TYPES


class UnmergedTokenizer(Conveniences):
    """Every character or byte is a token, and special tokens stand before or behind them."""

    def __init__(
        self,
        kind: Literal["char", "byte"],
        base_tokens: Sequence[str],
        *,
        special_tokens: Sequence[str],
        placement: Placement = "last",
        document_separator: str | None = None,
        trained_on: dict[str, Any] | None = None,
    ) -> None:
        """`base_tokens` are the characters in id order; bytes need none. Raises TokenizerError for wrong tokens."""
        self.kind = kind
        self.bpe = BPETokenizer(
            base_tokens if kind == "char" else BYTE_CHARACTERS,
            [],
            kind="char_bpe" if kind == "char" else "byte_bpe",
            special_tokens=special_tokens,
            placement=placement,
            document_separator=document_separator,
            trained_on=trained_on,
        )
        self.trained_on = trained_on
        self.special_tokens = self.bpe.special_tokens
        self.document_separator = document_separator
        self.document_separator_id = self.bpe.document_separator_id

    @property
    def vocab_size(self) -> int:
        """Characters or bytes, and special tokens."""
        return self.bpe.vocab_size

    def encode(
        self,
        text: str,
        *,
        allow_special: bool = False,
        allowed_special: Literal["all"] | Collection[str] = (),
        disallowed_special: Literal["all"] | Collection[str] = (),
    ) -> list[int]:
        """Ids of `text`; see `BPETokenizer.encode`."""
        return self.bpe.encode(
            text,
            allow_special=allow_special,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
        )

    def encode_documents(self, texts: Sequence[str]) -> tuple[Int64Array, Int64Array]:
        """Ids of all documents and their D+1 offsets."""
        return self.bpe.encode_documents(texts)

    def decode(self, ids: Sequence[int], errors: str = "strict") -> str:
        """The text of `ids`; see `BPETokenizer.decode`."""
        return self.bpe.decode(ids, errors)

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """The UTF-8 bytes of `ids`; raises TokenizerError for an id out of range."""
        return self.bpe.decode_bytes(ids)

    def streaming_decoder(self, errors: str = "strict") -> StreamingDecoder:
        """A decoder that takes one id at a time and holds back an incomplete character."""
        return self.bpe.streaming_decoder(errors)

    @property
    def token_num_chars(self) -> Int64Array:
        """Characters that begin in each token, shape (vocab_size,)."""
        return self.bpe.token_num_chars

    @property
    def token_num_bytes(self) -> Int64Array:
        """UTF-8 bytes of each token, shape (vocab_size,)."""
        return self.bpe.token_num_bytes

    def fingerprint(self) -> str:
        """Identity: that of the BPE without merges, which gives the same ids."""
        return self.bpe.fingerprint()

    def save(self, path: Path) -> None:
        """Write the tokenizer file atomically."""
        contents: dict[str, Any] = {"type": FILE_TYPES[self.kind]}
        if self.kind == "char":
            contents["base_tokens"] = self.bpe.base_tokens
        contents |= {"vocab_size": self.vocab_size, "fingerprint": self.fingerprint()}
        contents |= {"special_tokens": list(self.special_tokens), "placement": self.bpe.placement}
        if self.document_separator is not None:
            contents["document_separator"] = self.document_separator
        if self.trained_on is not None:
            contents["trained_on"] = self.trained_on
        write_json(path, contents)
