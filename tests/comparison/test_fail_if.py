"""The command of the comparison: exit codes on demand, the baseline that the file names, the call for notebooks."""

import io
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare import cli
from compare.api import compare
from compare.command_line import variables
from compare.experiment import load_experiment
from data.errors import ConfigError
from scripts import compare as compare_script


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A finished comparison of two contestants that are far apart."""
    folder = tmp_path_factory.mktemp("fail_if")
    values: dict[str, Any] = experiment_values(folder / "run", write_corpus(folder / "texts", num_words=8_000))
    values["seeds"] = [1, 2]
    path = write_experiment(folder / "words.yaml", values)
    compare(path, echo=lambda _line: None)
    yield path


def run(config: Path, *options: str) -> tuple[int, str, str]:
    """The command's exit code, and what it printed to stdout and stderr."""
    printed, errors = io.StringIO(), io.StringIO()
    code = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(errors):
        patch.setattr(sys, "argv", ["compare", "--config", str(config), *options])
        try:
            cli.run(compare_script.main)
        except SystemExit as end:
            code = int(end.code or 0)
    return code, printed.getvalue(), errors.getvalue()


def test_the_exit_code_says_whether_the_condition_holds(config: Path) -> None:
    comparison = compare(config, echo=lambda _line: None)
    [pair] = comparison.certainty.pairs
    assert pair.outcome in ("a", "b")
    holds = "better" if pair.better == "bpe" else "worse"
    code, printed, errors = run(config, "--fail-if", f"{holds}:bpe")
    assert (code, errors) == (3, "") and comparison.answer.split(". ")[-1] in " ".join(printed.split())
    other = "worse" if holds == "better" else "better"
    assert run(config, "--fail-if", f"{other}:bpe", "--fail-if=undecided")[0] == 0


def test_a_wrong_condition_is_one_line_before_anything_is_done(config: Path) -> None:
    for written, message in (("wrose:bpe", "did you mean 'worse'"), ("worse:bpee", "no contestant 'bpee'")):
        code, printed, errors = run(config, "--fail-if", written)
        assert (code, printed) == (2, "")
        assert errors.count("\n") == 1 and message in errors


def test_make_passes_the_condition_on() -> None:
    assert "--fail-if=worse:bpe" in variables.arguments_of("compare", {"FAIL_IF": "worse:bpe"})


def test_the_baseline_of_the_file_is_the_one_that_is_compared_with(config: Path) -> None:
    comparison = compare(config, ["baseline=bpe"], echo=lambda _line: None)
    assert comparison.certainty.baseline == "bpe"
    assert comparison.answer.endswith(("char is worse than bpe.", "char is better than bpe."))
    assert run(config, "--set", "baseline=bpe", "--fail-if", "worse:bpe")[0] == 2
    for written in ("baseline=bp", "baseline=3", "baseline=[bpe]"):
        with pytest.raises(ConfigError, match="baseline: no contestant"):
            load_experiment(config, [written])
