"""compare/calibrate/known_sources.py: what is true about a source, computed a second time by other means."""

import math
import re
from functools import cache

import numpy as np
import pytest

from compare.calibrate.known_sources import (
    MARKOV_SYMBOLS,
    START,
    Choice,
    Grammar,
    KnownSource,
    english_grammar,
    grammar_source,
    markov_source,
)
from data.errors import DataError


def rate_by_stationary_distribution(source: KnownSource) -> float:
    """For a chain whose state is the last symbol: the eigenvector of the transition matrix, not a linear system."""
    matrix = source.probabilities
    values, vectors = np.linalg.eig(matrix.T)
    stationary = np.real(vectors[:, np.argmin(np.abs(values - 1))])
    stationary /= stationary.sum()
    return float(-(stationary[:, None] * matrix * np.log2(matrix, where=matrix > 0, out=np.zeros_like(matrix))).sum())


def rate_by_sentences(grammar: Grammar) -> float:
    """Expected bits of a derivation over its expected characters, by recursion over the points of the grammar."""
    start = next(iter(grammar))

    @cache
    def expected(point: str) -> tuple[float, float]:
        bits = characters = 0.0
        for choice in grammar[point]:
            later = (0.0, 0.0) if choice.text.endswith("\n") else expected(choice.then)
            bits += choice.probability * (later[0] - math.log2(choice.probability))
            characters += choice.probability * (later[1] + len(choice.text))
        return bits, characters

    bits, characters = expected(start)
    return bits / characters


def bits_by_derivation(grammar: Grammar, sentence: str) -> float:
    """Bits of one sentence by reading choice after choice, not character after character."""
    point, bits = next(iter(grammar)), 0.0
    while sentence:
        (choice,) = (choice for choice in grammar[point] if sentence.startswith(choice.text))
        bits -= math.log2(choice.probability)
        sentence, point = sentence.removeprefix(choice.text), choice.then
    return bits


def two_words() -> Grammar:
    """a (1/4) or bc (3/4), then a newline: 2 - 0.75 log2 3 bits in 2.75 characters."""
    return {"s": [Choice("a\n", 0.25, "s"), Choice("bc\n", 0.75, "s")]}


def test_the_markov_rate_computed_twice() -> None:
    source = markov_source()
    assert source.entropy_rate() == pytest.approx(rate_by_stationary_distribution(source), rel=1e-9)


def test_the_grammar_rate_computed_twice() -> None:
    assert grammar_source().entropy_rate() == pytest.approx(rate_by_sentences(english_grammar()), rel=1e-9)


def test_a_rate_worked_out_by_hand() -> None:
    source = grammar_source(two_words())
    assert source.entropy_rate() == pytest.approx((2 - 0.75 * math.log2(3)) / 2.75)
    bits = source.document_bits(["a\n", "bc\n", "a\n"])
    np.testing.assert_allclose(bits, [2.0, 2 - math.log2(3), 2.0])


def test_the_bits_of_sentences_computed_twice() -> None:
    source, grammar = grammar_source(), english_grammar()
    sentences = source.draw(5_000, seed=4)
    wanted = [bits_by_derivation(grammar, sentence) for sentence in sentences]
    np.testing.assert_allclose(source.document_bits(sentences), wanted, rtol=1e-9)


def test_the_bits_of_markov_documents_computed_twice() -> None:
    source = markov_source()
    documents = source.draw(3_000, seed=4)
    wanted = [
        -sum(
            math.log2(source.probabilities[MARKOV_SYMBOLS.index(before), MARKOV_SYMBOLS.index(after)])
            for before, after in zip("\n" + document, document, strict=False)
        )
        for document in documents
    ]
    np.testing.assert_allclose(source.document_bits(documents), wanted, rtol=1e-9)


@pytest.mark.parametrize("source", [markov_source(), grammar_source()], ids=lambda source: source.name)
def test_what_is_drawn_is_documents_and_their_bits_approach_the_rate(source: KnownSource) -> None:
    documents = source.draw(60_000, seed=5)
    text = "".join(documents)
    assert len(text) >= 60_000 > len(text) - len(documents[-1])
    assert all(document.endswith("\n") and document.count("\n") == 1 and len(document) > 1 for document in documents)
    assert source.document_bits(documents).sum() / len(text) == pytest.approx(source.entropy_rate(), rel=0.02)
    assert source.draw(60_000, seed=5) == documents != source.draw(60_000, seed=6)


@pytest.mark.parametrize("source", [markov_source(), grammar_source()], ids=lambda source: source.name)
def test_multibyte_symbols_occur(source: KnownSource) -> None:
    text = "".join(source.draw(20_000, seed=1))
    assert len(text.encode("utf-8")) > len(text)
    assert set(text) == set(source.alphabet)


def test_drawn_symbols_follow_their_probabilities() -> None:
    """Chi-square-like: each count lies within five standard deviations of what the row says."""
    source = markov_source("\nabc", seed=3, mean_characters=20)
    text = "\n" + "".join(source.draw(50_000, seed=2))
    for state, before in enumerate(source.alphabet):
        total = text[:-1].count(before)
        for symbol, after in enumerate(source.alphabet):
            probability = source.probabilities[state, symbol]
            count = len(re.findall(f"(?={re.escape(before + after)})", text))
            assert abs(count - total * probability) <= 5 * math.sqrt(total * probability * (1 - probability)) + 1e-9


def test_subject_and_verb_agree_over_a_noun_between_them() -> None:
    far = re.compile(r"(a|every|this|no|these|some|many|few) \S+ (?:near|behind|without|under) (?:a|these) \S+ (\S+)")
    seen = set()
    for sentence in grammar_source().draw(60_000, seed=9):
        match = far.match(sentence)
        if match:
            is_one, verb = match[1] in {"a", "every", "this", "no"}, match[2].rstrip(".")
            assert verb.endswith("s") == is_one, sentence
            seen.add((is_one, " a " in match[0], verb.removesuffix("s")))
    assert len(seen) > 8


def test_text_that_the_source_cannot_write_is_refused() -> None:
    with pytest.raises(DataError, match=r"document 1 holds 'z' at character 1, which source grammar cannot write"):
        grammar_source(two_words()).document_bits(["a\n", "bz\n"])
    with pytest.raises(DataError, match="holds 'a' at character 1"):
        grammar_source(two_words()).document_bits(["aa\n"])


def test_an_ambiguous_grammar_is_refused() -> None:
    for texts in (("a", "ab\n"), ("a\n", "a\n")):
        grammar = {"s": [Choice(text, 0.5, "s") for text in texts]}
        with pytest.raises(DataError, match="spell them so that none does"):
            grammar_source(grammar)


def test_a_source_that_is_none_is_refused() -> None:
    def source(
        *, probabilities: list[list[float]], alphabet: str = "\na", to: list[list[int]] | None = None
    ) -> KnownSource:
        return KnownSource("bad", alphabet, np.array(probabilities), np.array(to or [[START, 1], [START, 1]]))

    fine = [[0.0, 1.0], [0.5, 0.5]]
    assert source(probabilities=fine).entropy_rate() == pytest.approx(2 / 3)  # two fair bits after one sure letter
    for broken in ([[0.0, 0.9], [0.5, 0.5]], [[0.0, 1.0], [-0.5, 1.5]]):
        with pytest.raises(DataError, match="does not add up to 1"):
            source(probabilities=broken)
    for alphabet in ("a\n", "\n\n", ""):
        with pytest.raises(DataError, match="begin with a newline"):
            source(probabilities=fine, alphabet=alphabet)
    with pytest.raises(DataError, match="must lead to the start"):
        source(probabilities=[[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(DataError, match="must lead to the start"):
        source(probabilities=fine, to=[[START, 1], [1, 1]])
