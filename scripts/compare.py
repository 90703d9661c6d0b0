"""Make whatever is missing, then compare all contestants in bits per character."""

import sys
from collections.abc import Sequence

from compare import cli
from compare.certainty.conditions import HELP, condition_of, exit_code
from compare.outputs.text import comparison_text
from compare.steps import Steps


def main(argv: Sequence[str] | None = None) -> None:
    """Commands `compare` and `all`: every step makes what it needs, so the last one makes everything."""
    parser = cli.parser(__doc__)
    parser.add_argument("--fail-if", action="append", default=[], metavar="WORD:NAME", help=HELP)
    arguments = parser.parse_args(argv)
    experiment = cli.experiment_of(arguments)
    conditions = [
        condition_of(written, list(experiment.contestants), experiment.baseline_name) for written in arguments.fail_if
    ]
    steps = Steps(experiment)
    comparison = steps.compare()
    print(f"\n{comparison_text(comparison)}", end="")
    if steps.num_done == 0:
        print("\nNothing to do: everything was up to date.")
    if code := exit_code(conditions, comparison.certainty):
        sys.exit(code)


if __name__ == "__main__":
    cli.run(main)
