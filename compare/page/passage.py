"""A passage of the test text with every contestant's bits per character, cut into cells that can stand in lines.

A cell is a word with the white space after it; in it each contestant has one row of spans. All characters of a span
have the same bits. The page puts the rows one above the other, so that the same characters stand in one column.
"""

import math
import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from compare.characters import character_nats, character_starts
from compare.page.values import Cell, Passage, Span
from data.splits import Split
from model.evaluate import Evaluation

Float64Array = NDArray[np.float64]

LEVELS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Bits per character at which the colour changes: level 0 is below the first, the last level above the last."""
_NUM_CHARACTERS = 600
_FEWEST_CHARACTERS = 400
_MOST_IN_A_CELL = 24  # characters; a longer word is cut, so that a line of a phone can hold it
_CELL = re.compile(r"\S+[^\S\n]*\n?|[^\S\n]+\n?|\n")


def passage(test: Split, evaluations: Mapping[str, Evaluation]) -> Passage:
    """The beginning of the document on which every contestant is closest to its own figure for the whole split.

    Of the documents with at least 400 characters (else: the longest) the first 600 characters are taken, cut at white
    space; the one is chosen whose worst relative distance, over the contestants, is least. `text` is the passage.
    """
    bits = {name: character_nats(evaluation) / math.log(2) for name, evaluation in evaluations.items()}
    document = _typical_document(test.document_offsets, list(bits.values()))
    start, end = (int(offset) for offset in test.document_offsets[document : document + 2])
    end = _cut_at_space(test.text, start, end)
    text = test.text[start:end]
    begins = {name: _token_begins(evaluation, start, end) for name, evaluation in evaluations.items()}
    cells, position = [], start
    for match in _CELL.finditer(text):
        word = match.group()
        for offset in range(0, len(word), _MOST_IN_A_CELL):
            piece = word[offset : offset + _MOST_IN_A_CELL]
            span = slice(position, position + len(piece))
            rows = [
                _spans(piece, bits[name][span], begins[name][position - start : span.stop - start]) for name in bits
            ]
            cells.append(Cell(tuple(rows), ends_line=piece.endswith("\n")))
            position = span.stop
    return Passage(
        contestants=tuple(bits),
        document_number=document + 1,
        text=text,
        is_whole_document=end == int(test.document_offsets[document + 1]),
        bits_per_char={name: float(values[start:end].mean()) for name, values in bits.items()},
        levels=LEVELS,
        cells=tuple(cells),
    )


def _typical_document(offsets: NDArray[np.int64], bits: list[Float64Array]) -> int:
    lengths = np.diff(offsets)
    candidates = np.flatnonzero(lengths >= _FEWEST_CHARACTERS)
    if not len(candidates):
        return int(lengths.argmax())
    starts = offsets[candidates]
    ends = np.minimum(starts + _NUM_CHARACTERS, offsets[candidates + 1])
    distance = np.zeros(len(candidates))
    for values in bits:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        mean = (sums[ends] - sums[starts]) / (ends - starts)
        distance = np.maximum(distance, np.abs(mean / values.mean() - 1.0))
    return int(candidates[distance.argmin()])


def _cut_at_space(text: str, start: int, end: int) -> int:
    """The end of the passage: `end`, or behind the last white space of the first 600 characters."""
    limit = start + _NUM_CHARACTERS
    if end <= limit:
        return end
    while limit > start + _FEWEST_CHARACTERS and not text[limit - 1].isspace():
        limit -= 1
    return limit


def _token_begins(evaluation: Evaluation, start: int, end: int) -> NDArray[np.bool_]:
    """Whether a token begins with the character, for characters start … end - 1."""
    begins = np.zeros(end - start, dtype=np.bool_)
    starts = character_starts(evaluation)[:-1][evaluation.token_num_chars > 0]
    begins[starts[(starts >= start) & (starts < end)] - start] = True
    return begins


def _spans(text: str, bits: Float64Array, begins: NDArray[np.bool_]) -> tuple[Span, ...]:
    """One span for each run of equal bits within a token."""
    spans: list[Span] = []
    for character, value, is_begin in zip(text, bits.tolist(), begins.tolist(), strict=True):
        # A shared loss gives every character of its token the very same float.
        if spans and not is_begin and spans[-1].bits == value:
            spans[-1] = spans[-1]._replace(text=spans[-1].text + character)
        else:
            spans.append(Span(character, value, int(np.searchsorted(LEVELS, value, side="right")), is_begin))
    return tuple(span._replace(bits=round(span.bits, 2)) for span in spans)
