"""From a contestant's settings to a tokenizer of another tool: read from its file, or trained by its library."""

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from data.errors import TokenizerError
from data.files import canonical_json, sha256_file
from tokenizer.base import Tokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.config import TRAINED_OUTSIDE, TokenizerConfig
from tokenizer.foreign.hf import HFTokenizer
from tokenizer.foreign.libraries import LIBRARY_OF, library, version_of
from tokenizer.foreign.pieces import ForeignTokenizer, source_of
from tokenizer.foreign.sentencepiece_model import SentencePieceTokenizer
from tokenizer.foreign.source_file import read_source
from tokenizer.foreign.tiktoken_ranks import TiktokenTokenizer, ranks_file
from tokenizer.interop import hf_byte_level, hf_pre_tokenizer, load_gpt2
from tokenizer.pretokenize import PATTERNS

CLASSES: Mapping[str, type[ForeignTokenizer]] = {
    "hf": HFTokenizer,
    "tiktoken": TiktokenTokenizer,
    "sentencepiece": SentencePieceTokenizer,
}
"""`type` in our tokenizer file -> the class that reads it."""
_FEWEST = {"hf_bpe": 256, "hf_wordpiece": 513, "spm_bpe": 257, "spm_unigram": 257}
"""The bytes (of WordPiece twice, at the beginning of a word and inside), and a token for the unknown."""
_CONTINUED = "▁"
"""Marks a piece of WordPiece that goes on inside a word. It is no spelling of a byte, so no text can hold it."""
_UNKNOWN = "<unk>"


def file_inputs(config: TokenizerConfig) -> dict[str, Any]:
    """What decides the ids of a tokenizer that is read from files, for the list of what it was made from."""
    found: dict[str, Any] = {}
    if config.kind in LIBRARY_OF:
        found["library"] = version_of(LIBRARY_OF[config.kind])
    for key in ("path", "vocab", "merges"):
        written = getattr(config, key)
        if written is not None:
            found[f"{key}_sha256"] = sha256_file(_path(written))
    return found | {key: value for key in ("name", "pattern") if (value := getattr(config, key)) is not None}


def _path(written: str) -> Path:
    return Path(os.path.expanduser(written))  # noqa: PTH111 - Path.expanduser raises for an unknown user


def read_foreign(config: TokenizerConfig, trained_on: dict[str, Any]) -> Tokenizer:
    """The tokenizer in the files that `config` names. Raises TokenizerError for one that cannot be read or used."""
    if config.kind == "gpt2":
        assert config.vocab is not None and config.merges is not None, "checked when the configuration was made"
        for written in (config.vocab, config.merges):
            read_source(_path(written), is_text=True)
        tokenizer = load_gpt2(_path(config.vocab), _path(config.merges))
        tokenizer.trained_on = trained_on
        return tokenizer
    if config.name is not None:
        ranks, pattern = _named_encoding(config.name)
        return TiktokenTokenizer(ranks, {"pattern": pattern}, name=config.name, trained_on=trained_on)
    assert config.path is not None, "checked when the configuration was made"
    source = read_source(_path(config.path), is_text=config.kind != "sentencepiece")
    options = {} if config.pattern is None else {"pattern": PATTERNS.get(config.pattern, config.pattern)}
    return CLASSES[config.kind](source, options, name=config.path, trained_on=trained_on)


def _named_encoding(name: str) -> tuple[bytes, str]:
    """Ranks and pattern of an encoding that tiktoken knows; it fetches what it has not kept. Raises TokenizerError."""
    tiktoken = library("tiktoken")
    known = sorted(tiktoken.list_encoding_names())
    if name not in known:
        raise TokenizerError(f"tiktoken knows no encoding {name!r}; known: {', '.join(known)}")
    try:
        encoding = tiktoken.get_encoding(name)
    except OSError as error:  # what `requests` raises without a connection is one
        raise TokenizerError(
            f"tiktoken could not fetch {name}: {type(error).__name__}; connect to the net, or give its file of ranks "
            "with path and pattern"
        ) from error
    return ranks_file(encoding._mergeable_ranks), encoding._pat_str


def from_contents(contents: Mapping[str, Any]) -> ForeignTokenizer:
    """The tokenizer in our file's values. Raises TokenizerError for a damaged file and for another library's version.

    Another version may cut a text otherwise, so it is another tokenizer.
    """
    for key, kind in (("library", str), ("options", dict), ("source_base64", str), ("fingerprint", str)):
        if not isinstance(contents.get(key), kind):
            raise TokenizerError(f"{key}: expected {kind.__name__}, found {contents.get(key)!r:.80}")
    trained_on = contents.get("trained_on")
    if not isinstance(trained_on, dict | None):
        raise TokenizerError(f"trained_on: expected an object, found {trained_on!r:.80}")
    tokenizer = CLASSES[contents["type"]](
        source_of(contents["source_base64"]), contents["options"], name="its source", trained_on=trained_on
    )
    if tokenizer.library != contents["library"]:
        raise TokenizerError(
            f"it was made with {contents['library']}, and {tokenizer.library} is installed, which may give other ids; "
            "install that version, or make the tokenizer again"
        )
    for key, found in (("vocab_size", tokenizer.vocab_size), ("fingerprint", tokenizer.fingerprint())):
        if contents.get(key) != found or type(contents.get(key)) is not type(found):
            raise TokenizerError(
                f"{key} says {contents.get(key)!r}, but what is in the file gives {found!r}: it was edited or damaged"
            )
    return tokenizer


def train_outside(config: TokenizerConfig, documents: Sequence[str], trained_on: dict[str, Any]) -> ForeignTokenizer:
    """Let the library of `config.kind` learn from `documents`. The same settings and text give the same tokenizer.

    Raises TokenizerError for a vocabulary that is too small or too large for the text.
    """
    assert config.kind in TRAINED_OUTSIDE and config.vocab_size is not None, "checked with the configuration"
    fewest = _FEWEST[config.kind]
    if config.vocab_size < fewest:
        raise TokenizerError(f"vocab_size {config.vocab_size} is below the minimum of {config.kind}, {fewest}")
    train: Callable[[TokenizerConfig, Sequence[str]], bytes]
    train = _train_hf if config.kind.startswith("hf_") else _train_sentencepiece
    kind = "hf" if config.kind.startswith("hf_") else "sentencepiece"
    return CLASSES[kind](train(config, documents), name=config.kind, trained_on=trained_on)


def _train_hf(config: TokenizerConfig, documents: Sequence[str]) -> bytes:
    """The `tokenizer.json` of a BPE or WordPiece over bytes."""
    tokenizers = library("tokenizers")
    shared = {
        "vocab_size": config.vocab_size,
        "min_frequency": config.min_pair_frequency,
        "initial_alphabet": BYTE_CHARACTERS,
        "show_progress": False,
    }
    byte_level = tokenizers.decoders.ByteLevel()
    if config.kind == "hf_bpe":
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.decoder = byte_level
        trainer = tokenizers.trainers.BpeTrainer(**shared)
    else:
        model = tokenizers.models.WordPiece(
            unk_token=_UNKNOWN, continuing_subword_prefix=_CONTINUED, max_input_chars_per_word=1 << 30
        )
        tokenizer = tokenizers.Tokenizer(model)
        tokenizer.decoder = tokenizers.decoders.Sequence([tokenizers.decoders.Replace(_CONTINUED, ""), byte_level])
        trainer = tokenizers.trainers.WordPieceTrainer(
            **shared,
            # Given all of them, the library has none to number in the order of a hash table, which differs by process.
            special_tokens=[_UNKNOWN, *(_CONTINUED + character for character in BYTE_CHARACTERS)],
            continuing_subword_prefix=_CONTINUED,
        )
    stage = hf_pre_tokenizer(config.split_pattern, is_bytes=True) or hf_byte_level(use_regex=False)
    tokenizer = _with_pre_tokenizer(tokenizer, stage)
    tokenizer.train_from_iterator(documents, trainer)
    contents = json.loads(tokenizer.to_str())
    contents["added_tokens"] = []  # no text becomes one of the tokens that the trainer was given
    return canonical_json(contents).encode("utf-8")


def _with_pre_tokenizer(tokenizer: Any, stage: Mapping[str, Any]) -> Any:
    """`tokenizer` with the pre-tokenizer that `stage` describes as JSON does."""
    pre = library("tokenizers").pre_tokenizers
    made = []
    for part in stage.get("pretokenizers", [stage]):
        if part["type"] == "Split":
            pattern = library("tokenizers").Regex(part["pattern"]["Regex"])
            made.append(pre.Split(pattern, behavior="isolated"))
        else:
            made.append(pre.ByteLevel(add_prefix_space=False, use_regex=part["use_regex"]))
    tokenizer.pre_tokenizer = made[0] if len(made) == 1 else pre.Sequence(made)
    return tokenizer


def _train_sentencepiece(config: TokenizerConfig, documents: Sequence[str]) -> bytes:
    """The model file of SentencePiece: text as it is, bytes for what has no piece, and one thread.

    Several threads add up frequencies in another order, and the file names their number.
    """
    sentencepiece = library("sentencepiece")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(documents),
            model_writer=model,
            model_type=config.kind.removeprefix("spm_"),
            vocab_size=config.vocab_size,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            add_dummy_prefix=False,
            max_sentence_length=1 << 30,
            num_threads=1,
            unk_id=0,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            minloglevel=2,
        )
    except RuntimeError as error:
        said = " ".join(str(error).rpartition("] ")[2].split())[:200].rstrip(".") or "it does not say why"
        raise TokenizerError(
            f"SentencePiece could not train a {config.kind} of {config.vocab_size:,} tokens: {said}; give another "
            "vocab_size, or more training_characters"
        ) from error
    return model.getvalue()
