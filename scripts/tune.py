"""Try the same learning rates on every contestant under a short budget, and say which is best for each."""

from compare.experiment import Experiment
from compare.steps import Steps
from compare.tune import CAUTION, DEFAULT_RATES, JSON, grid_of, parse_rates, read_tuning, tuning_as_text
from compare.tune_runs import run_grid
from compare.tune_write import write_rates
from data.config import require
from data.files import write_json
from data.lock import alone
from scripts import cli


def main() -> None:
    """Verb `tune`. A grid that was stopped goes on where it was: finished runs are found, not repeated."""
    parser = cli.parser(__doc__)
    parser.add_argument("--rates", help=f"such as 1e-3,2e-3; by default {','.join(f'{r:g}' for r in DEFAULT_RATES)}")
    parser.add_argument("--budget", type=int, help="of each run, in the experiment's unit; a tenth by default")
    parser.add_argument("--write", action="store_true", help="put the best rates into the experiment file")
    arguments = parser.parse_args()
    require(
        not (arguments.write and arguments.set),
        "--write and --set: the rates would be found with settings that the file lacks; put those into the file first",
    )
    experiment = cli.experiment_of(arguments)
    rates = DEFAULT_RATES if arguments.rates is None else parse_rates(arguments.rates)
    grid = grid_of(experiment, rates, arguments.budget)
    tuning = run_grid(Steps(experiment), grid)
    path = experiment.layout.reports / JSON
    if read_tuning(path.parent) == tuning:
        print(f"tune: up to date ({path})")
    else:
        write_json(path, tuning)
        print(f"tune: wrote {path}")
    print(f"\n{tuning_as_text(tuning)}\n{CAUTION}")
    if arguments.write:
        _write(experiment, {name: found["best"] for name, found in tuning["contestants"].items()})


def _write(experiment: Experiment, best: dict[str, float]) -> None:
    """Put the best rates into the experiment file, and say what that means for runs that are there."""
    with alone(experiment.path):
        changed = write_rates(experiment.path, best)
    if not changed:
        print(f"\n{experiment.path}: these rates are in it already.")
        return
    print(f"\n{experiment.path}: wrote train.learning_rate of {', '.join(changed)}.")
    trained = [f"`make train-{name} FORCE=1`" for name in changed if experiment.layout.checkpoints(name).exists()]
    if trained:
        print(f"Runs with the former rates are there and will be refused; train anew with {', '.join(trained)}.")


if __name__ == "__main__":
    cli.run(main)
