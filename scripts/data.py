"""Fetch or build the corpus, clean it and cut it into splits."""

from collections.abc import Sequence

from compare.steps import Steps
from scripts import cli


def main(argv: Sequence[str] | None = None) -> None:
    """Verb `data`."""
    arguments = cli.parser(__doc__).parse_args(argv)
    Steps(cli.experiment_of(arguments)).data()


if __name__ == "__main__":
    cli.run(main)
