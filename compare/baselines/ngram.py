"""A character n-gram with interpolated modified Kneser-Ney smoothing: the baseline that a model must beat.

The formulas are those of Chen and Goodman, "An Empirical Study of Smoothing Techniques for Language Modeling"
(Harvard TR-10-98, 1998), section 3. For a context h (the last k - 1 symbols) and a character x, order by order:

    p_k(x | h) = (c(hx) - D(c(hx))) / c(h)  +  g(h) * p_{k-1}(x | h without its first symbol)
    g(h)       = sum over x of D(c(hx)) / c(h)          c(h) = sum over x of c(hx)          p_0 = 1 / A

so that p_k sums to one over the alphabet whatever the counts are; for a context that train never continued, p_k is
p_{k-1}. c counts occurrences at the highest order and, below it, the distinct symbols seen to the left of hx.

As the contestants do, it reads every document after one newline and knows that it is at the start:
a mark that is never predicted comes before that newline, and no context reaches beyond the mark. What begins with
the mark has nothing to its left, so there occurrences are counted at every order.

Shapes: C characters, D documents, S = C + 2 D symbols (each document with its mark and newline), A characters of the
alphabet, N distinct n-grams of one order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.errors import DataError
from data.splits import Split

BoolArray = NDArray[np.bool_]
Float64Array = NDArray[np.float64]
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]

FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)
"""Of counts 1, 2, 3 and more, where an order has too few n-grams to estimate them."""

_CODE_POINTS = 0x110000
_SIGNED_BITS = 63
_NUM_GIVEN = 2  # symbols of a document that are not predicted: its mark and its newline


def alphabet_of(texts: Sequence[str]) -> str:
    """The distinct characters of `texts` and the newline, by code point: the base characters of the chain."""
    return "".join(sorted(set("\n").union(*(set(text) for text in texts))))


@dataclass(frozen=True)
class Symbols:
    """Documents as symbols: 0 … A-1 are the alphabet's characters, A is the mark before each document."""

    symbols: Int32Array
    """(S,) every document as its mark, the newline that it continues, and its characters."""
    index: Int32Array
    """(S,) place in the document: 0 the mark, 1 the newline, from 2 on the characters."""

    @property
    def is_predicted(self) -> BoolArray:
        """(S,) true for the C characters of the documents."""
        predicted: BoolArray = self.index >= _NUM_GIVEN
        return predicted


def symbols_of(split: Split, alphabet: str) -> Symbols:
    """The documents of `split` as symbols. Raises DataError for a character that `alphabet` lacks."""
    codes = np.frombuffer(split.text.encode("utf-32-le"), dtype="<u4")
    symbol_of_code = np.full(_CODE_POINTS, -1, np.int64)
    symbol_of_code[[ord(character) for character in alphabet]] = np.arange(len(alphabet))
    characters = symbol_of_code[codes]
    if (characters < 0).any():
        at = int(np.argmin(characters))
        raise DataError(
            f"the {split.name} text has {split.text[at]!r} (U+{ord(split.text[at]):04X}) at character {at}, which the "
            "n-gram's alphabet lacks; build the alphabet from all splits"
        )
    num_documents = len(split.document_offsets) - 1
    lengths = np.diff(split.document_offsets)
    starts = split.document_offsets[:-1] + _NUM_GIVEN * np.arange(num_documents)
    index = np.arange(len(characters) + _NUM_GIVEN * num_documents) - np.repeat(starts, lengths + _NUM_GIVEN)
    symbols = np.empty(len(index), np.int32)
    symbols[index >= _NUM_GIVEN] = characters
    symbols[starts] = len(alphabet)
    symbols[starts + 1] = alphabet.index("\n")
    return Symbols(symbols, index.astype(np.int32))


def number_distinct(keys: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The distinct `keys` (not negative), ascending, and for every key its place among them.

    What np.unique(keys, return_inverse=True) says, several times faster: where key and place fit one integer
    together, numbers are sorted instead of references to numbers.
    """
    num_bits = len(keys).bit_length()
    if int(keys.max(initial=0)).bit_length() + num_bits <= _SIGNED_BITS:
        packed = np.sort((keys << num_bits) | np.arange(len(keys)))
        places, ordered = packed & ((1 << num_bits) - 1), packed >> num_bits
    else:
        places = np.argsort(keys)
        ordered = keys[places]
    is_first = np.ones(len(keys), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    found = np.empty(len(keys), np.int64)
    found[places] = np.cumsum(is_first) - 1
    return ordered[is_first], found


@dataclass(frozen=True)
class Grams:
    """The distinct n-grams of one order; the id of an n-gram is its place in these arrays."""

    keys: Int64Array
    """(N,) ascending: id (one order below) of all symbols but the last, times A + 1, plus the last symbol."""
    contexts: Int32Array
    """(N,) that id: of all symbols but the last."""
    num_contexts: int
    """Distinct n-grams of the order below; 1 for single symbols, whose context is empty."""
    occurrences: Int32Array
    """(N,) how often its last symbol was predicted; 0 for the mark, and for the mark and its newline."""
    suffixes: Int32Array
    """(N,) id (one order below) of all symbols but the first."""
    begins_document: BoolArray
    """(N,) whether its first symbol is the mark."""

    def find(self, keys: Int64Array) -> Int32Array:
        """Ids of the n-grams with these keys, -1 where there is none; negative keys are of none."""
        if len(self.keys) == 0:
            return np.full(len(keys), -1, np.int32)
        places = np.searchsorted(self.keys, keys)
        places[places == len(self.keys)] = 0
        return np.where(self.keys[places] == keys, places, -1).astype(np.int32)


class NGramCounter:
    """Counts a text order by order: every call of `next_order` costs one pass, whatever the order."""

    def __init__(self, train: Split, alphabet: str) -> None:
        """For `train`, whose characters are all in `alphabet` (in which the newline must be).

        Raises DataError for a text whose symbols 32 bits cannot count. Ids are given order by order: the n-grams of
        order k are told apart by the id of their first k - 1 symbols and their last one, which fits 64 bits.
        """
        self.alphabet = alphabet
        self.order = 0
        """The last one counted."""
        if len(train.text) + _NUM_GIVEN * len(train.document_offsets) > np.iinfo(np.int32).max:
            raise DataError(
                f"{train.name} has {len(train.text):,} characters, more than the n-gram counts; use less text"
            )
        self._text = symbols_of(train, alphabet)
        self._ids = np.zeros(self.num_symbols, np.int32)  # of the n-gram of this order that ends here
        self._num_contexts = 1

    @property
    def num_symbols(self) -> int:
        """S of the text: what one pass reads."""
        return len(self._text.symbols)

    def next_order(self) -> Grams:
        """The n-grams of one order more."""
        self.order += 1
        text, ids = self._text, self._ids
        ends = np.flatnonzero(text.index >= self.order - 1)
        distinct, found = number_distinct(_keys(ids, text, ends, len(self.alphabet)))
        suffixes = np.empty(len(distinct), np.int32)
        suffixes[found] = ids[ends]  # all occurrences of an n-gram write the same value
        begins_document = np.empty(len(distinct), np.bool_)
        begins_document[found] = text.index[ends] == self.order - 1
        occurrences = np.bincount(found[text.index[ends] >= _NUM_GIVEN], minlength=len(distinct)).astype(np.int32)
        contexts = (distinct // (len(self.alphabet) + 1)).astype(np.int32)
        grams = Grams(distinct, contexts, self._num_contexts, occurrences, suffixes, begins_document)
        self._ids = np.full(len(ids), -1, np.int32)
        self._ids[ends] = found
        self._num_contexts = len(distinct)
        return grams


def _keys(shorter: Int32Array, text: Symbols, ends: Int64Array, num_characters: int) -> Int64Array:
    """Keys of the n-grams that end at `ends`, from the ids of the one-shorter n-grams that end before them.

    An id of -1 makes a negative key, which no n-gram has.
    """
    keys: Int64Array = shorter[ends - 1].astype(np.int64) * (num_characters + 1) + text.symbols[ends]
    return keys


def locate_order(order: int, grams: Grams, shorter: Int32Array, text: Symbols, num_characters: int) -> Int32Array:
    """(S,) id of the n-gram of `order` that ends at each symbol, from those one order below; -1 if train lacks it.

    Where the document is too short for an n-gram of that order the id is -1 too.
    """
    ends = np.flatnonzero(text.index >= order - 1)
    ids = np.full(len(text.symbols), -1, np.int32)
    ids[ends] = grams.find(_keys(shorter, text, ends, num_characters))
    return ids


@dataclass(frozen=True)
class Level:
    """One order of the model, ready for use."""

    shares: Float64Array
    """(N,) (c(hx) - D(c(hx))) / c(h) of each n-gram; 0 where its context was never continued."""
    backoffs: Float64Array
    """(N of the order below,) g(h) of each context; 1 where it was never continued."""
    discounts: tuple[float, float, float]
    """Of counts 1, 2, 3 and more."""
    discounts_are_estimated: bool
    """False where FALLBACK_DISCOUNTS had to serve."""

    def refine(self, probabilities: Float64Array, contexts: Int32Array, grams: Int32Array) -> None:
        """Turn p of the order below into p of this order, in place.

        `contexts` are the ids of the contexts (one order below), `grams` those of the n-grams, -1 for unknown ones;
        all three have one element for each character that is scored.
        """
        known = np.flatnonzero(contexts >= 0)
        probabilities[known] *= self.backoffs[contexts[known]]
        seen = np.flatnonzero(grams >= 0)
        probabilities[seen] += self.shares[grams[seen]]


def level_of(grams: Grams, above: Grams | None) -> Level:
    """The level of `grams`: the highest of a model without `above`, else the one below the order `above`."""
    if above is None:
        number = grams.occurrences
    else:
        extensions = np.bincount(above.suffixes[above.occurrences > 0], minlength=len(grams.keys))
        number = np.where(grams.begins_document, grams.occurrences, extensions)
    discounts, are_estimated = discounts_of(number)
    discounted = np.array([0.0, *discounts])[np.minimum(number, 3)]
    totals = np.bincount(grams.contexts, weights=number, minlength=grams.num_contexts)
    lost = np.bincount(grams.contexts, weights=discounted, minlength=grams.num_contexts)
    is_continued = totals > 0
    backoffs = np.divide(lost, totals, out=np.ones(grams.num_contexts), where=is_continued)
    shares = np.zeros(len(number))
    np.divide(number - discounted, totals[grams.contexts], out=shares, where=is_continued[grams.contexts])
    return Level(shares, backoffs, discounts, are_estimated)


def discounts_of(number: NDArray[np.integer]) -> tuple[tuple[float, float, float], bool]:
    """Discounts of counts 1, 2, and 3 or more, from the counts of one order, and whether they are estimates.

    Chen and Goodman (1998), equation 26, with n_r the number of n-grams of count r: Y = n_1 / (n_1 + 2 n_2) and
    D_r = r - (r + 1) Y n_{r+1} / n_r. Where an n_r is 0 or a discount is not positive (few n-grams; the single
    characters of most texts) the answer is FALLBACK_DISCOUNTS: any positive discounts up to the count give a proper
    distribution, and positive ones give characters never seen in train a finite cost.
    """
    n1, n2, n3, n4 = (int(n) for n in np.bincount(np.minimum(number, 5), minlength=6)[1:5])
    if not (n1 and n2 and n3):
        return FALLBACK_DISCOUNTS, False
    y = n1 / (n1 + 2 * n2)
    discounts = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    return (discounts, True) if min(discounts) > 0 else (FALLBACK_DISCOUNTS, False)
