"""Tiny ladders for the tests, what their files hold, and a process that is killed at a chosen write."""

import dataclasses
import json
import os
import signal
from pathlib import Path
from typing import Any

import torch

from model import checkpoint
from model.ladder import Ladder, ladder_of, rung_settings, train_ladder
from model.run_spec import RunSpec
from model.settings import Budget, LadderConfig, TrainConfig
from model.training.processes import Processes
from model_helpers import ALPHABET, ENGLISH, CharTable, encoded_splits, json_lines, tiny_model, tiny_train
from tokenizer.encode_splits import load_encoded

TOKENS = CharTable(ALPHABET, ["the ", "er"])
House = tuple[Path, Any]
"""The folder of encoded splits, and the splits."""


def spec_of(house: House, folder: Path, config: TrainConfig, **model: Any) -> RunSpec:
    root, splits = house
    return RunSpec(
        contestant="bpe",
        tokenizer=TOKENS,
        tokenizer_path=root / "tokenizer.json",
        splits=splits,
        model_config=tiny_model(TOKENS.vocab_size, **model),
        train_config=config,
        folder=folder,
    )


def ladder_in(
    house: House,
    folder: Path,
    budget: Budget,
    warmup: int = 2,
    rungs: int = 3,
    also: tuple[int, ...] = (),
    model: dict[str, Any] | None = None,
    **changes: Any,
) -> Ladder:
    config = tiny_train(**({"val_every_fraction": 0.2, "log_every_steps": 2} | changes))
    ladder = LadderConfig(rungs)
    config = rung_settings(dataclasses.replace(config, budget=budget), ladder, budget.amount, warmup)
    amounts = sorted({*ladder.amounts(budget), *also})
    return ladder_of(spec_of(house, folder, config, **(model or {})), amounts)


def files_of(ladder: Ladder) -> dict[str, Any]:
    """What the rungs of a ladder are, times left out."""
    found: dict[str, Any] = {}
    for rung in ladder.rungs:
        amount = rung.train_config.budget.amount
        for name in ("last.pt", "best.pt"):
            found[f"{amount}/{name}"] = without_times(checkpoint.load(rung.folder / name))
        found[f"{amount}/metrics.jsonl"] = json_lines(rung.folder / "metrics.jsonl")
        found[f"{amount}/config.json"] = json.loads((rung.folder / "config.json").read_text(encoding="utf-8"))
    return found


def without_times(state: dict[str, Any]) -> dict[str, Any]:
    spent = {key: value for key, value in state["spent"].items() if "seconds" not in key}
    return {key: value for key, value in {**state, "spent": spent}.items() if key != "metrics_sha256"}


def assert_same(left: Any, right: Any, where: str = "") -> None:
    assert type(left) is type(right), where
    if isinstance(left, torch.Tensor):
        assert torch.equal(left, right), where
    elif isinstance(left, dict):
        assert left.keys() == right.keys(), where
        for key in left:
            assert_same(left[key], right[key], f"{where}/{key}")
    elif isinstance(left, list | tuple):
        assert len(left) == len(right), where
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            assert_same(one, other, f"{where}[{index}]")
    else:
        assert left == right, where


def house_in(root: Path) -> House:
    """Encoded splits and a tokenizer below `root`."""
    return root, encoded_splits(root, TOKENS, ENGLISH, ENGLISH[:3], ENGLISH[:2])


def train_killed(processes: Processes | None, root: Path, folder: Path, settings: dict[str, Any], number: int) -> int:
    """Train a ladder over splits that lie in `root`; SIGKILL ends the process before its replacement `number` of a
    file. Returns how many files it replaced.
    """
    splits = load_encoded(root / "encoded", TOKENS, tokenizer_path=root / "tokenizer.json", make="make encode")
    original, count = Path.replace, 0

    def counted(self: Path, target: Path) -> Path:
        nonlocal count
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1
        return original(self, target)

    Path.replace = counted  # type: ignore[method-assign, assignment]
    try:
        train_ladder(ladder_in((root, splits), folder, **settings), progress=False, processes=processes)
    finally:
        Path.replace = original  # type: ignore[method-assign]
    return count
