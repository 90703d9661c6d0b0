"""Train whatever a sweep lacks, then draw bits per character against vocabulary size, one line for each split."""

from collections.abc import Sequence

from compare import cli
from compare.grids.sweep import (
    JSON,
    check_is_sweep,
    sweep_as_text,
    sweep_is_up_to_date,
    sweep_of,
    sweep_paths,
    write_sweep,
)
from compare.steps import Steps
from data.lock import alone


def main(argv: Sequence[str] | None = None) -> None:
    """Command `sweep`. A sweep that was stopped goes on where it was: finished runs are found, not repeated."""
    experiment = cli.experiment_of(cli.parser(__doc__).parse_args(argv))
    check_is_sweep(experiment)
    steps = Steps(experiment)
    if experiment.ladder is not None:
        steps.echo("sweep: the figures are those of the ladder's whole budget")
    sweep = sweep_of(experiment, steps.entries())
    reports = experiment.layout.reports
    if sweep_is_up_to_date(reports, sweep):
        print(f"sweep: up to date ({reports / JSON})")
    else:
        with alone(reports):
            write_sweep(reports, sweep)
        print("sweep: wrote " + ", ".join(map(str, sweep_paths(reports))))
    print(f"\n{sweep_as_text(sweep)}", end="")


if __name__ == "__main__":
    cli.run(main)
