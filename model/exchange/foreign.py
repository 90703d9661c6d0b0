"""Models that others trained: any causal language model of transformers in a local folder, scored by our own rules.

Nothing is fetched, no code of the folder is run (`trust_remote_code` stays off), and only safetensors are read. Weights
that the file lacks would be random, so a file that does not fill the model is refused.

Shapes: B batch, T time (tokens), V vocabulary, n tokens, D documents.
"""

import importlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from data.config import require
from data.errors import CheckpointError, ConfigError, DataError, TokenizerError
from data.numbers import shown
from model.gpt import MiniGPT
from model.windows import Scores, score_tokens
from tokenizer.base import Int64Array

MOST_CONTEXT = 1024
"""Tokens of a window where none is given: of models that take more, longer windows are slow and seldom better."""
_LOGITS_AT_ONCE = 1 << 26  # 256 MiB of float32
_INSTALL = "pip install -c constraints.txt transformers safetensors"
_LONGEST_SHOWN = 30


@dataclass(frozen=True)
class ForeignModel:
    """A causal language model with its tokenizer, both of transformers, on the CPU in float32."""

    folder: Path
    module: nn.Module
    tokenizer: Any
    architecture: str
    """The name of its class."""
    block_size: int
    """Tokens of a window."""
    vocab_size: int
    """Logits of a position."""
    context: tuple[int, ...]
    """What every document continues: the tokenizer's token for a beginning, or the ids of a newline."""
    context_in_words: str

    @property
    def num_parameters(self) -> int:
        """All weights, each counted once."""
        return sum(parameter.numel() for parameter in self.module.parameters())


@dataclass(frozen=True)
class ForeignScore:
    """The losses of documents under a foreign model."""

    nats: np.ndarray[Any, np.dtype[np.float64]]
    """(D,) the sum over each document's tokens, under sliding windows."""
    disjoint_total_nats: float
    """Over all documents, under disjoint windows."""
    num_chars: Int64Array
    """(D,) characters of each document."""
    num_tokens: int
    stride: int
    """Tokens between sliding windows."""


def import_transformers() -> Any:
    """The library, without its progress bars. Raises ConfigError where it is not installed."""
    try:
        library = importlib.import_module("transformers")
        importlib.import_module("safetensors")
    except ModuleNotFoundError as error:
        raise ConfigError(f"the package {error.name} is not installed; `{_INSTALL}` installs it") from error
    library.utils.logging.set_verbosity(logging.CRITICAL)
    library.utils.logging.disable_progress_bar()
    return library


@contextmanager
def explained(folder: Path, what: str) -> Iterator[None]:
    """Turn what transformers raises for a folder that it cannot use into one sentence."""
    try:
        yield
    except (ConfigError, CheckpointError, TokenizerError):
        raise
    # The library states no set of errors: for a damaged file it raises those of JSON, of Rust's tokenizers (a plain
    # Exception), of safetensors, and of its own code.
    except Exception as error:
        cause = " ".join(str(error).split())[:300] or type(error).__name__
        raise CheckpointError(f"{folder}: transformers cannot load {what} ({type(error).__name__}: {cause})") from error


def load_foreign(folder: Path, *, block_size: int | None = None) -> ForeignModel:
    """The model and tokenizer in `folder`. Raises CheckpointError, TokenizerError or ConfigError in one sentence.

    `block_size` None is the model's longest context, but at most MOST_CONTEXT tokens.
    """
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is no folder; it must hold config.json, *.safetensors and a tokenizer")
    weights = sorted(folder.glob("*.safetensors"))
    if not (folder / "config.json").is_file() or not weights:
        raise CheckpointError(
            f"{folder} lacks {'*.safetensors' if not weights else 'config.json'}; pickled weights (*.bin) are not "
            "read, save the model with safetensors"
        )
    transformers = import_transformers()
    safely = {"local_files_only": True, "trust_remote_code": False}
    with explained(folder, "the configuration"):
        config = transformers.AutoConfig.from_pretrained(folder, **safely)
    with explained(folder, "a tokenizer"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **safely)
    with explained(folder, "a causal language model"):
        _check_size(transformers, config, weights, folder)
        module, info = transformers.AutoModelForCausalLM.from_pretrained(
            folder, config=config, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **safely
        )
    lacking = sorted(map(str, {*info["missing_keys"], *info["mismatched_keys"]}))
    if lacking:
        raise CheckpointError(
            f"{folder}: its files lack {len(lacking)} weights of {type(module).__name__}, such as {lacking[0]}, which "
            "would be random; put back the whole folder"
        )
    context, in_words = _context_of(tokenizer, folder)
    return ForeignModel(
        folder=folder,
        module=module.eval(),
        tokenizer=tokenizer,
        architecture=type(module).__name__,
        block_size=_block_size(config, block_size, folder),
        vocab_size=int(config.get_text_config().vocab_size),
        context=context,
        context_in_words=in_words,
    )


def _check_size(transformers: Any, config: Any, weights: Sequence[Path], folder: Path) -> None:
    """Raise CheckpointError if the files are too small for the model of `config`, before it is given memory."""
    with torch.device("meta"):
        skeleton = transformers.AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    wanted = sum(parameter.numel() for parameter in skeleton.parameters())
    found = sum(path.stat().st_size for path in weights)
    if wanted > found:
        raise CheckpointError(
            f"{folder}: config.json describes {wanted:,} weights, but the files hold {found:,} bytes; put back the "
            "file that belongs to it"
        )


def _block_size(config: Any, wanted: int | None, folder: Path) -> int:
    """Tokens of a window. Raises ConfigError for more than the model can take."""
    longest = getattr(config.get_text_config(), "max_position_embeddings", None)
    if wanted is None:
        return min(MOST_CONTEXT, longest) if isinstance(longest, int) else MOST_CONTEXT
    require(wanted >= 1, f"the block must be at least 1 token, found {wanted}")
    if isinstance(longest, int):
        require(wanted <= longest, f"{folder} takes at most {longest:,} tokens, found a block of {wanted:,}")
    return wanted


def _context_of(tokenizer: Any, folder: Path) -> tuple[tuple[int, ...], str]:
    if tokenizer.bos_token_id is not None:
        return (int(tokenizer.bos_token_id),), f"the token {tokenizer.bos_token} with which its documents begin"
    ids = encode(tokenizer, "\n")
    if not ids:
        raise TokenizerError(
            f"{folder}: its tokenizer has no token for the beginning of a document and encodes a newline as nothing, "
            "but the first token needs something before it"
        )
    return tuple(ids), "one newline"


def encode(tokenizer: Any, text: str) -> list[int]:
    """The ids of `text` alone, without tokens around it."""
    ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    return ids


def score_documents(model: ForeignModel, documents: Sequence[str], *, stride: int | None = None) -> ForeignScore:
    """Score every token of every document exactly once, each document after the model's context.

    `stride` None is half the block. Raises DataError where there is no character, TokenizerError for a document that
    does not survive encoding and decoding: bits of another text would not be bits of this one.
    """
    num_chars = np.array([len(document) for document in documents], np.int64)
    if not num_chars.sum():
        raise DataError("there is no character to score; give some text")
    ids = [_checked_ids(model, document, number) for number, document in enumerate(documents, start=1)]
    offsets = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    stride = max(1, model.block_size // 2) if stride is None else stride
    require(1 <= stride <= model.block_size, f"stride {stride} is not from 1 to the block of {model.block_size}")
    scores = _scores(model, torch.tensor([one for of_document in ids for one in of_document]), offsets, stride)
    sums = np.concatenate([[0.0], np.cumsum(scores.sliding, dtype=np.float64)])
    return ForeignScore(
        nats=np.diff(sums[offsets]),
        disjoint_total_nats=float(scores.disjoint.sum(dtype=np.float64)),
        num_chars=num_chars,
        num_tokens=int(offsets[-1]),
        stride=stride,
    )


def _checked_ids(model: ForeignModel, document: str, number: int) -> list[int]:
    ids = encode(model.tokenizer, document)
    decoded = model.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    if decoded != document:
        at = first_difference(decoded, document)
        raise TokenizerError(
            f"{model.folder}: document {number} does not survive its tokenizer: character {at} is "
            f"{shown(document[at : at + _LONGEST_SHOWN])}, and comes back as "
            f"{shown(decoded[at : at + _LONGEST_SHOWN])}; its bits would be those of another text"
        )
    if ids and max(ids) >= model.vocab_size:
        raise TokenizerError(
            f"{model.folder}: its tokenizer gives id {max(ids)}, but its model has {model.vocab_size} tokens; they "
            "do not belong together"
        )
    return ids


def first_difference(left: Sequence[Any], right: Sequence[Any]) -> int:
    """The first place at which two texts or lists of ids differ; the end of the shorter where one begins the other."""
    pairs = zip(left, right, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


class _AsMiniGPT(nn.Module):
    """What `score_tokens` calls of a model: here the hidden states are the logits already."""

    def __init__(self, model: ForeignModel) -> None:
        super().__init__()
        self.module = model.module
        self.config = SimpleNamespace(block_size=model.block_size, vocab_size=model.vocab_size)

    def hidden(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (B, T, V) for `ids` (B, T)."""
        logits: torch.Tensor = self.module(input_ids=ids, use_cache=False).logits
        return logits

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """The same."""
        return hidden


def _scores(model: ForeignModel, ids: torch.Tensor, offsets: Int64Array, stride: int) -> Scores:
    return score_tokens(
        cast(MiniGPT, _AsMiniGPT(model)),
        ids,
        offsets,
        list(model.context),
        stride=stride,
        batch_size=max(1, _LOGITS_AT_ONCE // (model.block_size * model.vocab_size)),
    )
