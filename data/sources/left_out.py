"""What was asked for and not taken: by reason, for the manifest and for the reader."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from data.sources.paths import shown

HIDDEN = "hidden (the name begins with a dot)"
OWN = "where this experiment writes (below its root)"
OTHER = "where another experiment writes"
PROGRAM = "Python files of this program"
AGAIN = "another name of what is read already"
BROKEN = "links that lead nowhere"
BRACKETS = "matched by brackets that are taken as a name"
EMPTY = "empty"

_NUM_NAMED = 3


@dataclass
class LeftOut:
    """What was not taken: reason -> paths. A folder stands for all that it holds and ends with a slash."""

    paths: dict[str, set[str]] = field(default_factory=dict)

    def add(self, reason: str, path: Path, *, is_folder: bool = False) -> None:
        """Note one path."""
        name = os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")  # a manifest is UTF-8
        self.paths.setdefault(reason, set()).add(name + "/" * is_folder)

    def update(self, other: "LeftOut") -> None:
        """Note what `other` noted."""
        for reason, paths in other.paths.items():
            self.paths.setdefault(reason, set()).update(paths)

    def as_json(self) -> dict[str, list[str]]:
        """Plain and sorted, for a manifest."""
        return {reason: sorted(self.paths[reason]) for reason in sorted(self.paths)}

    def lines(self) -> list[str]:
        """See `left_out_lines`."""
        return left_out_lines(self.as_json())


def left_out_lines(left_out: Mapping[str, Sequence[str]]) -> list[str]:
    """One line for every reason of a manifest's `left_out`: how many, and the first ones by name.

    >>> left_out_lines({"empty": ["a", "b", "c", "d"]})
    ['left out, empty: 4 (a, b, c, …)']
    """
    lines = []
    for reason, paths in left_out.items():
        named = ", ".join(shown(path) for path in paths[:_NUM_NAMED])
        lines.append(f"left out, {reason}: {len(paths):,} ({named}{', …' if len(paths) > _NUM_NAMED else ''})")
    return lines
