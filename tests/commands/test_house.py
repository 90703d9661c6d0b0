"""The project itself: import direction, packages, Make commands, what git must not hide."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from setuptools import find_packages

from factories import is_set_up

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["data", "tokenizer", "model", "compare", "bench", "scripts"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_imports_only_go_to_the_right() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_no_script_imports_another() -> None:
    """Only Make's side imports the console entry, which calls all commands by name."""
    for path in (ROOT / "scripts").glob("*.py"):
        imported = re.findall(r"^ *(?:from|import) scripts\b.*$", path.read_text(encoding="utf-8"), re.MULTILINE)
        is_allowed = path.name == "from_make.py" and len(imported) == 1 and imported[0].startswith("from scripts.main ")
        assert not imported or is_allowed, path


def test_packages_are_listed_typed_and_explained() -> None:
    """What setuptools installs is every folder that holds modules, subfolders included."""
    found = find_packages(str(ROOT), include=PROJECT["tool"]["setuptools"]["packages"]["find"]["include"])
    folders = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert set(found) == {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    for folder in folders:
        assert (folder / "py.typed").exists()
        init = (folder / "__init__.py").read_text(encoding="utf-8").strip()
        assert init.startswith('"""')
        # That of scripts is the first code of every command: Ctrl-C is quiet from there on. `tokenizer` and `model`
        # have a function `load`, which imports what it needs when it is called.
        if folder not in (ROOT / "scripts", ROOT / "tokenizer", ROOT / "model"):
            assert init.endswith('"""') and init.count('"""') == 2


def test_the_licence_is_an_spdx_expression() -> None:
    assert PROJECT["project"]["license"] == "MIT"
    assert "MIT License" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_every_dependency_is_pinned() -> None:
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in constraints if "==" in line}
    assert all("==" in line for line in constraints if line and not line.startswith("#"))
    wanted = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["dev"]
    assert {name.lower() for name in wanted} <= pinned
    assert "torch==2.13.0" in constraints


class TestLimits:
    """How long things may be. tests/ has no limits; a fixture of many cases may be long."""

    def test_files_have_at_most_350_lines_and_scripts_at_most_60(self) -> None:
        for path in modules():
            most = MOST_LINES_OF_A_SCRIPT if path.parent == ROOT / "scripts" else MOST_LINES_OF_A_FILE
            assert len(path.read_text(encoding="utf-8").splitlines()) <= most, path

    def test_functions_have_at_most_60_lines(self) -> None:
        """Counted from `def` to the last line, docstring and comments included, kernels included."""
        found = {f"{path}: {one.name}": lines_of(one) for path in modules() for one in functions_of(path)}
        assert len(found) > 1_000  # the walk sees the functions
        assert {name: lines for name, lines in found.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}

    def test_functions_take_at_most_10_arguments(self) -> None:
        """Counted with `self`, with those that are given by name only, and with `*args` and `**kwargs` as one each."""
        found = {f"{path}: {one.name}": num_arguments(one) for path in modules() for one in functions_of(path)}
        assert {name: number for name, number in found.items() if number > MOST_ARGUMENTS} == {}

    def test_folders_hold_at_most_15_modules(self) -> None:
        """Counted without `__init__.py`; scripts/ has one for each command."""
        for folder in {path.parent for path in modules()} - {ROOT / "scripts"}:
            assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= MOST_MODULES, folder

    def test_lines_and_arguments_are_counted_as_stated(self) -> None:
        code = '@wrapped\ndef f(self, a, /, b, *c, d=1, **e):\n    """Text.\n\n    More.\n    """\n    return 1\n'
        (one,) = functions_in(code)
        assert (lines_of(one), num_arguments(one)) == (6, 6)


MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_SCRIPT, MOST_LINES_OF_A_FUNCTION = 350, 60, 60
MOST_ARGUMENTS, MOST_MODULES = 10, 15
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> list[Path]:
    return [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]


def functions_of(path: Path) -> list[Function]:
    return functions_in(path.read_text(encoding="utf-8"))


def functions_in(code: str) -> list[Function]:
    return [node for node in ast.walk(ast.parse(code)) if isinstance(node, Function)]


def lines_of(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def num_arguments(function: Function) -> int:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return len(named) + (given.vararg is not None) + (given.kwarg is not None)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_ignores_artefacts_and_no_code() -> None:
    def is_ignored(path: str) -> bool:
        return subprocess.run(["git", "check-ignore", "-q", "--no-index", path], cwd=ROOT).returncode == 0

    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    for artefact in (
        "data/raw/wikitext2/wiki.test.raw",
        "data/processed/manifest.json",
        "data/encoded/train_ids.pt",
        "data/encoded_bpe/manifest.json",
        "tokenizer/bpe_tokenizer.json",
        "checkpoints/bpe/last.pt",
        "reports/comparison.json",
        "reports/baselines.json",
        "reports/index.html",
        "reports/sweep.json",
        "demo/reports/comparison.json",
        "runs/calibrate/calibration.json",
    ):
        assert is_ignored(artefact), artefact
    for package in [*PACKAGES, "tests"]:
        for path in (ROOT / package).rglob("*.py"):
            assert not is_ignored(str(path.relative_to(ROOT))), path


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
class TestMake:
    def make(self, *arguments: str) -> str:
        result = subprocess.run(
            ["make", "--no-print-directory", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def test_help_lists_every_command(self) -> None:
        listed = self.make("help")
        for command in (
            "setup",
            "data",
            "tokenizer",
            "encode",
            "train-%",
            "compare",
            "sample",
            "marginal",
            "all",
            "demo",
            "sweep",
            "calibrate",
            "test",
            "check",
        ):
            assert re.search(rf"^  make {re.escape(command)} ", listed, re.MULTILINE), command

    def test_help_is_the_default(self) -> None:
        assert self.make() == self.make("help")

    def test_folders_do_not_hide_targets(self) -> None:
        phony = set(" ".join(re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)).split())
        assert {"data", "tokenizer", "compare", "marginal", "sweep", "tune", "calibrate", "test", "speedrun"} <= phony
        assert "scripts.from_make data" in self.make("-n", "data")

    def test_setup_does_nothing_when_it_is_up_to_date(self) -> None:
        if not is_set_up(ROOT):
            pytest.skip("the tests do not run from `make test`")
        assert "pip" not in self.make("setup")


def test_ci_runs_check_and_test() -> None:
    commands = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert commands.index("make check") < commands.index("make test")
