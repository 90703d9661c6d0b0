"""Train one contestant's models, one for each seed, until the budget is spent, then score val and test.

By several processes: `python -m torch.distributed.run --standalone --nproc-per-node=2 -m scripts.train …`.
"""

from compare.steps import Steps
from model.distributed import joined_processes
from scripts import cli


def main() -> None:
    """Verb `train`. An interrupted run goes on where it stopped."""
    parser = cli.parser(__doc__)
    parser.add_argument("--contestant", help="only this one; all by default")
    parser.add_argument("--force", action="store_true", help="drop what an earlier run left and begin anew")
    with joined_processes() as processes:
        arguments = processes.main_first(parser.parse_args)
        experiment = processes.main_first(lambda: cli.experiment_of(arguments))
        steps = Steps(experiment, processes=processes)
        for name in processes.main_first(lambda: cli.contestants_of(arguments, experiment)):
            steps.train_all(name, restart=arguments.force)


if __name__ == "__main__":
    cli.run(main)
