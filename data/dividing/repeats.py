"""Documents that are in two splits: what is scored there was seen in training, so the score says little."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from data.dividing.divide import text_key
from data.errors import DataError
from data.splits import Document

LARGEST_SHARE = 0.05
"""More than this share of a split's characters in repeated documents stops the run, unless the config allows it."""


@dataclass(frozen=True)
class Repeats:
    """The documents of one split that are in another split too, equal up to white space."""

    split: str
    """`train`, `val` or `test`."""
    documents: int
    """How many of the split's documents they are; those of white space only do not count."""
    characters: int
    """Their characters."""
    share: float
    """Their part of the split's characters, from 0 to 1."""
    example: str | None
    """Name of the longest of them; None if there is none."""
    other_split: str | None
    """The first other split in which the example is."""
    other_example: str | None
    """Name of the document there that equals it."""


def find_repeats(divided: Mapping[str, Sequence[Document]]) -> dict[str, Repeats]:
    """What each split of cleaned documents shares with the others. Exact copies only, not passages within documents."""
    keys = {split: [text_key(document.text) for document in documents] for split, documents in divided.items()}
    names: dict[str, dict[bytes, str]] = {split: {} for split in divided}
    for split, documents in divided.items():
        for key, document in zip(keys[split], documents, strict=True):
            names[split].setdefault(key, document.name)
    found = {}
    for split, documents in divided.items():
        others = [other for other in divided if other != split]
        repeated = [
            document
            for key, document in zip(keys[split], documents, strict=True)
            if not document.text.isspace() and any(key in names[other] for other in others)
        ]
        characters = sum(len(document.text) for document in repeated)
        longest = max(repeated, key=lambda document: len(document.text), default=None)
        key = text_key(longest.text) if longest else b""
        other_split = next((other for other in others if key in names[other]), None)
        found[split] = Repeats(
            split=split,
            documents=len(repeated),
            characters=characters,
            share=characters / sum(len(document.text) for document in documents),
            example=longest.name if longest else None,
            other_split=other_split,
            other_example=names[other_split][key] if other_split else None,
        )
    return found


def refuse_repeats(found: Mapping[str, Repeats]) -> None:
    """Raise DataError for the split with the largest share above LARGEST_SHARE; of equals, for the last one (test)."""
    worst = max(reversed([*found.values()]), key=lambda repeats: repeats.share)
    if worst.share > LARGEST_SHARE:
        raise DataError(
            f"{worst.share:.1%} of the characters of {worst.split} are in documents that are in another split too "
            f"(equal up to white space; for example {worst.example} equals {worst.other_example} in "
            f"{worst.other_split}), so its score would say what was learned by heart; take the copies out, or set "
            "`allow_repeated_documents: true` in the corpus block"
        )
