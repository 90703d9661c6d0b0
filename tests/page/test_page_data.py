import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from compare.characters import character_nats
from compare.page import data as module
from compare.page import vocabularies
from compare.page.data import (
    curves,
    document_name,
    documents,
    longest_word,
    opening,
)
from compare.page.passage import LEVELS, passage
from compare.page.values import Passage, Series, Span
from compare.page.vocabularies import embedded_tokenizers
from compare.runs import Entry
from data.errors import ReportError
from data.splits import Split
from page_helpers import (
    DOCUMENTS,
    SPLITS,
    bpe_of,
    entries_of,
    evaluation_of,
    every_tokenizer,
    full_page,
    plain_page,
    split_of,
)
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.char import CharTokenizer

TEST = SPLITS["test"]


def evaluations_of(*names: str) -> dict[str, Any]:
    return {name: evaluation_of(every_tokenizer()[name], TEST, seed) for seed, name in enumerate(names)}


def test_missing_parts_of_the_comparison_are_missing() -> None:
    page = plain_page(entries_of({"char": every_tokenizer()["char"]}))
    assert (page.baselines, page.intrinsic, page.sweep, page.ladder, page.sizes) == ((), {}, None, None, None)
    assert page.documents.pairs == ()  # nothing to set it against
    assert page.contestants[0].num_seeds == 1


def test_a_contestants_figure_is_the_mean_over_its_seeds() -> None:
    [entry] = entries_of({"byte": every_tokenizer()["byte"]}, seeds=(1, 2, 3))
    page = plain_page([entry])
    expected = np.mean([run.evaluations["test"].bits_per_char for run in entry.runs])
    assert page.contestants[0].bits_per_char == pytest.approx(expected, rel=1e-12)
    assert page.contestants[0].num_seeds == 3


def test_runs_on_another_text_are_refused() -> None:
    entries = entries_of({"byte": every_tokenizer()["byte"]})
    other = SPLITS | {"test": split_of("test", DOCUMENTS[1:])}
    with pytest.raises(ReportError, match=r"was scored on a test text with sha256 .* run `make all`"):
        plain_page(entries, other)


def test_other_document_borders_are_refused() -> None:
    entries = entries_of({"byte": every_tokenizer()["byte"]})
    moved = replace(TEST, document_offsets=np.array([0, len(TEST.text)]))
    with pytest.raises(ReportError, match="documents do not begin where"):
        plain_page(entries, SPLITS | {"test": moved})


def test_provenance_names_every_text_tokenizer_and_run() -> None:
    tokenizers = {name: every_tokenizer()[name] for name in ("char", "byte")}
    entries = entries_of(tokenizers, seeds=(1, 2))
    page = plain_page(entries)
    values = [value for group in page.provenance for _, value in group.lines]
    for split in SPLITS.values():
        assert split.sha256 in values
    for entry in entries:
        assert tokenizers[entry.name].fingerprint() in values
        for run in entry.runs:
            assert {run.report_sha256, run.test.nats_sha256, run.report.checkpoint_sha256} <= set(values)
    labels = [label for group in page.provenance for label, _ in group.lines]
    assert "crlf converted" in labels and "lone cr converted" not in labels  # what cleaning did, not what it did not


def run_with(points: list[tuple[float, float]]) -> Any:
    metrics: list[dict[str, float]] = [
        {"characters": 1e6 * x, "flops": 1e12 * x, "seconds": x, "val_sample_bits_per_char": y} for x, y in points
    ]
    return SimpleNamespace(metrics=[*metrics, {"characters": 9e9, "flops": 1.0, "seconds": 1.0}])


def test_a_single_seed_is_drawn_as_it_is() -> None:
    entry: Any = SimpleNamespace(name="a", runs=[run_with([(1.0, 3.0), (2.0, 2.5)])])
    by_quantity = {curve.quantity: curve.series[0] for curve in curves([entry])}
    assert list(by_quantity) == ["characters", "flops", "seconds"]
    for series in by_quantity.values():
        assert series == Series("a", 1, x=(1.0, 2.0), mean=(3.0, 2.5), low=(3.0, 2.5), high=(3.0, 2.5))


def test_seeds_are_joined_on_common_abscissae() -> None:
    runs = [run_with([(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), run_with([(1.5, 3.0), (3.0, 1.5), (4.0, 1.0)])]
    entry: Any = SimpleNamespace(name="a", runs=runs)
    series = curves([entry])[2].series[0]
    assert series.x == (1.5, 2.0, 3.0)  # where both have values
    assert series.low == (2.5, 2.0, 1.0)
    assert series.high == (3.0, 2.5, 1.5)
    assert series.mean == (2.75, 2.25, 1.25)


def test_a_run_without_val_figures_has_no_curve() -> None:
    entry: Any = SimpleNamespace(name="a", runs=[run_with([])])
    assert all(curve.series == () for curve in curves([entry]))


def test_documents_have_their_own_bits_per_character() -> None:
    evaluations = evaluations_of("char", "byte")
    found = documents(TEST, evaluations)
    for name, evaluation in evaluations.items():
        bits = character_nats(evaluation) / math.log(2)
        for number, (start, end) in enumerate(zip(TEST.document_offsets, TEST.document_offsets[1:], strict=False)):
            assert found.bits_per_char[name][number] == pytest.approx(bits[start:end].mean(), rel=1e-3)
    assert found.num_chars == tuple(len(document) for document in DOCUMENTS)
    assert found.names[:2] == ("0.", "0. Counting tokens")


def test_every_contestant_is_set_against_the_best() -> None:
    evaluations = evaluations_of("char", "byte", "char_bpe_none", "byte_bpe_gpt2", "byte_bpe_gpt4")
    ranked = sorted(evaluations, key=lambda name: evaluations[name].bits_per_char)
    assert documents(TEST, evaluations).pairs == tuple((other, ranked[0]) for other in ranked[1:4])


def test_of_many_documents_the_longest_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DOCUMENTS", 3)
    found = documents(TEST, evaluations_of("byte"))
    assert (found.num_documents, found.num_shown) == (12, 3)
    assert found.names == ("0. Counting tokens", "1. Counting tokens", "2. Counting tokens")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("\n\n  Title \nrest", "Title"),
        (" \n\t\n", "(blank document)"),
        ("", "(blank document)"),
        ("x" * 60, "x" * 60),
        ("word " * 20, "word " * 11 + "word…"),
    ],
)
def test_a_documents_name_is_its_first_line_with_text(text: str, name: str) -> None:
    assert document_name(text) == name


def test_embedded_merges_are_the_tokenizers_own() -> None:
    for entry in embedded_tokenizers(every_tokenizer()):
        tokenizer = every_tokenizer()[entry.name]
        assert (entry.kind, entry.vocab_size) == (tokenizer.kind, tokenizer.vocab_size)
        assert entry.left_out == "" and "left_out" not in entry.as_json()
        tokens = list(entry.base)
        for left, right in zip(entry.merges[::2], entry.merges[1::2], strict=True):
            tokens.append(tokens[left] + tokens[right])
        assert tokens == getattr(tokenizer, "tokens", BYTE_CHARACTERS)
        assert entry.split_pattern == getattr(tokenizer, "split_pattern", "none")


def test_special_tokens_do_not_disturb_the_ids() -> None:
    plain = bpe_of("char_bpe", "none")
    special = BPETokenizer(plain.base_tokens, plain.merges, special_tokens=["<end>"])
    [entry] = embedded_tokenizers({"special": special})
    [without] = embedded_tokenizers({"special": plain})
    assert entry == replace(without, vocab_size=plain.vocab_size + 1)


def test_what_does_not_fit_into_the_page_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabularies, "MOST_TOKENIZER_BYTES", 600)
    tokenizers = {"large": bpe_of("byte_bpe", "gpt2"), "small": CharTokenizer(["\n", "a"])}
    large, small = embedded_tokenizers(tokenizers)
    assert large.left_out.startswith("its vocabulary of 400 takes 0.0 MB")
    assert "merges" not in large.as_json() and "base" not in large.as_json()
    assert small.base == "\na"  # it still fits


def test_a_kind_from_outside_is_left_out() -> None:
    outside: Any = SimpleNamespace(kind="unigram", vocab_size=7)
    assert [one.as_json() for one in embedded_tokenizers({"other": outside})] == [
        {
            "name": "other",
            "kind": "unigram",
            "vocab_size": 7,
            "left_out": "the page cannot encode tokenizers of kind 'unigram'",
        }
    ]


def test_fifty_thousand_merges_fit() -> None:
    base = [chr(0x4E00 + index) for index in range(230)]
    pairs = [(left, right) for left in base for right in base][:50_000]
    [entry] = embedded_tokenizers({"large": BPETokenizer(base, pairs)})
    assert len(entry.merges) == 100_000
    assert len(json.dumps(entry.as_json())) < 1_500_000


def rows_of(found: Passage, number: int) -> list[Span]:
    return [span for cell in found.cells for span in cell.rows[number]]


def test_every_row_of_the_passage_is_the_same_text_with_all_its_bits() -> None:
    evaluations = evaluations_of("char", "char_bpe_none", "byte_bpe_gpt2", "byte")
    found = passage(TEST, evaluations)
    start = int(TEST.document_offsets[found.document_number - 1])
    text = TEST.text[start : start + found.num_chars]
    for number, name in enumerate(found.contestants):
        spans = rows_of(found, number)
        assert "".join(span[0] for span in spans) == text
        bits = character_nats(evaluations[name])[start : start + len(text)] / math.log(2)
        shown = [span[1] for span in spans for _ in span[0]]
        assert shown == pytest.approx(bits.tolist(), abs=0.0051)
        assert found.bits_per_char[name] == pytest.approx(bits.mean())


def test_spans_begin_where_tokens_begin() -> None:
    tokenizer = every_tokenizer()["char_bpe_none"]
    found = passage(TEST, {"bpe": evaluation_of(tokenizer, TEST, 1)})
    tokens = [tokenizer.decode([index]) for index in tokenizer.encode(DOCUMENTS[found.document_number - 1])]
    joined: list[str] = []
    for text, _, _, is_begin in rows_of(found, 0):
        if is_begin:
            joined.append(text)
        else:
            joined[-1] += text
    assert joined[:-1] == tokens[: len(joined) - 1]


def test_levels_are_the_legends() -> None:
    found = passage(TEST, evaluations_of("char"))
    spans = rows_of(found, 0)
    assert {span[2] for span in spans} > {0, 4, 7}
    for _, bits, level, _ in spans:
        low = LEVELS[level - 1] if level else 0.0
        high = LEVELS[level] if level < len(LEVELS) else math.inf
        assert low - 0.0051 <= bits <= high + 0.0051


def test_cells_are_words_that_a_phone_can_hold() -> None:
    split = split_of("test", ["two words\n" + "x" * 60 + " \n\n    indented\n" + "word " * 100 + "\n"])
    found = passage(split, {"byte": evaluation_of(every_tokenizer()["byte"], split, 1)})
    texts = ["".join(span[0] for span in cell.rows[0]) for cell in found.cells]
    assert texts[:8] == ["two ", "words\n", "x" * 24, "x" * 24, "x" * 12 + " \n", "\n", "    ", "indented\n"]
    assert [cell.ends_line for cell in found.cells[:8]] == [text.endswith("\n") for text in texts[:8]]


def test_the_passage_ends_behind_white_space() -> None:
    split = split_of("test", ["some words " * 90 + "\n"])
    found = passage(split, {"byte": evaluation_of(every_tokenizer()["byte"], split, 1)})
    assert 590 <= found.num_chars <= 600 and not found.is_whole_document
    assert split.text[found.num_chars - 1] == " "


def test_a_text_without_white_space_is_cut_somewhere() -> None:
    split = split_of("test", ["x" * 900 + "\n"])
    found = passage(split, {"byte": evaluation_of(every_tokenizer()["byte"], split, 1)})
    assert found.num_chars == 400


def test_short_documents_give_the_longest_one() -> None:
    split = split_of("test", ["a\n", "longer\n", "b\n"])
    found = passage(split, {"byte": evaluation_of(every_tokenizer()["byte"], split, 1)})
    assert (found.document_number, found.num_chars, found.is_whole_document) == (2, 7, True)


def test_the_passage_is_the_most_typical_document() -> None:
    texts = ["x" * 450 + "\n", "y" * 450 + "\n", "z" * 450 + "\n"]
    split: Split = split_of("test", texts)
    evaluation = evaluation_of(every_tokenizer()["byte"], split, 1)
    nats = np.repeat([3.0, 2.0, 1.1], 451).astype(np.float32)  # the mean is 2.03
    assert passage(split, {"byte": replace(evaluation, nats=nats)}).document_number == 2
    other = np.repeat([1.0, 4.0, 1.2], 451).astype(np.float32)  # for both together the third is the least far off
    both = {"a": replace(evaluation, nats=nats), "b": replace(evaluation, nats=other)}
    assert passage(split, both).document_number == 3


def test_an_entry_of_two_seeds_shows_their_mean() -> None:
    [entry] = entries_of({"byte": every_tokenizer()["byte"]}, seeds=(1, 2))
    assert isinstance(entry, Entry)
    page = plain_page([entry])
    each = [documents(TEST, {"byte": run.evaluations["test"]}).bits_per_char["byte"] for run in entry.runs]
    assert list(page.documents.bits_per_char["byte"]) == pytest.approx(np.mean(each, axis=0).tolist(), rel=1e-3)


@pytest.mark.parametrize(
    ("text", "begun"),
    [
        ("\n\nshort text\n", "short text\n"),
        ("word " * 60, ("word " * 32).rstrip()),
        ("x" * 300, "x" * 160),
        ("字" * 150 + " " + "字" * 50, "字" * 150),
        ("ab " + "字" * 300, "ab " + "字" * 157),
        ("\n", ""),
    ],
)
def test_the_viewer_starts_with_whole_words(text: str, begun: str) -> None:
    assert opening(text) == begun


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a longest word", " longest"),
        ("twenty-four-characters on", "twenty-four-char"),
        ("字" * 40, "字" * 16),
        ("\n", "\n"),
    ],
)
def test_the_stepper_starts_with_a_long_word(text: str, word: str) -> None:
    assert longest_word(text) == word


def test_the_viewer_starts_with_the_users_own_text() -> None:
    page = full_page()
    start = int(TEST.document_offsets[page.passage.document_number - 1])
    assert page.viewer.text and TEST.text[start:].lstrip("\n").startswith(page.viewer.text)
    assert page.viewer.word in page.passage.text
