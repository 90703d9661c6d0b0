"""The chain, step by step. Each step first makes what it needs and does nothing that is already up to date.

Up to date is decided by content: every artefact records the hashes of what it was made from. A touched file costs
nothing, an edited one is never missed.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from compare.experiment import Experiment, naming_contestant
from compare.outputs.comparison import Comparison
from compare.page.render import HTML
from compare.report import Materials, comparison_on_disk, write_comparison
from compare.runs import Entry, read_run
from data import corpus as sources
from data import splits
from data.errors import CheckpointError, TokenizerError
from data.lock import alone
from data.show import say
from data.splits import Split
from data.summary import describe_corpus
from model import checkpoint
from model.batches import windows_of
from model.checkpoint import restart_command
from model.evaluate import val_prefix
from model.gpt import MiniGPTConfig
from model.report import evaluate_contestant, report_is_up_to_date
from model.train import saved_state, train
from model.training.memory import explain_out_of_memory
from model.training.processes import Processes
from model.training.schedule import choose_compile, choose_device
from tokenizer import encode_splits
from tokenizer.base import Tokenizer
from tokenizer.encode_splits import EncodedSplit
from tokenizer.load import load_tokenizer
from tokenizer.studies.summary import describe
from tokenizer.train import Engine, effective_settings, provenance, train_tokenizer


class Steps:
    """One experiment's chain. Texts and tokenizers are kept once read, so that `all` reads them once."""

    def __init__(
        self,
        experiment: Experiment,
        *,
        echo: Callable[[str], None] = say,
        processes: Processes | None = None,
    ) -> None:
        """`echo` gets one line for every step that was done or found up to date.

        With several `processes` the first one does and says everything but the training, which all share.
        """
        self.experiment = experiment
        self.layout = experiment.layout
        self.processes = processes or Processes()
        self.echo = echo if self.processes.is_main else lambda _line: None
        self.num_done = 0
        """Steps that had work to do."""
        self._splits: dict[str, Split] | None = None
        self._tokenizers: dict[str, Tokenizer] = {}
        self._encoded: dict[str, dict[str, EncodedSplit]] = {}

    def _did(self, line: str) -> None:
        self.num_done += 1
        self.echo(line)

    def data(self) -> dict[str, Split]:
        """The cleaned splits."""
        if self._splits is None:
            corpus = self.experiment.corpus
            manifest = self.layout.corpus_manifest
            if sources.is_up_to_date(corpus, self.layout):
                self.echo(f"data: up to date ({manifest})")
            else:
                with alone(self.layout.processed) as has_waited:
                    if has_waited:
                        return self.data()
                    entry = sources.prepare(corpus, self.layout)
                    self._did(f"data: wrote {manifest}\n{describe_corpus(corpus.corpus_name, entry)}")
            self._splits = splits.load_splits(self.layout, corpus.corpus_name)
        return self._splits

    def tokenizer(
        self,
        name: str,
        *,
        own_settings: Mapping[str, Any] | None = None,
        engine_name: Engine = "fast",
    ) -> Tokenizer:
        """The tokenizer of contestant `name`.

        `own_settings` (from the verb `tokenizer`) replace configured values for this training; none of them, {},
        means exactly the configuration. They are remembered in the file, and steps that have no say (None) keep such
        a tokenizer for as long as the configured values stay what they were.
        """
        if name in self._tokenizers:
            return self._tokenizers[name]
        splits = self.data()
        path = self.layout.tokenizer(name)
        configured = self.experiment.contestant(name).tokenizer
        existing = self._existing(path, is_asked_for=own_settings is not None)
        stored: Mapping[str, Any] = getattr(existing, "trained_on", None) or {}
        asked_settings = own_settings
        if own_settings is None:
            own_settings = effective_settings(configured, stored)
            if own_settings:
                self.echo(f"  the tokenizer keeps the settings it was given when it was trained: {own_settings}")
        if existing is not None and stored == provenance(configured, splits, own_settings):
            self.echo(f"tokenizer {name}: up to date ({path})")
            self._tokenizers[name] = existing
            return existing
        with alone(path) as has_waited:
            if has_waited:
                return self.tokenizer(name, own_settings=asked_settings, engine_name=engine_name)
            tokenizer, training = train_tokenizer(
                configured, splits, own_settings=own_settings, engine_name=engine_name
            )
            tokenizer.save(path)
            self._did(describe(name, tokenizer, training, splits))
        self._tokenizers[name] = tokenizer
        return tokenizer

    def _existing(self, path: Path, *, is_asked_for: bool) -> Tokenizer | None:
        """The tokenizer at `path`, if there is one. The verb `tokenizer` replaces a damaged file, saying so."""
        if not path.exists():
            return None
        try:
            return load_tokenizer(path)
        except TokenizerError as error:
            if not is_asked_for:
                way_on = "" if "`make tokenizer`" in str(error) else "; run `make tokenizer` to make it again"
                raise TokenizerError(f"{error}{way_on}") from error
            self.echo(f"  {error}: training anew")
            return None

    def encode(self, name: str) -> dict[str, EncodedSplit]:
        """The encoded splits of contestant `name`."""
        if name not in self._encoded:
            splits = self.data()
            tokenizer = self.tokenizer(name)
            folder = self.layout.encoded(name)
            if encode_splits.is_up_to_date(folder, splits, tokenizer.fingerprint()):
                self.echo(f"encode {name}: up to date ({folder})")
            else:
                with alone(folder) as has_waited:
                    if has_waited:
                        return self.encode(name)
                    manifest = encode_splits.write_encoded(folder, splits, tokenizer)
                    self._did(f"encode {name}: wrote {folder}\n{encode_splits.summarize(manifest)}")
            self._encoded[name] = encode_splits.load_encoded(
                folder, tokenizer, tokenizer_path=self.layout.tokenizer(name), make="make encode"
            )
        return self._encoded[name]

    def train(self, name: str, *, seed: int | None = None, restart: bool = False) -> Path:
        """The report of one finished and evaluated run of contestant `name`: that of `seed`, by default its first."""
        contestant = self.experiment.contestant(name)
        if seed is None:
            seed = self.experiment.seeds_of(name)[0]
        train_config = self.experiment.train_config(name, seed)
        folder = self.experiment.run_folder(name, seed)
        label = f"{name}, seed {seed}" if self.experiment.seeds else name
        report = folder / "report.json"

        encoded, tokenizer, model_config = self.processes.main_first(lambda: self._prepared(name))
        with explain_out_of_memory(name, model_config, train_config):
            result = train(
                contestant=name,
                tokenizer=tokenizer,
                tokenizer_path=self.layout.tokenizer(name),
                splits=encoded,
                model_config=model_config,
                train_config=train_config,
                folder=folder,
                restart=restart,
                processes=self.processes,
            )

        def score() -> None:
            num_words = {split: len(text.text.split()) for split, text in self.data().items()}
            inputs = (tokenizer, encoded, num_words, contestant.evaluate)
            if result.num_steps_now == 0 and report_is_up_to_date(folder, *inputs, model_config.block_size):
                self.echo(f"train {label}: up to date ({report})")
                return
            with alone(folder) as has_waited:
                if has_waited and report_is_up_to_date(folder, *inputs, model_config.block_size):
                    self.echo(f"train {label}: up to date ({report})")
                    return
                evaluate_contestant(
                    folder=folder,
                    tokenizer=tokenizer,
                    tokenizer_path=self.layout.tokenizer(name),
                    splits=encoded,
                    num_words=num_words,
                    config=contestant.evaluate,
                    device=train_config.device,
                )
                self._did(f"train {label}: wrote {report}")

        with explain_out_of_memory(name, model_config, train_config):
            self.processes.only_main(score)
        return report

    def check(self, names: Iterable[str] | None = None) -> None:
        """Refuse whatever could not be trained, before the first of `names` (by default all) is: vocabulary, block,
        stride, context, too little text, a missing device. Makes their tokenizers and encoded splits.
        """
        for name in self.experiment.contestants if names is None else names:
            self.processes.main_first(partial(self._prepared, name))

    def _prepared(self, name: str) -> tuple[dict[str, EncodedSplit], Tokenizer, MiniGPTConfig]:
        """What training contestant `name` starts from, checked. Errors name the contestant."""
        contestant, config = self.experiment.contestant(name), self.experiment.contestant(name).train
        self.data()  # what is wrong with the text is no contestant's fault
        with naming_contestant(name):
            encoded, tokenizer = self.encode(name), self.tokenizer(name)
            model_config = contestant.model_for(tokenizer, encoded["train"])
            contestant.evaluate.stride_for(model_config.block_size)
            sizes = {"block_size": model_config.block_size, "batch_size": config.batch_size}
            windows_of(config.order, encoded["train"], **sizes, seed=config.seed)
            val_prefix(encoded["val"], tokenizer, config.val_characters)
            choose_compile(config.compile, choose_device(config.device))
        return encoded, tokenizer, model_config

    def train_all(self, name: str, *, restart: bool = False) -> list[Path]:
        """The reports of all runs of contestant `name`, in the order of its seeds."""
        return [self.train(name, seed=seed, restart=restart) for seed in self.experiment.seeds_of(name)]

    def check_runs(self, names: Iterable[str]) -> None:
        """Raise CheckpointError if runs of contestants `names` that are there were made from other inputs.

        Asked before anything is trained. All such contestants are named at once, with one command that mends it.
        """
        refused: dict[str, str] = {}
        for name in names:
            for seed in self.experiment.seeds_of(name):
                try:
                    self._check_run(name, seed)
                except CheckpointError as error:
                    refused.setdefault(name, str(error))
        if refused:
            first, message = next(iter(refused.items()))
            more = f"; the same holds for {', '.join(list(refused)[1:])}" if len(refused) > 1 else ""
            raise CheckpointError(message.replace(restart_command(first), restart_command(*refused)) + more)

    def _check_run(self, name: str, seed: int) -> None:
        """Raise CheckpointError if there is a run of contestant `name` with `seed`, and it is not of these inputs."""
        contestant, folder = self.experiment.contestant(name), self.experiment.run_folder(name, seed)
        if not (folder / checkpoint.LAST).exists():
            return
        encoded, tokenizer, path = self.encode(name), self.tokenizer(name), self.layout.tokenizer(name)
        model_config = contestant.model_for(tokenizer, encoded["train"])
        train_config = self.experiment.train_config(name, seed)
        identity = checkpoint.identity_of(
            contestant=name,
            tokenizer=tokenizer,
            tokenizer_path=path,
            splits=encoded,
            model_config=model_config,
            train_config=train_config,
        )
        last = saved_state(folder, identity, tokenizer, path, train_config)
        if last is not None and last["finished"]:
            _, best = checkpoint.load_model(folder, "best", tokenizer, path)
            checkpoint.verify_same_run(best, last, folder)

    def entries(self) -> list[Entry]:
        """All contestants with all their runs, each finished and read."""
        self.check()
        self.check_runs(self.experiment.contestants)
        return [
            Entry(name, tuple(read_run(report.parent) for report in self.train_all(name)))
            for name in self.experiment.contestants
        ]

    def compare(self) -> Comparison:
        """The comparison of all contestants, which also lies in the folder of reports."""
        entries = self.entries()
        reports = self.layout.reports
        names = list(self.experiment.contestants)
        materials = Materials(
            splits=self.data(),
            corpus=splits.read_manifest(self.layout, self.experiment.corpus.corpus_name),
            tokenizers={name: self.tokenizer(name) for name in names},
            tokenizer_paths={name: self.layout.tokenizer(name) for name in names},
            test={name: self.encode(name)["test"] for name in names},
        )
        comparison = comparison_on_disk(reports, entries, self.experiment, materials)
        if comparison is not None:
            self.echo(f"compare: up to date ({reports})")
            return comparison
        with alone(reports) as has_waited:
            if has_waited:
                return self.compare()
            comparison = write_comparison(reports, self.experiment, entries, materials, echo=self.echo)
            self._did(f"compare: wrote {reports / HTML}")
        return comparison
