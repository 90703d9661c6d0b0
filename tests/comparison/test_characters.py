"""Losses by character: the rule, by hand, and its conservation of the total."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compare.characters import character_nats, character_starts, document_char_offsets, document_nats
from model.evaluate import Evaluation


def evaluation_of(nats: list[float], chars: list[int], documents: list[int]) -> Evaluation:
    return Evaluation(
        nats=np.array(nats, np.float32),
        token_num_chars=np.array(chars, np.int32),
        token_num_bytes=np.array([max(1, c) for c in chars], np.int32),
        document_offsets=np.array(documents, np.int64),
        disjoint_total_nats=0.0,
        text_sha256="",
        tokenizer_fingerprint="",
        stride=1,
        block_size=2,
    )


def test_a_token_is_shared_over_its_characters_and_a_middle_byte_goes_to_the_character_it_continues() -> None:
    # "the", then an emoji in three tokens of which the first begins it, then "a"
    evaluation = evaluation_of([3.0, 1.0, 0.5, 0.25, 2.0], [3, 1, 0, 0, 1], [0, 1, 5])
    assert character_nats(evaluation).tolist() == [1.0, 1.0, 1.0, 1.75, 2.0]
    assert character_starts(evaluation).tolist() == [0, 3, 4, 4, 4, 5]
    assert document_char_offsets(evaluation).tolist() == [0, 3, 5]
    assert document_nats(evaluation).tolist() == [3.0, 3.75]


def test_an_empty_document_has_no_nats() -> None:
    evaluation = evaluation_of([1.0, 2.0], [1, 1], [0, 0, 2, 2])
    assert document_nats(evaluation).tolist() == [0.0, 3.0, 0.0]
    assert document_char_offsets(evaluation).tolist() == [0, 0, 2, 2]


@given(
    st.lists(st.tuples(st.floats(0, 20, width=32), st.integers(0, 5)), min_size=1, max_size=60),
    st.integers(1, 5),
)
def test_nothing_is_lost_or_invented(tokens: list[tuple[float, int]], first: int) -> None:
    nats = [n for n, _ in tokens]
    chars = [first] + [c for _, c in tokens[1:]]
    evaluation = evaluation_of(nats, chars, [0, len(nats)])
    by_character = character_nats(evaluation)
    assert len(by_character) == evaluation.num_chars
    assert np.isclose(by_character.sum(), evaluation.total_nats, rtol=1e-12)
    assert np.isclose(document_nats(evaluation).sum(), evaluation.total_nats, rtol=1e-12)
