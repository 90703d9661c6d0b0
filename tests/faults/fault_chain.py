"""The small finished experiment that the fault campaign damages, and commands that run on it inside this process."""

import contextlib
import importlib
import io
import re
import shutil
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from chain_helpers import CHAIN, make_chain
from compare import cli, report
from compare.page.curves import curve_paths

RUN = Path("run")
COMMANDS: dict[str, tuple[str, ...]] = {
    "compare": (),
    "sample": ("--contestant", "bpe", "--tokens", "5", "--seed", "1", "--samples", "1", "--prompt", "the "),
    "marginal": ("--contestant", "bpe", "--characters", "200", "--samples", "4"),
    "sweep": (),
    "tune": ("--rates", "1e-3,2e-3", "--batches", "8", "--budget", "800"),
    "export": ("--contestant", "bpe", "--format", "safetensors", "--out", "out"),
}
"""Every command that reads artefacts, with its options; each leaves the chain finished."""
_STEP = re.compile(r"^(data|tokenizer|encode|train|compare|tune|sweep|marginal|export)\b[^:]*(, [^:]*)?: ")
_NOT_FIGURES = ("Nothing to do", "seconds of training", "tokens per second")
_FOLDER_OF_EXPORT = "out"


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, 1 with a traceback, what it printed, and on stderr."""

    code: int
    out: str
    err: str


def make_fault_chain(folder: Path) -> Path:
    """A finished experiment with a ladder of two budgets and every kind of result; returns `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    make_chain(folder)
    values = yaml.safe_load((folder / CHAIN).read_text(encoding="utf-8"))
    values["ladder"] = {"rungs": 2}
    values["train"]["budget"]["amount"] = 2_000
    (folder / CHAIN).write_text(yaml.safe_dump(values), encoding="utf-8")
    for command in ("compare", "marginal", "sweep", "tune", "export", "compare"):
        ended = run_command(folder, command)
        assert ended.code == 0, ended.err
    return folder


def run_command(folder: Path, command: str, *options: str, config: str = CHAIN) -> Ended:
    """Run `command` on the experiment in `folder`, as its script does; a traceback is exit code 1, as in a process."""
    shutil.rmtree(folder / _FOLDER_OF_EXPORT, ignore_errors=True)
    words = ["--config", config, *(options or COMMANDS.get(command, ()))]
    return run_main(folder, f"scripts.{command}", words)


def run_main(folder: Path, module: str, words: list[str]) -> Ended:
    """Run `main` of `module` with these words in `folder`."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    before = sys.argv
    sys.argv = [module, *words]
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                cli.run(importlib.import_module(module).main)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
            except Exception:
                code = 1
                traceback.print_exc()
    finally:
        sys.argv = before
    if code in (130, 143, 129):  # the campaign itself was stopped
        raise KeyboardInterrupt
    return Ended(code, out.getvalue(), err.getvalue())


def figures_of(command: str, out: str) -> str:
    """The figures that `command` printed: everything from its first blank line or its table on, steps left out."""
    lines = out.split("\n")
    if command == "compare":
        start = next((i for i, line in enumerate(lines) if line.endswith("characters or BPE?")), len(lines))
        lines = [line for line in lines[start:] if not line.startswith(_NOT_FIGURES)]
    elif command == "export":
        return ""
    else:
        mark = {
            "marginal": "contestant ",
            "sweep": "bits on val",
            "tune": ": bits per character on the val",
            "sample": "the ",
        }[command]
        start = next((i for i, line in enumerate(lines) if mark in line), len(lines))
        lines = [line for line in lines[start:] if not _STEP.match(line)]
    return "\n".join(lines).strip()


@contextlib.contextmanager
def without_pictures() -> Iterator[None]:
    """Curves are drawn as empty files: they hold no figure that is read again, and cost a second each."""
    kept: Any = report.draw_curves
    report.draw_curves = lambda path, *_: [one.touch() for one in curve_paths(path)]  # type: ignore[attr-defined]
    try:
        yield
    finally:
        report.draw_curves = kept  # type: ignore[attr-defined]


class Workshop:
    """A copy of the finished chain that is damaged and put back."""

    def __init__(self, finished: Path, folder: Path) -> None:
        self.finished, self.folder = finished, folder
        self.put_back()

    def put_back(self) -> None:
        """The chain as it was finished."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.finished, self.folder)

    def path(self, name: str) -> Path:
        """A file of the copy."""
        return self.folder / name
