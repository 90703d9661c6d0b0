"""What a tokenizer does to the test text, before any model: compression, use of the vocabulary, how numbers are cut.

None of it says who is better; it helps to see why. Shapes: n tokens, V vocabulary.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.clean import is_divided_by_spaces
from data.errors import ReportError, TokenizerError
from tokenizer.base import Int64Array, Tokenizer, token_lengths
from tokenizer.bpe import BPETokenizer
from tokenizer.studies.study import EXAMPLES, cut, glued_tokens
from tokenizer.studies.trace import spelled

RENYI_ALPHA = 2.5  # the order that correlated best with translation quality in the paper cited at renyi_efficiency
WINDOW_TOKENS = 128
_NUM_EXAMPLES = 20


@dataclass(frozen=True)
class GluedTokens:
    """Tokens of a vocabulary that hold a letter and a punctuation mark or symbol."""

    num: int
    share: float
    """Of the tokens of the text."""
    examples: tuple[str, ...]
    """The most used ones."""


@dataclass(frozen=True)
class CutNumber:
    """A number and its tokens."""

    text: str
    tokens: tuple[str, ...] | None
    """None if the tokenizer has no token for one of its characters."""


@dataclass(frozen=True)
class Intrinsic:
    """The intrinsic numbers of one contestant on the test text."""

    chars_per_token: float
    bytes_per_token: float
    vocab_size: int
    vocab_used: int
    vocab_used_share: float
    tokens_per_word: float | None
    """None for a text without a word, and for one that is not divided by spaces."""
    renyi_efficiency: float | None
    """Over the logarithm of the whole vocabulary; None for a vocabulary of one token."""
    embedding_share: float
    """Of the model's parameters."""
    glued_tokens: GluedTokens
    numbers: tuple[CutNumber, ...]
    chars_in_128_tokens: float
    """The mean over the text."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Intrinsic":
        """What `data.shapes.plain` made of it."""
        glued = value["glued_tokens"]
        numbers = tuple(
            CutNumber(one["text"], None if one["tokens"] is None else tuple(one["tokens"])) for one in value["numbers"]
        )
        return cls(
            **{
                **value,
                "glued_tokens": GluedTokens(glued["num"], glued["share"], tuple(glued["examples"])),
                "numbers": numbers,
            }
        )


def intrinsic_of(
    tokenizer: Tokenizer,
    ids: Int64Array,
    text: str,
    *,
    embedding_parameters: int,
    all_parameters: int,
    document_offsets: Int64Array | None = None,
) -> Intrinsic:
    """The intrinsic numbers of one contestant.

    `ids` (n,) are the test split's, `text` is what they stand for; the parameters are those of the contestant's model.
    `document_offsets` (D+1,) say where its documents begin in `ids`; None means one document.
    A word is a run of characters that are not white space, as for the word perplexity; `tokens_per_word` is None for a
    text without one, and for a text that is not divided by spaces. `chars_in_128_tokens` is the mean over the text.
    `renyi_efficiency` divides by the logarithm of the whole vocabulary, tokens that the text never uses included.
    Raises ReportError for an empty text, ids that are not those of the text, and parameters that do not fit together.
    """
    num_bytes = len(text.encode("utf-8"))
    offsets = np.array([0, len(ids)]) if document_offsets is None else document_offsets
    _check(tokenizer, ids, offsets, (len(text), num_bytes))
    if not 0 <= embedding_parameters <= all_parameters or all_parameters == 0:
        raise ReportError(
            f"{embedding_parameters:,} embedding parameters cannot be a part of {all_parameters:,} in all; "
            "train the contestant again"
        )
    counts = np.bincount(ids, minlength=tokenizer.vocab_size)
    num_words = len(text.split()) if is_divided_by_spaces(text) else 0
    vocab_used = int(np.count_nonzero(counts))
    return Intrinsic(
        chars_per_token=len(text) / len(ids),
        bytes_per_token=num_bytes / len(ids),
        vocab_size=tokenizer.vocab_size,
        vocab_used=vocab_used,
        vocab_used_share=vocab_used / tokenizer.vocab_size,
        tokens_per_word=len(ids) / num_words if num_words else None,
        renyi_efficiency=renyi_efficiency(counts),
        embedding_share=embedding_parameters / all_parameters,
        glued_tokens=_glued(tokenizer, counts),
        numbers=tuple(CutNumber(number, _cut_if_known(tokenizer, number)) for number in EXAMPLES["numbers"]),
        chars_in_128_tokens=WINDOW_TOKENS * len(text) / len(ids),
    )


def renyi_efficiency(counts: Int64Array, alpha: float = RENYI_ALPHA) -> float | None:
    """Rényi entropy of order `alpha` of the tokens' frequencies over its maximum log V; 1 if all are equally frequent.

    `counts` (V,) are the uses of every token of the vocabulary, zeros included; `alpha` is not 1. None where V = 1,
    whose maximum is 0. Formula: H_alpha = log(sum p^alpha) / (1 - alpha), efficiency = H_alpha / log V; Zouhar et al.
    2023, "Tokenization and the Noiseless Channel" (ACL).
    """
    if len(counts) == 1:
        return None
    shares = counts[counts > 0] / counts.sum()
    entropy = math.log(float((shares**alpha).sum())) / (1.0 - alpha)
    return entropy / math.log(len(counts))


def _check(tokenizer: Tokenizer, ids: Int64Array, document_offsets: Int64Array, wanted: tuple[int, int]) -> None:
    """Raise ReportError unless the ids have the lengths of the text."""
    if not len(ids):
        raise ReportError("the test split is empty: its tokens have no intrinsic numbers; give it text")
    if ids.min() < 0 or ids.max() >= tokenizer.vocab_size:
        raise ReportError(
            f"the test split holds ids {ids.min()} to {ids.max()}, but the tokenizer's vocabulary is "
            f"{tokenizer.vocab_size}; encode the split again"
        )
    num_chars, num_bytes = (int(lengths.sum()) for lengths in token_lengths(tokenizer, ids, document_offsets))
    if (num_chars, num_bytes) != wanted:
        raise ReportError(
            f"the ids stand for {num_chars:,} characters and {num_bytes:,} bytes, but the test text has {wanted[0]:,} "
            f"and {wanted[1]:,}; encode the split again"
        )


def _glued(tokenizer: Tokenizer, counts: Int64Array) -> GluedTokens:
    """Tokens with a letter and a punctuation mark or symbol: how many, their share of the text, the most used ones."""
    # A token of the other kinds is one character or one byte.
    glued = glued_tokens(tokenizer) if isinstance(tokenizer, BPETokenizer) else []
    ranked = sorted(glued, key=lambda index: (-int(counts[index]), index))
    return GluedTokens(
        num=len(glued),
        share=float(counts[glued].sum() / counts.sum()) if glued else 0.0,
        examples=tuple(spelled(tokenizer.decode_bytes([index])) for index in ranked[:_NUM_EXAMPLES]),
    )


def _cut_if_known(tokenizer: Tokenizer, text: str) -> tuple[str, ...] | None:
    """The tokens of `text` as strings; None if the tokenizer has no token for one of its characters."""
    try:
        return tuple(cut(tokenizer, text))
    except TokenizerError:
        return None
