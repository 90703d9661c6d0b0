"""Learning rates and batch sizes chosen by one grid for all contestants: the grid, its identity, what its runs decide.

A rate that suits one tokenizer need not suit another, and a window of BPE spans more text than one of characters, so a
comparison under one hand-set pair may favour somebody. `compare/grids/runner.py` trains the grid;
`compare/grids/tuned.py` has what is printed of its result and what a report may say of it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare.experiment import Experiment
from data.config import require
from data.errors import ConfigError, DataError, ReportError, command
from data.files import canonical_json, read_json, sha256_text
from data.inputs import SEAL, is_sealed
from data.numbers import Range, read_number, read_whole, shown
from model.checkpoint import FREE_SETTINGS, TRAINING_VERSION
from model.settings import LEARNING_RATE, Budget

JSON = "tune.json"
VERSION = 4
"""Of what a grid's result holds and how it is found; `make tune` writes an older one again."""
DEFAULT_RATES = (1e-3, 2e-3, 4e-3, 8e-3)
DEFAULT_BATCHES = (8, 16, 32)
OWN = "own"
"""In place of batch sizes: every contestant keeps the one that its file gives it."""
BUDGET_SHARE = 0.1
"""Of the experiment's budget, for each run of the grid, unless a budget is given."""
_BATCH_SIZE = Range(1, 10**6)
# What a grid does not fix: the rate it varies, its own budget, and the seed, of which it takes the first. A ladder's
# warm-up is an amount, and a share of another budget than the grid's. Batch sizes are free where the grid varies them.
_FREE_IN_A_GRID = FREE_SETTINGS | {"learning_rate", "budget", "seed", "warmup_amount"}


@dataclass(frozen=True)
class Grid:
    """The rates and batch sizes that every contestant is trained with, and what each of these runs may spend."""

    rates: tuple[float, ...]
    """Ascending, distinct, at least two."""
    batches: tuple[int, ...] | None
    """In windows, ascending, distinct, at least one; None: each contestant's own."""
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
    require(len(set(rates)) == len(rates), f"rates: must be distinct, found {listed(sorted(rates))}")
    return tuple(sorted(rates))


def parse_batches(written: str) -> tuple[int, ...] | None:
    """The batch sizes of `BATCHES=8,16` (commas or spaces), ascending; None for `own`. Raises ConfigError.

    >>> parse_batches("16, 8")
    (8, 16)
    """
    if written.strip().lower() == OWN:
        return None
    batches = []
    for word in re.split(r"[,\s]+", written.strip(", ")):
        try:
            batches.append(read_whole(word))
        except ValueError as error:
            reason = f" ({error})" if str(error) else ""
            raise ConfigError(
                f"batches: {shown(word)} is not a whole number{reason}; write windows in a step like 8,16,32, or {OWN}"
            ) from None
    for batch in batches:
        _BATCH_SIZE.check("batches: each", batch)
    require(len(set(batches)) == len(batches), f"batches: must be distinct, found {listed(sorted(batches))}")
    return tuple(sorted(batches))


def grid_of(
    experiment: Experiment,
    rates: Sequence[float] = DEFAULT_RATES,
    amount: int | None = None,
    *,
    batches: Sequence[int] | str | None = None,
) -> Grid:
    """The grid for `experiment`; `amount` is in the unit of its budget, by default BUDGET_SHARE of the budget.

    `batches` are windows in a step; OWN leaves each contestant its own batch size; None takes DEFAULT_BATCHES, or OWN
    where a contestant's batch is given in characters or the budget in steps. Raises ConfigError where contestants do
    not share a budget to take that share of, or not even its unit, and for several batch sizes under a budget in steps.
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
    if unit == "steps":
        require(
            batches is None or isinstance(batches, str) or len(batches) == 1,
            f"{experiment.path}: under a budget in steps a larger batch sees more text, so batch sizes cannot be "
            f"compared; take another unit of train.budget, or BATCHES={OWN}",
        )
        batches = OWN if batches is None else batches
    if batches is None:
        has_text = any(contestant.train.batch is not None for contestant in experiment.contestants.values())
        batches = OWN if has_text else DEFAULT_BATCHES
    sizes = None if isinstance(batches, str) else tuple(sorted(batches))
    return Grid(tuple(sorted(rates)), sizes, Budget(unit, amount))


def inputs_of(
    *,
    model: Mapping[str, Any],
    train: Mapping[str, Any],
    varies_batches: bool,
    tokenizer_fingerprint: str,
    texts: Mapping[str, Any],
) -> dict[str, Any]:
    """Hashes of what a pair was chosen for: it says nothing of a run that differs in any of them.

    `texts` are train and val as `data.inputs.inputs_of` lists them; others are left aside.
    """
    free = _FREE_IN_A_GRID | ({"batch_size"} if varies_batches else set())
    settings = {
        "model": dict(sorted(model.items())),
        "train": {key: value for key, value in sorted(train.items()) if key not in free},
    }
    return {
        "settings_sha256": sha256_text(canonical_json(settings)),
        "tokenizer_fingerprint": tokenizer_fingerprint,
        "training_version": TRAINING_VERSION,
        "texts": {name: texts[name] for name in ("train", "val")},
    }


def outcome_of(tried: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the runs of one contestant decide: `tried`, the best pair, and of which of the two it is the grid's edge.

    `tried` is ascending by "batch_size", then by "learning_rate"; its "val_sample_bits_per_char" is None where the run
    diverged. The lowest figure wins, of equal ones the first. "edge" names the keys whose best value is the least or
    the greatest of several; a batch size of 1 is none, there is nothing below. Raises ConfigError if all diverged.
    """
    finite = [one for one in tried if one["val_sample_bits_per_char"] is not None]
    rates = sorted({one["learning_rate"] for one in tried})
    require(bool(finite), f"training diverged with every rate of the grid ({listed(rates)}); give lower RATES")
    best = min(finite, key=lambda one: one["val_sample_bits_per_char"])
    edge = []
    for key in ("batch_size", "learning_rate"):
        values = sorted({one[key] for one in tried})
        is_least, is_greatest = best[key] == values[0], best[key] == values[-1]
        if len(values) > 1 and (is_greatest or (is_least and not (key == "batch_size" and best[key] == 1))):
            edge.append(key)
    chosen = {key: best[key] for key in ("batch_size", "learning_rate")}
    return {"tried": [dict(one) for one in tried], "best": chosen, "edge": edge}


def read_tuning(folder: Path) -> dict[str, Any] | None:
    """tune.json in `folder`; None if there is none or if it is damaged, edited or older: run `make tune` again."""
    if not (folder / JSON).exists():
        return None
    try:
        stored = read_json(folder / JSON)
    except DataError:
        return None
    return stored if is_sealed(stored) and stored.get("version") == VERSION else None


def tuning_beside(folder: Path) -> dict[str, Any] | None:
    """tune.json in `folder`, for a report: None if there is none or if it is older.

    Raises ReportError if it is damaged or edited: a report that left it out would say less than it was made to say.
    """
    path = folder / JSON
    if not path.exists():
        return None
    again = f"run {command('make tune')} to make it again, or remove the file"
    try:
        stored = read_json(path)
    except DataError as error:
        raise ReportError(f"{error.text}; {again}") from error
    if is_sealed(stored):
        return stored if stored.get("version") == VERSION else None
    if isinstance(stored, dict) and SEAL not in stored and stored.get("version") != VERSION:
        return None
    raise ReportError(f"{path} is not as it was written; {again}")


def listed(values: Sequence[float]) -> str:
    """Rates or batch sizes in words."""
    return ", ".join(f"{value:g}" for value in values)
