"""Cleaned documents -> train, val and test: as the source says, or by an order that hangs on the texts alone."""

import hashlib
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from data.clean import clean_document, collapse_white_space, refuse_lone_surrogate
from data.errors import DataError
from data.layout import SPLITS
from data.splits import Document

MOST_DOCUMENTS_MOVED = 3
"""`place` moves at most so many documents to another split when one is added to documents that all differ."""
_BLANK = hashlib.sha256(b"").digest()


def text_key(text: str) -> bytes:
    """sha256 of the text with white space collapsed: equal for documents that differ in white space only."""
    return hashlib.sha256(collapse_white_space(text).encode("utf-8")).digest()


def clean_and_divide(
    documents: Sequence[Document], cleaning: str, fractions: Sequence[float], advice: str = "give more documents"
) -> tuple[dict[str, list[Document]], dict[str, int]]:
    """Clean every document and put it into its split, in the order given; also what the cleaning did, in counts.

    A document without any character is dropped and counted; one of white space only stays in the text and is
    counted. `advice` says how the user gets more documents from this source. Raises DataError for a lone surrogate
    and for a split that would hold no text.
    """
    cleaned: list[Document] = []
    counts: Counter[str] = Counter(empty_documents_dropped=0, white_space_only_documents=0)
    for document in documents:
        refuse_lone_surrogate(document.text, document.name)
        text, changes = clean_document(document.text, cleaning)
        counts.update(changes)
        if text:
            counts["white_space_only_documents"] += int(text.isspace())
            cleaned.append(replace(document, text=text))
        else:
            counts["empty_documents_dropped"] += 1
    return divide(cleaned, fractions, advice), dict(counts)


def divide(
    documents: Sequence[Document], fractions: Sequence[float], advice: str = "give more documents"
) -> dict[str, list[Document]]:
    """The cleaned documents of each split, in the order given: by `Document.split`, else by `place`.

    Documents that are equal up to white space get the same split; those of white space only go to train. Raises
    DataError if a split would hold no text.
    """
    sizes = Counter(text_key(document.text) for document in documents if document.split is None)
    del sizes[_BLANK]
    split_of = {_BLANK: "train"}
    if not documents or any(document.split is None for document in documents):
        _refuse_too_few(sizes, advice)
        split_of |= place(sizes, fractions)
    divided: dict[str, list[Document]] = {split: [] for split in SPLITS}
    for document in documents:
        divided[document.split or split_of[text_key(document.text)]].append(document)
    for split, found in divided.items():
        if all(document.text.isspace() for document in found):
            white_space = f" ({len(found):,} of white space only)" if found else ""
            raise DataError(
                f"the {split} split is empty: its source holds no text{white_space}; give it at least one document"
            )
    return divided


def place(sizes: Mapping[bytes, int], fractions: Sequence[float]) -> dict[bytes, str]:
    """The split of each distinct text, given how many documents are equal to it (by `text_key`); three or more texts.

    val and test are to get the whole number of documents nearest to their share, at least one; train gets the rest.
    The texts are put in the order of their hashes; test is cut off its end, then val, each at the border between two
    texts that is nearest to the wanted number. A text that is repeated more often than val or test is to have
    documents comes first in the order, so that it falls to train. So the result depends on the texts alone, not on
    their order, and equal documents stand together.

    When a document is added, each border moves by what rounding moves it. At most MOST_DOCUMENTS_MOVED documents change
    sides where all differ; where a repeated text changes sides, others may make room for its repetitions.
    """
    num_documents = sum(sizes.values())
    num_val, num_test = (max(1, math.floor(fraction * num_documents + 0.5)) for fraction in fractions[1:])
    order = sorted(sizes, key=lambda key: (sizes[key] <= min(num_val, num_test), key))
    borders = list(accumulate((sizes[key] for key in order), initial=0))  # documents before each border of two texts
    test_starts = _nearest(borders, num_documents - num_test, lowest=2, highest=len(order) - 1)
    val_starts = _nearest(borders, borders[test_starts] - num_val, lowest=1, highest=test_starts - 1)
    return {
        key: "train" if index < val_starts else "val" if index < test_starts else "test"
        for index, key in enumerate(order)
    }


def _nearest(borders: Sequence[int], wanted: int, *, lowest: int, highest: int) -> int:
    """The index from `lowest` to `highest` of the (rising) border nearest to `wanted`; of two, the lower one."""
    above = bisect_left(borders, wanted)
    if above > 0 and (above == len(borders) or wanted - borders[above - 1] <= borders[above] - wanted):
        above -= 1
    return min(max(above, lowest), highest)


def _refuse_too_few(sizes: Mapping[bytes, int], advice: str) -> None:
    if len(sizes) >= len(SPLITS):
        return
    total = sum(sizes.values())
    if total == 0:
        raise DataError(f"the corpus is empty: no document holds more than white space; {advice}")
    if total > len(sizes):
        raise DataError(
            f"the {total:,} documents hold only {len(sizes)} distinct text{'s' * (len(sizes) != 1)}, and documents "
            "equal up to white space stay in one split; train, val and test need one each: give texts that differ"
        )
    raise DataError(
        f"train, val and test need a document each, and the corpus holds {total} document{'s' * (total != 1)}; {advice}"
    )


def describe_division(divided: Mapping[str, Sequence[Document]], fractions: Sequence[float]) -> dict[str, Any]:
    """For the manifest: how the documents were divided, and each split's longest and shortest document."""
    found = [document for documents in divided.values() for document in documents]
    is_given = all(document.split for document in found)
    return {
        "by": "the source" if is_given else "hash",
        "fractions": None if is_given else list(fractions),
        "documents": len(found),
        "distinct_documents": len({text_key(document.text) for document in found}),
        "longest_document": {split: _named(max(texts, key=_length)) for split, texts in divided.items()},
        "shortest_document": {split: _named(min(texts, key=_length)) for split, texts in divided.items()},
    }


def _length(document: Document) -> int:
    return len(document.text)


def _named(document: Document) -> dict[str, Any]:
    return {"name": document.name, "characters": len(document.text)}
