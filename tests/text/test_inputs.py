"""Where the user's own files are read: one policy for files, folders and globs, and nothing is left out unsaid."""

import bz2
import doctest
import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import pickle
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from data import kinds, layout
from data.corpus import CorpusConfig, is_up_to_date, prepare
from data.errors import DataError
from data.files import decode_utf8
from data.kinds import recognise
from data.layout import Layout, is_artefact, is_root
from data.sources import left_out, local_text, paths, walk, written
from data.sources.left_out import AGAIN, BRACKETS, BROKEN, EMPTY, HIDDEN, OTHER, OWN, PROGRAM, left_out_lines
from data.sources.local_text import load_local_text, local_text_identity, read_own_text
from data.sources.paths import shown
from data.sources.walk import Walker, find_inputs
from data.splits import load_splits

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(*names: str) -> None:
    """Write each file with its own name as text."""
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(f"text of {name}\n", encoding="utf-8")


def walked(*patterns: str, root: str | None = None) -> tuple[list[str], dict[str, list[str]]]:
    """Names taken and names left out, by reason."""
    walker = Walker(None if root is None else Path(root))
    return [file.path.as_posix() for file in walker.expand(patterns)], walker.left_out.as_json()


def refusal(*patterns: str, root: str | None = None) -> str:
    with pytest.raises(DataError) as caught:
        walked(*patterns, root=root)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("module", [kinds, layout, left_out, local_text, paths, walk, written])
def test_examples_in_the_modules_hold(module: object) -> None:
    assert not doctest.testmod(module).failed  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------- one policy


@pytest.fixture
def linked(here: Path) -> Path:
    """10 texts in in/, 10 behind a linked folder, 10 behind a link in a linked folder."""
    put(*(f"in/{n}.txt" for n in range(10)), *(f"far/{n}.txt" for n in range(10, 20)))
    put(*(f"farther/{n}.txt" for n in range(20, 30)))
    Path("in/link").symlink_to(here / "far", target_is_directory=True)
    Path("far/on").symlink_to("../farther", target_is_directory=True)
    return here


@pytest.mark.parametrize("pattern", ["in", "in/", "./in", "in/**", "in/**/*", "in/**/*.txt", "i*", "in/*"])
def test_case_37_every_spelling_enters_linked_folders(linked: Path, pattern: str) -> None:
    taken, left = walked(pattern)
    assert len(taken) == 30 and taken == sorted(taken) and left == {}
    assert {Path(name).name for name in taken} == {f"{number}.txt" for number in range(30)}


def test_case_37_links_above_and_round_in_a_circle(linked: Path) -> None:
    Path("farther/back").symlink_to("../in", target_is_directory=True)
    Path("in/self").symlink_to(".", target_is_directory=True)
    for pattern in ("in", "in/**/*.txt"):
        taken, left = walked(pattern)
        assert len(taken) == 30 and left == {AGAIN: ["in/link/on/back/", "in/self/"]}


def test_a_name_without_a_link_is_preferred_whatever_the_order(here: Path) -> None:
    put("in/mid/x.txt", "in/y.txt")
    for name in ("in/aaa", "in/zzz"):
        Path(name).symlink_to("mid", target_is_directory=True)
        Path(f"{name}.txt").symlink_to("y.txt")
    for pattern in ("in", "in/**/*.txt"):
        taken, left = walked(pattern)
        assert taken == ["in/mid/x.txt", "in/y.txt"]
        assert left == {AGAIN: ["in/aaa.txt", "in/aaa/", "in/zzz.txt", "in/zzz/"]}


def test_two_hard_links_are_one_file(here: Path) -> None:
    put("a.txt")
    os.link("a.txt", "b.txt")
    assert walked("*.txt") == (["a.txt"], {AGAIN: ["b.txt"]})
    assert walked("b.txt", "a.txt") == (["b.txt"], {AGAIN: ["a.txt"]})
    with pytest.raises(DataError, match="is given for both train and test"):
        find_inputs({"train": ["a.txt"], "test": ["b.txt"]})


def test_one_file_under_one_name_in_two_patterns_is_nothing_to_say(here: Path) -> None:
    put("in/a.txt")
    assert walked("in", "./in/a.txt", "in/../in/*", str(here / "in")) == (["in/a.txt"], {})


def test_hidden_names_are_said_by_folders_and_globs_alike(here: Path) -> None:
    put("in/a.txt", "in/.b.txt", "in/.git/c.txt", "in/sub/.d.txt", "in/.other")
    assert walked("in") == (["in/a.txt"], {HIDDEN: ["in/.b.txt", "in/.git/", "in/.other", "in/sub/.d.txt"]})
    assert walked("in/**/*.txt") == (["in/a.txt"], {HIDDEN: ["in/.b.txt", "in/.git/", "in/sub/.d.txt"]})
    assert walked("in/.*")[0] == ["in/.b.txt", "in/.git/c.txt", "in/.other"]
    assert walked("in/.git", "in/.b.txt")[0] == ["in/.git/c.txt", "in/.b.txt"]
    assert walked("in/.git/*.txt", "in/sub/.*")[0] == ["in/.git/c.txt", "in/sub/.d.txt"]
    assert "in/sub/.d.txt" in refusal("in/sub")


def test_broken_link_that_no_pattern_asks_for_is_said(here: Path) -> None:
    put("in/a.txt")
    Path("in/more").symlink_to("/nowhere/unmounted")
    Path("in/round").symlink_to("round")
    Path("in/.#a.txt").symlink_to("user@host.1")  # an editor's lock
    assert walked("in/**/*.txt") == (["in/a.txt"], {BROKEN: ["in/more", "in/round"], HIDDEN: ["in/.#a.txt"]})
    assert walked("*/a.txt", "in/a*")[0] == ["in/a.txt"]
    put("a.txt")
    Path("gone").symlink_to("nowhere")
    assert walked("*/a.txt")[1] == {BROKEN: ["gone"]}
    message = refusal("in")
    assert message.startswith("in/more is not a readable regular file; remove it or give a path that leaves it out")
    assert "it is a link to /nowhere/unmounted, which does not exist" in message
    assert "links lead round in a circle" in refusal("in/round")
    assert "which does not exist" in refusal("in/more/x.txt")


def test_pipes_sockets_and_devices_are_refused_without_waiting(here: Path) -> None:
    os.mkfifo("pipe.txt")
    for pattern in ("pipe.txt", "*.txt", "."):
        assert "pipe.txt is not a readable regular file; " in refusal(pattern)
        assert "(it is a named pipe)" in refusal(pattern)
    Path("pipe.txt").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("talk")
        assert "(it is a socket)" in refusal("*")
    assert "(it is a device)" in refusal("/dev/null")
    os.mkfifo("no-text")
    put("a.txt")
    assert walked("*.txt") == (["a.txt"], {})


def test_a_file_replaced_by_a_pipe_is_refused_without_waiting(here: Path) -> None:
    os.mkfifo("pipe")
    with pytest.raises(DataError, match="pipe is not a readable regular file"):
        read_own_text(Path("pipe"))


def test_order_does_not_follow_the_file_system(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("in/b/1.txt", "in/a.txt", "in/c.txt", "in/a/2.txt", "in/a-b.txt")
    wanted = walked("in")[0]
    assert wanted == [path.as_posix() for path in sorted(map(Path, wanted))] and len(wanted) == 5
    scandir = os.scandir

    class Reversed:
        def __init__(self, folder: Path) -> None:
            with scandir(folder) as entries:
                self.entries = sorted(entries, key=lambda entry: entry.name, reverse=True)

        def __enter__(self) -> Iterator["os.DirEntry[str]"]:
            return iter(self.entries)

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(os, "scandir", Reversed)
    assert walked("in")[0] == walked("in/**/*.txt")[0] == wanted


def test_folders_deeper_than_the_stack_are_walked(here: Path) -> None:
    deep = Path("in")
    deep.mkdir()
    for _ in range(1200):
        deep /= "d"
        deep.mkdir()
    (deep / "x.txt").write_text("x\n")
    assert walked("in")[0] == walked("**/*.txt")[0] == [(deep / "x.txt").as_posix()]
    subprocess.run(["rm", "-r", "in"], check=True)  # shutil.rmtree recurses


# -------------------------------------------------------------------------------------------------- names and globs


def test_case_37_brackets_in_names_are_names_where_they_exist(here: Path) -> None:
    put("[a]/x.txt", "[a]/sub/y.txt", "in/[1].txt", "in/[1]/z.txt")
    for pattern in ("[a]/x.txt", "[a]/*.txt", "*/x.txt", "[[]a]/x.txt"):
        assert walked(pattern) == (["[a]/x.txt"], {})
    assert walked("[a]")[0] == walked("[a]/**/*.txt")[0] == ["[a]/sub/y.txt", "[a]/x.txt"]
    assert walked("in/[1].txt", "*/[1]/z.txt") == (["in/[1].txt", "in/[1]/z.txt"], {})
    assert walked(f"{here}/[a]/x.txt")[0] == [f"{here}/[a]/x.txt"]


def test_case_37_brackets_that_match_as_well_are_said(here: Path) -> None:
    put("[ab].txt", "a.txt", "b.txt")
    assert walked("[ab].txt") == (["[ab].txt"], {BRACKETS: ["a.txt", "b.txt"]})
    assert walked("[a-b].txt") == (["a.txt", "b.txt"], {})
    assert "write `[[]`" in refusal("[xy].txt")


def test_case_37_a_file_named_like_a_star_hides_no_other(here: Path) -> None:
    put("*.txt", "a.txt", "b.txt")
    assert walked("*.txt") == (["*.txt", "a.txt", "b.txt"], {})
    assert walked("[*].txt") == (["*.txt"], {})
    put("what?")
    assert walked("what?")[0] == ["what?"]


@pytest.mark.parametrize("pattern", ["**.txt", "in/**.txt", "a**", "in/**x/*.txt"])
def test_case_42_two_stars_beside_other_characters(here: Path, pattern: str) -> None:
    put("in/a.txt", "b.txt")
    message = refusal(pattern)
    assert "is no pattern: `**` must stand alone between slashes" in message
    part = next(part for part in pattern.split("/") if "**" in part)
    assert f"'**/{part.replace('**', '*')}'" in message


def test_case_42_a_file_named_with_two_stars_is_a_file(here: Path) -> None:
    put("**.txt", "a.txt")
    assert walked("**.txt") == (["**.txt"], {BRACKETS: ["a.txt"]})
    assert walked("[*][*].txt") == (["**.txt"], {})


def test_case_42_a_name_with_a_tilde(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = here / "home [1]"
    put("~draft.txt", "home [1]/notes.txt", "~/trap.txt")
    monkeypatch.setenv("HOME", str(home))
    assert walked("~draft.txt", "./~draft.txt")[0] == ["~draft.txt"]
    assert walked("~/notes.txt", "~/*.txt", "~")[0] == [f"{home.as_posix()}/notes.txt"]
    assert f"it stands for '{home.as_posix()}/no.txt'" in refusal("~/no.txt")
    message = refusal("~nobody-here/x.txt")
    assert "holds no ~nobody-here, and there is no user nobody-here" in message
    assert "holds no ~missing.txt" in refusal("~missing.txt")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a" * 256, "has a name of 256 bytes, and file systems take 255"),
        ("é" * 128, "has a name of 256 bytes"),
        ("in/" + "b" * 300 + "/*.txt", "has a name of 300 bytes"),
        ("once upon a time\n" * 600, r"text where a path belongs: .*\(10,200 characters\)|text where a path belongs"),
        ("two\nlines", "is text where a path belongs"),
        ("x/" * 3000, r"\(6,000 characters\) matches no file"),
        ("a\0b", "a character that no file name can hold"),
        ("a\ud800b", "a character that no file name can hold"),
        ("", "an empty path is given"),
        (" \n", "an empty path is given"),
        ("https://example.org/a.txt", "download the file first"),
        ("{a,b}.txt", "give one path each"),
        ("$HOME/a.txt", "variables of the shell are not replaced"),
    ],
)
def test_case_42_what_can_be_no_path(here: Path, pattern: str, message: str) -> None:
    put("a.txt")
    with pytest.raises(DataError, match=message) as caught:
        walked(pattern)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 700


def test_case_42_the_longest_name_is_a_name(here: Path) -> None:
    put("b" * 255)
    assert walked("b" * 255)[0] == ["b" * 255]


def test_case_42_a_removed_working_directory(here: Path) -> None:
    Path("gone").mkdir()
    os.chdir("gone")
    (here / "gone").rmdir()
    try:
        for pattern in ("a.txt", ".", "*.txt"):
            assert "the working directory was removed" in refusal(pattern)
    finally:
        os.chdir(here)


def test_case_60_paths_in_messages_keep_their_white_space(here: Path) -> None:
    assert refusal("two  spaces.txt").startswith("'two  spaces.txt' matches no file")
    put("in/new\nline")
    os.truncate("in/new\nline", 0)
    with pytest.raises(DataError, match=r"^'in/new\\nline' is empty; leave it out"):
        load_local_text({None: ["in/new\nline"]}, None)
    assert shown("it's") == '"it\'s"' and shown("\u202eevil") == "'\\u202eevil'"


# ------------------------------------------------------------------------------------------------ what is not allowed

AS_NOBODY = """
import os, sys
from pathlib import Path
from data.errors import DataError
from data.sources.local_text import load_local_text, local_text_identity
os.setgid(65534); os.setuid(65534)
for load in (lambda given: load_local_text(given, None, Path("out")), lambda given: local_text_identity(given)):
    try:
        found = load({None: [sys.argv[1]]})
        print("took", sorted(getattr(found, "identity", found)["files"]))
    except DataError as error:
        print(error)
"""


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("in", "cannot read in/closed: Permission denied"),
        ("in/**/*.txt", "cannot read in/closed: Permission denied"),
        ("in/*/*.txt", "cannot read in/closed: Permission denied"),
        ("in/*/b.txt", "cannot read in/closed/b.txt: Permission denied (the folder in/closed may not be entered)"),
        ("in/closed/b.txt", "cannot read in/closed/b.txt: Permission denied (the folder in/closed may not be entered)"),
        ("in/closed/*.txt", "cannot read in/closed: Permission denied"),
        ("in/closed/[b].txt", "cannot read in/closed: Permission denied"),
        ("in/closed", "cannot read in/closed: Permission denied"),
        (
            "in/closed/deep/c.txt",
            "cannot read in/closed/deep: Permission denied (the folder in/closed may not be entered)",
        ),
        ("link/b.txt", "cannot read link/b.txt: Permission denied"),
        ("linked", "cannot read linked/way: Permission denied"),
        ("linked/**/*.txt", "cannot read linked/way: Permission denied"),
        ("secret.txt", "cannot read secret.txt: Permission denied; give yourself the right to read it"),
        ("*.txt", "cannot read secret.txt: Permission denied"),
        ("listed", "cannot read listed/e.txt: Permission denied (the folder listed may not be entered)"),
        ("listed/**/*.txt", "cannot read listed/e.txt: Permission denied (the folder listed may not be entered)"),
        ("in/*.txt", "took ['in/a.txt']"),
    ],
)
def test_case_42_closed_folders_and_files_for_a_user_without_rights(pattern: str, message: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = Path(name)
        folder.chmod(0o755)
        for text in (
            "in/a.txt",
            "in/closed/b.txt",
            "in/closed/deep/c.txt",
            "secret.txt",
            "linked/d.txt",
            "listed/e.txt",
        ):
            (folder / text).parent.mkdir(parents=True, exist_ok=True)
            (folder / text).write_text(text)
        (folder / "link").symlink_to("in/closed", target_is_directory=True)
        (folder / "linked/way").symlink_to("../in/closed/deep", target_is_directory=True)
        (folder / "in/closed").chmod(0)
        (folder / "listed").chmod(0o444)  # its names may be read, but nothing in it
        (folder / "secret.txt").chmod(0)
        command = [sys.executable, "-c", AS_NOBODY, pattern]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
        (folder / "in/closed").chmod(0o755)
    assert [line.startswith(message) for line in result.stdout.splitlines()] == [True, True], result


# ----------------------------------------------------------------------------------------------- the tool's own output


def text_config(*given: str) -> CorpusConfig:
    return CorpusConfig(source="text", paths=given, fractions=(0.5, 0.25, 0.25))


def put_outputs(root: str) -> list[str]:
    """Write one text below every kind of artefact of an experiment at `root`; returns their names."""
    below = [
        "data/raw/text/wiki.txt",
        "data/processed/x.txt",
        "data/encoded/x.txt",
        "data/encoded_bpe/x.txt",
        "checkpoints/bpe/x.txt",
        "reports/x.txt",
        "tune/bpe/x.txt",
    ]
    put(*(f"{root}/{name}" for name in below))
    return [f"{root}/{name}" for name in below]


@pytest.mark.parametrize(
    ("pattern", "root"),
    [("book/**/*.txt", "book/run"), ("book", "book/run"), ("**/*.txt", "."), (".", "."), ("*", "book"), ("**", "far")],
)
def test_case_33_the_corpus_does_not_grow_by_its_own_output(here: Path, pattern: str, root: str) -> None:
    put(*(f"book/{number}.txt" for number in range(40)))
    config, layout = text_config(pattern), Layout(Path(root))
    first = prepare(config, layout)
    assert len(first["identity"]["files"]) == 40 and first["provenance"]["left_out"] == {}
    put_outputs(root)
    Path(root, "tokenizer").mkdir()
    Path(root, "tokenizer/bpe_tokenizer.json").write_text("{}")
    assert is_up_to_date(config, layout)
    layout.corpus_manifest.unlink()
    again = prepare(config, layout)
    assert again["identity"] == first["identity"] and again["splits"] == first["splits"]
    said = again["provenance"]["left_out"]
    prefix = "" if root == "." else f"{root}/"
    wanted = [f"{prefix}{name}/" for name in ("checkpoints", "data/encoded", "data/encoded_bpe", "data/processed")]
    wanted += [f"{prefix}{name}/" for name in ("data/raw", "reports", "tune")]
    if not pattern.endswith(".txt"):
        wanted += [f"{prefix}tokenizer/bpe_tokenizer.json"]
    assert said == {OWN: sorted(wanted)}
    documents = [text for split in load_splits(layout, "text").values() for text in split.documents()]
    assert sorted(documents) == sorted(f"text of book/{number}.txt\n" for number in range(40))


def test_case_33_own_files_below_the_root_that_are_no_artefacts_stay(here: Path) -> None:
    names = ["run/a.txt", "run/data/b.txt", "run/data/rawer/c.txt", "run/tokenizer/d.txt", "run/book/reports/e.txt"]
    put(*names, *put_outputs("run"))
    assert walked("run", root="run")[0] == sorted(names)
    assert walked("run/**/*.txt", root="run")[0] == sorted(names)


@pytest.mark.parametrize(
    "name", ["data/processed/x.txt", "reports/x.txt", "link.txt", "linked/x.txt", "./run/../reports/x.txt"]
)
def test_case_33_own_output_named_outright_is_refused(here: Path, name: str) -> None:
    put_outputs(".")
    put("run/y.txt")
    Path("link.txt").symlink_to("tune/bpe/x.txt")
    Path("linked").symlink_to("checkpoints/bpe", target_is_directory=True)
    message = refusal(name, root=".")
    assert "lies where this experiment itself writes, below its `root`, so it cannot be an input; give" in message


@pytest.mark.parametrize("pattern", ["data/processed", "reports/*.txt", "reports", "check*", "linked", "linked/*"])
def test_case_33_own_output_alone_is_said(here: Path, pattern: str) -> None:
    put_outputs(".")
    Path("linked").symlink_to("checkpoints/bpe", target_is_directory=True)
    assert f"matches no file that may be read (left out, {OWN}: 1 (" in refusal(pattern, root=".")


@pytest.mark.parametrize("pattern", ["book/**/*.txt", "book", ".", "link", "**/*.txt"])
def test_case_33_another_experiments_output_is_left_out_and_said(here: Path, pattern: str) -> None:
    put(*(f"book/{number}.txt" for number in range(40)), "book/old/own.txt", "book/old/data/own.txt")
    prepare(text_config("book/*.txt"), Layout(Path("book/old")))
    put_outputs("book/old")
    Path("link").symlink_to("book", target_is_directory=True)
    taken, left = walked(pattern, root="elsewhere")
    assert len(taken) == 42
    assert len(left[OTHER]) == 7 and all("/old/" in name and name.endswith("/") for name in left[OTHER])


def test_case_33_another_experiments_output_that_is_pointed_at_is_meant(here: Path) -> None:
    put(*(f"book/{number}.txt" for number in range(40)))
    prepare(text_config("book/*.txt"), Layout(Path("old")))
    clean = "old/data/processed/text_train_clean.txt"
    for pattern in (clean, "old/data/processed/*_train_clean.txt", "old/data/processed/text_[t]rain*.txt"):
        assert walked(pattern, root="new") == ([clean], {})
    assert "where another experiment writes" in refusal("old", root="new")


@pytest.mark.parametrize(
    ("manifest", "is_ours"),
    [
        *((text, True) for text in ("{}", "", '{"text": {"spl', '{"text": {"splits": {}}}', "[" * 10**5)),
        *((text, False) for text in ('{"name": "cookies"}', "[1]", '{"files": {"a": "b"}}', None)),
    ],
)
def test_a_root_is_known_by_its_manifest(here: Path, manifest: str | None, is_ours: bool) -> None:
    Path("data/processed").mkdir(parents=True)
    if manifest is not None:
        Path("data/processed/manifest.json").write_text(manifest)
    assert is_root(Path()) is is_ours
    put("data/processed/mine_train_clean.txt")
    assert is_root(Path())


def test_a_manifest_that_is_a_pipe_is_not_waited_for(here: Path) -> None:
    Path("data/processed").mkdir(parents=True)
    os.mkfifo("data/processed/manifest.json")
    assert not is_root(Path())


def test_every_path_of_the_layout_is_an_artefact() -> None:
    layout = Layout(Path("r"))
    made = [layout.raw("c"), layout.processed, layout.corpus_manifest, layout.split_text("c", "val"), layout.reports]
    made += [layout.split_documents("c", "val"), layout.tokenizer("bpe"), layout.encoded("bpe"), layout.encoded("char")]
    made += [layout.checkpoints("bpe"), layout.checkpoints("bpe", 3), layout.tuning("bpe", 0.1, 8)]
    for path in made:
        assert is_artefact(path.relative_to("r").parts), path
    for parts in (
        (),
        ("data",),
        ("tokenizer",),
        ("tokenizer", "x", "y_tokenizer.json"),
        ("a", "reports"),
        (".x.lock", "y"),
    ):
        assert not is_artefact(parts)
    assert (
        is_artefact((".reports.lock",))
        and is_artefact(("data", ".processed.lock"))
        and is_artefact(("tokenizer", ".b.part"))
    )


# ----------------------------------------------------------------------------------------- the program's files, empties


def test_case_59_texts_in_the_repositorys_own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(written, "PROGRAM_FOLDER", tmp_path.resolve())
    put("data/letters/1.txt", "data/2.txt", "data/letters/mine.py")
    for pattern in ("data", "data/**/*", "data/*", "."):
        taken, left = walked(pattern)
        assert taken == ["data/2.txt", "data/letters/1.txt", "data/letters/mine.py"]
        assert {"data/py.typed", "data/clean.py", "data/__init__.py"} <= set(left.pop(PROGRAM)) and left == {}
    assert walked("data/clean.py")[0] == ["data/clean.py"]
    assert f"left out, {PROGRAM}: " in refusal("data/*.py")
    with pytest.raises(DataError, match=r"data/py\.typed is empty; leave it out"):
        load_local_text({None: ["data/py.typed"]}, None)


@pytest.mark.parametrize("folder", ["model", "model/fused", "compare/page/templates", "data/sources"])
def test_the_program_itself_gives_no_text(folder: str) -> None:
    """The real packages, where they lie: subpackages as well as the packages themselves."""
    assert f"left out, {PROGRAM}: " in refusal(str(ROOT / folder))


def test_empty_files_are_left_out_and_said_unless_named(here: Path) -> None:
    put("in/a.txt", "in/b.txt")
    Path("in/b.txt").write_text("")
    for pattern in ("in", "in/*.txt", "in/**/b*", "**"):
        if pattern == "in/**/b*":
            with pytest.raises(DataError, match=r"gives no text: its only file is empty"):
                load_local_text({None: [pattern]}, None)
            continue
        corpus = load_local_text({None: [pattern]}, None)
        assert list(corpus.identity["files"]) == ["in/a.txt"] and corpus.provenance["left_out"] == {EMPTY: ["in/b.txt"]}
        assert corpus.provenance["num_files"] == 1
        assert local_text_identity({None: [pattern]}) == corpus.identity
    with pytest.raises(DataError, match=r"in/b\.txt is empty; leave it out"):
        load_local_text({None: ["in/b.txt"]}, None)


def test_what_is_left_out_is_in_the_manifest_and_in_lines(here: Path) -> None:
    put(*(f"in/{number}.txt" for number in range(40)), *(f"in/.h{number}" for number in range(5)))
    Path("in/none.txt").write_text("")
    entry = prepare(text_config("in"), Layout(Path("out")))
    stored = json.loads(Path("out/data/processed/manifest.json").read_text())["text"]["provenance"]["left_out"]
    assert (
        stored == entry["provenance"]["left_out"] == {EMPTY: ["in/none.txt"], HIDDEN: [f"in/.h{n}" for n in range(5)]}
    )
    assert left_out_lines(stored) == [
        "left out, empty: 1 (in/none.txt)",
        f"left out, {HIDDEN}: 5 (in/.h0, in/.h1, in/.h2, …)",
    ]


def test_left_out_names_that_are_not_utf8_can_be_written(here: Path) -> None:
    put(*(f"in/{number}.txt" for number in range(40)))
    try:
        Path(os.fsdecode(b"in/.caf\xe9")).touch()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    entry = prepare(text_config("in"), Layout(Path("out")))
    assert entry["provenance"]["left_out"] == {HIDDEN: ["in/.caf\\xe9"]}


# ------------------------------------------------------------------------------------------------ files that change


def test_the_recorded_hash_is_of_the_bytes_that_were_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(*(f"in/{number}.txt" for number in range(40)))
    find = local_text.find_inputs

    def find_then_edit(*given: object) -> object:
        found = find(*given)  # type: ignore[arg-type]
        Path("in/7.txt").write_text("edited after it was found\n")
        return found

    config, layout = text_config("in"), Layout(Path("out"))
    assert not is_up_to_date(config, layout)
    monkeypatch.setattr(local_text, "find_inputs", find_then_edit)
    entry = prepare(config, layout)
    assert entry["identity"]["files"]["in/7.txt"] == hashlib.sha256(b"edited after it was found\n").hexdigest()
    documents = [text for split in load_splits(layout, "text").values() for text in split.documents()]
    assert "edited after it was found\n" in documents


def test_a_file_that_vanishes_or_changes_while_it_is_read_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("in/a.txt", "in/b.txt")
    fstat = os.fstat
    calls = []

    def grow(handle: int) -> os.stat_result:
        calls.append(handle)
        if len(calls) == 2:
            with Path("in/a.txt").open("a") as file:
                file.write("more")
        return fstat(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", grow)
        with pytest.raises(DataError, match=r"in/a\.txt changed while it was read; run the command again"):
            load_local_text({None: ["in"]}, None)
    find = local_text.find_inputs

    def find_then_remove(*given: object) -> object:
        found = find(*given)  # type: ignore[arg-type]
        Path("in/b.txt").unlink()
        return found

    monkeypatch.setattr(local_text, "find_inputs", find_then_remove)
    with pytest.raises(DataError, match=r"cannot read in/b\.txt: No such file or directory"):
        load_local_text({None: ["in"]}, None)


def test_a_disk_that_fails_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("a.txt")

    def fail(path: Path, flags: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(DataError, match=r"^cannot read a\.txt: Input/output error$"):
        local_text_identity({None: ["a.txt"]})


# ------------------------------------------------------------------------------------------- files that are no text


def zipped(*names: str, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for name in names:
            archive.writestr(name, "text of it")
    return made.getvalue()


def sqlite_bytes(tmp: Path) -> bytes:
    with sqlite3.connect(tmp) as connection:
        connection.execute("create table t (text)")
    connection.close()
    return tmp.read_bytes()


def npy_bytes() -> bytes:
    made = io.BytesIO()
    np.save(made, np.arange(3))
    return made.getvalue()


TEXT = "Whole sentences, über alles.\nAnd a second line.\n"
WORDS = {"text": ["one", "two", "three"]}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (gzip.compress(TEXT.encode()), "compressed with gzip; run `gunzip` on it first"),
        (bz2.compress(TEXT.encode()), "compressed with bzip2; run `bunzip2` on it first"),
        (lzma.compress(TEXT.encode()), "compressed with xz; run `unxz` on it first"),
        (b"\x28\xb5\x2f\xfd\x04\x58\x41\x00\x00text", "compressed with Zstandard; run `unzstd` on it first"),
        (b"PAR1\x15\x04\x15\x10\x00\x00text\x00PAR1", "a Parquet table; `source: hub` reads such a table"),
        (b"ARROW1\x00\x00\xff\xff\xff\xff", "an Arrow table; `source: hub` reads"),
        (zipped("[Content_Types].xml", "word/document.xml"), r"a Word document \(.docx\); open it in the program"),
        (zipped("[Content_Types].xml", "xl/workbook.xml"), r"an Excel workbook \(.xlsx\); save its text column"),
        (zipped("a.txt"), "a zip archive; unpack it and give the text files that are in it"),
        (zipped("a.txt", compression=zipfile.ZIP_STORED), "a zip archive; unpack it"),
        (zipped("archive/data.pkl"), "a PyTorch file; this program never unpickles"),
        (zipped(), "a zip archive; unpack it"),
        (b"%PDF-1.7\nonly ASCII in it\n%%EOF\n", "a PDF document; run `pdftotext` on it first"),
        (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG image; leave it out"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "a JPEG image; leave it out"),
        (b"GIF89a\x01\x00\x01\x00\x80\x00\x00", "a GIF image; leave it out"),
        (b"RIFF\x24\x00\x00\x00WEBPVP8 ", "a WebP image; leave it out"),
        (b"\x7fELF\x02\x01\x01", "a compiled program or library"),
        (npy_bytes(), r"a NumPy array \(.npy\)"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
            "a pointer of Git LFS; .*`git lfs pull`",
        ),
        *[
            (pickle.dumps(value, protocol), "a pickle of Python; this program never unpickles")
            for value in (WORDS, ["a"])
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
        ],
        (pickle.dumps("one text", 0), "a pickle of Python"),
        (TEXT.encode("utf-16"), "UTF-16 .*byte order mark.*save it as UTF-8, for example with `iconv -f UTF-16 "),
        (TEXT.encode("utf-16-le"), "UTF-16LE without a byte order mark, as it looks; save it as UTF-8"),
        (TEXT.encode("utf-16-be"), "UTF-16BE without a byte order mark, as it looks; save it as UTF-8"),
        ("Привет, мир.\nКак дела?\n".encode("utf-16-le"), "UTF-16LE without"),
        ("你好，世界。\n".encode("utf-16-be") * 9, "UTF-16BE without|not valid UTF-8"),
        (TEXT.encode("utf-32"), "UTF-32 .*byte order mark.*`iconv -f UTF-32 "),
        (b"\x00\x00\xfe\xff" + TEXT.encode("utf-32-be"), "UTF-32 .*byte order mark 0000feff"),
        (TEXT.encode("utf-32-le"), "UTF-32LE without a byte order mark"),
        (TEXT.encode("utf-32-be"), "UTF-32BE without a byte order mark"),
        (b"\xff\xfe\x00\x00a\x00", "UTF-16 "),
        (TEXT.encode("latin-1"), "not valid UTF-8: byte 0xfc at offset 17, line 1 .*Latin-1 .*`iconv -f WINDOWS-1252"),
        (b"one\ntwo\nthr\xe9e\n", "not valid UTF-8: byte 0xe9 at offset 11, line 3 "),
        (
            "cut é".encode()[:-1],
            "not valid UTF-8: byte 0xc3 at offset 4, line 1 .*cut short in the middle of a character",
        ),
        (b"one\0two", r"not a text file: NUL byte at offset 3 \(binary, or UTF-16"),
        (bytes(range(1, 200)), "not valid UTF-8: byte 0x80 at offset 127"),
    ],
)
def test_case_53_what_a_file_is_and_what_reads_it(here: Path, raw: bytes, message: str) -> None:
    Path("given.txt").write_bytes(raw)
    with pytest.raises(DataError, match=f"^given\\.txt is {message}") as caught:
        load_local_text({None: ["given.txt"]}, None)
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match=f"^given\\.txt is {message}"):
        read_own_text(Path("given.txt"))


def test_case_53_a_database(here: Path) -> None:
    raw = sqlite_bytes(here / "made")
    assert recognise(raw) == "a SQLite database; write its text column to a text file"


@pytest.mark.parametrize(
    "text",
    [
        *("BZh, he said", "PAR1 was the name", "GIF89a is a format", "ID3 tags", "II* and MM", "7z is a format", "PK"),
        *("Rar! Rar!", "SQLite format 3 is a format", "%!PS", "%PD", "version 1", "ftypftyp", "wide", "a", "\x80."),
        *("V\np0\nhe wrote", "(love)\n", "(lp", "]q", "cats\ndogs\n(birds)\n", "class\nroom\n"),
        *("\ufeffwith a mark", "你好，世界。" * 50),
    ],
)
def test_text_stays_text(text: str) -> None:
    assert recognise(text.encode()) is None
    assert decode_utf8(text.encode(), "x") == text


def test_other_doors_say_what_a_file_is_too() -> None:
    """Whatever is read as UTF-8 says so, but text that came from elsewhere may begin like a PDF."""
    with pytest.raises(DataError, match=r"^x is compressed with gzip"):
        decode_utf8(gzip.compress(b"a: 1"), "x")
    assert decode_utf8(b"%PDF-1.4 is how they start", "x") == "%PDF-1.4 is how they start"
