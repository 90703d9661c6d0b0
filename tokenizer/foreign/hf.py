"""A `tokenizer.json` of the tokenizers library as a contestant."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from data.errors import TokenizerError
from tokenizer.bytelevel import BYTE_OF_CHARACTER
from tokenizer.foreign.libraries import library
from tokenizer.foreign.pieces import MOST_VOCABULARY, ForeignTokenizer

_MODELS = ("BPE", "WordPiece", "Unigram", "WordLevel")
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")
Spelling = Callable[[str], str]


class HFTokenizer(ForeignTokenizer):
    """Added tokens that stand in a text become their ids, as in the library; what a post-processor adds is left out."""

    kind = "hf"

    def _load(self, name: str) -> list[bytes]:
        contents = _checked(self.source, name)
        self._library = _from_json(self.source, name)
        self._library.no_truncation()
        self._library.no_padding()
        vocabulary = self._library.get_vocab(with_added_tokens=True)
        size = max(vocabulary.values(), default=-1) + 1
        if size > MOST_VOCABULARY:
            raise TokenizerError(f"{name} has ids up to {size - 1:,}; up to {MOST_VOCABULARY:,} can be used")
        to_bytes = _piece_reader(contents, name)
        pieces = [b""] * size
        for token, index in vocabulary.items():
            pieces[index] = to_bytes(token)
        for index, added in self._library.get_added_tokens_decoder().items():
            pieces[index] = added.content.encode("utf-8")
        return pieces

    def _encode_group(self, texts: Sequence[str]) -> list[list[int]]:
        try:
            encodings = self._library.encode_batch_fast(list(texts), add_special_tokens=False)
        except Exception as error:
            if type(error) is not Exception:  # the library raises nothing more special
                raise
            raise TokenizerError(f"the tokenizers library refuses the text: {error}") from error
        return [encoding.ids for encoding in encodings]


def _checked(source: bytes, name: str) -> dict[str, Any]:
    """The file as JSON, with what could not be scored refused. Raises TokenizerError."""
    try:
        contents: dict[str, Any] = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise TokenizerError(f"{name} is not a whole tokenizer.json: {error}; put the file back whole") from error
    model = contents.get("model") if isinstance(contents, dict) else None
    if not isinstance(model, dict) or "vocab" not in model:
        raise TokenizerError(f"{name} is no tokenizer.json: it has no model with a vocabulary")
    if model.get("type", "BPE") not in _MODELS:
        raise TokenizerError(f"{name}: model type {model.get('type')!r} is not one of {', '.join(_MODELS)}")
    if model.get("dropout"):
        raise TokenizerError(
            f"{name}: dropout {model['dropout']} makes the ids of a text random; set model.dropout to null in the file"
        )
    return contents


def _from_json(source: bytes, name: str) -> Any:
    tokenizers = library("tokenizers")
    try:
        return tokenizers.Tokenizer.from_str(source.decode("utf-8"))
    except BaseException as error:
        # The library raises plain Exception, and where its own code fails a PanicException, which is no Exception.
        if type(error) is not Exception and type(error).__name__ not in ("PanicException", "ValueError"):
            raise
        raise TokenizerError(f"{name}: the tokenizers library cannot read it: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _piece_reader(contents: dict[str, Any], name: str) -> Callable[[str], bytes]:
    """The function from a token to the bytes it stands for, from the file's decoder. Raises TokenizerError."""
    parts = list(_parts(contents.get("decoder")))
    before = [*_parts(contents.get("pre_tokenizer")), *_parts(contents.get("normalizer"))]
    is_byte_level = any(part.get("type") == "ByteLevel" for part in [*parts, *before])
    has_byte_pieces = bool(contents["model"].get("byte_fallback"))
    spellings = [spelling for part in parts if (spelling := _spelling(part, name)) is not None]

    def to_bytes(token: str) -> bytes:
        match = _BYTE_PIECE.match(token) if has_byte_pieces else None
        if match:
            return bytes([int(match[1], 16)])
        for spelling in spellings:
            token = spelling(token)
        if is_byte_level and all(character in BYTE_OF_CHARACTER for character in token):
            return bytes(BYTE_OF_CHARACTER[character] for character in token)
        return token.encode("utf-8")

    return to_bytes


def _parts(stage: Any) -> Iterator[dict[str, Any]]:
    """The parts of a decoder, pre-tokenizer or normalizer, those inside sequences too."""
    if not isinstance(stage, dict):
        return
    if stage.get("type") == "Sequence":
        for key in ("decoders", "pretokenizers", "normalizers"):
            for part in stage.get(key) or ():
                yield from _parts(part)
    else:
        yield stage


def _spelling(part: dict[str, Any], name: str) -> Spelling | None:
    """What a part of the decoder makes of one token; None for a part that changes none."""
    kind = part.get("type")
    if kind == "Metaspace":
        mark = part.get("replacement", "▁")
        return lambda token: token.replace(mark, " ")
    if kind == "Replace":
        pattern, content = part.get("pattern", {}), part.get("content", "")
        if "String" in pattern:
            return lambda token: token.replace(pattern["String"], content)
        raise TokenizerError(f"{name}: its decoder replaces by a pattern, so a token has no fixed text")
    if kind == "WordPiece":
        prefix = part.get("prefix", "##")
        return lambda token: token.removeprefix(prefix) if token.startswith(prefix) else f" {token}"
    if kind == "BPEDecoder":
        suffix = part.get("suffix", "</w>")
        return lambda token: f"{token.removesuffix(suffix)} " if suffix and token.endswith(suffix) else token
    if kind in ("ByteLevel", "ByteFallback", "Fuse", "Strip"):
        return None
    raise TokenizerError(f"{name}: decoder type {kind!r} is not known here, so a token's text cannot be told")
