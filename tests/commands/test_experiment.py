from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml

from bench.race import OURS
from chain_helpers import experiment_values, write_experiment
from compare.experiment import Experiment, load_experiment
from data.errors import ConfigError, DataError
from model.settings import MiniGPTConfig, with_preset

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def load(tmp_path: Path, change: dict[str, Any] | None = None, settings: tuple[str, ...] = ()) -> Experiment:
    values = experiment_values(tmp_path, {"source": "pydocs"}) | (change or {})
    return load_experiment(write_experiment(tmp_path / "try.yaml", values), settings)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_config_loads(path: Path) -> None:
    experiment = load_experiment(path)
    assert experiment.contestants
    for contestant in experiment.contestants.values():
        assert contestant.model_config(300).vocab_size == 300


def test_shipped_experiments_that_share_a_root_share_its_corpus_and_nothing_else() -> None:
    by_root: dict[Path, list[Experiment]] = {}
    for path in CONFIGS.glob("*.yaml"):
        experiment = load_experiment(path)
        by_root.setdefault(experiment.layout.root, []).append(experiment)
    for experiments in by_root.values():
        assert all(experiment.corpus == experiments[0].corpus for experiment in experiments)
        names = [name for experiment in experiments for name in experiment.contestants]
        assert len(set(names)) == len(names)  # or one experiment would find the other's runs in its way


def test_the_shipped_sweep_holds_six_sizes_of_three_split_patterns_and_characters() -> None:
    experiment = load_experiment(CONFIGS / "vocab_sweep.yaml")
    tokenizers = {name: contestant.tokenizer for name, contestant in experiment.contestants.items()}
    assert tokenizers.pop("characters").kind == "char"
    sizes = (300, 500, 1000, 2000, 4000, 8000)
    assert {name: (t.split_pattern, t.vocab_size) for name, t in tokenizers.items()} == {
        f"{pattern}_{size}": (pattern, size) for pattern in ("none", "space", "gpt2") for size in sizes
    }
    assert {(t.kind, t.training_characters, t.min_pair_frequency) for t in tokenizers.values()} == {
        ("byte_bpe", None, 2)
    }
    assert all(contestant.overrides == () for contestant in experiment.contestants.values())


def test_the_demo_is_what_the_readme_says() -> None:
    experiment = load_experiment(CONFIGS / "demo.yaml")
    kinds = {name: contestant.tokenizer.kind for name, contestant in experiment.contestants.items()}
    assert kinds == {"char": "char", "bpe": "char_bpe", "byte_bpe": "byte_bpe", "same_context": "byte_bpe"}
    assert experiment.contestants["same_context"].context == "characters"
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
        ({"train": {"batch_size": "many"}}, "train.batch_size: expected a whole number such as 1000, found 'many'"),
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


def test_without_seeds_there_is_one_run_in_the_contestants_own_folder(tmp_path: Path) -> None:
    experiment = load(tmp_path, settings=("train.seed=5",))
    assert experiment.seeds is None
    assert experiment.seeds_of("bpe") == (5,)
    assert experiment.run_folder("bpe", 5) == tmp_path / "checkpoints/bpe"
    assert experiment.train_config("bpe", 5) == experiment.contestants["bpe"].train


def test_without_seeds_a_contestant_may_have_its_own_seed(tmp_path: Path) -> None:
    experiment = load(tmp_path, settings=("contestants.bpe.train.seed=9",))
    assert (experiment.seeds_of("char"), experiment.seeds_of("bpe")) == ((1,), (9,))


def test_seeds_give_every_contestant_as_many_runs_in_folders_of_their_own(tmp_path: Path) -> None:
    experiment = load(tmp_path, {"seeds": [3, 0, 2]})
    for name in ("char", "bpe"):
        assert experiment.seeds_of(name) == (3, 0, 2)
        assert experiment.run_folder(name, 0) == tmp_path / "checkpoints" / name / "seed_0"
        assert [experiment.train_config(name, seed).seed for seed in (3, 0, 2)] == [3, 0, 2]
        assert experiment.train_config(name, 3).batch_size == 8  # everything else is the train block's
    assert all(contestant.overrides == () for contestant in experiment.contestants.values())


def test_a_list_of_one_seed_has_a_folder_of_its_own_too(tmp_path: Path) -> None:
    assert load(tmp_path, {"seeds": [1]}).run_folder("char", 1) == tmp_path / "checkpoints/char/seed_1"


def test_seeds_may_come_from_the_command_line(tmp_path: Path) -> None:
    assert load(tmp_path, settings=("seeds=[1,2]",)).seeds_of("char") == (1, 2)
    assert load(tmp_path, {"seeds": [1, 2, 3]}, settings=("seeds=[7]",)).seeds_of("char") == (7,)


@pytest.mark.parametrize("seeds", [None, [1, 2]])
def test_a_seed_that_the_experiment_does_not_have_is_refused(tmp_path: Path, seeds: list[int] | None) -> None:
    experiment = load(tmp_path, {} if seeds is None else {"seeds": seeds})
    for ask in (experiment.train_config, experiment.run_folder):
        with pytest.raises(ConfigError, match=r"try\.yaml: bpe has no run with seed 4; its seeds: 1(, 2)?$"):
            ask("bpe", 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": []}, "seeds: the list is empty"),
        ({"seeds": None}, "seeds: expected a list, found None"),
        ({"seeds": 3}, "seeds: expected a list, found 3"),
        ({"seeds": [1, "two"]}, "seeds[1]: expected a whole number such as 1000, found 'two'"),
        ({"seeds": [True]}, "seeds[0]: expected a whole number such as 1000, found True"),
        ({"seeds": [1, -2]}, "seeds: every seed must be at least 0, found -2"),
        ({"seeds": [1, 2, 1]}, "seeds: must be distinct, found 1, 2, 1"),
        ({"seed": 1}, "unknown key 'seed'; did you mean 'seeds'?"),
        ({"seeds": [1], "train": {"seed": 1}}, "both seeds and train.seed are given"),
        (
            {"seeds": [1], "contestants": {"a": {"tokenizer": {"kind": "char"}, "train": {"seed": 2}}}},
            "both seeds and contestants.a.train.seed are given",
        ),
        (
            {"contestants": {"a": {"tokenizer": {"kind": "char"}, "context": "words"}}},
            "contestants.a.context: 'words' is not one of tokens, characters",
        ),
        (
            {"contestants": {"a": {"tokenizer": {"kind": "char"}, "contexts": "tokens"}}},
            "unknown key 'contexts'; did you mean 'context'?",
        ),
    ],
)
def test_a_mistake_in_seeds_or_context_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, change)
    assert message in str(caught.value)
    assert "try.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def contexts(tmp_path: Path, block_size: int = 128) -> Experiment:
    tokenizer = {"kind": "char_bpe", "vocab_size": 60}
    contestants = {
        "bpe": {"tokenizer": tokenizer},
        "said": {"tokenizer": tokenizer, "context": "tokens"},
        "same": {"tokenizer": tokenizer, "context": "characters"},
        "own": {"tokenizer": tokenizer, "context": "characters", "model": {"block_size": 90}},
    }
    return load(tmp_path, {"contestants": contestants, "model": {"block_size": block_size, "embedding_dim": 16}})


def block_sizes(experiment: Experiment, *, num_chars: int, num_tokens: int) -> dict[str, int]:
    train: Any = SimpleNamespace(ids=torch.zeros(num_tokens), num_chars=num_chars, path=Path("train_ids.pt"))
    tokenizer: Any = SimpleNamespace(vocab_size=60)
    configs = {name: contestant.model_for(tokenizer, train) for name, contestant in experiment.contestants.items()}
    assert Counter(config.vocab_size for config in configs.values()) == {60: 4}
    return {name: config.block_size for name, config in configs.items()}


def test_a_context_in_characters_becomes_as_many_tokens_as_span_them_on_train(tmp_path: Path) -> None:
    found = block_sizes(contexts(tmp_path), num_chars=9000, num_tokens=4000)  # 2.25 characters in a token
    assert found == {"bpe": 128, "said": 128, "same": 57, "own": 40}
    found = block_sizes(contexts(tmp_path), num_chars=4000, num_tokens=4000)
    assert found == {"bpe": 128, "said": 128, "same": 128, "own": 90}


def test_tokens_shorter_than_a_character_give_a_longer_block(tmp_path: Path) -> None:
    assert block_sizes(contexts(tmp_path), num_chars=2000, num_tokens=4000)["same"] == 256


def test_a_block_has_at_least_one_token(tmp_path: Path) -> None:
    assert block_sizes(contexts(tmp_path, block_size=1), num_chars=9000, num_tokens=1000)["same"] == 1


def test_a_context_in_characters_without_train_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train_ids\.pt holds no tokens, so `context: characters` of contestant own"):
        block_sizes(contexts(tmp_path), num_chars=0, num_tokens=0)


def test_a_context_in_characters_is_recorded_as_not_held_equal(tmp_path: Path) -> None:
    overrides = {
        name: [(o.key, o.shared, o.own) for o in contestant.overrides]
        for name, contestant in contexts(tmp_path).contestants.items()
    }
    assert overrides == {
        "bpe": [],
        "said": [],
        "same": [("context", "tokens", "characters")],
        "own": [("context", "tokens", "characters"), ("model.block_size", 128, 90)],
    }


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


def test_every_builder_of_configurations_takes_both_halves_of_the_preset(tmp_path: Path) -> None:
    model, train = with_preset({"preset": "modern", "rope": False}, {"schedule": "cosine"})
    config = MiniGPTConfig(5, **model)
    assert (config.rope, config.qk_norm, config.relu_squared, config.rms_norm) == (False, True, True, False)
    assert train == {"optimizer": "muon", "schedule": "cosine"}
    assert with_preset({}, {"batch_size": 2}) == ({}, {"batch_size": 2})
    assert MiniGPTConfig(5) == MiniGPTConfig(5, **with_preset({"preset": "gpt2"}, {})[0])
    with pytest.raises(ConfigError, match="preset: 'modrn' is not one of gpt2, modern"):
        MiniGPTConfig(5, preset="modrn")  # type: ignore[arg-type]
    assert (OURS["modern"]["optimizer"], OURS["modern"]["schedule"]) == ("muon", "linear")
    assert not {"optimizer", "schedule"} & set(OURS["gpt2"])
