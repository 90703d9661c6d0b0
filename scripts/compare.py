"""Make whatever is missing, then compare all contestants in bits per character."""

import shlex
import sys
from collections.abc import Sequence

from compare import cli
from compare.certainty.conditions import HELP, condition_of, exit_code
from compare.experiment import load_experiment
from compare.outputs.text import comparison_text
from compare.steps import Steps
from compare.together import Together
from data.errors import ConfigError


def main(argv: Sequence[str] | None = None) -> None:
    """Commands `compare` and `all`: every step makes what it needs, so the last one makes everything."""
    parser = cli.parser(__doc__)
    parser.add_argument(
        "--experiments",
        help="several experiments with the same test text, parted by spaces, in one table; nothing is trained",
    )
    parser.add_argument("--fail-if", action="append", default=[], metavar="WORD:NAME", help=HELP)
    arguments = parser.parse_args(argv)
    chain: Steps | Together
    if arguments.experiments is None:
        experiment = cli.experiment_of(arguments)
        chain = Steps(experiment)
    else:
        given = names_of(arguments.experiments)
        loaded = [load_experiment(cli.config_path(name), arguments.set) for name in given]
        chain = Together(loaded, given=given, settings=arguments.set)
        experiment = chain.experiment
    conditions = [
        condition_of(written, list(experiment.contestants), experiment.baseline_name) for written in arguments.fail_if
    ]
    comparison = chain.compare()
    print(f"\n{comparison_text(comparison)}", end="")
    if chain.num_done == 0:
        print("\nNothing to do: everything was up to date.")
    if code := exit_code(conditions, comparison.certainty):
        sys.exit(code)


def names_of(written: str) -> list[str]:
    """The experiments in `--experiments`, parted by white space; quotes keep a path with spaces together.

    >>> names_of("demo 'my texts/a.yaml'")
    ['demo', 'my texts/a.yaml']
    """
    try:
        return shlex.split(written)
    except ValueError as error:
        raise ConfigError(f"--experiments: {error} in {written!r}") from error


if __name__ == "__main__":
    cli.run(main)
