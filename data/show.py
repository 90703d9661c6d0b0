r"""Text from outside as a screen may show it: what has no shape is spelled as its code, widths are those of a terminal.

A control character can move the cursor, a bidirectional one can turn the rest of a line round, a zero-width one makes
two names look equal. None of them reaches a terminal or the page as itself.
"""

import unicodedata
from collections.abc import Iterable, Sequence

import regex

# Cc control, Cf format (bidirectional, zero width, byte order mark), Cs surrogates, Co private, Cn not assigned,
# Zl and Zp separators of lines; Default_Ignorable: fillers and selectors that leave no mark on the screen.
_GAP_AND_WORD = regex.compile(r"( *)([^ ]+)")
_SHORT_CODES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_HIDDEN = regex.compile(r"[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]")


def is_hidden(character: str) -> bool:
    """Whether a screen shows nothing of its own for `character`; a space of any width is not hidden."""
    return _HIDDEN.match(character) is not None


def code_of(character: str) -> str:
    r"""A character's code, as Python and JSON write it.

    >>> code_of("\x1b"), code_of("\u202e"), code_of("\U000e0041")
    ('\\x1b', '\\u202e', '\\U000e0041')
    """
    code = ord(character)
    if character in _SHORT_CODES:
        return _SHORT_CODES[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str, keep: str = "") -> str:
    r"""`text` with every hidden character as its code, except those in `keep`; everything else stays as it is.

    >>> visible("red \x1b[31m, turned \u202e, zero\u200bwidth\n", keep="\n")
    'red \\x1b[31m, turned \\u202e, zero\\u200bwidth\n'
    """
    return _HIDDEN.sub(lambda found: found[0] if found[0] in keep else code_of(found[0]), text)


def say(line: str) -> None:
    """Print lines for the user; names and paths in them may hold anything."""
    print(visible(line, keep="\n"))


def columns(text: str) -> int:
    """Columns that `text` takes in a terminal: Chinese, Japanese, Korean and emoji take two each, marks none."""
    return sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 1 + (unicodedata.east_asian_width(character) in "WF")


def pad(text: str, width: int) -> str:
    """`text` with spaces behind it, `width` columns in all."""
    return text + " " * (width - columns(text))


def pad_left(text: str, width: int) -> str:
    """`text` with spaces before it, `width` columns in all."""
    return " " * (width - columns(text)) + text


def shorten(text: str, width: int) -> str:
    """`text`, or its beginning and its end where it takes more than `width` columns."""
    if columns(text) <= width:
        return text
    half = (width - 1) // 2
    start = text[: _fitting(text, half)]
    end = text[len(text) - _fitting(text[::-1], half) :]
    return f"{start}…{end}"


def _fitting(text: str, width: int) -> int:
    """How many characters from the beginning of `text` take `width` columns at most."""
    used = 0
    for number, character in enumerate(text):
        used += _columns_of(character)
        if used > width:
            return number
    return len(text)


def wrapped(text: str, width: int, indent: int = 0) -> str:
    """`text` on lines of at most `width` columns, those after the first indented by `indent`.

    A line ends between words; a word that is longer than a line is cut.
    """
    lines, line, is_begun = [], "", False
    for gap, word in _GAP_AND_WORD.findall(text):
        if is_begun and columns(line + gap + word) > width:
            lines.append(line)
            line, gap = " " * indent, ""
        while columns(line + gap + word) > width:
            end = max(1, _fitting(word, width - columns(line + gap)))
            lines.append(line + gap + word[:end])
            line, gap, word = " " * indent, "", word[end:]
        line += gap + word
        is_begun = True
    return "\n".join([*lines, line])


def counted(count: int, noun: str) -> str:
    """`1 merge`, `2 merges`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def short_names(names: Sequence[str], width: int) -> dict[str, str]:
    """What a table calls each name: the name itself, or a letter for one of more than `width` columns.

    No letter is one of `names`.

    >>> short_names(["char", "n" * 60, "m" * 60], 20)["m" * 60]
    'B'
    """
    letters = (letter for letter in _letters() if letter not in names)
    return {name: name if columns(name) <= width else next(letters) for name in names}


def _letters() -> Iterable[str]:
    """A … Z, A1 … Z1, A2 …"""
    number = 0
    while True:
        yield from (f"{letter}{number or ''}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        number += 1
