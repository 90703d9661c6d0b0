"""Experiment files, read strictly: every key once and as written, numbers as people mean them, nothing executed.

PyYAML's own reader keeps the last of two equal keys without a word, and takes `no`, `1:30:00`, `010` and `0500` for
False, 5400, 8 and 320. Here its parser only gives the structure; what a plain word means is decided below.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from data.errors import ConfigError
from data.files import read_text
from data.numbers import may_mean_thousands, read_number, read_whole, shown

MOST_BYTES = 1_000_000
MOST_VALUES = 100_000
"""Of a file, after every alias was put in place of what it stands for."""
MOST_LEVELS = 50
_TAG = "tag:yaml.org,2002:"
_PLAIN = "plain"
_NULL = ("", "~", "null", "Null", "NULL")
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
_SWITCHES = re.compile(r"yes|no|on|off", re.IGNORECASE)
_INT = re.compile(r"[+-]?(?:0|[1-9][0-9]*(?:_[0-9]+)*)")
_FLOAT = re.compile(r"[+-]?(?:0|[1-9][0-9_]*)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")


class PlainWord(str):
    """`yes`, `no`, `on`, `off`, written without quotes: a choice of that name, or true and false, never free text."""

    __slots__ = ()


class _Loader(yaml.BaseLoader):
    """The parser, which marks what is written without quotes and without a tag."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode and implicit[0]:
            return _PLAIN
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]


def load_yaml(path: Path) -> dict[str, Any]:
    """The mapping in the file at `path`. Raises ConfigError with the line, DataError for a file that is not UTF-8."""
    try:
        if path.is_dir():
            raise ConfigError(f"{path} is a folder; name an experiment file, such as {path / 'my-experiment.yaml'}")
        if path.is_symlink() and not path.exists():
            raise ConfigError(f"{path} is a link to {path.readlink()}, which does not exist")
        num_bytes = path.stat().st_size
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if num_bytes > MOST_BYTES:
        raise ConfigError(f"{path} has {num_bytes:,} bytes; an experiment file has at most {MOST_BYTES:,}")
    values = parse_yaml(read_text(path), str(path))
    if values is None:
        raise ConfigError(f"{path} is empty; an experiment has at least corpus, contestants and train")
    if not isinstance(values, dict):
        found = "a list" if isinstance(values, list) else shown(values)
        raise ConfigError(f"{path}: expected a mapping (corpus: …, contestants: …, train: …), found {found}")
    return values


def parse_yaml(text: str, where: str, *, with_comments: bool = True) -> Any:
    """The value that `text` holds: dict with str keys, list, str, int, float, bool or None.

    Raises ConfigError that begins with `where` and names the line. Without comments, what ` #` begins is refused
    instead of left out.
    """
    try:
        _check_shape(text, where)
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{where} is not valid YAML: {_explained(error)}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(
            f"{where} is not valid YAML: line {line}: the control character U+{ord(text[error.position]):04X} "
            "may not be in it"
        ) from error
    if not with_comments and text[node.end_mark.index if node else 0 :].strip():
        raise ConfigError(f"{where}: what follows # is a comment to YAML; put the value in quotes")
    if node is None:
        return None
    _count(node, where, {}, set())
    return _value(node, where)


def _explained(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = " ".join(str(error.problem or error.context).split())
    if r"'\t'" in problem:
        return f"{place}a tab; YAML is indented with spaces"
    if error.context and error.context_mark and error.context_mark.line != getattr(mark, "line", None):
        problem += f" ({error.context}, which began at line {error.context_mark.line + 1})"
    return place + problem


def _check_shape(text: str, where: str) -> None:
    """Refuse a second document and deep nesting, which the parser's next step follows by recursion."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise ConfigError(f"{_at(where, event)}: a second document begins here; one file is one experiment")
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_LEVELS:
                raise ConfigError(f"{_at(where, event)}: more than {MOST_LEVELS} levels of nesting")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _at(where: str, node: Any) -> str:
    return f"{where}, line {node.start_mark.line + 1}"


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _count(node: yaml.Node, where: str, counted: dict[int, int], above: set[int]) -> int:
    """The values below `node` with aliases put in; `above` are the nodes that it lies in. Refuses too many."""
    if id(node) in above:
        raise ConfigError(f"{_at(where, node)}: an alias is inside what it stands for")
    if id(node) not in counted:
        above.add(id(node))
        total = 1 + sum(_count(child, where, counted, above) for child in _children(node))
        above.remove(id(node))
        if total > MOST_VALUES:
            raise ConfigError(f"{_at(where, node)}: aliases make more than {MOST_VALUES:,} values of it")
        counted[id(node)] = total
    return counted[id(node)]


def _value(node: yaml.Node, where: str) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, where)
    if isinstance(node, yaml.SequenceNode):
        _refuse_tag(node, "seq", where)
        return [_value(item, where) for item in node.value]
    assert isinstance(node, yaml.ScalarNode)
    text = _text(node, where)
    return plain_value(text) if node.tag == _PLAIN else text


def _text(node: yaml.ScalarNode, where: str) -> str:
    if node.tag != _PLAIN:
        _refuse_tag(node, "str", where)
    text: str = node.value
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ConfigError(f"{_at(where, node)}: {shown(text)} holds a lone surrogate, which UTF-8 cannot represent")
    return text


def _refuse_tag(node: yaml.Node, expected: str, where: str) -> None:
    if node.tag != _TAG + expected:
        tag = node.tag.replace(_TAG, "!!")
        raise ConfigError(f"{_at(where, node)}: the tag {tag} is not known here; remove it")


def plain_value(text: str) -> Any:
    """What `text` means where it stands without quotes. What is no clear number, such as `010`, stays as written."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _SWITCHES.fullmatch(text):
        return PlainWord(text)
    try:
        if _INT.fullmatch(text):
            return read_whole(text)
        if _FLOAT.fullmatch(text) and not may_mean_thousands(text):
            return read_number(text)
    except ValueError:  # whoever wants a number will say why this is none
        return text
    return text


def _mapping(node: yaml.MappingNode, where: str) -> dict[str, Any]:
    _refuse_tag(node, "map", where)
    own: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    first_lines: dict[str, int] = {}
    for key_node, value_node in node.value:
        is_merge = isinstance(key_node, yaml.ScalarNode) and key_node.tag == _PLAIN and key_node.value == "<<"
        key = _key(key_node, value_node, node, where)
        if key in first_lines:
            raise ConfigError(
                f"{_at(where, key_node)}: the key {shown(key)} is here a second time; it was given at line "
                f"{first_lines[key]}; remove one of them"
            )
        first_lines[key] = key_node.start_mark.line + 1
        if is_merge:
            merged = _merged(value_node, where)
        else:
            own[key] = _value(value_node, where)
    return {**merged, **own}


def _key(node: yaml.Node, value: yaml.Node, mapping: yaml.MappingNode, where: str) -> str:
    """The key exactly as it is written, whatever YAML would make of the word."""
    if not isinstance(node, yaml.ScalarNode):
        raise ConfigError(f"{_at(where, node)}: a key is a word, not a list or a mapping; a text like it needs quotes")
    key = _text(node, where)
    is_alone = isinstance(value, yaml.ScalarNode) and value.tag == _PLAIN and value.value == ""
    if node.tag == _PLAIN and mapping.flow_style and is_alone and key.isdigit():
        raise ConfigError(
            f"{_at(where, node)}: inside {{ }} a comma ends an entry, so {key} is alone; write a large number "
            "without commas, such as 20_000_000"
        )
    if key == "" and node.tag == _PLAIN:
        raise ConfigError(f"{_at(where, node)}: a key is missing before the colon")
    return key


def _merged(node: yaml.Node, where: str) -> dict[str, Any]:
    """What `<<: *anchor` or `<<: [*first, *second]` brings in; the first of several wins, as YAML has it."""
    parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
    merged: dict[str, Any] = {}
    for part in parts:
        if not isinstance(part, yaml.MappingNode):
            raise ConfigError(f"{_at(where, part)}: << wants an alias of a mapping, such as `<<: *shared`")
        merged = {**_mapping(part, where), **merged}
    return merged
