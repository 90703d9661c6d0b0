"""Closed folders, full disks, closed pipes, narrow encodings: one sentence and exit 2, and bugs stay bugs."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from circumstances_helpers import ENTRY_POINTS, ROOT, run_without_rights
from compare import cli
from data.errors import explained, is_circumstance

FULL = Path("/dev/full")
LONG = " ".join(map(str, range(400)))
needs_posix = pytest.mark.skipif(os.name == "nt", reason="a shell and files of POSIX")


def os_error(number: int, *paths: str) -> OSError:
    return OSError(number, os.strerror(number), *paths)


def ended(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and stderr of a command that meets `error`."""

    def main() -> None:
        raise error

    with pytest.raises(SystemExit) as caught:
        cli.run(main)
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().err


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which $PYTHON is this interpreter; standard output is what it prints."""
    return subprocess.run(
        ["bash", "-c", line],
        cwd=ROOT,
        env=os.environ | {"PYTHON": sys.executable, "LONG": LONG} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(getattr(errno, name), id=f"{name}-case_42")
        for name in (
            *("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "ENAMETOOLONG", "EMFILE", "ENFILE", "EIO", "ELOOP"),
            *("ENOTDIR", "EISDIR", "ENOENT", "ESTALE", "ENOMEM", "EFBIG", "ENXIO", "EBUSY"),
        )
        if hasattr(errno, name)
    ],
)
def test_a_refusal_names_path_cause_and_way_on(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = ended(os_error(number, "/a  folder/x"), capsys)
    assert code == 2 and said.count("\n") == 1
    assert said.startswith(f"cannot use /a  folder/x: {os.strerror(number)}; ")


@pytest.mark.parametrize(
    "error", [os_error(errno.EBADF), OSError("odd"), os_error(errno.EINVAL, "x"), ConnectionError()]
)
def test_an_error_of_no_file_and_no_disk_stays_a_bug_case_42(error: OSError) -> None:
    def main() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        cli.run(main)
    assert caught.value is error


@pytest.mark.parametrize("error", [TypeError("x"), KeyError("x"), AssertionError(), RuntimeError("shape mismatch")])
def test_bugs_keep_their_traceback_case_42(error: Exception) -> None:
    def main() -> None:
        raise error

    with pytest.raises(type(error)):
        cli.run(main)


def test_a_disk_that_is_full_needs_no_path_case_42() -> None:
    assert is_circumstance(os_error(errno.ENOSPC)) and "a file" in str(explained(os_error(errno.ENOSPC)))
    assert not is_circumstance(os_error(errno.EACCES))


def test_a_text_in_place_of_a_path_is_cut_short_case_42(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError) as caught:
        Path("word " * 1000).stat()
    code, said = ended(caught.value, capsys)
    assert code == 2 and said.startswith("cannot use word word") and "(5,000 bytes)" in said and len(said) < 300


def test_a_rename_names_both_paths_case_42() -> None:
    error = OSError(errno.EXDEV, "x", "/a", None, "/b")
    assert str(explained(error)).startswith("cannot use /a -> /b: ")


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("[enforce] DefaultCPUAllocator: can't allocate memory")])
def test_out_of_memory_in_any_command_is_a_sentence(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = ended(error, capsys)
    assert code == 2 and said.startswith("out of memory (") and said.count("\n") == 1


@needs_posix
def test_closed_folders_and_impossible_names_case_42(tmp_path: Path) -> None:
    values = experiment_values(tmp_path / "run", write_corpus(tmp_path / "texts"))
    (tmp_path / "configs").mkdir()
    config = write_experiment(tmp_path / "configs" / "words.yaml", values)
    run, options = tmp_path / "run", ["--config", str(config)]
    attempts: dict[str, list[object]] = {"everything is made": [None, 0, "compare", *options]}
    for folder in (
        "texts",
        "configs",
        "run",
        "run/data",
        "run/data/processed",
        "run/tokenizer",
        "run/data/encoded",
        "run/data/encoded_bpe",
        "run/checkpoints",
        "run/checkpoints/bpe",
        "run/reports",
    ):
        attempts[folder] = [str(tmp_path / folder), 0o000, "compare", *options]
    attempts["run/checkpoints/bpe sample"] = [str(run / "checkpoints/bpe"), 0o000, "sample", *options]
    attempts["read-only root"] = [str(tmp_path), 0o555, "data", *options, "--set", f"root={tmp_path / 'other'}"]
    for name, setting in {
        "long root": f"root={tmp_path / ('r' * 256)}",
        "long input": f"corpus.train={tmp_path / ('t' * 256)}",
        "text as input": f"corpus.train={'once upon a time ' * 400}",
    }.items():
        attempts[name] = [None, 0, "data", *options, "--set", setting]
    attempts["long config"] = [None, 0, "data", "--config", "c" * 256 + ".yaml"]
    done = run_without_rights("-c", ENTRY_POINTS, json.dumps(attempts))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said.pop("everything is made")[0] == 0
    assert said.keys() == attempts.keys() - {"everything is made"}
    for attempt, (code, line) in said.items():
        assert code == 2, (attempt, code, line)
        assert line.count("\n") == 1, (attempt, line)
        is_too_long = "long" in attempt or "text as" in attempt
        causes = (
            ("255", os.strerror(errno.ENAMETOOLONG), "does not exist") if is_too_long else (os.strerror(errno.EACCES),)
        )
        assert any(cause in line for cause in causes), (attempt, line)
        if "/" in attempt or attempt == "texts":
            assert str(tmp_path / attempt.partition(" ")[0]) in line, (attempt, line)


# Streams


@needs_posix
@pytest.mark.parametrize(
    ("arguments", "reader", "codes", "unbuffered"),
    [
        pytest.param('--merges 100 "$LONG"', "head -1", {141}, "", id="case_43-head"),
        pytest.param('--merges 100 "$LONG"', "head -1", {141}, "1", id="case_43-head-unbuffered"),
        pytest.param("--help", "true", {0, 141}, "", id="case_43-help"),
        pytest.param("--merges -1 2>&1", "true", {2}, "", id="case_43-stderr"),
    ],
)
def test_a_reader_that_goes_is_no_error(arguments: str, reader: str, codes: set[int], unbuffered: str) -> None:
    line = f'"$PYTHON" -m scripts.trace {arguments} | {reader}; exit ${{PIPESTATUS[0]}}'
    done = shell(line, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode in codes and done.stderr == ""


@needs_posix
@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("arguments", "unbuffered"), [("a", ""), ('--merges 100 "$LONG"', ""), ('--json "$LONG"', "1"), ("--help", "1")]
)
def test_a_full_disk_behind_the_output_is_one_sentence_case_43(arguments: str, unbuffered: str) -> None:
    done = shell(f'"$PYTHON" -m scripts.trace {arguments} > /dev/full', PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 2
    assert done.stderr.startswith("cannot write the output: No space left on device; ")
    assert done.stderr.count("\n") == 1


@needs_posix
@pytest.mark.parametrize(
    ("closed", "code", "said"),
    [
        pytest.param(">&-", 2, "the standard output is closed; send it to a file, or to /dev/null\n", id="case_43-out"),
        pytest.param("--merges -1 2>&-", 2, "", id="case_43-err"),
        pytest.param("<&- >/dev/null", 0, "", id="case_43-in"),
        pytest.param("<&- >&- 2>&-", 2, "", id="case_43-all"),
    ],
)
def test_closed_streams(closed: str, code: int, said: str) -> None:
    done = shell(f'"$PYTHON" -m scripts.trace {closed}')
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


@needs_posix
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "ascii:strict"])
def test_a_narrow_output_shows_codes_and_json_stays_json_case_44(encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.trace", "--kind", "char_bpe", "--json", "漢é漢é"],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "漢" in json.dumps(json.loads(done.stdout.decode("ascii")), ensure_ascii=False)
    done = shell('"$PYTHON" -m scripts.trace --kind char_bpe 漢é漢é', PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and r"[\u6f22\xe9]" in done.stdout and done.stderr == ""


@needs_posix
def test_arguments_that_the_locale_cannot_read_are_refused_case_44() -> None:
    narrow = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = shell('"$PYTHON" -m scripts.trace é', **narrow)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "cannot be read in ascii; set LC_ALL=C.UTF-8, or unset PYTHONUTF8" in done.stderr
    assert shell('"$PYTHON" -m scripts.trace e', **narrow).returncode == 0


@needs_posix
@pytest.mark.parametrize("seconds", [0.4, 1.5])
def test_ctrl_c_while_a_command_still_imports_is_quiet(seconds: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.trace", "--merges", "1000", LONG * 50],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert said == "" or (said.startswith("SIGINT: stopped; ") and said.count("\n") == 1)
    assert process.returncode == 130
