"""Cleaning: pure functions str -> str, each with an example, and the one rule about lone surrogates.

Cleaning that cannot be undone changes the text being scored. That is allowed, but it is stated here and in the
manifest, and it is the same for every contestant.
"""

import re
from collections import Counter
from collections.abc import Callable

from data.errors import DataError

BYTE_ORDER_MARK = "\ufeff"
_SPACES = " \t\u00a0"  # U+3000 only indents paragraphs of Chinese; lines are not words
_CHARACTERS_PER_SPACE = 100  # a text with fewer spaces has no words that white space could tell apart
_WIKITEXT_JOIN = re.compile(" @([-,.])@ ")
_LINE_EDGE_SPACE = re.compile("^ | $", re.MULTILINE)  # MULTILINE knows one line end only, \n


def minimal(text: str) -> str:
    r"""Make every line end `\n` (from CRLF and from a lone CR) and remove one leading byte order mark.

    Lost: which of the three line ends a line had, and the mark. Everything else stays: NUL, tabs, U+000B, U+0085,
    U+00A0, U+2028, U+2029, a byte order mark inside the text, composed and decomposed accents.

    >>> minimal("\ufeffone\r\ntwo\rthree\x0b\u2028\xa0\n\n")
    'one\ntwo\nthree\x0b\u2028\xa0\n\n'
    """
    return text.removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n").replace("\r", "\n")


def wikitext(text: str) -> str:
    r"""`minimal`, then undo what WikiText's own tokenization added; headings stay lines of their own.

    ` @-@ `, ` @,@ ` and ` @.@ ` become `-`, `,` and `.`, in one pass from left to right; one space at the start
    and one at the end of each line go. Lost: which hyphens, commas and points WikiText had spelled that way, and
    those spaces. The spaces before punctuation inside a line stay, because nothing marks which are original.

    >>> wikitext(" = Price of tea = \n \n It rose by 1 @,@ 200 @.@ 5 , a record @-@ high . \n")
    '= Price of tea =\n\nIt rose by 1,200.5 , a record-high .\n'
    """
    return _LINE_EDGE_SPACE.sub("", _WIKITEXT_JOIN.sub(r"\1", minimal(text)))


CLEANINGS: dict[str, Callable[[str], str]] = {"minimal": minimal, "wikitext": wikitext}


def is_divided_by_spaces(text: str) -> bool:
    """Whether `text` has a space in every 100 characters on average; without them a count of words means nothing.

    >>> is_divided_by_spaces("one two"), is_divided_by_spaces("中文没有空格。" * 20)
    (True, False)
    """
    return sum(map(text.count, _SPACES)) >= len(text) // _CHARACTERS_PER_SPACE


def end_with_newline(text: str) -> str:
    r"""Add the newline that every document ends with, where it is missing.

    >>> end_with_newline("a"), end_with_newline("a\n")
    ('a\n', 'a\n')
    """
    return text if text.endswith("\n") else text + "\n"


def collapse_white_space(text: str) -> str:
    r"""Every run of white space as one space, none at either end: what two copies of a text have in common.

    >>> collapse_white_space(" a\r\n\u00a0 b\n") == collapse_white_space("a b")
    True
    """
    return " ".join(text.split())


def clean_document(text: str, cleaning: str) -> tuple[str, Counter[str]]:
    r"""Clean one raw document by the cleaning of that name and count what was done, for the manifest.

    A document that holds nothing stays "" (the caller drops it); any other ends with a newline.

    >>> text, counts = clean_document("\ufeffa\r\nb", "minimal")
    >>> text, {what: count for what, count in counts.items() if count}
    ('a\nb\n', {'byte_order_marks_removed': 1, 'crlf_converted': 1, 'final_newlines_added': 1})
    """
    cleaned = CLEANINGS[cleaning](text)
    crlf = text.count("\r\n")
    counts = Counter(
        {
            "byte_order_marks_removed": int(text.startswith(BYTE_ORDER_MARK)),
            "crlf_converted": crlf,
            "lone_cr_converted": text.count("\r") - crlf,
            "final_newlines_added": int(bool(cleaned) and not cleaned.endswith("\n")),
        }
    )
    if cleaning == "wikitext":
        simple = minimal(text)
        counts["wikitext_joins_undone"] = len(_WIKITEXT_JOIN.findall(simple))
        counts["line_edge_spaces_removed"] = len(_LINE_EDGE_SPACE.findall(_WIKITEXT_JOIN.sub(r"\1", simple)))
    return (end_with_newline(cleaned) if cleaned else ""), counts


def find_lone_surrogate(text: str) -> int | None:
    r"""Character offset of the first lone surrogate (U+D800 … U+DFFF), or None.

    A Python string holds astral characters whole, so every surrogate in it is a lone one, also two in a row.

    >>> find_lone_surrogate("ab\ud83d\ude00"), find_lone_surrogate("\U0001f600") is None
    (2, True)
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return error.start
    return None


def refuse_lone_surrogate(text: str, where: str) -> None:
    """Raise DataError naming `where` (file or document) and the character offset if `text` holds one.

    This is the policy wherever text comes in: such text cannot be written as UTF-8, and replacing it would be a silent
    loss.
    """
    offset = find_lone_surrogate(text)
    if offset is not None:
        raise DataError(
            f"{where} holds the lone surrogate U+{ord(text[offset]):04X} at character {offset}, which UTF-8 cannot "
            "represent; repair the text at its source or leave it out"
        )
