"""The commands as a user runs them: exit codes, one line for a mistake, a traceback for a bug."""

import argparse
import ast
import doctest
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare import cli
from data.errors import ConfigError, DataError, UserError
from data.errors import command as make
from model.training.interrupt import TrainingInterrupted
from scripts import compare, encode, sample, tokenizer, train

ROOT = Path(__file__).resolve().parents[2]


def command(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"scripts.{name}", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def exit_code_of(error: BaseException) -> int:
    def main() -> None:
        raise error

    with pytest.raises(SystemExit) as caught:
        cli.run(main)
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in this process: (exit code, what it printed, what it said on stderr)."""

    def run(main: Callable[[], None], *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["command", *arguments])
        code = 0
        try:
            cli.run(main)
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_doctests() -> None:
    result = doctest.testmod(cli)
    assert result.attempted > 0
    assert result.failed == 0


def test_a_mistake_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["command", "--config", "demo"])
    assert exit_code_of(DataError(f"a  b\n\x1b is broken; run {make('make data')} or `make demo`")) == 2
    assert capsys.readouterr().err == "a  b\\n\\x1b is broken; run `make data EXPERIMENT=demo` or `make demo`\n"


@pytest.mark.parametrize(
    ("arguments", "message", "shown"),
    [
        (["--config", "my texts/a.yaml"], f"run {make('make data')}", "run `make data EXPERIMENT='my texts/a.yaml'`"),
        (["--config", r"a\1b"], f"run {make('make data')}", r"run `make data EXPERIMENT='a\1b'`"),
        (
            ["--config", "demo"],
            f"no /tmp/`make data`/x; run {make('make data')}",
            "no /tmp/`make data`/x; run `make data EXPERIMENT=demo`",
        ),
        (
            ["--config", "demo", "--set", "root=run `make data`"],
            f"cannot use run `make data`: x; (run {make('make encode')})",
            "cannot use run `make data`: x; (run `make encode EXPERIMENT=demo SET='\"root=run `make data`\"'`)",
        ),
    ],
)
def test_only_the_programs_own_commands_get_the_experiment_case_60(
    arguments: list[str], message: str, shown: str
) -> None:
    assert cli._for_the_user(UserError(message), arguments) == shown


def test_a_command_stays_one_through_errors_about_errors() -> None:
    inner = DataError(f"x: {make('make data')}")
    outer = UserError(f"y `make data`: {inner.text}")
    assert (str(outer), outer.commands) == ("y `make data`: x: `make data`", ["make data"])
    assert outer.completed(" A=1") == "y `make data`: x: `make data A=1`"


def test_no_message_holds_a_command_as_plain_text() -> None:
    """Else the command line could not complete it. `make demo` and `make setup` stand for themselves."""
    plain = re.compile(r"(run|with) `make (?!demo|setup)|(run|with) `$")
    for package in ("data", "tokenizer", "model", "compare", "bench", "scripts"):
        for path in (ROOT / package).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            notes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
                    assert not plain.search(node.value), f"{path}, line {node.lineno}"


def test_the_default_experiment_needs_no_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["command"])
    assert exit_code_of(ConfigError(f"run {make('make train-bpe FORCE=1')}")) == 2
    assert capsys.readouterr().err == "run `make train-bpe FORCE=1`\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TrainingInterrupted("stopped")])
def test_an_interruption_is_exit_130(error: BaseException) -> None:
    assert exit_code_of(error) == 130


def test_a_bug_keeps_its_traceback() -> None:
    def main() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cli.run(main)


def test_an_unknown_experiment_lists_the_known() -> None:
    with pytest.raises(ConfigError, match="known experiments: demo, ladder, presets, smoke"):
        cli.experiment_of(argparse.Namespace(config="demmo", set=[]))


def test_no_network_and_no_files_is_one_sentence_with_both_ways_on(tmp_path: Path) -> None:
    result = command("data", "--set", f"root={tmp_path}", HF_ENDPOINT="http://127.0.0.1:9", HF_HUB_DISABLE_XET="1")
    assert result.returncode == 2, result.stderr
    assert result.stderr.count("\n") == 1
    assert str(tmp_path / "data/raw/wikitext2") in result.stderr
    assert "make demo" in result.stderr
    assert "Traceback" not in result.stderr


def test_commands_make_what_they_need_and_say_when_there_is_nothing_to_do(
    tmp_path: Path, here: Callable[..., tuple[int, str, str]]
) -> None:
    values = experiment_values(tmp_path / "run", write_corpus(tmp_path / "texts"))
    config = str(write_experiment(tmp_path / "words.yaml", values))
    first = command("compare", "--config", config)
    assert first.returncode == 0, first.stderr
    assert "bits per character (test)" in first.stdout
    assert "Not held equal:" in first.stdout
    assert "characters or BPE?" in first.stdout and "bits per character (test)" in first.stdout
    assert max(map(len, first.stdout.split("bits per character (test)")[1].split("Not held")[0].split("\n"))) < 100
    assert "Nothing to do: everything was up to date." in here(compare.main, "--config", config)[1]
    options = ("--config", config, "--prompt", "the of", "--tokens", "20", "--seed", "3")
    code, drawn, _ = here(sample.main, *options)
    assert code == 0 and drawn.startswith("the of") and len(drawn) > len("the of\n") + 10
    assert here(sample.main, *options)[1] == drawn
    code, _, said = here(sample.main, "--config", config, "--prompt", "Ω")
    assert code == 2 and "'Ω' (U+03A9) first at offset 0" in said


def test_the_tutorials_flags(tmp_path: Path, here: Callable[..., tuple[int, str, str]]) -> None:
    values = experiment_values(tmp_path / "run", write_corpus(tmp_path / "texts"))
    config = str(write_experiment(tmp_path / "words.yaml", values))
    code, printed, _ = here(
        tokenizer.main,
        *("--config", config, "--vocab", "33"),
        *("--training-characters", "900", "--min-pair-frequency", "3", "--engine", "reference"),
    )
    assert code == 0 and "= 33; stopped: target reached" in printed
    for part in ("longest learned tokens with ids", "first 50 merges", "characters per token", "decoded"):
        assert part in printed
    assert "keeps the settings it was given" in here(encode.main, "--config", config)[1]


def test_train_makes_all_seeds_and_sample_takes_the_one_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = experiment_values(tmp_path / "run", write_corpus(tmp_path / "texts")) | {"seeds": [2, 5]}
    config = str(write_experiment(tmp_path / "words.yaml", values))

    def printed(main: Callable[[], None], *options: str) -> str:
        monkeypatch.setattr(sys, "argv", ["command", "--config", config, "--contestant", "bpe", *options])
        main()
        return capsys.readouterr().out

    trained = [line.split(":")[0] for line in printed(train.main).split("\n") if line.startswith("train bpe")]
    assert trained == ["train bpe, seed 2", "train bpe, seed 5"]
    drawn = [
        printed(sample.main, "--prompt", "the", "--tokens", "40", *options)
        for options in ((), ("--run-seed", "2"), ("--run-seed", "5"))
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(text.startswith("the") and len(text) > 40 for text in drawn)
    with pytest.raises(ConfigError, match="bpe has no run with seed 7; its seeds: 2, 5"):
        printed(sample.main, "--run-seed", "7")
