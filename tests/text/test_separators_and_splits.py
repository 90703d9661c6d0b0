"""Separators and splits as a user meets them: `make data` on files, what it prints, what it refuses and why."""

import doctest
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_experiment
from compare import cli
from data.clean import minimal
from data.dividing import separator as separator_module
from data.dividing.repeats import LARGEST_SHARE, find_repeats, refuse_repeats
from data.dividing.separator import describe_separator, in_double_quotes
from data.errors import DataError
from data.layout import SPLITS, Layout
from data.sources.local_text import cut, load_local_text
from data.splits import Document, load_splits, read_manifest
from data.summary import describe_corpus
from scripts import data

PARAGRAPHS = [f"Paragraph {number} is about {number * number}.\nIts second line." for number in range(40)]
LINE_ENDS = {"LF": "\n", "CRLF": "\r\n", "CR": "\r"}


class User:
    """Someone who runs `make data` in a folder of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def runs(self, **corpus: Any) -> str:
        """What `make data` prints on this corpus block."""
        experiment = write_experiment(Path("e.yaml"), experiment_values(Path("run"), {"source": "text", **corpus}))
        self.monkeypatch.setattr(sys, "argv", ["data", "--config", str(experiment)])
        cli.run(data.main)
        return self.capsys.readouterr().out

    def is_refused(self, **corpus: Any) -> str:
        """The line that it prints on stderr before exit code 2."""
        with pytest.raises(SystemExit) as caught:
            self.runs(**corpus)
        printed = self.capsys.readouterr()
        assert caught.value.code == 2 and printed.out == "" and printed.err.count("\n") == 1
        assert not Path("run").exists()
        return printed.err


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> User:
    monkeypatch.chdir(tmp_path)
    return User(monkeypatch, capsys)


def write(name: str, text: str) -> str:
    Path(name).write_bytes(text.encode())
    return name


def test_case_31_one_line_end_is_one_line_end() -> None:
    assert cut("one\r\ntwo\r\n\r\nthree\r\nfour\r\n", "\n\n") == ["one\r\ntwo", "three\r\nfour\r\n"]


@pytest.mark.parametrize("line_end", LINE_ENDS.values(), ids=LINE_ENDS.keys())
def test_case_31_forty_paragraphs_are_forty_documents(user: User, line_end: str) -> None:
    printed = user.runs(paths=[write("a.txt", "\n\n".join(PARAGRAPHS).replace("\n", line_end))], separator="\n\n")
    found = [document for split in load_splits(Layout(Path("run")), "text").values() for document in split.documents()]
    assert sorted(found) == sorted(paragraph + "\n" for paragraph in PARAGRAPHS)
    assert 'separator "\\n\\n": occurs 39 times in 1 file; removed 78 characters' in printed


@pytest.mark.parametrize("separator", ["\n", "\n\n", "\n\n\n", " \n", "x\n", "\nx", "\n---\n", ". ", "\x1e", "\t"])
def test_case_31_documents_are_those_of_the_text_with_its_line_ends_made_equal(separator: str) -> None:
    rng = random.Random(separator)
    for _ in range(2_000):
        text = "".join(rng.choices(["\r", "\n", "\r\n", "x", " ", ". ", separator], k=rng.randint(0, 9)))
        pieces = cut(text, separator)
        assert [minimal(piece) for piece in pieces] == cut(minimal(text), separator), repr(text)
        plain = minimal(text).split(separator)
        kept = plain if separator.isspace() else [*(piece + separator for piece in plain[:-1]), plain[-1]]
        assert cut(minimal(text), separator) == kept, repr(text)


@pytest.mark.parametrize("separator", [". ", "<|endoftext|>", "\n---\n", ".", "\u200b"])
def test_separator_that_is_text_is_kept(separator: str) -> None:
    text = separator.join(["", "one", "two", "", "three", ""])
    assert "".join(cut(text, separator)) == text
    assert cut(text, separator)[:3] == [separator, f"one{separator}", f"two{separator}"]


def test_no_full_stop_is_lost(user: User) -> None:
    sentences = [f"Sentence {number} says so." for number in range(30)]
    printed = user.runs(paths=[write("a.txt", " ".join(sentences))], separator=". ")
    text = "".join(split.text for split in load_splits(Layout(Path("run")), "text").values())
    assert text.count(".") == 30
    assert 'separator ". ": occurs 29 times in 1 file; removed no character' in printed


def test_byte_order_mark_before_the_first_separator(user: User) -> None:
    printed = user.runs(paths=[write("a.txt", "\ufeff\n\n" + "\n\n".join(PARAGRAPHS))], separator="\n\n")
    assert "corpus text: 40 documents, divided" in printed
    assert "1 byte order mark removed" in printed and "1 empty document dropped" in printed


@pytest.mark.parametrize(
    ("separator", "part"),
    [
        ("\\n\\n", r"""the separator '\n\n' (4 characters: backslash, n, backslash, n) never occurs in 2 files; """),
        ("\\n\\n", r"""a backslash means something in double quotes only: write `separator: "\n\n"`"""),
        ("\\t", r"""the separator '\t' (2 characters: backslash, t) never"""),
        ("-\\n-", r"""write `separator: "-\n-"`"""),
        ("@@", """the separator "@@" (2 characters) never occurs in 2 files; give one that does, or remove"""),
        ("\n\n\n", r"""the separator "\n\n\n" (3 characters) never occurs"""),
        ("\u202e", r"""the separator "\u202e" (1 character) never occurs"""),
    ],
)
def test_case_31_separator_that_never_occurs_is_refused(user: User, separator: str, part: str) -> None:
    paths = [write("a.txt", "one\n\ntwo"), write("b.txt", "three\r\n\r\nfour")]
    assert part in user.is_refused(paths=paths, separator=separator)


def test_case_31_four_characters_that_do_occur_cut(user: User) -> None:
    printed = user.runs(paths=[write("a.txt", r"\n\n".join(PARAGRAPHS))], separator=r"\n\n")
    assert r'separator "\\n\\n": occurs 39 times in 1 file; removed no character' in printed


def test_files_without_the_separator_are_counted(user: User) -> None:
    paths = [write("a.txt", "\n\n".join(PARAGRAPHS)), write("b.txt", "no blank line"), write("c.txt", "here neither")]
    assert "occurs 39 times in 3 files, in 2 of them not once; removed 78" in user.runs(paths=paths, separator="\n\n")


def test_separator_is_spelled_as_it_is_written() -> None:
    assert doctest.testmod(separator_module).attempted
    assert in_double_quotes('a"\\\n\x1b\u2028é。') == r'"a\"\\\n\u001b\u2028é。"'
    found = describe_separator("\n\n", {"a": 3, "b": 0})
    assert found == {"separator": "\n\n", "occurrences": 3, "files": 2, "files_without": 1, "characters_removed": 6}


def three_files(train: list[str], val: list[str], test: list[str]) -> dict[str, str]:
    texts = {"train": train, "val": val, "test": test}
    return {split: write(f"{split}.txt", "\n\n".join(texts[split])) for split in SPLITS}


def test_case_34_three_copies_of_one_file_are_refused(user: User) -> None:
    message = user.is_refused(**three_files(PARAGRAPHS, PARAGRAPHS, PARAGRAPHS))
    assert message.startswith("100.0% of the characters of test are in documents that are in another split too")
    assert "test.txt equals train.txt in train" in message and "`allow_repeated_documents: true`" in message


def test_case_34_trailing_space_hides_no_copy(user: User) -> None:
    spaced = [paragraph.replace("\n", " \n") + " " for paragraph in PARAGRAPHS[17:]]
    message = user.is_refused(**three_files(PARAGRAPHS[:17] + spaced, ["alone"], PARAGRAPHS[17:]), separator="\n\n")
    assert message.startswith("100.0% of the characters of test are in documents that are in another split too")
    folder = [write(f"{number}.txt", text) for number, text in enumerate(PARAGRAPHS + spaced)]
    user.runs(paths=folder, fractions=[0.5, 0.25, 0.25])
    splits = load_splits(Layout(Path("run")), "text").values()
    sets = [{" ".join(document.split()) for document in split.documents()} for split in splits]
    assert sum(map(len, sets)) == 40 == len(set.union(*sets))
    assert sum(len(split.documents()) for split in splits) == 63


def test_repeats_that_are_allowed_are_recorded_and_said(user: User) -> None:
    files = three_files(PARAGRAPHS[:20], PARAGRAPHS[20:30], [*PARAGRAPHS[30:], PARAGRAPHS[0] + " "])
    printed = user.runs(**files, separator="\n\n", allow_repeated_documents=True)
    repeats = read_manifest(Layout(Path("run")), "text")["repeated_documents"]
    test = "\n".join([*PARAGRAPHS[30:], PARAGRAPHS[0] + " "]) + "\n"
    assert repeats["allowed"] is True and repeats["val"]["documents"] == 0
    assert repeats["test"]["documents"] == 1 and repeats["test"]["characters"] == len(PARAGRAPHS[0]) + 2
    assert repeats["test"]["share"] == (len(PARAGRAPHS[0]) + 2) / len(test)
    assert repeats["test"]["example"] == "test.txt (document 10)"
    assert (repeats["test"]["other_split"], repeats["test"]["other_example"]) == ("train", "train.txt (document 0)")
    assert "repeated documents: 1 of test (8.6% of its characters) are in another split too" in printed
    assert "for example test.txt (document 10) as train.txt (document 0) in train" in printed


def given(**texts: list[str]) -> dict[str, list[Document]]:
    return {split: [Document(f"{split} {n}", text, split) for n, text in enumerate(texts[split])] for split in SPLITS}


def test_up_to_five_percent_is_let_pass_and_said() -> None:
    at_most = find_repeats(given(train=["ab\n", "c" * 77], val=["d" * 57, "ab\n"], test=["e" * 9]))
    assert at_most["val"].share == 0.05 == LARGEST_SHARE and at_most["train"].share < 0.05
    refuse_repeats(at_most)
    above = find_repeats(given(train=["ab\n", "c" * 77], val=["d" * 56, "ab\n"], test=["e" * 9]))
    with pytest.raises(DataError, match=r"^5\.1% of the characters of val .*\(.*val 1 equals train 0 in train\)"):
        refuse_repeats(above)


def test_every_pair_of_splits_is_looked_at_and_white_space_is_no_copy() -> None:
    found = find_repeats(given(train=["t\n", " \n"], val=["copy\n", "\n"], test=["copy \n", "\n"]))
    assert [(one.documents, one.other_split) for one in found.values()] == [(0, None), (1, "test"), (1, "val")]
    with pytest.raises(DataError, match="test 0 equals val 0 in val"):
        refuse_repeats(found)


def test_case_57_duplicates_are_named_as_the_cause(user: User) -> None:
    message = user.is_refused(paths=[write("a.txt", "\n".join("ab" * 200))], separator="\n")
    assert "the 400 documents hold only 2 distinct texts" in message and "give texts that differ" in message


def test_few_documents_fill_every_split(user: User) -> None:
    paths = [write(f"{number}.txt", f"Text {number}.\n") for number in range(12)]
    user.runs(paths=paths, fractions=[0.7, 0.15, 0.15])
    assert [len(split.documents()) for split in load_splits(Layout(Path("run")), "text").values()] == [8, 2, 2]


def test_table_is_printed_when_it_is_up_to_date_too(user: User) -> None:
    corpus = {
        "paths": [write("a.txt", "\n\n".join([*PARAGRAPHS, PARAGRAPHS[0]]).replace("\n", "\r\n"))],
        "separator": "\n\n",
    }
    first, second = user.runs(**corpus), user.runs(**corpus)
    assert first.startswith("data: wrote") and second.startswith("data: up to date")
    assert first.split("\n")[1:] == second.split("\n")[1:]
    lines = second.split("\n")
    assert (
        lines[1]
        == "corpus text: 41 documents (40 distinct, up to white space), divided 90 / 5 / 5 % by hashes of the texts"
    )
    columns = [line.split() for line in lines[2:6]]
    assert columns[0] == ["split", "documents", "%", "characters", "%", "longest", "shortest"]
    assert [row[0] for row in columns[1:]] == list(SPLITS) and sum(int(row[1]) for row in columns[1:]) == 41
    splits = load_splits(Layout(Path("run")), "text")
    for row in columns[1:]:
        lengths = [len(document) for document in splits[row[0]].documents()]
        assert [int(row[column].replace(",", "")) for column in (1, 3, 5, 6)] == [
            *(len(lengths), sum(lengths), max(lengths), min(lengths))
        ]
    assert "41 line ends CR LF made LF, 41 newlines added" in second
    assert "repeated documents: none is in two splits" in second


def test_edited_manifest_is_made_anew_before_it_is_printed(user: User) -> None:
    files = three_files(["one"], ["two"], ["three"])
    first = user.runs(**files)
    path = Layout(Path("run")).corpus_manifest
    whole = path.read_text(encoding="utf-8")
    for key in ("division", "repeated_documents", "cleaning", "provenance"):
        manifest = json.loads(whole)
        del manifest["text"][key]
        path.write_text(json.dumps(manifest), encoding="utf-8")
        assert user.runs(**files) == first
        assert path.read_text(encoding="utf-8") == whole


def test_left_out_files_and_wikitext_files_are_printed(user: User) -> None:
    user.runs(**three_files(["one"], ["two"], ["three"]))
    entry = read_manifest(Layout(Path("run")), "text")
    entry["provenance"]["left_out"] = {"hidden names": [f".{letter}" for letter in "abcdefg"]}
    entry["provenance"]["published"] = {"wiki.test.raw": False, "wiki.train.tokens": None}
    entry["provenance"]["unknown_word_share"] = {"wiki.test.raw": 0.0, "wiki.train.tokens": 0.0551}
    lines = describe_corpus("text", entry).split("\n")
    assert lines[-3:] == [
        "wiki.test.raw: not the published file; 0.0% of its characters spell <unk>",
        "wiki.train.tokens: no published hash is known; 5.5% of its characters spell <unk>",
        "left out, hidden names: 7 (.a, .b, .c, …)",
    ]


def test_provenance_holds_what_the_separator_did(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1--2--3")
    corpus = load_local_text({None: [str(tmp_path / "a.txt")]}, "--")
    assert corpus.provenance["separator"]["occurrences"] == 2
    assert "separator" not in load_local_text({None: [str(tmp_path / "a.txt")]}, None).provenance
