"""Compiled kernels are kept in a folder that is named by their contents, wherever one can be written, or not at all."""

import os
import pickle
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from tokenizer.engine import jit

ROOT = Path(__file__).resolve().parents[2]
KERNEL = "from tokenizer.engine.jit import kernel\n"
USE = """
import logging, sys
sys.path.insert(0, sys.argv[1])
import kept_kernel
from tokenizer.engine import jit
logging.getLogger("tokenizer.engine.jit").setLevel(logging.INFO)
print(kept_kernel.double(21), kept_kernel.double._cache_hits[next(iter(kept_kernel.double.overloads))])
print(jit.kernel_folder())
"""


@pytest.fixture(autouse=True)
def choose_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for variable in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    jit.kernel_folder.cache_clear()
    jit._say_once.cache_clear()


def test_every_file_that_defines_kernels_is_hashed_case_47(monkeypatch: pytest.MonkeyPatch) -> None:
    decorated = {
        path
        for package in ("tokenizer", "model")
        for path in (ROOT / package).rglob("*.py")
        if b"@kernel" in path.read_bytes() or b"@_kernel" in path.read_bytes() or b"@inlined" in path.read_bytes()
    }
    assert ROOT / "model/fused/kernels.py" in decorated and len(decorated) > 10
    assert all(jit._HAS_KERNELS.search(path.read_bytes()) for path in decorated)


@pytest.mark.parametrize("name", ["tokenizer/bpe.py", "tokenizer/engine/heap.py", "model/fused/kernels.py"])
def test_an_edit_of_a_kernel_in_any_folder_renames_the_folder_case_47(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(KERNEL + "A = 1\n")
    before = jit.contents_of_kernels(tmp_path)
    (path.parent / "unrelated.py").write_text("B = 1\n")
    assert jit.contents_of_kernels(tmp_path) == before
    path.write_text(KERNEL + "A = 2\n")
    assert jit.contents_of_kernels(tmp_path) != before


def test_the_folder_that_is_given_comes_first_case_47(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "given"))
    folder = jit.kernel_folder()
    assert folder == tmp_path / "given" / f"kernels-{jit.contents_of_kernels()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_then_the_packages_own_then_the_users_case_47(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    beside = Path(jit.__file__).parent / "__pycache__"
    users = tmp_path / "cache" / "chars-or-bpe"
    assert [parent for parent, _ in jit._parents()] == [beside, users]
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "prefix"))
    assert next(jit._parents())[0] == tmp_path / "prefix" / beside.parent.relative_to("/")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert [parent for parent, _ in jit._parents()] == [users]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where there is no home
    assert list(jit._parents()) == []


@pytest.mark.skipif(os.name == "nt", reason="files have owners on POSIX")
def test_a_folder_of_another_user_is_refused_case_47(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jit, "_parents", lambda: iter([(tmp_path, True)]))
    folder = jit.kernel_folder()
    assert folder is not None
    (folder / "x").touch()
    folder.chmod(0o777)
    jit.kernel_folder.cache_clear()
    assert jit.kernel_folder() is None
    folder.chmod(0o700)
    jit.kernel_folder.cache_clear()
    assert jit.kernel_folder() == folder
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
        jit.kernel_folder.cache_clear()
        assert jit.kernel_folder() is None


def test_where_nothing_can_be_written_one_line_says_so_case_47(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(jit, "_parents", lambda: iter([(tmp_path / "file", True), (tmp_path / "file" / "x", False)]))

    @jit.kernel
    def double(number: int) -> int:
        return 2 * number

    assert caplog.messages == []  # a kernel that nobody calls needs no folder
    assert double(21) == 42 and double(1.5) == 3.0
    (message,) = caplog.messages
    assert message.startswith("no folder can keep compiled kernels") and "NUMBA_CACHE_DIR" in message


def test_a_filled_folder_of_a_read_only_installation_is_read_case_47(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"kernels-{jit.contents_of_kernels()}"
    folder.mkdir()
    (folder / "kept").touch()
    monkeypatch.setattr(jit, "_parents", lambda: iter([(tmp_path / "none", False), (tmp_path, False)]))
    monkeypatch.setattr(jit, "_can_be_written", lambda folder, is_private: False)
    assert jit.kernel_folder() == folder


def test_a_full_disk_is_said_once_and_ends_nothing_case_47(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(jit, "_parents", lambda: iter([(tmp_path, True)]))

    def full(self: object, name: str, data: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "_save_data", full)

    @jit.kernel
    def double(number: int) -> int:
        return 2 * number

    assert double(21) == 42 and double(1.5) == 3.0
    (message,) = caplog.messages
    assert f"cannot be kept in {jit.kernel_folder()} (No space left on device)" in message


def use(code: Path, home: Path, **environment: str) -> tuple[str, str, str]:
    """Call the kernel of `code` in a fresh process: (what it printed, the folder, stderr)."""
    result = subprocess.run(
        [sys.executable, "-c", USE, str(code)],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": str(home), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    printed, folder = result.stdout.splitlines()
    return printed, folder, result.stderr


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "kept_kernel.py").write_text(
        "from tokenizer.engine.jit import kernel\n\n@kernel\ndef double(number):\n    return 2 * number\n"
    )
    return folder


def test_kernels_are_kept_and_a_damaged_file_is_compiled_again_case_47(tmp_path: Path, code: Path) -> None:
    home = tmp_path / "kept"
    assert use(code, home)[0] == "42 0"
    printed, folder, _ = use(code, home)
    assert printed == "42 1" and Path(folder).parent == home
    for ending in ("nbi", "nbc"):
        (path,) = Path(folder).rglob(f"*.{ending}")
        whole = path.read_bytes()
        for damaged in (b"", whole[:-5], pickle.dumps(numba.__version__)):
            path.write_bytes(damaged)
            assert use(code, home)[0] == "42 0", (ending, damaged[:20])
            (path,) = Path(folder).rglob(f"*.{ending}")
        assert use(code, home)[0] == "42 1", ending


@pytest.mark.skipif(
    sys.platform == "win32" or os.name != "posix" or os.geteuid() != 0, reason="root can drop its rights"
)
def test_no_command_needs_a_folder_to_show_its_help_case_47(tmp_path: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-m", "scripts.trace"]
    can_read = subprocess.run([*command[:4], sys.executable, "-c", "import numba"], capture_output=True)
    if can_read.returncode:
        pytest.skip("another user cannot read this Python")
    environment = {**os.environ, "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    shown = subprocess.run([*command, "--help"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (shown.returncode, shown.stderr) == (0, "") and "usage:" in shown.stdout
