"""`normalized_by`: a contestant that changes the text is compared on the text as it leaves it, as all others are."""

import json
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare.experiment import load_experiment
from compare.steps import Steps
from compare.text_steps import TextSteps
from data.errors import ConfigError, TokenizerError
from foreign_helpers import byte_level_json
from scripts import compare as compare_script


def experiment(folder: Path, normalized_by: str | None, **normalizer: Any) -> Path:
    """Texts with capitals, and a contestant `lower` whose file makes them small."""
    texts = write_corpus(folder / "texts", extra="The CAT sat.\n")
    tokenizer = byte_level_json(folder / "lower.json", normalizer=normalizer or {"type": "Lowercase"})
    values = experiment_values(folder / "run", texts)
    values["contestants"] = {
        "char": {"tokenizer": {"kind": "char"}},
        "lower": {"tokenizer": {"kind": "hf", "path": str(tokenizer)}},
    }
    return write_experiment(folder / "e.yaml", values | {"normalized_by": normalized_by})


def test_all_contestants_get_the_normalised_text(tmp_path: Path) -> None:
    path = experiment(tmp_path, None)
    before = TextSteps(load_experiment(path)).data()
    with pytest.raises(TokenizerError, match=r"first difference at character .* the text has .*The CAT"):
        Steps(load_experiment(path)).encode("lower")

    chosen = experiment(tmp_path, "lower")
    after = Steps(load_experiment(chosen)).data()
    for name, split in after.items():
        assert (split.text == before[name].text.lower() and split.sha256 != before[name].sha256) or name == "val"
    assert any(split.text != before[name].text for name, split in after.items())
    steps = Steps(load_experiment(chosen))
    for name in ("char", "lower"):
        encoded = steps.encode(name)
        assert {split: one.text_sha256 for split, one in encoded.items()} == {
            split: one.sha256 for split, one in after.items()
        }
    manifest = json.loads((tmp_path / "run/data/processed/manifest.json").read_text())
    [entry] = manifest.values()
    assert entry["normalization"]["changed_documents"] >= 1
    assert entry["normalization"]["characters_before"] == entry["normalization"]["characters_after"]


def test_another_normalisation_is_another_text(tmp_path: Path) -> None:
    said: list[str] = []
    first = TextSteps(load_experiment(experiment(tmp_path, "lower")), echo=said.append).data()
    TextSteps(load_experiment(experiment(tmp_path, "lower")), echo=said.append).data()
    assert "up to date" in said[-1]
    replaced = experiment(tmp_path, "lower", type="Replace", pattern={"String": "CAT"}, content="dog")
    second = TextSteps(load_experiment(replaced), echo=said.append).data()
    assert "wrote" in said[-1]
    assert {s.sha256 for s in first.values()} != {s.sha256 for s in second.values()}
    TextSteps(load_experiment(experiment(tmp_path, None)), echo=said.append).data()
    assert "wrote" in said[-1]


@pytest.mark.parametrize("name", ["char", "nobody", 3])
def test_only_a_tokenizer_from_a_file_normalises(tmp_path: Path, name: Any) -> None:
    with pytest.raises(ConfigError, match=r"normalized_by: .* is no contestant whose tokenizer is read from a file"):
        load_experiment(experiment(tmp_path, name))


def test_the_report_says_so(tmp_path: Path) -> None:
    compare_script.main(["--config", str(experiment(tmp_path, "lower"))])
    report = (tmp_path / "run/reports/comparison.md").read_text(encoding="utf-8")
    assert report.count("on text that the tokenizer of lower has normalised") == 1
