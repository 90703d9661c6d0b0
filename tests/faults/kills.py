"""The chain killed, or refused by the system, at a write: what is there is whole, and the rerun ends the same."""

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import yaml

from chain_helpers import CHAIN, make_chain
from fault_chain import Ended, run_command, without_pictures
from stubs import Fault, in_child

ERRORS = ("ENOSPC", "EROFS", "EIO", "EMFILE")
UNFINISHED = ("last.pt", "best.pt", "metrics.jsonl", "config.json", "baselines.json", "manifest.json")
"""Files that a step writes more than once, so that an earlier state is no half file."""
_TIMED = re.compile(r"seconds|per_second|sha256|^spent$|^about$|^outputs$|^files$|^reports$")
_WORDS = re.compile(r".*\b(seconds?|tokens per second)\b.*|\\?\d+\.\d+ s\b")


def start(folder: Path) -> Path:
    """An experiment of which nothing is made."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make_chain(folder)
    values = yaml.safe_load((folder / CHAIN).read_text(encoding="utf-8"))
    values["ladder"] = {"rungs": 2}
    values["train"]["budget"]["amount"] = 2_000
    (folder / CHAIN).write_text(yaml.safe_dump(values), encoding="utf-8")
    return folder


def chain(folder: Path) -> Ended:
    """The whole chain, and an export."""
    with without_pictures():
        ended = run_command(folder, "compare")
        return ended if ended.code else run_command(folder, "export")


def contents(folder: Path) -> dict[str, Any]:
    """Every file below `run` and `out`, hidden ones too, with what it says; times and hashes over them left out."""
    found = {}
    for top in ("run", "out"):
        for path in sorted((folder / top).rglob("*")):
            if path.is_file() and not path.name.endswith(".lock"):  # taken over by the next one that needs it
                found[path.relative_to(folder).as_posix()] = _content(path)
    return found


def _content(path: Path) -> Any:
    if path.suffix == ".pt" and "checkpoints" in path.parts:
        return _without_times(torch.load(path, weights_only=True))
    if path.suffix == ".json" and "tokenizer" not in path.name:
        return _without_times(json.loads(path.read_text(encoding="utf-8")))
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8").split("\n")
        return [_without_times(json.loads(line)) for line in lines[:-1]]
    if path.parent.name == "reports":
        return None if path.name in ("index.html", "table.csv", "table.tex") else _words(path)
    return path.read_bytes()


def _words(path: Path) -> Any:
    if path.suffix in (".svg", ".png", ".npz"):
        return path.stat().st_size
    lines = path.read_text(encoding="utf-8").split("\n")
    return [line for line in lines if not _WORDS.match(line) and "- seconds" not in line]


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if not _TIMED.search(str(key))}
    if isinstance(value, list | tuple):
        return [_without_times(item) for item in value]
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return _WORDS.sub("", value) if isinstance(value, str) else value


def differences(expected: dict[str, Any], found: dict[str, Any], *, only_there: bool = False) -> list[str]:
    """Files that differ, are missing, or are left over; with `only_there` missing and unfinished ones are all right."""
    wrong = [f"left over: {name}" for name in found.keys() - expected.keys() if not (only_there and "/." in name)]
    for name, content in expected.items():
        if name not in found:
            # A trunk that was killed after its last branch is not needed; a greater budget trains it again.
            wrong += [] if only_there or name.endswith("trunk/last.pt") else [f"missing: {name}"]
        elif found[name] != content and not (only_there and Path(name).name in UNFINISHED):
            wrong.append(f"other: {name}")
    return sorted(wrong)


class Killed:
    """A part of the campaign: a reference, and trials against it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "chain"
        start(self.folder)
        fault = Fault(below=self.folder)
        ended = in_child(lambda: chain(self.folder), fault)
        assert ended.code == 0, ended
        self.expected, self.num_writes = contents(self.folder), fault.count

    def trials(self, seed: int) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """Deaths at every step of every write, in an order that depends on `seed`; every third at a moment instead."""
        rng = random.Random(seed)
        numbers = rng.sample(range(self.num_writes), self.num_writes)
        for index, number in enumerate(numbers):
            yield f"write {number}", lambda number=number: self.killed(number)
            if index % 3 == 2:
                after = round(rng.uniform(0.0, 2.0), 3)
                yield f"after {after} s, {index}", lambda after=after: self.killed(None, after)

    def refusals(self, seed: int) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """Every error at every write, in an order that depends on `seed`."""
        pairs = [(number, name) for number in range(self.num_writes) for name in ERRORS]
        random.Random(seed).shuffle(pairs)
        for number, name in pairs:
            yield f"{name} at write {number}", lambda number=number, name=name: self.refused(number, name)

    def killed(self, number: int | None, after: float | None = None) -> str | None:
        """Die at write `number` or `after` seconds, look at what is there, run again; returns what is wrong."""
        start(self.folder)
        ended = in_child(lambda: chain(self.folder), Fault(number, below=self.folder), after=after)
        if ended.code not in (-9, 0):
            return f"ended with {ended.code}: {ended.err[-1000:]}"
        return self._rerun()

    def refused(self, number: int, name: str) -> str | None:
        """Meet an error at write `number` and at all later ones; returns what is wrong."""
        start(self.folder)
        fault = Fault(number, name, below=self.folder)
        ended = in_child(lambda: chain(self.folder), fault)
        if ended.code == 0 and fault.last.split(" ")[0] not in ("write", "open", "replace", "fsync"):
            return None  # the write was the last one, and its end
        if ended.code != 2:
            return f"{fault.last}: exit code {ended.code}: {ended.err[-1500:]}"
        said = ended.err.strip().split("\n")[-1]
        cause = {"ENOSPC": "No space", "EROFS": "Read-only", "EIO": "Input/output", "EMFILE": "Too many open"}[name]
        if cause not in said or not re.search(r"run/|out\b|chain", said):
            return f"{fault.last}: path and cause are not said: {said}"
        return self._rerun()

    def _rerun(self) -> str | None:
        try:
            halves = differences(self.expected, contents(self.folder), only_there=True)
        except (ValueError, RuntimeError, EOFError) as error:
            return f"a half file: {error!r}"
        ended = in_child(lambda: chain(self.folder), Fault(below=self.folder))
        if ended.code != 0:
            return f"the rerun ended with {ended.code}: {ended.err[-1000:]}"
        wrong = halves + differences(self.expected, contents(self.folder))
        return "; ".join(wrong[:5]) or None
