"""The character n-gram of one order in the plainest way: what the search over orders is compared with."""

import numpy as np

from compare.baselines.ngram import Int32Array, NGramCounter, Symbols, level_of, locate_order, symbols_of
from compare.characters import Float64Array
from data.splits import Split


class NGramCounts:
    """All n-grams of a text up to an order. Counting is the slow part; models of several orders share it."""

    def __init__(self, train: Split, alphabet: str, max_order: int) -> None:
        """Count `train`, whose characters are all in `alphabet` (in which the newline must be)."""
        self.alphabet = alphabet
        self.max_order = max_order
        counter = NGramCounter(train, alphabet)
        self.orders = [counter.next_order() for _ in range(max_order)]
        """Element k - 1 holds the n-grams of order k."""

    def locate(self, text: Symbols) -> list[Int32Array]:
        """For each order 0 … max_order: (S,) id of the n-gram that ends at each symbol; see `locate_order`."""
        located = [np.zeros(len(text.symbols), np.int32)]  # order 0: the empty n-gram is everywhere
        for order, grams in enumerate(self.orders, start=1):
            located.append(locate_order(order, grams, located[-1], text, len(self.alphabet)))
        return located


class KneserNey:
    """The smoothed model of one order."""

    def __init__(self, counts: NGramCounts, order: int) -> None:
        """Smooth `counts`. Raises ValueError unless 1 <= order <= counts.max_order."""
        if not 1 <= order <= counts.max_order:
            raise ValueError(f"order {order} is outside 1 … {counts.max_order}, which were counted")
        self.order = order
        aboves = [*counts.orders[1:order], None]
        self.levels = [level_of(grams, above) for grams, above in zip(counts.orders, aboves, strict=False)]
        """Element k - 1 is p_k."""
        self._counts = counts

    def character_nats(self, split: Split) -> Float64Array:
        """(C,) nats of every character of `split`, every document read after one newline.

        Raises DataError for a character outside the alphabet.
        """
        text = symbols_of(split, self._counts.alphabet)
        located = self._counts.locate(text)
        ends = np.flatnonzero(text.is_predicted)
        probabilities = np.full(len(ends), 1.0 / len(self._counts.alphabet))
        for k, level in enumerate(self.levels, start=1):
            level.refine(probabilities, located[k - 1][ends - 1], located[k][ends])
        nats: Float64Array = -np.log(probabilities)
        return nats
