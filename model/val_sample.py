"""The val sample: one fixed part of val, on which a run is watched and its checkpoint selected.

It is the same characters for every contestant, spread over all documents of val: where documents are sorted (by module,
by author, by date), the beginning of val would be one-sided. It is not the whole of val, which the report scores at
the end, and its figures are named apart from those.
"""

import codecs
import math
from dataclasses import dataclass

import numpy as np
import torch

from data.errors import DataError
from model.gpt import MiniGPT
from model.windows import ScoringError, score_tokens
from tokenizer.base import Int64Array, Tokenizer, prefix_of, token_lengths
from tokenizer.encode_splits import EncodedSplit

_FEWEST_DOCUMENTS = 16
"""No document gives a greater share of the sample than one in so many, where there are as many documents."""
_SHORTEST_PART = 2_000
"""Characters of a document that are taken in any case: a shorter part would be scored with hardly any context."""


@dataclass(frozen=True)
class ValSample:
    """Beginnings of some documents of val, or whole ones, encoded each as a document of its own."""

    ids: torch.Tensor
    """(n,) ids of all parts, one after the other."""
    document_offsets: Int64Array
    """(P+1,) part p is tokens o[p] … o[p+1] - 1."""
    num_chars: int
    """Characters of all parts."""
    num_val_documents: int
    """Documents of the whole of val."""

    @property
    def num_documents(self) -> int:
        """Documents of val that the sample has a part of."""
        return len(self.document_offsets) - 1

    def __str__(self) -> str:
        documents = "document" if self.num_val_documents == 1 else "documents"
        return (
            f"{self.num_chars:,} characters from {self.num_documents:,} of the {self.num_val_documents:,} "
            f"{documents} of val"
        )


def check_sample(num_chars: int, num_chars_of_tokens: int) -> None:
    """Raise ScoringError unless the tokens of the val sample hold its characters."""
    if num_chars_of_tokens != num_chars:
        raise ScoringError(f"the val sample has {num_chars} characters, its tokens have {num_chars_of_tokens}")


def val_sample(split: EncodedSplit, tokenizer: Tokenizer, max_characters: int) -> ValSample:
    """The fixed sample of `split`: at most `max_characters` characters, all of them where it has no more.

    Which characters they are follows from the text, its documents and `max_characters` alone: the text of the parts is
    encoded again, so that no tokenizer's borders move a part's end. Raises DataError if `split` is empty.
    """
    if not len(split.ids):
        raise DataError(f"split {split.name!r} ({split.path}) is empty: no val figure is possible; give it text")
    ids, offsets = split.ids.numpy(), split.document_offsets
    begun = token_lengths(tokenizer, ids, offsets)[0]
    ends = np.concatenate([[0], np.cumsum(begun)])  # characters begun before each token
    lengths = np.diff(ends[offsets])
    texts = []
    for document, num_chars in parts_of(lengths, max_characters):
        first, last = int(offsets[document]), int(offsets[document + 1])
        # Once one character more has begun, the wanted ones are whole.
        enough = int(np.searchsorted(ends[first : last + 1], ends[first] + num_chars + 1))
        raw = tokenizer.decode_bytes(ids[first : min(last, first + enough)].tolist())
        raw = raw.removeprefix(prefix_of(tokenizer).encode("utf-8"))  # the document begins here
        text = codecs.getincrementaldecoder("utf-8")().decode(raw)[:num_chars]
        texts.append(text if num_chars == lengths[document] else _to_line_end(text))
    sample_ids, sample_offsets = tokenizer.encode_documents(texts)
    num_chars = int(token_lengths(tokenizer, sample_ids, sample_offsets)[0].sum())
    check_sample(sum(map(len, texts)), num_chars)
    return ValSample(torch.from_numpy(sample_ids), sample_offsets, num_chars, len(lengths))


def parts_of(lengths: Int64Array, max_characters: int) -> list[tuple[int, int]]:
    """The documents of the sample and how many of their first characters it takes, in the order of the documents.

    `lengths` (D,) are the characters of all documents. The parts add up to `max_characters`, or to the whole text.
    """
    left = min(max_characters, int(lengths.sum()))
    most = max(-(-left // _FEWEST_DOCUMENTS), _SHORTEST_PART, _level(lengths, left))
    parts = {}
    for document in _spread_order(len(lengths)):
        part = min(int(lengths[document]), most, left)
        if part:
            parts[int(document)] = part
        left -= part
        if not left:
            break
    return sorted(parts.items())


def _level(lengths: Int64Array, wanted: int) -> int:
    """The fewest characters from each document with which all documents together give `wanted`."""
    low, high = 1, int(lengths.max())
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if int(np.minimum(lengths, middle).sum()) >= wanted else (middle + 1, high)
    return low


def _spread_order(count: int) -> Int64Array:
    """0 … count - 1 in an order of which every beginning is spread evenly: van der Corput's sequence, times count."""
    num_digits = (count - 1).bit_length()
    rest, reversed_digits = np.arange(1 << num_digits), np.zeros(1 << num_digits, dtype=np.int64)
    for _ in range(num_digits):
        reversed_digits = 2 * reversed_digits + rest % 2
        rest //= 2
    places = reversed_digits * count >> num_digits
    first_times = np.sort(np.unique(places, return_index=True)[1])
    order: Int64Array = places[first_times]
    return order


def _to_line_end(text: str) -> str:
    """`text` up to its last line end, unless more than half of it would be lost."""
    end = text.rfind("\n") + 1
    return text[:end] if 2 * end >= len(text) else text


def quick_bits_per_char(model: MiniGPT, sample: ValSample, context_ids: list[int], batch_size: int = 64) -> float:
    """Bits per character of `sample` under disjoint windows: the figure that selects a checkpoint.

    `context_ids` (model.evaluate.context_of) stand before each part. Consumes no random numbers. The figure may be
    non-finite; the caller decides what that means.
    """
    scores = score_tokens(
        model,
        sample.ids,
        sample.document_offsets,
        context_ids,
        stride=model.config.block_size,
        batch_size=batch_size,
    )
    return float(scores.disjoint.sum(dtype=np.float64)) / math.log(2) / sample.num_chars
