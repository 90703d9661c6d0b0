"""bench/whole_runs.py: runs are watched by their metrics, a run that fails is said to, the table tells them apart."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.whole_runs import Watched, _line_after, measure, table
from compare.experiment import load_experiment

PROJECT = Path(__file__).resolve().parents[2]


def test_a_line_is_waited_for_and_half_a_line_is_none(tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    writer = (
        "import sys, time\n"
        "with open(sys.argv[1], 'w') as file:\n"
        '    for text in (\'{"seconds": 0.5, "tokens": 1}\\n{"seconds"\', \': 1.5, "tokens": 9}\\n\'):\n'
        "        file.write(text)\n"
        "        file.flush()\n"
        "        time.sleep(1)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", writer, str(metrics)])
    first, seen_first = _line_after(metrics, process, 0.0)
    last, seen_last = _line_after(metrics, process, 1.0)
    assert (first["tokens"], last["tokens"]) == (1, 9)
    assert 0.5 < seen_last - seen_first < 5
    with pytest.raises(TimeoutError, match="ended with exit code 0 before 9 s of training"):
        _line_after(metrics, process, 9.0)
    assert process.wait() == 0


def test_the_table_names_processes_and_threads():
    rows = table([
        Watched(1, 2, first_step=[3.0, 5.0], tokens_per_second=[900.0, 1100.0], overhead=[0.01, 0.03]),
        Watched(2, 1, first_step=[6.0], tokens_per_second=[1200.0], overhead=[0.005]),
    ]).splitlines()  # fmt: skip
    assert rows[1].split() == ["1", "process,", "2", "threads", "1,100", "1,000", "3.0", "4.0", "1.00%", "2.00%"]
    assert rows[2].split()[:5] == ["2", "processes,", "1", "thread", "each"]


@pytest.mark.slow
def test_real_runs_are_watched(tmp_path, monkeypatch):
    monkeypatch.chdir(PROJECT)
    experiment = load_experiment(PROJECT / "configs" / "smoke.yaml", [f"root={tmp_path}"])
    alone, several = measure(experiment, seconds=3, repeat=1, num_threads=2)
    assert (alone.processes, alone.threads, several.processes, several.threads) == (1, 2, 2, 1)
    for watched in (alone, several):
        assert watched.tokens_per_second[0] > 0 and 0 < watched.first_step[0] < 60
        assert watched.overhead[0] < 0.9
    with pytest.raises(RuntimeError, match=r"scripts\.train.*ended with exit code 2"):
        measure(
            load_experiment(PROJECT / "configs" / "smoke.yaml", [f"root={tmp_path}"]),
            seconds=0,
            repeat=1,
            num_threads=1,
        )
