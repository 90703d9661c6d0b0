"""From an experiment file, and the settings on top of it, to plain checked values: keys, names, seeds, root.

What the values of a block mean is checked where the block's dataclass is built, in compare/experiment.py.
"""

import os
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compare.sizes.shape import check_sizes
from data.config import build, convert, did_you_mean, require
from data.errors import ConfigError
from data.numbers import SEED, shown
from data.yaml_file import PlainWord, parse_yaml
from model.settings import LadderConfig
from tokenizer.config import FROM_FILES

SHARED_BLOCKS = ("model", "train", "evaluate")
CONTESTANT_KEYS = ("tokenizer", *SHARED_BLOCKS, "context")
_KEYS = ("corpus", "contestants", *SHARED_BLOCKS, "normalized_by", "baseline", "seeds", "ladder", "sizes", "root")
_SET_BY_LADDER = {"schedule": "linear", "min_learning_rate_ratio": 0, "warmdown_fraction": None, "selection": "last"}
"""Settings of the train block that a ladder decides, and the value that may be written all the same."""
_BATCH_KEYS = (("batch", "batch_size"), ("batch_size", "batch"))
_MOST_CHARACTERS, _MOST_BYTES = 60, 180  # of a contestant's name, to which file names add some
_MOST_BYTES_OF_A_NAME = 255  # in every common file system
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
_FORM = "`contestants: {char: {tokenizer: {kind: char}}, bpe: {tokenizer: {kind: char_bpe, vocab_size: 2000}}}`"


def apply_setting(values: dict[str, Any], setting: str) -> None:
    """Set the dotted key of `setting`, such as `train.batch_size=64`, in `values`, making the blocks on the way.

    Raises ConfigError that begins with the setting.
    """
    where = f"--set {setting}"
    key, equals, written = setting.partition("=")
    *blocks, last = names = key.strip().split(".")
    require(bool(equals) and all(names), f"{where}: expected key=value, such as train.batch_size=64")
    contestants = values.get("contestants")
    if names[0] == "contestants" and len(names) > 2 and isinstance(contestants, dict) and names[2] != "tokenizer":
        known = names[1] in contestants
        require(known, f"{where}: no contestant {shown(names[1])}{did_you_mean(names[1], list(contestants))}")
    block = values
    for name in blocks:
        if block.get(name) is None:
            block[name] = {}
        inner = block[name]
        require(isinstance(inner, dict), f"{where}: {name!r} is not a block of settings")
        block[name] = inner = dict(inner)  # one that an alias shares stays what it is elsewhere
        block = inner
    try:
        block[last] = parse_yaml(written, where, with_comments=False)
    except ConfigError as error:
        raise ConfigError(f"{error}; a value is written as in the file") from error


def check_keys(values: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError for an unknown or missing key, and where contestants or blocks have the wrong shape."""
    for key in values:
        require(key in _KEYS, f"{path}: unknown key {shown(key)}{did_you_mean(key, list(_KEYS))}")
    for key in ("corpus", "contestants", "train"):
        require(key in values, f"{path}: key {key!r} is missing")
    for block in SHARED_BLOCKS:
        _check_block(values.get(block), f"{path}: {block}")
    contestants = values["contestants"]
    found = "nothing" if contestants is None else shown(contestants)
    require(
        isinstance(contestants, dict),
        f"{path}: contestants: expected a name and a tokenizer for each, such as {_FORM}, found {found}",
    )
    require(len(contestants) > 0, f"{path}: contestants must name at least one, such as {_FORM}")
    folders: dict[str, str] = {}
    for name, own in contestants.items():
        where = f"{path}: contestants.{name}"
        _check_name(name, f"{path}: contestants: {shown(name)}")
        other = folders.setdefault(unicodedata.normalize("NFKC", name).casefold(), name)
        require(
            other == name,
            f"{path}: contestants: {other} and {name} would share a folder where upper and lower case are one; "
            "rename one of them",
        )
        found = "nothing" if own is None else shown(own)
        require(
            isinstance(own, dict), f"{where}: expected a mapping such as {{tokenizer: {{kind: char}}}}, found {found}"
        )
        for key in own:
            require(
                key in CONTESTANT_KEYS, f"{where}: unknown key {shown(key)}{did_you_mean(key, list(CONTESTANT_KEYS))}"
            )
        require("tokenizer" in own, f"{where}: key 'tokenizer' is missing")
        tokenizer = own["tokenizer"]
        require(
            isinstance(tokenizer, dict),
            f"{where}.tokenizer: expected a mapping such as {{kind: char}}, found {shown(tokenizer)}",
        )
        for block in SHARED_BLOCKS:
            _check_block(own.get(block), f"{where}.{block}")


def _check_block(block: Any, where: str) -> None:
    require(block is None or isinstance(block, dict), f"{where}: expected a mapping, found {shown(block)}")


def _check_name(name: str, where: str) -> None:
    """A name becomes part of file names, on every system."""
    require(
        name.replace("_", "").replace("-", "").isalnum() and not name.startswith("-"),
        f"{where}: a name is letters, digits, - and _, and does not begin with -",
    )
    require(
        len(name) <= _MOST_CHARACTERS and len(name.encode()) <= _MOST_BYTES,
        f"{where}: a name has at most {_MOST_CHARACTERS} characters and {_MOST_BYTES} bytes; this one has {len(name)} "
        f"and {len(name.encode())}",
    )
    require(name.casefold() not in _DEVICES, f"{where}: Windows keeps this name for a device; take another")


def seeds_of(values: Mapping[str, Any], path: Path) -> tuple[int, ...] | None:
    """The checked key `seeds`; None if there is none. Seeds are written in one place or in the other."""
    if "seeds" not in values:
        return None
    seeds: tuple[int, ...] = convert(values["seeds"], tuple[int, ...], f"{path}: seeds")
    require(len(seeds) > 0, f"{path}: seeds: the list is empty; name at least one, such as [1, 2, 3]")
    for seed in seeds:
        SEED.check(f"{path}: seeds: every seed", seed)
    require(len(set(seeds)) == len(seeds), f"{path}: seeds: must be distinct, found {', '.join(map(str, seeds))}")
    for where, block in train_blocks(values):
        require("seed" not in block, f"{path}: both seeds and {where}.seed are given; remove one of them")
    return seeds


def ladder_of(values: Mapping[str, Any], path: Path) -> LadderConfig | None:
    """The checked block `ladder`; None if there is none. What it decides may not be written otherwise elsewhere."""
    if values.get("ladder") is None:
        return None
    ladder = build(LadderConfig, values["ladder"], f"{path}: ladder")
    for where, block in train_blocks(values):
        for key, allowed in _SET_BY_LADDER.items():
            if key in block and (allowed is None or block[key] != allowed):
                instead = "ladder.way_down" if allowed is None else f"{key}: {allowed}"
                raise ConfigError(
                    f"{path}: both ladder and {where}.{key} {shown(block[key])} are given, but a ladder has {instead}; "
                    f"remove {where}.{key}"
                )
    return ladder


def sizes_of(values: Mapping[str, Any], path: Path) -> tuple[float, ...]:
    """The checked key `sizes` without 1, which is the size of the model block; empty if there is no key."""
    if values.get("sizes") is None:
        return ()
    return check_sizes(convert(values["sizes"], tuple[float, ...], f"{path}: sizes"), f"{path}: sizes")


def with_one_batch(values: Mapping[str, Any], contestant: str) -> Mapping[str, Any]:
    """`values` where the train block that `contestant` gets has one of the keys batch and batch_size only: its own one
    replaces either of the shared block, and batch_size null goes with a batch.
    """
    shared, own = values["train"] or {}, values["contestants"][contestant].get("train") or {}
    for key, other in _BATCH_KEYS:
        if own.get(key) is not None:
            shared = {name: value for name, value in shared.items() if name != other}
    if (own.get("batch") or shared.get("batch")) is not None and shared.get("batch_size", 0) is None:
        shared = {name: value for name, value in shared.items() if name != "batch_size"}
    return {**values, "train": shared}


def check_one_batch(values: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where one train block says in two ways how large a batch is."""
    for where, block in train_blocks(values):
        if all(block.get(key) is not None for key, _ in _BATCH_KEYS):
            raise ConfigError(
                f"{path}: both {where}.batch_size {shown(block['batch_size'])} and {where}.batch are given; remove one "
                f'of them, or set it to null, as in SET="{where}.batch_size=null"'
            )


def train_blocks(values: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The shared train block and those of the contestants, each with its dotted name."""
    own = [(f"contestants.{name}.train", one.get("train") or {}) for name, one in values["contestants"].items()]
    return [("train", values["train"] or {}), *own]


def baseline_of(values: Mapping[str, Any], path: Path) -> str | None:
    """The key `baseline`: the contestant that the others are compared with; None if there is none."""
    if values.get("baseline") is None:
        return None
    name, known = values["baseline"], list(values["contestants"])
    require(
        isinstance(name, str) and name in known,
        f"{path}: baseline: no contestant {shown(name)}{did_you_mean(str(name), known)}",
    )
    return str(name)


def normalized_by_of(values: Mapping[str, Any], path: Path) -> str | None:
    """The key `normalized_by`: the contestant whose tokenizer normalises the text of all; None if there is none.

    It must be read from a file: what is trained on the text cannot change it first.
    """
    name, contestants = values.get("normalized_by"), values["contestants"]
    if name is None:
        return None
    known = [one for one, own in contestants.items() if own["tokenizer"].get("kind") in FROM_FILES]
    require(
        isinstance(name, str) and name in known,
        f"{path}: normalized_by: {shown(name)} is no contestant whose tokenizer is read from a file; there "
        f"{'are ' + ', '.join(known) if known else 'is none'}",
    )
    return str(name)


def root_of(values: Mapping[str, Any], path: Path) -> Path:
    """The folder `root`, by default the working directory; `~` is the home folder."""
    root = values.get("root", ".")
    where = f"{path}: root"
    is_text = isinstance(root, str) and not isinstance(root, PlainWord)
    found = "nothing" if root is None or root == "" else shown(root)
    require(is_text and root.strip() != "", f"{where}: expected a folder, such as runs/mine, found {found}")
    return folder_of(root, where)


def folder_of(written: str, where: str) -> Path:
    """The folder that a user wrote. Raises ConfigError, beginning with `where`, for what can be no folder's name."""
    control = next((character for character in written if ord(character) < 32 or ord(character) == 127), None)
    if control is not None:
        raise ConfigError(f"{where}: {shown(written)} holds the control character U+{ord(control):04X}")
    try:
        longest = max(map(len, map(os.fsencode, Path(written).parts)), default=0)
    except UnicodeEncodeError as error:
        raise ConfigError(f"{where}: {shown(written)} cannot be the name of a folder on this system") from error
    require(
        longest <= _MOST_BYTES_OF_A_NAME,
        f"{where}: a folder's name has at most {_MOST_BYTES_OF_A_NAME} bytes, {shown(written)} has one of {longest}",
    )
    try:
        return Path(written).expanduser()
    except RuntimeError as error:
        raise ConfigError(
            f"{where}: {shown(written)} means the home folder of a user who is not known here; write ./{written} for "
            "a folder of that name"
        ) from error


def merge(shared: Mapping[str, Any], special: Mapping[str, Any]) -> dict[str, Any]:
    """`special` over `shared`, block by block, so that overriding `budget.amount` keeps `budget.unit`."""
    merged = dict(shared)
    for key, value in special.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def say_which_setting(path: Path, settings: Sequence[str], messages: Sequence[str | None]) -> str:
    """The last of `messages`, begun with the setting that is at fault instead of the file.

    `messages[k]` is what loading says with the first k of `settings`, None where it says nothing.
    """
    last = messages[-1]
    assert last is not None
    first = next(k for k, message in enumerate(messages) if message == last)
    if first == 0 or last.startswith("--set "):
        return last
    return f"--set {settings[first - 1]}: {last.removeprefix(f'{path}: ')}"
