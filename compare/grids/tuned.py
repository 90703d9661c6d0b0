"""The result of `make tune`: the table and the lines for the experiment file, and what a report may say of it."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compare.experiment import Experiment
from compare.grids.tune import OWN, Grid, inputs_of, listed, tuning_beside
from compare.runs import Entry
from compare.table import as_text, names_in_tables

CAUTION = (
    "These are the best under this budget; one many times longer may favour somewhat lower rates.\n"
    "The val sample decides, test is not looked at."
)
_WORDS = {"batch_size": ("batch size", "BATCHES"), "learning_rate": ("rate", "RATES")}


def tuning_as_text(tuning: Mapping[str, Any]) -> str:
    """The result for a terminal: bits per character on the val sample, and a warning for a best value at the edge."""
    rates, contestants = tuning["rates"], tuning["contestants"]
    names = names_in_tables(list(contestants))
    cells = [["", "batch", *(f"{rate:g}" for rate in rates)]]
    for name, found in contestants.items():
        for batch in dict.fromkeys(one["batch_size"] for one in found["tried"]):
            row = [one for one in found["tried"] if one["batch_size"] == batch]
            cells.append([names[name], f"{batch:,}", *(_figure(one, found["best"]) for one in row)])
    budget = tuning["budget"]
    lines = [
        f"{tuning['experiment']}: bits per character on the val sample by batch size and learning rate",
        f"({budget['amount']:,} {budget['unit']} each; {_seeds(contestants)}; * is the lowest of a contestant)",
        "",
        as_text(cells),
        "",
        *(_edge_warning(name, found, key) for name, found in contestants.items() for key in found["edge"]),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def command_of(grid: Grid, experiment: str, settings: Sequence[str] = ()) -> str:
    """The command that finds what `grid` finds; `experiment` and `settings` as given to --config and --set."""
    batches = OWN if grid.batches is None else ",".join(map(str, grid.batches))
    rates = ",".join(f"{rate!r}" for rate in grid.rates)
    given = f" SET={shlex.quote(' '.join(settings))}" if settings else ""
    return (
        f"make tune EXPERIMENT={shlex.quote(experiment)} RATES={rates} BATCHES={batches} "
        f"BUDGET={grid.budget.amount}{given}"
    )


def lines_to_paste(experiment: Experiment, tuning: Mapping[str, Any], command: str) -> str:
    """What to change in the experiment file for the best pairs of `tuning`; it is the user's own and is not written.

    `command` is the one that found them, which stands above the lines as a comment.
    """
    wanted = {}
    for name, found in tuning["contestants"].items():
        train = experiment.contestants[name].train
        own = {"batch_size": None if train.batch else train.batch_size, "learning_rate": train.learning_rate}
        keys = ("learning_rate",) if tuning["batches"] is None else ("batch_size", "learning_rate")
        best = {key: found["best"][key] for key in keys}
        if any(own[key] != value for key, value in best.items()):
            wanted[name] = best
    if not wanted:
        return f"{experiment.path}: these values are in it already.\n"
    lines = [
        f"To take them, paste these lines into {experiment.path}, each below the tokenizer of its contestant:",
        "",
        f"# Found by: {command}",
    ]
    for name, best in wanted.items():
        lines += [
            f"# contestants.{name}",
            f"    train: {{{', '.join(f'{key}: {value!r}' for key, value in best.items())}}}",
        ]
    settings = [
        f"contestants.{name}.train.{key}={value!r}" for name, best in wanted.items() for key, value in best.items()
    ]
    lines += ["", "or give them to one command:", f'  SET="{" ".join(settings)}"']
    runs = [f"train-{name}" for name in wanted if experiment.layout.checkpoints(name).exists()]
    if runs:
        again = f"`make {' '.join(runs)} FORCE=1`"
        lines += [f"Runs with the former values are there and will be refused; train again with {again}."]
    return "\n".join(lines) + "\n"


def _figure(one: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    if one["val_sample_bits_per_char"] is None:
        return "diverged "
    is_best = all(one[key] == value for key, value in best.items())
    return f"{one['val_sample_bits_per_char']:.4f}" + ("*" if is_best else " ")


def _seeds(contestants: Mapping[str, Any]) -> str:
    seeds = {found["seed"] for found in contestants.values()}
    if len(seeds) == 1:
        return f"seed {seeds.pop()}"
    return "seeds " + ", ".join(f"{name} {found['seed']}" for name, found in contestants.items())


def _edge_warning(name: str, found: Mapping[str, Any], key: str) -> str:
    values = sorted({one[key] for one in found["tried"]})
    best, (words, variable) = found["best"][key], _WORDS[key]
    is_highest = best == values[-1]
    lower = values[0] // 2 if key == "batch_size" else values[0] / 2
    beyond = 2 * values[-1] if is_highest else lower
    end, side = ("highest", "higher") if is_highest else ("lowest", "lower")
    return (
        f"warning: {name}: {best:g} is the {end} {words} of the grid, a {side} one may be better; "
        f"add {beyond:g} to {variable}"
    )


# What a report says


def rate_sentence(experiment: Experiment, folder: Path, entries: Sequence[Entry]) -> str | None:
    """How the learning rates and batch sizes of `entries` were chosen; `folder` is the experiment's reports.

    With a grid (tune.json) of exactly these texts, tokenizers and settings: that it chose all of them, or whose it did
    not choose, which is an inequality. Without one: that rates set by hand differ; None if all have the same one.
    Raises ReportError if tune.json is damaged.
    """
    used = {entry.name: _used(entry) for entry in entries}
    tuning = tuning_beside(folder)
    found = {} if tuning is None else _covered(tuning, experiment, entries)
    if tuning is None or not found:
        rates = {name: own["learning_rate"] for name, own in used.items()}
        if len(set(rates.values())) == 1:
            return None
        words = ", ".join(f"{name} {rate:g}" for name, rate in rates.items())
        return f"learning rates differ and no grid chose them: {words}"
    keys = ("learning_rate",) if tuning["batches"] is None else ("batch_size", "learning_rate")
    what = "learning rate" if tuning["batches"] is None else "learning rate and batch size"
    batches = "" if tuning["batches"] is None else f", batches of {listed(tuning['batches'])} windows"
    budget = f"{tuning['budget']['amount']:,} {tuning['budget']['unit']}"
    grid = f"rates {listed(tuning['rates'])}{batches}; bits per character on the val sample after {budget}"
    chosen = [
        name for name in used if name in found and all(found[name]["best"][key] == used[name][key] for key in keys)
    ]
    if len(chosen) == len(used):
        edge = [name for name in used if found[name]["edge"]]
        at_edge = f" (at the edge of the grid for {', '.join(edge)})" if edge else ""
        return f"{what} chosen for every contestant by the same grid ({grid}): {_pairs(used, keys)}{at_edge}"
    others = [
        _pair(name, used[name], keys)
        + (f" (best in the grid: {_values(found[name]['best'], keys)})" if name in found else " (not tried)")
        for name in used
        if name not in chosen
    ]
    if not chosen:
        return f"{what} of no contestant is what the grid found best ({grid}): {', '.join(others)}"
    tuned = _pairs({name: used[name] for name in chosen}, keys)
    return f"{what} tuned for some contestants only, by a grid ({grid}): {tuned}, but not {', '.join(others)}"


def _used(entry: Entry) -> dict[str, Any]:
    train = entry.runs[0].report.settings["train"]
    return {"batch_size": train["batch_size"], "learning_rate": train["learning_rate"]}


def _covered(tuning: Mapping[str, Any], experiment: Experiment, entries: Sequence[Entry]) -> dict[str, Any]:
    """The results in `tuning` by contestant, of those whose runs have exactly the inputs that the grid had."""
    if tuning["experiment"] != experiment.name:
        return {}
    covered = {}
    for entry in entries:
        found = tuning["contestants"].get(entry.name)
        report = entry.runs[0].report
        inputs = inputs_of(
            model=report.settings["model"],
            train=report.settings["train"],
            varies_batches=tuning["batches"] is not None,
            tokenizer_fingerprint=report.tokenizer.fingerprint,
            texts=report.stored["inputs"]["texts"],
        )
        if found is not None and found["inputs"] == inputs:
            covered[entry.name] = found
    return covered


def _values(own: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Such as `0.004` or `0.004 with 8 windows`."""
    rate = f"{own['learning_rate']:g}"
    return rate if "batch_size" not in keys else f"{rate} with {own['batch_size']:,} windows"


def _pair(name: str, own: Mapping[str, Any], keys: Sequence[str]) -> str:
    return f"{name} {_values(own, keys)}"


def _pairs(used: Mapping[str, Mapping[str, Any]], keys: Sequence[str]) -> str:
    return ", ".join(_pair(name, own, keys) for name, own in used.items())
