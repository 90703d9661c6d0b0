"""Cleaned splits -> id tensors on disk, proven lossless before they are written. Only this module here uses torch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data.errors import DataError, TokenizerError, command
from data.files import atomic_write, read_json, sha256_file, write_json
from data.inputs import TextInput, borders_sha256, inputs_of, is_sealed, seal, text_input
from data.layout import SPLITS
from data.shapes import Kinds, check_object, read_object
from data.splits import Split
from tokenizer.base import Int64Array, Tokenizer, prefix_of, separator_of, token_lengths

MANIFEST = "manifest.json"
_CHECKED_AT_ONCE = 1 << 18  # ids: as Python's numbers and strings they take many times their own memory
_SHOWN_BEFORE, _SHOWN_BEHIND = 10, 20  # characters around the first difference of a failed round trip
ENCODER_VERSION = 1
"""Of how ids follow from text and tokenizer, and of what the manifest holds. It goes up with every change of the
encoding that can give other ids: what an older version encoded is encoded again."""
_MANIFEST_FIELDS: dict[str, Kinds] = {"tokenizer_fingerprint": str, "vocab_size": int, "splits": dict}
_SPLIT_FIELDS: dict[str, Kinds] = {
    "num_chars": int,
    "num_bytes": int,
    "text_sha256": str,
    "ids_sha256": str,
    "document_offsets": str,
    "document_offsets_sha256": str,
}


@dataclass(frozen=True)
class EncodedSplit:
    """One split as ids, with what ties it to its text and its tokenizer."""

    name: str
    ids: torch.Tensor
    """Shape (num_tokens,), torch.long. Train is memory-mapped and has the separators of its documents, if the tokenizer
    gives any; val and test, which are scored, are without."""
    document_offsets: Int64Array
    """Shape (D+1,): document d is ids[o[d]:o[d+1]]."""
    num_chars: int
    """Unicode code points of the split's text."""
    num_bytes: int
    """UTF-8 bytes of the split's text."""
    text_sha256: str
    """Hash of the cleaned text these ids stand for."""
    borders_sha256: str
    """Hash of where its documents begin, in characters (data.inputs.borders_sha256)."""
    tokenizer_fingerprint: str
    """Fingerprint of the tokenizer that made them."""
    ids_sha256: str
    """Hash of the tensor file, the data hash that checkpoints keep."""
    path: Path
    """The tensor file, for messages."""

    @property
    def text_input(self) -> TextInput:
        """The text as an input of what is made from it."""
        return TextInput(self.text_sha256, self.borders_sha256)


def encode_split(
    split: Split, tokenizer: Tokenizer, encoded: tuple[Int64Array, Int64Array] | None = None
) -> tuple[torch.Tensor, Int64Array]:
    """Ids (num_tokens,) torch.long and document offsets (D+1,) of `split`.

    `encoded` is what `tokenizer.encode_documents` gave for it, if that is known already. Either way the whole split is
    decoded again and compared, document by document. Raises TokenizerError where the ids do
    not give the text back, do not count its characters exactly, or leave the vocabulary.
    """
    documents = split.documents()
    ids, offsets = tokenizer.encode_documents(documents) if encoded is None else encoded
    if len(ids) and not (ids.min() >= 0 and ids.max() < tokenizer.vocab_size):
        position = int(np.flatnonzero((ids < 0) | (ids >= tokenizer.vocab_size))[0])
        raise TokenizerError(
            f"{split.name}: id {ids[position]} at position {position} is outside the vocabulary of "
            f"{tokenizer.vocab_size}; the tokenizer is broken, nothing was written"
        )
    if not (len(offsets) == len(documents) + 1 and offsets[0] == 0 and offsets[-1] == len(ids)):
        raise TokenizerError(
            f"{split.name}: the tokenizer's document offsets do not cover its ids; nothing was written"
        )
    for number, document in enumerate(documents):
        _check_round_trip(split.name, number, document, ids[offsets[number] : offsets[number + 1]], tokenizer)
    wanted_lengths = (
        ("characters", "token_num_chars", len(split.text)),
        ("bytes", "token_num_bytes", _num_utf8_bytes(split.text)),
    )
    for (what, table, wanted), (total, least) in zip(
        wanted_lengths, _total_lengths(tokenizer, ids, offsets), strict=True
    ):
        if total != wanted or least < 0:
            raise TokenizerError(
                f"{split.name}: the tokens' lengths add up to {total} {what}, the text has {wanted}; "
                f"the tokenizer's {table} is wrong, nothing was written"
            )
    return torch.from_numpy(np.ascontiguousarray(ids, dtype=np.int64)), offsets


def _total_lengths(tokenizer: Tokenizer, ids: Int64Array, offsets: Int64Array) -> list[tuple[int, int]]:
    """The characters of all tokens and the fewest that one has, then the same of their bytes; some ids at a time."""
    totals = [(0, 0), (0, 0)]
    for first in range(0, len(ids), _CHECKED_AT_ONCE):
        some = ids[first : first + _CHECKED_AT_ONCE]
        begin, end = np.searchsorted(offsets, (first, first + len(some)))
        begins = offsets[begin:end] - first  # of the documents that begin among them
        lengths = token_lengths(tokenizer, some, np.append(begins, len(some)))
        totals = [
            (total + int(found.sum()), min(least, int(found.min())))
            for (total, least), found in zip(totals, lengths, strict=True)
        ]
    return totals


def _num_utf8_bytes(text: str) -> int:
    """The bytes of `text` as UTF-8, without all of them in memory at once."""
    if text.isascii():
        return len(text)
    step = 1 << 22
    return sum(len(text[first : first + step].encode("utf-8")) for first in range(0, len(text), step))


def _check_round_trip(split: str, number: int, document: str, ids: Int64Array, tokenizer: Tokenizer) -> None:
    """Raise TokenizerError with the first difference unless the bytes of `ids` are the document's, and nothing else."""
    prefix = prefix_of(tokenizer)
    wanted = memoryview((prefix + document if len(ids) else document).encode("utf-8"))
    place = 0
    for first in range(0, len(ids), _CHECKED_AT_ONCE):
        raw = tokenizer.decode_bytes(ids[first : first + _CHECKED_AT_ONCE].tolist())
        if raw != wanted[place : place + len(raw)]:
            place = -1
            break
        place += len(raw)
    if place == len(wanted):
        return
    decoded = tokenizer.decode_bytes(ids.tolist()).decode("utf-8", "replace")
    if decoded.startswith(prefix):
        decoded = decoded[len(prefix) :]
    place = _first_difference(decoded, document)
    shown = slice(max(0, place - _SHOWN_BEFORE), place + _SHOWN_BEHIND)
    raise TokenizerError(
        f"{split}: document {number} does not survive encoding and decoding (first difference at character {place}: "
        f"the text has {document[shown]!r}, its ids stand for {decoded[shown]!r}); nothing was written"
    )


def _first_difference(left: str, right: str) -> int:
    for position, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return position
    return min(len(left), len(right))


def _with_separators(ids: torch.Tensor, offsets: Int64Array, separator: int) -> tuple[torch.Tensor, Int64Array]:
    """`separator` before every document, which it belongs to from then on."""
    separated = np.insert(ids.numpy(), offsets[:-1], separator)
    return torch.from_numpy(separated), offsets + np.arange(len(offsets))


def _without_separators(
    ids: torch.Tensor, offsets: Int64Array, separator: int, where: str
) -> tuple[torch.Tensor, Int64Array]:
    """What `_with_separators` was given. Raises DataError where a document does not begin with `separator`."""
    lacking = np.flatnonzero(
        (np.diff(offsets) < 1) | (ids.numpy()[np.minimum(offsets[:-1], len(ids) - 1)] != separator)
    )
    if len(lacking):
        raise DataError(f"{where}: document {lacking[0]} does not begin with the separator, id {separator}")
    return torch.from_numpy(np.delete(ids.numpy(), offsets[:-1])), offsets - np.arange(len(offsets))


def write_encoded(
    folder: Path,
    splits: dict[str, Split],
    tokenizer: Tokenizer,
    known: Mapping[str, tuple[Int64Array, Int64Array]] | None = None,
) -> dict[str, Any]:
    """Encode all `splits` with `tokenizer` into `folder` and return the manifest, which is written last.

    `known` are ids and document offsets that `tokenizer` gave for some of them already.

    Every split is proven before the first file is written, so a refusal leaves the folder as it was.
    """
    encoded = {name: encode_split(split, tokenizer, (known or {}).get(name)) for name, split in splits.items()}
    described: dict[str, Any] = {}
    separator = separator_of(tokenizer)
    for name, split in splits.items():
        ids, offsets = encoded[name] if separator is None else _with_separators(*encoded[name], separator)
        ids_path, offsets_path = folder / f"{name}_ids.pt", folder / f"{name}_docs.npy"
        with atomic_write(ids_path) as file:
            torch.save(ids, file)
        with atomic_write(offsets_path) as file:
            np.save(file, offsets.astype(np.int64), allow_pickle=False)
        described[name] = {
            "num_tokens": len(ids),
            "num_chars": len(split.text),
            "num_bytes": _num_utf8_bytes(split.text),
            "num_documents": len(offsets) - 1,
            "text_sha256": split.sha256,
            "borders_sha256": borders_sha256(split.document_offsets),
            "ids_sha256": sha256_file(ids_path),
            "document_offsets": offsets_path.name,
            "document_offsets_sha256": sha256_file(offsets_path),
        } | ({} if separator is None else {"num_separators": len(offsets) - 1})
    manifest = seal(
        {
            "inputs": encoding_inputs(splits, tokenizer.fingerprint()),
            "tokenizer_kind": tokenizer.kind,
            "tokenizer_fingerprint": tokenizer.fingerprint(),
            "vocab_size": tokenizer.vocab_size,
            "splits": described,
        }
    )
    write_json(folder / MANIFEST, manifest)
    return manifest


def encoding_inputs(splits: Mapping[str, Split], fingerprint: str) -> dict[str, Any]:
    """Everything that encoded splits are made from: texts, their documents, and the tokenizer's `fingerprint`."""
    texts = {name: text_input(split.sha256, split.document_offsets) for name, split in splits.items()}
    return inputs_of(ENCODER_VERSION, texts=texts, tokenizers={"tokenizer": fingerprint})


def is_up_to_date(folder: Path, splits: Mapping[str, Split], fingerprint: str) -> bool:
    """Whether `folder` holds exactly these splits under exactly this tokenizer, judged by content.

    A manifest that is damaged, edited or of an older version is not: what it described is simply made again.
    """
    if not (folder / MANIFEST).exists():
        return False
    try:
        manifest = read_json(folder / MANIFEST)
    except DataError:
        return False
    if not is_sealed(manifest) or manifest.get("inputs") != encoding_inputs(splits, fingerprint):
        return False
    for name in splits:
        stored = manifest["splits"][name]  # sealed, so it holds what was written
        for path, wanted in (
            (folder / f"{name}_ids.pt", stored["ids_sha256"]),
            (folder / f"{name}_docs.npy", stored["document_offsets_sha256"]),
        ):
            if not path.exists() or sha256_file(path) != wanted:
                return False
    return True


def load_encoded(folder: Path, tokenizer: Tokenizer, *, tokenizer_path: Path, make: str) -> dict[str, EncodedSplit]:
    """Load every split of `folder`, refusing ids that another tokenizer made or that leave the vocabulary.

    `tokenizer_path` and `make` (the command that mends it) are for the message. Raises DataError.
    """
    manifest_path = folder / MANIFEST
    manifest = read_object(manifest_path, _MANIFEST_FIELDS, mend=make)
    check_object(manifest["splits"], dict.fromkeys(SPLITS, dict), where=f"{manifest_path}: splits", mend=make)
    stored = manifest["tokenizer_fingerprint"]
    if stored != tokenizer.fingerprint():
        raise DataError(
            f"{manifest_path} was encoded by tokenizer {stored[:12]}…, but {tokenizer_path} is "
            f"{tokenizer.fingerprint()[:12]}…; run {command(make)}"
        )
    return {name: _load_split(folder, name, manifest, tokenizer, make) for name in SPLITS}


def _load_split(folder: Path, name: str, manifest: dict[str, Any], tokenizer: Tokenizer, make: str) -> EncodedSplit:
    where = f"{folder / MANIFEST}: splits.{name}"
    stored = check_object(manifest["splits"][name], _SPLIT_FIELDS, where=where, mend=make)
    path, offsets_path = folder / f"{name}_ids.pt", folder / f"{name}_docs.npy"
    if stored["document_offsets"] != offsets_path.name:  # another name could lead out of the folder
        raise DataError(f"{where}: document_offsets is {stored['document_offsets']!r}, not {offsets_path.name!r}")
    _verify(path, stored["ids_sha256"], folder / MANIFEST, make)
    _verify(offsets_path, stored["document_offsets_sha256"], folder / MANIFEST, make)
    ids = torch.load(path, weights_only=True, mmap=True)
    if not (isinstance(ids, torch.Tensor) and ids.dtype == torch.long and ids.ndim == 1):
        raise DataError(f"{path} does not hold a 1-D long tensor; run {command(make)}")
    check_id_range(ids, tokenizer.vocab_size, path, make)
    offsets = np.load(offsets_path, allow_pickle=False)
    if not (offsets.ndim == 1 and len(offsets) and offsets[0] == 0 and offsets[-1] == len(ids)):
        raise DataError(f"{offsets_path} does not cover the {len(ids)} ids of {path}; run {command(make)}")
    if (separator := separator_of(tokenizer)) is not None and name != "train":
        ids, offsets = _without_separators(ids, offsets, separator, f"{path}, by {offsets_path.name}")
    return EncodedSplit(
        name=name,
        ids=ids,
        document_offsets=offsets,
        num_chars=stored["num_chars"],
        num_bytes=stored["num_bytes"],
        text_sha256=stored["text_sha256"],
        borders_sha256=stored["borders_sha256"] if is_sealed(manifest) else _borders_of(ids, offsets, tokenizer),
        tokenizer_fingerprint=manifest["tokenizer_fingerprint"],
        ids_sha256=stored["ids_sha256"],
        path=path,
    )


def _borders_of(ids: torch.Tensor, offsets: Int64Array, tokenizer: Tokenizer) -> str:
    """The hash of the document borders from the ids themselves, for manifests of before they held it."""
    ends = np.cumsum(token_lengths(tokenizer, ids.numpy(), offsets)[0], dtype=np.int64)
    return borders_sha256(np.concatenate([np.zeros(1, np.int64), ends])[offsets])


def _verify(path: Path, wanted: str, manifest: Path, make: str) -> None:
    if not path.exists():
        raise DataError(f"{path} does not exist, although {manifest} lists it; run {command(make)}")
    found = sha256_file(path)
    if found != wanted:
        raise DataError(f"{path} has sha256 {found[:12]}…, but {manifest} says {wanted[:12]}…; run {command(make)}")


def check_id_range(ids: torch.Tensor, vocab_size: int, path: Path, make: str) -> None:
    """Raise DataError with file and position if an id lies outside 0 … vocab_size - 1."""
    if not len(ids):
        return
    if int(ids.min()) < 0 or int(ids.max()) >= vocab_size:
        position = int(torch.nonzero((ids < 0) | (ids >= vocab_size))[0])
        raise DataError(
            f"{path}: id {int(ids[position])} at position {position} is outside the vocabulary of {vocab_size}; "
            f"run {command(make)}"
        )


def summarize(manifest: dict[str, Any]) -> str:
    """One line for each split: tokens, characters, characters per token."""
    lines = []
    for name, split in manifest["splits"].items():
        num_tokens = split["num_tokens"] - split.get("num_separators", 0)
        ratio = split["num_chars"] / num_tokens if num_tokens else math.nan
        lines.append(
            f"  {name:<5} {split['num_chars']:>12,} characters -> {split['num_tokens']:>12,} tokens: "
            f"{ratio:.3f} characters per token"
        )
    return "\n".join(lines)
