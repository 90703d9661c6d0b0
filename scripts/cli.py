"""What every verb shares: options, and how errors become exit codes.

Exit codes: 0 done; 2 a mistake of the user's, one line on stderr; 130 interrupted, state saved; 1 a bug, traceback.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from compare.experiment import Experiment, load_experiment
from data.errors import ConfigError, UserError
from model.train import TrainingInterrupted

CONFIGS = Path("configs")


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that all verbs have: --config, --set."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--config", default="wikitext2", help="an experiment file, or the name of one in configs/")
    made.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="replace a setting of the file, such as train.batch_size=64; may be repeated",
    )
    return made


def experiment_of(arguments: argparse.Namespace) -> Experiment:
    """The experiment that --config and --set name."""
    path = Path(arguments.config)
    if not path.suffix:
        path = CONFIGS / f"{arguments.config}.yaml"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in CONFIGS.glob("*.yaml")))
        raise ConfigError(f"{path} does not exist; known experiments: {known}")
    return load_experiment(path, arguments.set)


def contestants_of(arguments: argparse.Namespace, experiment: Experiment) -> list[str]:
    """The contestant that --contestant names, or all of them."""
    if arguments.contestant is None:
        return list(experiment.contestants)
    return [experiment.contestant(arguments.contestant).name]


def run(main: Callable[[], None]) -> None:
    """Run a verb and turn its errors into exit codes."""
    try:
        main()
    except UserError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, TrainingInterrupted):
        sys.exit(130)
