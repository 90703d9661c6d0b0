"""The losses of a split seen character by character, so that contestants with different tokens meet on one axis.

The rule, stated once for everything that is derived from it: a token's nats are shared equally over the characters
that begin in it; a token that holds only a later part of a character (a middle byte) adds its nats to that character.
The space that SentencePiece puts before a document is no character; a token that is nothing else adds its nats to the
document's first character.
The sum over all characters is the sum over all tokens.

Shapes: n tokens, C characters, D documents of the split.
"""

import numpy as np
from numpy.typing import NDArray

from model.evaluate import Evaluation

Float64Array = NDArray[np.float64]
Int64Array = NDArray[np.int64]

RULE = (
    "The bits of a token are divided equally among the characters that begin in it. A token that holds only a later "
    "part of a character adds its bits to that character."
)


def character_starts(evaluation: Evaluation) -> Int64Array:
    """(n+1,) first character of each token, and the number of characters at the end."""
    starts = np.zeros(len(evaluation.nats) + 1, np.int64)
    np.cumsum(evaluation.token_num_chars, dtype=np.int64, out=starts[1:])
    return starts


def document_char_offsets(evaluation: Evaluation) -> Int64Array:
    """(D+1,) document d is characters o[d] … o[d+1] - 1."""
    offsets: Int64Array = character_starts(evaluation)[evaluation.document_offsets]
    return offsets


def character_nats(evaluation: Evaluation) -> Float64Array:
    """(C,) nats of each character under the rule of this module."""
    lengths = evaluation.token_num_chars.astype(np.int64)
    losses = evaluation.nats.astype(np.float64)
    begins = lengths > 0
    nats: Float64Array = np.repeat(losses[begins] / lengths[begins], lengths[begins])
    # A token without a character belongs to the one before it; at the beginning of a document, where it can only be
    # the space that a tokenizer puts there, to the document's first.
    starts, offsets = character_starts(evaluation), evaluation.document_offsets
    first_of_document = np.repeat(starts[offsets[:-1]], np.diff(offsets))
    np.add.at(nats, np.maximum(starts[:-1] - 1, first_of_document)[~begins], losses[~begins])
    return nats


def document_nats(evaluation: Evaluation) -> Float64Array:
    """(D,) nats of each document, from its tokens; an empty document has 0."""
    sums = np.zeros(len(evaluation.nats) + 1, np.float64)
    np.cumsum(evaluation.nats, dtype=np.float64, out=sums[1:])
    nats: Float64Array = np.diff(sums[evaluation.document_offsets])
    return nats
