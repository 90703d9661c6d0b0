"""The project itself: import direction, packages, Make commands, what git must not hide."""

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


def test_files_stay_readable() -> None:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            assert path.read_text(encoding="utf-8").count("\n") <= 350, path


def test_no_folder_holds_more_than_fifteen_modules() -> None:
    for package in PACKAGES:
        for folder in {path.parent for path in (ROOT / package).rglob("*.py")}:
            modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
            assert package == "scripts" or len(modules) <= 15, folder


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
        for verb in (
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
            assert re.search(rf"^  make {re.escape(verb)} ", listed, re.MULTILINE), verb

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
