"""From variables of Make to the options of a command.

Make and the shell would expand what a user typed: `$5`, quotes, `$(…)`. So the Makefile puts no variable into a command
line. Variables come by the environment, which nobody expands, and become options here.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from compare.command_line.commands import EXPERIMENTS, module_of
from data.config import require
from data.errors import ConfigError
from data.numbers import read_whole, shown

VALUES = {
    "tokenizer": {
        "VOCAB": "--vocab",
        "TRAINING_CHARACTERS": "--training-characters",
        "MIN_PAIR_FREQUENCY": "--min-pair-frequency",
        "ENGINE": "--engine",
    },
    "sample": {
        "CONTESTANT": "--contestant",
        "PROMPT": "--prompt",
        "PROMPT_FILE": "--prompt-file",
        "PROMPTS": "--prompts",
        "SAMPLES": "--samples",
        "TOKENS": "--tokens",
        "TEMPERATURE": "--temperature",
        "TOP_K": "--top-k",
        "TOP_P": "--top-p",
        "STOP": "--stop",
        "SEED": "--seed",
        "RUN_SEED": "--run-seed",
    },
    "export": {"CONTESTANT": "--contestant", "FORMAT": "--format", "OUT": "--out", "RUN_SEED": "--run-seed"},
    "score": {"MODEL": "--model", "TEXT": "--text", "BLOCK": "--block", "STRIDE": "--stride"},
    "marginal": {
        "CONTESTANT": "--contestant",
        "CHARACTERS": "--characters",
        "SAMPLES": "--samples",
        "SEED": "--seed",
    },
    "trace": {
        "KIND": "--kind",
        "TIE_BREAK": "--tie-break",
        "SPLIT_PATTERN": "--split-pattern",
        "MERGES": "--merges",
        "MIN_PAIR_FREQUENCY": "--min-pair-frequency",
    },
    "study": {"MERGES": "--merges", "WIDTH": "--width", "GPT2": "--gpt2"},
    "compare": {"EXPERIMENTS": "--experiments", "FAIL_IF": "--fail-if"},
    "tune": {"RATES": "--rates", "BATCHES": "--batches", "BUDGET": "--budget"},
    "bench": {"ROWS": "--rows", "PEERS": "--peers", "REPEAT": "--repeat"},
    "check-gpu": {"PEAK_TFLOPS": "--peak-tflops", "SECONDS_OF_TRAINING": "--seconds"},
    "bench-train": {"NANOGPT": "--nanogpt", "REPEAT": "--repeat", "THREADS": "--threads"},
    "speedrun": {
        "TEXT": "--text",
        "NANOGPT": "--nanogpt",
        "SEEDS": "--seeds",
        "TARGET": "--target",
        "PRESETS": "--presets",
        "SLICE": "--slice",
        "THREADS": "--threads",
    },
    "ablate": {
        "CONTESTANT": "--contestant",
        "UNIT": "--unit",
        "AMOUNT": "--amount",
        "SEEDS": "--seeds",
        "ONLY": "--only",
    },
}
"""Command -> variable -> the option that takes its value as it is."""

SWITCHES = {
    "train": {"FORCE": "--force"},
    "trace": {"JSON": "--json"},
    "sample": {"JSON": "--json"},
    "score": {"JSON": "--json"},
    "bench": {"QUICK": "--quick"},
    "bench-train": {"NO_COMPILE": "--no-compile"},
}
"""Command -> variable -> the option that it turns on, with 1."""

LISTS = {command: {"SET": "--set"} for command in EXPERIMENTS} | {"speedrun": {"SET": "--set", "MODERN": "--modern"}}
"""Command -> variable -> the option that is given once for each of its settings."""

TARGET = "MAKE_TARGET"
"""Where the Makefile puts the name of the target, such as train-bpe."""
_TRAIN = "train-"
_MOST_PROCESSES = 1024
_ON, _OFF = ("1", "y", "yes", "true", "on"), ("", "0", "n", "no", "false", "off")
_BEFORE_A_QUOTE = ("", "=", "[", "{", "(", ",", ":", " ")


def arguments_of(command: str, environment: Mapping[str, str]) -> list[str]:
    """The arguments that `command` gets. An empty variable is one that was not given. Raises ConfigError."""
    arguments = []
    if command in EXPERIMENTS:
        arguments.append(f"--config={environment.get('EXPERIMENT') or EXPERIMENTS[command]}")
    for name, option in LISTS.get(command, {}).items():
        arguments += [f"{option}={setting}" for setting in settings_of(environment.get(name, ""), name)]
    if command == "train":
        arguments.append(f"--contestant={environment[TARGET].removeprefix(_TRAIN)}")
    for name, option in VALUES.get(command, {}).items():
        if environment.get(name):
            arguments.append(f"{option}={environment[name]}")
    for name, option in SWITCHES.get(command, {}).items():
        written = environment.get(name, "").strip().lower()
        require(written in _ON + _OFF, f"{name}: expected 1 or 0, found {shown(environment.get(name))}")
        if written in _ON:
            arguments.append(option)
    if command == "trace" and environment.get("TEXT"):
        arguments += ["--", environment["TEXT"]]
    return arguments


def check_experiments(name: str, environment: Mapping[str, str]) -> None:
    """Raise ConfigError where one experiment and several are given to the command `name`, which can take both."""
    if name == "compare" and environment.get("EXPERIMENTS"):
        own = environment.get("EXPERIMENT", "")
        require(not own, f"both EXPERIMENT {shown(own)} and EXPERIMENTS are given; give one of them")


def settings_of(written: str, name: str) -> list[str]:
    """The settings in `written`, parted by white space outside quotes and brackets; `name` is for messages.

    Quotes stay, because the value is read as in the file, unless they stand around a whole setting.

    >>> settings_of("train.seed=2 seeds=[1, 2]  root='my runs'", "SET")
    ['train.seed=2', 'seeds=[1, 2]', "root='my runs'"]
    >>> settings_of('"root=my runs" corpus.separator="|"', "SET")
    ['root=my runs', 'corpus.separator="|"']
    """
    found = [""]
    quote, depth = "", 0
    for character in written:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" and found[-1][-1:] in _BEFORE_A_QUOTE:
            quote = character
        elif character.isspace() and depth == 0:
            found.append("")
            continue
        else:
            depth = max(0, depth + (character in "[{") - (character in "]}"))
        found[-1] += character
    if quote or depth:
        what = f"the quote {quote}" if quote else "a bracket"
        raise ConfigError(f"{name}: {what} is opened and not closed in {shown(written)}")
    return [_without_outer_quotes(setting) for setting in found if setting]


def _without_outer_quotes(setting: str) -> str:
    is_quoted = len(setting) > 1 and setting[0] in "\"'" and setting[-1] == setting[0]
    return setting[1:-1] if is_quoted else setting


def program_of(command: str, environment: Mapping[str, str]) -> list[str] | None:
    """The program that has to run `command` in the place of this one, if there is one. Raises ConfigError."""
    module = module_of(command)
    if command == "bench" and environment.get("BENCH_PYTHON"):
        return [environment["BENCH_PYTHON"], "-m", module]
    if command == "train" and "PROCESSES" in environment:
        launcher = ["-m", "torch.distributed.run", "--standalone"]
        return [sys.executable, *launcher, f"--nproc-per-node={processes_of(environment['PROCESSES'])}", "-m", module]
    return None


def processes_of(written: str) -> int:
    """The number of processes in PROCESSES. Raises ConfigError."""
    try:
        processes = read_whole(written)
    except ValueError:
        processes = 0
    require(
        1 <= processes <= _MOST_PROCESSES,
        f"PROCESSES: expected a whole number from 1 to {_MOST_PROCESSES:,}, found {shown(written)}",
    )
    return processes


def run_program(program: Sequence[str], name: str, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by `program`, which runs the command `name`. Raises ConfigError where that cannot start."""
    environment = dict(os.environ)
    if name == "train" and "OMP_NUM_THREADS" not in environment:
        processes = processes_of(environment["PROCESSES"])
        environment["OMP_NUM_THREADS"] = str(-(-(os.cpu_count() or 1) // processes))
    try:
        os.execvpe(program[0], [*program, *arguments], environment)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot run {shown(program[0])}: {reason}; BENCH_PYTHON names a Python") from error
