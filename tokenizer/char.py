"""One token for every character: the simplest tokenizer, and the alphabet on which character BPE stands."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import TokenizerError
from data.files import write_json
from tokenizer.base import Conveniences, Int64Array, fingerprint_of


def alphabet_of(texts: Iterable[str]) -> list[str]:
    """The distinct characters of `texts`, by code point; a newline is always among them.

    The model reads a newline before every document, so each character tokenizer must know it.
    """
    return sorted(set().union("\n", *texts))


class Alphabet:
    """Characters <-> ids, vectorised over code points. Shared by the character-level tokenizers."""

    def __init__(self, characters: Sequence[str]) -> None:
        """`characters` are distinct single characters; their order gives the ids. Raises TokenizerError."""
        for index, character in enumerate(characters):
            if not isinstance(character, str) or len(character) != 1:
                raise TokenizerError(f"base token {index} is {character!r}, not a single character")
            if "\ud800" <= character <= "\udfff":
                raise TokenizerError(
                    f"base token {index} is the lone surrogate U+{ord(character):04X}, which cannot be written as UTF-8"
                )
        codes = np.array([ord(character) for character in characters], dtype=np.int64)
        if len(np.unique(codes)) != len(codes):
            repeated = next(c for i, c in enumerate(characters) if c in characters[:i])
            raise TokenizerError(f"base token {repeated!r} stands twice in the alphabet")
        # Shape (highest code point + 1,): the id of a code point, -1 where there is none.
        self.id_of_code = np.full(int(codes.max(initial=0)) + 1, -1, dtype=np.int32)
        self.id_of_code[codes] = np.arange(len(codes), dtype=np.int32)

    def ids(self, text: str) -> NDArray[np.int32]:
        """The id of every character of `text`, shape (characters,).

        Raises TokenizerError naming each unknown character, its code point and its first offset.
        """
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        if len(codes) == 0 or codes.max() < len(self.id_of_code):
            ids: NDArray[np.int32] = self.id_of_code[codes]
        else:
            known = codes < len(self.id_of_code)
            ids = np.where(known, self.id_of_code[np.where(known, codes, 0)], np.int32(-1))
        if len(ids) and ids.min() < 0:
            unknown, first = np.unique(codes[ids < 0], return_index=True)
            offsets = np.flatnonzero(ids < 0)[first]
            named = "; ".join(
                f"{chr(code)!r} (U+{code:04X}) first at offset {offset}"
                for offset, code in sorted(zip(offsets.tolist(), unknown.tolist(), strict=True))
            )
            noun = "character has" if len(unknown) == 1 else "characters have"
            raise TokenizerError(
                f"{len(unknown)} {noun} no token: {named}; train the tokenizer on text that holds them, "
                "or use a byte kind"
            )
        return ids


class CharTokenizer(Conveniences):
    """Every character is a token."""

    kind = "char"

    def __init__(self, base_tokens: Sequence[str], *, trained_on: dict[str, Any] | None = None) -> None:
        """`base_tokens` in id order; `trained_on` is provenance, kept in the file. Raises TokenizerError."""
        self._alphabet = Alphabet(base_tokens)
        self.base_tokens = list(base_tokens)
        self.trained_on = trained_on
        self.tokens = self.base_tokens
        self.stoi = {token: index for index, token in enumerate(self.tokens)}
        self.itos = dict(enumerate(self.tokens))

    @property
    def vocab_size(self) -> int:
        """Number of characters."""
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        """One id for each character; raises TokenizerError naming every unknown one."""
        ids: list[int] = self._alphabet.ids(text).tolist()
        return ids

    def encode_documents(self, texts: Sequence[str]) -> tuple[Int64Array, Int64Array]:
        """Ids of all documents and their D+1 offsets."""
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return self._alphabet.ids("".join(texts)).astype(np.int64), offsets

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`; raises TokenizerError for an id out of range."""
        check_ids(ids, self.vocab_size)
        return "".join([self.tokens[index] for index in ids])

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """UTF-8 of `decode(ids)`."""
        return self.decode(ids).encode("utf-8")

    @property
    def token_num_chars(self) -> Int64Array:
        """All ones, shape (vocab_size,)."""
        return np.ones(self.vocab_size, dtype=np.int64)

    @property
    def token_num_bytes(self) -> Int64Array:
        """UTF-8 bytes of each character, shape (vocab_size,)."""
        return np.array([len(token.encode("utf-8")) for token in self.tokens], dtype=np.int64)

    def fingerprint(self) -> str:
        """Identity: the alphabet in order; the same as a character BPE without merges."""
        return fingerprint_of({"base_tokens": self.base_tokens, "merges": []})

    def save(self, path: Path) -> None:
        """Write the tokenizer file atomically."""
        contents: dict[str, Any] = {
            "type": "character",
            "base_tokens": self.base_tokens,
            "vocab_size": self.vocab_size,
            "fingerprint": self.fingerprint(),
        }
        if self.trained_on is not None:
            contents["trained_on"] = self.trained_on
        write_json(path, contents)


def check_ids(ids: Sequence[int], vocab_size: int) -> None:
    """Raise TokenizerError for the first id outside 0 … vocab_size - 1."""
    if len(ids) and not (min(ids) >= 0 and max(ids) < vocab_size):
        position, found = next((p, i) for p, i in enumerate(ids) if not 0 <= i < vocab_size)
        raise TokenizerError(f"id {found} at position {position} is outside the vocabulary of {vocab_size}")
