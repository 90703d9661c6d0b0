"""All segmentations of a text: the lattice of the vocabulary's tokens in it, and an exact sampler over its paths.

The lattice lies over the UTF-8 bytes. A segmentation is any id sequence whose bytes are the text, across pretoken
borders too; a character-level token is whole characters, and UTF-8 lets those match nowhere but at characters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.errors import TokenizerError
from tokenizer.base import Tokenizer, prefix_of

Float64Array = NDArray[np.float64]
Edges = Sequence[Sequence["Edge"]]
"""For every byte of the text the tokens that begin there."""


@dataclass(frozen=True)
class Edge:
    """One vocabulary token at one place of the text."""

    start: int
    """First byte."""
    end: int
    """Byte after the last."""
    token: int
    """Id."""


class Vocabulary:
    """The ids of every byte string that is a token. Special tokens stand for no text, however they are spelled."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        if prefix_of(tokenizer):
            raise TokenizerError(
                f"a {tokenizer.kind} tokenizer that puts a space before every document is not offered here, because "
                "that space is no part of the text; take another contestant"
            )
        self._ids: dict[bytes, list[int]] = {}
        special = set(getattr(tokenizer, "special_tokens", {}).values())  # not every kind of tokenizer has any
        for index in range(tokenizer.vocab_size):
            if index in special:
                continue
            self._ids.setdefault(tokenizer.decode_bytes([index]), []).append(index)
        self._ids.pop(b"", None)  # an empty token could be repeated without end and changes no text
        self._longest = max(map(len, self._ids))

    def edges(self, raw: bytes) -> list[list[Edge]]:
        """For every byte of `raw` the tokens that begin there. Some of them may lead to no segmentation."""
        return [
            [
                Edge(start, end, index)
                for end in range(start + 1, min(len(raw), start + self._longest) + 1)
                for index in self._ids.get(raw[start:end], ())
            ]
            for start in range(len(raw))
        ]


def longest_segmentations(edges: Edges) -> list[int]:
    """Most tokens that any segmentation of each prefix has, for prefixes of 0 … len(edges) bytes; -1 if it has none."""
    longest = [0] + [-1] * len(edges)
    for start, row in enumerate(edges):
        for edge in row:
            if longest[start] >= 0:
                longest[edge.end] = max(longest[edge.end], longest[start] + 1)
    return longest


def num_segmentations(edges: Edges) -> int:
    """How many id sequences have the text as their bytes."""
    counts = [0] * len(edges) + [1]
    for start in range(len(edges) - 1, -1, -1):
        counts[start] = sum(counts[edge.end] for edge in edges[start])
    return counts[0]


class Proposal:
    """q(v) proportional to the product of the tokens' weights, over all segmentations but the canonical one."""

    def __init__(self, edges: Edges, canonical: Sequence[int], log_weights: Sequence[Sequence[float]]) -> None:
        """`log_weights` has the shape of `edges`; `canonical` is the id sequence that is left out."""
        self.edges = edges
        self.log_weights = log_weights
        self._canonical = dict(zip(path_starts(edges, canonical), canonical, strict=True))
        # Two states at each byte: still canonical (1), and already departed (0). Only what has departed may end.
        size = len(edges)
        self._log_sums = np.full((2, size + 1), -math.inf)
        self._log_sums[0, size] = 0.0
        self._probabilities: list[list[Float64Array]] = [[np.zeros(0)] * size for _ in range(2)]
        for start in range(size - 1, -1, -1):
            for state in (0, 1):
                self._sum_backward(start, state)

    def _sum_backward(self, start: int, state: int) -> None:
        terms = np.array(
            [
                weight + self._log_sums[self._next(state, edge), edge.end]
                for edge, weight in zip(self.edges[start], self.log_weights[start], strict=True)
            ]
        )
        total = float(np.logaddexp.reduce(terms)) if len(terms) else -math.inf
        self._log_sums[state, start] = total
        if math.isfinite(total):
            self._probabilities[state][start] = np.cumsum(np.exp(terms - total))

    def _next(self, state: int, edge: Edge) -> int:
        return int(state == 1 and self._canonical.get(edge.start) == edge.token)

    @property
    def is_empty(self) -> bool:
        """Whether the canonical segmentation is the only one."""
        return not math.isfinite(self._log_sums[1, 0])

    def log_probability(self, ids: Sequence[int]) -> float:
        """log q of a segmentation, in nats; -inf for the canonical one. Raises ValueError if it is not of the text."""
        starts = path_starts(self.edges, ids)
        if all(self._canonical.get(start) == index for start, index in zip(starts, ids, strict=True)):
            return -math.inf
        weights = 0.0
        for start, index in zip(starts, ids, strict=True):
            position = next(n for n, edge in enumerate(self.edges[start]) if edge.token == index)
            weights += self.log_weights[start][position]
        return weights - float(self._log_sums[1, 0])

    def draw(self, rng: np.random.Generator) -> tuple[list[int], float]:
        """One segmentation and its log q, in nats."""
        ids: list[int] = []
        start, state, weights = 0, 1, 0.0
        while start < len(self.edges):
            cumulative = self._probabilities[state][start]
            chosen = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
            edge = self.edges[start][chosen]
            weights += self.log_weights[start][chosen]
            ids.append(edge.token)
            start, state = edge.end, self._next(state, edge)
        return ids, weights - float(self._log_sums[1, 0])


def path_starts(edges: Edges, ids: Sequence[int]) -> list[int]:
    """First byte of each token of the segmentation `ids`; raises ValueError if its bytes are not the text."""
    starts, start = [], 0
    for index in ids:
        starts.append(start)
        row = edges[start] if start < len(edges) else ()
        edge = next((edge for edge in row if edge.token == index), None)
        if edge is None:
            raise ValueError(f"id {index} does not stand at byte {start} of the text")
        start = edge.end
    if start != len(edges):
        raise ValueError(f"the ids end at byte {start} of {len(edges)}")
    return starts
