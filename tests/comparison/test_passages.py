"""Which passages are taken for the marginal: where they begin, where they end, that they fit."""

from collections.abc import Sequence

import pytest

from compare.marginal.passages import choose_passages
from compare.marginal.segmentations import Vocabulary, longest_segmentations
from data.errors import ConfigError, DataError
from model_helpers import ALPHABET, ENGLISH, CharTable
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import ByteTokenizer

TEXT = "".join(dict.fromkeys(ENGLISH))
BPE = BPETokenizer.train(TEXT, 60, base_tokens=list(ALPHABET), verbose=False)
DOCUMENTS = [f"{start}{rest}" for start in "TAN" for rest in dict.fromkeys(ENGLISH)]


def longest(passage: str, tokenizer: Tokenizer) -> int:
    return longest_segmentations(Vocabulary(tokenizer).edges(passage.encode()))[-1]


@pytest.mark.parametrize(("tokenizer", "block_size"), [(BPE, 16), (BPE, 8), (ByteTokenizer(), 16)])
def test_passages_begin_documents_and_fit_into_a_block(tokenizer: Tokenizer, block_size: int) -> None:
    passages = choose_passages(DOCUMENTS, tokenizer, block_size=block_size, num_chars=60)
    assert 60 <= sum(map(len, passages)) < 60 + block_size
    for passage in passages:
        assert any(document.startswith(passage) for document in DOCUMENTS)
        assert 0 < longest(passage, tokenizer) <= block_size


def test_a_passage_ends_with_a_token_of_the_text_that_goes_on() -> None:
    document = DOCUMENTS[0]
    (passage,) = choose_passages([document], BPE, block_size=20, num_chars=1)
    ids = BPE.encode(document)
    lengths = [len(BPE.decode(ids[:end])) for end in range(len(ids) + 1)]
    assert len(passage) == max(length for length in lengths if length <= 20)
    assert BPE.encode(passage) == ids[: lengths.index(len(passage))]


def test_a_passage_ends_with_a_whole_character() -> None:
    (passage,) = choose_passages(["é€é€é€\n"], ByteTokenizer(), block_size=9, num_chars=1)
    assert passage == "é€é"  # 7 bytes; the next character would make 10
    (whole,) = choose_passages(["é\n"], ByteTokenizer(), block_size=9, num_chars=1)
    assert whole == "é\n"


def test_too_few_documents_give_beginnings_of_lines() -> None:
    document = "the old line is long\n\n   \n  the second one\nand more in it\n"
    passages = choose_passages([document], BPE, block_size=12, num_chars=30)
    assert len(passages) == 3
    assert passages[0] == document[: len(passages[0])]
    assert all(longest(passage, BPE) <= 12 for passage in passages)
    places = [document.index(passage) for passage in passages]
    assert places == [0, document.index("  the"), document.index("and")]


def test_passages_do_not_overlap() -> None:
    document = "a\nb\nc\nd\ne\n" * 4
    passages = choose_passages([document], CharTable("\nabcde"), block_size=7, num_chars=1_000)
    assert 3 <= len(passages) <= len(document) // 6
    assert sum(map(len, passages)) <= len(document)


def test_the_seed_decides_and_the_order_is_that_of_the_text() -> None:
    def chosen(seed: int) -> Sequence[str]:
        return choose_passages(DOCUMENTS, BPE, block_size=16, num_chars=60, seed=seed)

    assert chosen(1) == chosen(1)
    assert len({tuple(chosen(seed)) for seed in range(5)}) > 1
    places = [next(n for n, document in enumerate(DOCUMENTS) if document.startswith(text)) for text in chosen(1)]
    assert places == sorted(places)


def test_what_cannot_be_chosen_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1, found 0"):
        choose_passages(DOCUMENTS, BPE, block_size=16, num_chars=0)
    with pytest.raises(DataError, match="no passage of the 0 documents"):
        choose_passages([], BPE, block_size=16, num_chars=10)
    with pytest.raises(DataError, match="block of 2 tokens"):
        choose_passages(["€\n"], ByteTokenizer(), block_size=2, num_chars=10)
