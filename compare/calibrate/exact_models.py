"""Models whose score is known beforehand: put into a trained model's place, they show what the metric itself does.

Shapes: B batch, T time, S states of a source, A symbols, V vocabulary.
"""

import numpy as np
import torch

from compare.calibrate.known_sources import START, KnownSource
from model.gpt import MiniGPT
from model.settings import MiniGPTConfig
from tokenizer.base import Tokenizer


def _smallest(vocab_size: int, block_size: int) -> MiniGPTConfig:
    """A network of next to no weights: the models here answer without it."""
    return MiniGPTConfig(vocab_size=vocab_size, block_size=block_size, embedding_dim=1, num_heads=1, num_layers=1)


class UniformModel(MiniGPT):
    """Gives all V tokens the same probability: log2(V) bits for each token."""

    def __init__(self, vocab_size: int, *, block_size: int) -> None:
        super().__init__(_smallest(vocab_size, block_size))

    def hidden(self, ids: torch.Tensor, dropout_seed: int | None = None) -> torch.Tensor:
        """(B, T) -> (B, T, V) zeros."""
        return torch.zeros(*ids.shape, self.config.vocab_size, device=ids.device)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """They are the hidden values."""
        return hidden


class OracleModel(MiniGPT):
    """Knows `source` and gives every character its true probability; for tokenizers of single characters.

    A window must begin with the newline that a document continues, since the state of the source follows from there.
    So every document must fit into block_size.
    """

    def __init__(self, source: KnownSource, tokenizer: Tokenizer, *, block_size: int) -> None:
        """Raises TokenizerError if the tokenizer has no id for a symbol of the source."""
        super().__init__(_smallest(tokenizer.vocab_size, block_size))
        ids = [tokenizer.encode(symbol)[0] for symbol in source.alphabet]  # (A,)
        with np.errstate(divide="ignore"):
            logs = np.log(source.probabilities)
        table = np.full((len(logs), tokenizer.vocab_size), -np.inf)
        table[:, ids] = logs
        successors = np.full(table.shape, START, np.int64)
        successors[:, ids] = source.successors
        self.log_probabilities = torch.from_numpy(table.astype(np.float32))  # (S, V)
        self.successors = torch.from_numpy(successors)  # (S, V)
        self.newline = ids[0]

    def hidden(self, ids: torch.Tensor, dropout_seed: int | None = None) -> torch.Tensor:
        """(B, T) -> (B, T, V) natural logarithms of the true probabilities.

        Raises ValueError for a window that does not begin with a newline.
        """
        if bool((ids[:, 0] != self.newline).any()):
            raise ValueError("a window begins inside a document: the oracle's block_size is too small")
        state = torch.full((len(ids),), START)  # (B,)
        states = []
        for symbols in ids.cpu().unbind(dim=1):
            state = self.successors[state, symbols]
            states.append(state)
        return self.log_probabilities[torch.stack(states, dim=1)].to(ids.device)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """They are the hidden values: normalised already."""
        return hidden
