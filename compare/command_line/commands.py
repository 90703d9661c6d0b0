"""The commands: what each does, its module, the experiment it takes; how words become a command."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from compare import cli
from compare.options import PROGRAM
from data.config import did_you_mean, require
from data.errors import ConfigError

DEMO = "demo"
EXPERIMENTS = {
    **dict.fromkeys(("study", "bench", "speedrun", "ablate"), DEMO),  # these need no network unless told otherwise
    "sweep": "vocab_sweep",
    **dict.fromkeys(
        ("data", "tokenizer", "encode", "train", "compare", "sample", "marginal", "tune", "plan", "export", "score"),
        cli.DEFAULT_EXPERIMENT,
    ),
}
"""Command -> the experiment it takes where none is given; the other commands take none."""

MODULES = {
    "bench": "bench.tokenizer",
    "bench-train": "bench.train_step",
    "speedrun": "bench.speedrun",
    "ablate": "bench.ablate",
    "check-gpu": "bench.gpu",
}
"""Command -> its module, where that is not scripts.NAME."""


@dataclass(frozen=True)
class Group:
    """Commands that stand together in the list."""

    title: str
    commands: dict[str, str]
    """Name -> what it does, in a line or two."""


GROUPS = (
    Group(
        "The whole comparison",
        {
            "demo": "the whole experiment offline, in a few minutes",
            "all": "the whole experiment of --config: everything below up to the comparison",
        },
    ),
    Group(
        "The same, step by step (each first makes what it needs, and repeats nothing)",
        {
            "data": "fetch or read the text, clean it, divide it into train, val and test",
            "tokenizer": "train the tokenizers",
            "encode": "turn the text into ids",
            "plan": "what training will take: steps, seconds, memory, warnings",
            "train": "train and score the models; train-NAME is short for train --contestant NAME",
            "compare": "the table, the page and the verdict",
        },
    ),
    Group(
        "With a finished model",
        {
            "sample": "let it write",
            "export": "write it as a folder for transformers, or as plain safetensors",
            "score": "bits per character of a model that somebody else trained, next to your own",
            "marginal": "how much it loses by scoring one segmentation only",
        },
    ),
    Group(
        "More about tokenizers and settings",
        {
            "trace": "every round of BPE training on a short text",
            "study": "compression, split patterns, how words are cut",
            "sweep": "bits per character over vocabulary sizes",
            "tune": "the same learning rates tried on every contestant",
        },
    ),
    Group(
        "About this tool itself",
        {
            "calibrate": "the measurement on text of known entropy",
            "bench": "speed of the tokenizers, next to other tools",
            "bench-train": "speed of training, next to nanoGPT",
            "speedrun": "seconds to a loss, next to nanoGPT",
            "ablate": "what each part of the modern preset is worth",
            "check-gpu": "a minute of training on a GPU",
        },
    ),
)
ALIASES = {"all": "compare", DEMO: "compare"}
"""Command -> the command whose module runs it."""
_TRAIN = "train-"


def commands() -> list[str]:
    """The names of all commands, in the order of the list."""
    return [name for group in GROUPS for name in group.commands]


def overview() -> str:
    """What `chars-or-bpe --help` prints."""
    lines = [
        f"usage: {PROGRAM} COMMAND [options]",
        "",
        *wrap(
            "Characters or BPE? For your text and your small GPT, this tool trains tokenizers and the same model on "
            "each of them, and reports bits per character with error bars.",
            100,
        ),
        "",
        f"See it: `{PROGRAM} demo`. For your own text, copy configs/demo.yaml to mine.yaml, write your files into",
        f"its corpus block and a folder for the results into root; then `{PROGRAM} all --config mine.yaml`.",
    ]
    for group in GROUPS:
        lines += ["", f"{group.title}:"]
        lines += [f"  {name:<12} {about}" for name, about in group.commands.items()]
    lines += ["", f"`{PROGRAM} COMMAND --help` lists the options of a command."]
    return "\n".join(lines)


def module_of(command: str) -> str:
    """The module of `command`, which has a function `main`."""
    command = ALIASES.get(command, command)
    return MODULES.get(command, f"scripts.{command}")


def resolved(words: Sequence[str]) -> tuple[str, list[str]]:
    """The command that `words` name and its arguments, with the experiment that it takes where none is given.

    Raises ConfigError for a command that does not exist.

    >>> resolved(["train-bpe", "--force"])
    ('train', ['--config=wikitext2', '--contestant=bpe', '--force'])
    >>> resolved(["compare", "--config", "mine"])
    ('compare', ['--config=wikitext2', '--config', 'mine'])
    """
    command, arguments = words[0], list(words[1:])
    if command.startswith(_TRAIN) and len(command) > len(_TRAIN):
        command, arguments = "train", [f"--contestant={command.removeprefix(_TRAIN)}", *arguments]
    if command not in commands():
        close = did_you_mean(command, commands())
        raise ConfigError(f"no command {command!r}{close}; `{PROGRAM} --help` lists the commands")
    if command == DEMO:
        is_other = any(word == "--config" or word.startswith("--config=") for word in arguments)
        require(not is_other, f"demo always takes configs/demo.yaml; use `{PROGRAM} all` with --config")
        arguments = [*arguments, f"--config={DEMO}"]
    elif experiment := EXPERIMENTS.get(ALIASES.get(command, command)):
        arguments = [f"--config={experiment}", *arguments]  # of two the last one counts
    return command, arguments
