"""Make whatever is missing, then compare all contestants in bits per character."""

from collections.abc import Sequence

from compare import cli
from compare.steps import Steps


def main(argv: Sequence[str] | None = None) -> None:
    """Verbs `compare` and `all`: every step makes what it needs, so the last one makes everything."""
    arguments = cli.parser(__doc__).parse_args(argv)
    steps = Steps(cli.experiment_of(arguments))
    comparison = steps.compare()
    print(f"\n{comparison}", end="")
    if steps.num_done == 0:
        print("\nNothing to do: everything was up to date.")


if __name__ == "__main__":
    cli.run(main)
