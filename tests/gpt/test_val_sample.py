"""model/val_sample.py: the same characters for every contestant, spread over all documents of val."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from data.errors import DataError
from model import val_sample as val_sample_module
from model.evaluate import context_of, evaluate_split
from model.gpt import MiniGPT
from model.settings import EvaluateConfig
from model.val_sample import parts_of, quick_bits_per_char, val_sample
from model_helpers import ALPHABET, ENGLISH, ByteTable, CharTable, _Table, encoded_splits, tiny_model

LETTERS = CharTable("abc\n")
SORTED = [f"{letter * 30}\n{letter * 30}\n" for letter in "abcdefgh" for _ in range(5)]  # 40 of 62 characters
SORTED_ALPHABET = "\nabcdefgh"
TOKENIZERS = (
    CharTable(SORTED_ALPHABET),
    CharTable(SORTED_ALPHABET, ["aaaa", "bb", "ccccccc", "h\n"]),
    ByteTable(),
)


def text_of_sample(folder: Path, tokenizer: _Table, documents: list[str], max_characters: int) -> list[str]:
    val = encoded_splits(folder, tokenizer, ["a\n"], documents)["val"]
    sample = val_sample(val, tokenizer, max_characters)
    assert sample.num_val_documents == len(documents)
    texts = [
        tokenizer.decode(sample.ids[first:last].tolist())
        for first, last in zip(sample.document_offsets[:-1], sample.document_offsets[1:], strict=True)
    ]
    assert sample.num_chars == sum(map(len, texts)) and sample.num_documents == len(texts)
    return texts


def test_the_sample_is_spread_over_all_documents(tmp_path: Path) -> None:
    texts = text_of_sample(tmp_path, TOKENIZERS[0], SORTED, 8 * 62)
    assert len(texts) == 8 and all(text in SORTED for text in texts)
    assert len({text[0] for text in texts}) >= 7  # of eight kinds; the beginning of val has two
    assert texts == sorted(texts)


@pytest.mark.parametrize("max_characters", [1, 50, 93, 500, 1_111, 10**9])
def test_the_sample_is_the_same_characters_for_every_tokenizer(tmp_path: Path, max_characters: int) -> None:
    found = [
        text_of_sample(tmp_path / str(number), tokenizer, SORTED, max_characters)
        for number, tokenizer in enumerate(TOKENIZERS)
    ]
    assert found[0] == found[1] == found[2]
    wanted = min(max_characters, sum(map(len, SORTED)))
    assert wanted // 2 <= sum(map(len, found[0])) <= wanted
    if max_characters == 10**9:
        assert found[0] == SORTED


def test_characters_of_several_bytes_are_never_cut(tmp_path: Path) -> None:
    document = "a€é🙂" * 1_000 + "\n"
    chars, raw = CharTable("\na€é🙂", ["🙂a", "€é"]), ByteTable()
    for max_characters in (1, 2, 3, 4, 5, 1_001, 2_002):
        one = text_of_sample(tmp_path / f"c{max_characters}", chars, [document], max_characters)
        assert one == text_of_sample(tmp_path / f"b{max_characters}", raw, [document], max_characters)
        assert one == [document[:max_characters]]


def test_a_part_ends_with_a_line_where_one_ends_late_enough(tmp_path: Path) -> None:
    lines = "abcabc\n" * 10 + "a" * 100 + "\n"
    assert text_of_sample(tmp_path / "late", LETTERS, [lines], 20) == ["abcabc\nabcabc\n"]
    assert text_of_sample(tmp_path / "early", LETTERS, [lines], 150) == [lines[:150]]  # 70 of 150 would be left


def test_no_document_gives_more_than_its_share_where_others_can() -> None:
    assert parts_of(np.array([10**6, 10**6]), 100_000) == [(0, 50_000), (1, 50_000)]
    assert parts_of(np.array([10**6] * 16), 100_000) == [(number, 6_250) for number in range(16)]
    assert parts_of(np.array([10**6] * 160), 100_000) == [(number, 6_250) for number in range(0, 160, 10)]
    assert parts_of(np.array([100, 10**6]), 100_000) == [(0, 100), (1, 99_900)]
    assert parts_of(np.array([10**6]), 100_000) == [(0, 100_000)]


@given(st.lists(st.integers(0, 9_000), min_size=1, max_size=80), st.integers(1, 200_000))
def test_the_parts_add_up_and_none_is_longer_than_its_document(lengths: list[int], max_characters: int) -> None:
    parts = parts_of(np.array(lengths), max_characters)
    assert sum(part for _, part in parts) == min(sum(lengths), max_characters)
    assert all(1 <= part <= lengths[document] for document, part in parts)
    assert [document for document, _ in parts] == sorted({document for document, _ in parts})


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16, 60, 1_000])
def test_every_beginning_of_the_order_is_spread_evenly(count: int) -> None:
    order = val_sample_module._spread_order(count)
    assert sorted(order.tolist()) == list(range(count))
    for number in range(1, count + 1):
        places = np.sort(order[:number])
        gaps = np.diff([0, *places.tolist(), count])
        assert gaps.max() <= 4 * math.ceil(count / number)


def test_an_empty_val_has_no_sample(tmp_path: Path) -> None:
    val = encoded_splits(tmp_path, LETTERS, ["a\n"], ["a\n"])["val"]
    with pytest.raises(DataError, match=r"'val'.*is empty"):
        val_sample(dataclasses.replace(val, ids=val.ids[:0], document_offsets=np.array([0])), LETTERS, 10)


def test_the_sample_says_what_it_is(tmp_path: Path) -> None:
    val = encoded_splits(tmp_path, TOKENIZERS[0], ["a\n"], SORTED)["val"]
    assert str(val_sample(val, TOKENIZERS[0], 200)) == "200 characters from 4 of the 40 documents of val"


def test_the_quick_figure_is_the_disjoint_one(tmp_path: Path) -> None:
    tokens = CharTable(ALPHABET)
    val = encoded_splits(tmp_path, tokens, ["a\n"], ENGLISH)["val"]
    torch.manual_seed(1)
    model = MiniGPT(tiny_model(tokens.vocab_size)).eval()
    quick = quick_bits_per_char(model, val_sample(val, tokens, 10**9), context_of(tokens))
    whole = evaluate_split(model, val, tokens, EvaluateConfig())
    assert quick == pytest.approx(whole.disjoint_bits_per_char, rel=1e-6)
