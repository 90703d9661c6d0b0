"""Estimate how far a contestant's canonical segmentation lies above the marginal over all segmentations."""

import sys
from collections.abc import Sequence

from compare import cli
from compare.marginal.estimate import as_text
from compare.marginal.measure import measure
from compare.options import whole
from compare.steps import Steps
from data.numbers import COUNT, SEED, Range


def main(argv: Sequence[str] | None = None) -> None:
    """Command `marginal`: passages of the test split; the table on stdout, everything in reports/marginal.json."""
    parser = cli.parser(__doc__)
    parser.add_argument("--contestant", default="bpe")
    parser.add_argument(
        "--characters", type=whole(COUNT), default=4_000, help="characters of the test split to segment"
    )
    parser.add_argument(
        "--samples", type=whole(Range(1, 10**6)), default=64, help="segmentations drawn for each passage"
    )
    parser.add_argument("--seed", type=whole(SEED), default=1, help="of the passages and the draws")
    arguments = parser.parse_args(argv)
    steps = Steps(cli.experiment_of(arguments), echo=lambda line: print(line, file=sys.stderr))
    name = steps.experiment.contestant(arguments.contestant).name
    gap, path = measure(steps, name, num_chars=arguments.characters, samples=arguments.samples, seed=arguments.seed)
    print(as_text(name, gap))
    steps.echo(f"marginal: wrote {path}")


if __name__ == "__main__":
    cli.run(main)
