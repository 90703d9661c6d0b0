"""Signs for characters without a shape, so that a reader of the page sees line ends, tabs and what is hidden."""

import unicodedata

from markupsafe import Markup, escape

from data.show import code_of, is_hidden

_STAND_INS = {"\n": "↵", "\r": "␍", "\t": "⇥", "\x7f": "␡"}
REPLACEMENT = "\ufffd"
"""Shown in the passage for a hidden character, whose code would take more than one column."""


def visible(text: str) -> str:
    """`text` with stand-ins for what has no shape: spaces, line ends, control and format characters.

    >>> visible("a b\\n")
    'a␣b↵'
    """
    return "".join("␣" if character == " " else _visible_but_space(character) for character in text)


def one_column(character: str) -> str:
    """One character for one, so that rows of text stay aligned and a script can count them."""
    shown = _visible_but_space(character)
    if len(shown) == 1:
        return shown
    return REPLACEMENT if shown.startswith("U+") else character  # a combining mark stays on the character before it


def readable(text: str) -> Markup:
    """`text` to be read as it is, line ends kept, with a light sign for every line end, tab and hidden character.

    >>> print(readable("a\\nb"))
    a<span class="sign">↵</span>
    b
    """
    return Markup("").join(map(_with_sign, text))


def _with_sign(character: str) -> Markup:
    sign = Markup('<span class="sign">{}</span>')
    if character == "\n":
        return sign.format("↵") + Markup("\n")
    if character in _STAND_INS:
        return sign.format(_STAND_INS[character]) + Markup(character if character == "\t" else "")
    if is_hidden(character):
        return sign.format(code_of(character))
    return escape(character)


def _visible_but_space(character: str) -> str:
    if character in _STAND_INS:
        return _STAND_INS[character]
    if character < " ":
        return chr(0x2400 + ord(character))
    category = unicodedata.category(character)
    if is_hidden(character) or category.startswith("Z"):
        return f"U+{ord(character):04X}" if character != " " else character
    return f"◌{character}" if category.startswith("M") else character
