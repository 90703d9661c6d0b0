"""What every verb shares: options, and how errors become exit codes.

Exit codes: 0 done; 2 a mistake of the user's, one line on stderr; 130 interrupted, state saved; 1 a bug, traceback.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from compare.experiment import Experiment, load_experiment
from compare.experiment_file import folder_of
from data.config import did_you_mean
from data.errors import ConfigError, UserError
from model.distributed import SaidByProcessZero
from model.train import TrainingInterrupted
from scripts.options import Parser

CONFIGS = Path("configs")
DEFAULT_EXPERIMENT = "wikitext2"


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that all verbs have: --config, --set."""
    made = Parser(description=description)
    made.add_argument("--config", default=DEFAULT_EXPERIMENT, help="an experiment file, or the name of one in configs/")
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
    return load_experiment(config_path(arguments.config), arguments.set)


def config_path(named: str) -> Path:
    """The experiment file that `named` means: the name of one in configs/, whatever is in it, or a path.

    Raises ConfigError with the known names where there is no such file.
    """
    if not named.strip():
        raise ConfigError("--config: expected an experiment's name, found nothing")
    is_file_name = named.endswith((".yaml", ".yml"))
    is_path = is_file_name or "/" in named or os.sep in named
    in_configs = CONFIGS / (named if is_file_name else f"{named}.yaml")
    candidates = [Path(named), in_configs] if is_path else [in_configs, Path(named)]
    if named.startswith("~"):
        candidates.append(folder_of(named, "--config"))
    for path in candidates:
        if os.path.lexists(path) and (is_path or path == in_configs or not path.is_dir()):
            return path
    known = sorted(file.stem for file in CONFIGS.glob("*.yaml"))
    close = did_you_mean(Path(named).name.removesuffix(".yaml"), known)
    close = close if "did you mean" in close else ""
    raise ConfigError(f"{candidates[0]} does not exist{close}; known experiments: {', '.join(known)}")


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
        print(_for_the_user(str(error), sys.argv[1:]), file=sys.stderr)
        sys.exit(2)
    except SaidByProcessZero:
        sys.exit(2)
    except (KeyboardInterrupt, TrainingInterrupted):
        sys.exit(130)


def _for_the_user(message: str, arguments: list[str]) -> str:
    """The message on one line, with the experiment in the commands it names, so that they can be pasted.

    >>> _for_the_user("too old; run `make data`", ["--config", "demo"])
    'too old; run `make data EXPERIMENT=demo`'
    """
    message = " ".join(message.split())
    config = parser(None).parse_known_args(arguments)[0].config
    if config == DEFAULT_EXPERIMENT:
        return message
    return re.sub(r"`make (?!demo|setup)([a-zA-Z0-9_ =-]+)`", rf"`make \1 EXPERIMENT={config}`", message)
