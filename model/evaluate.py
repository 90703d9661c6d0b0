"""Nats per token -> bits per character. docs/method.md has the rules; every figure comes from stored losses."""

import json
import math
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import DataError, ReportError, TokenizerError, command
from data.files import atomic_write
from model.gpt import MiniGPT
from model.settings import EvaluateConfig
from model.windows import Scores, ScoringError, score_tokens
from tokenizer.base import Int64Array, Tokenizer, separator_of, token_lengths
from tokenizer.encode_splits import EncodedSplit

_DTYPES = {"nats": np.float32, "token_num_chars": np.int32, "token_num_bytes": np.int32, "document_offsets": np.int64}
_METADATA = {
    "text_sha256": str,
    "tokenizer_fingerprint": str,
    "stride": int,
    "block_size": int,
    "disjoint_total_nats": float,
}
_ROUNDING = 1e-4  # a loss near zero may come out a little below it
_LARGEST_EXPONENT = 700.0  # exp() beyond it leaves float64


@dataclass(frozen=True)
class Evaluation:
    """One split under one model: the loss of every token, and what it was measured on."""

    nats: NDArray[np.float32]
    """(n,) loss of each token under sliding windows."""
    token_num_chars: NDArray[np.int32]
    """(n,) characters that begin in each token."""
    token_num_bytes: NDArray[np.int32]
    """(n,) UTF-8 bytes of each token."""
    document_offsets: Int64Array
    """(D+1,) document d is tokens o[d] … o[d+1] - 1."""
    disjoint_total_nats: float
    """Sum of the losses under disjoint windows."""
    text_sha256: str
    """Hash of the text that was scored."""
    tokenizer_fingerprint: str
    """Tokenizer of the ids."""
    stride: int
    """Tokens between sliding windows."""
    block_size: int
    """Tokens in a window."""

    @property
    def total_nats(self) -> float:
        """Sum of all losses, in float64."""
        return float(self.nats.sum(dtype=np.float64))

    @property
    def num_chars(self) -> int:
        """Characters scored."""
        return int(self.token_num_chars.sum(dtype=np.int64))

    @property
    def num_bytes(self) -> int:
        """UTF-8 bytes scored."""
        return int(self.token_num_bytes.sum(dtype=np.int64))

    @property
    def bits_per_char(self) -> float:
        """Total bits over characters."""
        return self.total_nats / math.log(2) / self.num_chars

    @property
    def bits_per_byte(self) -> float:
        """Total bits over UTF-8 bytes."""
        return self.total_nats / math.log(2) / self.num_bytes

    @property
    def disjoint_bits_per_char(self) -> float:
        """Total bits over characters, under disjoint windows."""
        return self.disjoint_total_nats / math.log(2) / self.num_chars

    def word_perplexity(self, num_words: int) -> float | None:
        """exp(nats per word) for the stated number of words; None without words or beyond float64."""
        if num_words == 0 or self.total_nats / num_words > _LARGEST_EXPONENT:
            return None
        return math.exp(self.total_nats / num_words)


def evaluate_split(
    model: MiniGPT,
    split: EncodedSplit,
    tokenizer: Tokenizer,
    config: EvaluateConfig,
    *,
    progress: bool = False,
) -> Evaluation:
    """Score every token of `split` exactly once; every document is read after one newline or separator.

    Raises DataError for an empty split or foreign ids, ReportError when the figure cannot be true (see
    `check_plausible`), and ScoringError when characters or bytes scored are not those of the text.
    """
    if not len(split.ids):
        raise DataError(f"split {split.name!r} ({split.path}) is empty: there is nothing to score; give it text")
    if split.tokenizer_fingerprint != tokenizer.fingerprint():
        raise DataError(
            f"{split.path} was encoded by tokenizer {split.tokenizer_fingerprint[:12]}…, not by "
            f"{tokenizer.fingerprint()[:12]}…; encode the split again"
        )
    stride = config.stride_for(model.config.block_size)
    scores = score_tokens(
        model,
        split.ids,
        split.document_offsets,
        context_of(tokenizer),
        stride=stride,
        batch_size=config.batch_size,
        description=f"scoring {split.name}" if progress else None,
    )
    evaluation = _evaluation_of(scores, split, tokenizer, stride, model.config.block_size)
    check_lengths(evaluation, split)
    check_plausible(evaluation, split.name, config.alarm_below_bits_per_char)
    return evaluation


def _evaluation_of(
    scores: Scores, split: EncodedSplit, tokenizer: Tokenizer, stride: int, block_size: int
) -> Evaluation:
    num_chars, num_bytes = token_lengths(tokenizer, split.ids.numpy(), split.document_offsets)
    return Evaluation(
        nats=scores.sliding,
        token_num_chars=num_chars.astype(np.int32),
        token_num_bytes=num_bytes.astype(np.int32),
        document_offsets=split.document_offsets,
        disjoint_total_nats=float(scores.disjoint.sum(dtype=np.float64)),
        text_sha256=split.text_sha256,
        tokenizer_fingerprint=split.tokenizer_fingerprint,
        stride=stride,
        block_size=block_size,
    )


def check_lengths(evaluation: Evaluation, split: EncodedSplit) -> None:
    """Raise ScoringError unless the scored tokens hold exactly the characters and bytes of the text."""
    if (evaluation.num_chars, evaluation.num_bytes) != (split.num_chars, split.num_bytes):
        raise ScoringError(
            f"{split.name}: scored {evaluation.num_chars} characters and {evaluation.num_bytes} bytes, the text has "
            f"{split.num_chars} and {split.num_bytes}"
        )


def check_plausible(evaluation: Evaluation, name: str, alarm_below: float) -> None:
    """Raise ReportError for a figure that is no triumph but a fault: not finite, or below the alarm."""
    broken = np.flatnonzero(~np.isfinite(evaluation.nats))
    if len(broken):
        raise ReportError(
            f"{name}: {len(broken)} of {len(evaluation.nats)} losses are not finite, the first at token {broken[0]}; "
            "the model is broken, train it again with a lower learning_rate"
        )
    if evaluation.bits_per_char < alarm_below:
        raise ReportError(
            f"{name}: {evaluation.bits_per_char:.4f} bits per character is below the alarm of {alarm_below}: a mini "
            "model does not predict real text so well, so look for val or test text inside train; if the text is "
            "synthetic or that repetitive, lower evaluate.alarm_below_bits_per_char"
        )


def context_of(tokenizer: Tokenizer) -> list[int]:
    """What the model reads before every document: the tokenizer's separator, or else the ids of a newline.

    Raises TokenizerError if a newline has no ids.
    """
    if (separator := separator_of(tokenizer)) is not None:
        return [separator]
    ids = tokenizer.encode("\n")
    if not ids:
        raise TokenizerError(
            f"tokenizer {tokenizer.fingerprint()[:12]}… encodes a newline as nothing, but the model reads one before "
            "every document; use a tokenizer that keeps newlines"
        )
    return ids


def write_nats(path: Path, evaluation: Evaluation) -> None:
    """Write the losses with all that later questions need: lengths, document offsets, hashes."""
    metadata = {
        "text_sha256": evaluation.text_sha256,
        "tokenizer_fingerprint": evaluation.tokenizer_fingerprint,
        "stride": evaluation.stride,
        "block_size": evaluation.block_size,
        "disjoint_total_nats": evaluation.disjoint_total_nats,
    }
    with atomic_write(path) as file:
        np.savez_compressed(
            file,
            nats=evaluation.nats,
            token_num_chars=evaluation.token_num_chars,
            token_num_bytes=evaluation.token_num_bytes,
            document_offsets=evaluation.document_offsets.astype(np.int64),
            metadata=np.array(json.dumps(metadata)),
        )


def read_nats(path: Path) -> Evaluation:
    """Read what `write_nats` wrote. Raises ReportError for a missing, damaged or inconsistent file."""
    mend = f"remove it and run {command('make compare')} to evaluate again"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        metadata: dict[str, Any] = json.loads(str(arrays.pop("metadata")))
        evaluation = Evaluation(**arrays, **metadata)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ReportError(f"cannot read {path} ({type(error).__name__}: {error}); {mend}") from error
    for name, dtype in _DTYPES.items():
        array = getattr(evaluation, name)
        if array.dtype != dtype or array.ndim != 1:
            raise ReportError(
                f"{path}: {name} is {array.dtype} of shape {array.shape}, not {np.dtype(dtype)} in one row; {mend}"
            )
        if not len(array) or not np.isfinite(array).all() or array.min() < -_ROUNDING:
            raise ReportError(f"{path}: {name} is empty, or holds a number that is negative or not finite; {mend}")
    for name, kind in _METADATA.items():
        if type(getattr(evaluation, name)) is not kind:
            raise ReportError(f"{path}: {name} is {getattr(evaluation, name)!r}, not a {kind.__name__}; {mend}")
    if not (math.isfinite(evaluation.disjoint_total_nats) and 1 <= evaluation.stride <= evaluation.block_size):
        raise ReportError(f"{path}: its disjoint losses, stride or block size cannot be true; {mend}")
    offsets = evaluation.document_offsets
    lengths = {len(evaluation.nats), len(evaluation.token_num_chars), len(evaluation.token_num_bytes)}
    if lengths != {int(offsets[-1])} or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise ReportError(f"{path}: its arrays and document offsets disagree on the number of tokens; {mend}")
    if not evaluation.num_chars or not evaluation.num_bytes:
        raise ReportError(f"{path}: its tokens hold no characters; {mend}")
    return evaluation


def describe(evaluation: Evaluation, num_words: int) -> dict[str, Any]:
    """The figures of one split as the report holds them."""
    return {
        "text_sha256": evaluation.text_sha256,
        "num_chars": evaluation.num_chars,
        "num_bytes": evaluation.num_bytes,
        "num_words": num_words,
        "num_tokens": len(evaluation.nats),
        "num_documents": len(evaluation.document_offsets) - 1,
        "total_nats": evaluation.total_nats,
        "bits_per_char": evaluation.bits_per_char,
        "bits_per_byte": evaluation.bits_per_byte,
        "word_perplexity": evaluation.word_perplexity(num_words),
        "disjoint_bits_per_char": evaluation.disjoint_bits_per_char,
        "chars_per_token": evaluation.num_chars / len(evaluation.nats),
    }
