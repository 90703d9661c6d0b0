"""Random sources of text whose entropy is known exactly: what a right metric is checked against.

A source is an automaton over characters: in each state every symbol has a known probability and leads to one state.
A document is what it writes from its start until the first newline, which leads back to the start. So the true
log-probability of a text, read after one newline, is a sum along one path; nothing is approximated.

Shapes: S states, A symbols of the alphabet, D documents.
"""

import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from data.errors import DataError

Float64Array = NDArray[np.float64]
Int64Array = NDArray[np.int64]

START = 0
"""The state after a newline."""
MARKOV_SYMBOLS = "\n abcdefghijklmnopqrstuvwxéßж→日😀"
"""Two, three and four bytes of UTF-8 occur, so that a metric that mixes up bytes and characters shows."""


@dataclass(frozen=True)
class KnownSource:
    """A source of documents and all that is true about it."""

    name: str
    """Names files and lines of the table."""
    alphabet: str
    """(A) the symbols, each once; the first is the newline."""
    probabilities: Float64Array
    """(S, A) probability of each symbol in each state; every row adds up to 1."""
    successors: Int64Array
    """(S, A) the state after each symbol; START for a symbol that cannot come."""

    def __post_init__(self) -> None:
        rows = self.probabilities.sum(axis=1)
        if not np.allclose(rows, 1.0, rtol=0.0, atol=1e-12) or self.probabilities.min() < 0.0:
            raise DataError(f"source {self.name}: a row of probabilities does not add up to 1; correct the source")
        if self.alphabet[:1] != "\n" or len(set(self.alphabet)) != len(self.alphabet):
            raise DataError(f"source {self.name}: its alphabet must begin with a newline and hold each symbol once")
        if np.any(self.successors[:, 0] != START) or self.probabilities[START, 0] > 0.0:
            raise DataError(f"source {self.name}: a newline must lead to the start, where none may follow at once")

    def entropy_rate(self) -> float:
        """Bits per character of endless text: expected bits of a document over its expected characters.

        The visits v of each state in one document solve v = e_START + Q' v, with Q the steps that do not end it
        (fundamental matrix of an absorbing chain; Kemeny and Snell 1960, chapter 3).
        """
        num_states = len(self.probabilities)
        steps = np.zeros((num_states, num_states))
        for symbol in range(1, len(self.alphabet)):  # the newline, symbol 0, ends the document
            np.add.at(steps, (np.arange(num_states), self.successors[:, symbol]), self.probabilities[:, symbol])
        begin = np.zeros(num_states)
        begin[START] = 1.0
        visits = np.linalg.solve(np.eye(num_states) - steps.T, begin)
        logs = np.log2(self.probabilities, out=np.zeros_like(self.probabilities), where=self.probabilities > 0.0)
        state_bits = -(self.probabilities * logs).sum(axis=1)
        return float(visits @ state_bits / visits.sum())  # one character is written on each visit

    def draw(self, num_chars: int, seed: int) -> list[str]:
        """Whole documents of together at least `num_chars` characters; the same seed gives the same documents."""
        rng = random.Random(seed)
        cumulative = [list(accumulate(row)) for row in self.probabilities.tolist()]
        successors = self.successors.tolist()
        state, written, documents, num_drawn = START, [], [], 0
        while num_drawn < num_chars:
            row = cumulative[state]
            symbol = bisect_right(row, rng.random() * row[-1])
            written.append(self.alphabet[symbol])
            state = successors[state][symbol]
            if symbol == 0:
                documents.append("".join(written))
                num_drawn += len(written)
                written = []
        return documents

    def document_bits(self, documents: Sequence[str]) -> Float64Array:
        """(D,) bits that the source itself needs for each document, read after one newline.

        Raises DataError for a text that the source cannot have written.
        """
        number_of = {symbol: number for number, symbol in enumerate(self.alphabet)}
        logs = np.full_like(self.probabilities, -np.inf)
        np.log2(self.probabilities, out=logs, where=self.probabilities > 0.0)
        bits_of, successors = (-logs).tolist(), self.successors.tolist()
        totals = np.zeros(len(documents))
        for index, document in enumerate(documents):
            state = START
            for position, character in enumerate(document):
                symbol = number_of.get(character)
                if symbol is None or bits_of[state][symbol] == np.inf:
                    raise DataError(
                        f"document {index} holds {character!r} at character {position}, which source {self.name} "
                        "cannot write there; score the text that it drew"
                    )
                totals[index] += bits_of[state][symbol]
                state = successors[state][symbol]
        return totals


def markov_source(symbols: str = MARKOV_SYMBOLS, *, seed: int = 7, mean_characters: int = 150) -> KnownSource:
    """An order-1 Markov chain: the state is the last symbol, its row is drawn from Dirichlet(0.4) with `seed`.

    Every symbol but the newline may end the document with the same small probability, so that documents hold
    `mean_characters` besides it.
    """
    size = len(symbols)
    rows = np.random.default_rng(seed).dirichlet(np.full(size - 1, 0.4), size=size)
    ends = np.full((size, 1), 1.0 / mean_characters)
    ends[START] = 0.0  # no empty document
    successors = np.tile(np.arange(size, dtype=np.int64), (size, 1))
    return KnownSource("markov", symbols, np.hstack([ends, rows * (1.0 - ends)]), successors)


@dataclass(frozen=True)
class Choice:
    """One way on from a point of a grammar."""

    text: str
    """What is written; no other choice of the point begins with it, so the text tells which was taken."""
    probability: float
    """Its share among the choices of the point."""
    then: str
    """The point that follows."""


Grammar = Mapping[str, Sequence[Choice]]
"""The choices of each point; the first point is the start."""

_ADJECTIVES = ["old", "small", "red", "naïve", "quick", "wise"]
_NOUNS = ["cat", "dog", "river", "café", "teacher", "bird", "stone", "garden", "letter", "king", "señor", "winter"]
_TRANSITIVE = ["see", "know", "follow", "paint", "remember", "hear", "leave"]
_INTRANSITIVE = ["sleep", "laugh", "wait", "return"]
_PREPOSITIONS = ["near", "behind", "without", "under"]
_ADVERBS = ["today", "again", "often", "never", "twice"]
_DETERMINERS = {"one": ["a", "every", "this", "no"], "many": ["these", "some", "many", "few"]}
_ADJECTIVE_SHARE = 0.35
_PREPOSITION_SHARE = 0.25
_INTRANSITIVE_SHARE = 0.25
_ADVERB_SHARE = 0.3


def english_grammar() -> Grammar:
    """Sentences such as `these old cats near a river follow many letters.`, one a document.

    Words are Zipfian within their class. Determiner and noun agree in number, and the verb agrees with the subject
    even where a second noun stands between, so the last word alone does not tell what may follow.
    """
    grammar: dict[str, list[Choice]] = {"subject": _determiners("subject-{}")}
    for number in ("one", "many"):
        subjects, objects = _nouns(number, "after-subject-" + number), _objects(number)
        grammar[f"subject-{number}"] = _described(subjects, f"subject-noun-{number}")
        grammar[f"subject-noun-{number}"] = subjects
        prepositions = _words([f"{word} " for word in _PREPOSITIONS], f"inner-{number}")
        grammar[f"after-subject-{number}"] = [
            *_scaled(prepositions, _PREPOSITION_SHARE),
            *_scaled(_verbs(number), 1.0 - _PREPOSITION_SHARE),
        ]
        grammar[f"inner-{number}"] = _determiners(f"inner-{number}-{{}}")
        for inner in ("one", "many"):
            grammar[f"inner-{number}-{inner}"] = _nouns(inner, f"verb-{number}")
        grammar[f"verb-{number}"] = _verbs(number)
        grammar[f"object-{number}"] = _described(objects, f"object-noun-{number}")
        grammar[f"object-noun-{number}"] = objects
    grammar["object"] = _determiners("object-{}")
    grammar["adverb"] = _words([f"{word}.\n" for word in _ADVERBS], "subject")
    return grammar


def _words(texts: Sequence[str], then: str) -> list[Choice]:
    """Zipf's law: the word of rank r has weight 1 / r."""
    total = sum(1.0 / rank for rank in range(1, len(texts) + 1))
    return [Choice(text, 1.0 / rank / total, then) for rank, text in enumerate(texts, start=1)]


def _scaled(choices: Sequence[Choice], share: float) -> list[Choice]:
    return [Choice(choice.text, choice.probability * share, choice.then) for choice in choices]


def _determiners(then: str) -> list[Choice]:
    """Either number with probability 1/2; `then` has a place for the number."""
    return [
        choice
        for number, words in _DETERMINERS.items()
        for choice in _scaled(_words([f"{word} " for word in words], then.format(number)), 0.5)
    ]


def _described(nouns: Sequence[Choice], then: str) -> list[Choice]:
    adjectives = _words([f"{word} " for word in _ADJECTIVES], then)
    return [*_scaled(adjectives, _ADJECTIVE_SHARE), *_scaled(nouns, 1.0 - _ADJECTIVE_SHARE)]


def _spelled(noun: str, number: str) -> str:
    return noun if number == "one" else noun + "s"


def _nouns(number: str, then: str) -> list[Choice]:
    return _words([_spelled(noun, number) + " " for noun in _NOUNS], then)


def _objects(number: str) -> list[Choice]:
    """The object ends the sentence or leaves room for an adverb."""
    ending = _words([_spelled(noun, number) + ".\n" for noun in _NOUNS], "subject")
    return [*_scaled(ending, 1.0 - _ADVERB_SHARE), *_scaled(_nouns(number, "adverb"), _ADVERB_SHARE)]


def _verbs(number: str) -> list[Choice]:
    ending = "s" if number == "one" else ""
    alone = _words([f"{verb}{ending}.\n" for verb in _INTRANSITIVE], "subject")
    with_object = _words([f"{verb}{ending} " for verb in _TRANSITIVE], "object")
    return [*_scaled(alone, _INTRANSITIVE_SHARE), *_scaled(with_object, 1.0 - _INTRANSITIVE_SHARE)]


def grammar_source(grammar: Grammar | None = None) -> KnownSource:
    """The automaton of `grammar` (by default english_grammar): a state is a point and what was written since.

    A character's probability is the share of the point's choices that go on with it among those that still can.
    Raises DataError if one choice of a point begins with another, so that the text would not tell them apart.
    """
    grammar = english_grammar() if grammar is None else grammar
    alphabet = "\n" + "".join(
        sorted({c for point in grammar.values() for choice in point for c in choice.text} - {"\n"})
    )
    states: dict[tuple[str, str], int] = {(point, ""): number for number, point in enumerate(grammar)}
    weights: dict[tuple[int, int], float] = {}  # (state, symbol) -> summed probability of the choices that pass
    following: dict[tuple[int, int], int] = {}
    for point, choices in grammar.items():
        texts = sorted(choice.text for choice in choices)
        for one, other in pairwise(texts):
            if other.startswith(one):  # sorted, so a prefix stands right before a text that begins with it
                raise DataError(f"grammar: at {point!r}, {other!r} begins with {one!r}; spell them so that none does")
        for choice in choices:
            state = states[point, ""]
            for length, character in enumerate(choice.text, start=1):
                target = (choice.then, "") if length == len(choice.text) else (point, choice.text[:length])
                step = (state, alphabet.index(character))
                weights[step] = weights.get(step, 0.0) + choice.probability
                following[step] = state = states.setdefault(target, len(states))
    probabilities = np.zeros((len(states), len(alphabet)))
    successors = np.full((len(states), len(alphabet)), START, np.int64)
    for step, weight in weights.items():
        probabilities[step] = weight
        successors[step] = following[step]
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return KnownSource("grammar", alphabet, probabilities, successors)
