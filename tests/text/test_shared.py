"""What val and test share with train, measured and printed; groups of documents that a division does not separate."""

import json
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain_helpers import experiment_values, write_experiment
from data.config import build
from data.corpus import CorpusConfig
from data.dividing import divide as divide_module
from data.dividing.divide import (
    MOST_DOCUMENTS_MOVED,
    SHARED_CHARACTERS,
    clean_and_divide,
    describe_division,
    divide,
    grouped,
    place,
    text_key,
)
from data.dividing.overlap import Text, covered
from data.dividing.shared import DECISIVE_LENGTH, measure_shared
from data.errors import ConfigError, DataError
from data.layout import SPLITS, Layout
from data.sources.pydocs import load_pydocs
from data.splits import Document, read_manifest
from factories import examples
from scripts import data

FRACTIONS = (0.9, 0.05, 0.05)
HALVES = (0.5, 0.25, 0.25)
LICENCE = "Permission is hereby granted, free of charge, to any person obtaining a copy."


def documents(texts: Sequence[str]) -> list[Document]:
    return [Document(f"d{number}", text) for number, text in enumerate(texts)]


def shares_at(divided: Mapping[str, Sequence[Document]], length: int) -> list[float]:
    return [measure_shared(divided)[split].shares[str(length)] for split in ("val", "test")]


def unlike(number: int, length: int = 60) -> str:
    """Text that shares no long string with that of another number."""
    return "".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz ", k=length)) + "\n"


# --- measuring ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [30, 50, 100])
def test_a_string_counts_from_its_length_on(length: int) -> None:
    string = unlike(1, 200)
    divided = {
        "train": documents([f"<{string[:length]}>\n", unlike(2)]),
        "val": documents([f"[{string[: length - 1]}]", "x" * length]),
        "test": documents([f"[{string[:length]}]", f"[{string[: length + 1]}]"]),
    }
    found = measure_shared(divided)
    assert found["val"].shares[str(length)] == 0.0
    assert found["test"].shares[str(length)] == pytest.approx(2 * length / (2 * length + 5))


def test_documents_with_the_most_are_named_in_order() -> None:
    string = unlike(1, 400)
    texts = [string[:100] + "!", "nothing of it", string[:300] + "!" * 100, string[100:200], *[string[:60]] * 4]
    divided = {"train": documents([string]), "val": documents(["none"]), "test": documents(texts)}
    found = measure_shared(divided)
    assert found["val"].documents == []
    assert [one["name"] for one in found["test"].documents] == ["d2", "d0", "d3", "d4", "d5"]
    assert found["test"].documents[0] == {"name": "d2", "characters": 300, "share": 0.75}
    assert json.loads(json.dumps(found["test"].shares)) == found["test"].shares


texts_of_few_letters = st.lists(st.text("ab", min_size=1, max_size=120), min_size=1, max_size=4)


@examples(60)
@given(train=texts_of_few_letters, val=texts_of_few_letters, test=texts_of_few_letters)
def test_equal_to_a_naive_count(train: list[str], val: list[str], test: list[str]) -> None:
    val, test = [*val, train[0][:70]], [*test, train[-1][-70:]]  # something to find
    found = measure_shared({"train": documents(train), "val": documents(val), "test": documents(test)})
    for split, texts in (("val", val), ("test", test)):
        for length in (30, 50, 100):
            assert found[split].shares[str(length)] == pytest.approx(naive_share(texts, train, length))


def naive_share(texts: Sequence[str], train: Sequence[str], length: int) -> float:
    marked = 0
    for text in texts:
        starts = [at for at in range(len(text) - length + 1) if any(text[at : at + length] in one for one in train)]
        marked += len({at + k for at in starts for k in range(length)})
    return marked / sum(map(len, texts))


# --- grouping -----------------------------------------------------------------------------------------------------


def test_fifty_common_characters_make_a_group_and_forty_nine_do_not() -> None:
    string = unlike(1)[:SHARED_CHARACTERS]
    groups = [one.group for one in grouped(documents([f"1{string}2", f"3{string}", f"4{string[1:]}5", unlike(2)]))]
    assert groups[0] == groups[1] == min(text_key(f"1{string}2"), text_key(f"3{string}"))
    assert len(set(groups)) == 3


def test_documents_equal_up_to_white_space_are_a_group_however_short() -> None:
    groups = [one.group for one in grouped(documents(["a b\n", "a  b\n", "c\n", " \n", "\n"]))]
    assert groups[0] == groups[1] and len(set(groups)) == 3
    assert groups[3] == groups[4] == text_key("")


letters = st.text("ab ", min_size=1, max_size=12)


@examples(200)
@given(st.lists(letters, min_size=3, max_size=40), st.sampled_from([FRACTIONS, HALVES, (0.4, 0.3, 0.3)]))
def test_no_string_of_the_length_stands_in_two_splits(texts: list[str], fractions: tuple[float, ...]) -> None:
    length = 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divide_module, "SHARED_CHARACTERS", length)
        try:
            divided = divide(grouped(documents(texts)), fractions)
        except DataError as error:
            assert "group" in str(error) or "distinct" in str(error) or "document" in str(error)
            return
    assert Counter(one.text for found in divided.values() for one in found) == Counter(texts)
    strings = {split: Text.of([one.text for one in found]) for split, found in divided.items()}
    for one in SPLITS:
        for other in SPLITS:
            if one != other:
                assert not covered(strings[one], strings[other], length).any()


def test_long_white_space_is_a_shared_string() -> None:
    gap = " " * SHARED_CHARACTERS
    texts = [f"{unlike(number)}{gap if number < 3 else ''}{number}" for number in range(40)] + [f"{gap}\n"]
    for fractions in (HALVES, (0.2, 0.4, 0.4)):
        divided = divide(grouped(documents(texts)), fractions)
        (holder,) = [split for split, found in divided.items() if any(gap in one.text for one in found)]
        assert sum(gap in one.text for one in divided[holder]) == 4
        assert shares_at(divided, DECISIVE_LENGTH) == [0.0, 0.0]


def test_without_shared_strings_groups_change_nothing() -> None:
    texts = [unlike(number, 20 + number * 7) for number in range(200)]
    assert [[one.text for one in found] for found in divide(grouped(documents(texts)), (0.7, 0.2, 0.1)).values()] == [
        [one.text for one in found] for found in divide(documents(texts), (0.7, 0.2, 0.1)).values()
    ]


def test_the_order_of_documents_decides_nothing() -> None:
    texts = [f"{unlike(number)}{unlike(1000 + number // 3)}" for number in range(120)]
    before = {one.text: split for split, found in divide(grouped(documents(texts)), HALVES).items() for one in found}
    random.Random(1).shuffle(texts)
    after = {one.text: split for split, found in divide(grouped(documents(texts)), HALVES).items() for one in found}
    assert before == after
    for number in range(40):
        assert len({split for text, split in before.items() if unlike(1000 + number) in text}) == 1


def test_adding_an_unlike_document_moves_at_most_three() -> None:
    for seed in range(10):
        texts = [unlike(1000 * seed + number) for number in range(60)]
        before = {
            one.text: split for split, found in divide(grouped(documents(texts)), HALVES).items() for one in found
        }
        after = divide(grouped(documents([*texts, unlike(10**6 + seed)])), HALVES)
        moved = sum(before.get(one.text, split) != split for split, found in after.items() for one in found)
        assert moved <= MOST_DOCUMENTS_MOVED


def test_a_group_larger_than_val_or_test_goes_to_train() -> None:
    for seed in range(20):
        texts = [f"{unlike(1000 * seed + number)}{LICENCE * (number < 30)}\n" for number in range(100)]
        divided = divide(grouped(documents(texts)), (0.6, 0.2, 0.2))
        assert [len(found) for found in divided.values()] == [60, 20, 20]
        assert sum(LICENCE in one.text for one in divided["train"]) == 30


def test_a_group_of_much_text_goes_to_train_and_a_long_single_text_does_not() -> None:
    holders = set()
    for seed in range(40):
        common = unlike(-1 - seed, 3_000)
        texts = [f"{unlike(1000 * seed + number)}" for number in range(100)]
        divided = divide(grouped(documents([*texts, f"1{common}", f"2{common}"])), (0.6, 0.2, 0.2))
        assert sum(common in one.text for one in divided["train"]) == 2
        divided = divide(grouped(documents([*texts, common])), (0.6, 0.2, 0.2))
        holders |= {split for split, found in divided.items() if any(common == one.text for one in found)}
    assert holders == set(SPLITS)


def test_val_and_test_share_what_a_very_large_group_leaves() -> None:
    for seed in range(20):
        texts = [f"{unlike(1000 * seed + number)}{LICENCE * (number < 90)}\n" for number in range(100)]
        divided = divide(grouped(documents(texts)), (0.6, 0.2, 0.2))
        assert [len(found) for found in divided.values()] == [90, 5, 5]


def test_place_puts_all_large_units_into_train() -> None:
    keys = [bytes([number]) for number in range(7)]
    sizes = dict(zip(keys, [1, 50, 2, 60, 3, 1, 1], strict=True))
    placed = place(sizes, FRACTIONS, {keys[2]})
    assert {key for key in keys if placed[key] == "train"} >= {keys[1], keys[2], keys[3]}
    assert set(placed.values()) == set(SPLITS)


def test_place_keeps_train_what_is_for_train_where_a_border_lies_nearer() -> None:
    keys = [bytes([number]) for number in range(5)]
    placed = place(dict(zip(keys, [1, 1, 1, 1, 3], strict=True)), (0.2, 0.4, 0.4), set(keys[:3]))
    assert [placed[key] for key in keys] == ["train", "train", "train", "val", "test"]


def test_too_few_groups_are_refused_with_the_way_on() -> None:
    texts = [f"{unlike(number)}{LICENCE}\n" for number in range(39)] + [unlike(99)]
    with pytest.raises(DataError) as caught:
        clean_and_divide(documents(texts), "minimal", FRACTIONS, group_shared=True)
    assert "the 40 documents form only 2 groups: those that share a string of 50 characters stay in one" in str(
        caught.value
    )
    assert "`group_shared: false`" in str(caught.value)
    clean_and_divide(documents(texts), "minimal", FRACTIONS)
    with pytest.raises(DataError, match="the 9 documents hold only 2 distinct texts"):
        clean_and_divide(documents(["a", "b ", "b"] * 3), "minimal", FRACTIONS, group_shared=True)


def test_description_of_the_groups() -> None:
    texts = [f"{unlike(number)}{LICENCE * (number < 10)}" for number in range(40)]
    divided = divide(grouped(documents(texts)), HALVES)
    found = describe_division(divided, HALVES)["groups"]
    characters = sum(map(len, texts[:10]))
    assert found["shared_characters"] == 50 and found["number"] == 31
    assert (found["largest"]["documents"], found["largest"]["characters"]) == (10, characters)
    assert found["largest"]["share"] == pytest.approx(characters / sum(map(len, texts)))
    assert any(LICENCE in one.text for one in divided[found["largest"]["split"]])
    assert describe_division(divide(documents(texts), HALVES), HALVES)["groups"] is None


# --- what a user sees ---------------------------------------------------------------------------------------------


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    for number in range(60):  # every third text holds the licence
        Path(f"texts/{number}.txt").write_text(unlike(number) + (LICENCE if number % 3 == 0 else ""))

    def run(**corpus: Any) -> list[str]:
        values = experiment_values(Path("run"), {"source": "text", "name": "own", **corpus})
        data.main(["--config", str(write_experiment(Path("e.yaml"), values))])
        return capsys.readouterr().out.splitlines()

    return run


def line_with(lines: Sequence[str], start: str) -> str:
    (found,) = [line for line in lines if line.startswith(start)]
    return found


def test_make_data_warns_of_shared_strings_and_names_the_key(printed: Any) -> None:
    corpus = {"paths": ["texts"], "fractions": [0.5, 0.25, 0.25]}
    lines = printed(**corpus)
    entry = read_manifest(Layout(Path("run")), "own")
    val, test = (entry["shared_with_train"][split]["shares"] for split in ("val", "test"))
    assert val["50"] > 0.05 and val["100"] == 0.0
    assert line_with(lines, "shared with train: ") == (
        f"shared with train: {val['30']:.1%} of val and {test['30']:.1%} of test in strings of 30 characters or more, "
        f"{val['50']:.1%} of val and {test['50']:.1%} of test in strings of 50 characters or more, "
        "0.0% of val and 0.0% of test in strings of 100 characters or more"
    )
    warning = line_with(lines, "warning: ")
    assert "bends the verdict; `group_shared: true` in the corpus block" in warning and "texts/" in warning
    assert printed(**corpus)[1:] == lines[1:]  # up to date


def test_group_shared_brings_it_to_zero(printed: Any) -> None:
    lines = printed(paths=["texts"], fractions=[0.5, 0.25, 0.25], group_shared=True)
    entry = read_manifest(Layout(Path("run")), "own")
    assert [entry["shared_with_train"][split]["shares"]["50"] for split in ("val", "test")] == [0.0, 0.0]
    assert entry["division"]["groups"]["number"] == 41
    assert not [line for line in lines if line.startswith("warning")]
    assert "documents that share 50 characters in one split" in lines[1]
    assert "form 41 groups; the largest (20 documents, " in line_with(lines, "groups: ")
    assert line_with(lines, "groups: ").endswith("in train; val and test are the less repetitive part of the text")


def test_given_splits_are_told_another_way_on(printed: Any) -> None:
    for split, number in zip(SPLITS, (0, 3, 1), strict=True):
        Path(f"{split}.txt").write_text(Path(f"texts/{number}.txt").read_text())
    lines = printed(**{split: f"{split}.txt" for split in SPLITS})
    warning = line_with(lines, "warning: ")
    assert "of val is in train" in warning and "group_shared" not in warning and "val.txt" in warning
    assert warning.endswith("take such passages out of train or out of val")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"source": "wikitext2", "group_shared": True},
            "`group_shared` is an option of source text and hub and pydocs",
        ),
        ({"source": "text", "train": "a", "val": "b", "test": "c", "group_shared": True}, "with `train`, `val` and"),
        ({"source": "pydocs", "group_shared": 50}, "group_shared: expected true or false"),
    ],
)
def test_the_key_is_refused_where_it_means_nothing(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(CorpusConfig, values, "e.yaml: corpus")


def test_pydocs_is_grouped_by_default_and_others_are_not() -> None:
    assert CorpusConfig(source="pydocs").is_grouped
    assert not CorpusConfig(source="pydocs", group_shared=False).is_grouped
    assert not CorpusConfig(source="text", paths=("a",)).is_grouped
    assert CorpusConfig(source="hub", dataset="a/b", group_shared=True).is_grouped
    assert not CorpusConfig(source="wikitext2").is_grouped


@pytest.mark.slow
def test_pydocs_shares_nothing_and_is_measured_in_time() -> None:
    """Seconds of this processor's work, not of the clock: other programs may run."""
    found = load_pydocs().documents
    before, _ = clean_and_divide(found, "minimal", FRACTIONS)
    assert min(shares_at(before, DECISIVE_LENGTH)) > 0.2
    start = time.process_time()
    divided, _ = clean_and_divide(found, "minimal", FRACTIONS, group_shared=True)
    grouping = time.process_time() - start
    start = time.process_time()
    assert shares_at(divided, DECISIVE_LENGTH) == [0.0, 0.0]
    assert time.process_time() - start < 6.0 and grouping < 12.0  # about 2 s each on two cores of 2020
    sizes = np.array([len(divided[split]) for split in SPLITS])
    assert (sizes / sizes.sum()).tolist() == pytest.approx([0.9, 0.05, 0.05], abs=0.005)
