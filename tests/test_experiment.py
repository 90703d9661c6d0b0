from pathlib import Path
from typing import Any

import pytest
import yaml

from chain_helpers import experiment_values, write_experiment
from compare.experiment import Experiment, load_experiment
from data.errors import ConfigError

CONFIGS = Path(__file__).resolve().parents[1] / "configs"


def load(tmp_path: Path, change: dict[str, Any] | None = None, settings: tuple[str, ...] = ()) -> Experiment:
    values = experiment_values(tmp_path, {"source": "pydocs"}) | (change or {})
    return load_experiment(write_experiment(tmp_path / "try.yaml", values), settings)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_config_loads(path: Path) -> None:
    experiment = load_experiment(path)
    assert experiment.contestants
    for contestant in experiment.contestants.values():
        assert contestant.model_config(300).vocab_size == 300


def test_shipped_roots_do_not_overlap() -> None:
    roots = [load_experiment(path).layout.root for path in CONFIGS.glob("*.yaml")]
    assert len(set(roots)) == len(roots)


def test_the_demo_is_what_the_readme_says() -> None:
    experiment = load_experiment(CONFIGS / "demo.yaml")
    kinds = {name: contestant.tokenizer.kind for name, contestant in experiment.contestants.items()}
    assert kinds == {"char": "char", "bpe": "char_bpe", "byte_bpe": "byte_bpe"}
    assert experiment.corpus.source == "pydocs"
    assert experiment.contestants["byte_bpe"].tokenizer.split_pattern == "gpt2"
    assert str(experiment.layout.root) == "demo"


def test_the_tutorial_setting() -> None:
    tokenizer = load_experiment(CONFIGS / "wikitext2-tokens-500.yaml").contestants["bpe"].tokenizer
    assert (tokenizer.vocab_size, tokenizer.training_characters, tokenizer.min_pair_frequency) == (500, 500_000, 2)


def test_shared_blocks_reach_every_contestant(tmp_path: Path) -> None:
    experiment = load(tmp_path)
    assert {c.train.batch_size for c in experiment.contestants.values()} == {8}
    assert {c.model_config(60).block_size for c in experiment.contestants.values()} == {16}
    assert all(c.overrides == () for c in experiment.contestants.values())


def test_an_override_replaces_and_is_recorded(tmp_path: Path) -> None:
    values = experiment_values(tmp_path, {"source": "pydocs"})
    values["contestants"]["bpe"]["train"] = {"learning_rate": 0.5, "budget": {"amount": 7}}
    experiment = load(tmp_path, values)
    bpe, char = experiment.contestants["bpe"], experiment.contestants["char"]
    assert (bpe.train.learning_rate, char.train.learning_rate) == (0.5, 3e-3)
    assert (bpe.train.budget.unit, bpe.train.budget.amount) == ("characters", 7)  # the unit stays the shared one
    assert ("train.learning_rate", 3e-3, 0.5) in [(o.key, o.shared, o.own) for o in bpe.overrides]


def test_settings_win_over_the_file(tmp_path: Path) -> None:
    experiment = load(tmp_path, settings=("train.batch_size=64", "contestants.bpe.tokenizer.vocab_size=99", "root=x/y"))
    assert experiment.contestants["char"].train.batch_size == 64
    assert experiment.contestants["bpe"].tokenizer.vocab_size == 99
    assert experiment.layout.root == Path("x/y")


def test_a_setting_may_spell_a_float_without_a_dot(tmp_path: Path) -> None:
    assert load(tmp_path, settings=("train.learning_rate=3e-4",)).contestants["char"].train.learning_rate == 3e-4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modle": {}}, "unknown key 'modle'; did you mean 'model'?"),
        ({"contestants": {}}, "contestants must name at least one"),
        ({"contestants": {"a b": {"tokenizer": {"kind": "char"}}}}, "a name is letters"),
        ({"contestants": {"../up": {"tokenizer": {"kind": "char"}}}}, "a name is letters"),
        ({"contestants": {"char": {"tokeniser": {"kind": "char"}}}}, "did you mean 'tokenizer'?"),
        ({"contestants": {"char": {"model": {}}}}, "key 'tokenizer' is missing"),
        ({"contestants": {"char": {"tokenizer": {"kind": "chars"}}}}, "'chars' is not one of char, byte"),
        ({"train": {"batchsize": 3}}, "did you mean 'batch_size'?"),
        ({"train": {"batch_size": "many"}}, "train.batch_size: expected int, found 'many'"),
        ({"model": {"vocab_size": 500}}, "model.vocab_size: this is not set in a file"),
        ({"model": {"embedding_dim": 10, "num_heads": 3}}, "model"),
        ({"corpus": {"source": "wikitext3"}}, "corpus.source: 'wikitext3' is not one of"),
        ({"train": 3}, "train: expected a mapping, found 3"),
    ],
)
def test_a_mistake_is_named_with_file_and_key(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, change)
    assert message in str(caught.value)
    assert "try.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("setting", ["train.batch_size", "=3", "corpus.source.deeper=1", "train.seed=[1"])
def test_a_malformed_setting_is_an_error(tmp_path: Path, setting: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        load(tmp_path, settings=(setting,))


def test_broken_yaml_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("train: [1,\ncorpus: }", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"broken\.yaml is not valid YAML") as caught:
        load_experiment(path)
    assert "\n" not in str(caught.value)


def test_an_unknown_contestant_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no contestant 'bpee'; did you mean 'bpe'"):
        load(tmp_path).contestant("bpee")


def test_a_vocabulary_in_a_char_contestant_is_refused(tmp_path: Path) -> None:
    contestants = {"char": {"tokenizer": {"kind": "char", "vocab_size": 5}}}
    with pytest.raises(ConfigError, match=r"contestants\.char\.tokenizer: vocab_size: a char tokenizer"):
        load(tmp_path, {"contestants": contestants})


def test_yaml_numbers_with_underscores(tmp_path: Path) -> None:
    assert yaml.safe_load("20_000_000") == 20_000_000
    train = {"budget": {"amount": 20_000_000}}
    assert load(tmp_path, {"train": train}).contestants["char"].train.budget.amount == 20_000_000


def test_the_modern_preset_brings_its_training_settings_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    plain = load(tmp_path).contestants["char"].train
    assert (plain.optimizer, plain.order) == ("adamw", "random")
    settings = ("model.preset=modern", "train.order=random")
    contestant = load(tmp_path, settings=settings).contestants["char"]
    assert (contestant.train.optimizer, contestant.train.schedule) == ("muon", "linear")
    assert contestant.train.order == "random"
    assert contestant.model_config(50).rope is True
    with pytest.raises(ConfigError, match=r"model\.preset: 'modrn' is not one of gpt2, modern"):
        load(tmp_path, settings=("model.preset=modrn",))
