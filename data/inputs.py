"""What an artefact was made from: one list for every step of the chain, by which the step decides what is up to date.

A step stores `inputs_of(...)` in what it writes. Later the artefact is up to date if the same call gives the same list
again, if its seal holds (nobody edited it), and if the files that it lists have the hashes that it lists. Nothing else
decides. So whatever can change a result belongs into the list: the texts, where their documents begin, the tokenizers,
the settings, the artefacts before it, and the version of the code that turns them into the result. That version is a
constant next to the code. It goes up with every change of the code that can change a result for equal inputs.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.files import canonical_json, sha256_file, sha256_text

SEAL = "content_sha256"


@dataclasses.dataclass(frozen=True)
class TextInput:
    """One text as an input: equal texts that are cut into other documents are other inputs."""

    text_sha256: str
    """Hex sha256 of the text's UTF-8 bytes."""
    borders_sha256: str
    """`borders_sha256` of its documents."""


def borders_sha256(document_offsets: NDArray[np.int64]) -> str:
    """Hex sha256 of document offsets (D+1,) in characters: where every document begins and ends."""
    return hashlib.sha256(np.ascontiguousarray(document_offsets, dtype="<i8").tobytes()).hexdigest()


def text_input(text_sha256: str, document_offsets: NDArray[np.int64]) -> TextInput:
    """A text as an input; `document_offsets` (D+1,) are in characters."""
    return TextInput(text_sha256, borders_sha256(document_offsets))


def inputs_of(
    version: int,
    *,
    texts: Mapping[str, TextInput] | None = None,
    tokenizers: Mapping[str, str] | None = None,
    settings: Any = None,
    files: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The list of inputs as plain values, equal to itself after a way through JSON.

    `version` is that of the code and format, `texts` the splits by name, `tokenizers` the fingerprints by name,
    `settings` plain values or dataclasses with all their fields, `files` the hashes of artefacts that it was made from.
    """
    listed = {
        "version": version,
        "texts": {name: dataclasses.asdict(text) for name, text in (texts or {}).items()},
        "tokenizers": dict(tokenizers or {}),
        "settings": settings,
        "files": dict(files or {}),
    }
    as_json: dict[str, Any] = plain(listed)
    return as_json


def plain(value: Any) -> Any:
    """`value` as JSON gives it back: dataclasses and mappings become objects, tuples become lists."""
    return json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain_parts))


def _plain_parts(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no plain value")


def seal(value: Mapping[str, Any]) -> dict[str, Any]:
    """`value` with the hash of its own content, so that an edit of the file shows."""
    return {**value, SEAL: _content_sha256(value)}


def is_sealed(value: Any) -> bool:
    """Whether `value`, as read from a file, is an object that holds exactly what was sealed."""
    try:
        return isinstance(value, dict) and value.get(SEAL) == _content_sha256(value)
    except ValueError:
        return False  # it holds a NaN, an infinity or a lone surrogate, which nothing that was sealed can


def _content_sha256(value: Mapping[str, Any]) -> str:
    return sha256_text(canonical_json(plain({key: item for key, item in value.items() if key != SEAL})))


def output_hashes(paths: Iterable[Path]) -> dict[str, str]:
    """The hashes of files that were written together, by name, for the one that is written last."""
    return {path.name: sha256_file(path) for path in paths}
