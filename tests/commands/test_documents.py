"""The documents: commands that exist, paths that exist, settings as the code has them, plain words."""

import re
from pathlib import Path

import numpy as np
import pytest

from compare.certainty.pairs import summarize
from compare.certainty.verdict import as_json
from compare.command_line import settings_page as page
from compare.command_line import variables
from compare.experiment import load_experiment
from compare.experiment_file import _KEYS, CONTESTANT_KEYS
from data.layout import is_artefact
from data.numbers import NullAs, Range
from model.evaluate import Evaluation
from scripts import settings

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z%-]+):", MAKEFILE, re.MULTILINE))
OF_MAKE = {"EXPERIMENT", "PROCESSES", "BENCH_PYTHON", "PYTHON"}
"""Variables that the tables of compare/command_line/variables.py do not list."""
FORBIDDEN = re.compile(
    r"\b(verbs?|rooms?|rulers?|doors?|house|straight|bent)\b|\b(is|are) asked\b|\b(design|cases)\.md\b|\bissue \d"
    r"|\bstands? beside\b|\bholds zero\b|\btrain anew\b|single block|none begins",
    re.IGNORECASE,
)
EXAMPLES = {"demo", "runs", "letters", "roneneldan", "configs/mine.yaml", "scripts/NAME.py"}
"""What a reader makes, and placeholders."""


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _without_output(text: str) -> str:
    """A document without what a command printed: the README's marked part and indented blocks that are no commands."""
    text = re.sub(r"<!-- demo output -->.*?<!-- end of demo output -->", "", text, flags=re.DOTALL)
    return "\n".join(line for line in text.splitlines() if not line.startswith("    ") or "make " in line)


def _commands(text: str) -> list[str]:
    """Every `make …` of a document: lines of indented blocks, and spans in backticks."""
    lines = re.findall(r"^ {4,}(make .*?)(?: {2,}#.*)?$", text, re.MULTILINE)
    return lines + re.findall(r"(?<!`)`(make [^`]+)`", text)


@pytest.mark.parametrize("name", NAMES)
def test_every_make_command_exists(name: str) -> None:
    for command in _commands(_text(name)):
        words = re.findall(r"""(?:[^\s"]|"[^"]*")+""", command.split("  (")[0])[1:]
        target = next(word for word in words if "=" not in word)
        is_training = target.startswith("train-") and "train-%" in TARGETS
        assert target in TARGETS or is_training, command
        name_in_make = "train" if is_training else {"all": "compare", "demo": "compare"}.get(target, target)
        known = OF_MAKE | {"TEXT"} if target == "trace" else set(OF_MAKE)
        for table in (variables.VALUES, variables.SWITCHES, variables.LISTS):
            known |= set(table.get(name_in_make, {}))
        for word in words:
            if "=" in word:
                assert word.partition("=")[0] in known, command


def test_the_readme_has_commands() -> None:
    found = _commands(_text("README.md"))
    assert "make demo" in found and "make all EXPERIMENT=mine" in found and len(found) > 15


@pytest.mark.parametrize("name", NAMES)
def test_every_path_exists(name: str) -> None:
    text = _text(name)
    folder = (ROOT / name).parent
    for linked in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert linked.startswith("http") or (folder / linked).exists(), linked
    for span in re.findall(r"(?<!`)`([^`\s]+)`", _without_output(text)):
        is_path = re.fullmatch(r"\.?[\w./-]+/|\.?[\w-]+(/[\w.-]+)+|[\w-]+\.(md|py|yaml|toml|txt)", span)
        if not is_path or span in EXAMPLES or span.split("/")[0] in EXAMPLES or is_artefact(Path(span).parts):
            continue
        if "/" in span or not list(ROOT.glob(f"*/{span}")) + list(ROOT.glob(f"*/*/{span}")):
            assert (ROOT / span).exists(), span


@pytest.mark.parametrize("name", NAMES)
def test_lines_and_tables_fit(name: str) -> None:
    for number, line in enumerate(_text(name).splitlines(), start=1):
        assert len(line) <= (100 if line.startswith("|") else 120), f"{name}:{number}"


@pytest.mark.parametrize("name", NAMES)
def test_words_are_plain(name: str) -> None:
    for number, line in enumerate(_without_output(_text(name)).splitlines(), start=1):
        assert not FORBIDDEN.search(line), f"{name}, about line {number}: {line}"


class TestSettings:
    def test_the_page_is_current(self) -> None:
        assert page.PATH.read_text(encoding="utf-8") == page.settings_page(), "run `python -m scripts.settings`"

    def test_every_key_of_the_file_is_described(self) -> None:
        assert set(page.TOP_LEVEL) == set(_KEYS)
        assert set(page.CONTESTANT) == set(CONTESTANT_KEYS)

    def test_what_the_modern_preset_sets(self) -> None:
        contestants = load_experiment(ROOT / "configs/presets.yaml").contestants
        plain, modern = (contestants[name].train for name in ("char_gpt2", "char_modern"))
        tuned = ("batch_size", "learning_rate")  # each contestant's own, whatever the preset
        changed = [name for name in vars(plain) if getattr(plain, name) != getattr(modern, name) and name not in tuned]
        said = " ".join(page.settings_page().split())
        defaults = [f"`{name}: {getattr(modern, name)}`" for name in changed]
        assert f"It also makes {' and '.join(defaults)} the defaults of the train block." in said

    def test_types_in_words(self) -> None:
        assert page.type_in_words(float, Range(0, 1, excludes_most=True)) == "number from 0 below 1"
        assert page.type_in_words(int, Range(1, 10**30)) == "whole number from 1 to 10^30"
        assert page.type_in_words(int | None, Range(1, 9), NullAs(("all",))) == (
            "whole number from 1 to 9, `all` or `null`"
        )
        assert page.type_in_words(tuple[str, ...] | None) == "list of strings or `null`"
        assert page.type_in_words(bool | None) == "`true`, `false` or `null`"

    def test_the_command_writes_the_page(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "settings.md"
        monkeypatch.setattr(settings, "PATH", path)
        settings.main([])
        assert path.read_text(encoding="utf-8") == page.settings_page()
        assert str(path) in capsys.readouterr().out


def _evaluation() -> Evaluation:
    return Evaluation(
        nats=np.full(8, 1.5, np.float32),
        token_num_chars=np.full(8, 2, np.int32),
        token_num_bytes=np.full(8, 2, np.int32),
        document_offsets=np.array([0, 4, 8], np.int64),
        disjoint_total_nats=12.0,
        text_sha256="0" * 64,
        tokenizer_fingerprint="1" * 64,
        stride=2,
        block_size=4,
    )


def test_every_version_constant_is_explained() -> None:
    rows = [line for line in _text("CONTRIBUTING.md").splitlines() if line.startswith("|")]
    found = 0
    for package in ("data", "tokenizer", "model", "compare"):
        for path in (ROOT / package).rglob("*.py"):
            for name in re.findall(r"^(\w*(?:VERSION|FORMAT)) = \d", path.read_text(encoding="utf-8"), re.MULTILINE):
                found += 1
                assert any(f"`{name}`" in row and f"/{path.name}" in row for row in rows), (name, path)
    assert found >= 12


def test_the_keys_of_the_verdict_are_described() -> None:
    certainty = summarize({"char": [_evaluation()], "bpe": [_evaluation()]}, [1])
    verdict = as_json(certainty, test_chars=16, budget="equal characters seen")
    method = _text("docs/method.md")
    for key in (*verdict, *verdict["contestants"]["char"], *verdict["pairs"][0]):
        assert f"`{key}`" in method, key
