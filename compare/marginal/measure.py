"""Measure one contestant's finished run and keep the result."""

import sys
from pathlib import Path

from compare.marginal.estimate import VERSION, marginal_gap
from compare.marginal.passages import choose_passages
from compare.marginal.result import MarginalGap, MeasuredRun
from compare.marginal.stored import JSON, store
from compare.steps import Steps
from data.files import sha256_file
from data.inputs import borders_sha256
from model import checkpoint


def measure(steps: Steps, name: str, *, num_chars: int, samples: int, seed: int) -> tuple[MarginalGap, Path]:
    """The gap on passages of `num_chars` characters of test, from `samples` segmentations each, and where it is kept.

    The first run of the contestant `name` is finished first. Raises UserError, for one where the run was made from
    other inputs.
    """
    folder = steps.experiment.run_folder(name, steps.experiment.seeds_of(name)[0])
    steps.train(name)  # finishes the run, or refuses one that was made from other inputs
    test, tokenizer = steps.data()["test"], steps.tokenizer(name)
    model, _ = checkpoint.load_model(folder, "best", tokenizer, steps.layout.tokenizer(name))
    block_size = model.config.block_size
    passages = choose_passages(test.documents(), tokenizer, block_size=block_size, num_chars=num_chars, seed=seed)
    gap = marginal_gap(model, tokenizer, passages, samples=samples, seed=seed, progress=sys.stderr.isatty())
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
    return gap, path
