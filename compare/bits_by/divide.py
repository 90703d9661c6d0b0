"""The bits of the test text, divided among classes of characters.

Every contestant is measured on the same classes of the same characters; `compare.characters` says how the bits of a
token reach its characters. Where the border of a class cuts tokens, `cut_share` says how many of the class's
characters that rule had to divide among classes.

Shapes: C characters, D documents, K classes, W words of the test text.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from compare.bits_by.classes import (
    FREQUENCIES,
    FREQUENCY_NAMES,
    KINDS,
    POSITIONS,
    WORD,
    bucket,
    code_points,
    fill,
    kinds_of,
    word_spans,
)
from compare.bits_by.losses import Losses, bits_of, cut_characters, losses_of
from compare.bits_by.result import Figures, KindRow, RangeRow, Unseen, UnseenCharacter, WhereBitsGo, WordRow
from compare.characters import RULE, Int64Array, document_char_offsets
from compare.figures import NOT_DIVIDED
from data.clean import is_divided_by_spaces
from data.errors import ReportError, command
from data.files import sha256_text
from model.evaluate import Evaluation

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


def where_bits_go(evaluations: Mapping[str, Evaluation], test_text: str, train_text: str) -> WhereBitsGo:
    """The bits of `test_text` (C characters) by class of character, for each contestant.

    `evaluations` are those of the test split by contestant. Bits are totals, `bits_per_char` is over the characters
    of the class (None where a contestant has none). Kinds and positions each hold every character once, so their bits
    add up to `total_bits`; classes that are empty for everyone are left out, and so are words where the text is not
    divided by spaces. Raises ReportError without a contestant,
    and if one was scored on another text or other documents.
    """
    offsets = _common_documents(evaluations, test_text)
    codes = code_points(test_text)
    losses = {name: losses_of(evaluation, codes) for name, evaluation in evaluations.items()}
    words = word_spans(test_text, offsets)
    has_words = is_divided_by_spaces(test_text)
    positions = np.arange(len(codes)) - np.repeat(offsets[:-1], np.diff(offsets))
    by_position = {name: bucket(positions, POSITIONS) for name in losses}
    by_context = {name: bucket(loss.context, POSITIONS) for name, loss in losses.items()}
    return WhereBitsGo(
        rule=RULE,
        cut_note=CUT_NOTE,
        num_chars=len(codes),
        total_bits={name: bits_of(loss.nats) for name, loss in losses.items()},
        kinds=_kinds(losses, kinds_of(codes, words)),
        positions=_ranges(losses, by_position),
        position_note=POSITION_NOTE,
        context_seen=_ranges(losses, by_context),
        context_note=CONTEXT_NOTE,
        word_frequency=_word_frequency(losses, test_text, words, train_text) if has_words else (),
        word_note=WORD_NOTE if has_words else f"{NOT_DIVIDED}, so it has no words to sort",
        unseen=_unseen(losses, codes, test_text, train_text),
    )


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


def _class_figures(losses: Mapping[str, Losses], classes: Mapping[str, Int64Array], num_classes: int) -> list[Figures]:
    """The figures of each class; `classes` (C,) may differ between contestants.

    A class outside 0 … num_classes - 1 is in no row.
    """
    cut = {name: cut_characters(loss, classes[name]) for name, loss in losses.items()}
    rows = []
    for number in range(num_classes):
        members = {name: np.flatnonzero(classes[name] == number) for name in losses}
        bits = {name: bits_of(losses[name].nats[chosen]) for name, chosen in members.items()}
        rows.append(
            Figures(
                num_chars={name: len(chosen) for name, chosen in members.items()},
                bits=bits,
                bits_per_char={
                    name: bits[name] / len(chosen) if len(chosen) else None for name, chosen in members.items()
                },
                cut_share={
                    name: float(cut[name][chosen].mean()) if len(chosen) else None for name, chosen in members.items()
                },
            )
        )
    return rows


def _shared_figures(losses: Mapping[str, Losses], classes: Int64Array, num_classes: int) -> list[Figures]:
    """The same for classes (C,) that are the same for every contestant."""
    return _class_figures(losses, dict.fromkeys(losses, classes), num_classes)


def _common_size(figures: Figures) -> int:
    """The characters of a class that is the same for every contestant."""
    return next(iter(figures.num_chars.values()))


def _kinds(losses: Mapping[str, Losses], kinds: Int64Array) -> tuple[KindRow, ...]:
    rows = _shared_figures(losses, kinds, len(KINDS))
    named = (
        KindRow(name, text, _common_size(row), row.bits, row.bits_per_char, row.cut_share)
        for (name, text), row in zip(KINDS, rows, strict=True)
    )
    return tuple(row for row in named if row.num_chars)


def _ranges(losses: Mapping[str, Losses], classes: Mapping[str, Int64Array]) -> tuple[RangeRow, ...]:
    rows = _class_figures(losses, classes, len(POSITIONS))
    last = [first - 1 for first in POSITIONS[1:]] + [None]
    bounded = (
        RangeRow(a, b, row.num_chars, row.bits, row.bits_per_char, row.cut_share)
        for a, b, row in zip(POSITIONS, last, rows, strict=True)
    )
    return tuple(row for row in bounded if any(row.num_chars.values()))


def _word_frequency(
    losses: Mapping[str, Losses], test_text: str, words: Int64Array, train_text: str
) -> tuple[WordRow, ...]:
    counts = Counter(WORD.findall(train_text))
    seen = np.array([counts[test_text[begin:end]] for begin, end in words.tolist()], dtype=np.int64)
    classes = bucket(seen, FREQUENCIES)
    num_words = np.bincount(classes, minlength=len(FREQUENCIES)).tolist()
    rows = _shared_figures(losses, fill(words, classes, len(test_text)), len(FREQUENCIES))
    named = (
        WordRow(name, number, _common_size(row), row.bits, row.bits_per_char, row.cut_share)
        for name, number, row in zip(FREQUENCY_NAMES, num_words, rows, strict=True)
    )
    return tuple(row for row in named if row.num_chars)


def _unseen(losses: Mapping[str, Losses], codes: NDArray[np.uint32], test_text: str, train_text: str) -> Unseen:
    """Characters of the test text that never occur in train, the most frequent first, and what they cost."""
    unseen = [ord(character) for character in set(test_text) - set(train_text)]
    members = np.isin(codes, np.array(unseen, dtype=np.uint32))
    distinct, counts = np.unique(codes[members], return_counts=True)
    ranked = sorted(zip(distinct.tolist(), counts.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
    [figures] = _shared_figures(losses, np.where(members, 0, 1), 1)
    return Unseen(
        num_distinct=len(unseen),
        characters=tuple(UnseenCharacter(chr(code), f"U+{code:04X}", count) for code, count in ranked),
        num_chars=_common_size(figures),
        bits=figures.bits,
        bits_per_char=figures.bits_per_char,
        cut_share=figures.cut_share,
    )
