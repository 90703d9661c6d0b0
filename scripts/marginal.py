"""Estimate how far a contestant's canonical segmentation lies above the marginal over all segmentations."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compare.marginal import JSON, as_text, marginal_gap
from compare.passages import choose_passages
from compare.steps import Steps
from data.files import read_json, sha256_file, write_json
from data.numbers import COUNT, SEED, Range
from model import checkpoint
from scripts import cli
from scripts.options import whole


def main(argv: Sequence[str] | None = None) -> None:
    """Verb `marginal`: passages of the test split; the table on stdout, everything in reports/marginal.json."""
    parser = cli.parser(__doc__)
    parser.add_argument("--contestant", default="bpe")
    parser.add_argument(
        "--characters", type=whole(COUNT), default=4_000, help="characters of the test split to segment"
    )
    parser.add_argument(
        "--samples", type=whole(Range(1, 10**6)), default=64, help="segmentations drawn for each passage"
    )
    parser.add_argument("--seed", type=whole(SEED), default=1, help="of the passages, the draws and the interval")
    arguments = parser.parse_args(argv)
    steps = Steps(cli.experiment_of(arguments), echo=lambda line: print(line, file=sys.stderr))
    name = steps.experiment.contestant(arguments.contestant).name
    folder, tokenizer_path = (
        steps.experiment.run_folder(name, steps.experiment.seeds_of(name)[0]),
        steps.layout.tokenizer(name),
    )
    if not (folder / checkpoint.BEST).exists():
        steps.train(name)
    test, tokenizer = steps.data()["test"], steps.tokenizer(name)
    model, _ = checkpoint.load_model(folder, "best", tokenizer, tokenizer_path)
    passages = choose_passages(
        test.documents(),
        tokenizer,
        block_size=model.config.block_size,
        num_chars=arguments.characters,
        seed=arguments.seed,
    )
    result = marginal_gap(
        model, tokenizer, passages, samples=arguments.samples, seed=arguments.seed, progress=sys.stderr.isatty()
    )
    provenance = {
        "test_text_sha256": test.sha256,
        "tokenizer_fingerprint": tokenizer.fingerprint(),
        "checkpoint_sha256": sha256_file(folder / checkpoint.BEST),
    }
    path = steps.layout.reports / JSON
    write_json(path, {**_others(path, test.sha256), name: {**provenance, **result}})
    print(as_text(name, result))
    steps.echo(f"marginal: wrote {path}")


def _others(path: Path, test_text_sha256: str) -> dict[str, Any]:
    """What earlier calls found for the other contestants on the same test text."""
    if not path.exists():
        return {}
    stored: dict[str, dict[str, Any]] = read_json(path)
    return {name: found for name, found in stored.items() if found["test_text_sha256"] == test_text_sha256}


if __name__ == "__main__":
    cli.run(main)
