"""Every command and every piece of Python in README, docs/python.md and the guides runs, on a tiny experiment."""

import json
import random
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from chain_helpers import WORDS, experiment_values, write_corpus
from compare.command_line import commands, variables
from interop_helpers import need_transformers
from scripts import main as entry
from scripts import train

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "docs/guides").glob("*.md"))
NEED_TRANSFORMERS = {"exporting", "own-tokenizer", "scoring"}
SLOW = {"paper", "own-text"}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def make_commands(text: str) -> list[list[str]]:
    """The words of every `make …` that stands as an indented line."""
    return [shlex.split(line) for line in re.findall(r"^    make (.*?)(?: {2,}#.*)?$", text, re.MULTILINE)]


def run_make(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What Make does with `words`, in this process."""
    given = dict(word.split("=", 1) for word in words if "=" in word)
    target = next(word for word in words if "=" not in word)
    command = "train" if target.startswith("train-") else commands.ALIASES.get(target, target)
    monkeypatch.setattr(sys, "argv", ["make"])
    arguments = variables.arguments_of(command, given | {variables.TARGET: target})
    entry.run_command(command, arguments, called=f"scripts.{command}")


def tiny_experiment(folder: Path, text: str) -> None:
    """configs/mine.yaml with what the page says, and everything else small; letters to read."""
    (folder / "configs").mkdir()
    (folder / "letters").mkdir()
    rng = random.Random(1)
    for name in ("one", "two"):
        letters = [" ".join(["The history of", *rng.choices(WORDS, k=60)]) for _ in range(60)]
        (folder / f"letters/{name}.txt").write_text("\n\n".join(letters) + "\n", encoding="utf-8")
    values: dict[str, Any] = experiment_values(folder / "runs/mine", {})
    values["corpus"] = {"source": "text", "paths": ["letters/*.txt"], "separator": "\n\n"}
    for block in blocks(text, "yaml"):
        values |= yaml.safe_load(block)
    (folder / "configs/mine.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")
@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in SLOW), id=path.stem) for path in GUIDES]
)
def test_a_guide_runs_as_it_stands(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if path.stem in NEED_TRANSFORMERS:
        need_transformers()
    text = path.read_text(encoding="utf-8")
    tiny_experiment(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    commands = make_commands(text)
    assert commands and text.count("make ") - text.count("`make ") >= len(commands)
    printed = []
    for words in commands:
        run_make(words, monkeypatch)
        printed.append(capsys.readouterr().out)
        assert printed[-1].strip(), words
    for block in blocks(text, "python"):
        exec(block, {})
    for block in blocks(text, "text"):
        assert block in printed


def test_there_is_a_guide_for_each_task() -> None:
    stems = {path.stem for path in GUIDES}
    assert stems == {"own-text", "own-tokenizer", "paper", "exporting", "scoring", "how-bpe-works"}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"docs/guides/{stem}.md" in readme for stem in stems)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained contestant byte_bpe below demo/, and configs/mine.yaml."""
    folder = tmp_path_factory.mktemp("demo")
    values: dict[str, Any] = experiment_values(folder / "demo", write_corpus(folder / "texts"))
    values["contestants"] = {"byte_bpe": {"tokenizer": {"kind": "byte_bpe", "vocab_size": 300}}}
    (folder / "configs").mkdir()
    (folder / "configs/mine.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    train.main(["--config", str(folder / "configs/mine.yaml")])
    return folder


def test_the_readmes_python_runs(
    demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(demo)
    found = blocks((ROOT / "README.md").read_text(encoding="utf-8"), "python")
    assert len(found) == 2
    names: dict[str, Any] = {}
    for block in found:
        exec(block, names)
    printed = capsys.readouterr().out
    assert "300 [" in printed and "The history of tea" in printed
    assert float(printed.split()[-1]) == pytest.approx(names["model"].bits_per_char("A text of your own.\n"))
    exported = json.loads((demo / "tokenizer.json").read_text(encoding="utf-8"))
    assert len(exported["model"]["merges"]) == 300 - 256 and len(names["arguments"]["mergeable_ranks"]) == 300


def test_the_python_page_runs(demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(demo)
    tokenizer, model, comparison = blocks((ROOT / "docs/python.md").read_text(encoding="utf-8"), "python")
    for block in (tokenizer, model):
        exec(block, {})
    printed = capsys.readouterr().out
    assert "<tokenizer byte_bpe, 300 tokens" in printed and "<model byte_bpe: gpt2" in printed
    assert "compare(" in comparison and "train.seed=2" in comparison


@pytest.mark.slow
def test_the_python_pages_comparison_runs(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values = yaml.safe_load((demo / "configs/mine.yaml").read_text(encoding="utf-8"))
    values |= {"root": str(tmp_path / "run"), "contestants": {"char": {"tokenizer": {"kind": "char"}}}}
    values["contestants"]["byte"] = {"tokenizer": {"kind": "byte"}}
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/mine.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(blocks((ROOT / "docs/python.md").read_text(encoding="utf-8"), "python")[2], {})
    assert "bits per character (test)" in capsys.readouterr().out
