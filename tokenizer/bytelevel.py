"""Text as UTF-8 bytes: the byte tokenizer, and what byte-level BPE needs besides its merges.

Files spell a byte as one printable character in GPT-2's way, so that byte tokens are ordinary JSON strings and
agree with `vocab.bpe` and the vocabularies of other tools.
"""

import codecs
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import TokenizerError
from data.files import write_json
from tokenizer.base import Conveniences, Int64Array, fingerprint_of
from tokenizer.char import check_ids


def byte_characters() -> list[str]:
    """The printable character of every byte 0 … 255, as in GPT-2's `vocab.bpe`.

    Bytes that are printable in Latin-1 stand for themselves; the others are numbered from U+0100.

    >>> byte_characters()[ord("a")], byte_characters()[ord(" ")], byte_characters()[ord("\\n")]
    ('a', 'Ġ', 'Ċ')
    """
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    characters, unprintable = [], 0
    for byte in range(256):
        if byte in printable:
            characters.append(chr(byte))
        else:
            characters.append(chr(256 + unprintable))
            unprintable += 1
    return characters


BYTE_CHARACTERS = byte_characters()
BYTE_OF_CHARACTER = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}


def utf8(text: str) -> bytes:
    """`text` as UTF-8; raises TokenizerError with the offset of a lone surrogate, which has no UTF-8 form."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TokenizerError(
            f"lone surrogate U+{ord(text[error.start]):04X} at offset {error.start}: it has no UTF-8 form, "
            "so it is refused; remove or replace it"
        ) from error


def text_of(raw: bytes, errors: str = "strict") -> str:
    """`raw` as text; `errors` is `strict` (raises TokenizerError with the byte offset) or `replace` (U+FFFD)."""
    try:
        return raw.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise TokenizerError(
            f"the ids are not whole characters: byte 0x{raw[error.start]:02x} at offset {error.start} "
            f"({error.reason}); use decode_bytes, or errors='replace'"
        ) from error


def num_chars_begun(token: bytes) -> int:
    """Characters that begin in `token`: its bytes that are not UTF-8 continuation bytes (10xxxxxx)."""
    return sum(byte & 0b1100_0000 != 0b1000_0000 for byte in token)


class StreamingDecoder:
    """Ids -> text piece by piece; an incomplete UTF-8 tail is held back until its rest arrives."""

    def __init__(self, token_bytes: Sequence[bytes], errors: str = "strict") -> None:
        """`token_bytes` are the bytes of every id; `errors` as for `bytes.decode`."""
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors)

    def push(self, index: int) -> str:
        """The characters that id `index` completes; often one token's text, sometimes nothing yet."""
        check_ids([index], len(self._token_bytes))
        return self._decode(self._token_bytes[index], final=False)

    def finish(self) -> str:
        """What is left: nothing, or under `replace` a U+FFFD for an unfinished character."""
        return self._decode(b"", final=True)

    def _decode(self, raw: bytes, *, final: bool) -> str:
        try:
            return self._decoder.decode(raw, final)
        except UnicodeDecodeError as error:
            raise TokenizerError(f"the ids are not UTF-8: {error.reason}; use errors='replace'") from error


class ByteTokenizer(Conveniences):
    """Every UTF-8 byte is a token; ids are the byte values."""

    kind = "byte"
    vocab_size = 256

    def __init__(self, *, trained_on: dict[str, Any] | None = None) -> None:
        """`trained_on` is provenance, kept in the file."""
        self.trained_on = trained_on

    def encode(self, text: str) -> list[int]:
        """The UTF-8 bytes of `text`; raises TokenizerError for a lone surrogate."""
        return list(utf8(text))

    def encode_documents(self, texts: Sequence[str]) -> tuple[Int64Array, Int64Array]:
        """Ids of all documents and their D+1 offsets."""
        documents = [utf8(text) for text in texts]
        ids: NDArray[np.uint8] = np.frombuffer(b"".join(documents), dtype=np.uint8)
        return ids.astype(np.int64), np.cumsum([0, *map(len, documents)], dtype=np.int64)

    def decode(self, ids: Sequence[int], errors: str = "strict") -> str:
        """The text of `ids`; raises TokenizerError if they are not whole characters, unless `errors='replace'`."""
        return text_of(self.decode_bytes(ids), errors)

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """`ids` as bytes; raises TokenizerError for an id out of range."""
        check_ids(ids, self.vocab_size)
        return bytes(ids)

    def streaming_decoder(self, errors: str = "strict") -> StreamingDecoder:
        """A decoder that takes one id at a time."""
        return StreamingDecoder([bytes([byte]) for byte in range(256)], errors)

    @property
    def token_num_chars(self) -> Int64Array:
        """1 for a byte that begins a character, 0 for a continuation byte; shape (256,)."""
        return np.array([num_chars_begun(bytes([byte])) for byte in range(256)], dtype=np.int64)

    @property
    def token_num_bytes(self) -> Int64Array:
        """All ones, shape (256,)."""
        return np.ones(256, dtype=np.int64)

    def fingerprint(self) -> str:
        """Identity: the type alone."""
        return fingerprint_of({"type": "byte", "base_tokens": BYTE_CHARACTERS, "merges": []})

    def save(self, path: Path) -> None:
        """Write the tokenizer file atomically."""
        contents: dict[str, Any] = {"type": "byte", "vocab_size": 256, "fingerprint": self.fingerprint()}
        if self.trained_on is not None:
            contents["trained_on"] = self.trained_on
        write_json(path, contents)
