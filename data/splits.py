"""The three cleaned splits on disk, with a manifest that ties them to their source."""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import DataError, command
from data.files import atomic_write, read_text, sha256_file, sha256_text, write_json, write_text
from data.inputs import seal
from data.layout import SPLITS, Layout
from data.shapes import check_object, read_object

MAKE = "make data"


@dataclass(frozen=True)
class Split:
    """One cleaned split of a corpus: the text that is scored, and where its documents begin."""

    name: str
    """`train`, `val` or `test`."""
    text: str
    """All documents, one after the other; each ends with a newline."""
    document_offsets: NDArray[np.int64]
    """Shape (D+1,), in characters: document d is text[o[d]:o[d+1]]."""
    sha256: str
    """Hex sha256 of the text's UTF-8 bytes."""

    def documents(self) -> list[str]:
        """The documents as strings."""
        bounds = self.document_offsets.tolist()
        return [self.text[start:end] for start, end in pairwise(bounds)]


@dataclass(frozen=True)
class Document:
    """One raw document as a source hands it over."""

    name: str
    """Where it came from, for messages: a file, a row, a module and line."""
    text: str
    """As read; after cleaning, the cleaned text."""
    split: str | None = None
    """`train`, `val` or `test` where the source says so; None: by a hash of the text."""
    group: bytes | None = None
    """Documents of one group stay in one split; None: those that are equal up to white space do."""


@dataclass(frozen=True)
class Corpus:
    """What a source hands over: the raw documents in order, and what they are."""

    documents: list[Document]
    """In the order in which they will be in their split."""
    identity: dict[str, Any]
    """Plain values that change whenever the source's text can have changed; compared to tell what is up to date."""
    provenance: dict[str, Any]
    """Plain values for the reader of the manifest: where it came from, what was left out."""
    revision: str | None = None
    """Commit of the Hub dataset; None where there is none."""


def write_splits(layout: Layout, corpus: str, divided: dict[str, list[str]], about: dict[str, Any]) -> dict[str, Any]:
    """Write text and document offsets of the three splits, then the manifest: `about` plus the splits' figures.

    The manifest comes last, so an interrupted run is never taken for a finished one. Returns the corpus's entry.
    """
    train_alphabet = set("".join(divided["train"]))
    described = {}
    for split in SPLITS:
        text = "".join(divided[split])
        lengths = np.array([len(document) for document in divided[split]], dtype=np.int64)
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
        text_path, offsets_path = layout.split_text(corpus, split), layout.split_documents(corpus, split)
        write_text(text_path, text)
        with atomic_write(offsets_path) as file:
            np.save(file, offsets, allow_pickle=False)
        described[split] = {
            **_figures(text, train_alphabet),
            "documents": len(lengths),
            "text": text_path.name,
            "sha256": sha256_text(text),
            "document_offsets": offsets_path.name,
            "document_offsets_sha256": sha256_file(offsets_path),
        }
    entry = seal({**about, "splits": described})
    write_json(layout.corpus_manifest, {**kept_manifests(layout), corpus: entry})
    return entry


def _figures(text: str, train_alphabet: set[str]) -> dict[str, Any]:
    occurrences = Counter(text)
    absent = sorted(set(occurrences) - train_alphabet)
    return {
        "characters": len(text),
        "bytes": len(text.encode("utf-8")),
        "words": len(text.split()),  # runs of characters that are not white space
        "distinct_characters": len(occurrences),
        "characters_absent_from_train": [
            {"character": character, "code_point": f"U+{ord(character):04X}", "count": occurrences[character]}
            for character in absent
        ],
    }


def read_manifests(layout: Layout) -> dict[str, Any]:
    """The manifest's entry of every corpus under this root, by corpus name; empty if there is no manifest yet.

    One file serves all corpora, because several experiments may share a root. Raises DataError if it is damaged.
    """
    path = layout.corpus_manifest
    if not path.exists():
        return {}
    manifests = read_object(path, {}, mend=MAKE)
    for name, entry in manifests.items():
        check_object(entry, {}, where=f"{path}: {name}", mend=MAKE)
    return manifests


def kept_manifests(layout: Layout) -> dict[str, Any]:
    """The same for those who write it: of a damaged file nothing is kept, its corpora are made again when asked for."""
    try:
        return read_manifests(layout)
    except DataError:
        sha256_file(layout.corpus_manifest)  # raises if it cannot be read at all: then nobody knows what it holds
        return {}


def read_manifest(layout: Layout, corpus: str) -> dict[str, Any]:
    """The manifest's entry of `corpus`. Raises DataError if it was never prepared."""
    manifests = read_manifests(layout)
    if corpus not in manifests:
        raise DataError(f"{layout.corpus_manifest} holds no corpus {corpus!r}; run {command(MAKE)}")
    entry: dict[str, Any] = manifests[corpus]
    return entry


def outputs_match(layout: Layout, corpus: str, entry: dict[str, Any]) -> bool:
    """Whether every output file of `corpus` exists with the hash that its manifest `entry` records."""
    splits = entry.get("splits", {})
    for split in SPLITS:
        stored = splits.get(split, {})
        for path, wanted in (
            (layout.split_text(corpus, split), stored.get("sha256")),
            (layout.split_documents(corpus, split), stored.get("document_offsets_sha256")),
        ):
            if not path.exists() or sha256_file(path) != wanted:
                return False
    return True


def load_split(layout: Layout, corpus: str, split: str) -> Split:
    """Read one cleaned split, refusing files that are not the ones the manifest describes.

    Raises DataError naming both hashes, both files and the command that mends it.
    """
    stored = read_manifest(layout, corpus).get("splits", {}).get(split, {})
    text_path, offsets_path = layout.split_text(corpus, split), layout.split_documents(corpus, split)
    _verify(text_path, stored.get("sha256"), layout.corpus_manifest)
    _verify(offsets_path, stored.get("document_offsets_sha256"), layout.corpus_manifest)
    return Split(
        name=split,
        text=read_text(text_path),
        document_offsets=np.load(offsets_path, allow_pickle=False),
        sha256=stored["sha256"],
    )


def load_splits(layout: Layout, corpus: str) -> dict[str, Split]:
    """All three cleaned splits by name; see `load_split`."""
    return {split: load_split(layout, corpus, split) for split in SPLITS}


def _verify(path: Path, wanted: str | None, manifest: Path) -> None:
    if wanted is None:
        raise DataError(f"{manifest} records no hash for {path}; run {command(MAKE)}")
    if not path.exists():
        raise DataError(f"{path} does not exist, although {manifest} lists it; run {command(MAKE)}")
    found = sha256_file(path)
    if found != wanted:
        raise DataError(f"{path} has sha256 {found[:12]}…, but {manifest} says {wanted[:12]}…; run {command(MAKE)}")
