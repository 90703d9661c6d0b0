"""scripts/main.py: all commands under one name, as a user without Make calls them."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare import cli
from compare.command_line import commands, variables
from compare.options import PROGRAM
from data.errors import ConfigError, UserError
from data.errors import command as make

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def called(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scripts.main", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_doctests() -> None:
    result = doctest.testmod(commands)
    assert result.attempted > 0 and result.failed == 0


def test_the_commands_are_those_of_make() -> None:
    of_make = {
        "train" if name == "train-%" else name for name in re.findall(r"^([a-z%-]+):.*\$\(READY\).*##", MAKEFILE, re.M)
    }
    assert set(commands.commands()) == (of_make | {"all"}) - {"setup"}
    assert {*commands.EXPERIMENTS, *commands.MODULES, *variables.VALUES, *variables.SWITCHES} <= set(
        commands.commands()
    )


@pytest.mark.parametrize("words", [(), ("--help",), ("help",)])
def test_help_lists_all_commands_in_lines_that_fit(words: tuple[str, ...]) -> None:
    done = called(*words)
    assert done.returncode == 0 and not done.stderr
    for command in commands.commands():
        assert re.search(rf"^  {command} +\w", done.stdout, re.MULTILINE), command
    assert max(map(len, done.stdout.splitlines())) <= 110


@pytest.mark.parametrize("command", ["sample", "train", "trace", "compare"])
def test_every_command_has_its_own_help_under_this_name(command: str) -> None:
    done = called(command, "--help")
    assert done.returncode == 0 and done.stdout.startswith(f"usage: {PROGRAM} {command} ")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["sampel"], "no command 'sampel'; did you mean 'sample'?; `chars-or-bpe --help` lists the commands"),
        (
            ["sample", "--tokens", "x"],
            "argument --tokens: .* found 'x'; `chars-or-bpe sample --help` lists the options",
        ),
        (["demo", "--config", "x"], "demo always takes configs/demo.yaml; use `chars-or-bpe all` with --config"),
        (["train-", "x"], "no command 'train-'.*"),
        (["../x"], "no command '../x'.*"),
        ([""], "no command ''.*"),
    ],
)
def test_mistakes_are_one_line(words: list[str], line: str) -> None:
    done = called(*words)
    assert done.returncode == 2 and re.fullmatch(line.replace("?", r"\?") + r"\n", done.stderr), done.stderr


def test_the_defaults_are_those_of_make() -> None:
    for command in commands.commands():
        base = commands.ALIASES.get(command, command)
        if command in ("demo", "train"):
            continue
        assert commands.resolved([command]) == (command, variables.arguments_of(base, {})), command
    assert commands.resolved(["demo", "--set", "a=1"])[1] == ["--set", "a=1", "--config=demo"]
    with pytest.raises(ConfigError, match="demo always takes"):
        commands.resolved(["demo", "--config=x"])


def test_what_a_user_types_arrives_as_one_argument() -> None:
    text = "$(touch X) `touch X`; 'a b'"
    assert commands.resolved(["sample", "--prompt", text])[1] == ["--config=wikitext2", "--prompt", text]
    assert commands.resolved([f"train-{text}"])[1] == ["--config=wikitext2", f"--contestant={text}"]


def test_an_experiment_runs_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write_experiment(tmp_path / "mine.yaml", experiment_values(tmp_path / "run", write_corpus(tmp_path / "t")))
    done = called("tokenizer", "--config", config.name, "--contestant", "bpe", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run/tokenizer/bpe_tokenizer.json").exists()
    assert called("plan", "--config", "nothing", folder=tmp_path).stderr.startswith(
        "configs/nothing.yaml does not exist"
    )
    monkeypatch.chdir(tmp_path)
    assert cli.config_path("demo").samefile(ROOT / "configs/demo.yaml")


def test_messages_name_the_command_as_it_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    error = UserError(f"old; run {make('make train-bpe FORCE=1')}")
    options = ["--config=wikitext2", "--config", "my texts.yaml", "--set", "train.seed=2"]
    monkeypatch.setattr(sys, "argv", [f"{PROGRAM} compare", *options])
    assert cli._for_the_user(error, options) == (
        "old; run `chars-or-bpe train-bpe --force --config 'my texts.yaml' --set train.seed=2`"
    )
    monkeypatch.setattr(sys, "argv", ["scripts.compare", *options])
    assert "`make train-bpe FORCE=1 EXPERIMENT='my texts.yaml' SET=train.seed=2`" in cli._for_the_user(error, options)


def test_the_console_entry_is_this_one() -> None:
    assert f'{PROGRAM} = "scripts.main:entry"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
