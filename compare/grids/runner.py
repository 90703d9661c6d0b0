"""Trains the grid of `make tune`: short runs, found again when they are finished, continued when they were stopped."""

import dataclasses
from pathlib import Path
from typing import Any

from compare.grids.tune import VERSION, Grid, inputs_of, outcome_of
from compare.steps import Steps
from data.errors import CheckpointError, ConfigError, DataError, DivergedError
from data.files import canonical_json, read_json, sha256_text, write_json
from data.inputs import seal
from model import checkpoint
from model.checkpoint import TRAINING_VERSION
from model.run_spec import RunSpec
from model.train import train
from model.training.device import explain_out_of_memory

DIVERGED = "diverged.json"


def run_grid(steps: Steps, grid: Grid) -> dict[str, Any]:
    """Train every contestant of the experiment with every pair of `grid`; the result as tune.json holds it.

    The first seed of a contestant is taken, and the lowest figure of a run on the val sample. Raises what
    `model.train.train` raises, but for training that diverges: that is a result. TrainingInterrupted leaves a grid
    that goes on.
    """
    experiment = steps.experiment
    steps.check()
    if experiment.ladder is not None:
        steps.echo("tune: the runs of the grid have the ladder's schedule and one budget only")
    contestants = {name: _tune(steps, name, grid) for name in experiment.contestants}
    return seal(
        {
            "version": VERSION,
            "experiment": experiment.name,
            "budget": dataclasses.asdict(grid.budget),
            "rates": list(grid.rates),
            "batches": None if grid.batches is None else list(grid.batches),
            "contestants": contestants,
        }
    )


def _tune(steps: Steps, name: str, grid: Grid) -> dict[str, Any]:
    seed = steps.experiment.seeds_of(name)[0]
    first = steps.spec(name, seed)
    # With a ladder the spec warms up over a share of the smallest rung; a short run warms up over a share of its own.
    warmup_amount = steps.experiment.train_config(name, seed).warmup_amount
    shared = dataclasses.replace(first.train_config, budget=grid.budget, warmup_amount=warmup_amount)
    tried = []
    for batch_size in grid.batches or (shared.batch_size,):
        for rate in grid.rates:
            pair: dict[str, Any] = {"batch_size": batch_size, "learning_rate": rate}
            spec = dataclasses.replace(
                first,
                train_config=dataclasses.replace(shared, **pair),
                folder=steps.layout.tuning(name, rate, batch_size),
            )
            tried.append({**pair, "val_sample_bits_per_char": _figure(steps, spec)})
    try:
        outcome = outcome_of(tried)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    return outcome | {
        "seed": seed,
        "inputs": inputs_of(
            model=dataclasses.asdict(first.model_config),
            train=dataclasses.asdict(shared),
            varies_batches=grid.batches is not None,
            tokenizer_fingerprint=first.tokenizer.fingerprint(),
            texts={split: dataclasses.asdict(encoded.text_input) for split, encoded in first.splits.items()},
        ),
    }


def _figure(steps: Steps, spec: RunSpec) -> float | None:
    """The fewest bits per character on the val sample of one run, which is trained if need be; None if it diverges."""
    folder, config = spec.folder, spec.train_config
    label = f"tune {spec.contestant}, batch size {config.batch_size}, learning rate {config.learning_rate:g}"
    inputs = inputs_of_run(spec)
    if _has_diverged(folder, inputs):
        steps.echo(f"{label}: up to date, diverged ({folder / DIVERGED})")
        return None
    try:
        with explain_out_of_memory(spec):
            try:
                result = train(spec)
            except CheckpointError as error:  # of another grid, text or tokenizer, or damaged: of no use to this grid
                steps.echo(f"  {str(error).partition(';')[0]}: training again")
                result = train(spec, restart=True)
    except DivergedError as error:
        write_json(folder / DIVERGED, {"inputs": inputs, "message": str(error)})
        steps.num_done += 1
        steps.echo(f"{label}: diverged")
        return None
    figure = result.best_val_sample_bits_per_char
    steps.num_done += result.num_steps_now > 0
    state = "up to date, " if result.num_steps_now == 0 else ""
    steps.echo(f"{label}: {state}{figure:.4f} bits per character on the val sample")
    return figure


def inputs_of_run(spec: RunSpec) -> str:
    """Hash of all that a run follows from; where its data lies and how often it is saved is no part of it."""
    identity = checkpoint.identity_of(spec)
    train_settings = {k: v for k, v in identity["train_config"].items() if k != "checkpoint_every_seconds"}
    hashes = {split: {k: v for k, v in data.items() if k != "path"} for split, data in identity["data"].items()}
    kept = [identity["tokenizer_fingerprint"], identity["model_config"], train_settings, hashes, TRAINING_VERSION]
    return sha256_text(canonical_json(kept))


def _has_diverged(folder: Path, inputs: str) -> bool:
    """Whether exactly this run has diverged before: it would again."""
    try:
        return bool(read_json(folder / DIVERGED)["inputs"] == inputs)
    except (DataError, KeyError, TypeError):
        return False  # none, or damaged: the run itself will say
