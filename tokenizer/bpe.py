"""The BPE tokenizer: base tokens, learned merges, and what follows from them.

One class serves both levels. At character level a base token is a character of the corpus and a token is a
string. At byte level the base tokens are the 256 bytes, spelled as GPT-2 spells them.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from data.errors import TokenizerError
from data.files import write_json
from tokenizer import small
from tokenizer.base import Conveniences, Int64Array, Placement, fingerprint_of
from tokenizer.bytelevel import (
    BYTE_CHARACTERS,
    BYTE_OF_CHARACTER,
    StreamingDecoder,
    num_chars_begun,
    text_of,
    utf8,
)
from tokenizer.char import Alphabet, check_ids
from tokenizer.learn import learn
from tokenizer.pretokenize import SplitPattern, pretokenize
from tokenizer.reference import TieBreak
from tokenizer.stored import FILE_TYPES, StoredTokenizer, named, read_tokenizer_file
from tokenizer.vocabulary import (
    build_tokens,
    check_separator,
    check_special_tokens,
    check_target,
    chosen_special,
    merge_strings,
    refuse_special,
    split_at_special,
)

if TYPE_CHECKING:  # it brings numba, which small texts do not wait for
    from tokenizer.engine.encoder import Encoder

BPEKind = Literal["char_bpe", "byte_bpe"]
_KINDS: tuple[BPEKind, ...] = get_args(BPEKind)
_SHORT_TEXT = 2_000  # characters
_PLAIN_CHARACTERS = 10_000  # encoded in plain Python, before a tokenizer loads the engine, which takes a second


class BPETokenizer(Conveniences):
    """Encode by replaying `merges` in learned order, decode by joining."""

    def __init__(
        self,
        base_tokens: Sequence[str],
        merges: Sequence[tuple[str, str]],
        *,
        kind: BPEKind = "char_bpe",
        split_pattern: SplitPattern = "none",
        special_tokens: Sequence[str] = (),
        placement: Placement = "last",
        document_separator: str | None = None,
        tie_break: TieBreak | None = None,
        trained_on: dict[str, Any] | None = None,
    ) -> None:
        """`merges` are pairs of tokens in learned order; merge r makes the token len(base_tokens) + r.

        `special_tokens` have ids of their own, in a table of their own: one may be spelled like an ordinary token, and
        text that looks like one stays text unless `encode` is told otherwise. With `placement` last they follow the
        other tokens; with first they are 0, 1, …, and every other id is higher by their number.
        `document_separator` is the one that encoded splits hold before every document. `tie_break` and `trained_on`
        are provenance. Raises TokenizerError naming the merge or token that is wrong.
        """
        self.kind: BPEKind = kind
        self.base_tokens = list(base_tokens)
        self.merges = [(left, right) for left, right in merges]
        self.split_pattern: SplitPattern = split_pattern
        self.tie_break = tie_break
        self.trained_on = trained_on
        self._alphabet = Alphabet(self.base_tokens)
        if kind == "byte_bpe":
            if sorted(self.base_tokens) != sorted(BYTE_CHARACTERS):
                raise TokenizerError(
                    "the base tokens of a byte_bpe are the 256 bytes in GPT-2's spelling, in any order"
                )
            self._id_of_byte = self._alphabet.ids("".join(BYTE_CHARACTERS))
        self.tokens, self._pairs = build_tokens(self.base_tokens, self.merges)
        self.placement: Placement = placement
        is_first = placement == "first"
        self.special_tokens = check_special_tokens(special_tokens, 0 if is_first else len(self.tokens))
        self.document_separator = check_separator(document_separator, self.special_tokens)
        self._first_id = len(self.special_tokens) if is_first else 0  # of the tokens that are not special
        self.stoi = {token: index for index, token in enumerate(self.tokens, start=self._first_id)}
        self.itos = dict(enumerate(self.tokens, start=self._first_id))
        self._text_bytes = [self._bytes_of(token) for token in self.tokens]
        special_bytes = [utf8(token) for token in self.special_tokens]
        self.token_bytes = [*special_bytes, *self._text_bytes] if is_first else [*self._text_bytes, *special_bytes]
        self._rank_of = {(left, right): rank for rank, (left, right) in enumerate(self._pairs.tolist())}
        self._engine: Encoder | None = None
        self._num_plain_characters = 0

    @classmethod
    def train(
        cls,
        text: str,
        target_vocab_size: int,
        minimum_pair_frequency: int = 2,
        base_tokens: Sequence[str] | None = None,
        verbose: bool = True,
    ) -> "BPETokenizer":
        """Learn a character-level BPE from `text` as one document; ties go to the pair that is first seen.

        `base_tokens` default to the characters of `text`. Raises TokenizerError if the target is below them.
        """
        base = sorted(set(text)) if base_tokens is None else list(base_tokens)
        check_target(target_vocab_size, len(base))
        result = learn(
            [Alphabet(base).ids(text)],
            [token.encode("utf-8") for token in base],
            num_merges=target_vocab_size - len(base),
            min_pair_frequency=minimum_pair_frequency,
            tie_break="first_seen",
        )
        trained = cls(base, merge_strings(base, result), tie_break="first_seen")
        if verbose:
            print(f"{len(base)} base tokens + {len(result.merges)} merges = {trained.vocab_size}: {result.stop_reason}")
        return trained

    @classmethod
    def from_file(cls, path: Path | str) -> "BPETokenizer":
        """Load and check a tokenizer file; raises TokenizerError saying what is wrong and where."""
        stored = read_tokenizer_file(Path(path))
        if stored.kind not in _KINDS:
            raise TokenizerError(f"{path} holds a {stored.kind} tokenizer, not a BPE")
        with named(Path(path)):
            loaded = cls.from_stored(stored)
            stored.check(loaded)
        return loaded

    @classmethod
    def from_stored(cls, stored: StoredTokenizer) -> "BPETokenizer":
        """The BPE of a file's values; raises TokenizerError naming the merge or token that is wrong."""
        return cls(
            stored.base_tokens,
            stored.merges,
            kind="char_bpe" if stored.kind == "char_bpe" else "byte_bpe",
            split_pattern=stored.split_pattern,
            special_tokens=stored.special_tokens,
            placement=stored.placement,
            document_separator=stored.document_separator,
            tie_break=stored.tie_break,
            trained_on=stored.trained_on,
        )

    @property
    def vocab_size(self) -> int:
        """Base tokens, merges and special tokens together."""
        return len(self.tokens) + len(self.special_tokens)

    def encode(
        self,
        text: str,
        *,
        allow_special: bool = False,
        allowed_special: Literal["all"] | Collection[str] = (),
        disallowed_special: Literal["all"] | Collection[str] = (),
        limit: int | None = None,
    ) -> list[int]:
        """Ids of `text`.

        Special tokens that stand in `text` are text, unless they are among `allowed_special` (or `allow_special` is
        set, which allows all): then each becomes its id, the longest where two begin at one place. One that is among
        `disallowed_special` and not allowed is an error, as in tiktoken; there "all" is the default, here none is.
        `limit` uses only the first so many merges. Raises TokenizerError for a disallowed special token, for a name
        that is no special token, and for characters without a token.
        """
        allowed = chosen_special("all" if allow_special else allowed_special, self.special_tokens)
        refuse_special(text, chosen_special(disallowed_special, self.special_tokens) - allowed)
        if allowed:
            pieces = [piece for piece in split_at_special(text, allowed) if piece]
            special = {piece: [self.special_tokens[piece]] for piece in allowed}
            return [index for piece in pieces for index in special.get(piece) or self.encode(piece, limit=limit)]
        ids = self._encode_text(text, self._checked(limit))
        return [index + self._first_id for index in ids] if self._first_id else ids

    def _encode_text(self, text: str, limit: int) -> list[int]:
        """Tokens of `text`, numbered without the special ones."""
        if self._is_for_plain_python(len(text)):
            return self._encode_plainly([text], limit)[0]
        if len(text) > _SHORT_TEXT:
            ids: list[int] = self._encode_by_engine([text], limit, None)[0].tolist()
            return ids
        raw, pieces = utf8(text), pretokenize(text, self.split_pattern)
        lengths = map(len, pieces) if len(raw) == len(text) else (len(piece.encode("utf-8")) for piece in pieces)
        short: list[int] = self._encoder().short(raw, list(lengths), limit).tolist()
        if not short and text:
            self._alphabet.ids(text)  # raises, naming what has no token
        return short

    def _is_for_plain_python(self, num_chars: int) -> bool:
        """Whether the next text, of `num_chars`, is answered without the engine."""
        self._num_plain_characters += num_chars
        return self._engine is None and self._num_plain_characters <= _PLAIN_CHARACTERS

    def _encode_plainly(self, texts: Sequence[str], limit: int) -> list[list[int]]:
        pieces = (pretokenize(text, self.split_pattern) for text in texts)
        try:
            return small.encode_texts(pieces, self._symbols, self._rank_of, len(self.base_tokens), limit)
        except TokenizerError:
            self._name_unknown(texts)
            raise

    def _symbols(self, piece: str) -> list[int]:
        """Base ids of `piece`. Raises TokenizerError for what has none."""
        of_bytes = self.kind == "byte_bpe"
        ids: list[int] = (self._id_of_byte[list(utf8(piece))] if of_bytes else self._alphabet.ids(piece)).tolist()
        return ids

    def _encoder(self) -> "Encoder":
        """The engine's side of this tokenizer, loaded at its first use."""
        if self._engine is None:
            from tokenizer.engine.encoder import Encoder

            is_bytes = self.kind == "byte_bpe"
            self._engine = Encoder(
                self._pairs,
                self._id_of_byte if is_bytes else self._alphabet.id_of_code,
                self._text_bytes,
                is_bytes=is_bytes,
                base_size=len(self.base_tokens),
                split_pattern=self.split_pattern,
            )
        return self._engine

    def encode_tokens(self, text: str) -> list[str]:
        """The tokens of `text` as strings; at byte level in GPT-2's spelling."""
        return [self.itos[index] for index in self.encode(text)]

    def encode_documents(
        self, texts: Sequence[str], *, limit: int | None = None, num_threads: int | None = None
    ) -> tuple[Int64Array, Int64Array]:
        """Ids of all documents and their D+1 offsets; `limit` uses only the first so many merges.

        Raises TokenizerError for a character without a token, with its offset in all of the texts together.
        """
        limit = self._checked(limit)
        if self._is_for_plain_python(sum(map(len, texts))):
            encoded = self._encode_plainly(texts, limit)
            offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
            ids = np.array([index for document in encoded for index in document], dtype=np.int64)
        else:
            ids, offsets = self._encode_by_engine(texts, limit, num_threads)
        if self._first_id:
            ids += self._first_id
        return ids, offsets

    def _encode_by_engine(
        self, texts: Sequence[str], limit: int, num_threads: int | None
    ) -> tuple[Int64Array, Int64Array]:
        try:
            return self._encoder().documents(texts, limit, num_threads=num_threads)
        except TokenizerError:  # raised again below, with every character at its offset in all of the texts
            self._name_unknown(texts)
            raise

    def _name_unknown(self, texts: Sequence[str]) -> None:
        """Raise TokenizerError for characters of `texts` without a token, with their offsets in all of them."""
        whole = "".join(texts)
        utf8(whole)
        if self.kind == "char_bpe":
            self._alphabet.ids(whole)

    def _checked(self, limit: int | None) -> int:
        """How many merges are used; all of them where `limit` is None or larger."""
        limit = len(self.merges) if limit is None else min(limit, len(self.merges))
        if limit < 0:
            raise TokenizerError(f"limit is a number of merges, 0 or more; found {limit}")
        return limit

    def decode(self, ids: Sequence[int], errors: str = "strict") -> str:
        """The text of `ids`. Raises TokenizerError for an id out of range and, at byte level, for ids that are not
        whole characters, unless `errors='replace'`."""
        return text_of(self.decode_bytes(ids), errors)

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """The UTF-8 bytes of `ids`; raises TokenizerError for an id out of range."""
        check_ids(ids, self.vocab_size)
        return b"".join([self.token_bytes[index] for index in ids])

    def streaming_decoder(self, errors: str = "strict") -> StreamingDecoder:
        """A decoder that takes one id at a time and holds back an incomplete character."""
        return StreamingDecoder(self.token_bytes, errors)

    def _bytes_of(self, token: str) -> bytes:
        if self.kind == "byte_bpe":
            return bytes(BYTE_OF_CHARACTER[character] for character in token)
        return token.encode("utf-8")

    @property
    def token_num_chars(self) -> Int64Array:
        """Characters that begin in each token, shape (vocab_size,)."""
        return np.array([num_chars_begun(token) for token in self.token_bytes], dtype=np.int64)

    @property
    def token_num_bytes(self) -> Int64Array:
        """UTF-8 bytes of each token, shape (vocab_size,)."""
        return np.array([len(token) for token in self.token_bytes], dtype=np.int64)

    @property
    def document_separator_id(self) -> int | None:
        """The id that encoded splits hold before every document; None without one."""
        return None if self.document_separator is None else self.special_tokens[self.document_separator]

    def fingerprint(self) -> str:
        """Hex sha256 of base tokens and merges, and of what else decides the ids where it is not the default."""
        identity: dict[str, Any] = {"base_tokens": self.base_tokens, "merges": [list(pair) for pair in self.merges]}
        if self.kind != "char_bpe":
            identity["type"] = FILE_TYPES[self.kind]
        if self.split_pattern != "none":
            identity["split_pattern"] = self.split_pattern
        if self.special_tokens:
            identity["special_tokens"] = list(self.special_tokens)
        return fingerprint_of(identity | self._options())

    def _options(self) -> dict[str, str]:
        """What else decides the ids of encoded splits, where it is not the default."""
        options: dict[str, str] = {} if self.placement == "last" else {"placement": self.placement}
        if self.document_separator is not None:
            options["document_separator"] = self.document_separator
        return options

    def save(self, path: Path) -> None:
        """Write the tokenizer file atomically; the same tokenizer always gives the same bytes."""
        contents: dict[str, Any] = {
            "type": FILE_TYPES[self.kind],
            "base_tokens": self.base_tokens,
            "merges": [list(pair) for pair in self.merges],
            "vocab_size": self.vocab_size,
            "fingerprint": self.fingerprint(),
            "split_pattern": self.split_pattern,
            "special_tokens": list(self.special_tokens),
        } | self._options()
        if self.tie_break is not None:
            contents["tie_break"] = self.tie_break
        if self.trained_on is not None:
            contents["trained_on"] = self.trained_on
        write_json(path, contents)
