"""Learning rates chosen by one grid for all contestants: the grid, its result, and what a report may say of it.

A rate that suits one tokenizer need not suit another, so a comparison under one hand-set rate may favour somebody.
`compare/grids/runner.py` trains the grid; `make tune` prints the lines for the experiment file.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare.experiment import Experiment
from compare.runs import Entry
from compare.table import as_text
from data.config import require
from data.errors import ConfigError, DataError
from data.files import canonical_json, read_json, sha256_text
from data.inputs import is_sealed
from data.numbers import read_number, shown
from model.checkpoint import FREE_SETTINGS, TRAINING_VERSION
from model.settings import LEARNING_RATE, Budget

JSON = "tune.json"
VERSION = 3
"""Of what a grid's result holds and how it is found; `make tune` writes an older one again."""
DEFAULT_RATES = (1e-3, 2e-3, 4e-3, 8e-3)
BUDGET_SHARE = 0.1
"""Of the experiment's budget, for each run of the grid, unless a budget is given."""
CAUTION = (
    "These are the best rates under this budget; one many times longer may favour somewhat lower rates.\n"
    "The val sample decides, test is not looked at."
)
# What a grid does not fix: the rate it varies, its own budget, and the seed, of which it takes the first. A ladder's
# warm-up is an amount, and a share of another budget than the grid's.
_FREE_FOR_RATES = FREE_SETTINGS | {"learning_rate", "budget", "seed", "warmup_amount"}


@dataclass(frozen=True)
class Grid:
    """The rates that every contestant is trained with, and what each of these runs may spend."""

    rates: tuple[float, ...]
    """Ascending, distinct, at least two."""
    budget: Budget


def parse_rates(written: str) -> tuple[float, ...]:
    """The rates of `RATES=1e-3,2e-3` (commas or spaces), ascending. Raises ConfigError for what is no grid.

    >>> parse_rates("4e-3, 1e-3")
    (0.001, 0.004)
    """
    rates = []
    for word in re.split(r"[,\s]+", written.strip(", ")):
        try:
            rates.append(read_number(word))
        except ValueError as error:
            reason = f" ({error})" if str(error) else ""
            raise ConfigError(f"rates: {shown(word)} is not a number{reason}; write them like 1e-3,2e-3,4e-3") from None
    for rate in rates:
        LEARNING_RATE.check("rates: each", rate)
    require(len(rates) >= 2, "rates: a grid needs at least two of them, such as 1e-3,2e-3,4e-3")
    require(len(set(rates)) == len(rates), f"rates: must be distinct, found {_listed(sorted(rates))}")
    return tuple(sorted(rates))


def grid_of(experiment: Experiment, rates: Sequence[float] = DEFAULT_RATES, amount: int | None = None) -> Grid:
    """The grid for `experiment`; `amount` is in the unit of its budget, by default BUDGET_SHARE of the budget.

    Raises ConfigError where contestants do not share a budget to take that share of, or not even its unit.
    """
    budgets = {name: contestant.train.budget for name, contestant in experiment.contestants.items()}
    units = {budget.unit for budget in budgets.values()}
    stated = ", ".join(f"{name} {budget.amount:,} {budget.unit}" for name, budget in budgets.items())
    require(len(units) == 1, f"{experiment.path}: one grid needs one unit of budget, but contestants have {stated}")
    unit = units.pop()
    if amount is None:
        amounts = {budget.amount for budget in budgets.values()}
        require(
            len(amounts) == 1,
            f"{experiment.path}: contestants have unequal budgets ({stated}), so there is no tenth of it; name one for "
            f"all of them, BUDGET=<{unit}>",
        )
        amount = max(1, round(BUDGET_SHARE * amounts.pop()))
    return Grid(tuple(sorted(rates)), Budget(unit, amount))


def inputs_of(
    *,
    model: Mapping[str, Any],
    train: Mapping[str, Any],
    tokenizer_fingerprint: str,
    texts: Mapping[str, Any],
) -> dict[str, Any]:
    """Hashes of what a rate was chosen for: it says nothing of a run that differs in any of them.

    `texts` are train and val as `data.inputs.inputs_of` lists them; others are left aside.
    """
    settings = {
        "model": dict(sorted(model.items())),
        "train": {key: value for key, value in sorted(train.items()) if key not in _FREE_FOR_RATES},
    }
    return {
        "settings_sha256": sha256_text(canonical_json(settings)),
        "tokenizer_fingerprint": tokenizer_fingerprint,
        "training_version": TRAINING_VERSION,
        "texts": {name: texts[name] for name in ("train", "val")},
    }


def outcome_of(tried: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the runs of one contestant decide: `tried` with the best rate, and whether that lies at the grid's edge.

    `tried` is ascending by "learning_rate"; its "val_sample_bits_per_char" is None where the run diverged. The lowest
    figure wins, of equal ones the lower rate. Raises ConfigError if all diverged.
    """
    finite = [one for one in tried if one["val_sample_bits_per_char"] is not None]
    rates = [one["learning_rate"] for one in tried]
    require(bool(finite), f"training diverged with every rate of the grid ({_listed(rates)}); give lower RATES")
    best = min(finite, key=lambda one: one["val_sample_bits_per_char"])["learning_rate"]
    return {"tried": [dict(one) for one in tried], "best": best, "edge": best in (rates[0], rates[-1])}


def read_tuning(folder: Path) -> dict[str, Any] | None:
    """tune.json in `folder`; None if there is none or if it is damaged, edited or older: run `make tune` again."""
    if not (folder / JSON).exists():
        return None
    try:
        stored = read_json(folder / JSON)
    except DataError:
        return None
    return stored if is_sealed(stored) and stored.get("version") == VERSION else None


def tuning_as_text(tuning: Mapping[str, Any]) -> str:
    """The result for a terminal: bits per character on the val sample, and a warning for a best rate at the edge."""
    rates, contestants = tuning["rates"], tuning["contestants"]
    cells = [["", *(f"{rate:g}" for rate in rates), "best"]]
    for name, found in contestants.items():
        cells.append([name, *(_figure(one, found["best"]) for one in found["tried"]), f"{found['best']:g}"])
    budget = tuning["budget"]
    lines = [
        f"{tuning['experiment']}: bits per character on the val sample by learning rate",
        f"({budget['amount']:,} {budget['unit']} each; {_seeds(contestants)}; * is the lowest of a contestant)",
        "",
        as_text(cells),
        "",
        *(_edge_warning(name, found) for name, found in contestants.items() if found["edge"]),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def lines_to_paste(experiment: Experiment, best: Mapping[str, float]) -> str:
    """What to change in the experiment file for the learning rates `best`; it is the user's own and is not written."""
    wanted = {name: rate for name, rate in best.items() if experiment.contestants[name].train.learning_rate != rate}
    if not wanted:
        return f"{experiment.path}: these rates are in it already.\n"
    width = max(map(len, wanted))
    lines = [
        f"To take them, paste each into its contestant in {experiment.path}, next to the tokenizer:",
        *(f"  {name:{width}}  train: {{learning_rate: {rate!r}}}" for name, rate in wanted.items()),
        "or give them to one command:",
        f'  SET="{" ".join(f"contestants.{name}.train.learning_rate={rate!r}" for name, rate in wanted.items())}"',
    ]
    runs = [f"`make train-{name} FORCE=1`" for name in wanted if experiment.layout.checkpoints(name).exists()]
    if runs:
        lines += [f"Runs with the former rates are there and will be refused; train again with {', '.join(runs)}."]
    return "\n".join(lines) + "\n"


def _figure(one: Mapping[str, Any], best: float) -> str:
    if one["val_sample_bits_per_char"] is None:
        return "diverged "
    return f"{one['val_sample_bits_per_char']:.4f}" + ("*" if one["learning_rate"] == best else " ")


def _seeds(contestants: Mapping[str, Any]) -> str:
    seeds = {found["seed"] for found in contestants.values()}
    if len(seeds) == 1:
        return f"seed {seeds.pop()}"
    return "seeds " + ", ".join(f"{name} {found['seed']}" for name, found in contestants.items())


def _edge_warning(name: str, found: Mapping[str, Any]) -> str:
    rates = [one["learning_rate"] for one in found["tried"]]
    is_highest = found["best"] == rates[-1]
    beyond = 2 * rates[-1] if is_highest else rates[0] / 2
    end, side = ("highest", "higher") if is_highest else ("lowest", "lower")
    return (
        f"warning: {name}: {found['best']:g} is the {end} rate of the grid, a {side} one may be better; "
        f"add {beyond:g} to RATES"
    )


def rate_sentence(experiment: Experiment, folder: Path, entries: Sequence[Entry]) -> str | None:
    """How the learning rates of `entries` were chosen, for the report; `folder` is the experiment's reports.

    With a grid (tune.json) of exactly these texts, tokenizers and settings: that it chose all rates, or whose it did
    not choose, which is an inequality. Without one: that rates set by hand differ; None if all have the same one.
    """
    used = {entry.name: entry.runs[0].report.train.learning_rate for entry in entries}
    tuning = read_tuning(folder)
    found = {} if tuning is None else _covered(tuning, experiment, entries)
    if tuning is None or not found:
        if len(set(used.values())) == 1:
            return None
        return f"learning rates differ and no grid chose them: {_rates_of(used)}"
    grid = f"{_listed(tuning['rates'])}; bits per character on the val sample after {_budget(tuning['budget'])}"
    chosen = [name for name in used if name in found and found[name]["best"] == used[name]]
    if len(chosen) == len(used):
        edge = [name for name in used if found[name]["edge"]]
        at_edge = f" (at the edge of the grid for {', '.join(edge)})" if edge else ""
        return f"learning rate chosen for every contestant by the same grid ({grid}): {_rates_of(used)}{at_edge}"
    others = [_not_chosen(name, used[name], found.get(name)) for name in used if name not in chosen]
    if not chosen:
        return f"learning rates are not those that the grid found best ({grid}): {', '.join(others)}"
    tuned = _rates_of({name: used[name] for name in chosen})
    return f"learning rate tuned for some contestants only, by a grid ({grid}): {tuned}, but not {', '.join(others)}"


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
            tokenizer_fingerprint=report.tokenizer.fingerprint,
            texts=report.stored["inputs"]["texts"],
        )
        if found is not None and found["inputs"] == inputs:
            covered[entry.name] = found
    return covered


def _not_chosen(name: str, rate: float, found: Mapping[str, Any] | None) -> str:
    return f"{name} {rate:g} " + ("(not tried)" if found is None else f"(best in the grid: {found['best']:g})")


def _rates_of(rates: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {rate:g}" for name, rate in rates.items())


def _budget(budget: Mapping[str, Any]) -> str:
    return f"{budget['amount']:,} {budget['unit']}"


def _listed(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:g}" for rate in rates)
