"""Training seconds to a stated val loss, both presets next to nanoGPT's model and settings.

`--text FILE` is cut 90 to 10 into train and val, as nanoGPT prepares tiny Shakespeare, with its published 1.88 nats per
character as the target; without it the experiment's own train and val splits serve, with a target of their own.
"""

import os
import platform
from collections.abc import Sequence
from typing import Any

import torch

from bench import nanogpt, race
from bench.race import Task
from compare import cli
from compare.options import folder, number, whole
from compare.steps import Steps
from data.config import build, convert, did_you_mean, require
from data.errors import DataError
from data.files import write_json
from data.numbers import Range
from data.sources.local_text import read_own_text
from data.sources.paths import parsed
from data.yaml_file import parse_yaml
from model.settings import TrainConfig

STEPS = Range(1, 10**9)
TARGET = 1.88  # nanoGPT's published figure for tiny Shakespeare
OFFLINE_TARGET = 2.0  # for the offline corpus, where nobody has published one
VAL_CHARACTERS = 100_000  # of an experiment's val split: about as many as tiny Shakespeare has


def texts_of(path: str) -> tuple[str, str]:
    """The first 90 % and the rest of a file. Raises DataError when it is too short for a window in each."""
    text = read_own_text(parsed(path))
    border = int(len(text) * 0.9)
    train, val = text[:border], text[border:]
    if len(val) < race.SIZES["block_size"] + 1:
        raise DataError(f"{path} has {len(text)} characters; a speedrun needs at least {race.SIZES['block_size']}0")
    return train, val


def settings_of(preset: str, given: list[str]) -> dict[str, Any]:
    """The settings of `preset`, some of them replaced. Raises ConfigError for a setting that does not exist."""
    replaced = {name: parse_yaml(value, f"--{preset} {name}") for name, _, value in (g.partition("=") for g in given)}
    num_steps = convert(replaced.pop("steps", race.OURS[preset]["steps"]), int, f"--{preset} steps")
    STEPS.check(f"--{preset} steps", num_steps)
    settings = {name: value for name, value in race.OURS[preset].items() if name != "steps"}
    settings |= replaced
    config = build(TrainConfig, settings, f"--{preset}")
    return {"steps": num_steps} | {name: getattr(config, name) for name in settings}


def main(argv: Sequence[str] | None = None) -> None:
    """Command `speedrun`."""
    parser = cli.parser(__doc__)
    parser.set_defaults(config="demo")
    parser.add_argument("--text", default="", help="a text file; the experiment's splits by default")
    parser.add_argument("--nanogpt", type=folder, help="folder with nanoGPT's model.py")
    parser.add_argument(
        "--target",
        type=number(Range(1e-6, 1000)),
        help=f"nats per character; {TARGET} for --text, else {OFFLINE_TARGET}",
    )
    for preset in race.OURS:
        parser.add_argument(
            f"--{preset}",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="replace one of the preset's settings, such as steps=300 or learning_rate=0.004; may be repeated",
        )
    parser.add_argument("--presets", default=",".join(race.OURS), help="of ours, those to run (%(default)s)")
    parser.add_argument("--seeds", type=whole(Range(1, 1000)), default=3, help="how many seeds (%(default)s)")
    parser.add_argument("--threads", type=whole(Range(1, 1024)), default=torch.get_num_threads())
    parser.add_argument(
        "--slice", type=number(Range(0.001, 10**6)), default=2.0, help="seconds of training between evaluations"
    )
    parser.add_argument(
        "--limit", type=number(Range(0.001, 10**9)), default=float("inf"), help="seconds of training a run, at most"
    )
    arguments = parser.parse_args(argv)
    presets = arguments.presets.split(",")
    for preset in presets:
        require(preset in race.OURS, f"--presets: no preset {preset!r}{did_you_mean(preset, list(race.OURS))}")
    peer = str(arguments.nanogpt or "")
    nanogpt.check_folder(peer)
    steps = Steps(cli.experiment_of(arguments))
    if arguments.text:
        train, val = texts_of(arguments.text)
    else:
        splits = steps.data()
        train, val = splits["train"].text, splits["val"].text[:VAL_CHARACTERS]
    target = arguments.target or (TARGET if arguments.text else OFFLINE_TARGET)
    ours = {preset: settings_of(preset, getattr(arguments, preset)) for preset in presets}
    task = Task(train, val, target, arguments.threads, arguments.slice, ours)
    print(f"{len(train):,} characters of train, {len(val):,} of val; {arguments.threads} threads", flush=True)
    results = race.measure(
        task,
        range(1, arguments.seeds + 1),
        peer,
        echo=lambda line: print(line, flush=True),
        limit=arguments.limit,
    )
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}"
    path = steps.layout.reports / "speedrun.json"
    facts = {"torch": str(torch.__version__), "machine": machine}
    write_json(path, facts | race.as_json(task, results))
    print(f"\n{race.table(task, results)}\n")
    for result in results:
        print(f"{result.name}: {result.settings}")
    print(f"wrote {path}")


if __name__ == "__main__":
    cli.run(main)
