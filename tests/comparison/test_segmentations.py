"""The lattice and its sampler against plain enumeration."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from compare.marginal.segmentations import Proposal, Vocabulary, longest_segmentations, num_segmentations, path_starts
from model_helpers import CharTable, _Table
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, ByteTokenizer

WORDS = CharTable("\nabc", ["ab", "bc", "abc", "ca"])
E_ACUTE = "".join(BYTE_CHARACTERS[byte] for byte in "é".encode())
BYTE_BPE = BPETokenizer(BYTE_CHARACTERS, [(E_ACUTE[0], E_ACUTE[1]), (E_ACUTE, E_ACUTE)], kind="byte_bpe")


def enumerate_segmentations(tokenizer: Tokenizer, raw: bytes) -> list[list[int]]:
    """Every id sequence of `raw`, by trying every id everywhere."""
    if not raw:
        return [[]]
    found = []
    for index in range(tokenizer.vocab_size):
        token = tokenizer.decode_bytes([index])
        if token and raw.startswith(token):
            found += [[index, *rest] for rest in enumerate_segmentations(tokenizer, raw[len(token) :])]
    return found


def proposal_of(tokenizer: Tokenizer, text: str, *, seed: int = 3, spread: float = 1.0) -> Proposal:
    """A proposal with random weights."""
    edges = Vocabulary(tokenizer).edges(text.encode())
    rng = np.random.default_rng(seed)
    weights = [[float(rng.normal(scale=spread)) for _ in row] for row in edges]
    return Proposal(edges, tokenizer.encode(text), weights)


CASES = [
    (WORDS, "abcab"),
    (WORDS, "abcabca"),
    (BYTE_BPE, "éé"),
    (BYTE_BPE, "aéé€"),
    (BPETokenizer("\n aé", [("a", "é"), ("aé", " ")]), "aé aé a"),
]


@pytest.mark.parametrize(("tokenizer", "text"), CASES)
def test_the_lattice_holds_every_segmentation(tokenizer: Tokenizer, text: str) -> None:
    edges = Vocabulary(tokenizer).edges(text.encode())
    every = enumerate_segmentations(tokenizer, text.encode())
    assert num_segmentations(edges) == len(every) > 1
    assert longest_segmentations(edges)[-1] == max(map(len, every))
    for ids in every:
        starts = path_starts(edges, ids)
        assert [text.encode()[a:b] for a, b in pairwise([*starts, len(text.encode())])] == [
            tokenizer.decode_bytes([index]) for index in ids
        ]


def test_known_counts() -> None:
    # Two bytes each: é is one token or two bytes, and both together one token: 2 * 2 + 1.
    assert num_segmentations(Vocabulary(BYTE_BPE).edges("éé".encode())) == 5
    assert num_segmentations(Vocabulary(ByteTokenizer()).edges("€uro".encode())) == 1
    assert longest_segmentations(Vocabulary(ByteTokenizer()).edges("€uro".encode())) == [0, 1, 2, 3, 4, 5, 6]


def test_character_tokens_match_at_characters_only() -> None:
    edges = Vocabulary(BPETokenizer("\n aé", [])).edges("é".encode())
    assert [len(row) for row in edges] == [1, 0]
    assert longest_segmentations(edges) == [0, -1, 1]


def test_two_ids_with_the_same_bytes_are_two_segmentations() -> None:
    twins = _Table([b"a", b"a", b""])
    edges = Vocabulary(twins).edges(b"aaa")
    assert num_segmentations(edges) == 8
    assert path_starts(edges, [0, 1, 0]) == [0, 1, 2]


@pytest.mark.parametrize("ids", [[WORDS.stoi["b"]], [WORDS.stoi["a"]], [WORDS.stoi[c] for c in "aba"]])
def test_ids_of_another_text_are_refused(ids: list[int]) -> None:
    with pytest.raises(ValueError, match="byte"):
        path_starts(Vocabulary(WORDS).edges(b"ab"), ids)


@pytest.mark.parametrize(("tokenizer", "text"), CASES)
@pytest.mark.parametrize("spread", [0.0, 1.0, 200.0])
def test_q_sums_to_one_over_all_but_the_canonical(tokenizer: Tokenizer, text: str, spread: float) -> None:
    proposal = proposal_of(tokenizer, text, spread=spread)
    every = enumerate_segmentations(tokenizer, text.encode())
    probabilities = [math.exp(proposal.log_probability(ids)) for ids in every]
    assert math.fsum(probabilities) == pytest.approx(1.0, abs=1e-9)
    assert probabilities[every.index(tokenizer.encode(text))] == 0.0


@pytest.mark.parametrize(("tokenizer", "text"), [CASES[0], CASES[2]])
def test_draws_are_as_frequent_as_q_says(tokenizer: Tokenizer, text: str) -> None:
    proposal = proposal_of(tokenizer, text, spread=0.3)
    rng = np.random.default_rng(7)
    draws = [proposal.draw(rng) for _ in range(5_000)]
    counts = Counter(tuple(ids) for ids, _ in draws)
    others = [ids for ids in enumerate_segmentations(tokenizer, text.encode()) if ids != tokenizer.encode(text)]
    assert set(counts) <= {tuple(ids) for ids in others}
    expected = {tuple(ids): len(draws) * math.exp(proposal.log_probability(ids)) for ids in others}
    chi_square = sum((counts[ids] - wanted) ** 2 / wanted for ids, wanted in expected.items())
    freedom = len(others) - 1
    assert min(expected.values()) > 5
    assert chi_square < freedom + 3 * math.sqrt(2 * freedom)


def test_a_draw_comes_with_its_own_probability() -> None:
    proposal = proposal_of(WORDS, "abcabcab")
    rng = np.random.default_rng(1)
    for ids, log_q in (proposal.draw(rng) for _ in range(50)):
        assert log_q == pytest.approx(proposal.log_probability(ids), abs=1e-9)
        assert WORDS.decode(ids) == "abcabcab"
        assert ids != WORDS.encode("abcabcab")


def test_one_segmentation_leaves_nothing_to_propose() -> None:
    assert proposal_of(CharTable("\nab"), "abba").is_empty
    assert not proposal_of(WORDS, "ab").is_empty


def test_long_texts_do_not_underflow() -> None:
    text = "abc" * 200
    edges = Vocabulary(WORDS).edges(text.encode())
    proposal = Proposal(edges, WORDS.encode(text), [[-9.0] * len(row) for row in edges])
    ids, log_q = proposal.draw(np.random.default_rng(1))
    assert WORDS.decode(ids) == text
    assert -math.inf < log_q < 0.0
