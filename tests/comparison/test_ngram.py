"""The character n-gram: a proper distribution, equal to the formula written naively, and right on known sources."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.baselines.ngram import (
    FALLBACK_DISCOUNTS,
    alphabet_of,
    discounts_of,
    number_distinct,
    symbols_of,
)
from data.errors import DataError
from data.splits import Split
from factories import examples
from ngram_helpers import KneserNey, NGramCounts

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
MARK = "<mark>"  # one symbol of the naive model, never a character


def split_of(documents: list[str], name: str = "test") -> Split:
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    return Split(name, "".join(documents), offsets, sha256="")


def model_of(documents: list[str], alphabet: str, order: int) -> KneserNey:
    return KneserNey(NGramCounts(split_of(documents, "train"), alphabet, order), order)


class NaiveKneserNey:
    """The formula of the module's docstring over dicts of tuples, one probability at a time."""

    def __init__(self, documents: list[str], alphabet: str, order: int) -> None:
        self.alphabet, self.order = alphabet, order
        sequences = [[MARK, "\n", *document] for document in documents]
        occurrences = {
            k: Counter(
                tuple(s[end - k + 1 : end + 1]) for s in sequences for end in range(2, len(s)) if end - k + 1 >= 0
            )
            for k in range(1, order + 2)
        }
        self.numbers: dict[int, Counter[tuple[str, ...]]] = {order: occurrences[order]}
        for k in range(1, order):
            extended = Counter(gram[1:] for gram in occurrences[k + 1])
            at_start = {gram: n for gram, n in occurrences[k].items() if gram[0] == MARK}
            self.numbers[k] = Counter({**extended, **at_start})
        self.discounts = {k: self._discounts(self.numbers[k]) for k in self.numbers}

    @staticmethod
    def _discounts(numbers: Counter[tuple[str, ...]]) -> list[float]:
        n = Counter(numbers.values())
        if n[1] and n[2] and n[3]:
            y = n[1] / (n[1] + 2 * n[2])
            found = [r - (r + 1) * y * n[r + 1] / n[r] for r in (1, 2, 3)]
            if all(d > 0 for d in found):
                return [0.0, *found]
        return [0.0, 0.5, 1.0, 1.5]

    def probability(self, character: str, history: list[str], k: int | None = None) -> float:
        """p_k; `history` begins with the mark and the newline."""
        k = min(self.order, len(history) + 1) if k is None else k
        if k == 0:
            return 1 / len(self.alphabet)
        lower = self.probability(character, history, k - 1)
        context = tuple(history[len(history) - k + 1 :])
        continued = {gram: n for gram, n in self.numbers[k].items() if gram[:-1] == context}
        total = sum(continued.values())
        if total == 0:
            return lower
        discount = self.discounts[k]
        own = continued.get((*context, character), 0)
        lost = sum(discount[min(n, 3)] for n in continued.values())
        return (own - discount[min(own, 3)]) / total + lost / total * lower

    def nats(self, documents: list[str]) -> list[float]:
        return [
            -math.log(self.probability(character, [MARK, "\n", *document[:at]]))
            for document in documents
            for at, character in enumerate(document)
        ]


documents = st.lists(st.text("abc\n", max_size=25), min_size=1, max_size=5)


@given(documents, documents, st.integers(1, 6))
@examples(60)
def test_it_equals_the_formula_written_naively(train: list[str], test: list[str], order: int) -> None:
    alphabet = alphabet_of([*train, *test])
    nats = model_of(train, alphabet, order).character_nats(split_of(test))
    np.testing.assert_allclose(nats, NaiveKneserNey(train, alphabet, order).nats(test), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_it_equals_the_naive_formula_where_discounts_are_estimated(order: int) -> None:
    random = np.random.default_rng(5)
    letters = list("etaoinshrdlu \n")
    weights = 0.7 ** np.arange(len(letters))
    texts = ["".join(random.choice(letters, 90, p=weights / weights.sum())) for _ in range(5)]
    alphabet = alphabet_of([*texts, "é"])
    model = model_of(texts[:4], alphabet, order)
    if order >= 3:
        assert any(level.discounts_are_estimated for level in model.levels)
    naive = NaiveKneserNey(texts[:4], alphabet, order)
    np.testing.assert_allclose(model.character_nats(split_of([texts[4] + "é"])), naive.nats([texts[4] + "é"]))


def total_probability(model: KneserNey, alphabet: str, before: str) -> float:
    """Sum over the alphabet of p(x | `before`), by the public method: one document for each character."""
    split = split_of([before + character for character in alphabet])
    last = split.document_offsets[1:] - 1
    return float(np.exp(-model.character_nats(split)[last]).sum())


@given(documents, st.text("abcdé\n", max_size=8), st.integers(1, 6))
@examples(60)
def test_it_sums_to_one_after_any_text(train: list[str], before: str, order: int) -> None:
    alphabet = alphabet_of([*train, "abcdé"])
    assert math.isclose(total_probability(model_of(train, alphabet, order), alphabet, before), 1, rel_tol=1e-12)


@pytest.mark.parametrize("order", range(1, 7))
@pytest.mark.parametrize("before", ["", "the c", "th", "zzzzzz", "é", "the é", "\n\n", "the cat sat.\n"])
def test_it_sums_to_one_on_words(order: int, before: str) -> None:
    train = ["the cat sat.\n", "the dog sat on the cat.\n", "a cat and the other cat.\n"] * 3
    alphabet = alphabet_of([*train, "zéq"])
    assert math.isclose(total_probability(model_of(train, alphabet, order), alphabet, before), 1, rel_tol=1e-12)


def test_a_hand_made_bigram() -> None:
    # "ab" once: events a after newline, b after a. Too few for estimates, so the discount of count 1 is 0.5.
    nats = model_of(["ab"], "\nab", 2).character_nats(split_of(["ab"]))
    unigram = (1 - 0.5) / 2 + (0.5 * 2 / 2) / 3  # both characters have one distinct left neighbour
    np.testing.assert_allclose(np.exp(-nats), [0.5 + 0.5 * unigram] * 2)


def test_a_train_text_without_any_character_gives_the_uniform_distribution() -> None:
    nats = model_of([""], "\nabc", 6).character_nats(split_of(["cab\n"]))
    np.testing.assert_allclose(nats, [math.log(4)] * 4)


def test_the_shortest_texts() -> None:
    model = model_of(["\n"], "\n", 6)
    assert model.character_nats(split_of(["\n"])).tolist() == [0.0]  # the alphabet holds nothing else
    assert model.character_nats(split_of([""])).shape == (0,)
    assert model.character_nats(split_of(["", "\n", ""])).shape == (1,)


def test_characters_never_in_train_cost_finite_bits_and_all_the_same() -> None:
    train = ["some ordinary words, and more ordinary words.\n"] * 20
    model = model_of(train, alphabet_of([*train, "é漢😀"]), 6)
    nats = model.character_nats(split_of(["é", "漢", "😀", "s"]))
    assert np.isfinite(nats).all()
    np.testing.assert_allclose(nats[:3], nats[0])
    assert nats[3] < 0.2 < nats[0]  # every document of train begins with s


def test_a_character_outside_the_alphabet_is_named() -> None:
    model = model_of(["ab\n"], "\nab", 2)
    with pytest.raises(DataError, match=r"test text has 'é' \(U\+00E9\) at character 2"):
        model.character_nats(split_of(["ab", "é"]))


def test_context_never_crosses_the_start_of_a_document() -> None:
    train = ["banana band\n", "a nan and a ban\n", "", "and\n"]
    texts = ["ban\n", "", "nab and\n", "d\n"]
    model = model_of(train, "\n abdn", 6)
    alone = [model.character_nats(split_of([text])) for text in texts]
    np.testing.assert_array_equal(model.character_nats(split_of(texts)), np.concatenate(alone))
    np.testing.assert_allclose(
        model_of(train[::-1], "\n abdn", 6).character_nats(split_of(texts)), np.concatenate(alone), rtol=1e-12
    )


def test_it_knows_that_it_is_at_the_start_of_a_document() -> None:
    # Inside the documents a newline is always followed by b, at their start by a.
    model = model_of(["a\nb\nb\nb\n"] * 50, "\nab", 6)
    first, _, after_newline = np.exp(-model.character_nats(split_of(["a\nb"])))
    assert first > 0.95 and after_newline > 0.95


def test_symbols_are_mark_newline_and_text() -> None:
    text = symbols_of(split_of(["ab", "", "b"]), "\nab")
    assert text.symbols.tolist() == [3, 0, 1, 2, 3, 0, 3, 0, 2]
    assert text.index.tolist() == [0, 1, 2, 3, 0, 1, 0, 1, 2]
    assert text.is_predicted.sum() == 3


def test_the_alphabet_holds_the_newline_and_is_sorted_by_code_point() -> None:
    assert alphabet_of(["ba", "😀é"]) == "\nabé😀"
    assert alphabet_of([]) == "\n"


def test_a_bigram_finds_the_entropy_of_a_markov_source() -> None:
    random = np.random.default_rng(3)
    size, length = 12, 60_000
    transitions = random.dirichlet(np.full(size, 0.5), size)
    vectors = np.linalg.matrix_power(transitions, 200)
    entropy = -float(vectors[0] @ (transitions * np.log(transitions)).sum(axis=1))
    ladder = np.cumsum(transitions, axis=1)
    state, states = 0, []
    for draw in random.random(2 * length):
        state = min(int(np.searchsorted(ladder[state], draw)), size - 1)
        states.append(state)
    text = "".join("abcdefghijkl"[s] for s in states)
    counts = NGramCounts(split_of([text[:length]]), alphabet_of([text]), 6)
    test = split_of([text[length:]])
    drawn = np.array(states[length:])
    own = -float(np.log(transitions[drawn[:-1], drawn[1:]]).mean())  # the source's own nats on this sample
    assert math.isclose(own, entropy, rel_tol=0.02)
    nats = {order: float(KneserNey(counts, order).character_nats(test)[1:].mean()) for order in range(1, 7)}
    assert own * 0.999 < nats[2] < own * 1.01
    assert nats[1] > own * 1.2
    assert all(own * 0.999 < nats[order] < own * 1.25 for order in (3, 4, 5, 6))  # longer contexts only dilute


@pytest.mark.parametrize("largest", [3, 10**6, 2**62])
def test_number_distinct_is_unique_with_its_inverse(largest: int) -> None:
    keys = np.random.default_rng(largest % 97).integers(0, largest, 500)
    keys[::7] = keys[0]
    for expected, found in zip(np.unique(keys, return_inverse=True), number_distinct(keys), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_number_distinct_of_nothing() -> None:
    distinct, found = number_distinct(np.empty(0, np.int64))
    assert len(distinct) == len(found) == 0


def test_a_wide_alphabet_needs_no_narrower_keys() -> None:
    # 30,000 distinct characters: six of them would not fit a 64-bit key if they were packed.
    characters = [chr(0x4E00 + i) for i in range(20_000)] + [chr(0x20000 + i) for i in range(10_000)]
    text = "".join(characters) + "".join(characters[100:200]) * 3
    model = model_of([text], alphabet_of([text]), 6)
    nats = model.character_nats(split_of(["".join(characters[150:190])]))
    assert np.isfinite(nats).all()
    assert nats[6:].mean() < 1 < math.log(30_001)


def test_discounts_by_the_paper() -> None:
    number = np.repeat([0, 1, 2, 3, 4, 5, 90], [7, 40, 20, 10, 5, 3, 2])
    y = 40 / 80
    (one, two, three), are_estimated = discounts_of(number)
    assert are_estimated
    assert math.isclose(one, 1 - 2 * y * 20 / 40)
    assert math.isclose(two, 2 - 3 * y * 10 / 20)
    assert math.isclose(three, 3 - 4 * y * 5 / 10)


@pytest.mark.parametrize("number", [[], [0], [1, 1], [1, 2, 2], [5, 6, 7], [1, 1, 1, 2, 3, 3, 3, 3]])
def test_discounts_that_cannot_be_estimated_are_the_fixed_ones(number: list[int]) -> None:
    assert discounts_of(np.array(number, np.int64)) == (FALLBACK_DISCOUNTS, False)


@pytest.mark.parametrize("order", [0, -1, 4])
def test_an_order_that_was_not_counted_is_refused(order: int) -> None:
    counts = NGramCounts(split_of(["abc\n"]), "\nabc", 3)
    with pytest.raises(ValueError, match=r"outside 1 … 3"):
        KneserNey(counts, order)


def test_lower_orders_share_the_counts_of_higher_ones() -> None:
    train, test = ["the cat sat on the mat\n"] * 4, split_of(["the hat\n"])
    alphabet = alphabet_of([*train, "h"])
    counts = NGramCounts(split_of(train), alphabet, 6)
    for order in range(1, 7):
        expected = model_of(train, alphabet, order).character_nats(test)
        np.testing.assert_array_equal(KneserNey(counts, order).character_nats(test), expected)


@pytest.mark.skipif(not (SHARED / "wikitext2").exists(), reason="the shared data are not here")
def test_on_wikipedia_it_is_where_such_models_are() -> None:
    text = (SHARED / "wikitext2" / "wiki.test.raw").read_bytes().decode("utf-8")[:700_000]
    counts = NGramCounts(split_of([text[:600_000]]), alphabet_of([text]), 6)
    test = split_of([text[600_000:]])
    bits = [float(KneserNey(counts, k).character_nats(test).mean()) / math.log(2) for k in range(1, 7)]
    assert 4.2 < bits[0] < 4.9  # English by single characters
    assert bits[0] > bits[1] > bits[2] > bits[3] > bits[4]
    assert 1.8 < bits[5] < 2.7  # 0.6 MB of train; compressors get 2.2 to 2.8 on this text
    assert bits[5] < bits[0] - 1.8
