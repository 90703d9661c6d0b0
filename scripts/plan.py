"""What training every contestant will take and what it can say, before any is trained. Nothing trained is kept."""

from collections.abc import Sequence

from compare import cli
from compare.plan import plans_as_text
from compare.sizes.plans import more_warnings, rows_of_sizes
from compare.steps import Steps


def main(argv: Sequence[str] | None = None) -> None:
    """Command `plan`: makes data, tokenizers and encoded splits where they are missing, and measures a few steps."""
    steps = Steps(cli.experiment_of(cli.parser(__doc__).parse_args(argv)))
    steps.check()
    plans, sizes = steps.plans(measured=True), steps.size_plans(measured=True)
    print(f"\n{plans_as_text(plans, rows_of_sizes(sizes), more_warnings(plans, sizes))}", end="")


if __name__ == "__main__":
    cli.run(main)
