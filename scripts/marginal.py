"""Estimate how far a contestant's canonical segmentation lies above the marginal over all segmentations."""

import sys
from collections.abc import Sequence

from compare import cli
from compare.marginal.estimate import VERSION, as_text, marginal_gap
from compare.marginal.passages import choose_passages
from compare.marginal.result import MeasuredRun
from compare.marginal.stored import JSON, store
from compare.options import whole
from compare.steps import Steps
from data.files import sha256_file
from data.inputs import borders_sha256
from data.numbers import COUNT, SEED, Range
from model import checkpoint


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
    folder, tokenizer_path = (
        steps.experiment.run_folder(name, steps.experiment.seeds_of(name)[0]),
        steps.layout.tokenizer(name),
    )
    steps.train(name)  # finishes the run, or refuses one that was made from other inputs
    test, tokenizer = steps.data()["test"], steps.tokenizer(name)
    model, _ = checkpoint.load_model(folder, "best", tokenizer, tokenizer_path)
    passages = choose_passages(
        test.documents(),
        tokenizer,
        block_size=model.config.block_size,
        num_chars=arguments.characters,
        seed=arguments.seed,
    )
    gap = marginal_gap(
        model, tokenizer, passages, samples=arguments.samples, seed=arguments.seed, progress=sys.stderr.isatty()
    )
    measured = MeasuredRun(
        version=VERSION,
        test_text_sha256=test.sha256,
        test_borders_sha256=borders_sha256(test.document_offsets),
        tokenizer_fingerprint=tokenizer.fingerprint(),
        checkpoint_sha256=sha256_file(folder / checkpoint.BEST),
        gap=gap,
    )
    path = steps.layout.reports / JSON
    store(path, name, measured)
    print(as_text(name, gap))
    steps.echo(f"marginal: wrote {path}")


if __name__ == "__main__":
    cli.run(main)
