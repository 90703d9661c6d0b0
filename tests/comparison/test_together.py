"""Contestants of several experiments in one table: names, resolved settings, refusals, and that nothing is trained."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare import api
from compare.command_line import variables
from compare.experiment import load_experiment
from compare.steps import Steps
from compare.together import Together
from data.errors import CheckpointError, ConfigError, ReportError
from data.files import read_json


def silent(_line: str) -> None:
    """Takes what a command says."""


def write(folder: Path, name: str, corpus: dict[str, str], **changes: Any) -> Path:
    values: Any = experiment_values(folder / name, corpus) | changes
    return write_experiment(folder / f"{name}.yaml", values)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished experiments on one text: a with bpe and char, b with char and more, trained with other batches."""
    folder = tmp_path_factory.mktemp("together")
    corpus = write_corpus(folder / "texts")
    a = write(folder, "a", corpus)
    contestants = {
        "char": {"tokenizer": {"kind": "char"}},
        "more": {"tokenizer": {"kind": "char_bpe", "vocab_size": 40}},
    }
    b = write(folder, "b", corpus, contestants=contestants)
    b.write_text(b.read_text().replace("batch_size: 8", "batch_size: 4"))
    for path in (a, b):
        Steps(load_experiment(path), echo=silent).compare()
    return folder


def test_names_settings_and_figures_of_both(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compare.steps.train", None)  # what would be trained fails
    with pytest.raises(TypeError):
        Steps(load_experiment(made / "a.yaml"), echo=silent).compare()
    monkeypatch.undo()
    comparison = api.compare_together([made / "a.yaml", made / "b.yaml"], echo=silent)
    own = {name: api.compare(made / f"{name}.yaml", echo=silent) for name in ("a", "b")}
    expected = {
        (f"{name}/{row.contestant}" if row.contestant == "char" else row.contestant): row.bits_per_char
        for name, found in own.items()
        for row in found.rows
    }
    assert {row.contestant: row.bits_per_char for row in comparison.rows} == expected
    assert set(expected) == {"a/char", "bpe", "b/char", "more"}
    assert "train.batch_size: bpe 8, a/char 8, b/char 4, more 4" in comparison.not_held_equal
    assert comparison.experiment == "a+b"
    stored = read_json(made / "a/reports/compared/a+b/comparison.json")
    assert [row["contestant"] for row in stored["rows"]] == [row.contestant for row in comparison.rows]
    again = Together([load_experiment(made / f"{name}.yaml") for name in "ab"], echo=silent)
    assert again.compare() == comparison and again.num_done == 0


def test_runs_that_are_not_finished_are_named_with_the_command_and_not_trained(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "copy")
    for name in "ab":
        path = tmp_path / "copy" / f"{name}.yaml"
        path.write_text(path.read_text().replace(str(made / name), str(tmp_path / "copy" / name)))
    paths = [tmp_path / "copy" / f"{name}.yaml" for name in "ab"]
    shutil.rmtree(tmp_path / "copy/b/checkpoints/more")
    with pytest.raises(CheckpointError, match=r"b: more\); first run `make train-more EXPERIMENT=\S*b.yaml`"):
        api.compare_together(paths, echo=silent)
    assert not (tmp_path / "copy/b/checkpoints/more").exists()
    with pytest.raises(
        CheckpointError, match=r"a: bpe, char; b: char, more\)"
    ):  # scored otherwise, so to be made again
        api.compare_together(
            [made / "a.yaml", made / "b.yaml"], ["evaluate.alarm_below_bits_per_char=0.1"], echo=silent
        )
    with pytest.raises(CheckpointError, match=r"EXPERIMENT=\S*a.yaml SET=train.beta1=0.8`"):  # trained otherwise
        api.compare_together([made / "a.yaml", made / "b.yaml"], ["train.beta1=0.8"], echo=silent)


def test_other_texts_and_seeds_are_refused(made: Path, tmp_path: Path) -> None:
    other = write(tmp_path, "c", write_corpus(tmp_path / "texts", seed=2))
    seeds = write(tmp_path, "d", write_corpus(tmp_path / "same"), seeds=[1, 2])
    for path in (other, seeds):
        Steps(load_experiment(path), echo=silent).compare()
    with pytest.raises(ReportError, match="a and c have different test texts"):
        api.compare_together([made / "a.yaml", other], echo=silent)
    with pytest.raises(ReportError, match=r"a has seeds \[1\] and d has \[1, 2\]"):
        api.compare_together([made / "a.yaml", seeds], echo=silent)


def test_fewer_than_two_and_two_of_one_name_are_refused(made: Path) -> None:
    a = load_experiment(made / "a.yaml")
    with pytest.raises(ConfigError, match="at least two"):
        Together([a])
    with pytest.raises(ConfigError, match="two of them are called a"):
        Together([a, a])


def test_make_hands_the_experiments_on_unexpanded() -> None:
    assert variables.arguments_of("compare", {"EXPERIMENTS": "a $(b)"})[-1] == "--experiments=a $(b)"
    with pytest.raises(ConfigError, match="both EXPERIMENT 'a' and EXPERIMENTS are given"):
        variables.check_experiments("compare", {"EXPERIMENTS": "a b", "EXPERIMENT": "a"})


def test_ladders_of_other_budgets_and_sizes_are_left_out_and_said_to_be(made: Path, tmp_path: Path) -> None:
    """Of two ladders with the same budgets the joint comparison says what each says; of others nothing, in words."""
    corpus = write_corpus(tmp_path / "texts")
    for name, changes in (("c", {"ladder": {"rungs": 3}}), ("d", {"ladder": {"rungs": 3}, "sizes": [4]})):
        contestants = {"char": {"tokenizer": {"kind": "char"}}}
        Steps(load_experiment(write(tmp_path, name, corpus, contestants=contestants, **changes)), echo=silent).compare()
    paths = [tmp_path / "c.yaml", tmp_path / "d.yaml"]
    both = api.compare_together(paths, echo=silent)
    assert both.ladder is not None and both.ladder.amounts == (1500, 3000, 6000) and both.sizes is None
    said = [line for line in both.not_held_equal if " is here without " in line]
    assert said == [f"d is here without its other sizes of model; `make compare EXPERIMENT={paths[1]}` shows more"]
    assert not (tmp_path / "d/reports/compared").exists()
    plain = write(tmp_path, "e", corpus)
    Steps(load_experiment(plain), echo=silent).compare()
    mixed = api.compare_together([paths[0], plain], echo=silent)
    assert mixed.ladder is None
    said = [line for line in mixed.not_held_equal if " is here without " in line]
    assert said == [
        "c is here without its ladder, because the budgets are not the same for all; `make compare "
        f"EXPERIMENT={paths[0]}` shows more"
    ]
