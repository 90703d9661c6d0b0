"""Damage: files of a finished experiment that are cut short, changed in one bit, or exchanged."""

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fault_chain import Ended, Workshop, figures_of, run_command

READERS = {
    "run/checkpoints/bpe/best.pt": ("compare", "sample", "marginal", "export"),
    "run/checkpoints/bpe/last.pt": ("compare", "sample"),
    "run/checkpoints/bpe/tokenizer.json": ("compare", "sample", "marginal", "export"),
    "run/checkpoints/bpe/config.json": ("compare", "sample"),
    "run/reports/sweep.json": ("compare", "sweep"),
    "run/reports/tune.json": ("compare", "tune"),
    "run/reports/marginal.json": ("compare", "marginal"),
}
"""File -> the commands that read it. A run of the grid is read by `tune`, everything else by `compare`."""


@dataclass(frozen=True)
class Trial:
    """One damage of one file, and the command that is run then."""

    file: str
    name: str
    command: str
    change: Callable[[Path], None]

    @property
    def key(self) -> str:
        """What the campaign remembers it by."""
        return f"{self.command} {self.file} {self.name}"


def artefacts(folder: Path) -> list[str]:
    """All files that the chain wrote, of one run of the grid only."""
    files = sorted(path.relative_to(folder).as_posix() for path in (folder / "run").rglob("*") if path.is_file())
    return [file for file in files if not file.startswith("run/tune/char")]


def trials(finished: Path, seed: int, *, cuts: int = 20, flips: int = 20) -> Iterator[Trial]:
    """The campaign's trials in an order that depends on `seed` only: each file's are spread over the whole list."""
    found = [one for file in artefacts(finished) for one in _of_file(finished, file, seed, cuts, flips)]
    random.Random(seed).shuffle(found)
    yield from found


def _of_file(finished: Path, file: str, seed: int, cuts: int, flips: int) -> Iterator[Trial]:
    raw = (finished / file).read_bytes()
    rng = random.Random(f"{seed} {file}")
    changes: dict[str, Callable[[Path], None]] = {"removed": Path.unlink, "emptied": _written(b"")}
    for length in sorted(rng.sample(range(1, len(raw)), min(cuts, max(len(raw) - 1, 0))) if raw else []):
        changes[f"cut to {length}"] = _written(raw[:length])
    for _ in range(flips if raw else 0):
        at, bit = rng.randrange(len(raw)), rng.randrange(8)
        changes[f"bit {bit} of byte {at}"] = _written(raw[:at] + bytes([raw[at] ^ 1 << bit]) + raw[at + 1 :])
    for name, other in _others(finished, file):
        changes[f"exchanged with {name}"] = _copied(other)
    commands = READERS.get(file, ("tune",) if file.startswith("run/tune/") else ("compare",))
    for name, change in changes.items():
        for command in commands:
            if name == "removed" and command == "compare" and file in READERS and "/reports/" in file:
                continue  # a comparison takes up another command's result only if it is there
            yield Trial(file, name, command, change)


def _others(finished: Path, file: str) -> Iterator[tuple[str, Path]]:
    """Files of the same kind that belong elsewhere: of the other contestant, split, rung, or rate."""
    pairs = (
        ("/bpe/", "/char/"),
        ("/char/", "/bpe/"),
        ("encoded_bpe", "encoded"),
        ("bpe_tokenizer", "char_tokenizer"),
        ("test_", "val_"),
        ("train_", "test_"),
        ("best.pt", "last.pt"),
        ("/bpe/", "/bpe/rungs/1000/"),
        ("/rungs/1000/", "/"),
        ("lr_0.001", "lr_0.002"),
    )
    for this, that in pairs:
        other = file.replace(this, that)
        if other != file and (finished / other).is_file():
            yield other, finished / other


def _written(raw: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(raw) and None


def _copied(other: Path) -> Callable[[Path], None]:
    return lambda path: shutil.copyfile(other, path) and None


def wrong(trial: Trial, ended: Ended, expected: str) -> str | None:
    """What is wrong with how a command ended after damage: None if it named the damage, or gave the right figures."""
    figures = figures_of(trial.command, ended.out)
    if ended.code == 0:
        return None if figures == expected else f"other figures: {_difference(expected, figures)}"
    if ended.code != 2:
        return f"exit code {ended.code}: {ended.err[-1500:]}"
    said = [line for line in ended.err.strip().split("\n") if line]
    if figures:
        return f"refused after figures were printed: {figures[:200]}"
    parts = Path(trial.file).parts[-2:]
    if not said or not any(part in said[-1] for part in parts):
        return f"the file is not named: {ended.err[-500:]}"
    return None


def _difference(left: str, right: str) -> str:
    for one, other in zip(left.split("\n"), right.split("\n"), strict=False):
        if one != other:
            return f"{one!r} became {other!r}"
    return f"{len(left)} characters became {len(right)}"


def perform(workshop: Workshop, trial: Trial, expected: str) -> str | None:
    """Damage, run, put back; returns what is wrong."""
    trial.change(workshop.path(trial.file))
    try:
        return wrong(trial, run_command(workshop.folder, trial.command), expected)
    finally:
        workshop.put_back()
