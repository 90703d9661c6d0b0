"""One experiment = one YAML file: a corpus, named contestants, and what all of them share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from data.config import build, convert, did_you_mean, require
from data.errors import ConfigError, DataError
from data.files import read_text
from data.layout import Layout
from data.sources import CorpusConfig
from model.evaluate import EvaluateConfig
from model.gpt import MiniGPTConfig
from model.schedule import MODERN_TRAIN
from model.train import TrainConfig
from tokenizer.base import Tokenizer
from tokenizer.encode_splits import EncodedSplit
from tokenizer.train import TokenizerConfig

Context = Literal["tokens", "characters"]
SHARED_BLOCKS = ("model", "train", "evaluate")
_SMALLEST_VOCABULARY = 2  # stands in for the tokenizer's size while a file is checked


@dataclass(frozen=True)
class Override:
    """A shared value that one contestant replaced: something not held equal, to be said in the report."""

    key: str
    """Dotted, such as `train.learning_rate`; `context` for the unit in which block_size is read."""
    shared: Any
    own: Any


@dataclass(frozen=True)
class Contestant:
    """One tokenizer, and the model and training it gets."""

    name: str
    tokenizer: TokenizerConfig
    model: Mapping[str, Any]
    """Settings of the model block; the vocabulary size comes from the tokenizer."""
    train: TrainConfig
    """With the seed of the train block; an experiment's `seeds` take its place, see `Experiment.train_config`."""
    evaluate: EvaluateConfig
    overrides: tuple[Override, ...]
    context: Context = "tokens"
    """The unit in which the model block's block_size is read."""

    def model_config(self, vocab_size: int) -> MiniGPTConfig:
        """The model's configuration for a tokenizer of `vocab_size`, with block_size as the file has it."""
        return build(MiniGPTConfig, self.model, f"contestants.{self.name}.model", given={"vocab_size": vocab_size})

    def model_for(self, tokenizer: Tokenizer, train: EncodedSplit) -> MiniGPTConfig:
        """The model's configuration for `tokenizer`, with block_size in tokens; `train` is encoded by `tokenizer`.

        Under `context: characters` the block is the number of tokens that span block_size characters of train on
        average, rounded, and at least one. A train without a token says nothing about lengths and raises DataError.
        """
        config = self.model_config(tokenizer.vocab_size)
        if self.context == "tokens":
            return config
        if not len(train.ids):
            raise DataError(
                f"{train.path} holds no tokens, so `context: characters` of contestant {self.name} cannot be "
                "turned into tokens; give train some text"
            )
        mean_characters = train.num_chars / len(train.ids)
        return replace(config, block_size=max(1, round(config.block_size / mean_characters)))


@dataclass(frozen=True)
class Experiment:
    """A checked experiment file."""

    name: str
    path: Path
    corpus: CorpusConfig
    contestants: Mapping[str, Contestant]
    layout: Layout
    seeds: tuple[int, ...] | None = None
    """Every contestant is trained once with each of them; None: once, with the seed of its train block."""

    def contestant(self, name: str) -> Contestant:
        """The contestant called `name`; raises ConfigError with the known names."""
        if name not in self.contestants:
            raise ConfigError(f"{self.path}: no contestant {name!r}{did_you_mean(name, list(self.contestants))}")
        return self.contestants[name]

    def seeds_of(self, name: str) -> tuple[int, ...]:
        """The seeds that contestant `name` is trained with, in order."""
        return self.seeds or (self.contestant(name).train.seed,)

    def train_config(self, name: str, seed: int) -> TrainConfig:
        """How the run of contestant `name` with `seed` is trained.

        Raises ConfigError for a seed that the experiment does not have.
        """
        known = self.seeds_of(name)
        require(seed in known, f"{self.path}: {name} has no run with seed {seed}; its seeds: {_listed(known)}")
        return replace(self.contestant(name).train, seed=seed)

    def run_folder(self, name: str, seed: int) -> Path:
        """Where that run lies: in a folder of its own if the experiment names seeds."""
        seed = self.train_config(name, seed).seed
        return self.layout.checkpoints(name, seed if self.seeds else None)


def load_experiment(path: Path, settings: Sequence[str] = ()) -> Experiment:
    """Read an experiment file and apply `settings` such as `train.batch_size=64` on top.

    Precedence: dataclass default < YAML < settings. Raises ConfigError naming file and key.
    """
    try:
        values = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    require(isinstance(values, dict), f"{path}: expected a mapping, found {type(values).__name__}")
    for setting in settings:
        _apply(values, setting)
    known = ("corpus", "contestants", *SHARED_BLOCKS, "seeds", "root")
    for key in values:
        require(key in known, f"{path}: unknown key {key!r}{did_you_mean(str(key), list(known))}")
    for key in ("corpus", "contestants", "train"):
        require(key in values, f"{path}: key {key!r} is missing")
    contestants = values["contestants"]
    require(isinstance(contestants, dict) and len(contestants) > 0, f"{path}: contestants must name at least one")
    return Experiment(
        name=path.stem,
        path=path,
        corpus=build(CorpusConfig, values["corpus"], f"{path}: corpus"),
        contestants={str(name): _contestant(str(name), own, values, path) for name, own in contestants.items()},
        layout=Layout(Path(str(values.get("root", ".")))),
        seeds=_seeds(values, path),
    )


def _seeds(values: Mapping[str, Any], path: Path) -> tuple[int, ...] | None:
    """The checked key `seeds`; None if the file has none. Seeds are written in one place or in the other."""
    if "seeds" not in values:
        return None
    seeds: tuple[int, ...] = convert(values["seeds"], tuple[int, ...], f"{path}: seeds")
    require(len(seeds) > 0, f"{path}: seeds: the list is empty; name at least one, such as [1, 2, 3]")
    require(min(seeds) >= 0, f"{path}: seeds: must not be negative, found {_listed(seeds)}")
    require(len(set(seeds)) == len(seeds), f"{path}: seeds: must be distinct, found {_listed(seeds)}")
    blocks = {"train": values["train"] or {}}
    blocks |= {f"contestants.{name}.train": own.get("train") or {} for name, own in values["contestants"].items()}
    for where, block in blocks.items():
        require("seed" not in block, f"{path}: both seeds and {where}.seed are given; remove one of them")
    return seeds


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _apply(values: dict[str, Any], setting: str) -> None:
    """Set one dotted key, making the blocks on the way."""
    key, equals, written = setting.partition("=")
    require(bool(key and equals), f"--set {setting}: expected key=value, such as train.batch_size=64")
    *blocks, last = key.split(".")
    block = values
    for name in blocks:
        inner = block.setdefault(name, {})
        require(isinstance(inner, dict), f"--set {setting}: {name!r} is not a block of settings")
        block = inner
    try:
        block[last] = yaml.safe_load(written)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {setting}: {' '.join(str(error).split())}") from error


def _contestant(name: str, own: Any, values: Mapping[str, Any], path: Path) -> Contestant:
    where = f"{path}: contestants.{name}"
    require(name.replace("_", "").replace("-", "").isalnum(), f"{where}: a name is letters, digits, - and _")
    require(isinstance(own, dict), f"{where}: expected a mapping, found {own!r}")
    known = ("tokenizer", *SHARED_BLOCKS, "context")
    for key in own:
        require(key in known, f"{where}: unknown key {key!r}{did_you_mean(str(key), list(known))}")
    require("tokenizer" in own, f"{where}: key 'tokenizer' is missing")
    context: Context = convert(own.get("context", "tokens"), Context, f"{where}.context")
    merged: dict[str, dict[str, Any]] = {}
    overrides = [] if context == "tokens" else [Override("context", "tokens", context)]
    for block in SHARED_BLOCKS:
        shared, special = values.get(block) or {}, own.get(block) or {}
        require(isinstance(shared, dict), f"{path}: {block}: expected a mapping, found {shared!r}")
        require(isinstance(special, dict), f"{where}.{block}: expected a mapping, found {special!r}")
        merged[block] = _merge(shared, special)
        overrides += [Override(f"{block}.{key}", shared.get(key), value) for key, value in special.items()]
    model = build(MiniGPTConfig, merged["model"], f"{where}.model", given={"vocab_size": _SMALLEST_VOCABULARY})
    if model.preset == "modern":
        merged["train"] = {**MODERN_TRAIN, **merged["train"]}
    return Contestant(
        name=name,
        tokenizer=build(TokenizerConfig, own["tokenizer"], f"{where}.tokenizer"),
        model=merged["model"],
        train=build(TrainConfig, merged["train"], f"{where}.train"),
        evaluate=build(EvaluateConfig, merged["evaluate"], f"{where}.evaluate"),
        overrides=tuple(overrides),
        context=context,
    )


def _merge(shared: Mapping[str, Any], special: Mapping[str, Any]) -> dict[str, Any]:
    """`special` over `shared`, block by block, so that overriding `budget.amount` keeps `budget.unit`."""
    merged = dict(shared)
    for key, value in special.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged
