"""The chain from encoded texts to the comparison, step by step; compare/text_steps.py has the steps before it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from compare.experiment import Experiment, naming_contestant
from compare.ladder.rungs import ladder_below, warmup_amount
from compare.outputs.comparison import Comparison
from compare.page.render import HTML
from compare.plan import Plan, measured_seconds_per_step, plan_of, warnings_of
from compare.report import MARKDOWN, Materials, comparison_on_disk, write_comparison
from compare.runs import Entry, Rung, read_run
from compare.sizes.experiments import experiments_of_sizes, label_of
from compare.sizes.levels import Level, levels_of
from compare.sizes.plans import SizePlans, more_warnings
from compare.text_steps import TextSteps
from data import splits
from data.errors import CheckpointError, command
from data.layout import RUNGS, TRUNK
from data.lock import alone
from data.show import say
from model import checkpoint
from model.batches import windows_of
from model.checkpoint import restart_command
from model.ladder import check_ladder, rung_settings, settle, train_ladder
from model.report import REPORT, evaluate_contestant, report_is_up_to_date
from model.run_spec import RunSpec
from model.train import saved_state, train
from model.training import same_run
from model.training.device import choose_compile, choose_device, explain_out_of_memory
from model.training.processes import Processes
from model.training.result import TrainResult
from model.val_sample import val_sample
from tokenizer import encode_splits
from tokenizer.encode_splits import EncodedSplit


class Steps(TextSteps):
    """One experiment's whole chain."""

    def __init__(
        self,
        experiment: Experiment,
        *,
        echo: Callable[[str], None] = say,
        processes: Processes | None = None,
        main: "Steps | None" = None,
    ) -> None:
        """With several `processes` the first one does and says everything but the training, which all share. `main` is
        the chain of the experiment that this one is another size of.
        """
        self.processes = processes or Processes()
        super().__init__(experiment, echo=echo if self.processes.is_main else lambda _line: None)
        self._encoded: dict[str, dict[str, EncodedSplit]] = {}
        self._main = main
        if main is not None:
            self._splits, self._tokenizers, self._encoded = main._splits, main._tokenizers, main._encoded
        self._others: list[Steps] | None = None

    def others(self) -> list["Steps"]:
        """The chains of the other sizes, on the same texts and tokenizers; none without `sizes`."""
        if self._others is None:
            self.processes.main_first(self.data)
            found = experiments_of_sizes(self.experiment)
            self._others = [Steps(one, echo=self.echo, processes=self.processes, main=self) for one in found]
        return self._others

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
                    manifest = encode_splits.write_encoded(folder, splits, tokenizer, self.take_ids(name))
                    self.did(f"encode {name}: wrote {folder}\n{encode_splits.summarize(manifest)}")
            self._encoded[name] = encode_splits.load_encoded(
                folder, tokenizer, tokenizer_path=self.layout.tokenizer(name), make="make encode"
            )
        return self._encoded[name]

    def train(self, name: str, *, seed: int | None = None, restart: bool = False) -> Path:
        """The report of one finished and evaluated run of contestant `name`: that of `seed`, by default its first.

        With a ladder all its rungs are trained and evaluated; the report is that of the whole budget.
        """
        if seed is None:
            seed = self.experiment.seeds_of(name)[0]
        top = self.processes.main_first(partial(self._checked, name, seed, restart=restart))
        with explain_out_of_memory(top):
            if self.experiment.ladder is None:
                specs, results = [top], [train(top, restart=restart, processes=self.processes)]
            else:
                ladder = self.processes.main_first(partial(ladder_below, self.experiment, top))
                specs = list(ladder.rungs)
                results = train_ladder(ladder, restart=restart, processes=self.processes)
        for spec, result in zip(specs, results, strict=True):
            self._score(spec, result)
        return top.folder / REPORT

    def _score(self, spec: RunSpec, result: TrainResult) -> None:
        """Make the report of a finished run, unless it is up to date."""
        report, config = spec.folder / REPORT, self.experiment.contestant(spec.contestant).evaluate
        label = f"{spec.label}, seed {spec.train_config.seed}" if self.experiment.seeds else spec.label

        def is_scored(num_words: Mapping[str, int]) -> bool:
            is_done = report_is_up_to_date(spec, num_words, config)
            if is_done:
                self.echo(f"train {label}: up to date ({report})")
            return is_done

        def score() -> None:
            num_words = {split: len(text.text.split()) for split, text in self.data().items()}
            if result.num_steps_now == 0 and is_scored(num_words):
                return
            with alone(spec.folder) as has_waited:
                if has_waited and is_scored(num_words):
                    return
                evaluate_contestant(spec, num_words, config)
                self.did(f"train {label}: wrote {report}")

        with explain_out_of_memory(spec):
            self.processes.only_main(score)

    def check(self, names: Iterable[str] | None = None) -> None:
        """Refuse whatever could not be trained, before the first of `names` (by default all) is: vocabulary, block,
        stride, context, too little text, a missing device. Makes their tokenizers and encoded splits.
        """
        for name in self.experiment.contestants if names is None else names:
            self.processes.main_first(partial(self._checked, name, self.experiment.seeds_of(name)[0]))

    def spec(self, name: str, seed: int, *, restart: bool = False) -> RunSpec:
        """The run of contestant `name` with `seed`; what it starts from is made first. Errors name the contestant.

        With a ladder this is the rung of the whole budget. It warms up as the trunks that are there; with `restart`
        only as those of other contestants that have its budget.
        """
        contestant, seed = self.experiment.contestant(name), self.experiment.train_config(name, seed).seed
        self.data()  # what is wrong with the text is no contestant's fault
        with naming_contestant(name):
            encoded, tokenizer = self.encode(name), self.tokenizer(name)
            model_config = contestant.model_for(tokenizer, encoded["train"])
            config = replace(contestant.train_for(model_config, encoded["train"]), seed=seed)
        if self.experiment.ladder is not None:
            main = self if self._main is None else self._main  # a size warms up as the main trunk does
            warmup = warmup_amount(main.experiment, name, restart=restart and main is self)
            config = rung_settings(config, self.experiment.ladder, config.budget.amount, warmup)
        return RunSpec(
            contestant=name,
            tokenizer=tokenizer,
            tokenizer_path=self.layout.tokenizer(name),
            splits=encoded,
            model_config=model_config,
            train_config=config,
            folder=self.experiment.run_folder(name, seed),
            part=label_of(self.experiment),
        )

    def specs(self, name: str, seed: int) -> list[RunSpec]:
        """Every run that `train` makes for contestant `name` and `seed`: one, or with a ladder one for each budget."""
        top = self.spec(name, seed)
        return [top] if self.experiment.ladder is None else list(ladder_below(self.experiment, top).rungs)

    def _checked(self, name: str, seed: int, *, restart: bool = False) -> RunSpec:
        """The same, refused where it could not be trained or scored here."""
        spec = self.spec(name, seed, restart=restart)
        config, block_size = spec.train_config, spec.model_config.block_size
        with naming_contestant(name):
            self.experiment.contestant(name).evaluate.stride_for(block_size)
            sizes = {"block_size": block_size, "batch_size": config.batch_size}
            windows_of(config.order, spec.splits["train"], **sizes, seed=config.seed)
            val_sample(spec.splits["val"], spec.tokenizer, config.val_characters)
            choose_compile(config.compile, choose_device(config.device))
        return spec

    def train_all(self, name: str, *, restart: bool = False) -> list[Path]:
        """The reports of all runs of contestant `name`, in the order of its seeds. Its other sizes are trained then."""
        if self.others() and not restart:
            self.processes.only_main(partial(self.check_runs, [name]))
        reports = self._train_seeds(name, restart=restart)
        for other in self.others():
            other._train_seeds(name, restart=restart)
            self.num_done += other.num_done
        return reports

    def _train_seeds(self, name: str, *, restart: bool = False) -> list[Path]:
        return [self.train(name, seed=seed, restart=restart) for seed in self.experiment.seeds_of(name)]

    def check_runs(self, names: Iterable[str]) -> None:
        """Raise CheckpointError if runs of contestants `names` that are there were made from other inputs.

        Asked before anything is trained. All such contestants are named at once, with one command that mends it.
        """
        refused: dict[str, str] = {}
        for name in names:
            for steps, seed in product([self, *self.others()], self.experiment.seeds_of(name)):
                try:
                    steps._check_run(name, seed)
                except CheckpointError as error:
                    refused.setdefault(name, error.text)
        if refused:
            first, message = next(iter(refused.items()))
            more = f"; the same holds for {', '.join(list(refused)[1:])}" if len(refused) > 1 else ""
            comparison = self.layout.reports / MARKDOWN
            kept = f"; {comparison} is of the runs as they are, and lists their settings" if comparison.exists() else ""
            raise CheckpointError(
                message.replace(command(restart_command(first)), command(restart_command(*refused))) + more + kept
            )

    def _check_run(self, name: str, seed: int) -> None:
        """Raise CheckpointError if there is a run of contestant `name` with `seed`, and it is not of these inputs."""
        folder, has_ladder = self.experiment.run_folder(name, seed), self.experiment.ladder is not None
        parts = [folder, folder / TRUNK, *folder.glob(f"{RUNGS}/*")] if has_ladder else [folder]
        if not any((part / checkpoint.LAST).exists() for part in parts):
            return
        spec = self.spec(name, seed)
        if self.experiment.ladder is not None:
            ladder = ladder_below(self.experiment, spec)
            settle(ladder)
            check_ladder(ladder)
            return
        last = saved_state(spec)
        if last is not None and last["finished"]:
            _, best = checkpoint.load_model(spec.folder, "best", spec.tokenizer, spec.tokenizer_path)
            same_run.verify_same_run(best, last, spec.folder)

    def entries(self) -> list[Entry]:
        """All contestants with all their runs, each finished and read."""
        self.check()
        self.check_runs(self.experiment.contestants)
        if not self._are_all_scored():
            for line in [*warnings_of(plans := self.plans()), *more_warnings(plans, self.size_plans())]:
                self.echo(f"warning: {line}")
        return [self._entry(name) for name in self.experiment.contestants]

    def _entry(self, name: str) -> Entry:
        """Contestant `name` with all its runs, and with a ladder those of every rung."""
        runs = tuple(read_run(report.parent) for report in self._train_seeds(name))
        if self.experiment.ladder is None:
            return Entry(name, runs)
        ladders = [ladder_below(self.experiment, self.spec(name, seed)) for seed in self.experiment.seeds_of(name)]
        rungs = []
        for number, amount in enumerate(rung.train_config.budget.amount for rung in ladders[0].rungs[:-1]):
            folders = [ladder.rungs[number].folder for ladder in ladders]
            rungs.append(Rung(amount, tuple(read_run(folder) for folder in folders)))
        return Entry(name, runs, (*rungs, Rung(ladders[0].top.train_config.budget.amount, runs)))

    def _levels(self, entries: Sequence[Entry]) -> list[Level]:
        """Every size at T/4 and T, trained where it is missing; `entries` are those of the experiment itself."""
        levels = []
        for other in self.others():
            levels += levels_of(other.experiment, [other._entry(name) for name in other.experiment.contestants])
            self.num_done += other.num_done
        return [*levels_of(self.experiment, entries), *levels] if levels else []

    def _are_all_scored(self) -> bool:
        names, experiment = self.experiment.contestants, self.experiment
        return all(
            (experiment.run_folder(name, seed) / REPORT).exists()
            for name in names
            for seed in experiment.seeds_of(name)
        )

    def plans(self, *, measured: bool = False) -> list[Plan]:
        """What training each contestant will be; `measured` takes a few steps of each for the seconds."""
        plans = []
        for name, contestant in self.experiment.contestants.items():
            seeds, encoded, tokenizer = self.experiment.seeds_of(name), self.encode(name), self.tokenizer(name)
            spec = self.spec(name, seeds[0])
            seconds = measured_seconds_per_step(spec) if measured else None
            plan = plan_of(contestant, seeds, encoded, tokenizer, seconds_per_step=seconds, with_ids=self._main is None)
            if self.experiment.ladder is not None:
                amounts = [rung.train_config.budget.amount for rung in ladder_below(self.experiment, spec).rungs]
                plan = plan.with_ladder(amounts, self.experiment.ladder.way_down)
            plans.append(plan)
        return plans

    def size_plans(self, *, measured: bool = False) -> list[SizePlans]:
        """The same for every other size."""
        return [
            SizePlans(label_of(one.experiment), one.plans(measured=measured), one.experiment.is_quarter)
            for one in self.others()
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
            sizes=tuple(self._levels(entries)),
        )
        comparison = comparison_on_disk(reports, entries, self.experiment, materials)
        if comparison is not None:
            self.echo(f"compare: up to date ({reports})")
            return comparison
        with alone(reports) as has_waited:
            if has_waited:
                return self.compare()
            comparison = write_comparison(reports, self.experiment, entries, materials, echo=self.echo)
            self.did(f"compare: wrote {reports / HTML}")
        return comparison
