"""Files are whole or absent, hashes are of the bytes, and damaged input is refused with place and cause."""

import errno
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from data import files
from data.errors import DataError
from data.files import (
    atomic_write,
    canonical_json,
    decode_utf8,
    read_json,
    read_text,
    sha256_file,
    sha256_text,
    write_json,
    write_text,
)

REPOSITORY = Path(__file__).resolve().parents[2]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_write_makes_the_folder_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "text.txt"
    write_text(target, "one\r\ntwo\rthree\u2028\n")
    assert target.read_bytes() == "one\r\ntwo\rthree\u2028\n".encode()
    assert names(target.parent) == ["text.txt"]


def test_written_files_are_as_readable_as_the_umask_allows(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        write_text(tmp_path / "text.txt", "x")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "text.txt").stat().st_mode) == 0o640


def test_exception_while_writing_keeps_the_previous_file(tmp_path: Path) -> None:
    target = tmp_path / "text.txt"
    write_text(target, "before")
    with pytest.raises(KeyError), atomic_write(target) as file:
        file.write(b"half")
        raise KeyError("a bug")
    assert target.read_text() == "before"
    assert names(tmp_path) == ["text.txt"]


def test_keyboard_interrupt_while_writing_keeps_the_previous_file(tmp_path: Path) -> None:
    target = tmp_path / "text.txt"
    write_text(target, "before")
    with pytest.raises(KeyboardInterrupt), atomic_write(target) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert target.read_text() == "before"
    assert names(tmp_path) == ["text.txt"]


def test_kill_9_in_the_middle_of_a_write_keeps_the_previous_file(tmp_path: Path) -> None:
    target = tmp_path / "text.txt"
    write_text(target, "before")
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom data.files import atomic_write\n"
        "with atomic_write(Path(sys.argv[1])) as file:\n"
        "    file.write(b'half')\n    file.flush()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(target)], cwd=REPOSITORY, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert target.read_text() == "before"
    write_text(target, "after")  # and what the killed process left does not stand in the way
    assert target.read_text() == "after"


def test_full_disk_names_path_and_cause_and_keeps_the_previous_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "text.txt"
    write_text(target, "before")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(DataError, match=r"cannot write .*text\.txt: No space left on device; nothing was changed"):
        write_text(target, "after")
    assert target.read_text() == "before"
    assert names(tmp_path) == ["text.txt"]


def test_really_full_device_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    target = tmp_path / "text.txt"
    write_text(target, "before")

    def on_the_full_device(dir: Path, prefix: str, suffix: str) -> tuple[int, str]:
        temporary = Path(dir) / f"{prefix}x{suffix}"
        temporary.touch()
        return os.open("/dev/full", os.O_WRONLY), str(temporary)

    monkeypatch.setattr(files.tempfile, "mkstemp", on_the_full_device)
    with pytest.raises(DataError, match="No space left on device"):
        write_text(target, "x" * 100_000)
    assert target.read_text() == "before"
    assert names(tmp_path) == ["text.txt"]


def test_full_disk_as_torch_reports_it(tmp_path: Path) -> None:
    target = tmp_path / "x.pt"
    with pytest.raises(DataError, match=r"cannot write .*x\.pt.*PytorchStreamWriter failed"), atomic_write(target):
        raise RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed")
    assert names(tmp_path) == []


def test_other_runtime_errors_stay_bugs(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="shape"), atomic_write(tmp_path / "x.pt"):
        raise RuntimeError("shape mismatch")


def test_parent_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("I am a file")
    with pytest.raises(DataError, match=r"cannot write .*folder.text\.txt: "):
        write_text(tmp_path / "folder" / "text.txt", "x")
    assert (tmp_path / "folder").read_text() == "I am a file"


def test_read_only_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> tuple[int, str]:  # root may write anywhere, so the refusal is imitated
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(files.tempfile, "mkstemp", refuse)
    with pytest.raises(DataError, match=r"cannot write .*text\.txt: Permission denied; nothing was changed"):
        write_text(tmp_path / "text.txt", "x")


def test_target_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.txt").mkdir()
    with pytest.raises(DataError, match=r"cannot write .*text\.txt"):
        write_text(tmp_path / "text.txt", "x")
    assert names(tmp_path) == ["text.txt"]


TRICKY = ["\r\n", "\r", "a\x0bb\x0c", "\x00", "\u2028\u2029\x85", "\ufeffinside\ufeff", "e\u0301é", "👨‍👩‍👧🇩🇪", "שלום"]


@pytest.mark.parametrize("text", TRICKY)
def test_text_comes_back_as_it_was(tmp_path: Path, text: str) -> None:
    write_text(tmp_path / "text.txt", text)
    assert read_text(tmp_path / "text.txt") == text


def test_read_text_names_the_offset_of_the_bad_byte(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes("ä ".encode() + b"\xff more")
    with pytest.raises(DataError, match=r"bad\.txt is not valid UTF-8: byte 0xff at offset 3"):
        read_text(path)


@pytest.mark.parametrize("raw", [b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"])
def test_what_looks_like_utf8_but_is_not_is_refused(raw: bytes) -> None:
    with pytest.raises(DataError, match=r"x is not valid UTF-8: byte .* at offset 0"):
        decode_utf8(raw, "x")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_named(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "wide.txt").write_bytes("\ufeffhello".encode(encoding))
    with pytest.raises(DataError, match=r"wide\.txt is UTF-16 .*save it as UTF-8"):
        read_text(tmp_path / "wide.txt")


def test_missing_file_is_one_sentence(tmp_path: Path) -> None:
    for read in (read_text, read_json, sha256_file):
        with pytest.raises(DataError, match=r"cannot read .*none\.txt: No such file"):
            read(tmp_path / "none.txt")


def test_json_round_trip_keeps_characters_and_key_order(tmp_path: Path) -> None:
    value = {"z": ["é", "\u2028", "\x00", "😀"], "a": {"n": 1, "x": 0.1, "none": None}}
    write_json(tmp_path / "v.json", value)
    assert read_json(tmp_path / "v.json") == value
    text = (tmp_path / "v.json").read_text(encoding="utf-8")
    assert "é" in text and text.index('"z"') < text.index('"a"') and text.endswith("}\n")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_without_a_number_for_it_is_refused(tmp_path: Path, value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "v.json", {"x": value})
    assert names(tmp_path) == []
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(value)


def test_damaged_json_names_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text('{\n  "a": 1,\n  "b": }\n')
    with pytest.raises(DataError, match=r"v\.json is not valid JSON: .* at line 3, column 8"):
        read_json(tmp_path / "v.json")


def test_canonical_json_is_the_published_spelling() -> None:
    assert canonical_json({"b": ["é", " "], "a": 1}) == '{"b":["é"," "],"a":1}'
    assert json.loads(canonical_json({"a": '\n"'})) == {"a": '\n"'}


def test_hashes_are_of_the_utf8_bytes(tmp_path: Path) -> None:
    text = "é\r\n" * 700_000  # more than one piece
    write_text(tmp_path / "t", text)
    wanted = hashlib.sha256(text.encode()).hexdigest()
    assert sha256_text(text) == wanted
    assert sha256_file(tmp_path / "t") == wanted


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(getattr(errno, name), id=f"{name}-case_42")
        for name in ("EIO", "EMFILE", "EROFS", "EDQUOT", "ENOSPC", "EFBIG", "ESTALE")
        if hasattr(errno, name)
    ],
)
@pytest.mark.parametrize("call", ["fsync", "mkstemp", "replace"])
def test_a_failing_step_of_a_write_keeps_the_file_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    target = tmp_path / "a  b.txt"
    write_text(target, "before")

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    owner = {"fsync": files.os, "mkstemp": files.tempfile, "replace": Path}[call]
    monkeypatch.setattr(owner, call, fail)
    with pytest.raises(DataError) as caught:
        write_text(target, "after")
    assert str(caught.value).startswith(f"cannot write {target}: {os.strerror(number)}; nothing was changed; ")
    assert target.read_text() == "before"
    assert names(tmp_path) == ["a  b.txt"]


def test_a_name_that_just_fits_can_be_written_and_a_longer_one_is_refused_case_42(tmp_path: Path) -> None:
    write_text(tmp_path / ("é" * 127), "x")
    assert names(tmp_path) == ["é" * 127]
    for name in ("é" * 128, "n" * 256):
        with pytest.raises(DataError, match=f"{os.strerror(errno.ENAMETOOLONG)}; nothing was changed; .* shorter one"):
            write_text(tmp_path / name, "x")
        with pytest.raises(DataError, match=os.strerror(errno.ENAMETOOLONG)):
            read_text(tmp_path / name)
    assert names(tmp_path) == ["é" * 127]


def test_a_file_that_cannot_be_read_meanwhile_is_not_blamed_on_the_one_that_is_written(tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "tokenizer.json"
    with pytest.raises(FileNotFoundError) as caught, atomic_write(tmp_path / "copy.json") as file:
        file.write(other.read_bytes())
    assert caught.value.filename == str(other)
    assert names(tmp_path) == []


def test_torchs_error_keeps_the_cause_of_the_system(tmp_path: Path) -> None:
    def failing() -> None:
        try:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        except OSError:
            raise RuntimeError("unexpected pos 64 vs 0") from None

    with pytest.raises(DataError, match=f"{os.strerror(errno.EDQUOT)}; nothing was changed; your share"):  # noqa: SIM117
        with atomic_write(tmp_path / "x.pt"):
            failing()


@pytest.mark.skipif(os.name == "nt", reason="locks of POSIX")
def test_what_killed_processes_left_goes_with_the_next_write_and_what_is_being_written_stays(tmp_path: Path) -> None:
    target, other = tmp_path / "text.txt", tmp_path / "text.txt.bak"
    code = (
        "import sys\nfrom pathlib import Path\nfrom data.files import atomic_write\n"
        "writing = atomic_write(Path(sys.argv[1]))\nwriting.__enter__().write(b'half')\n"
        "print('writing', flush=True)\nsys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(target)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "writing\n"
        write_text(target, "mine")  # while the other process still writes
        assert len(names(tmp_path)) == 2
        process.kill()
    write_text(other, "of another name")
    assert len(names(tmp_path)) == 3
    write_text(target, "mine again")
    assert names(tmp_path) == ["text.txt", "text.txt.bak"]


def test_a_rename_that_the_disk_does_not_confirm_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []

    def failing(handle: int) -> None:
        synced.append(handle)
        if len(synced) == 2:  # the first is the file, the second its folder
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", failing)
    number = errno.EIO
    with pytest.raises(DataError, match=r"text\.txt was written, but the disk does not confirm it: "):
        write_text(tmp_path / "text.txt", "x")
    assert (tmp_path / "text.txt").read_text() == "x"
    synced.clear()
    number = errno.EINVAL  # a file system that cannot sync folders
    write_text(tmp_path / "text.txt", "y")
    assert (tmp_path / "text.txt").read_text() == "y"


def test_a_hash_is_kept_only_while_the_file_cannot_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edits of equal length with their time put back, and files replaced by others, are all noticed."""
    path = tmp_path / "text.txt"
    reads: list[str] = []
    digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda file, name: (reads.append(file.name), digest(file, name))[1])

    def is_right() -> bool:
        return sha256_file(path) == hashlib.sha256(path.read_bytes()).hexdigest()

    path.write_bytes(b"one")
    for _ in range(2):  # too young: another write could leave the same times
        assert is_right()
    assert len(reads) == 2
    now = time.time_ns()
    monkeypatch.setattr("data.files.time.time_ns", lambda: now + 60 * 10**9)
    for _ in range(3):
        assert is_right()
    assert len(reads) == 3
    before = path.stat()
    time.sleep(0.02)  # longer than a tick of the file system's clock
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns and is_right()
    other = tmp_path / "other.txt"
    other.write_bytes(b"six")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    assert is_right()
