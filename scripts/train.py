"""Train one contestant's models, one for each seed, until the budget is spent, then score val and test.

By several processes: `python -m torch.distributed.run --standalone --nproc-per-node=2 -m scripts.train …`.
"""

from collections.abc import Sequence

from compare import cli
from compare.steps import Steps
from model.training.processes import joined_processes


def main(argv: Sequence[str] | None = None) -> None:
    """Command `train`. An interrupted run goes on where it stopped."""
    parser = cli.parser(__doc__)
    parser.add_argument("--contestant", help="only this one; all by default")
    parser.add_argument("--force", action="store_true", help="drop what an earlier run left and start again")
    with joined_processes() as processes:
        arguments = processes.main_first(lambda: parser.parse_args(argv))
        experiment = processes.main_first(lambda: cli.experiment_of(arguments))
        steps = Steps(experiment, processes=processes)
        names = processes.main_first(lambda: cli.contestants_of(arguments, experiment))
        steps.check(names)
        for name in names:
            steps.train_all(name, restart=arguments.force)


if __name__ == "__main__":
    cli.run(main)
