"""Cleaned documents -> train, val and test: as the source says, or by an order that hangs on the texts alone."""

import hashlib
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from data.clean import clean_document, collapse_white_space, refuse_lone_surrogate
from data.dividing.overlap import Components, Text, shared_groups
from data.errors import DataError
from data.layout import SPLITS
from data.splits import Document

MOST_DOCUMENTS_MOVED = 3
"""`place` moves at most so many documents to another split when one is added to documents that all differ."""
SHARED_CHARACTERS = 50
"""Documents that have a string of so many characters in common are a group, if the corpus is to be grouped."""
_BLANK = hashlib.sha256(b"").digest()


def text_key(text: str) -> bytes:
    """sha256 of the text with white space collapsed: equal for documents that differ in white space only."""
    return hashlib.sha256(collapse_white_space(text).encode("utf-8")).digest()


def clean_and_divide(
    documents: Sequence[Document],
    cleaning: str,
    fractions: Sequence[float],
    advice: str = "give more documents",
    *,
    group_shared: bool = False,
    change: Callable[[str], str] = str,
) -> tuple[dict[str, list[Document]], dict[str, int]]:
    """Clean every document and put it into its split, in the order given; also what the cleaning did, in counts.

    A document without any character is dropped and counted; one of white space only stays in the text and is
    counted. `advice` says how the user gets more documents from this source. With `group_shared`, documents that have
    a string of SHARED_CHARACTERS in common get the same split. `change` gives the text that takes the
    place of a cleaned one. Raises DataError for a lone surrogate and for a split that would hold no text.
    """
    cleaned: list[Document] = []
    counts: Counter[str] = Counter(empty_documents_dropped=0, white_space_only_documents=0)
    for document in documents:
        refuse_lone_surrogate(document.text, document.name)
        text, changes = clean_document(document.text, cleaning)
        counts.update(changes)
        if text := change(text) if text else "":
            counts["white_space_only_documents"] += int(text.isspace())
            cleaned.append(replace(document, text=text))
        else:
            counts["empty_documents_dropped"] += 1
    return divide(grouped(cleaned) if group_shared else cleaned, fractions, advice), dict(counts)


def grouped(documents: Sequence[Document]) -> list[Document]:
    """The cleaned documents, each with the group that it belongs to.

    A group is a connected component of "have a string of SHARED_CHARACTERS in common, or are equal up to white space".
    It is named by the smallest `text_key` of its documents, so the names do not hang on the order of the documents.
    """
    keys = [text_key(document.text) for document in documents]
    shared = shared_groups(Text.of([document.text for document in documents]), SHARED_CHARACTERS)
    components, first = Components(len(documents)), dict[bytes, int]()
    for number, (key, other) in enumerate(zip(keys, shared.tolist(), strict=True)):
        components.join(number, other)
        if key != _BLANK:  # white space alone makes no texts alike; where it is long, it is a shared string
            components.join(number, first.setdefault(key, number))
    roots, names = components.roots(), dict[int, bytes]()
    for root, key in zip(roots, keys, strict=True):
        if key != _BLANK:
            names[root] = min(key, names.get(root, key))
    return [replace(document, group=names.get(root, _BLANK)) for document, root in zip(documents, roots, strict=True)]


def divide(
    documents: Sequence[Document], fractions: Sequence[float], advice: str = "give more documents"
) -> dict[str, list[Document]]:
    """The cleaned documents of each split, in the order given: by `Document.split`, else by `place`.

    Documents of one group, or equal up to white space where no group is given, get the same split. Documents of white
    space only go to train, unless their group holds text. Raises DataError if a split would hold no text.
    """
    sizes = Counter(_unit(document) for document in documents if not document.split and not document.text.isspace())
    split_of = {_BLANK: "train"}
    if not documents or any(document.split is None for document in documents):
        _refuse_too_few(sizes, advice, [document for document in documents if not document.text.isspace()])
        split_of |= place(sizes, fractions, _with_much_text(documents, fractions))
    divided: dict[str, list[Document]] = {split: [] for split in SPLITS}
    for document in documents:
        divided[document.split or split_of[_unit(document)]].append(document)
    for split, found in divided.items():
        if all(document.text.isspace() for document in found):
            white_space = f" ({len(found):,} of white space only)" if found else ""
            raise DataError(
                f"the {split} split is empty: its source holds no text{white_space}; give it at least one document"
            )
    return divided


def _unit(document: Document) -> bytes:
    """What a division does not separate: documents with the same one get the same split."""
    return text_key(document.text) if document.group is None else document.group


def _with_much_text(documents: Sequence[Document], fractions: Sequence[float]) -> set[bytes]:
    """The groups of several texts that hold more characters than val or test is to have.

    A single text is no matter of grouping: however long it is, it gets the split that it gets without groups.
    """
    characters: Counter[bytes] = Counter()
    texts: dict[bytes, set[str]] = {}
    for document in documents:
        if document.group is not None:
            characters[document.group] += len(document.text)
            texts.setdefault(document.group, set()).add(document.text)
    most = min(fractions[1:]) * characters.total()
    return {group for group, number in characters.items() if number > most and len(texts[group]) > 1}


def place(
    sizes: Mapping[bytes, int], fractions: Sequence[float], for_train: Container[bytes] = frozenset()
) -> dict[bytes, str]:
    """The split of each unit (texts that stay together), given its number of documents; three or more units.

    val and test are to get the whole number of documents nearest to their share, at least one; train gets the rest.
    The units are put in the order of their keys, which are hashes of texts; test is cut off its end, then val, each at
    the border between two units that is nearest to the wanted number. A unit of more documents than val or test is to
    have comes first in the order, and so does one `for_train`, so that they fall to train; where too few documents are
    left for val and test, these share what there is. So the result depends on the texts alone, not on their order.

    When a document is added, each border moves by what rounding moves it. At most MOST_DOCUMENTS_MOVED documents change
    sides where all differ; where a larger unit changes sides, others may make room for it.
    """
    num_documents = sum(sizes.values())
    num_val, num_test = (max(1, math.floor(fraction * num_documents + 0.5)) for fraction in fractions[1:])
    first = {key for key, size in sizes.items() if size > min(num_val, num_test) or key in for_train}
    num_left = num_documents - sum(sizes[key] for key in first)
    if 0 < num_left < num_val + num_test:
        num_val = math.floor(num_left * fractions[1] / (fractions[1] + fractions[2]) + 0.5)
        num_test = num_left - num_val
    order = sorted(sizes, key=lambda key: (key not in first, key))
    borders = list(accumulate((sizes[key] for key in order), initial=0))  # documents before each border of two units
    least = min(max(len(first), 1), len(order) - 2)  # units of train
    test_starts = _nearest(borders, num_documents - num_test, lowest=least + 1, highest=len(order) - 1)
    val_starts = _nearest(borders, borders[test_starts] - num_val, lowest=least, highest=test_starts - 1)
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


def _refuse_too_few(sizes: Mapping[bytes, int], advice: str, documents: Sequence[Document]) -> None:
    if len(sizes) >= len(SPLITS):
        return
    total = len(documents)
    num_texts = len({text_key(document.text) for document in documents})
    if total == 0:
        raise DataError(f"the corpus is empty: no document holds more than white space; {advice}")
    if num_texts >= len(SPLITS):
        raise DataError(
            f"the {total:,} documents form only {len(sizes)} group{'s' * (len(sizes) != 1)}: those that share a string "
            f"of {SHARED_CHARACTERS} characters stay in one split; train, val and test need a group each: take out "
            "what the documents repeat (a licence, a header), or set `group_shared: false` in the corpus block"
        )
    if total > num_texts:
        raise DataError(
            f"the {total:,} documents hold only {num_texts} distinct text{'s' * (num_texts != 1)}, and documents "
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
        "groups": _describe_groups(divided) if any(document.group for document in found) else None,
        "longest_document": {split: _named(max(texts, key=_length)) for split, texts in divided.items()},
        "shortest_document": {split: _named(min(texts, key=_length)) for split, texts in divided.items()},
    }


def _describe_groups(divided: Mapping[str, Sequence[Document]]) -> dict[str, Any]:
    """How many groups there are, and the one with the most characters."""
    groups: dict[bytes | None, list[Document]] = {}
    split_of: dict[bytes | None, str] = {}
    for split, documents in divided.items():
        for document in documents:
            groups.setdefault(document.group, []).append(document)
            split_of[document.group] = split
    characters = {group: sum(map(_length, documents)) for group, documents in groups.items()}
    largest = max(groups, key=lambda group: (characters[group], group))
    return {
        "shared_characters": SHARED_CHARACTERS,
        "number": len(groups),
        "largest": {
            "split": split_of[largest],
            "documents": len(groups[largest]),
            "characters": characters[largest],
            "share": characters[largest] / sum(characters.values()),
        },
    }


def _length(document: Document) -> int:
    return len(document.text)


def _named(document: Document) -> dict[str, Any]:
    return {"name": document.name, "characters": len(document.text)}
