"""The user's files: everything asked for is taken, and what cannot be taken is named with its place."""

import doctest
import errno
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from data.errors import DataError
from data.files import sha256_file
from data.sources import local_text
from data.sources.local_text import cut, decode_text, load_local_text, local_text_identity
from data.sources.walk import Walker, find_inputs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a few texts: b.txt, a.txt, sub/c.txt, sub/deep/d.md, .hidden, .git/config."""
    for name in ("b.txt", "a.txt", "sub/c.txt", "sub/deep/d.md", ".hidden", ".git/config"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expand(patterns: Sequence[str]) -> list[Path]:
    return [file.path for file in Walker().expand(patterns)]


def found(*patterns: str) -> list[str]:
    return [path.as_posix() for path in expand(patterns)]


def test_examples_in_the_module_hold() -> None:
    results = doctest.testmod(local_text)
    assert results.attempted and not results.failed


def test_folder_is_taken_whole_sorted_without_hidden_names(folder: Path) -> None:
    assert found(".") == ["a.txt", "b.txt", "sub/c.txt", "sub/deep/d.md"]
    assert found("sub") == ["sub/c.txt", "sub/deep/d.md"]


def test_absolute_paths(folder: Path) -> None:
    assert found(str(folder / "sub")) == [f"{folder.as_posix()}/sub/c.txt", f"{folder.as_posix()}/sub/deep/d.md"]
    assert found(str(folder / "*.txt")) == [f"{folder.as_posix()}/a.txt", f"{folder.as_posix()}/b.txt"]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("*.txt", ["a.txt", "b.txt"]),
        ("**/*.txt", ["a.txt", "b.txt", "sub/c.txt"]),
        ("s*", ["sub/c.txt", "sub/deep/d.md"]),
        ("?.txt", ["a.txt", "b.txt"]),
        ("[b-z].txt", ["b.txt"]),
        (".h*", [".hidden"]),
        ("sub/../a.txt", ["sub/../a.txt"]),
        (".hidden", [".hidden"]),
    ],
)
def test_globs_and_names(folder: Path, pattern: str, wanted: list[str]) -> None:
    assert found(pattern) == wanted


def test_home_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    assert found("~/a.txt") == [f"{folder.as_posix()}/a.txt"]


def test_order_is_as_given_and_each_file_comes_once(folder: Path) -> None:
    assert found("sub", "b.txt", "*.txt", "./sub/c.txt") == ["sub/c.txt", "sub/deep/d.md", "b.txt", "a.txt"]


def test_name_with_glob_characters_is_a_name_first(folder: Path) -> None:
    (folder / "[ab].txt").write_text("brackets\n")
    assert found("[ab].txt") == ["[ab].txt"]


@pytest.mark.parametrize("pattern", ["none.txt", "*.rst", "nowhere/**/*.txt", "empty"])
def test_what_matches_nothing_is_an_error(folder: Path, pattern: str) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(DataError, match=r"matches no file; correct the path \(it is relative to "):
        expand([pattern])


def test_loops_of_links_end_and_linked_folders_are_followed_once(folder: Path) -> None:
    (folder / "sub" / "up").symlink_to(folder / "sub", target_is_directory=True)
    (folder / "sub" / "deep" / "top").symlink_to(folder, target_is_directory=True)
    (folder / "sub" / "again").symlink_to("again")  # a link to itself
    (folder / "sub" / "again").unlink()
    assert sorted(path.resolve().name for path in expand(["."])) == ["a.txt", "b.txt", "c.txt", "d.md"]
    assert sorted(path.resolve().name for path in expand(["**/*"])) == ["a.txt", "b.txt", "c.txt", "d.md"]


def test_folder_reached_by_a_link_only_is_read(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "e.txt").write_text("e\n")
    (folder / "sub" / "link").symlink_to(elsewhere, target_is_directory=True)
    assert found("sub") == ["sub/c.txt", "sub/deep/d.md", "sub/link/e.txt"]


@pytest.mark.parametrize("target", ["nowhere", "loop"])
def test_broken_link_is_named(folder: Path, target: str) -> None:
    (folder / "sub" / "loop").symlink_to(target)
    for pattern in ("sub", "sub/*", "sub/loop"):
        with pytest.raises(DataError, match=r"sub/loop is not a readable regular file; remove it"):
            expand([pattern])


def test_pipe_is_refused_and_does_not_hang(folder: Path) -> None:
    os.mkfifo(folder / "sub" / "pipe")
    with pytest.raises(DataError, match="pipe is not a readable regular file"):
        expand(["sub"])


def test_socket_is_refused(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sub/socket")
        with pytest.raises(DataError, match="socket is not a readable regular file"):
            expand(["sub"])


def test_file_name_that_is_not_utf8_is_refused(folder: Path) -> None:
    try:
        (folder / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    with pytest.raises(DataError, match=r"'caf\\udce9.txt' is not valid UTF-8; rename the file"):
        expand(["."])


def test_unreadable_folder_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refuse(path: str) -> object:  # root may read everything, so the refusal is imitated
        if str(path).endswith("deep"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(DataError, match="cannot read sub/deep: Permission denied"):
        expand(["sub"])


def test_unreadable_file_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DataError, match=r"cannot read a\.txt: Permission denied"):
        load_local_text({None: ["a.txt"]}, None)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"ab\x00c", r"bad\.bin is not a text file: NUL byte at offset 2"),
        ("wide".encode("utf-16-le"), r"bad\.bin is UTF-16LE without a byte order mark"),
        ("\ufeffwide".encode("utf-16-le"), r"bad\.bin is UTF-16 .*save it as UTF-8"),
        ("\ufeffwide".encode("utf-16-be"), r"bad\.bin is UTF-16 .*save it as UTF-8"),
        (b"abc\x89PNG", r"bad\.bin is not valid UTF-8: byte 0x89 at offset 3"),
        ("é".encode("latin-1"), r"bad\.bin is not valid UTF-8: byte 0xe9 at offset 0"),
        (b"x\xed\xa0\x80", r"bad\.bin is not valid UTF-8: byte 0xed at offset 1"),  # a lone surrogate in bytes
    ],
)
def test_bad_file_in_a_folder_stops_everything(folder: Path, raw: bytes, message: str) -> None:
    (folder / "sub" / "bad.bin").write_bytes(raw)
    with pytest.raises(DataError, match=message):
        load_local_text({None: ["."]}, None)


TRICKY = ["  two spaces", "line\r\nends\rof\nall kinds", "\ttabs\x0b\x0c", "a\u00a0b\u2028c\u2029d\x85e", "a\ufeffb"]


@pytest.mark.parametrize("text", [*TRICKY, "e\u0301 é", "👨‍👩‍👧 🇩🇪", "\u202bשלום", "\ufeffwith a mark", "\U0010ffff"])
def test_reading_loses_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(text.encode())
    assert decode_text(path.read_bytes(), path) == text
    assert load_local_text({None: [str(path)]}, None).documents[0].text == text


@pytest.mark.parametrize(
    ("text", "separator", "wanted"),
    [
        ("a\n\nb\n\nc", "\n\n", ["a", "b", "c"]),
        ("a\r\n\r\nb\r\rc\n\r\nd", "\n\n", ["a", "b", "c", "d"]),
        ("a\n\n\nb", "\n\n", ["a", "\nb"]),
        ("a<|endoftext|>b<|endoftext|>", "<|endoftext|>", ["a<|endoftext|>", "b<|endoftext|>", ""]),
        ("a.b*c", ".", ["a.", "b*c"]),
        ("abc", "x", ["abc"]),
        ("a\n---\nb\r\n---\r\nc", "\n---\n", ["a\n---\n", "b\r\n---\r\n", "c"]),
        ("a\n\nb", None, ["a\n\nb"]),
    ],
)
def test_cut(text: str, separator: str | None, wanted: list[str]) -> None:
    assert cut(text, separator) == wanted


def test_each_file_is_a_document_or_cut_at_the_separator(folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"one--two--")
    corpus = load_local_text({None: ["a.txt", "b.txt"]}, "--")
    assert [document.text for document in corpus.documents] == ["one--", "two--", "", "text of b.txt\n"]
    assert [document.name for document in corpus.documents][1:] == [
        "a.txt (document 1)",
        "a.txt (document 2)",
        "b.txt",
    ]
    assert {document.split for document in corpus.documents} == {None}
    assert corpus.revision is None
    whole = load_local_text({None: ["a.txt", "b.txt"]}, None)
    assert [document.text for document in whole.documents] == ["one--two--", "text of b.txt\n"]


def test_three_paths_give_three_splits(folder: Path) -> None:
    corpus = load_local_text({"train": ["sub"], "val": ["a.txt"], "test": ["b*"]}, None)
    assert [(document.split, document.name) for document in corpus.documents] == [
        ("train", "sub/c.txt"),
        ("train", "sub/deep/d.md"),
        ("val", "a.txt"),
        ("test", "b.txt"),
    ]


def test_one_file_in_two_splits_is_refused(folder: Path) -> None:
    (folder / "alias.txt").symlink_to(folder / "a.txt")
    for val in ("a.txt", "./a.txt", "alias.txt", "*.txt"):
        with pytest.raises(DataError, match=r"is given for both train and (val|test); the splits must not share"):
            find_inputs({"train": ["a.txt"], "val": [val], "test": ["b.txt"]})


def test_identity_is_of_the_content(folder: Path) -> None:
    paths = {None: ["*.txt"]}
    before = local_text_identity(paths)
    assert before == {"files": {name: sha256_file(Path(name)) for name in ("a.txt", "b.txt")}}
    assert load_local_text(paths, None).identity == before
    os.utime("a.txt", (0, 0))
    assert local_text_identity(paths) == before
    Path("a.txt").write_text("edited\n")
    assert local_text_identity(paths) != before
    Path("a.txt").unlink()
    assert list(local_text_identity(paths)["files"]) == ["b.txt"]
