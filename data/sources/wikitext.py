"""WikiText-2 as published: from local files if they are there, else from the Hub, kept as those very files.

The Hub's rows hold one line each, but replace every blank line `" \\n"` by `""`. They are joined so that the text
equals the published files, whose sha256 is checked where it is known. An article is a document.
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from data.clean import BYTE_ORDER_MARK
from data.errors import DataError
from data.files import read_text, sha256_file, sha256_text, write_json, write_text
from data.layout import SPLITS
from data.sources.hub import DOWNLOAD, read_record, resolve_revision
from data.sources.hub_errors import hub_errors, import_datasets
from data.splits import Corpus, Document

DATASET = "Salesforce/wikitext"
REVISION = "b08601e04326c79dfdd32d625aee71d232d685c3"
CONFIGS = {"wikitext2": "wikitext-2-raw-v1", "wikitext2-tokens": "wikitext-2-v1"}
SUFFIXES = {"wikitext2": "raw", "wikitext2-tokens": "tokens"}
"""Ending of the local files, and of those kept after a download."""
UNKNOWN_WORD = "<unk>"
"""Stands for every rare word in the pre-processed text, and nowhere in the raw one."""
LARGEST_UNKNOWN_SHARE = 0.005
"""A file with more of its characters in UNKNOWN_WORD is not the raw text; the pre-processed one has 5 to 6 %."""
FILE_SPLITS = {"train": "train", "val": "valid", "test": "test"}
HUB_SPLITS = {"train": "train", "val": "validation", "test": "test"}
PUBLISHED_SHA256 = {
    "wiki.train.raw": "6707892fa3788b5ab9ed78ab5ff37d9fe825f6011a2ad4fcd6a6d467f0e7da57",
    "wiki.valid.raw": "4cd0f6876d07a413aa911261ff6d363c72d757d47f0fdd6015702014c89cb9c7",
    "wiki.test.raw": "173c87a53759e0201f33e0ccf978e510c2042d7f2cb78229d9a50d79b9e7dd08",
    "wiki.valid.tokens": "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
    "wiki.test.tokens": "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
}
_BLANK_LINE = " \n"
_TITLE = re.compile(r" = (?!= ).+ = ")
_LINE_END = re.compile("\r\n|\r|\n")  # not splitlines, which also cuts at U+2028, U+0085, …


def load_wikitext(source: str, folder: Path, revision: str | None) -> Corpus:
    """The three splits of `source` (`wikitext2` or `wikitext2-tokens`) with articles as documents.

    Files in `folder` are used without any network; files that the user placed need not be the published ones.
    Otherwise the text is fetched at `revision` (None: REVISION) and kept in `folder`. Raises DataError if only
    some of the files are there, if neither files nor Hub are, and for the text of the other source: bits per character
    of raw and pre-processed text cannot be compared.
    """
    files = _files_to_use(source, folder, revision)
    if files is None:
        download_wikitext(source, folder, revision or REVISION)
        files = _paths(folder, SUFFIXES[source])
    documents: list[Document] = []
    hashes: dict[str, str] = {}
    unknown: dict[str, float] = {}
    for split, path in files.items():
        text = read_text(path)
        if not text:
            raise DataError(f"{path} is empty; put the {split} text there, or remove the files to fetch them")
        hashes[path.name] = sha256_text(text)
        unknown[path.name] = unknown_share(text)
        _refuse_the_other_text(source, path, hashes[path.name], unknown[path.name])
        articles = split_articles(text)
        documents.extend(Document(f"{path}, article {n}", article, split) for n, article in enumerate(articles))
    download = _download_record(folder, hashes)
    return Corpus(
        documents=documents,
        identity={"files": hashes},
        provenance={
            "origin": "the Hub" if download else "local files",
            "published": {name: _is_published(name, found) for name, found in hashes.items()},
            "unknown_word_share": unknown,
        },
        revision=download["revision"] if download else None,
    )


def wikitext_identity(source: str, folder: Path, revision: str | None) -> dict[str, Any] | None:
    """sha256 of the three files in `folder`; None if they are not there and must be fetched."""
    files = _files_to_use(source, folder, revision)
    return files and {"files": {path.name: sha256_file(path) for path in files.values()}}


def unknown_share(text: str) -> float:
    """Share of the characters of `text` that spell UNKNOWN_WORD.

    >>> unknown_share("of <unk> .")
    0.5
    """
    return text.count(UNKNOWN_WORD) * len(UNKNOWN_WORD) / len(text)


def _is_published(name: str, sha256: str) -> bool | None:
    """Whether this is the published file of that name; None where its hash is not known."""
    return PUBLISHED_SHA256[name] == sha256 if name in PUBLISHED_SHA256 else None


def _refuse_the_other_text(source: str, path: Path, sha256: str, unknown: float) -> None:
    """Raise DataError if the file is pre-processed and `source` is raw, or the file is a published raw one and not."""
    if source == "wikitext2" and unknown > LARGEST_UNKNOWN_SHARE:
        raise DataError(
            f"{path} is pre-processed text, not raw: {unknown:.1%} of its characters spell {UNKNOWN_WORD}, so its bits "
            f"per character cannot be compared with those of raw text; put the raw text there, or {_use_tokens(path)}"
        )
    raw_names = [name for name, known in PUBLISHED_SHA256.items() if known == sha256 and name.endswith(".raw")]
    if source != "wikitext2" and raw_names:
        raise DataError(
            f"{path} is the published {raw_names[0]}, raw text in the place of pre-processed text; put "
            f"{path.name} there, or set `source: wikitext2`"
        )


def _use_tokens(path: Path) -> str:
    """How to go on with pre-processed text at `path`, in the folder of the raw one."""
    folder = path.parent
    names = ", ".join(tokens.name for tokens in _paths(folder, "tokens").values())
    place = folder.with_name("wikitext2-tokens") if folder.name == "wikitext2" else folder  # by default, or by `name`
    return f"set `source: wikitext2-tokens`, which reads {names} in {place}"


def split_articles(text: str) -> list[str]:
    """Cut WikiText at its titles; the pieces joined are `text`. What stands before the first title joins its article.

    A title is a line ` = Title = ` with a blank line (or the text's end) on either side. The blank lines matter:
    a formula broken over lines, like ` = 1 henry and capacitance C = `, looks the same otherwise. The articles are the
    same whatever the line ends are, and with or without a byte order mark.
    """
    lines = _LINE_END.split(text.removeprefix(BYTE_ORDER_MARK))
    offsets = [0, *(match.end() for match in _LINE_END.finditer(text))]
    starts: list[int] = []
    for number, line in enumerate(lines):
        if _TITLE.fullmatch(line) and not line.endswith(" = = "):
            neighbours = (*lines[max(number - 1, 0) : number], *lines[number + 1 : number + 2])
            if all(not neighbour.strip(" ") for neighbour in neighbours):
                starts.append(offsets[number])
    borders = [0, *starts[1:], len(text)]
    return [text[start:end] for start, end in pairwise(borders)]


def rejoin_rows(rows: Iterable[str], where: str) -> str:
    r"""The published text from the Hub's rows, one line each. Raises DataError for a row that is not one line.

    >>> rejoin_rows(["", " = Title = \n", "", " Text . \n"], "here")
    ' \n = Title = \n \n Text . \n'
    """
    lines = []
    for number, row in enumerate(rows):
        line = row or _BLANK_LINE
        if line.find("\n") != len(line) - 1:
            raise DataError(f"{where}, row {number} is not one line of WikiText: {row[:60]!r}; use another revision")
        lines.append(line)
    return "".join(lines)


def download_wikitext(source: str, folder: Path, revision: str) -> None:
    """Fetch the three splits and keep them in `folder` under the published names, the record of it last.

    At REVISION the text must have the published sha256, where known. Raises DataError.
    """
    paths = _paths(folder, SUFFIXES[source])
    names = ", ".join(path.name for path in paths.values())
    instead = f"put {names} into {folder}, or run `make demo`, which needs no network"
    resolved = resolve_revision(DATASET, revision, instead)
    with hub_errors(DATASET, instead):
        loaded = import_datasets().load_dataset(DATASET, CONFIGS[source], revision=resolved)
    texts = {
        split: rejoin_rows(loaded[HUB_SPLITS[split]]["text"], f"{DATASET} {CONFIGS[source]} {HUB_SPLITS[split]}")
        for split in SPLITS
    }
    hashes = {paths[split].name: sha256_text(text) for split, text in texts.items()}
    if revision == REVISION:
        for name, found in hashes.items():
            wanted = PUBLISHED_SHA256.get(name, found)
            if found != wanted:
                raise DataError(
                    f"{DATASET} at {revision[:12]}… gives a {name} with sha256 {found[:12]}…, but the published file "
                    f"has {wanted[:12]}…; nothing was kept, fetch it again or {instead}"
                )
    for split, text in texts.items():
        write_text(paths[split], text)
    write_json(
        folder / DOWNLOAD,
        {"dataset": DATASET, "config": CONFIGS[source], "revision": resolved, "requested": revision, "files": hashes},
    )


def _paths(folder: Path, suffix: str) -> dict[str, Path]:
    return {split: folder / f"wiki.{FILE_SPLITS[split]}.{suffix}" for split in SPLITS}


def _files_to_use(source: str, folder: Path, revision: str | None) -> dict[str, Path] | None:
    """The local files; None if there are none, or if they are our copy of another revision."""
    paths = _paths(folder, SUFFIXES[source])
    missing = [path for path in paths.values() if not path.exists()]
    others = _of_the_other_text(source, folder)
    if len(missing) == len(paths):
        if others:
            raise DataError(_only_the_other_text(source, others))
        return None
    if missing:
        stand_in = f" ({others[0].name} is another text and no stand-in)" if others else ""
        raise DataError(
            f"{folder} lacks {' and '.join(path.name for path in missing)} next to the other WikiText files{stand_in}; "
            "put them there, or remove the others to fetch all three"
        )
    if (folder / DOWNLOAD).exists():
        hashes = {path.name: sha256_file(path) for path in paths.values()}
        download = _download_record(folder, hashes)
        if download and (revision or REVISION) not in (download["requested"], download["revision"]):
            return None
    return paths


def _of_the_other_text(source: str, folder: Path) -> list[Path]:
    """Files in `folder` that belong to the other source."""
    return [
        path
        for other, suffix in SUFFIXES.items()
        for path in _paths(folder, suffix).values()
        if other != source and path.exists()
    ]


def _only_the_other_text(source: str, others: list[Path]) -> str:
    wanted = ", ".join(path.name for path in _paths(others[0].parent, SUFFIXES[source]).values())
    names = " and ".join(path.name for path in others)
    if source != "wikitext2":
        return (
            f"{others[0].parent} holds {names}, raw text, and source {source} is pre-processed text; set "
            f"`source: wikitext2`, put {wanted} there, or remove the files to fetch them"
        )
    texts = [read_text(path) for path in others]
    share = unknown_share("".join(texts)) if any(texts) else 0.0
    return (
        f"{others[0].parent} holds {names}, pre-processed text ({share:.1%} of its characters spell {UNKNOWN_WORD}), "
        f"and source {source} is raw text, with which its bits per character cannot be compared; "
        f"{_use_tokens(others[0])}, put {wanted} there, or remove the files to fetch them"
    )


def _download_record(folder: Path, hashes: dict[str, str]) -> dict[str, Any] | None:
    """The record of our download, if the files are still the ones that it brought."""
    download = read_record(folder, ("revision", "requested", "files"))
    return download if download and download["files"] == hashes else None
