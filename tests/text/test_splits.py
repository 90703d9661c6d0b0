"""Documents -> splits on disk: stable, complete, never empty, and refused when they are not what was written."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.dividing.divide import clean_and_divide
from data.errors import DataError
from data.files import sha256_text, write_json, write_text
from data.layout import SPLITS, Layout
from data.splits import (
    Document,
    Split,
    load_split,
    load_splits,
    outputs_match,
    read_manifest,
    read_manifests,
    write_splits,
)

FRACTIONS = (0.9, 0.05, 0.05)
DIVIDED = {"train": ["one\n", "zwei\n", "\n"], "val": ["é 😀\n"], "test": ["one\n", "\u2028x y\x00\n"]}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    write_splits(layout, "tiny", DIVIDED, {"format": 1})
    return layout


def texts_of(divided: dict[str, list[Document]]) -> dict[str, list[str]]:
    return {split: [document.text for document in documents] for split, documents in divided.items()}


def given(**texts: list[str]) -> list[Document]:
    return [Document(f"{split}-{n}", text, split) for split, found in texts.items() for n, text in enumerate(found)]


def test_given_splits_and_order_are_kept() -> None:
    divided, counts = clean_and_divide(given(train=["b", "a\n"], val=["c"], test=["d", "d"]), "minimal", FRACTIONS)
    assert texts_of(divided) == {"train": ["b\n", "a\n"], "val": ["c\n"], "test": ["d\n", "d\n"]}
    assert counts["final_newlines_added"] == 4


def test_empty_documents_are_dropped_and_counted_but_not_white_space() -> None:
    documents = given(train=["", "a", "\ufeff", " \n", "\n"], val=["b"], test=["c", ""])
    divided, counts = clean_and_divide(documents, "minimal", FRACTIONS)
    assert texts_of(divided)["train"] == ["a\n", " \n", "\n"]
    assert counts["empty_documents_dropped"] == 3
    assert counts["white_space_only_documents"] == 2
    assert counts["byte_order_marks_removed"] == 1


def test_every_document_ends_with_a_newline_after_every_cleaning() -> None:
    for cleaning in ("minimal", "wikitext"):
        divided, _ = clean_and_divide(
            given(train=["a ", "b\r", "c\u2028"], val=[" e\n"], test=["d\r\n"]), cleaning, FRACTIONS
        )
        assert all(text.endswith("\n") and "\r" not in text for texts in texts_of(divided).values() for text in texts)


def test_lone_surrogate_is_refused_with_document_and_offset() -> None:
    with pytest.raises(DataError, match=r"^val-0 holds the lone surrogate U\+D83D at character 1"):
        clean_and_divide(given(train=["a"], val=["b\ud83d\ude00"], test=["c"]), "minimal", FRACTIONS)


@pytest.mark.parametrize("empty", SPLITS)
def test_given_split_without_text_is_refused(empty: str) -> None:
    texts: dict[str, list[str]] = {split: ["a"] for split in SPLITS}
    texts[empty] = ["", "\ufeff"]
    with pytest.raises(DataError, match=f"the {empty} split is empty: its source holds no text"):
        clean_and_divide(given(**texts), "minimal", FRACTIONS)


@pytest.mark.parametrize("blank", SPLITS)
def test_given_split_of_white_space_only_is_refused(blank: str) -> None:
    texts: dict[str, list[str]] = {split: ["a"] for split in SPLITS}
    texts[blank] = [" \n", "", "\t"]
    with pytest.raises(DataError, match=rf"the {blank} split is empty: .* no text \(2 of white space only\); give it"):
        clean_and_divide(given(**texts), "minimal", FRACTIONS)


def test_files_are_the_text_and_its_offsets(layout: Layout) -> None:
    assert sorted(path.name for path in layout.processed.iterdir()) == [
        "manifest.json",
        *sorted(f"tiny_{split}_{what}" for split in SPLITS for what in ("clean.txt", "docs.npy")),
    ]
    for split, documents in DIVIDED.items():
        assert layout.split_text("tiny", split).read_bytes() == "".join(documents).encode()
        offsets = np.load(layout.split_documents("tiny", split), allow_pickle=False)
        assert offsets.dtype == np.int64 and offsets.tolist() == np.cumsum([0, *map(len, documents)]).tolist()


def test_figures_in_the_manifest(layout: Layout) -> None:
    splits = read_manifest(layout, "tiny")["splits"]
    train, val, test = (splits[split] for split in SPLITS)
    assert (train["characters"], train["bytes"], train["words"], train["documents"]) == (10, 10, 2, 3)
    assert (val["characters"], val["bytes"], val["words"], val["documents"]) == (4, 8, 2, 1)
    assert train["distinct_characters"] == len(set("onezwi\n")) == 7
    assert train["characters_absent_from_train"] == []
    assert val["characters_absent_from_train"] == [
        {"character": " ", "code_point": "U+0020", "count": 1},
        {"character": "é", "code_point": "U+00E9", "count": 1},
        {"character": "😀", "code_point": "U+1F600", "count": 1},
    ]
    codes = [absent["code_point"] for absent in test["characters_absent_from_train"]]
    assert codes == ["U+0000", "U+0020", "U+0078", "U+0079", "U+2028"]
    assert val["sha256"] == sha256_text("é 😀\n")


def test_round_trip(layout: Layout) -> None:
    loaded = load_splits(layout, "tiny")
    assert list(loaded) == list(SPLITS)
    for name, split in loaded.items():
        assert isinstance(split, Split) and split.name == name
        assert split.documents() == DIVIDED[name]
        assert split.text == "".join(DIVIDED[name])
        assert split.sha256 == sha256_text(split.text)


def test_writing_again_gives_the_same_bytes(layout: Layout) -> None:
    before = {path.name: path.read_bytes() for path in layout.processed.iterdir()}
    write_splits(layout, "tiny", DIVIDED, {"format": 1})
    assert {path.name: path.read_bytes() for path in layout.processed.iterdir()} == before


def test_several_corpora_share_a_root(layout: Layout) -> None:
    other = {"train": ["t\n"], "val": ["v\n"], "test": ["s\n"]}
    entry = write_splits(layout, "other", other, {"format": 1})
    assert list(read_manifests(layout)) == ["tiny", "other"]
    assert read_manifest(layout, "other") == entry
    assert load_split(layout, "tiny", "val").documents() == DIVIDED["val"]
    assert load_split(layout, "other", "val").documents() == ["v\n"]


def test_edited_text_is_refused_naming_hashes_files_and_command(layout: Layout) -> None:
    path = layout.split_text("tiny", "val")
    wanted, found = sha256_text("é 😀\n"), sha256_text("é 😁\n")
    path.write_text("é 😁\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load_split(layout, "tiny", "val")
    for part in (str(path), str(layout.corpus_manifest), wanted[:12], found[:12], "`make data`"):
        assert part in str(caught.value)
    assert load_split(layout, "tiny", "train").documents() == DIVIDED["train"]


def test_edited_offsets_are_refused(layout: Layout) -> None:
    np.save(layout.split_documents("tiny", "val"), np.array([0, 2, 4]))
    with pytest.raises(DataError, match=r"tiny_val_docs\.npy has sha256 .* but .*manifest\.json says"):
        load_split(layout, "tiny", "val")


@pytest.mark.parametrize("name", ["tiny_test_clean.txt", "tiny_test_docs.npy"])
def test_missing_file_is_refused(layout: Layout, name: str) -> None:
    (layout.processed / name).unlink()
    with pytest.raises(DataError, match=rf"{name} does not exist, although .*manifest\.json lists it; run `make data`"):
        load_split(layout, "tiny", "test")


def test_no_manifest_and_unknown_corpus_are_refused(tmp_path: Path, layout: Layout) -> None:
    with pytest.raises(DataError, match=r"holds no corpus 'huge'; run `make data`"):
        load_split(layout, "huge", "train")
    with pytest.raises(DataError, match=r"manifest\.json holds no corpus 'tiny'; run `make data`"):
        load_split(Layout(tmp_path / "elsewhere"), "tiny", "train")


@pytest.mark.parametrize("manifest", [[], {"tiny": 3}, "x"])
def test_what_is_no_manifest_is_refused(layout: Layout, manifest: Any) -> None:
    write_json(layout.corpus_manifest, manifest)
    with pytest.raises(DataError, match=r"manifest\.json.*: expected an object, found .*; run `make data`"):
        read_manifests(layout)


def test_manifest_without_hashes_is_refused(layout: Layout) -> None:
    write_json(layout.corpus_manifest, {"tiny": {"splits": {"train": {}}}})
    with pytest.raises(DataError, match=r"records no hash for .*tiny_train_clean.txt; run `make data`"):
        load_split(layout, "tiny", "train")
    assert not outputs_match(layout, "tiny", read_manifest(layout, "tiny"))


def test_outputs_match_sees_every_edit_and_no_touch(layout: Layout) -> None:
    entry = read_manifest(layout, "tiny")
    assert outputs_match(layout, "tiny", entry)
    for path in layout.processed.iterdir():
        os.utime(path, (0, 0))
    assert outputs_match(layout, "tiny", entry)
    for name in [path.name for path in layout.processed.iterdir() if path.name != "manifest.json"]:
        path = layout.processed / name
        before = path.read_bytes()
        path.write_bytes(before[:-1] + b"X")
        assert not outputs_match(layout, "tiny", entry)
        path.unlink()
        assert not outputs_match(layout, "tiny", entry)
        path.write_bytes(before)
    assert outputs_match(layout, "tiny", entry)


def test_interrupted_before_the_manifest_is_not_taken_for_finished(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    from data import splits

    def interrupted(path: Path, value: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(splits, "write_json", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_splits(layout, "tiny", {**DIVIDED, "val": ["new\n"]}, {"format": 1})
    assert not outputs_match(layout, "tiny", read_manifest(layout, "tiny"))
    with pytest.raises(DataError, match=r"tiny_val_clean.txt has sha256"):
        load_split(layout, "tiny", "val")


def test_manifest_is_readable_json_with_real_characters(layout: Layout) -> None:
    text = layout.corpus_manifest.read_text(encoding="utf-8")
    assert "😀" in text and json.loads(text)["tiny"]["format"] == 1


def test_carriage_return_in_a_written_text_survives_reading(layout: Layout) -> None:
    """Cleaning removes them, but reading back must not be what hides one."""
    write_splits(layout, "raw", {"train": ["a\r\nb\n"], "val": ["\r\n"], "test": ["c\n"]}, {})
    assert load_split(layout, "raw", "train").text == "a\r\nb\n"
    write_text(layout.split_text("raw", "train"), "a\nb\n")
    with pytest.raises(DataError, match="raw_train_clean"):
        load_split(layout, "raw", "train")
