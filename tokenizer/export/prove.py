"""Load exported files with the tool's own library and compare its ids with ours."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from data.errors import TokenizerError
from data.files import atomic_write
from tokenizer.base import Tokenizer
from tokenizer.export import formats
from tokenizer.export.texts import HOSTILE_TEXTS
from tokenizer.foreign.libraries import library
from tokenizer.foreign.tiktoken_ranks import read_ranks
from tokenizer.interop import hf_byte_level

Encode = Callable[[str], list[int]]


def export(tokenizer: Tokenizer, form: str, documents: Sequence[str], folder: Path) -> list[Path]:
    """Write `tokenizer` in the format `form` into `folder` and give the files' paths.

    Before that the files are loaded by the library they are for, and its ids of `documents` and of HOSTILE_TEXTS are
    compared with ours. Raises TokenizerError with the first difference, or with what the format cannot carry; then
    nothing is written.
    """
    files = formats.files_of(tokenizer, form)
    with TemporaryDirectory() as name:
        for file, contents in files.items():
            (Path(name) / file).write_bytes(contents)
        _compare(tokenizer, form, LOADERS[form](Path(name)), documents)
    for file, contents in files.items():
        with atomic_write(folder / file) as opened:
            opened.write(contents)
    return [folder / file for file in files]


def _compare(tokenizer: Tokenizer, form: str, encode: Encode, documents: Sequence[str]) -> None:
    named = [(f"document {number} of test", document) for number, document in enumerate(documents)]
    named += [(f"the text with {what}", text) for what, text in HOSTILE_TEXTS.items() if _knows(tokenizer, text)]
    for where, text in named:
        ours, theirs = ids_of(tokenizer, form, text), encode(text)
        if ours != theirs:
            place = next(
                (i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs))
            )
            shown = slice(place, place + 3)
            before = tokenizer.decode_bytes(ours[max(0, place - 5) : place]).decode("utf-8", "replace")
            raise TokenizerError(
                f"FORMAT={form} cannot carry this tokenizer: in {where}, behind {before!r}, id {place} and those after "
                f"it are {ours[shown]} here and {theirs[shown]} in that library; nothing was written"
            )


def ids_of(tokenizer: Tokenizer, form: str, text: str) -> list[int]:
    """Our ids; the tokenizers library always makes special tokens of what is spelled like them."""
    specials: Mapping[str, int] = getattr(tokenizer, "special_tokens", {})
    encode: Any = tokenizer.encode
    if form == "hf" and any(token in text for token in specials):
        ids: list[int] = encode(text, allow_special=True)
        return ids
    return tokenizer.encode(text)


def _knows(tokenizer: Tokenizer, text: str) -> bool:
    """Whether the tokenizer has a token for every character of `text`."""
    try:
        tokenizer.encode(text)
    except TokenizerError:
        return False
    return True


def _load_hf(folder: Path) -> Encode:
    loaded = library("tokenizers").Tokenizer.from_file(str(folder / formats.HF_FILE))
    return lambda text: list(loaded.encode(text, add_special_tokens=False).ids)


def _load_gpt2(folder: Path) -> Encode:
    tokenizers = library("tokenizers")
    paths = str(folder / formats.VOCAB_FILE), str(folder / formats.MERGES_FILE)
    loaded = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(*paths))
    options = {key: value for key, value in hf_byte_level(use_regex=True).items() if key != "type"}
    loaded.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(**options)
    return lambda text: list(loaded.encode(text, add_special_tokens=False).ids)


def _load_tiktoken(folder: Path) -> Encode:
    ranks = read_ranks((folder / formats.RANKS_FILE).read_bytes(), formats.RANKS_FILE)
    encoding = json.loads((folder / formats.ENCODING_FILE).read_text(encoding="utf-8"))
    loaded = library("tiktoken").Encoding("exported", mergeable_ranks=ranks, **encoding)
    return lambda text: list(loaded.encode_ordinary(text))


def _load_sentencepiece(folder: Path) -> Encode:
    loaded = library("sentencepiece").SentencePieceProcessor(model_file=str(folder / formats.SPM_FILE))
    return lambda text: list(loaded.encode(text, out_type=int))


LOADERS: Mapping[str, Callable[[Path], Encode]] = {
    "hf": _load_hf,
    "tiktoken": _load_tiktoken,
    "gpt2": _load_gpt2,
    "sentencepiece": _load_sentencepiece,
}
"""Format -> what loads its files with the library they are for."""
