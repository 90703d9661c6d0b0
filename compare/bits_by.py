"""Where the bits go: the bits of the test text by kind of character, by position, by context seen, by word.

Every contestant is measured on the same classes of the same characters; `compare.characters` says how the bits of a
token reach its characters. Where the border of a class cuts tokens, `cut_share` says how many of the class's
characters that rule had to divide among classes.

Shapes: n tokens, C characters, D documents, K classes, W words of the test text.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from compare.characters import (
    RULE,
    Float64Array,
    Int64Array,
    character_nats,
    character_starts,
    document_char_offsets,
)
from compare.figures import NOT_DIVIDED
from data.clean import is_divided_by_spaces
from data.errors import ReportError, command
from data.files import sha256_text
from model.evaluate import Evaluation
from model.windows import plan_windows

BoolArray = NDArray[np.bool_]

KINDS = (
    ("newline", "a line feed"),
    ("space", "any other ASCII white space: space, tab, carriage return"),
    ("digit", "0 to 9"),
    ("word start", "an ASCII letter that begins a word"),
    ("inside a word", "any other ASCII letter, and an ASCII apostrophe between two letters"),
    ("punctuation", "any other ASCII character: punctuation, symbols, control characters"),
    ("non-ASCII", "every character beyond U+007F, whatever else it is: letters, marks, spaces, emoji"),
)
"""Name and description of each kind; the first that fits, non-ASCII before all others."""

CUT_NOTE = (
    "cut_share is the share of a class's characters that are, whole or in part, in a token with characters of other "
    "classes: the rule divides the bits of such a token evenly among the characters that begin in it, whoever caused "
    "them"
)
POSITION_NOTE = (
    "characters of the document before this one, the same for every contestant; how many of them the model "
    "could see depends on its windows: in the first block all of them, behind it those of at least the block less the "
    "stride in tokens (by default half a block)"
)
CONTEXT_NOTE = (
    "characters of the document that the model could see, inside its sliding window, when it predicted the token in "
    "which this character begins; the newline before the document is not counted, nor are characters of the same token"
)
WORD_NOTE = (
    "a word is a run of letters of any script with their combining marks; an apostrophe between two letters belongs to "
    "it; a word of the test text counts at each of its occurrences, in the class of its occurrences in train, spelled "
    "the same with case; the characters between words are in no class"
)

_NEWLINE, _SPACE, _DIGIT, _WORD_START, _WORD_INSIDE, _PUNCTUATION, _NON_ASCII = range(len(KINDS))
_WORD = regex.compile(r"\p{L}[\p{L}\p{M}]*+(?:['’]\p{L}[\p{L}\p{M}]*+)*+")
_POSITIONS = (0, 1, 4, 16, 64, 256, 1024)  # first number of each class; the last one is open
_FREQUENCIES = (0, 1, 2, 10, 100, 1000)
_FREQUENCY_NAMES = ("never in train", "1", "2-9", "10-99", "100-999", "1000+")
_NUM_CONTEXT = 1  # a newline is a base token of every kind, so the context before a document is one token


@dataclass(frozen=True)
class _Losses:
    """One contestant's losses by character."""

    nats: Float64Array
    """(C,) under the rule of `compare.characters`."""
    token_starts: Int64Array
    """(tokens in which a character begins,) its first character."""
    holds_rest: BoolArray
    """(tokens in which a character begins,) whether the token begins with the last bytes of the character before."""
    context: Int64Array
    """(C,) characters of the document that were in sight."""


def where_bits_go(evaluations: Mapping[str, Evaluation], test_text: str, train_text: str) -> dict[str, Any]:
    """The bits of `test_text` (C characters) by class of character, for each contestant, as plain values.

    `evaluations` are those of the test split by contestant. Bits are totals, `bits_per_char` is over the characters
    of the class (None where a contestant has none). Kinds and positions each hold every character once, so their bits
    add up to `total_bits`; classes that are empty for everyone are left out, and so are words where the text is not
    divided by spaces. Raises ReportError without a contestant,
    and if one was scored on another text or other documents.
    """
    offsets = _common_documents(evaluations, test_text)
    codes = code_points(test_text)
    losses = {name: _losses_of(evaluation, codes) for name, evaluation in evaluations.items()}
    words = word_spans(test_text, offsets)
    has_words = is_divided_by_spaces(test_text)
    positions = np.arange(len(codes)) - np.repeat(offsets[:-1], np.diff(offsets))
    by_position = {name: _bucket(positions, _POSITIONS) for name in losses}
    by_context = {name: _bucket(loss.context, _POSITIONS) for name, loss in losses.items()}
    return {
        "rule": RULE,
        "cut_note": CUT_NOTE,
        "num_chars": len(codes),
        "total_bits": {name: _bits(loss.nats) for name, loss in losses.items()},
        "kinds": _kinds(losses, kinds_of(codes, words)),
        "positions": _ranges(losses, by_position),
        "position_note": POSITION_NOTE,
        "context_seen": _ranges(losses, by_context),
        "context_note": CONTEXT_NOTE,
        "word_frequency": _word_frequency(losses, test_text, words, train_text) if has_words else [],
        "word_note": WORD_NOTE if has_words else f"{NOT_DIVIDED}, so it has no words to sort",
        "unseen": _unseen(losses, codes, test_text, train_text),
    }


def code_points(text: str) -> NDArray[np.uint32]:
    """(C,) the code point of every character."""
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.dtype("<u4"))


def word_spans(text: str, offsets: Int64Array) -> Int64Array:
    """(W, 2) first character of each word of `text`, and the one behind it (WORD_NOTE says what a word is).

    `offsets` (D+1,) are those of the documents; no word reaches across their borders.
    """
    bounds = pairwise(offsets.tolist())
    spans = [match.span() for begin, end in bounds for match in _WORD.finditer(text, begin, end)]
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def kinds_of(codes: NDArray[np.uint32], words: Int64Array) -> Int64Array:
    """(C,) index into KINDS of every character, from its code point (C,) and the spans of the words (W, 2)."""
    ascii_kinds = np.full(128, _PUNCTUATION, dtype=np.int64)
    for code in range(128):
        if chr(code).isspace():
            ascii_kinds[code] = _SPACE
        elif chr(code).isdigit():
            ascii_kinds[code] = _DIGIT
    ascii_kinds[ord("\n")] = _NEWLINE
    is_ascii = codes < 128
    kinds = np.full(len(codes), _NON_ASCII, dtype=np.int64)
    kinds[is_ascii] = ascii_kinds[codes[is_ascii]]
    kinds[is_ascii & (_fill(words, np.zeros(len(words), np.int64), len(codes)) == 0)] = _WORD_INSIDE
    starts = words[:, 0]
    kinds[starts[is_ascii[starts]]] = _WORD_START
    return kinds


def context_seen(evaluation: Evaluation) -> Int64Array:
    """(n,) characters of its document that were in sight when each token was predicted: those that begin in the tokens
    before it in the sliding window that scored it (`model.windows.plan_windows`)."""
    windows = plan_windows(
        evaluation.document_offsets,
        num_context=_NUM_CONTEXT,
        block_size=evaluation.block_size,
        stride=evaluation.stride,
    )
    begin, lengths, score_from = (column.numpy() for column in (windows.starts, windows.lengths, windows.score_from))
    shifts, first_target = windows.shifts.numpy(), windows.first_target.numpy()
    num_scored = lengths - score_from
    window = np.repeat(np.arange(len(begin)), num_scored)
    # Positions score_from … length - 1 of each window, one window after the other.
    position = np.arange(len(window)) - np.repeat(np.cumsum(num_scored) - num_scored, num_scored) + score_from[window]
    target = (begin + shifts)[window] + position
    # The input at a position is the target of the position before; those before the document are its context.
    first_in_sight = np.maximum(begin + shifts - 1, first_target)[window]
    starts = character_starts(evaluation)
    seen = np.zeros(len(evaluation.nats), dtype=np.int64)
    seen[target] = starts[target] - starts[first_in_sight]
    return seen


def _common_documents(evaluations: Mapping[str, Evaluation], text: str) -> Int64Array:
    """(D+1,) the documents in characters; raises ReportError unless all were scored on them and on `text`."""
    if not evaluations:
        raise ReportError(
            f"no contestant has a scored test split, so there are no bits to divide; run {command('make all')}"
        )
    expected = sha256_text(text)
    for name, evaluation in evaluations.items():
        if evaluation.text_sha256 != expected or evaluation.num_chars != len(text):
            raise ReportError(
                f"{name} was scored on {evaluation.num_chars:,} characters with sha256 "
                f"{evaluation.text_sha256[:12]}…, but the test text has {len(text):,} with {expected[:12]}…; "
                f"run {command('make all')} to score it on the present text"
            )
    first = next(iter(evaluations))
    common = document_char_offsets(evaluations[first])
    for name, evaluation in evaluations.items():
        if not np.array_equal(common, document_char_offsets(evaluation)):
            raise ReportError(
                f"{name} was scored on documents with other borders than {first}; "
                f"run {command('make all')} to bring both to the present text"
            )
    return common


def _losses_of(evaluation: Evaluation, codes: NDArray[np.uint32]) -> _Losses:
    lengths = evaluation.token_num_chars
    token_starts = character_starts(evaluation)[:-1][lengths > 0]
    character_sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    byte_of_character = np.cumsum(character_sizes) - character_sizes
    byte_of_token = np.cumsum(evaluation.token_num_bytes, dtype=np.int64) - evaluation.token_num_bytes
    return _Losses(
        nats=character_nats(evaluation),
        token_starts=token_starts,
        holds_rest=byte_of_character[token_starts] > byte_of_token[lengths > 0],
        context=np.repeat(context_seen(evaluation), lengths),
    )


def _bits(nats: Float64Array) -> float:
    return float(nats.sum()) / math.log(2)


def _bucket(numbers: Int64Array, first: Sequence[int]) -> Int64Array:
    """The class of each number: the last one whose first number is not above it."""
    return np.searchsorted(np.array(first), numbers, side="right").astype(np.int64) - 1


def _fill(spans: Int64Array, values: Int64Array, length: int) -> Int64Array:
    """(length,) `values` (W,) over their `spans` (W, 2), and -1 elsewhere."""
    filled = np.full(length, -1, dtype=np.int64)
    sizes = spans[:, 1] - spans[:, 0]
    inside = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    filled[np.repeat(spans[:, 0], sizes) + inside] = np.repeat(values, sizes)
    return filled


def _cut(losses: _Losses, classes: Int64Array) -> BoolArray:
    """(C,) whether a character is, whole or in part, in a token with characters of several `classes` (C,).

    A token of bytes may hold the rest of one character and the next one; both are cut then.
    """
    starts = losses.token_starts
    lowest, highest = (reduce.reduceat(classes, starts) for reduce in (np.minimum, np.maximum))
    before = np.where(losses.holds_rest, classes[starts - 1], classes[starts])
    is_mixed = np.minimum(lowest, before) != np.maximum(highest, before)
    cut: BoolArray = np.repeat(is_mixed, np.diff(np.append(starts, len(classes))))
    cut[starts[is_mixed & losses.holds_rest] - 1] = True
    return cut


def _class_figures(
    losses: Mapping[str, _Losses], classes: Mapping[str, Int64Array], num_classes: int
) -> list[dict[str, Any]]:
    """For each class its characters, bits, bits per character and cut share, each by contestant.

    `classes` (C,) may differ between contestants; a class outside 0 … num_classes - 1 is in no row.
    """
    rows: list[dict[str, Any]] = [
        {"num_chars": {}, "bits": {}, "bits_per_char": {}, "cut_share": {}} for _ in range(num_classes)
    ]
    for name, loss in losses.items():
        cut = _cut(loss, classes[name])
        for number, row in enumerate(rows):
            members = np.flatnonzero(classes[name] == number)
            bits = _bits(loss.nats[members])
            row["num_chars"][name] = len(members)
            row["bits"][name] = bits
            row["bits_per_char"][name] = bits / len(members) if len(members) else None
            row["cut_share"][name] = float(cut[members].mean()) if len(members) else None
    return rows


def _shared_figures(losses: Mapping[str, _Losses], classes: Int64Array, num_classes: int) -> list[dict[str, Any]]:
    """`_class_figures` for classes that are the same for every contestant, with one number of characters each."""
    rows = _class_figures(losses, dict.fromkeys(losses, classes), num_classes)
    return [row | {"num_chars": next(iter(row["num_chars"].values()))} for row in rows]


def _kinds(losses: Mapping[str, _Losses], kinds: Int64Array) -> list[dict[str, Any]]:
    rows = _shared_figures(losses, kinds, len(KINDS))
    named = [{"name": name, "description": text} | row for (name, text), row in zip(KINDS, rows, strict=True)]
    return [row for row in named if row["num_chars"]]


def _ranges(losses: Mapping[str, _Losses], classes: Mapping[str, Int64Array]) -> list[dict[str, Any]]:
    rows = _class_figures(losses, classes, len(_POSITIONS))
    last = [first - 1 for first in _POSITIONS[1:]] + [None]
    bounded = [{"from": a, "to": b} | row for a, b, row in zip(_POSITIONS, last, rows, strict=True)]
    return [row for row in bounded if any(row["num_chars"].values())]


def _word_frequency(
    losses: Mapping[str, _Losses], test_text: str, words: Int64Array, train_text: str
) -> list[dict[str, Any]]:
    counts = Counter(_WORD.findall(train_text))
    seen = np.array([counts[test_text[begin:end]] for begin, end in words.tolist()], dtype=np.int64)
    classes = _bucket(seen, _FREQUENCIES)
    num_words = np.bincount(classes, minlength=len(_FREQUENCIES)).tolist()
    rows = _shared_figures(losses, _fill(words, classes, len(test_text)), len(_FREQUENCIES))
    named = [
        {"name": name, "num_words": number} | row
        for name, number, row in zip(_FREQUENCY_NAMES, num_words, rows, strict=True)
    ]
    return [row for row in named if row["num_chars"]]


def _unseen(
    losses: Mapping[str, _Losses], codes: NDArray[np.uint32], test_text: str, train_text: str
) -> dict[str, Any]:
    """Characters of the test text that never occur in train, the most frequent first, and what they cost."""
    unseen = [ord(character) for character in set(test_text) - set(train_text)]
    members = np.isin(codes, np.array(unseen, dtype=np.uint32))
    distinct, counts = np.unique(codes[members], return_counts=True)
    ranked = sorted(zip(distinct.tolist(), counts.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
    [figures] = _shared_figures(losses, np.where(members, 0, 1), 1)
    return {
        "num_distinct": len(unseen),
        "characters": [
            {"character": chr(code), "code_point": f"U+{code:04X}", "count": count} for code, count in ranked
        ],
    } | figures
