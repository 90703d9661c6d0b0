"""Tokenizer files -> tokenizers, with everything checked; the one place that knows all file types."""

from pathlib import Path
from typing import Any

from data.config import did_you_mean
from data.errors import DataError, TokenizerError
from data.files import read_json
from tokenizer.base import Tokenizer
from tokenizer.bpe import FILE_TYPES, BPEKind, BPETokenizer
from tokenizer.bytelevel import ByteTokenizer
from tokenizer.char import CharTokenizer
from tokenizer.pretokenize import SPLIT_PATTERNS
from tokenizer.reference import TIE_BREAKS

_REQUIRED_BPE = {"type", "base_tokens", "merges", "vocab_size", "fingerprint"}
_REQUIRED = {
    "character": {"type", "base_tokens", "vocab_size", "fingerprint"},
    "byte": {"type", "vocab_size", "fingerprint"},
    "character_bpe": _REQUIRED_BPE,
    "byte_bpe": _REQUIRED_BPE,
}
_OPTIONAL_BPE = {"split_pattern", "special_tokens", "tie_break", "trained_on"}
_OPTIONAL = {
    "character": {"trained_on"},
    "byte": {"trained_on"},
    "character_bpe": _OPTIONAL_BPE,
    "byte_bpe": _OPTIONAL_BPE,
}


def load_tokenizer(path: Path) -> Tokenizer:
    """Load any tokenizer file this project writes.

    Types, counts, the existence of every merge's halves, duplicates and the stored fingerprint are checked.
    Raises TokenizerError: one sentence, what is wrong and where; and DataError for a file that may not be read.
    """
    if not path.exists():
        raise TokenizerError(f"{path} does not exist; run `make tokenizer`")
    try:
        contents = read_json(path)
    except DataError as error:
        if isinstance(error.__cause__, PermissionError):  # a file that may not be read is not damaged
            raise
        raise TokenizerError(f"{error}; run `make tokenizer` again") from error
    try:
        tokenizer = _build(contents)
        _compare(contents, "vocab_size", tokenizer.vocab_size)
        _compare(contents, "fingerprint", tokenizer.fingerprint())
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error}") from error
    return tokenizer


def _build(contents: Any) -> Tokenizer:
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
    if file_type == "byte":
        return ByteTokenizer(trained_on=trained_on)
    base_tokens = _strings(contents["base_tokens"], "base_tokens")
    if file_type == "character":
        return CharTokenizer(base_tokens, trained_on=trained_on)
    kind: BPEKind = "char_bpe" if file_type == FILE_TYPES["char_bpe"] else "byte_bpe"
    return BPETokenizer(
        base_tokens,
        _merges(contents["merges"]),
        kind=kind,
        split_pattern=_one_of(contents.get("split_pattern", "none"), SPLIT_PATTERNS, "split_pattern"),
        special_tokens=_strings(contents.get("special_tokens", []), "special_tokens"),
        tie_break=_one_of(contents.get("tie_break"), (*TIE_BREAKS, None), "tie_break"),
        trained_on=trained_on,
    )


def _strings(value: Any, key: str) -> list[str]:
    if not isinstance(value, list):
        raise TokenizerError(f"{key}: expected a list of strings, found {type(value).__name__}")
    for index, item in enumerate(value):
        if not isinstance(item, str):
            raise TokenizerError(f"{key}[{index}]: expected a string, found {item!r}")
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


def _compare(contents: dict[str, Any], key: str, computed: Any) -> None:
    if type(contents[key]) is not type(computed) or contents[key] != computed:  # 256.0 == 256, True == 1
        raise TokenizerError(
            f"{key} says {contents[key]!r}, but what stands in the file gives {computed!r}: it was edited or damaged"
        )
