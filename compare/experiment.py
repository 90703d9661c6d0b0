"""One experiment = one YAML file: a corpus, named contestants, and what all of them share."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from compare.experiment_file import (
    SHARED_BLOCKS,
    apply_setting,
    baseline_of,
    check_keys,
    check_one_batch,
    ladder_of,
    merge,
    normalized_by_of,
    root_of,
    say_which_setting,
    seeds_of,
    sizes_of,
    with_one_batch,
)
from compare.sizes.shape import Shape, shape_of_size
from data.config import build, convert, did_you_mean, require
from data.corpus import CorpusConfig
from data.errors import ConfigError, DataError, UserError
from data.layout import RUNGS, Layout
from data.yaml_file import load_yaml
from model.settings import EvaluateConfig, LadderConfig, MiniGPTConfig, TrainConfig, with_preset
from tokenizer.base import Tokenizer
from tokenizer.train import TokenizerConfig

if TYPE_CHECKING:  # it brings torch, which reading an experiment does not need
    from tokenizer.encode_splits import EncodedSplit

Context = Literal["tokens", "characters"]
_RUNGS_TO_A_QUARTER = 3
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

    def shape_at(self, size: float) -> Shape:
        """Layers and channels of its model at `size` times that of the model block; raises ConfigError for none."""
        own = self.model_config(_SMALLEST_VOCABULARY)
        return shape_of_size(Shape(own.num_layers, own.embedding_dim), own.num_heads, size)

    def model_for(self, tokenizer: Tokenizer, train: "EncodedSplit") -> MiniGPTConfig:
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

    def train_for(self, model: MiniGPTConfig, train: "EncodedSplit") -> TrainConfig:
        """How it is trained, with batch_size in windows; `model` and `train` as in `model_for`.

        Raises DataError where a batch in characters meets a train without a token.
        """
        if self.train.batch is None:
            return self.train
        if not len(train.ids):
            raise DataError(
                f"{train.path} holds no tokens, so `batch` of contestant {self.name} cannot be turned into windows; "
                "give train some text"
            )
        windows = self.train.batch.windows(model.block_size, train.num_chars / len(train.ids))
        return replace(self.train, batch_size=windows, batch=None)


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
    normalized_by: str | None = None
    """The contestant whose tokenizer normalises the text before anybody trains on it or is scored; None: nobody."""
    baseline: str | None = None
    """The contestant that the verdict compares the others with; None: `char`, or else the first."""
    ladder: LadderConfig | None = None
    """Budgets below each contestant's own at which it is scored as well; None: at its own only."""
    sizes: tuple[float, ...] = ()
    """Other sizes of the models, in times that of the model block, at which every contestant is trained as well."""
    size: float = 1.0
    """The size of its own models: 1 in a file, another one in what `compare.sizes.experiments` makes of it."""
    is_quarter: bool = False
    """Whether its runs are those of a quarter of the budget of another experiment, below whose runs they lie."""

    def __post_init__(self) -> None:
        for name, contestant in self.contestants.items():
            train = contestant.train
            require(
                train.warmup_amount is None or train.warmup_amount < train.budget.amount,
                f"{self.path}: contestant {name}: train.warmup_amount {train.warmup_amount} is not less than the "
                f"budget of {train.budget.amount:,} {train.budget.unit}: the learning rate would never reach its peak",
            )
            if self.ladder is not None:
                self._check_ladder(self.ladder, name, train)

        if self.sizes:
            self._check_sizes()

    def _check_sizes(self) -> None:
        require(
            self.ladder is None or self.ladder.rungs >= _RUNGS_TO_A_QUARTER,
            f"{self.path}: sizes are compared at the whole budget and a quarter of it, so ladder.rungs must be at "
            f"least {_RUNGS_TO_A_QUARTER}",
        )
        for name, contestant in self.contestants.items():
            where, train = f"{self.path}: contestant {name}: sizes", contestant.train
            quarter = train.budget.amount >> 2
            require(
                quarter > (train.warmup_amount or 0),
                f"{where}: a quarter of the budget of {train.budget.amount:,} {train.budget.unit} is too little"
                + (f" for train.warmup_amount {train.warmup_amount:,}" if train.warmup_amount else ""),
            )
            sizes: dict[Shape, float] = {}
            for size in (1.0, *self.sizes):
                try:
                    other = sizes.setdefault(contestant.shape_at(size), size)
                except ConfigError as error:
                    raise ConfigError(f"{where}: {error}") from None
                require(other == size, f"{where}: {other:g} and {size:g} give the same model; take one of them")

    def _check_ladder(self, ladder: LadderConfig, name: str, train: TrainConfig) -> None:
        try:
            smallest = ladder.amounts(train.budget)[0]
        except ConfigError as error:
            raise ConfigError(f"{self.path}: contestant {name}: ladder.{error}") from None
        share = train.warmup_fraction if train.warmup_amount is None else train.warmup_amount / smallest
        require(
            share + ladder.way_down <= 1.0,
            f"{self.path}: contestant {name}: the warm-up takes {share:.3g} of the ladder's smallest budget "
            f"({smallest:,} {train.budget.unit}) and the way down {ladder.way_down:g}, together more than all of it; "
            "lower the warm-up, ladder.way_down or ladder.rungs",
        )

    @property
    def baseline_name(self) -> str:
        """The contestant that the verdict compares the others with."""
        return self.baseline or ("char" if "char" in self.contestants else next(iter(self.contestants)))

    def contestant(self, name: str) -> Contestant:
        """The contestant called `name`; raises ConfigError with the known names."""
        if name not in self.contestants:
            raise ConfigError(f"{self.path}: no contestant {name!r}{did_you_mean(name, list(self.contestants))}")
        return self.contestants[name]

    def embedding_dim(self) -> int:
        """Channels of the model block; of the first contestant, should contestants differ."""
        return next(iter(self.contestants.values())).model_config(vocab_size=1).embedding_dim

    def seeds_of(self, name: str) -> tuple[int, ...]:
        """The seeds that contestant `name` is trained with, in order."""
        return self.seeds or (self.contestant(name).train.seed,)

    def train_config(self, name: str, seed: int) -> TrainConfig:
        """How the run of contestant `name` with `seed` is trained.

        Raises ConfigError for a seed that the experiment does not have.
        """
        known = self.seeds_of(name)
        listed = ", ".join(map(str, known))
        require(seed in known, f"{self.path}: {name} has no run with seed {seed}; its seeds: {listed}")
        return replace(self.contestant(name).train, seed=seed)

    def run_folder(self, name: str, seed: int) -> Path:
        """Where that run lies: in a folder of its own if the experiment names seeds."""
        config = self.train_config(name, seed)
        folder = self.layout.checkpoints(name, config.seed if self.seeds else None, self.size)
        return folder / RUNGS / str(config.budget.amount) if self.is_quarter else folder


@contextmanager
def naming_contestant(name: str) -> Iterator[None]:
    """Begin the message of a user's error that is raised inside with the contestant, unless it names it already."""
    try:
        yield
    except UserError as error:
        if f"contestant {name}" in str(error):
            raise
        raise type(error)(f"contestant {name}: {error.text}") from error


def load_experiment(path: Path, settings: Sequence[str] = ()) -> Experiment:
    """Read an experiment file and apply `settings` such as `train.batch_size=64` on top.

    Precedence: dataclass default < YAML < settings. Raises ConfigError naming the key and the file, or the setting if
    that is at fault; DataError for a file that is not UTF-8.
    """
    values = load_yaml(path)
    try:
        return _experiment(values, settings, path)
    except ConfigError as error:
        if not settings:
            raise
        messages = [_message(values, settings[:k], path) for k in range(len(settings) + 1)]
        raise ConfigError(say_which_setting(path, settings, messages)) from error


def _message(values: Mapping[str, Any], settings: Sequence[str], path: Path) -> str | None:
    try:
        _experiment(values, settings, path)
    except ConfigError as error:
        return str(error)
    return None


def _experiment(values: Mapping[str, Any], settings: Sequence[str], path: Path) -> Experiment:
    values = dict(values)
    for setting in settings:
        apply_setting(values, setting)
    check_keys(values, path)
    check_one_batch(values, path)
    return Experiment(
        name=path.stem,
        path=path,
        corpus=build(CorpusConfig, values["corpus"], f"{path}: corpus"),
        contestants={name: _contestant(name, own, values, path) for name, own in values["contestants"].items()},
        layout=Layout(root_of(values, path)),
        seeds=seeds_of(values, path),
        normalized_by=normalized_by_of(values, path),
        baseline=baseline_of(values, path),
        ladder=ladder_of(values, path),
        sizes=sizes_of(values, path),
    )


def _contestant(name: str, own: Mapping[str, Any], values: Mapping[str, Any], path: Path) -> Contestant:
    where = f"{path}: contestants.{name}"
    context: Context = convert(own.get("context", "tokens"), Context, f"{where}.context")
    merged: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    overrides = [] if context == "tokens" else [Override("context", "tokens", context)]
    values = with_one_batch(values, name)
    for block in SHARED_BLOCKS:
        shared, special = values.get(block) or {}, own.get(block) or {}
        merged[block] = merge(shared, special)
        places[block] = f"{where}.{block}" if special else f"{path}: {block}"
        overrides += [Override(f"{block}.{key}", shared.get(key), value) for key, value in special.items()]
    model = build(MiniGPTConfig, merged["model"], places["model"], given={"vocab_size": _SMALLEST_VOCABULARY})
    _, train = with_preset(merged["model"], merged["train"])
    require(
        merged["train"].get("warmup_amount") is None or "warmup_fraction" not in merged["train"],
        f"{places['train']}: both warmup_amount and warmup_fraction are given; remove one of them",
    )
    evaluate = build(EvaluateConfig, merged["evaluate"], places["evaluate"])
    if context == "tokens":  # in characters the block is known only once the text is encoded
        try:
            evaluate.stride_for(model.block_size)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error
    return Contestant(
        name=name,
        tokenizer=build(TokenizerConfig, own["tokenizer"], f"{where}.tokenizer"),
        model=merged["model"],
        train=build(TrainConfig, train, places["train"]),
        evaluate=evaluate,
        overrides=tuple(overrides),
        context=context,
    )
