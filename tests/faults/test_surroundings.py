"""The finished chain, looked at again under odd surroundings: the same table, or one sentence."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chain_helpers import CHAIN, write_experiment

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="a shell and limits of POSIX")]
REPOSITORY = Path(__file__).resolve().parents[2]
COMPARE = '"$PYTHON" -m scripts.compare --config words.yaml'
LINES = {
    "no locale": f"LC_ALL=C PYTHONUTF8=0 PYTHONIOENCODING=ascii {COMPARE}",
    "time zone": f"TZ=Pacific/Kiritimati {COMPARE}",
    "narrow": f"COLUMNS=20 {COMPARE}",
    "umask": f"umask 077; {COMPARE}",
    "no home": f"HOME=/proc/none {COMPARE}",
    "no folder for temporary files": f"TMPDIR=/proc/none {COMPARE}",
    "closed stdin": f"{COMPARE} <&-",
    "64 files": f"ulimit -n 64; {COMPARE}",
}
NAMES = ["two  spaces", "new\nline", "Zoë 中文", "x" * 250, "$HOME `x` 'q' \"q\""]
CORPORA = {"one byte": "a", "nothing": "", "empty documents": "\x1e" * 100_000, "one line": "a" * 1_000_000}


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, errors="replace", timeout=120
    )


def table(printed: str) -> list[str]:
    lines = printed.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("bits per character (test)"))
    return lines[start : start + 12]


@pytest.fixture(scope="module")
def expected(finished_chain: Path) -> list[str]:
    return table(run(COMPARE, finished_chain).stdout)


@pytest.mark.parametrize("name", LINES)
def test_the_table_is_the_same(finished_chain: Path, expected: list[str], tmp_path: Path, name: str) -> None:
    shutil.copytree(finished_chain, tmp_path / "chain")
    (tmp_path / "chain/run/reports/comparison.json").unlink()  # so that it is written again
    done = run(LINES[name], tmp_path / "chain")
    assert done.returncode == 0, done.stderr
    assert [line.replace("?", "–") for line in table(done.stdout)] == expected


@pytest.mark.parametrize("name", NAMES)
def test_folders_of_any_name(finished_chain: Path, expected: list[str], tmp_path: Path, name: str) -> None:
    shutil.copytree(finished_chain, tmp_path / name)
    done = run(COMPARE, tmp_path / name)
    assert done.returncode == 0 and table(done.stdout) == expected, done.stderr


def test_a_clock_that_was_set_back_changes_nothing(finished_chain: Path, expected: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "chain"
    shutil.copytree(finished_chain, folder)
    for path in folder.rglob("*"):
        os.utime(path, (4e9, 4e9))  # in the future
    done = run(COMPARE, folder)
    assert done.returncode == 0 and table(done.stdout) == expected and "Nothing to do" in done.stdout


@pytest.mark.parametrize("name", CORPORA)
def test_texts_that_hold_next_to_nothing_are_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "text.txt").write_text(CORPORA[name], encoding="utf-8")
    corpus = {"source": "text", "name": "odd", "separator": "\x1e", "paths": ["text.txt"]}
    contestants = {"char": {"tokenizer": {"kind": "char"}}, "bpe": {"tokenizer": {"kind": "char_bpe", "vocab_size": 9}}}
    values = {"corpus": corpus, "contestants": contestants, "root": "run"}
    write_experiment(tmp_path / CHAIN, values)
    done = run('"$PYTHON" -m scripts.encode --config words.yaml', tmp_path)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.strip().split("\n")[-1]) < 500
