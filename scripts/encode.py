"""Encode all splits with the contestants' tokenizers, proving that nothing is lost."""

from collections.abc import Sequence

from compare import cli
from compare.steps import Steps


def main(argv: Sequence[str] | None = None) -> None:
    """Command `encode`."""
    parser = cli.parser(__doc__)
    parser.add_argument("--contestant", help="only this one; all by default")
    arguments = parser.parse_args(argv)
    experiment = cli.experiment_of(arguments)
    steps = Steps(experiment)
    for name in cli.contestants_of(arguments, experiment):
        steps.encode(name)


if __name__ == "__main__":
    cli.run(main)
