"""The settings of one contestant's tokenizer, checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from data.config import require
from data.numbers import COUNT, NullAs, Range, check_ranges
from tokenizer.base import Placement
from tokenizer.pretokenize import SplitPattern
from tokenizer.reference import TieBreak

Kind = Literal[
    "char",
    "byte",
    "char_bpe",
    "byte_bpe",
    "hf",
    "tiktoken",
    "sentencepiece",
    "gpt2",
    "hf_bpe",
    "hf_wordpiece",
    "spm_bpe",
    "spm_unigram",
]
BPE_KINDS = ("char_bpe", "byte_bpe")
"""Trained by this program."""
TRAINED_OUTSIDE = ("hf_bpe", "hf_wordpiece", "spm_bpe", "spm_unigram")
"""Trained here by another library."""
FROM_FILES: Mapping[str, tuple[str, ...]] = {
    "hf": ("path",),
    "tiktoken": ("path", "name", "pattern"),
    "sentencepiece": ("path",),
    "gpt2": ("vocab", "merges"),
}
"""Kind that is read from files of other tools -> the keys that it takes."""
_FILE_KEYS = ("path", "name", "pattern", "vocab", "merges")
_PATTERN_KINDS = (*BPE_KINDS, "hf_bpe", "hf_wordpiece")


@dataclass(frozen=True)
class TokenizerConfig:
    """How one contestant's tokenizer is made, or where it comes from."""

    kind: Kind
    """`char`: one token for each character of all splits. `byte`: the 256 bytes. `char_bpe`: BPE over those characters.
    `byte_bpe`: BPE over the 256 bytes. `hf`, `tiktoken`, `sentencepiece` and `gpt2` read files of other tools.
    `hf_bpe` and `hf_wordpiece` are trained by the tokenizers library over the 256 bytes, `spm_bpe` and `spm_unigram` by
    SentencePiece over characters, with bytes for those that it does not keep."""
    vocab_size: Annotated[int | None, Range(1, 10**8)] = None
    """Number of tokens at which training stops, base and special tokens included. The kinds that are trained need it,
    and the other kinds do not take it."""
    training_characters: Annotated[int | None, COUNT, NullAs(("all",))] = 500_000
    """Kinds that are trained: they learn from this many characters at the start of train. `all` or null: all of
    train."""
    min_pair_frequency: Annotated[int, COUNT] = 2
    """`char_bpe`, `byte_bpe`, `hf_bpe`, `hf_wordpiece`: training stops when the most frequent pair occurs fewer times
    than this."""
    split_pattern: SplitPattern = "none"
    """`char_bpe`, `byte_bpe`, `hf_bpe`, `hf_wordpiece`: the pattern that cuts documents into pretokens. No merge
    reaches across the border of a pretoken. SentencePiece has a rule of its own: a space begins a new token."""
    tie_break: TieBreak | None = None
    """`char_bpe` and `byte_bpe`: which of two equally frequent pairs is merged. null: `first_seen` for `char_bpe`,
    `lowest_ids` for `byte_bpe`."""
    special_tokens: tuple[str, ...] = ()
    """`char`, `byte`, `char_bpe` and `byte_bpe`: tokens with ids of their own. A text that merely contains one is
    encoded as plain text, unless the caller allows special tokens."""
    placement: Placement = "last"
    """Whether special tokens have the last ids, after the vocabulary, or the first: 0, 1, …"""
    document_separator: str | None = None
    """One of special_tokens that encoded splits hold before every document. Training learns to read it as the start of
    a document; scoring gives it as context and counts it nowhere. null: no separator, and documents are scored as if
    they followed a newline."""
    path: str | None = None
    """`hf`: a `tokenizer.json`. `sentencepiece`: a model file. `tiktoken`: a file with one `base64 rank` a line.
    Relative to the working directory.
    """
    name: str | None = None
    """`tiktoken`: the name of an encoding that the library knows, such as `cl100k_base`, instead of path and pattern.
    The library may download it.
    """
    pattern: str | None = None
    """`tiktoken` with path: the pattern that cuts a text, as a regular expression, or `gpt2` or `gpt4`."""
    vocab: str | None = None
    """`gpt2`: the file with token and id, `encoder.json`."""
    merges: str | None = None
    """`gpt2`: the file with the merges, `vocab.bpe`."""

    def __post_init__(self) -> None:
        check_ranges(self)
        self._check_files()
        if self.kind not in _PATTERN_KINDS:
            why = f"a {self.kind} tokenizer has nothing to split" if self.kind in ("char", "byte") else "not offered"
            require(self.split_pattern == "none", f"split_pattern: {why}")
        if self.kind not in (*BPE_KINDS, "char", "byte"):
            require(not self.special_tokens, f"special_tokens: not offered for kind {self.kind}")
            require(self.tie_break is None, f"tie_break: {self.kind} has its own rule")
        require(
            self.placement == "last" or bool(self.special_tokens), "placement: there are no special_tokens to place"
        )
        require(
            self.document_separator is None or self.document_separator in self.special_tokens,
            f"document_separator: {self.document_separator!r} is not among special_tokens",
        )
        if self.is_trained:
            require(self.vocab_size is not None, f"vocab_size is missing; kind {self.kind} needs one")
        else:
            has = "the size of its file" if self.kind in FROM_FILES else "the size of its alphabet"
            require(self.vocab_size is None, f"vocab_size: a {self.kind} tokenizer has {has}")

    def _check_files(self) -> None:
        keys = FROM_FILES.get(self.kind, ())
        for key in _FILE_KEYS:
            value = getattr(self, key)
            require(value is None or key in keys, f"{key}: not offered for kind {self.kind}")
            require(value is None or value.strip() != "", f"{key}: expected text, found an empty one")
        if self.kind == "tiktoken":
            is_named = self.name is not None and self.path is None and self.pattern is None
            is_file = self.name is None and self.path is not None and self.pattern is not None
            require(is_named or is_file, "kind tiktoken needs name, or path and pattern")
            return
        for key in keys:
            require(getattr(self, key) is not None, f"{key} is missing; kind {self.kind} needs it")

    @property
    def is_trained(self) -> bool:
        """Whether it is learned from the train split."""
        return self.kind in BPE_KINDS or self.kind in TRAINED_OUTSIDE

    @property
    def resolved_tie_break(self) -> TieBreak:
        """The tie rule, with the kind's default filled in."""
        return self.tie_break or ("first_seen" if self.kind == "char_bpe" else "lowest_ids")
