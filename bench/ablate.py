"""What each part of the modern preset is worth, at equal training seconds: gpt2, modern, modern without one of its
parts, and modern with one that is none of its parts.

`--unit steps` or `--unit flops` holds these equal instead: for a machine whose speed others change.
`--only "beta1,table_rate"` trains those variants and modern alone. The interval is Student's t over the seeds.

Seeds go round the variants, so that a machine that slows down slows down for all. Finished runs are kept: what is
interrupted, or limited by --limit, goes on where it stopped.
"""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from compare import cli
from compare.certainty.intervals import t_quantile
from compare.grids.runner import inputs_of_run
from compare.options import whole
from compare.steps import Steps
from compare.table import as_text
from data.config import did_you_mean, require
from data.errors import DataError
from data.files import read_json, write_json
from data.inputs import is_sealed, seal
from data.numbers import Range
from model.run_spec import RunSpec
from model.settings import PRESET_SETTINGS, SWITCHES, Budget, TrainConfig
from model.train import train

GPT2, MODERN = "gpt2", "modern"
OTHERS = {"order": "epochs", "ema_decay": 0.98, "muon_rate": 2.0, "table_rate": 4.0, "beta1": 0.8}
"""Settings of the train block that are no part of the preset, to be tried next to it."""


def variants() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Name -> settings of the model block and of the train block."""
    parts = PRESET_SETTINGS[MODERN].train
    plain = {name: getattr(TrainConfig, name) for name in (*parts, *OTHERS)}
    modern = {**plain, **parts}
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        GPT2: ({"preset": GPT2}, plain),
        MODERN: ({"preset": MODERN}, modern),
    }
    for name in SWITCHES:
        is_part = name in PRESET_SETTINGS[MODERN].model
        found[f"{MODERN} {'-' if is_part else '+'} {name}"] = ({"preset": MODERN, name: not is_part}, modern)
    for name in parts:
        found[f"{MODERN} - {name}"] = ({"preset": MODERN}, modern | {name: plain[name]})
    for name, value in OTHERS.items():
        found[f"{MODERN} + {name}"] = ({"preset": MODERN}, modern | {name: value})
    return found


def table(results: dict[str, dict[str, Any]]) -> str:
    """Mean and standard deviation over the seeds, and the mean difference to modern on the seeds that both have."""
    cells = [["variant", "seeds", "val sample bits/char", "sd", "vs modern", "95 % interval", "steps"]]
    for name in variants():
        own = {key.split("|")[1]: value for key, value in results.items() if key.split("|")[0] == name}
        if not own:
            continue
        bits = [value["bits_per_char"] for value in own.values()]
        pairs = [
            value["bits_per_char"] - results[f"{MODERN}|{seed}"]["bits_per_char"]
            for seed, value in own.items()
            if f"{MODERN}|{seed}" in results
        ]
        spread = f"{statistics.stdev(bits):.4f}" if len(bits) > 1 else "-"
        steps = round(statistics.mean(value["steps"] for value in own.values()))
        difference = f"{statistics.mean(pairs):+.4f}" if pairs else "-"
        mean = f"{statistics.mean(bits):.4f}"
        cells.append([name, str(len(bits)), mean, spread, difference, interval_of(pairs), f"{steps:,}"])
    return as_text(cells)


def interval_of(differences: Sequence[float]) -> str:
    """The 95 % interval of the mean of `differences`, by Student's t; unknown with fewer than two.

    >>> interval_of([0.01, 0.02, 0.03])
    '-0.0048 to +0.0448'
    """
    if len(differences) < 2 or not any(differences):
        return "-"
    half = t_quantile(len(differences) - 1) * statistics.stdev(differences) / len(differences) ** 0.5
    mean = statistics.mean(differences)
    return f"{mean - half:+.4f} to {mean + half:+.4f}"


def chosen(only: str) -> list[str]:
    """modern and those variants that change one of the parts named in `only`, comma-separated; all where it is empty.

    Raises ConfigError for a part that does not exist.
    """
    if not only:
        return list(variants())
    by_part = {variant.split()[-1]: variant for variant in variants()}
    for part in only.split(","):
        require(part in by_part, f"--only: no part {part!r}{did_you_mean(part, list(by_part))}")
    return list(dict.fromkeys([MODERN, *(by_part[part] for part in only.split(","))]))


def main(argv: Sequence[str] | None = None) -> None:
    """Command `ablate`; by default on the corpus of the experiment demo."""
    parser = cli.parser(__doc__)
    parser.set_defaults(config="demo")
    parser.add_argument("--contestant", default="char", help="whose tokenizer, model and training settings to take")
    parser.add_argument(
        "--unit", choices=("seconds", "steps", "flops"), default="seconds", help="what one run may spend"
    )
    parser.add_argument("--amount", type=whole(Range(1, 10**18)), default=40, help="how many of them")
    parser.add_argument("--seeds", type=whole(Range(1, 1000)), default=3)
    parser.add_argument("--limit", type=whole(Range(0, 10**9)), default=10_000, help="runs to train now, at most")
    parser.add_argument("--only", default="", help="parts to try, comma-separated; all by default")
    arguments = parser.parse_args(argv)
    names = chosen(arguments.only)
    experiment = cli.experiment_of(arguments)
    name = experiment.contestant(arguments.contestant).name
    steps = Steps(experiment, echo=lambda line: None)
    budget = Budget(arguments.unit, arguments.amount)
    path = experiment.layout.reports / f"ablation_{name}_{arguments.amount}_{arguments.unit}.json"
    stored = kept_runs(path)
    results: dict[str, dict[str, Any]] = {}
    limit = arguments.limit
    for seed in range(1, arguments.seeds + 1):
        for variant in names:
            key = f"{variant}|{seed}"
            spec = spec_of(steps, name, variant, budget, seed)
            inputs = inputs_of_run(spec)
            if stored.get(key, {}).get("inputs") == inputs:  # of other settings, it would be another run
                results[key] = stored[key]
                continue
            if limit <= 0:
                continue
            limit -= 1
            result = train(spec, restart=True, progress=False)
            results[key] = seal(
                {
                    "inputs": inputs,
                    "bits_per_char": result.best_val_sample_bits_per_char,
                    "steps": result.spent.steps,
                    "seconds": result.spent.seconds,
                }
            )
            write_json(path, stored | results)
            print(
                f"{key}: {result.best_val_sample_bits_per_char:.4f} bits/char, {result.spent.steps:,} steps", flush=True
            )
    print(f"\n{table(results)}\n\n{arguments.amount} {arguments.unit} of training a run; wrote {path}")


def kept_runs(path: Path) -> dict[str, dict[str, Any]]:
    """The finished runs in `path` by key; those that are damaged or edited are left out, and trained again."""
    if not path.exists():
        return {}
    try:
        stored = read_json(path)
    except DataError as error:
        print(f"{error}: training all runs again")
        return {}
    return {key: run for key, run in stored.items() if is_sealed(run)} if isinstance(stored, dict) else {}


def spec_of(steps: Steps, name: str, variant: str, budget: Budget, seed: int) -> RunSpec:
    """A run of contestant `name` by its own settings, but for those of `variant`."""
    contestant = steps.experiment.contestant(name)
    model_settings, train_settings = variants()[variant]
    variant_of = replace(contestant, model={**contestant.model, **model_settings})
    tokenizer, splits = steps.tokenizer(name), steps.encode(name)
    train_config = replace(contestant.train, budget=budget, seed=seed, val_every_fraction=1.0, **train_settings)
    return RunSpec(
        contestant=name,
        tokenizer=tokenizer,
        tokenizer_path=steps.layout.tokenizer(name),
        splits=splits,
        model_config=variant_of.model_for(tokenizer, splits["train"]),
        train_config=train_config,
        folder=steps.layout.reports / "ablation" / f"{variant.replace(' ', '')}-{seed}",
    )


if __name__ == "__main__":
    cli.run(main)
