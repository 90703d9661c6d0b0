"""The corpus block of an experiment, and that `prepare` does what is needed and nothing that is not."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from data import corpus as sources
from data.config import build
from data.corpus import CorpusConfig, is_up_to_date, prepare
from data.errors import ConfigError, DataError
from data.layout import SPLITS, Layout
from data.splits import Corpus, Document, load_split, load_splits
from data.summary import describe_corpus

HALVES = (0.5, 0.25, 0.25)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with texts/0.txt … texts/39.txt and the three files train.txt, val.txt and test.txt."""
    (tmp_path / "texts").mkdir()
    for number in range(40):
        (tmp_path / "texts" / f"{number}.txt").write_text(f"text {number}\n")
    for split in SPLITS:
        (tmp_path / f"{split}.txt").write_text(f"one of {split}\n\ntwo of {split}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


BY_HASH = CorpusConfig(source="text", paths=("texts",), fractions=HALVES)
BY_PATH = CorpusConfig(source="text", train="train.txt", val="val.txt", test="test.txt")


def from_yaml(**values: Any) -> CorpusConfig:
    return build(CorpusConfig, values, "e.yaml: corpus")


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"source": "wikitext2"}, "wikitext2"),
        ({"source": "wikitext2-tokens"}, "wikitext2-tokens"),
        ({"source": "pydocs"}, "pydocs"),
        ({"source": "pydocs", "name": "docs-1.0"}, "docs-1.0"),
        ({"source": "text", "paths": ["a"]}, "text"),
        ({"source": "hub", "dataset": "roneneldan/TinyStories"}, "TinyStories"),
        ({"source": "hub", "dataset": "HuggingFaceFW/fineweb-edu", "config": "sample-10BT"}, "fineweb-edu"),
        ({"source": "wikitext2", "revision": "abc", "cleaning": "wikitext"}, "wikitext2"),
    ],
)
def test_valid_blocks_and_their_names(values: dict[str, Any], name: str) -> None:
    assert from_yaml(**values).corpus_name == name


def test_yaml_lists_become_tuples_and_numbers_numbers() -> None:
    config = from_yaml(source="hub", dataset="a/b", max_characters=2e6, fractions=[0.8, "1e-1", 0.1])
    assert config.max_characters == 2_000_000 and config.fractions == (0.8, 0.1, 0.1)
    assert from_yaml(source="text", paths=["a", "b/*.txt"]).paths == ("a", "b/*.txt")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "key 'source' is missing"),
        ({"source": "wikitext"}, "'wikitext' is not one of wikitext2, wikitext2-tokens, pydocs, text, hub"),
        ({"source": "pydocs", "cleaning": "full"}, "'full' is not one of minimal, wikitext"),
        ({"source": "pydocs", "sourc": 1}, "unknown key 'sourc'; did you mean 'source'"),
        ({"source": "pydocs", "paths": ["a"]}, "`paths` is an option of source text, not of pydocs; remove it"),
        ({"source": "wikitext2", "train": "a"}, "`train` is an option of source text, not of wikitext2"),
        ({"source": "text", "paths": ["a"], "dataset": "a/b"}, "`dataset` is an option of source hub, not of text"),
        ({"source": "wikitext2", "fractions": [0.8, 0.1, 0.1]}, "`fractions` is an option of source text and hub"),
        ({"source": "pydocs", "revision": "x"}, "`revision` is an option of source hub and wikitext2"),
        (
            {"source": "pydocs", "allow_repeated_documents": True},
            "`allow_repeated_documents` is an option of source text",
        ),
        (
            {"source": "text", "train": "a", "val": "b", "test": "c", "fractions": [0.5, 0.25, 0.25]},
            "with `train`, `val`",
        ),
        ({"source": "wikitext2", "max_characters": 5}, "`max_characters` is an option of source hub"),
        ({"source": "text"}, "source text wants `paths`, or all of `train`, `val` and `test`; found neither"),
        ({"source": "text", "train": "a", "test": "b"}, r"found \['train', 'test'\]"),
        ({"source": "text", "paths": ["a"], "val": "b"}, r"give either `paths` or .*found `paths` and \['val'\]"),
        ({"source": "text", "paths": []}, "`paths` is empty"),
        ({"source": "text", "paths": "a.txt"}, "paths: expected a list, found 'a.txt'"),
        ({"source": "text", "paths": ["a"], "separator": ""}, "`separator` must not be empty"),
        ({"source": "text", "paths": ["a"], "separator": "\r\n"}, "nor hold a carriage return"),
        ({"source": "text", "paths": ["a"], "separator": "\ud800"}, "`separator` holds a lone surrogate"),
        ({"source": "text", "paths": ["a", "\udcff"]}, "`paths` holds a lone surrogate"),
        ({"source": "hub"}, "wants `dataset` with its namespace, like `Salesforce/wikitext`, found None"),
        ({"source": "hub", "dataset": "wikitext"}, "with its namespace, .* found 'wikitext'"),
        ({"source": "hub", "dataset": "a/b/c"}, "with its namespace, .* found 'a/b/c'"),
        ({"source": "hub", "dataset": "../b"}, "with its namespace, .* found '../b'"),
        ({"source": "hub", "dataset": "a/b", "max_characters": 0}, "max_characters must be at least 1, found 0"),
        ({"source": "hub", "dataset": "a/b", "fractions": [0.9, 0.1]}, "three shares above 0 that add up to 1"),
        ({"source": "hub", "dataset": "a/b", "fractions": [1, 0, 0]}, "three shares above 0 that add up to 1"),
        ({"source": "hub", "dataset": "a/b", "fractions": [0.9, 0.1, 0.1]}, "three shares above 0 that add up"),
        ({"source": "hub", "dataset": "a/b", "fractions": ["nan", 0.1, 0.1]}, "fractions.0.: .*it must be finite"),
        ({"source": "pydocs", "name": "../up"}, "`name` becomes part of file names: .*found '../up'"),
        ({"source": "pydocs", "name": ""}, "`name` becomes part of file names"),
        ({"source": "pydocs", "name": ".hidden"}, "`name` becomes part of file names"),
        ({"source": "pydocs", "name": "a b"}, "`name` becomes part of file names"),
        ({"source": "pydocs", "name": "a\n"}, "`name` becomes part of file names"),
    ],
)
def test_invalid_blocks_are_refused_with_the_place(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        from_yaml(**values)
    assert str(caught.value).startswith("e.yaml: corpus")


def test_every_field_is_explained() -> None:
    source = Path(sources.__file__).read_text(encoding="utf-8")
    lines = source.split("\n")
    for field in dataclasses.fields(CorpusConfig):
        number = next(n for n, line in enumerate(lines) if line.startswith(f"    {field.name}: "))
        assert lines[number + 1].startswith('    """'), field.name


def test_three_paths_to_three_splits(folder: Path) -> None:
    manifest = prepare(BY_PATH, Layout(folder))
    assert {split: found["documents"] for split, found in manifest["splits"].items()} == dict.fromkeys(SPLITS, 1)
    assert load_split(Layout(folder), "text", "val").text == "one of val\n\ntwo of val\n"
    manifest = prepare(dataclasses.replace(BY_PATH, separator="\n\n", name="cut"), Layout(folder))
    assert load_split(Layout(folder), "cut", "val").documents() == ["one of val\n", "two of val\n"]
    assert manifest["cleaning"]["final_newlines_added"] == 6


def test_files_are_divided_by_hash(folder: Path) -> None:
    prepare(BY_HASH, Layout(folder))
    documents = [document for split in load_splits(Layout(folder), "text").values() for document in split.documents()]
    assert sorted(documents) == sorted(f"text {number}\n" for number in range(40))


def test_manifest_says_what_and_how(folder: Path) -> None:
    (folder / "texts" / "0.txt").write_bytes("\ufeffwindows\r\nfile".encode())
    manifest = prepare(BY_HASH, Layout(folder))
    assert manifest["source"] == "text" and manifest["revision"] is None
    assert manifest["config"]["paths"] == ["texts"] and manifest["config"]["fractions"] == list(HALVES)
    assert manifest["cleaning"] == {
        "name": "minimal",
        "byte_order_marks_removed": 1,
        "crlf_converted": 1,
        "lone_cr_converted": 0,
        "final_newlines_added": 1,
        "empty_documents_dropped": 0,
        "white_space_only_documents": 0,
    }
    assert manifest["division"]["by"] == "hash" and manifest["division"]["documents"] == 40
    assert [found["documents"] for found in manifest["splits"].values()] == [20, 10, 10]
    assert not manifest["repeated_documents"]["allowed"]
    assert set(manifest["versions"]) == {"python", "numpy", "datasets"}
    assert len(manifest["identity"]["files"]) == 40
    assert json.loads(Layout(folder).corpus_manifest.read_text())["text"] == manifest


def test_removed_byte_order_mark_is_reported(folder: Path) -> None:
    (folder / "texts" / "0.txt").write_bytes(b"\xef\xbb\xbfmarked")
    assert "1 byte order mark removed" in describe_corpus("text", prepare(BY_HASH, Layout(folder)))


def test_only_text_below_the_root_is_written(folder: Path) -> None:
    prepare(BY_PATH, Layout(folder / "demo"))
    assert sorted(path.name for path in folder.iterdir()) == ["demo", "test.txt", "texts", "train.txt", "val.txt"]
    assert sorted(path.name for path in (folder / "demo").rglob("*") if path.is_file())[0] == "manifest.json"


@pytest.fixture
def prepared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """BY_HASH prepared, and any further loading of a source forbidden until a test allows it."""
    layout = Layout(folder)
    prepare(BY_HASH, layout)
    return layout


def forbid_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> Corpus:
        raise AssertionError("the source was loaded although nothing had changed")

    monkeypatch.setattr(sources, "_load", forbidden)


def test_second_run_does_nothing(prepared: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = {path: path.stat().st_mtime_ns for path in prepared.processed.iterdir()}
    forbid_loading(monkeypatch)
    manifest = prepare(BY_HASH, prepared)
    assert manifest["splits"]["train"]["documents"] > 0
    assert {path: path.stat().st_mtime_ns for path in prepared.processed.iterdir()} == stamps


def test_touched_files_cost_nothing(prepared: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in [*prepared.processed.iterdir(), *Path("texts").iterdir()]:
        os.utime(path, (0, 0))
    forbid_loading(monkeypatch)
    prepare(BY_HASH, prepared)


def edit_input() -> None:
    path = Path("texts/3.txt")
    stamp = path.stat()
    path.write_text("TEXT 3\n")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # same size, same time: only the content tells


def edit_output() -> None:
    path = Path("data/processed/text_val_clean.txt")
    stamp = path.stat()
    path.write_bytes(path.read_bytes().upper())
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        edit_input,
        edit_output,
        lambda: Path("texts/new.txt").write_text("new\n"),
        lambda: Path("texts/3.txt").unlink(),
        lambda: Path("texts/3.txt").rename("texts/three.txt"),
        lambda: Path("data/processed/text_test_clean.txt").unlink(),
        lambda: Path("data/processed/text_test_docs.npy").write_bytes(b"x"),
        lambda: Path("data/processed/manifest.json").unlink(),
    ],
    ids=["edit input", "edit output", "new", "removed", "renamed", "output removed", "offsets", "manifest"],
)
def test_changes_are_never_missed(prepared: Layout, change: Any) -> None:
    change()
    assert not is_up_to_date(BY_HASH, prepared)
    prepare(BY_HASH, prepared)
    assert is_up_to_date(BY_HASH, prepared)
    texts = {Path(path).read_text() for path in map(str, Path("texts").iterdir())}
    documents = {document for split in load_splits(prepared, "text").values() for document in split.documents()}
    assert documents == texts


@pytest.mark.parametrize(
    "config",
    [
        dataclasses.replace(BY_HASH, cleaning="wikitext"),
        dataclasses.replace(BY_HASH, fractions=(0.4, 0.3, 0.3)),
        dataclasses.replace(BY_HASH, separator=" "),
        dataclasses.replace(BY_PATH),
    ],
)
def test_another_config_under_the_same_name_is_made_anew(prepared: Layout, config: CorpusConfig) -> None:
    assert not is_up_to_date(config, prepared)
    prepare(config, prepared)
    assert is_up_to_date(config, prepared) and not is_up_to_date(BY_HASH, prepared)


def test_other_format_of_the_manifest_is_made_anew(prepared: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MANIFEST_FORMAT", sources.MANIFEST_FORMAT + 1)
    assert not is_up_to_date(BY_HASH, prepared)


def test_two_corpora_under_one_root_do_not_disturb_each_other(prepared: Layout) -> None:
    other = dataclasses.replace(BY_PATH, name="other")
    prepare(other, prepared)
    assert is_up_to_date(BY_HASH, prepared) and is_up_to_date(other, prepared)


def test_refused_source_leaves_the_previous_splits(prepared: Layout) -> None:
    before = {path: path.read_bytes() for path in prepared.processed.iterdir()}
    Path("texts/7.txt").write_bytes(b"\xff")
    with pytest.raises(DataError, match="offset 0"):
        prepare(BY_HASH, prepared)
    assert {path: path.read_bytes() for path in prepared.processed.iterdir()} == before


def test_vanished_source_is_refused(prepared: Layout) -> None:
    for path in Path("texts").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="'texts' matches no file"):
        prepare(BY_HASH, prepared)


def test_single_file_without_a_separator_is_refused_with_the_way_on(folder: Path) -> None:
    config = CorpusConfig(source="text", paths=("train.txt",))
    with pytest.raises(DataError, match=r"need a document each, and the corpus holds 1 document; .*`separator`"):
        prepare(config, Layout(folder))
    assert not Layout(folder).processed.exists()


@pytest.mark.parametrize("text", ['{"text": ', "", "{}", "[]", "null", '{"text": 3}', '{"text": {"splits": null}}'])
def test_a_damaged_manifest_is_made_again(prepared: Layout, text: str) -> None:
    before = prepared.corpus_manifest.read_bytes()
    prepared.corpus_manifest.write_text(text)
    assert not is_up_to_date(BY_HASH, prepared)
    prepare(BY_HASH, prepared)
    assert prepared.corpus_manifest.read_bytes() == before


LONG_TEXTS = [f"Documentation {number}.\n" * 20 for number in range(60)]


def test_pydocs_is_remade_when_a_version_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = {"python": "3.11.0", "numpy": "2", "torch": "2"}
    documents = [Document(f"m:{number}", text) for number, text in enumerate(LONG_TEXTS)]
    monkeypatch.setattr(sources, "load_pydocs", lambda: Corpus(documents, dict(identity), {"unparsed_files": []}))
    monkeypatch.setattr(sources, "pydocs_identity", lambda: dict(identity))
    layout, config = Layout(tmp_path), CorpusConfig(source="pydocs")
    manifest = prepare(config, layout)
    assert manifest["identity"] == identity and manifest["provenance"] == {"unparsed_files": []}
    assert sum(split["documents"] for split in manifest["splits"].values()) == 60
    assert is_up_to_date(config, layout)
    identity["torch"] = "3"
    assert not is_up_to_date(config, layout)


def test_more_characters_than_the_pre_processed_text_are_no_trouble(tmp_path: Path) -> None:
    """The raw text has far more distinct characters; the manifest lists those that train never shows."""
    raw = tmp_path / "data" / "raw" / "wikitext2"
    raw.mkdir(parents=True)
    for name, text in {
        "train": " a \n",
        "valid": " ünïcödé 😀 \n",
        "test": " " + "".join(map(chr, range(0x4E00, 0x5200))),
    }.items():
        (raw / f"wiki.{name}.raw").write_text(text, encoding="utf-8")
    splits = prepare(CorpusConfig(source="wikitext2"), Layout(tmp_path))["splits"]
    assert len(splits["test"]["characters_absent_from_train"]) == 0x5200 - 0x4E00
    assert sum(absent["count"] for absent in splits["val"]["characters_absent_from_train"]) == 8
