"""The n-gram of the order that val likes best, and what it says of every character of val and test.

The order is raised from 1 on. Only the n-grams of two neighbouring orders are held at a time, and each order turns the
probabilities of the order below into its own; so another order costs one pass over train, and memory does not grow
with the order.

Shapes: C characters of a split.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from compare.baselines.ngram import (
    Float64Array,
    Grams,
    Int32Array,
    Level,
    NGramCounter,
    Symbols,
    alphabet_of,
    level_of,
    locate_order,
    symbols_of,
)
from compare.baselines.result import MIN_GAIN, bits_per_char
from data.splits import Split

VERSION = 2
"""To be raised with every change that can change the figures, the nats or the note."""
SCORED = ("val", "test")
ALWAYS_TRIED = 6
"""Orders up to this are tried whatever val says of those below: two of them can be alike and the third better."""
MAX_ORDER = 40
MAX_SYMBOLS_READ = 1_000_000_000
"""By all passes over train together (minutes on one core); a long text may reach it before MAX_ORDER."""
_SILENT_SECONDS = 1.0


@dataclass(frozen=True)
class NGram:
    """The n-gram that was chosen on val."""

    order: int
    val_bits_per_char: tuple[float, ...]
    """Of the orders 1, 2, … that were tried."""
    ended_at_bound: bool
    """Whether the search was stopped by MAX_ORDER or MAX_SYMBOLS_READ while val's figure still fell."""
    fixed_discounts: tuple[int, ...]
    """Orders with too few n-grams to estimate their discounts."""
    nats: Mapping[str, Float64Array]
    """(C,) nats of every character of `val` and `test`, every document read after one newline."""

    def bits_on(self, split: str) -> float:
        """On `val` or `test`, which have characters."""
        return bits_per_char(self.nats[split])

    @property
    def note(self) -> str:
        """How it was made, for the reader of the report."""
        first = max(1, len(self.val_bits_per_char) - 3)
        tried = ", ".join(f"{k}: {bits:.3f}" for k, bits in enumerate(self.val_bits_per_char, start=1) if k >= first)
        note = (
            f"interpolated modified Kneser-Ney (Chen and Goodman 1998), order {self.order}, chosen on val; the order "
            f"was raised from 1 until one more saved less than {MIN_GAIN} bits, last {tried}; each document continues "
            "one newline, as for the contestants"
        )
        if self.ended_at_bound:
            note += (
                f"; the search ended at its bound (order {len(self.val_bits_per_char)}) while val still fell: a higher "
                "order may need fewer bits"
            )
        if self.fixed_discounts:
            orders = ", ".join(map(str, self.fixed_discounts))
            note += f"; too few n-grams to estimate the discounts of order {orders}: fixed ones"
        return note


class _Scorer:
    """One split under models of rising order."""

    def __init__(self, split: Split, alphabet: str) -> None:
        self._text: Symbols = symbols_of(split, alphabet)
        self._num_characters = len(alphabet)
        self._ends = np.flatnonzero(self._text.is_predicted)
        self._shorter: Int32Array = np.empty(0, np.int32)
        self._located: Int32Array = np.zeros(len(self._text.symbols), np.int32)  # order 0 is everywhere
        self._lower = np.full(len(self._ends), 1.0 / self._num_characters)  # p of the order below the located one

    def locate(self, order: int, grams: Grams) -> None:
        """Find the n-grams of one order more."""
        located = locate_order(order, grams, self._located, self._text, self._num_characters)
        self._shorter, self._located = self._located, located

    def refine(self, level: Level) -> None:
        """Take `level`, of the located order, as final: a higher one follows."""
        level.refine(self._lower, self._shorter[self._ends - 1], self._located[self._ends])

    def nats(self, highest: Level) -> Float64Array:
        """(C,) nats with `highest`, of the located order, as the highest order."""
        probabilities = self._lower.copy()
        highest.refine(probabilities, self._shorter[self._ends - 1], self._located[self._ends])
        nats: Float64Array = -np.log(probabilities)
        return nats


def search_order(splits: Mapping[str, Split], *, progress: bool = False) -> NGram:
    """Count train order by order, as long as val gains by it; all splits must have characters.

    The nats are exactly those of one model of the chosen order.
    """
    alphabet = alphabet_of([split.text for split in splits.values()])
    counter = NGramCounter(splits["train"], alphabet)
    scorers = {name: _Scorer(splits[name], alphabet) for name in SCORED}
    bound = max(ALWAYS_TRIED, min(MAX_ORDER, MAX_SYMBOLS_READ // counter.num_symbols))
    on_val: list[float] = []
    fixed: list[int] = []  # of the orders below the one in hand
    grams: Grams | None = None
    best: NGram | None = None
    still_falls = True
    with tqdm(desc="n-gram", unit="order", leave=False, delay=_SILENT_SECONDS, disable=not progress) as bar:
        while still_falls and counter.order < bound:
            above = counter.next_order()
            if grams is not None:
                level = level_of(grams, above)
                fixed += [] if level.discounts_are_estimated else [counter.order - 1]
                for scorer in scorers.values():
                    scorer.refine(level)
            grams = above
            highest = level_of(grams, None)
            for scorer in scorers.values():
                scorer.locate(counter.order, grams)
            val_nats = scorers["val"].nats(highest)
            on_val.append(bits_per_char(val_nats))
            still_falls = counter.order < ALWAYS_TRIED or min(on_val[:-1]) - on_val[-1] >= MIN_GAIN
            if best is None or on_val[-1] < min(on_val[:-1]):
                guessed = fixed if highest.discounts_are_estimated else [*fixed, counter.order]
                nats = {"val": val_nats, "test": scorers["test"].nats(highest)}
                best = NGram(counter.order, (), False, tuple(guessed), nats)
            bar.update()
    assert best is not None  # order 1 is always tried
    return NGram(best.order, tuple(on_val), still_falls, best.fixed_discounts, best.nats)
