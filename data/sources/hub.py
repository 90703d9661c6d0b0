"""Text from the Hugging Face Hub through `datasets`: pinned to a commit, and kept, so that it is fetched once.

`datasets` takes seconds to import, so it is imported only where the network is really used.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from data.clean import refuse_lone_surrogate
from data.errors import DataError
from data.files import atomic_write, read_json, sha256_file, write_json
from data.sources.hub_errors import hub_errors, import_datasets
from data.splits import Corpus, Document

DOCUMENTS = "documents.jsonl"
DOWNLOAD = "download.json"
_PROBE_SECONDS = 10.0


@dataclasses.dataclass(frozen=True)
class HubRequest:
    """Which text of which dataset is wanted."""

    dataset: str
    """Id with its namespace, like `roneneldan/TinyStories`."""
    config: str | None
    """Configuration of the dataset; None: its only or default one."""
    revision: str | None
    """Branch, tag or commit; None: the main branch as it is at the first fetch."""
    split: str
    """The dataset's split that is read."""
    text_column: str
    """The column that holds the text; one row is one document."""
    max_characters: int
    """Whole documents are taken while their characters stay within this."""


def load_hub(folder: Path, request: HubRequest) -> Corpus:
    """The documents of `request`: from the copy in `folder` if there is one, else streamed and kept there.

    Raises DataError if the Hub cannot be reached, what is asked for is not there, or the copy was edited.
    """
    record = _record_of(folder, request) or _download(folder, request)
    found, wanted = sha256_file(folder / DOCUMENTS), record["sha256"]
    if found != wanted:
        raise DataError(
            f"{folder / DOCUMENTS} has sha256 {found[:12]}…, but {folder / DOWNLOAD} says {wanted[:12]}…; remove "
            f"{folder} to fetch it again, or use your edited text with `source: text`"
        )
    return Corpus(
        documents=list(_read_documents(folder / DOCUMENTS)),
        identity=_identity(record, found),
        provenance={key: record[key] for key in ("dataset", "config", "split", "text_column", "num_rows_read")},
        revision=record["resolved_revision"],
    )


def hub_identity(folder: Path, request: HubRequest) -> dict[str, Any] | None:
    """The request's resolved commit and the sha256 of the kept copy; None if there is no copy of it."""
    record = _record_of(folder, request)
    return record and _identity(record, sha256_file(folder / DOCUMENTS))


def _identity(record: dict[str, Any], sha256: str) -> dict[str, Any]:
    return {"resolved_revision": record["resolved_revision"], "documents_sha256": sha256}


def _record_of(folder: Path, request: HubRequest) -> dict[str, Any] | None:
    """The record of the copy in `folder`; None if there is no copy, or one of another request."""
    wanted = dataclasses.asdict(request)
    record = read_record(folder, (*wanted, "resolved_revision", "num_rows_read", "sha256"))
    if record is None or not (folder / DOCUMENTS).exists():
        return None
    return record if all(record[key] == value for key, value in wanted.items()) else None


def read_record(folder: Path, keys: Iterable[str]) -> dict[str, Any] | None:
    """The record of a download that lies in `folder`; None if there is none. Raises DataError if it lacks a key."""
    path = folder / DOWNLOAD
    if not path.exists():
        return None
    record = read_json(path)
    if not (isinstance(record, dict) and all(key in record for key in keys)):
        raise DataError(f"{path} is not the record of a download; remove {folder} to fetch it again")
    return record


def _download(folder: Path, request: HubRequest) -> dict[str, Any]:
    """Fetch the documents of `request` and keep them in `folder`; returns the record, which is written last."""
    instead = "use local files with `source: text`, or run `make demo`, which needs no network"
    revision = resolve_revision(request.dataset, request.revision, instead)
    with hub_errors(request.dataset, instead):
        rows = import_datasets().load_dataset(
            request.dataset, request.config, revision=revision, split=request.split, streaming=True
        )
        # Fetched first and written afterwards: while a file is being written, a broken connection (an OSError)
        # would read like a failing disk.
        texts = _take_documents(rows, request)
    with atomic_write(folder / DOCUMENTS) as file:
        for text in texts:
            file.write((json.dumps({"text": text}, ensure_ascii=False) + "\n").encode("utf-8"))
    record = {
        **dataclasses.asdict(request),
        "resolved_revision": revision,
        "num_rows_read": len(texts),
        "sha256": sha256_file(folder / DOCUMENTS),
    }
    write_json(folder / DOWNLOAD, record)
    return record


def _take_documents(rows: Iterable[Mapping[str, Any]], request: HubRequest) -> list[str]:
    """The texts of the first rows that stay within the cap together."""
    texts: list[str] = []
    num_characters = 0
    for row in rows:
        text = _text_of(row, len(texts), request)
        num_characters += len(text)
        if num_characters > request.max_characters:
            break
        texts.append(text)
    if not any(texts):
        raise DataError(
            f"{request.dataset}: no text within max_characters = {request.max_characters:,} (after {len(texts):,} "
            "rows); raise it or choose another split"
        )
    return texts


def _text_of(row: Mapping[str, Any], number: int, request: HubRequest) -> str:
    if request.text_column not in row:
        raise DataError(
            f"{request.dataset} has no column {request.text_column!r}; its columns are {', '.join(row)}; "
            "set text_column"
        )
    text = row[request.text_column]
    if text is None:
        return ""  # a row without text is an empty document, which is dropped and counted later
    if not isinstance(text, str):
        raise DataError(
            f"{request.dataset}, row {number}: column {request.text_column!r} holds {type(text).__name__}, not text; "
            "set text_column"
        )
    refuse_lone_surrogate(text, f"{request.dataset}, row {number}")
    return text


def _read_documents(path: Path) -> Iterator[Document]:
    with path.open("rb") as file:  # bytes, because text mode would also end lines at a lone CR
        for number, line in enumerate(file):
            yield Document(f"{path}, row {number}", json.loads(line)["text"])


def resolve_revision(dataset: str, revision: str | None, instead: str) -> str:
    """The commit that `revision` (None: the main branch) stands for now.

    One request without retries, so that a machine without network learns it in seconds; `datasets` itself would
    retry for half a minute and might then fall back to another revision in its cache. `instead` is how to go on
    without the Hub, for the message. Raises DataError.
    """
    with hub_errors(dataset, instead):
        from huggingface_hub import HfApi

        sha = HfApi().dataset_info(dataset, revision=revision, timeout=_PROBE_SECONDS).sha
    if sha is None:
        raise DataError(f"the Hub names no commit for {dataset} at {revision or 'main'}; {instead}")
    return sha
