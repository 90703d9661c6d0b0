"""Writes learning rates into an experiment file: as few characters as possible, proven by reading it again.

The file is edited as text, so comments and layout stay. The places are those that the YAML parser reports, and
nothing is written unless the new text holds exactly the wanted difference: what is shared through an anchor, say,
would change in two places, and is refused.
"""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from compare.experiment import load_experiment
from data.errors import ConfigError
from data.files import read_text, write_text


def write_rates(path: Path, best: Mapping[str, float]) -> list[str]:
    """Give each contestant in `best` its learning rate in the experiment file at `path`; the names that changed.

    A contestant that has the rate already, of its own or from the shared train block, is left alone. Raises
    ConfigError, with the lines to add by hand, where the file cannot be edited safely; it is unchanged then.
    """
    contestants = load_experiment(path).contestants
    wanted = {name: rate for name, rate in best.items() if contestants[name].train.learning_rate != rate}
    if wanted:
        write_text(path, edited(read_text(path), wanted, path))
    return list(wanted)


def edited(text: str, wanted: Mapping[str, float], path: Path) -> str:
    """`text`, the experiment file at `path`, with the learning rates `wanted`. Raises ConfigError, see write_rates."""
    new = text
    try:
        for name, rate in wanted.items():
            new = _edit(new, name, rate)
        is_proven = yaml.safe_load(new) == _expected(yaml.safe_load(text), wanted)
    except (yaml.YAMLError, _CannotEdit):
        is_proven = False
    if not is_proven:
        raise ConfigError(
            f"{path} is written in a way that cannot be edited safely, so nothing was changed; put there by hand: "
            f"{_by_hand(wanted)}"
        )
    return new


class _CannotEdit(Exception):  # noqa: N818 - never leaves this module
    """The file has not the shape that an edit needs."""


def _by_hand(wanted: Mapping[str, float]) -> str:
    return ", ".join(f"contestants.{name}.train.learning_rate: {_spelled(rate)}" for name, rate in wanted.items())


def _spelled(rate: float) -> str:
    """As YAML 1.1 reads a number: 1e-05 would be a string to it, 1.0e-05 is not."""
    mantissa, e, exponent = repr(rate).partition("e")
    return repr(rate) if not e else f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"


def _expected(values: Any, wanted: Mapping[str, float]) -> Any:
    expected = deepcopy(values)  # keeps what aliases share shared, so the blocks on the way are replaced, not changed
    contestants = dict(expected["contestants"])
    for name, rate in wanted.items():
        own = dict(contestants[name])
        own["train"] = dict(own.get("train") or {}) | {"learning_rate": rate}
        contestants[name] = own
    return expected | {"contestants": contestants}


def _edit(text: str, name: str, rate: float) -> str:
    """`text` with one contestant's rate set."""
    contestants = _child(yaml.compose(text, Loader=yaml.SafeLoader), "contestants")
    own = _child(contestants, name)
    train = _child(own, "train", is_required=False)
    if train is None:
        return _insert(text, own, f"train: {{learning_rate: {_spelled(rate)}}}")
    current = _child(train, "learning_rate", is_required=False)
    if current is None:
        return _insert(text, train, f"learning_rate: {_spelled(rate)}")
    start, end = int(current.start_mark.index), int(current.end_mark.index)
    return text[:start] + _spelled(rate) + text[end:]


def _child(node: yaml.Node | None, key: str, *, is_required: bool = True) -> yaml.Node | None:
    """The value under `key` of the mapping `node`."""
    if not isinstance(node, yaml.MappingNode):
        raise _CannotEdit
    for key_node, value in node.value:
        if key_node.value == key:
            found: yaml.Node = value
            return found
    if is_required:
        raise _CannotEdit
    return None


def _insert(text: str, node: yaml.Node | None, entry: str) -> str:
    """`text` with `entry` as a further entry of the mapping `node`: last in braces, first in a block."""
    if not isinstance(node, yaml.MappingNode):
        raise _CannotEdit
    if not node.flow_style:
        first = node.value[0][0].start_mark
        start, indent = int(first.index), int(first.column)
        line_end = "\r\n" if "\r\n" in text else "\n"
        return text[:start] + entry + line_end + " " * indent + text[start:]
    end = int(node.end_mark.index) - 1  # of the closing brace
    before = text[:end]
    kept = before.rstrip()
    comma = "" if kept.endswith(("{", ",")) else ","
    space = "" if kept.endswith("{") else " "
    return kept + comma + space + entry + before[len(kept) :] + text[end:]
