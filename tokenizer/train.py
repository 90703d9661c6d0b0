"""The entry point of training: settings of a contestant and a corpus in, a tokenizer and its training history out."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from data.errors import TokenizerError
from data.files import sha256_text
from data.inputs import borders_sha256
from data.splits import Split
from tokenizer import reference, small
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, BYTE_OF_CHARACTER, ByteTokenizer, text_of, utf8
from tokenizer.char import Alphabet, CharTokenizer, alphabet_of
from tokenizer.config import BPE_KINDS as BPE_KINDS
from tokenizer.config import FROM_FILES, TRAINED_OUTSIDE, Kind
from tokenizer.config import TokenizerConfig as TokenizerConfig
from tokenizer.foreign.libraries import LIBRARY_OF, version_of
from tokenizer.foreign.make import file_inputs, read_foreign, train_outside
from tokenizer.learn import is_small, learn
from tokenizer.pretokenize import pretokenize
from tokenizer.reference import TieBreak, Training
from tokenizer.special.unmerged import UnmergedTokenizer
from tokenizer.vocabulary import check_target, merge_strings

if TYPE_CHECKING:  # it brings numba, which small texts do not wait for
    from tokenizer.engine.counts import PretokenCounts

Engine = Literal["fast", "reference"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
_OWN = "own_settings"
TRAINER_VERSION = 1
"""Of how a tokenizer follows from text and settings. It goes up with every change of the training (engine, alphabet,
prefix, split patterns) that can give another tokenizer for the same text: files of older versions are made again."""


def provenance(
    configured: TokenizerConfig, splits: Mapping[str, Split], own_settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What a tokenizer depends on: equal provenance means that training again would give the same file.

    The merges depend on the train prefix and its documents, because no pair reaches across two of them; the base
    characters on which characters occur anywhere; nothing else of val and test enters. `own_settings` replace
    configured values for this one training (given on the command line); what they replaced is recorded, see
    `effective_settings`.
    """
    for split in splits.values():
        _require_utf8(split)
    config = replace(configured, **own_settings)
    found: dict[str, Any] = {"kind": config.kind, "trainer_version": TRAINER_VERSION}
    if config.kind in ("char", "char_bpe"):
        found["alphabet_sha256"] = sha256_text("".join(alphabet_of(split.text for split in splits.values())))
    if config.kind in FROM_FILES:
        found |= file_inputs(config)
    if config.is_trained:
        prefix = _prefix_documents(splits["train"], config.training_characters)
        found |= {
            "vocab_size": config.vocab_size,
            "min_pair_frequency": config.min_pair_frequency,
            "training_characters": sum(map(len, prefix)),
            "training_documents": len(prefix),
            "training_sha256": sha256_text("".join(prefix)),
            "training_borders_sha256": borders_sha256(np.cumsum([0, *map(len, prefix)], dtype=np.int64)),
        }
        found["split_pattern"] = config.split_pattern
    if config.kind in BPE_KINDS:
        found["tie_break"] = config.resolved_tie_break
    if config.kind in BPE_KINDS or config.special_tokens:
        found["special_tokens"] = list(config.special_tokens)
        if config.placement != "last":  # files of before had no such keys, and are what they were
            found["placement"] = config.placement
        if config.document_separator is not None:
            found["document_separator"] = config.document_separator
    if config.kind in TRAINED_OUTSIDE:
        found["library"] = version_of(LIBRARY_OF[config.kind])
    if own_settings:
        found[_OWN] = {key: {"configured": getattr(configured, key), "used": own_settings[key]} for key in own_settings}
    return found


def effective_settings(configured: TokenizerConfig, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The own settings under which a tokenizer was trained, if they still stand.

    `make tokenizer VOCAB=1000` must not be undone by the `make encode` that follows. So own settings are kept for
    as long as the configured values that they replaced are what they were; editing one of those ends them.
    """
    own = stored.get(_OWN, {})
    if any(getattr(configured, key, None) != setting["configured"] for key, setting in own.items()):
        return {}
    return {key: setting["used"] for key, setting in own.items()}


def train_tokenizer(
    configured: TokenizerConfig,
    splits: Mapping[str, Split],
    *,
    own_settings: Mapping[str, Any] | None = None,
    engine_name: Engine = "fast",
) -> tuple[Tokenizer, Training | None]:
    """Make the tokenizer of `configured` (with `own_settings` in place of some values) for the corpus `splits`.

    The training is None where nothing is learned.

    Base characters come from all splits, so that nothing is unrepresentable; merges from the train prefix only.
    Raises TokenizerError if vocab_size is below the base, naming the minimum.
    """
    trained_on = provenance(configured, splits, own_settings or {})
    config = replace(configured, **(own_settings or {}))
    if config.kind in FROM_FILES:
        return read_foreign(config, trained_on), None
    if config.kind in TRAINED_OUTSIDE:
        prefix = _prefix_documents(splits["train"], config.training_characters)
        return train_outside(config, prefix, trained_on), None
    if config.special_tokens and (config.kind == "char" or config.kind == "byte"):
        unmerged = UnmergedTokenizer(
            config.kind,
            alphabet_of(split.text for split in splits.values()),
            special_tokens=config.special_tokens,
            placement=config.placement,
            document_separator=config.document_separator,
            trained_on=trained_on,
        )
        return unmerged, None
    if config.kind == "byte":
        return ByteTokenizer(trained_on=trained_on), None
    if config.kind == "char":
        return CharTokenizer(alphabet_of(split.text for split in splits.values()), trained_on=trained_on), None
    alphabet = alphabet_of(split.text for split in splits.values()) if config.kind == "char_bpe" else BYTE_CHARACTERS
    assert config.vocab_size is not None, "checked when the configuration was made"
    reserved = len(alphabet) + len(config.special_tokens)
    check_target(config.vocab_size, reserved)
    training = learn_merges(
        _prefix_documents(splits["train"], config.training_characters),
        alphabet,
        config,
        num_merges=config.vocab_size - reserved,
        engine_name=engine_name,
    )
    tokenizer = BPETokenizer(
        alphabet,
        merge_strings(alphabet, training),
        kind="char_bpe" if config.kind == "char_bpe" else "byte_bpe",
        split_pattern=config.split_pattern,
        special_tokens=config.special_tokens,
        placement=config.placement,
        document_separator=config.document_separator,
        tie_break=config.resolved_tie_break,
        trained_on=trained_on,
    )
    return tokenizer, training


def learn_merges(
    documents: Sequence[str],
    base_tokens: Sequence[str],
    config: TokenizerConfig,
    *,
    num_merges: int,
    engine_name: Engine = "fast",
) -> Training:
    """Learn merges from `documents` with the fast engine or the reference; both give the same answer."""
    base_bytes = _base_bytes(config.kind, base_tokens)
    symbols_of = _symbol_reader(config.kind, base_tokens)
    options = _Options(
        num_merges=num_merges, min_pair_frequency=config.min_pair_frequency, tie_break=config.resolved_tie_break
    )
    if engine_name == "reference":
        parts = [part for document in documents for part in pretokenize(document, config.split_pattern)]
        return reference.train([symbols_of(part).tolist() for part in parts], base_bytes, **options)
    if config.split_pattern == "none":
        return learn([symbols_of(document) for document in documents], base_bytes, **options)
    if is_small(sum(map(len, documents))):
        pretokens = Counter(part for document in documents for part in pretokenize(document, config.split_pattern))
        sequences = [symbols_of(pretoken).tolist() for pretoken in pretokens]
        return small.train(sequences, list(pretokens.values()), base_bytes, **options)
    from tokenizer.engine.counts import count_pretokens

    counts = count_pretokens(documents, config.split_pattern)
    return learn_from_counts(counts, base_tokens, config, num_merges=num_merges)


def learn_from_counts(
    counts: "PretokenCounts", base_tokens: Sequence[str], config: TokenizerConfig, *, num_merges: int
) -> Training:
    """Learn merges from pretoken counts; equal to learning from the text that they were counted in."""
    from tokenizer.engine.counts import character_offsets
    from tokenizer.engine.loop import train

    if config.kind == "char_bpe":
        symbols = Alphabet(base_tokens).ids(text_of(counts.pool.tobytes()))
        offsets = character_offsets(counts.pool, counts.offsets)
    else:
        symbols, offsets = Alphabet(base_tokens).ids("".join(BYTE_CHARACTERS))[counts.pool], counts.offsets
    return train(
        symbols,
        offsets,
        counts.counts,
        _base_bytes(config.kind, base_tokens),
        num_merges=num_merges,
        min_pair_frequency=config.min_pair_frequency,
        tie_break=config.resolved_tie_break,
    )


class _Options(TypedDict):
    """What both engines want to know besides the text."""

    num_merges: int
    min_pair_frequency: int
    tie_break: TieBreak


def _base_bytes(kind: Kind, base_tokens: Sequence[str]) -> list[bytes]:
    if kind == "char_bpe":
        return [utf8(token) for token in base_tokens]
    return [bytes([BYTE_OF_CHARACTER[token]]) for token in base_tokens]


def _symbol_reader(kind: Kind, base_tokens: Sequence[str]) -> Callable[[str], NDArray[np.int32]]:
    """The function from a text to its base ids."""
    if kind == "char_bpe":
        return Alphabet(base_tokens).ids
    id_of_byte = Alphabet(base_tokens).ids("".join(BYTE_CHARACTERS))
    return lambda text: id_of_byte[np.frombuffer(utf8(text), np.uint8)]


def _require_utf8(split: Split) -> None:
    """Raise TokenizerError naming the split if it holds a lone surrogate, which no kind can represent."""
    try:
        utf8(split.text)
    except TokenizerError as error:
        raise TokenizerError(f"{split.name}: {error.text}") from error


def _prefix_documents(split: Split, num_chars: int | None) -> list[str]:
    """The documents of the first `num_chars` characters; the last one may be cut short."""
    documents = split.documents()
    if num_chars is None:
        return documents
    prefix = []
    for document in documents:
        if num_chars <= 0:
            break
        prefix.append(document[:num_chars])
        num_chars -= len(document)
    return prefix
