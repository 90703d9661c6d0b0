"""One of our tokenizers as the files of another tool. What a format cannot carry is refused with the reason."""

import json
import struct
from collections.abc import Callable, Mapping

from data.errors import TokenizerError
from data.files import canonical_json
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, ByteTokenizer
from tokenizer.char import CharTokenizer
from tokenizer.foreign import wire
from tokenizer.foreign.pieces import ForeignTokenizer
from tokenizer.foreign.sentencepiece_model import SPACE_MARK
from tokenizer.foreign.tiktoken_ranks import ranks_file
from tokenizer.interop import END_OF_TEXT, to_hf_json, to_tiktoken_arguments
from tokenizer.special.unmerged import UnmergedTokenizer

HF_FILE, SPM_FILE = "tokenizer.json", "tokenizer.model"
RANKS_FILE, ENCODING_FILE = "ranks.tiktoken", "encoding.json"
VOCAB_FILE, MERGES_FILE = "encoder.json", "vocab.bpe"
_BPE_MODEL = 2  # SentencePiece's number for it
_MINUS_ONE = (1 << 64) - 1  # as a whole number of the wire format
Files = dict[str, bytes]


def files_of(tokenizer: Tokenizer, form: str) -> Files:
    """Name -> contents of the files that hold `tokenizer` in the format `form`, one of FORMATS.

    Raises TokenizerError with the reason where the format cannot carry it.
    """
    if isinstance(tokenizer, ForeignTokenizer):
        return _own_file(tokenizer, form)
    return FORMATS[form](_as_bpe(tokenizer), tokenizer.kind)


def _own_file(tokenizer: ForeignTokenizer, form: str) -> Files:
    if form != tokenizer.kind:
        raise TokenizerError(
            f"a tokenizer of kind {tokenizer.kind} comes from another tool and is exported as FORMAT={tokenizer.kind} "
            "only"
        )
    if form == "tiktoken":
        encoding = {"pat_str": tokenizer.options["pattern"], "special_tokens": {}}
        return {RANKS_FILE: tokenizer.source, ENCODING_FILE: _json(encoding)}
    return {HF_FILE if form == "hf" else SPM_FILE: tokenizer.source}


def _as_bpe(tokenizer: Tokenizer) -> BPETokenizer:
    """The same ids as a BPE; characters and bytes are BPE without merges."""
    if isinstance(tokenizer, UnmergedTokenizer):
        return tokenizer.bpe
    if isinstance(tokenizer, CharTokenizer):
        return BPETokenizer(tokenizer.base_tokens, [], kind="char_bpe")
    if isinstance(tokenizer, ByteTokenizer):
        return BPETokenizer(BYTE_CHARACTERS, [], kind="byte_bpe")
    assert isinstance(tokenizer, BPETokenizer), "these are all kinds of this project"
    return tokenizer


def _json(value: Mapping[str, object]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8")


def _hf(tokenizer: BPETokenizer, kind: str) -> Files:
    return {HF_FILE: _json(to_hf_json(tokenizer))}


def _tiktoken(tokenizer: BPETokenizer, kind: str) -> Files:
    if tokenizer.kind != "byte_bpe":
        raise TokenizerError(f"a {kind} tokenizer cannot be exported to tiktoken, which starts from single bytes")
    arguments = to_tiktoken_arguments(tokenizer, "exported")
    encoding = {key: arguments[key] for key in ("pat_str", "special_tokens")}
    return {RANKS_FILE: ranks_file(arguments["mergeable_ranks"]), ENCODING_FILE: _json(encoding)}


def _gpt2(tokenizer: BPETokenizer, kind: str) -> Files:
    if kind != "byte_bpe" or tokenizer.split_pattern != "gpt2":
        raise TokenizerError(
            f"GPT-2's two files hold no pattern, and whoever reads them cuts with split_pattern gpt2; this is a {kind} "
            f"with split_pattern {tokenizer.split_pattern}; export it as FORMAT=hf"
        )
    for token in tokenizer.special_tokens:
        if token in tokenizer.stoi:
            raise TokenizerError(f"special token {token!r} is spelled like an ordinary one, and one file holds both")
    if tokenizer.placement == "first" or list(tokenizer.special_tokens) not in ([], [END_OF_TEXT]):
        raise TokenizerError(
            f"GPT-2's two files hold no special token but {END_OF_TEXT}, as the last id, and this tokenizer has "
            f"{', '.join(map(repr, tokenizer.special_tokens))}, placed {tokenizer.placement}; export it as FORMAT=hf"
        )
    encoder = canonical_json(tokenizer.stoi | dict(tokenizer.special_tokens)).encode("utf-8")
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in tokenizer.merges)]
    return {VOCAB_FILE: encoder, MERGES_FILE: ("\n".join(lines) + "\n").encode("utf-8")}


def _sentencepiece(tokenizer: BPETokenizer, kind: str) -> Files:
    """A BPE model of SentencePiece. The merge that was learned first has the highest score."""
    if tokenizer.kind != "char_bpe":
        raise TokenizerError(f"a {kind} tokenizer merges bytes, and SentencePiece merges characters; export it as hf")
    if tokenizer.split_pattern != "none":
        raise TokenizerError(
            f"a model of SentencePiece holds no pattern to cut by, and this tokenizer has split_pattern "
            f"{tokenizer.split_pattern}; export it as FORMAT=hf"
        )
    if SPACE_MARK in tokenizer.stoi:
        raise TokenizerError(
            f"SentencePiece writes a space as {SPACE_MARK!r} (U+2581), and this tokenizer has a token for that "
            "character itself; export it as FORMAT=hf"
        )
    if any("\0" in token for token in tokenizer.tokens):
        raise TokenizerError("SentencePiece takes no piece with U+0000, and this tokenizer has one; export it as hf")
    spelled = [token.replace(" ", SPACE_MARK) for token in tokenizer.tokens]
    unknown = "<unk>"
    while unknown in {*spelled, *tokenizer.special_tokens}:
        unknown = f"<{unknown}>"
    for token in tokenizer.special_tokens:
        if token in spelled:
            raise TokenizerError(f"special token {token!r} is spelled like an ordinary one, and one table holds both")
    num_base = len(tokenizer.base_tokens)
    pieces = [
        _piece(token, float(min(0, num_base - index)) if index >= num_base else -float(len(spelled)), wire.NORMAL)
        for index, token in enumerate(spelled)
    ]
    special = [_piece(token, 0.0, wire.CONTROL) for token in tokenizer.special_tokens]
    pieces = [*special, *pieces] if tokenizer.placement == "first" else [*pieces, *special]
    pieces.append(_piece(unknown, 0.0, wire.UNKNOWN))
    trainer = wire.varint_field(3, _BPE_MODEL) + wire.varint_field(4, len(pieces))
    trainer += wire.varint_field(40, len(pieces) - 1)  # the id of the unknown, which comes last
    trainer += b"".join(wire.varint_field(field, _MINUS_ONE) for field in (41, 42, 43))  # no begin, end or padding
    trainer += wire.bytes_field(45, unknown.encode("utf-8"))
    as_it_is = wire.bytes_field(1, b"identity") + wire.varint_field(3, 0) + wire.varint_field(4, 0)
    records = [wire.bytes_field(1, piece) for piece in pieces]
    return {SPM_FILE: b"".join([*records, wire.bytes_field(2, trainer), wire.bytes_field(3, as_it_is)])}


def _piece(text: str, score: float, kind: int) -> bytes:
    score_bytes = wire.fixed32_field(2, struct.pack("<f", score))
    return wire.bytes_field(1, text.encode("utf-8")) + score_bytes + wire.varint_field(3, kind)


FORMATS: Mapping[str, Callable[[BPETokenizer, str], Files]] = {
    "hf": _hf,
    "tiktoken": _tiktoken,
    "gpt2": _gpt2,
    "sentencepiece": _sentencepiece,
}
"""Format -> what makes its files."""
