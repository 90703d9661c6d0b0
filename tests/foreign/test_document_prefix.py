"""A tokenizer that puts a space before every document: counted on no side, in every figure that is made of lengths."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from compare.characters import character_nats, document_char_offsets
from compare.marginal.segmentations import Vocabulary
from data.errors import TokenizerError
from model.batches import EpochWindows, RandomWindows
from model.evaluate import Evaluation
from model.val_sample import val_sample
from tokenizer.base import Int64Array, token_lengths
from tokenizer.bytelevel import ByteTokenizer
from tokenizer.encode_splits import EncodedSplit, encode_split, load_encoded, write_encoded
from tokenizer.studies.intrinsic import intrinsic_of
from tokenizer_helpers import make_split, make_splits

DOCUMENTS = ["ab", "", "é c", " d"]
TEXT = "".join(DOCUMENTS)


class Spaced(ByteTokenizer):
    """Bytes, with a space before every document that is not empty, as SentencePiece does it."""

    document_prefix = " "

    def encode(self, text: str) -> list[int]:
        return super().encode(" " + text if text else "")

    def encode_documents(self, texts: Sequence[str]) -> tuple[Int64Array, Int64Array]:
        return super().encode_documents([" " + text if text else "" for text in texts])


def test_lengths_are_those_of_the_text() -> None:
    ids, offsets = Spaced().encode_documents(DOCUMENTS)
    num_chars, num_bytes = token_lengths(Spaced(), ids, offsets)
    assert num_chars.tolist() == [0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1]
    assert num_bytes.tolist() == [0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1]
    assert (num_chars.sum(), num_bytes.sum()) == (len(TEXT), len(TEXT.encode()))


class Loses(Spaced):
    """It drops the spaces at the beginning of a text."""

    def encode_documents(self, texts: Sequence[str]) -> tuple[Int64Array, Int64Array]:
        return super().encode_documents([text.lstrip() for text in texts])


def test_the_round_trip_is_proven_and_a_lost_space_is_shown() -> None:
    split = make_split("test", DOCUMENTS)
    assert len(encode_split(split, Spaced())[0]) == len(TEXT.encode()) + 3
    with pytest.raises(TokenizerError, match=r"test: document 3 does .* character 0: the text has ' d', .* for 'd'\)"):
        encode_split(split, Loses())


def encoded(folder: Path) -> EncodedSplit:
    splits = make_splits(DOCUMENTS, DOCUMENTS, DOCUMENTS)
    write_encoded(folder, splits, Spaced())
    return load_encoded(folder, Spaced(), tokenizer_path=folder, make="make encode")["train"]


def test_the_val_sample_holds_the_text_without_the_spaces(tmp_path: Path) -> None:
    sample = val_sample(encoded(tmp_path), Spaced(), 1_000)
    assert sample.num_chars == len(TEXT)
    assert Spaced().decode_bytes(sample.ids.tolist()).decode() == " ab é c  d"


@pytest.mark.parametrize("kind", [RandomWindows, EpochWindows])
def test_the_starts_of_documents_among_the_targets_are_counted(tmp_path: Path, kind: type[RandomWindows]) -> None:
    split = encoded(tmp_path)
    windows = kind(split, block_size=4, batch_size=3, seed=1)
    begins = {0, 3, 8}
    for step in range(20):
        expected = sum(position in begins for row in windows.positions(step)[:, 1:].tolist() for position in row)
        assert windows.num_targets_at(step, np.array(sorted(begins))) == expected
        inputs, targets = windows.batch(step)
        assert torch.equal(torch.cat([inputs[:, :1], targets], dim=1), split.ids[windows.positions(step)])


def test_the_loss_of_the_space_goes_to_the_first_character_of_its_document() -> None:
    ids, offsets = Spaced().encode_documents(DOCUMENTS)
    num_chars, num_bytes = token_lengths(Spaced(), ids, offsets)
    evaluation = Evaluation(
        nats=2.0 ** np.arange(len(ids), dtype=np.float32),
        token_num_chars=num_chars.astype(np.int32),
        token_num_bytes=num_bytes.astype(np.int32),
        document_offsets=offsets,
        disjoint_total_nats=1.0,
        text_sha256="",
        tokenizer_fingerprint="",
        stride=1,
        block_size=1,
    )
    #        ' '+a    b    ' '+é+rest  ' '   c    ' '+' '    d
    expected = [1 + 2, 4, 8 + 16 + 32, 64, 128, 256 + 512, 1024]
    assert character_nats(evaluation).tolist() == expected
    assert document_char_offsets(evaluation).tolist() == [0, 2, 2, 5, 7]


def test_the_intrinsic_numbers_count_the_text() -> None:
    ids, offsets = Spaced().encode_documents(DOCUMENTS)
    found = intrinsic_of(Spaced(), ids, TEXT, embedding_parameters=1, all_parameters=2, document_offsets=offsets)
    assert found.chars_per_token == len(TEXT) / len(ids)


def test_the_marginal_refuses_it() -> None:
    with pytest.raises(TokenizerError, match="puts a space before every document is not offered here"):
        Vocabulary(Spaced())
