"""Contestants of several experiments in one comparison, on the test text that all of them share. Nothing is trained."""

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from compare.experiment import Experiment
from compare.outputs.comparison import Comparison
from compare.page.render import HTML
from compare.report import Materials, Part, comparison_on_disk, write_comparison
from compare.runs import Entry
from compare.steps import Steps
from data import splits
from data.config import require
from data.errors import CheckpointError, ReportError, UserError
from data.lock import alone
from data.show import say
from model.report import REPORT, SCORED, report_is_up_to_date
from model.train import saved_state

_T = TypeVar("_T")


class Together:
    """Several experiments as one: what they have finished, under one name each."""

    def __init__(
        self,
        experiments: Sequence[Experiment],
        *,
        given: Sequence[str] = (),
        settings: Sequence[str] = (),
        echo: Callable[[str], None] = say,
    ) -> None:
        """`given` is how a user named each experiment, by default its path, and `settings` what was set on top of all
        of them: both are for the commands in messages.

        Raises ConfigError for fewer than two, or for two of the same name.
        """
        counts = Counter(experiment.name for experiment in experiments)
        require(len(experiments) >= 2, "experiments: name at least two of them, such as EXPERIMENTS='demo mine'")
        twice = [name for name, count in counts.items() if count > 1]
        require(not twice, f"experiments: two of them are called {', '.join(twice)}; their contestants need two names")
        self.settings = list(settings)
        self.given = list(given) or [str(experiment.path) for experiment in experiments]
        self._have_sizes = [bool(experiment.sizes) for experiment in experiments]  # left to their own comparisons
        self.steps = [Steps(replace(experiment, sizes=()), echo=echo) for experiment in experiments]
        self.echo = echo
        self.num_done = 0
        names = Counter(name for experiment in experiments for name in experiment.contestants)
        self._names = [
            {name: f"{experiment.name}/{name}" if names[name] > 1 else name for name in experiment.contestants}
            for experiment in experiments
        ]
        first = experiments[0]
        self.experiment = replace(
            first,
            sizes=(),
            name="+".join(experiment.name for experiment in experiments),
            contestants={
                new: replace(experiment.contestants[old], name=new)
                for experiment, renamed in zip(experiments, self._names, strict=True)
                for old, new in renamed.items()
            },
            baseline=self._names[0][first.baseline_name],
        )
        self.folder = first.layout.reports / "compared" / self.experiment.name
        """Where the comparison lies: below the reports of the first experiment."""

    def compare(self) -> Comparison:
        """The comparison of all contestants, which also lies in `folder`.

        Raises CheckpointError where a run is not finished, with the commands that make it, and ReportError where the
        experiments were scored on different texts or documents, or have different seeds.
        """
        self._require_finished()
        found = [self._entries(number) for number in range(len(self.steps))]
        _check_texts(found, [steps.experiment.name for steps in self.steps])
        entries = [
            _renamed(entry, renamed[entry.name])
            for own, renamed in zip(found, self._names, strict=True)
            for entry in own
        ]
        if len({tuple(rung.amount for rung in entry.rungs) for entry in entries}) > 1:
            entries = [replace(entry, rungs=()) for entry in entries]  # their budgets cannot be set side by side
        materials = replace(self._materials(found), remarks=self._left_out(found, entries))
        comparison = comparison_on_disk(self.folder, entries, self.experiment, materials)
        if comparison is not None:
            self.echo(f"compare: up to date ({self.folder})")
            return comparison
        with alone(self.folder) as has_waited:
            if has_waited:
                return self.compare()
            comparison = write_comparison(self.folder, self.experiment, entries, materials, echo=self.echo)
            self.num_done += 1
            self.echo(f"compare: wrote {self.folder / HTML}")
        return comparison

    def _left_out(self, found: Sequence[Sequence[Entry]], entries: Sequence[Entry]) -> tuple[str, ...]:
        """What the experiments hold that is not in this comparison, and the command that shows it."""
        sentences = []
        for number, (steps, own) in enumerate(zip(self.steps, found, strict=True)):
            has_ladder = any(entry.rungs for entry in own) and not any(entry.rungs for entry in entries)
            parts = ["its ladder, because the budgets are not the same for all"] * has_ladder
            parts += ["its other sizes of model"] * self._have_sizes[number]
            if parts:
                shown = f"`make compare{self._options(number)}`"
                sentences.append(f"{steps.experiment.name} is here without {' and '.join(parts)}; {shown} shows more")
        return tuple(sentences)

    def _require_finished(self) -> None:
        """Raise CheckpointError that names every run which is not there, and the commands that make them."""
        missing, commands = [], []
        for number, steps in enumerate(self.steps):
            names = [name for name in steps.experiment.contestants if not _is_there(steps, name)]
            if not names:
                names = self._said_for(number, lambda steps=steps: _unfinished(steps))  # type: ignore[misc]
            if names:
                missing.append(f"{steps.experiment.name}: {', '.join(names)}")
                commands.append(f"`make {' '.join(f'train-{name}' for name in names)}{self._options(number)}`")
        if missing:
            raise CheckpointError(
                f"runs are not finished, and comparing experiments trains nothing ({'; '.join(missing)}); first run "
                f"{' and '.join(commands)}"
            )

    def _entries(self, number: int) -> list[Entry]:
        return self._said_for(number, self.steps[number].entries)

    def _said_for(self, number: int, call: Callable[[], _T]) -> _T:
        """What `call` returns; a user's error in it names its experiment in the commands."""
        try:
            return call()
        except UserError as error:
            raise type(error)(error.completed(self._options(number))) from error

    def _options(self, number: int) -> str:
        written = f" SET={shlex.quote(' '.join(self.settings))}" if self.settings else ""
        return f" EXPERIMENT={shlex.quote(self.given[number])}{written}"

    def _materials(self, found: Sequence[Sequence[Entry]]) -> Materials:
        first = self.steps[0]
        named = [
            (steps, old, new)
            for steps, renamed in zip(self.steps, self._names, strict=True)
            for old, new in renamed.items()
        ]
        return Materials(
            splits=first.data(),
            corpus=splits.read_manifest(first.layout, first.experiment.corpus.corpus_name),
            tokenizers={new: steps.tokenizer(old) for steps, old, new in named},
            tokenizer_paths={new: steps.layout.tokenizer(old) for steps, old, new in named},
            test={new: steps.encode(old)["test"] for steps, old, new in named},
            parts=tuple(
                Part(steps.experiment, tuple(own), renamed)
                for steps, own, renamed in zip(self.steps, found, self._names, strict=True)
            ),
        )


def _is_there(steps: Steps, name: str) -> bool:
    """Whether contestant `name` has a tokenizer, encoded splits and a report of every seed, of whatever inputs."""
    layout, experiment = steps.layout, steps.experiment
    made = [layout.corpus_manifest, layout.tokenizer(name), layout.encoded(name)]
    reports = [experiment.run_folder(name, seed) / REPORT for seed in experiment.seeds_of(name)]
    return all(path.exists() for path in (*made, *reports))


def _unfinished(steps: Steps) -> list[str]:
    """The contestants with a run that is not trained to its end or not scored; CheckpointError for other inputs."""
    experiment = steps.experiment
    steps.check_runs(experiment.contestants)
    num_words = {split: len(text.text.split()) for split, text in steps.data().items()}
    names: dict[str, None] = {}
    for name, contestant in experiment.contestants.items():
        for seed in experiment.seeds_of(name):
            for spec in steps.specs(name, seed):
                last = saved_state(spec)
                is_finished = last is not None and last["finished"]
                if not is_finished or not report_is_up_to_date(spec, num_words, contestant.evaluate):
                    names[name] = None
    return list(names)


def _check_texts(found: Sequence[Sequence[Entry]], names: Sequence[str]) -> None:
    """Raise ReportError unless all experiments were scored on the same text and documents, with the same seeds."""
    first = found[0][0].runs[0].report
    first_texts = first.stored["inputs"]["texts"]
    first_seeds = [run.seed for run in found[0][0].runs]
    for entries, name in zip(found[1:], names[1:], strict=True):
        texts = entries[0].runs[0].report.stored["inputs"]["texts"]
        for split in reversed(SCORED):
            for key, what in (("text_sha256", "texts"), ("borders_sha256", "borders of documents")):
                if texts[split][key] != first_texts[split][key]:
                    raise ReportError(
                        f"{names[0]} and {name} have different {split} {what} ({first_texts[split][key][:12]}…, "
                        f"{texts[split][key][:12]}…), so their figures cannot stand in one table; give both the same "
                        "corpus block"
                    )
        seeds = [run.seed for run in entries[0].runs]
        if len(seeds) != len(first_seeds) or (len(seeds) > 1 and seeds != first_seeds):
            raise ReportError(
                f"{names[0]} has seeds {first_seeds} and {name} has {seeds}; runs are compared seed by seed, so give "
                "both experiments the same seeds"
            )


def _renamed(entry: Entry, name: str) -> Entry:
    """The same entry under `name`, and its runs too."""
    runs = tuple(replace(run, contestant=name) for run in entry.runs)
    rungs = tuple(replace(rung, runs=tuple(replace(run, contestant=name) for run in rung.runs)) for rung in entry.rungs)
    return Entry(name, runs, rungs)
