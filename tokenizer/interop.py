"""Vocabularies of other tools: GPT-2's two files in; tiktoken's ranks and the tokenizers library's JSON out."""

import hashlib
import os
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from data.errors import DataError, TokenizerError
from data.files import read_json, read_text, sha256_file
from tokenizer.bpe import BPETokenizer
from tokenizer.pretokenize import PATTERNS, SplitPattern

END_OF_TEXT = "<|endoftext|>"
_NUM_BYTES = 256
_VERSION_LINE = "#version:"  # GPT-2's own ends with 0.2, other tools add who wrote the file
_GPT2_URL = "https://openaipublic.blob.core.windows.net/gpt-2/encodings/main/"
_GPT2_FILES = ("encoder.json", "vocab.bpe")


def load_gpt2(encoder_json: Path, vocab_bpe: Path) -> BPETokenizer:
    """GPT-2's vocabulary, or another in its format, from its two files; the ids are exactly those of `encoder_json`.

    `encoder_json` maps every token to its id: the 256 bytes (in an order of its own, not byte order), then one token
    for each merge, then `<|endoftext|>`, which may be missing. `vocab_bpe` holds the merges, one `left right` a line,
    and may begin with `#version: 0.2`. Line ends may be CRLF, and a byte order mark may come first: some editors put
    them there, and no token is spelled with either. Raises TokenizerError naming file and line, token or id where the
    two do not fit together.
    """
    token_of = _read_encoder(encoder_json)
    merges = _read_merges(vocab_bpe)
    num_text = _NUM_BYTES + len(merges)
    if len(token_of) not in (num_text, num_text + 1):
        raise TokenizerError(
            f"{encoder_json} holds {len(token_of)} tokens, but 256 bytes, the {len(merges)} merges of {vocab_bpe} and "
            f"{END_OF_TEXT} are {num_text + 1}: one of the two files is cut short, or they belong to different "
            "vocabularies"
        )
    for rank, (left, right) in enumerate(merges):
        found = token_of[_NUM_BYTES + rank]
        if found != left + right:
            raise TokenizerError(
                f"{encoder_json}: id {_NUM_BYTES + rank} is {found!r}, but merge {rank} of {vocab_bpe} makes "
                f"{left + right!r}; take both files from the same vocabulary"
            )
    special = token_of[num_text:]
    if special not in ([], [END_OF_TEXT]):
        raise TokenizerError(f"{encoder_json}: id {num_text} is {special[0]!r}, not {END_OF_TEXT}")
    try:
        return BPETokenizer(
            token_of[:_NUM_BYTES],
            merges,
            kind="byte_bpe",
            split_pattern="gpt2",
            special_tokens=special,
            trained_on={
                "source": "encoder.json and vocab.bpe",
                "encoder_sha256": sha256_file(encoder_json),
                "merges_sha256": sha256_file(vocab_bpe),
            },
        )
    except TokenizerError as error:
        raise TokenizerError(f"{encoder_json} and {vocab_bpe}: {error}") from error


def _read_encoder(path: Path) -> list[str]:
    """The tokens in the order of their ids."""
    try:
        contents = read_json(path)
    except DataError as error:
        raise TokenizerError(str(error)) from error
    if not isinstance(contents, dict):
        raise TokenizerError(f"{path}: expected an object from token to id, found {type(contents).__name__}")
    token_of: dict[int, str] = {}
    for token, index in contents.items():
        if type(index) is not int or not 0 <= index < len(contents):
            raise TokenizerError(f"{path}: {token!r} has id {index!r}; {len(contents)} tokens have ids from 0 upwards")
        if index in token_of:
            raise TokenizerError(f"{path}: id {index} stands twice, for {token_of[index]!r} and {token!r}")
        token_of[index] = token
    return [token_of[index] for index in range(len(token_of))]


def _read_merges(path: Path) -> list[tuple[str, str]]:
    """The merges in file order. Tokens may begin with `#`, so only the very first line can be anything else."""
    try:
        text = read_text(path).removeprefix("\ufeff")
        lines = text.replace("\r\n", "\n").split("\n")  # not splitlines(): it knows more line ends than files have
    except DataError as error:
        raise TokenizerError(str(error)) from error
    if lines[-1] == "":
        lines.pop()  # what follows the last line end
    num_skipped = 1 if lines and lines[0].startswith(_VERSION_LINE) else 0
    merges = []
    for number, line in enumerate(lines[num_skipped:], start=num_skipped + 1):
        left, space, right = line.partition(" ")
        if not (left and space and right) or " " in right:
            raise TokenizerError(f"{path}: line {number} is {line!r}, not two tokens with one space between them")
        merges.append((left, right))
    return merges


def find_gpt2_files() -> tuple[Path, Path] | None:
    """GPT-2's encoder.json and vocab.bpe in tiktoken's download cache, if it fetched them earlier; no network.

    The folder is the one that tiktoken itself uses: TIKTOKEN_CACHE_DIR, DATA_GYM_CACHE_DIR, or one of its own below
    the folder for temporary files; a file's name there is the SHA-1 of its address.
    """
    chosen = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    folder = Path(chosen) if chosen else Path(tempfile.gettempdir()) / "data-gym-cache"
    encoder, merges = (folder / hashlib.sha1((_GPT2_URL + name).encode()).hexdigest() for name in _GPT2_FILES)
    return (encoder, merges) if encoder.exists() and merges.exists() else None


def to_tiktoken_ranks(tokenizer: BPETokenizer) -> dict[bytes, int]:
    """`mergeable_ranks` of `tiktoken.Encoding`: the bytes of every token but the special ones -> its id.

    Raises TokenizerError for a character BPE (tiktoken starts from single bytes), and for a merge that can never
    happen. Training learns no such merge, but a table written by other means may hold one: tiktoken looks a merge up
    by the bytes it makes, not by its two halves, and would make it where we do not.
    """
    if tokenizer.kind != "byte_bpe":
        raise TokenizerError(
            f"a {tokenizer.kind} tokenizer cannot be exported to tiktoken, which starts from single bytes; "
            "train a byte_bpe"
        )
    rank_of = {pair: rank for rank, pair in enumerate(tokenizer.merges)}
    for rank, (left, right) in enumerate(tokenizer.merges):
        pieces = _merge_by_rank(list(left + right), rank_of)
        if len(pieces) > 1:
            raise TokenizerError(
                f"merge {rank} ({left!r}, {right!r}) can never happen, because {left + right!r} alone becomes "
                f"{pieces}, and tiktoken would make it all the same; this table cannot be exported to tiktoken"
            )
    return {tokenizer.token_bytes[index]: index for index in tokenizer.itos}


def _merge_by_rank(pieces: list[str], rank_of: dict[tuple[str, str], int]) -> list[str]:
    """Merge the pair of lowest rank, the leftmost first, until none is left; for the few bytes of one token."""
    never = len(rank_of)
    while len(pieces) > 1:
        rank, position = min((rank_of.get(pair, never), i) for i, pair in enumerate(pairwise(pieces)))
        if rank == never:
            break
        pieces[position : position + 2] = [pieces[position] + pieces[position + 1]]
    return pieces


def to_tiktoken_arguments(tokenizer: BPETokenizer, name: str) -> dict[str, Any]:
    """Everything for `tiktoken.Encoding(**arguments)`; raises what `to_tiktoken_ranks` raises."""
    return {
        "name": name,
        "pat_str": PATTERNS.get(tokenizer.split_pattern, r"[\s\S]+"),
        "mergeable_ranks": to_tiktoken_ranks(tokenizer),
        "special_tokens": dict(tokenizer.special_tokens),
    }


def to_hf_json(tokenizer: BPETokenizer) -> dict[str, Any]:
    """The contents of a `tokenizer.json` for the tokenizers library (0.20 or newer), with the same ids.

    Two differences cannot be written into the file: there, special tokens that stand in a text always become their
    ids, as with `allow_special=True`; and what is a letter or a number follows that library's edition of Unicode, so
    that characters younger than it may be cut differently. A character that a character BPE does not know is an error
    there, too. Raises TokenizerError for a special token spelled like an ordinary one, because that library keeps
    both in one table.
    """
    for token in tokenizer.special_tokens:
        if token in tokenizer.stoi:
            raise TokenizerError(
                f"special token {token!r} is spelled like the ordinary token {tokenizer.stoi[token]}, and the "
                "tokenizers library keeps both in one table; give the special token another name"
            )
    is_bytes = tokenizer.kind == "byte_bpe"
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(token, index) for token, index in tokenizer.special_tokens.items()],
        "normalizer": None,
        "pre_tokenizer": hf_pre_tokenizer(tokenizer.split_pattern, is_bytes=is_bytes),
        "post_processor": None,
        "decoder": hf_byte_level(use_regex=False) if is_bytes else {"type": "Fuse"},
        "model": {
            "type": "BPE",
            "dropout": None,
            # Without an unknown token that library drops unknown characters in silence; with one that is not in the
            # vocabulary it refuses them.
            "unk_token": None if is_bytes else _absent_token(tokenizer),
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            # That library numbers added tokens after the vocabulary, unless they stand in it.
            "vocab": (dict(tokenizer.special_tokens) if tokenizer.placement == "first" else {}) | tokenizer.stoi,
            "merges": [list(pair) for pair in tokenizer.merges],
        },
    }


def _absent_token(tokenizer: BPETokenizer) -> str:
    name = "<no such token>"
    while name in tokenizer.stoi or name in tokenizer.special_tokens:
        name = f"<{name}>"
    return name


def _added_token(content: str, index: int) -> dict[str, Any]:
    return {
        "id": index,
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def hf_byte_level(*, use_regex: bool) -> dict[str, Any]:
    """The library's stage that spells bytes, as pre-tokenizer or decoder; `use_regex` cuts by GPT-2's pattern."""
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def hf_pre_tokenizer(split_pattern: SplitPattern, *, is_bytes: bool) -> dict[str, Any] | None:
    """Cut by the pattern, then spell as bytes; the library's ByteLevel has GPT-2's pattern built in."""
    if is_bytes and split_pattern in ("none", "gpt2"):
        return hf_byte_level(use_regex=split_pattern == "gpt2")
    if split_pattern == "none":
        return None
    split = {"type": "Split", "pattern": {"Regex": PATTERNS[split_pattern]}, "behavior": "Isolated", "invert": False}
    if not is_bytes:
        return split
    return {"type": "Sequence", "pretokenizers": [split, hf_byte_level(use_regex=False)]}
