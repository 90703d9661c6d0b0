"""Try the same learning rates and batch sizes on every contestant under a short budget; say which is best for each."""

from collections.abc import Sequence

from compare import cli
from compare.grids.runner import run_grid
from compare.grids.tune import (
    DEFAULT_BATCHES,
    DEFAULT_RATES,
    JSON,
    OWN,
    grid_of,
    listed,
    parse_batches,
    parse_rates,
    read_tuning,
)
from compare.grids.tuned import CAUTION, command_of, lines_to_paste, tuning_as_text
from compare.options import whole
from compare.steps import Steps
from data.files import write_json
from data.numbers import Range


def main(argv: Sequence[str] | None = None) -> None:
    """Command `tune`. A grid that was stopped goes on where it was: finished runs are found, not repeated."""
    parser = cli.parser(__doc__)
    parser.add_argument("--rates", help=f"such as 1e-3,2e-3; by default {listed(DEFAULT_RATES)}")
    parser.add_argument(
        "--batches",
        help=f"windows in a step, such as 8,16, or `{OWN}` for each contestant's own; by default "
        f"{listed(DEFAULT_BATCHES)}, and `{OWN}` where the file gives batch in characters",
    )
    parser.add_argument(
        "--budget", type=whole(Range(1, 10**30)), help="of each run, in the experiment's unit; a tenth by default"
    )
    arguments = parser.parse_args(argv)
    experiment = cli.experiment_of(arguments)
    rates = DEFAULT_RATES if arguments.rates is None else parse_rates(arguments.rates)
    batches = None if arguments.batches is None else parse_batches(arguments.batches) or OWN
    grid = grid_of(experiment, rates, arguments.budget, batches=batches)
    tuning = run_grid(Steps(experiment), grid)
    path = experiment.layout.reports / JSON
    if read_tuning(path.parent) == tuning:
        print(f"tune: up to date ({path})")
    else:
        write_json(path, tuning)
        print(f"tune: wrote {path}")
    print(f"\n{tuning_as_text(tuning)}\n{CAUTION}")
    command = command_of(grid, arguments.config, arguments.set)
    print(f"\n{lines_to_paste(experiment, tuning, command)}", end="")


if __name__ == "__main__":
    cli.run(main)
