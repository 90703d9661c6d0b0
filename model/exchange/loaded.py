"""A finished run as one object, for notebooks and programs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data.errors import CheckpointError, DataError
from data.files import sha256_text
from model import checkpoint
from model.evaluate import Evaluation, context_of
from model.generate import Sample, generate, generate_samples
from model.generation.draw import Sampling
from model.gpt import MiniGPT
from model.settings import EvaluateConfig
from model.windows import score_tokens
from tokenizer.base import Tokenizer, token_lengths
from tokenizer.loading import load_tokenizer

_BATCH = 32


@dataclass(frozen=True, repr=False)
class LanguageModel:
    """A trained model with its tokenizer."""

    name: str
    """The contestant's name."""
    gpt: MiniGPT
    """The torch module, in evaluation mode, on the CPU."""
    tokenizer: Tokenizer
    """The tokenizer that it was trained with."""
    folder: Path
    """Where it was read."""

    def __repr__(self) -> str:
        config = self.gpt.config
        return (
            f"<model {self.name}: {config.preset}, {self.gpt.num_parameters():,} parameters, block of "
            f"{config.block_size} tokens, {self.tokenizer.kind} with {len(self):,} tokens, from {self.folder}>"
        )

    def __len__(self) -> int:
        """The number of tokens that it knows."""
        return self.tokenizer.vocab_size

    def encode(self, text: str) -> list[int]:
        """The ids of `text`. Raises TokenizerError for a character that has no token."""
        return self.tokenizer.encode(text)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text; faster than one call for each."""
        ids, offsets = self.tokenizer.encode_documents(texts)
        return [ids[begin:end].tolist() for begin, end in pairwise(offsets.tolist())]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`. Raises TokenizerError for ids that are no text."""
        return self.tokenizer.decode(ids)

    def generate(self, prompt: str = "", *, num_tokens: int = 200, temperature: float = 0.8, **settings: Any) -> str:
        """The continuation of `prompt`, without it. Further settings are those of `model.generate.generate`."""
        return "".join(self.stream(prompt, num_tokens=num_tokens, temperature=temperature, **settings))

    def stream(
        self, prompt: str = "", *, num_tokens: int = 200, temperature: float = 0.8, **settings: Any
    ) -> Iterator[str]:
        """The same, piece by piece as it is drawn."""
        return generate(self.gpt, self.tokenizer, prompt, num_tokens=num_tokens, temperature=temperature, **settings)

    def samples(
        self,
        prompt: str = "",
        num_samples: int = 1,
        *,
        num_tokens: int = 200,
        temperature: float = 0.8,
        **settings: Any,
    ) -> list[Sample]:
        """Several continuations drawn together, with the log-probability of every character."""
        sampling = Sampling(num_tokens, temperature, **settings)
        return generate_samples(self.gpt, self.tokenizer, prompt, sampling, num_samples)

    def bits_per_char(self, text: str | Sequence[str]) -> float:
        """Bits per character of `text`, by the rules of the comparison; a sequence of texts is several documents.

        The text is taken as it is: a comparison cleans its documents first. Raises DataError for a text without a
        character, TokenizerError for a character that has no token.
        """
        return self.score(text).bits_per_char

    def score(self, text: str | Sequence[str], *, stride: int | None = None) -> Evaluation:
        """The loss of every token of `text`; each document is read after one newline. Raises what that raises."""
        documents = [text] if isinstance(text, str) else list(text)
        if not any(documents):
            raise DataError("there is no character to score; give some text")
        ids, offsets = self.tokenizer.encode_documents(documents)
        block_size = self.gpt.config.block_size
        stride = EvaluateConfig(stride=stride).stride_for(block_size)
        scores = score_tokens(
            self.gpt,
            torch.from_numpy(np.ascontiguousarray(ids)),
            offsets,
            context_of(self.tokenizer),
            stride=stride,
            batch_size=_BATCH,
        )
        num_chars, num_bytes = token_lengths(self.tokenizer, ids, offsets)
        return Evaluation(
            nats=scores.sliding,
            token_num_chars=num_chars.astype(np.int32),
            token_num_bytes=num_bytes.astype(np.int32),
            document_offsets=offsets,
            disjoint_total_nats=float(scores.disjoint.sum(dtype=np.float64)),
            text_sha256=sha256_text("".join(documents)),
            tokenizer_fingerprint=self.tokenizer.fingerprint(),
            stride=stride,
            block_size=block_size,
        )


def load_run(folder: Path) -> LanguageModel:
    """The best weights in the run's `folder`, with the tokenizer's copy that lies there. Raises CheckpointError."""
    path = folder / checkpoint.TOKENIZER_COPY
    if not (folder / checkpoint.BEST).is_file() or not path.is_file():
        seeds = sorted(found.parent.name for found in folder.glob(f"seed_*/{checkpoint.BEST}"))
        hint = f"; it has runs in {', '.join(seeds)}" if seeds else ""
        raise CheckpointError(
            f"{folder} holds no finished run: {checkpoint.BEST} and {checkpoint.TOKENIZER_COPY} are expected "
            f"there{hint}"
        )
    tokenizer = load_tokenizer(path)
    gpt, state = checkpoint.load_model(folder, "best", tokenizer, path)
    return LanguageModel(name=state["contestant"], gpt=gpt, tokenizer=tokenizer, folder=folder)
