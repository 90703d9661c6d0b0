"""A tokenizer of another tool behind the `Tokenizer` protocol.

Its library makes the ids. What the ids stand for is one table, the bytes of every id: joined, they must be the text.
That is proven for every document before anything is trained on it, so characters and bytes are counted from the table.
One thing is no text: the space that SentencePiece and its kin put before every document. It is `document_prefix`.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from data.errors import TokenizerError
from data.files import write_json
from tokenizer.base import Conveniences, Int64Array, fingerprint_of, groups_of
from tokenizer.bytelevel import num_chars_begun, text_of, utf8
from tokenizer.char import check_ids
from tokenizer.foreign.libraries import LIBRARY_OF, version_of

MOST_VOCABULARY = 2_000_000
"""Ids above this are refused: the largest vocabularies in use have about 260,000."""
_PROBES = ("a", "0", ".", "\n")
_GROUP_CHARACTERS = 1 << 21  # characters that a library encodes in one call


class ForeignTokenizer(Conveniences):
    """The parts that all libraries share; a subclass says how ids are made and what they stand for."""

    kind: ClassVar[str]

    def __init__(
        self,
        source: bytes,
        options: Mapping[str, Any] | None = None,
        *,
        name: str,
        trained_on: dict[str, Any] | None = None,
    ) -> None:
        """`source` is the tool's own file, `options` what else decides the ids, `name` the file for messages.

        `trained_on` is provenance. Raises LibraryError for a missing library and
        TokenizerError for a file that is not whole.
        """
        self.source = source
        self.options = dict(options or {})
        self.trained_on = trained_on
        self.special_tokens: dict[str, int] = {}
        """Ids that stand for no text and that no text gets."""
        self.library = version_of(LIBRARY_OF[self.kind])
        self.token_bytes = self._load(name)
        if not 0 < len(self.token_bytes) <= MOST_VOCABULARY:
            raise TokenizerError(
                f"{name} has ids up to {len(self.token_bytes) - 1:,}; from 1 to {MOST_VOCABULARY:,} ids can be used"
            )
        self.document_prefix = self._prefix()

    def _load(self, name: str) -> list[bytes]:
        """Prepare the library and give the bytes of every id, in the order of the ids."""
        raise NotImplementedError

    def _encode_group(self, texts: Sequence[str]) -> list[list[int]]:
        """The library's ids of every text, none of which has a lone surrogate."""
        raise NotImplementedError

    def _prefix(self) -> str:
        """The space that stands before every document, or nothing: found by encoding a text of one character."""
        for probe in _PROBES:
            raw = b"".join(self.token_bytes[index] for index in self.encode(probe))
            if raw.endswith(probe.encode()):
                return " " if raw == b" " + probe.encode() else ""
        return ""

    @property
    def vocab_size(self) -> int:
        """The highest id and one more; ids that the file leaves out count."""
        return len(self.token_bytes)

    def encode(self, text: str) -> list[int]:
        """The library's ids of `text` as a document of its own; raises TokenizerError for a lone surrogate."""
        utf8(text)
        return self._encode_group([text])[0]

    def encode_documents(self, texts: Sequence[str]) -> tuple[Int64Array, Int64Array]:
        """Ids of all documents and their D+1 offsets."""
        found: list[Int64Array] = []
        for group in groups_of(texts, _GROUP_CHARACTERS):
            for text in group:
                utf8(text)
            found += [np.array(ids, dtype=np.int64) for ids in self._encode_group(group)]
        offsets = np.cumsum([0, *map(len, found)], dtype=np.int64)
        return np.concatenate([np.zeros(0, dtype=np.int64), *found]), offsets

    def decode(self, ids: Sequence[int], errors: str = "strict") -> str:
        """The text of the document `ids`, without the space before it; raises TokenizerError for other ids."""
        return text_of(self.decode_bytes(ids).removeprefix(self.document_prefix.encode()), errors)

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """The bytes of `ids` as they stand inside a text; raises TokenizerError for an id out of range."""
        check_ids(ids, self.vocab_size)
        return b"".join([self.token_bytes[index] for index in ids])

    @property
    def token_num_chars(self) -> Int64Array:
        """Characters that begin in each token, shape (vocab_size,); see `tokenizer.base.token_lengths`."""
        return np.array([num_chars_begun(token) for token in self.token_bytes], dtype=np.int64)

    @property
    def token_num_bytes(self) -> Int64Array:
        """UTF-8 bytes of each token, shape (vocab_size,); see `tokenizer.base.token_lengths`."""
        return np.array([len(token) for token in self.token_bytes], dtype=np.int64)

    def fingerprint(self) -> str:
        """Identity: the hash of the file, the options, and the library with its version."""
        digest = hashlib.sha256(self.source).hexdigest()
        return fingerprint_of(
            {"type": self.kind, "source_sha256": digest, "options": self.options, "library": self.library}
        )

    def save(self, path: Path) -> None:
        """Write the tokenizer file atomically; it holds the tool's own file, so that it can be copied alone."""
        contents: dict[str, Any] = {
            "type": self.kind,
            "library": self.library,
            "options": self.options,
            "source_base64": base64.b64encode(self.source).decode("ascii"),
            "vocab_size": self.vocab_size,
            "fingerprint": self.fingerprint(),
        }
        if self.trained_on is not None:
            contents["trained_on"] = self.trained_on
        write_json(path, contents)


def source_of(written: Any) -> bytes:
    """The tool's own file out of ours; raises TokenizerError."""
    try:
        return base64.b64decode(written, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise TokenizerError(f"source_base64 is damaged: {error}") from error
