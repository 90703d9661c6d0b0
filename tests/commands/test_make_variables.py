"""What a user gives to Make reaches the program as it was typed, whatever it holds, and nothing in it is run."""

import doctest
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from compare.command_line import variables
from compare.command_line.commands import MODULES
from compare.command_line.variables import LISTS, SWITCHES, TARGET, VALUES, arguments_of, program_of, settings_of
from data.errors import ConfigError
from factories import is_set_up

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

COMMANDS = sorted(set(re.findall(r"\$\(RUN\) ([a-z-]+)$", MAKEFILE, re.MULTILINE)))
NAMED = {  # target -> the variables that its line of `make help` names
    target: set(re.findall(r"\b([A-Z][A-Z0-9_]+)=", about))
    for target, about in re.findall(r"^([a-z%-]+):.*? ## (.*)$", MAKEFILE, re.MULTILINE)
}
VARIABLES = sorted({"EXPERIMENT", "SET", "BENCH_PYTHON", *(name for names in NAMED.values() for name in names)})
NASTY = {
    "a dollar": "cost $5 or $10 (US$) $$ $@ $* ${HOME} $(HOME)",
    "make's shell": "$(shell touch X)",
    "make's functions": "$(eval X:=1)$(error no)$(info y)$(foreach a,b,c)",
    "the shell's commands": "$(touch X) `touch X`; touch X & touch X | touch X && touch X",
    "double quotes": 'say "hi" "',
    "single quotes": "it's '; touch X; '",
    "several lines": "one\ntwo\n\tthree $(shell touch X)",
    "signs": "# a \\ % * ? ~ [x] {y} !z < > ^ = := ?= += \\",
    "spaces": "  two  spaces  ",
    "dashes": "-hello --config=x",
    "two dashes": "--",
    "letters": "Zoë 中文 👍🏽",
}
FAKE = f"""#!{sys.executable}
import json, os, sys
json.dump({{"argv": sys.argv[1:], "env": dict(os.environ)}}, open("seen.json", "w"))
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the Makefile and a Python that writes down what it is called with."""
    folder = tmp_path_factory.mktemp("house")
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    (folder / "configs").mkdir()
    (folder / "configs" / "$(touch X).yaml").touch()
    python = folder / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(FAKE)
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    ready = "cat pyproject.toml constraints.txt | cksum | cut -d ' ' -f 1"
    number = subprocess.run(ready, shell=True, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    (folder / f".venv/.ready-{number}").touch()
    return folder


def make(house: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (house / "seen.json").unlink(missing_ok=True)
    names = {*VARIABLES, TARGET, "MAKEFLAGS", "MAKELEVEL"}
    clean = {key: value for key, value in os.environ.items() if key not in names}
    result = subprocess.run(
        ["make", *arguments], cwd=house, env=clean | environment, capture_output=True, text=True, timeout=60
    )
    assert not (house / "X").exists()
    return result


def seen(house: Path) -> dict[str, str]:
    environment: dict[str, str] = json.loads((house / "seen.json").read_text())["env"]
    return environment


def test_doctests() -> None:
    result = doctest.testmod(variables)
    assert result.attempted > 0 and result.failed == 0


def test_every_variable_that_help_names_has_an_option_and_the_other_way_round() -> None:
    for command in COMMANDS:
        target = {"train": "train-%"}.get(command, command)
        known = {*VALUES.get(command, {}), *SWITCHES.get(command, {}), *LISTS.get(command, {})} - {"SET"}
        known |= {"trace": {"TEXT"}, "bench": {"BENCH_PYTHON"}, "train": {"PROCESSES"}}.get(command, set())
        assert NAMED[target] == known, command
    assert {*VALUES, *SWITCHES, *LISTS, *MODULES} <= set(COMMANDS)
    assert len(VARIABLES) > 35


def test_no_recipe_holds_a_variable_of_the_users() -> None:
    own = {"RUN", "BIN", "VENV", "READY", "DEV", "PIP", "PASSED"}
    for line in MAKEFILE.splitlines():
        if line.startswith("\t"):
            assert set(re.findall(r"\$\((\w+)\)", line)) <= own, line
            assert not re.search(r"\$[*<^?+]", line), line


@needs_make
@pytest.mark.parametrize("text", NASTY.values(), ids=[f"case_36 {name}" for name in NASTY])
def test_every_variable_arrives_as_typed_from_the_command_line_and_from_the_environment(house: Path, text: str) -> None:
    given = {name: f"{text}{number}" for number, name in enumerate(VARIABLES)} | {"UNKNOWN": text}
    for command in ("trace", "sample"):
        result = make(house, command, *(f"{name}={value}" for name, value in given.items()))
        assert result.returncode == 0, result.stderr
        # GNU Make itself drops white space between the equals sign and the value.
        assert {name: seen(house)[name] for name in given} == {name: value.lstrip() for name, value in given.items()}
        assert json.loads((house / "seen.json").read_text())["argv"] == ["-m", "scripts.from_make", command]
    result = make(house, "compare", **given)
    assert result.returncode == 0, result.stderr
    assert {name: seen(house)[name] for name in given} == given
    result = make(house, "-e", "tune", **given)
    assert {name: seen(house)[name] for name in given} == given


@needs_make
@pytest.mark.parametrize("command", COMMANDS)
def test_case_36_every_target_hands_on_and_runs_nothing(house: Path, command: str) -> None:
    text = NASTY["the shell's commands"] + NASTY["make's shell"] + NASTY["single quotes"]
    target = {"train": "train-bpe"}.get(command, command)
    result = make(house, target, *(f"{name}={text}" for name in VARIABLES))
    assert result.returncode == 0, result.stderr
    assert all(seen(house)[name] == text for name in VARIABLES)
    make(house, "-n", target, *(f"{name}={text}" for name in VARIABLES))
    assert not (house / "seen.json").exists()


@needs_make
def test_case_36_the_name_of_a_target_is_not_run_either(house: Path) -> None:
    for name in ("a b", "x; touch X", "$(touch X)", "$(shell touch X)", "`touch X`", "it's", 'a"b', "字"):
        result = make(house, f"train-{name}")
        assert result.returncode == 0, result.stderr
        if "(" not in name:  # which is Make's sign for the member of an archive
            assert arguments_of("train", seen(house))[-1] == f"--contestant={name}"
    (house / "train-char").touch()  # a file of that name does not make the target up to date
    make(house, "train-char")
    assert (house / "seen.json").exists()


@needs_make
def test_case_36_help_set_up_and_the_demo_run_nothing(house: Path) -> None:
    text = NASTY["the shell's commands"] + NASTY["make's shell"]
    result = make(house, "help", f"EXPERIMENT={text}", f"BIN={text}", f"VENV={text}", f"READY={text}", f"RUN={text}")
    assert result.returncode == 0 and "    $(touch X)\n" in result.stdout
    result = make(house, "demo", f"EXPERIMENT={text}", f"RUN={text}")
    assert seen(house)["EXPERIMENT"] == "demo"
    ready = next((house / ".venv").glob(".ready-*"))
    ready.unlink()
    try:
        result = make(house, "setup", f"PYTHON={text}")
        assert result.returncode == 2 and "not found" in result.stderr
    finally:
        ready.touch()


@needs_make
@pytest.mark.parametrize("text", ["cost $5 or $10 (US$)", '`touch X` "$(shell touch X)"', "-hello", "--", "it's #1;"])
def test_case_36_case_52_make_trace_traces_the_text_that_was_typed(text: str) -> None:
    if not is_set_up(ROOT):
        pytest.skip("the tests do not run from `make test`")
    command = ["make", "--no-print-directory", "trace", f"TEXT={text}", "MERGES=0", "JSON=1"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    documents = json.loads(result.stdout)["sequences"]
    assert documents == [[list(part.encode())] for part in text.split("|")]
    assert not (ROOT / "X").exists()


# From the variables to the options


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_every_value_becomes_one_argument(text: str) -> None:
    for command, options in VALUES.items():
        arguments = arguments_of(command, dict.fromkeys(options, text) | {"EXPERIMENT": text})
        assert [f"{option}={text}" for option in options.values()] == arguments[-len(options) :]
    assert arguments_of("compare", {"EXPERIMENT": text}) == [f"--config={text}"]
    assert arguments_of("trace", {"TEXT": text}) == ["--", text]
    assert arguments_of("train", {TARGET: f"train-{text}"})[-1] == f"--contestant={text}"


def test_what_is_not_given_or_empty_is_left_to_the_command() -> None:
    assert arguments_of("sample", {"PROMPT": "", "SEED": "", "EXPERIMENT": ""}) == ["--config=wikitext2"]
    assert arguments_of("study", {}) == ["--config=demo"] and arguments_of("sweep", {}) == ["--config=vocab_sweep"]
    assert arguments_of("calibrate", {"SET": "a=1", "EXPERIMENT": "x"}) == [] == arguments_of("trace", {"TEXT": ""})


def test_the_tutorials_variables() -> None:
    given = {"VOCAB": "1000", "TRAINING_CHARACTERS": "1,000,000", "MIN_PAIR_FREQUENCY": "2", "EXPERIMENT": "demo"}
    expected = ["--config=demo", "--vocab=1000", "--training-characters=1,000,000", "--min-pair-frequency=2"]
    assert arguments_of("tokenizer", given) == expected
    given = {TARGET: "train-byte_bpe", "FORCE": "1", "SET": "train.seed=2 train.batch_size=4"}
    expected = ["--config=wikitext2", "--set=train.seed=2", "--set=train.batch_size=4", "--contestant=byte_bpe"]
    assert arguments_of("train", given) == [*expected, "--force"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", []),
        ("  ", []),
        ("a=1 b=2\n\tc=3", ["a=1", "b=2", "c=3"]),
        ('root="my runs" a=1', ['root="my runs"', "a=1"]),
        ("'root=my runs' a=1", ["root=my runs", "a=1"]),
        (r'corpus.separator="\n" a=|;$5', [r'corpus.separator="\n"', "a=|;$5"]),
        ("seeds=[1, 2] corpus={paths: [a b.txt]}", ["seeds=[1, 2]", "corpus={paths: [a b.txt]}"]),
        ("root=it's a=1", ["root=it's", "a=1"]),
        ("seeds=['a ]', 2]", ["seeds=['a ]', 2]"]),
    ],
)  # fmt: skip
def test_case_36_settings_with_spaces_quotes_and_bars_arrive_whole(written: str, expected: list[str]) -> None:
    assert settings_of(written, "SET") == expected


@pytest.mark.parametrize("written", ["root='my runs", 'root="a', "seeds=[1, 2"])
def test_an_open_quote_is_named(written: str) -> None:
    with pytest.raises(ConfigError, match=r"SET: .* is opened and not closed"):
        settings_of(written, "SET")


@pytest.mark.parametrize(("written", "is_on"), [("1", True), ("yes", True), ("0", False), ("", False), ("No", False)])
def test_switches_may_be_off(written: str, is_on: bool) -> None:
    assert ("--quick" in arguments_of("bench", {"QUICK": written})) is is_on
    with pytest.raises(ConfigError, match="QUICK: expected 1 or 0, found 'perhaps'"):
        arguments_of("bench", {"QUICK": "perhaps"})


@pytest.mark.parametrize("written", ["0", "two", "-1", "", " ", "1.5", "1e9", "$(touch X)", "0x2", "9" * 5000])
def test_case_50_a_wrong_number_of_processes_is_one_sentence(written: str) -> None:
    with pytest.raises(ConfigError, match=r"^PROCESSES: expected a whole number from 1 to 1,024, found ") as caught:
        program_of("train", {"PROCESSES": written})
    assert len(str(caught.value)) < 200


@needs_make
@pytest.mark.parametrize("written", ["0", "two", ""])
def test_case_50_make_with_a_wrong_number_of_processes_exits_with_2(written: str) -> None:
    command = [sys.executable, "-m", "scripts.from_make", "train"]
    environment = os.environ | {TARGET: "train-char", "PROCESSES": written}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2 and result.stderr.count("\n") == 1 and result.stderr.startswith("PROCESSES: ")


def test_several_processes_are_started_by_torchs_launcher_and_one_by_none() -> None:
    command = program_of("train", {"PROCESSES": "2"})
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    assert command == [*launcher, "-m", "scripts.train"]
    assert program_of("train", {}) is None and program_of("bench", {"BENCH_PYTHON": ""}) is None
    assert program_of("bench", {"BENCH_PYTHON": "/my python"}) == ["/my python", "-m", "bench.tokenizer"]


def test_a_python_that_cannot_be_run_is_one_sentence() -> None:
    command = [sys.executable, "-m", "scripts.from_make", "bench"]
    environment = os.environ | {"BENCH_PYTHON": "no such; touch X"}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2 and "cannot run 'no such; touch X'" in result.stderr
    assert result.stderr.count("\n") == 1 and not (ROOT / "X").exists()
