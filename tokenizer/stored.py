"""What is in a tokenizer file, read and checked as plain values, before any tokenizer is made of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from data.config import did_you_mean
from data.errors import DataError, TokenizerError, command
from data.files import read_json
from tokenizer.base import Placement, Tokenizer
from tokenizer.pretokenize import SPLIT_PATTERNS, SplitPattern
from tokenizer.reference import TIE_BREAKS, TieBreak

FILE_TYPES = {"char": "character", "byte": "byte", "char_bpe": "character_bpe", "byte_bpe": "byte_bpe"}
"""Kind of a tokenizer -> `type` in its file."""
_KINDS = {file_type: kind for kind, file_type in FILE_TYPES.items()}
_REQUIRED_BPE = {"type", "base_tokens", "merges", "vocab_size", "fingerprint"}
_REQUIRED = {
    "character": {"type", "base_tokens", "vocab_size", "fingerprint"},
    "byte": {"type", "vocab_size", "fingerprint"},
    "character_bpe": _REQUIRED_BPE,
    "byte_bpe": _REQUIRED_BPE,
}
_SPECIAL = {"special_tokens", "placement", "document_separator"}
_OPTIONAL_BPE = {"split_pattern", "tie_break", "trained_on", *_SPECIAL}
_OPTIONAL = {
    "character": {"trained_on", *_SPECIAL},
    "byte": {"trained_on", *_SPECIAL},
    "character_bpe": _OPTIONAL_BPE,
    "byte_bpe": _OPTIONAL_BPE,
}


@dataclass(frozen=True)
class StoredTokenizer:
    """The checked values of a tokenizer file; what a kind does not have is empty."""

    kind: str
    """`char`, `byte`, `char_bpe` or `byte_bpe`."""
    base_tokens: list[str]
    """In the order of their ids."""
    merges: list[tuple[str, str]]
    """Pairs of tokens in learned order."""
    split_pattern: SplitPattern
    """Where merges do not reach across."""
    special_tokens: list[str]
    """Tokens with ids of their own."""
    placement: Placement
    """Whether theirs are the last ids or the first."""
    document_separator: str | None
    """The special token before every document of encoded splits."""
    tie_break: TieBreak | None
    """How ties were broken in training, if the file says so."""
    trained_on: dict[str, Any] | None
    """Provenance."""
    vocab_size: Any
    """As the file states it, see `check`."""
    fingerprint: Any
    """As the file states it, see `check`."""

    def check(self, tokenizer: Tokenizer) -> None:
        """Raise TokenizerError if size or fingerprint of what was made are not those that the file states."""
        _compare("vocab_size", self.vocab_size, tokenizer.vocab_size)
        _compare("fingerprint", self.fingerprint, tokenizer.fingerprint())


def read_tokenizer_file(path: Path) -> StoredTokenizer:
    """Read a tokenizer file of one of this project's own kinds; keys and types are checked.

    Raises TokenizerError: one sentence, what is wrong and where; and DataError for a file that may not be read.
    """
    contents = read_contents(path)
    with named(path):
        return checked(contents)


def read_contents(path: Path) -> Any:
    """A tokenizer file as plain values; raises what `read_tokenizer_file` raises."""
    if not path.exists():
        raise TokenizerError(f"{path} does not exist; run {command('make tokenizer')}")
    try:
        contents: Any = read_json(path)
    except DataError as error:
        if isinstance(error.__cause__, PermissionError):  # a file that may not be read is not damaged
            raise
        raise TokenizerError(f"{error.text}; run {command('make tokenizer')} again") from error
    return contents


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Put the file's name in front of a TokenizerError about its contents."""
    try:
        yield
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error.text}") from error


def checked(contents: Any) -> StoredTokenizer:
    """The values of a file of one of this project's own kinds; raises TokenizerError."""
    if not isinstance(contents, dict):
        raise TokenizerError(f"expected a JSON object, found {type(contents).__name__}")
    file_type = contents.get("type")
    if not isinstance(file_type, str) or file_type not in _REQUIRED:
        raise TokenizerError(f"unknown type {file_type!r}{did_you_mean(str(file_type), list(_REQUIRED))}")
    known = _REQUIRED[file_type] | _OPTIONAL[file_type]
    for key in contents:
        if key not in known:
            raise TokenizerError(f"unknown key {key!r}{did_you_mean(key, sorted(known))}")
    for key in sorted(_REQUIRED[file_type]):
        if key not in contents:
            raise TokenizerError(f"key {key!r} is missing")
    trained_on = contents.get("trained_on")
    if not isinstance(trained_on, dict | None):
        raise TokenizerError(f"trained_on: expected an object, found {trained_on!r}")
    if not contents.get("special_tokens"):
        for key in ("placement", "document_separator"):
            if file_type in ("character", "byte") and contents.get(key) is not None:
                raise TokenizerError(f"{key}: there are no special_tokens")
    return StoredTokenizer(
        kind=_KINDS[file_type],
        base_tokens=_strings(contents.get("base_tokens", []), "base_tokens"),
        merges=_merges(contents.get("merges", [])),
        split_pattern=_one_of(contents.get("split_pattern", "none"), SPLIT_PATTERNS, "split_pattern"),
        special_tokens=_strings(contents.get("special_tokens", []), "special_tokens"),
        placement=_one_of(contents.get("placement", "last"), get_args(Placement), "placement"),
        document_separator=_string_or_none(contents.get("document_separator"), "document_separator"),
        tie_break=_one_of(contents.get("tie_break"), (*TIE_BREAKS, None), "tie_break"),
        trained_on=trained_on,
        vocab_size=contents["vocab_size"],
        fingerprint=contents["fingerprint"],
    )


def _strings(value: Any, key: str) -> list[str]:
    if not isinstance(value, list):
        raise TokenizerError(f"{key}: expected a list of strings, found {type(value).__name__}")
    for index, item in enumerate(value):
        if not isinstance(item, str):
            raise TokenizerError(f"{key}[{index}]: expected a string, found {item!r}")
    return value


def _string_or_none(value: Any, key: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TokenizerError(f"{key}: expected a string, found {value!r}")
    return value


def _merges(value: Any) -> list[tuple[str, str]]:
    if not isinstance(value, list):
        raise TokenizerError(f"merges: expected a list of pairs, found {type(value).__name__}")
    for index, pair in enumerate(value):
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(half, str) for half in pair)):
            raise TokenizerError(f"merges[{index}]: expected a pair of strings, found {pair!r}")
    return [(left, right) for left, right in value]


def _one_of(value: Any, allowed: tuple[Any, ...], key: str) -> Any:
    if value not in allowed:
        raise TokenizerError(f"{key}: {value!r} is not one of {', '.join(str(a) for a in allowed if a)}")
    return value


def _compare(key: str, stated: Any, computed: Any) -> None:
    if type(stated) is not type(computed) or stated != computed:  # 256.0 == 256, True == 1
        raise TokenizerError(
            f"{key} says {stated!r}, but what is in the file gives {computed!r}: it was edited or damaged"
        )
