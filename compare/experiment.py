"""One experiment = one YAML file: a corpus, named contestants, and what all of them share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from data.config import build, did_you_mean, require
from data.errors import ConfigError
from data.files import read_text
from data.layout import Layout
from data.sources import CorpusConfig
from model.evaluate import EvaluateConfig
from model.gpt import MiniGPTConfig
from model.schedule import MODERN_TRAIN
from model.train import TrainConfig
from tokenizer.train import TokenizerConfig

SHARED_BLOCKS = ("model", "train", "evaluate")
_SMALLEST_VOCABULARY = 2  # stands in for the tokenizer's size while a file is checked


@dataclass(frozen=True)
class Override:
    """A shared value that one contestant replaced: something not held equal, to be said in the report."""

    key: str
    """Dotted, such as `train.learning_rate`."""
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
    evaluate: EvaluateConfig
    overrides: tuple[Override, ...]

    def model_config(self, vocab_size: int) -> MiniGPTConfig:
        """The model's configuration for a tokenizer of `vocab_size`."""
        return build(MiniGPTConfig, self.model, f"contestants.{self.name}.model", given={"vocab_size": vocab_size})


@dataclass(frozen=True)
class Experiment:
    """A checked experiment file."""

    name: str
    path: Path
    corpus: CorpusConfig
    contestants: Mapping[str, Contestant]
    layout: Layout

    def contestant(self, name: str) -> Contestant:
        """The contestant called `name`; raises ConfigError with the known names."""
        if name not in self.contestants:
            raise ConfigError(f"{self.path}: no contestant {name!r}{did_you_mean(name, list(self.contestants))}")
        return self.contestants[name]


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
    known = ("corpus", "contestants", *SHARED_BLOCKS, "root")
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
    )


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
    known = ("tokenizer", *SHARED_BLOCKS)
    for key in own:
        require(key in known, f"{where}: unknown key {key!r}{did_you_mean(str(key), list(known))}")
    require("tokenizer" in own, f"{where}: key 'tokenizer' is missing")
    merged: dict[str, dict[str, Any]] = {}
    overrides: list[Override] = []
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
    )


def _merge(shared: Mapping[str, Any], special: Mapping[str, Any]) -> dict[str, Any]:
    """`special` over `shared`, block by block, so that overriding `budget.amount` keeps `budget.unit`."""
    merged = dict(shared)
    for key, value in special.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged
