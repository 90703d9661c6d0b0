"""The comparison as one call, for notebooks and programs."""

from collections.abc import Callable, Sequence
from pathlib import Path

from compare.experiment import load_experiment
from compare.outputs.comparison import Comparison
from compare.steps import Steps
from compare.together import Together
from data.show import say


def compare(experiment: Path | str, settings: Sequence[str] = (), *, echo: Callable[[str], None] = say) -> Comparison:
    """The comparison of the experiment file `experiment`; what is missing (tokenizers, runs) is made first.

    `settings` replace values of the file, such as `train.batch_size=64`; `echo` gets one line for each step. A
    notebook shows the returned value as its answer and its table. Raises UserError, as the command `compare` does.
    """
    return Steps(load_experiment(Path(experiment), settings), echo=echo).compare()


def compare_together(
    experiments: Sequence[Path | str], settings: Sequence[str] = (), *, echo: Callable[[str], None] = say
) -> Comparison:
    """The contestants of several experiment files, scored on the same test text, in one comparison.

    Nothing is trained: CheckpointError names the runs that are not finished. A name that two experiments have gets its
    experiment's in front: `demo/char`. ReportError where their val or test texts, documents or seeds differ.
    """
    loaded = [load_experiment(Path(experiment), settings) for experiment in experiments]
    return Together(loaded, settings=settings, echo=echo).compare()
