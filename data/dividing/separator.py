"""What the separator of a corpus did, and how a separator is spelled in messages."""

import json
import re
from collections.abc import Mapping
from typing import Any

from data.errors import DataError

_ESCAPE = re.compile(r"\\[0abefnrtvxuUNLP]")


def in_double_quotes(text: str) -> str:
    r"""`text` as it is written in YAML's double quotes, with everything that cannot be seen as its escape.

    >>> print(in_double_quotes("\n-é-\n"), in_double_quotes("\\n"))
    "\n-é-\n" "\\n"
    """
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else json.dumps(c)[1:-1] for c in text) + '"'


def is_removed(separator: str) -> bool:
    """Whether cutting removes the separator: white space only is removed, anything else stays with its document."""
    return separator.isspace()


def describe_separator(separator: str, occurrences: Mapping[str, int]) -> dict[str, Any]:
    """For the manifest: what `separator` did, from its number of occurrences in each file (by name).

    Raises DataError if it occurs in none: who gives a separator expects it to cut.
    """
    total = sum(occurrences.values())
    if total == 0:
        raise DataError(_never_occurs(separator, len(occurrences)))
    return {
        "separator": separator,
        "occurrences": total,
        "files": len(occurrences),
        "files_without": sum(count == 0 for count in occurrences.values()),
        "characters_removed": total * len(separator) if is_removed(separator) else 0,
    }


def _never_occurs(separator: str, num_files: int) -> str:
    files = f"{num_files:,} file{'s' * (num_files != 1)}"
    size = f"{len(separator)} character{'s' * (len(separator) != 1)}"
    if not _ESCAPE.search(separator):
        return (
            f"the separator {in_double_quotes(separator)} ({size}) never occurs in {files}; give one that does, or "
            "remove `separator`: each file is then one document"
        )
    spelled = ", ".join("backslash" if character == "\\" else character for character in separator)
    meant = in_double_quotes(separator).replace("\\\\", "\\")
    return (
        f"the separator '{meant[1:-1]}' ({size}: {in_double_quotes(spelled)[1:-1]}) never occurs in {files}; a "
        f"backslash means something in double quotes only: write `separator: {meant}`"
    )
