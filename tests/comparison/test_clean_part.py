"""The clean part of test: which characters it holds, everyone's figures on it by hand, and when the ranking changes."""

import math

import numpy as np
import pytest

from compare.baselines.ngram import alphabet_of
from compare.clean_part import NGRAM, CleanPart, clean_part, clean_sentence, is_clean
from data.errors import ReportError
from data.files import sha256_text
from data.splits import Split
from model.evaluate import Evaluation
from ngram_helpers import KneserNey, NGramCounts

SHARED = "".join(chr(ord("a") + number % 26) + str(number % 7) for number in range(25))  # 50 characters


def split(name: str, *documents: str) -> Split:
    text = "".join(documents)
    return Split(name, text, np.cumsum([0, *map(len, documents)]), sha256_text(text))


def evaluation(nats: list[float], num_chars: list[int]) -> Evaluation:
    return Evaluation(
        nats=np.array(nats, np.float32),
        token_num_chars=np.array(num_chars, np.int32),
        token_num_bytes=np.array(num_chars, np.int32),
        document_offsets=np.array([0, len(nats)], np.int64),
        disjoint_total_nats=0.0,
        text_sha256="",
        tokenizer_fingerprint="",
        stride=1,
        block_size=2,
    )


def test_fifty_shared_characters_are_not_clean_and_forty_nine_are() -> None:
    train = split("train", f"!{SHARED}!\n")
    assert is_clean(train, split("test", f"?{SHARED}?\n")).tolist() == [True] + [False] * 50 + [True] * 2
    assert is_clean(train, split("test", f"?{SHARED[1:]}?\n", f"?{SHARED[:-1]}?\n")).all()
    assert is_clean(train, split("test", SHARED[:25], SHARED[25:])).all()  # no string reaches over a border


def test_figures_by_hand() -> None:
    clean = np.array([True, True, False, False])
    part = clean_part(
        clean,
        {
            "char": [evaluation([2.0, 4.0, 0.0, 0.0], [1, 1, 1, 1]), evaluation([2.0, 2.0, 1.0, 1.0], [1, 1, 1, 1])],
            "bpe": [evaluation([3.0, 6.0], [1, 3])],  # 3, 2, 2, 2
        },
        np.array([1.0, 1.0, 8.0, 8.0]),
    )
    assert part is not None
    assert (part.characters, part.share) == (2, 0.5)
    in_nats = {name: bits * math.log(2) for name, bits in part.bits_per_char.items()}
    assert in_nats == pytest.approx({"char": 2.5, "bpe": 2.5, NGRAM: 1.0})
    whole = {name: bits * math.log(2) for name, bits in part.whole_bits_per_char.items()}
    assert whole == pytest.approx({"char": 1.5, "bpe": 2.25, NGRAM: 4.5})
    assert part.ranking[0] == NGRAM and part.whole_ranking == ("char", "bpe", NGRAM)
    assert part.ranking_differs


def test_the_sentence_says_whether_the_ranking_differs() -> None:
    differing = CleanPart(725, 0.725, {"char": 2.539, "bpe": 2.508}, {"char": 2.480, "bpe": 2.485})
    assert clean_sentence(differing) == (
        "On the 72.5 % of test that share no 50 characters with train the ranking is bpe 2.508, char 2.539; on all of "
        "test it is char 2.480, bpe 2.485 (bits per character, fewest first)."
    )
    same = clean_sentence(CleanPart(725, 0.725, {"char": 2.5, "bpe": 2.6}, {"char": 2.4, "bpe": 2.5}))
    assert same.endswith(
        "the ranking is char 2.500, bpe 2.600 (bits per character, fewest first), the same as on all of test."
    )
    equal = CleanPart(725, 0.725, {"char": 2.5, "bpe": 2.5}, {"char": 2.4, "bpe": 2.4})
    assert clean_sentence(equal).endswith("the same as on all of test.")


def test_a_clean_test_is_the_whole_and_one_without_clean_characters_has_no_figure() -> None:
    contestants = {"char": [evaluation([2.0, 4.0], [1, 1])], "bpe": [evaluation([5.0], [2])]}
    part = clean_part(np.ones(2, bool), contestants)
    assert part is not None and part.share == 1.0
    assert part.bits_per_char == part.whole_bits_per_char and not part.ranking_differs
    assert part.bits_per_char["char"] == pytest.approx(contestants["char"][0].bits_per_char)
    assert clean_part(np.zeros(2, bool), contestants) is None


def test_figures_of_another_text_are_refused() -> None:
    with pytest.raises(ReportError, match="bpe was scored on 2 characters, but test holds 3; run `make all`"):
        clean_part(np.ones(3, bool), {"bpe": [evaluation([5.0], [2])]})


def test_the_n_gram_knows_what_it_has_seen_by_heart() -> None:
    train, test = split("train", f"{SHARED}\n", "other text\n"), split("test", f"{SHARED}\n", "text of test\n")
    alphabet = alphabet_of([train.text, test.text])
    nats = KneserNey(NGramCounts(train, alphabet, 3), 3).character_nats(test)
    part = clean_part(is_clean(train, test), {}, nats)
    assert part is not None and part.characters == len(test.text) - 51
    assert part.bits_per_char[NGRAM] > part.whole_bits_per_char[NGRAM] + 1
