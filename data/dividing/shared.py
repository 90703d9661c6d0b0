"""How much of val and test is in train word for word: what a model learned by heart there is scored as a success.

Copies of whole documents are the matter of repeats.py; here it is strings of any document, whatever is around them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from data.dividing.overlap import BoolArray, Text, covered
from data.splits import Document

LENGTHS = (30, 50, 100)
"""Strings of at least so many characters are counted."""
DECISIVE_LENGTH = 50
"""The length that LARGEST_SHARE is about: shorter strings are turns of phrase, too."""
LARGEST_SHARE = 0.05
"""More than this share of a split's characters in strings of train bends the verdict, and is warned of."""
_MOST_NAMED = 5


@dataclass(frozen=True)
class SharedWithTrain:
    """What one split shares with train."""

    split: str
    """`val` or `test`."""
    shares: dict[str, float]
    """Length -> share of the split's characters inside strings of at least that length that are in train, 0 to 1."""
    documents: list[dict[str, str | int | float]]
    """The documents with the most characters inside strings of DECISIVE_LENGTH, at most five: `name`, `characters`
    inside such strings, and `share`, their part of the document."""


def measure_shared(divided: Mapping[str, Sequence[Document]]) -> dict[str, SharedWithTrain]:
    """What val and test share with train, exactly; linear in the text, and they are worked through together."""
    train = Text.of([document.text for document in divided["train"]])
    documents = [*divided["val"], *divided["test"]]
    held_out = Text.of([document.text for document in documents])
    marks: dict[int, BoolArray] = {}
    within: BoolArray | None = None
    for length in LENGTHS:  # a string of 100 characters lies inside strings of 50
        within = marks[length] = covered(held_out, train, length, within=within)
    num_val = len(divided["val"])
    borders = [0, num_val, len(documents)]
    return {
        split: _described(split, documents[begin:end], held_out.offsets[begin : end + 1].tolist(), marks)
        for split, (begin, end) in zip(("val", "test"), pairwise(borders), strict=True)
    }


def _described(
    split: str, documents: Sequence[Document], offsets: Sequence[int], marks: Mapping[int, BoolArray]
) -> SharedWithTrain:
    """`offsets`: where the split's documents begin in `marks`, and the end."""
    own = slice(offsets[0], offsets[-1])
    decisive = np.append(0, np.cumsum(marks[DECISIVE_LENGTH][own]))[np.array(offsets) - offsets[0]]
    characters = np.diff(decisive)
    order = np.argsort(-characters, kind="stable")[:_MOST_NAMED]  # of equals, the first
    return SharedWithTrain(
        split=split,
        shares={str(length): float(found[own].mean()) for length, found in marks.items()},
        documents=[
            {
                "name": documents[number].name,
                "characters": int(characters[number]),
                "share": int(characters[number]) / len(documents[number].text),
            }
            for number in order.tolist()
            if characters[number]
        ],
    )
