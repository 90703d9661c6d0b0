"""Where the text comes from: the corpus block of an experiment, and its way to the cleaned splits."""

import dataclasses
import importlib.metadata
import json
import math
import platform
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from data.clean import find_lone_surrogate
from data.config import require
from data.dividing.divide import clean_and_divide, describe_division
from data.dividing.repeats import find_repeats, refuse_repeats
from data.dividing.shared import measure_shared
from data.inputs import is_sealed
from data.layout import SPLITS, Layout
from data.lock import alone
from data.numbers import COUNT, check_ranges, shown
from data.sources.hub import HubRequest, hub_identity, load_hub
from data.sources.local_text import load_local_text, local_text_identity
from data.sources.pydocs import load_pydocs, pydocs_identity
from data.sources.wikitext import load_wikitext, wikitext_identity
from data.splits import Corpus, kept_manifests, outputs_match, read_manifests, write_splits

MANIFEST_FORMAT = 3
"""Goes up when the same source and config would give another output, so that old outputs are made again."""
DEFAULT_MAX_CHARACTERS = 20_000_000
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DATASET_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_WIKITEXT = ("wikitext2", "wikitext2-tokens")
_OPTIONS = {  # option -> the sources that know it
    **dict.fromkeys(("paths", "train", "val", "test", "separator"), ("text",)),
    "fractions": ("text", "hub"),
    "group_shared": ("text", "hub", "pydocs"),
    "allow_repeated_documents": ("text", *_WIKITEXT),
    "revision": ("hub", *_WIKITEXT),
    **dict.fromkeys(("dataset", "config", "split", "text_column", "max_characters"), ("hub",)),
}
_MORE_DOCUMENTS = {  # source -> how its user gets more documents
    "text": "let a `separator` cut files into several, give more files, or one path each for `train`, `val` and `test`",
    "hub": "raise `max_characters`, or set another `split` or `text_column`",
}


@dataclass(frozen=True)
class CorpusConfig:
    """The corpus of an experiment. Options that the chosen source does not know are an error."""

    source: Literal["wikitext2", "wikitext2-tokens", "pydocs", "text", "hub"]
    """`wikitext2` is WikiText-2 (raw); `wikitext2-tokens` is its version with `<unk>` for rare words. Both come from
    local files, else from the Hub. `pydocs` is the documentation inside this Python environment, which needs no
    network. `text` is your own files. `hub` is any dataset of the Hub."""
    cleaning: Literal["minimal", "wikitext"] = "minimal"
    """`minimal` makes every line end `\\n` and removes one byte order mark at the start. `wikitext` also undoes
    WikiText's own marks, such as ` @-@ `."""
    name: str | None = None
    """Name of the corpus in file names. null: the source's name, or the last part of the dataset's id."""

    paths: tuple[str, ...] | None = None
    """Source `text`: files, folders and globs, relative to the working directory. `fractions` divides their documents.
    Links are followed. Hidden names, empty files, files that an experiment wrote and this program's own files are left
    out, and `make data` lists them. An empty file that is named outright is an error, and so is a file that cannot be
    read."""
    train: str | None = None
    """Source `text`: file, folder or glob of the train split. Give `train`, `val` and `test` together, in place of
    `paths`."""
    val: str | None = None
    """Source `text`: file, folder or glob of the val split."""
    test: str | None = None
    """Source `text`: file, folder or glob of the test split."""
    separator: str | None = None
    """Source `text`: the string that cuts each file into documents. null: each file is one document. A `\\n` in it
    matches every kind of line end. A separator of white space, such as `"\\n\\n"`, is removed from the text. Any other
    separator stays at the end of its document. The manifest records how often it occurs and how many characters it
    removed. A separator that never occurs is an error. In YAML, `\\n` is a line end only inside double quotes."""
    fractions: tuple[float, ...] = (0.9, 0.05, 0.05)
    """Source `text` with `paths`, and source `hub`: the shares of train, val and test among the documents; they add up
    to one. val and test get the whole number of documents nearest to their share, and at least one. A hash of each text
    decides where it goes. Documents that are equal up to white space stay in one split."""
    group_shared: bool | None = None
    """Source `text` with `paths`, and sources `hub` and `pydocs`: whether documents that have a string of 50 characters
    in common, directly or through others, stay in one split. No such string of val or test is in train then. A group
    that is larger than val or test should be goes to train. null: `pydocs` groups, the others do not."""
    allow_repeated_documents: bool = False
    """Sources `text` and `wikitext2`: whether more than 5 % of a split's characters may be in documents that another
    split holds too, equal up to white space. A model can learn such documents by heart."""

    dataset: str | None = None
    """Source `hub`: the dataset's id with its namespace, such as `roneneldan/TinyStories`."""
    config: str | None = None
    """Source `hub`: the configuration of the dataset, such as `sample-10BT` of FineWeb-Edu. null: its default."""
    revision: str | None = None
    """Sources `hub` and `wikitext2`: a commit, tag or branch. null: for WikiText-2 the published commit, for `hub` the
    main branch at the first fetch. The manifest records the commit, and later runs use that one."""
    split: str = "train"
    """Source `hub`: the split of the dataset that is read. `fractions` divides it."""
    text_column: str = "text"
    """Source `hub`: the column that holds the text. One row is one document."""
    max_characters: Annotated[int, COUNT] = DEFAULT_MAX_CHARACTERS
    """Source `hub`: the most characters that are fetched, in whole documents."""

    def __post_init__(self) -> None:
        check_ranges(self)
        for field in dataclasses.fields(self):
            known_to = _OPTIONS.get(field.name, (self.source,))
            require(
                self.source in known_to or getattr(self, field.name) == field.default,
                f"`{field.name}` is an option of source {' and '.join(known_to)}, not of {self.source}; remove it",
            )
            value = getattr(self, field.name)
            for text in value if isinstance(value, tuple) else (value,):
                require(
                    not isinstance(text, str) or find_lone_surrogate(text) is None,
                    f"`{field.name}` holds a lone surrogate, which UTF-8 cannot represent",
                )
        if self.source == "text":
            self._check_text()
        if self.source == "hub":
            self._check_hub()
        require(
            len(self.fractions) == len(SPLITS)
            and all(0 < fraction < 1 for fraction in self.fractions)
            and math.isclose(sum(self.fractions), 1),
            f"`fractions` must be three shares above 0 that add up to 1, found {list(self.fractions)}",
        )
        require(
            _FILE_NAME.fullmatch(self.corpus_name) is not None,
            f"`name` becomes part of file names: at most 100 letters, digits, `.`, `_` and `-`, found "
            f"{shown(self.corpus_name)}",
        )

    def _check_text(self) -> None:
        given = [split for split in SPLITS if getattr(self, split) is not None]
        if self.paths is None:
            require(
                len(given) == len(SPLITS),
                f"source text wants `paths`, or all of `train`, `val` and `test`; found {given or 'neither'}",
            )
            require(
                self.fractions == CorpusConfig.fractions,
                "`fractions` divides the documents of `paths`; with `train`, `val` and `test` remove it",
            )
            require(
                not self.group_shared,
                "`group_shared` divides the documents of `paths`; with `train`, `val` and `test` remove it",
            )
        else:
            require(not given, f"give either `paths` or `train`, `val` and `test`; found `paths` and {given}")
            require(len(self.paths) > 0, "`paths` is empty; give at least one file, folder or glob")
        require(
            self.separator is None or (self.separator != "" and "\r" not in self.separator),
            r"`separator` must not be empty nor hold a carriage return; `\n` in it matches every kind of line end",
        )

    def _check_hub(self) -> None:
        require(
            self.dataset is not None and _DATASET_ID.fullmatch(self.dataset) is not None,
            f"source hub wants `dataset` with its namespace, like `Salesforce/wikitext`, found {self.dataset!r}",
        )

    @property
    def is_grouped(self) -> bool:
        """`group_shared`, or what it is by default."""
        return self.source == "pydocs" if self.group_shared is None else self.group_shared

    @property
    def corpus_name(self) -> str:
        """`name`, or what it is by default."""
        if self.name is not None:
            return self.name
        return self.dataset.rsplit("/", 1)[1] if self.source == "hub" and self.dataset else self.source


@dataclass(frozen=True)
class Normalization:
    """What becomes of the cleaned documents before they are divided."""

    identity: str
    """Changes whenever `apply` could give another text."""
    apply: Callable[[str], str]
    """A document's text -> the text that takes its place."""


def prepare(config: CorpusConfig, layout: Layout, normalization: Normalization | None = None) -> dict[str, Any]:
    """Make the cleaned splits unless they are up to date; returns the corpus's entry of the manifest.

    Raises DataError for anything about the source that the user must mend.
    """
    name = config.corpus_name
    if is_up_to_date(config, layout, normalization):
        entry: dict[str, Any] = read_manifests(layout)[name]
        return entry
    corpus = _load(config, layout)
    normalized = Counter[str]()

    def change(text: str) -> str:
        """The text in place of `text`, counted."""
        after = text if normalization is None else normalization.apply(text)
        normalized.update(
            documents=1, changed_documents=after != text, characters_before=len(text), characters_after=len(after)
        )
        return after

    advice = _MORE_DOCUMENTS.get(config.source, "give more documents")
    divided, changes = clean_and_divide(
        corpus.documents, config.cleaning, config.fractions, advice, group_shared=config.is_grouped, change=change
    )
    repeats = find_repeats(divided)
    if not config.allow_repeated_documents:
        refuse_repeats(repeats)
    about = {
        "format": MANIFEST_FORMAT,
        "config": _plain(config),
        "source": config.source,
        "revision": corpus.revision,
        "identity": corpus.identity,
        "provenance": corpus.provenance,
        "cleaning": {"name": config.cleaning, **changes},
        "division": describe_division(divided, config.fractions),
        "repeated_documents": {
            "allowed": config.allow_repeated_documents,
            **{split: dataclasses.asdict(found) for split, found in repeats.items()},
        },
        "shared_with_train": {split: dataclasses.asdict(found) for split, found in measure_shared(divided).items()},
        "versions": {
            "python": platform.python_version(),
            **{package: importlib.metadata.version(package) for package in ("numpy", "datasets")},
        },
    }
    if normalization is not None:
        about["normalization"] = {"identity": normalization.identity, **normalized}
    texts = {split: [document.text for document in documents] for split, documents in divided.items()}
    with alone(layout.processed):  # its manifest is read, and written with one entry more
        return write_splits(layout, name, texts, about)


def is_up_to_date(config: CorpusConfig, layout: Layout, normalization: Normalization | None = None) -> bool:
    """Whether the cleaned splits are those of this config and of the source as it is now, judged by content.

    Those of a damaged or edited manifest are not. Raises DataError if the source's own files are incomplete.
    """
    name = config.corpus_name
    entry = kept_manifests(layout).get(name)
    return (
        entry is not None
        and is_sealed(entry)
        and entry.get("format") == MANIFEST_FORMAT
        and entry.get("config") == _plain(config)
        and entry.get("normalization", {}).get("identity") == (normalization and normalization.identity)
        and entry.get("identity") == _identity(config, layout)
        and outputs_match(layout, name, entry)
    )


def _plain(config: CorpusConfig) -> dict[str, Any]:
    """The config as JSON gives it back (tuples are lists there)."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config)))
    return plain


def _load(config: CorpusConfig, layout: Layout) -> Corpus:
    folder = layout.raw(config.corpus_name)
    if config.source == "pydocs":
        return load_pydocs()
    if config.source == "text":
        return load_local_text(_text_paths(config), config.separator, layout.root)
    if config.source == "hub":
        return load_hub(folder, _hub_request(config))
    return load_wikitext(config.source, folder, config.revision)


def _identity(config: CorpusConfig, layout: Layout) -> dict[str, Any] | None:
    folder = layout.raw(config.corpus_name)
    if config.source == "pydocs":
        return pydocs_identity()
    if config.source == "text":
        return local_text_identity(_text_paths(config), layout.root)
    if config.source == "hub":
        return hub_identity(folder, _hub_request(config))
    return wikitext_identity(config.source, folder, config.revision)


def _text_paths(config: CorpusConfig) -> dict[str | None, tuple[str, ...]]:
    if config.paths is not None:
        return {None: config.paths}
    return {split: (getattr(config, split),) for split in SPLITS}


def _hub_request(config: CorpusConfig) -> HubRequest:
    assert config.dataset is not None  # __post_init__ saw to it
    return HubRequest(
        dataset=config.dataset,
        config=config.config,
        revision=config.revision,
        split=config.split,
        text_column=config.text_column,
        max_characters=config.max_characters,
    )
