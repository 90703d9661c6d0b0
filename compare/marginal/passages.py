"""Short passages of a split of which every segmentation fits into one block; see `compare/marginal/estimate.py`."""

from collections.abc import Sequence

import numpy as np

from compare.marginal.segmentations import Vocabulary, longest_segmentations
from data.config import require
from data.errors import DataError
from model.evaluate import context_of
from tokenizer.base import Tokenizer

_LOOK_AHEAD = 4  # text that is segmented to cut a passage, in blocks of characters


def choose_passages(
    documents: Sequence[str], tokenizer: Tokenizer, *, block_size: int, num_chars: int, seed: int = 1
) -> list[str]:
    """Passages for `marginal_gap`, drawn until they hold `num_chars` characters or the text is used up, in its order.

    They are beginnings of documents, which really do continue a newline; where those hold too little, beginnings of
    lines. A passage goes as far as all its segmentations fit into a block, and ends with a token of the text's
    canonical segmentation: an end inside one would make a canonical segmentation that no training text shows.
    Raises ConfigError for a number of characters below 1, and DataError if no passage can be made.
    """
    require(num_chars >= 1, f"the number of characters must be at least 1, found {num_chars}")
    vocabulary = Vocabulary(tokenizer)
    room = block_size - len(context_of(tokenizer)) + 1
    starts = [(number, 0) for number in range(len(documents))]
    if sum(min(len(document), room) for document in documents) < num_chars:
        starts = _line_starts(documents)
    taken: dict[tuple[int, int], str] = {}
    missing = num_chars
    for choice in np.random.default_rng(seed).permutation(len(starts)):
        number, start = starts[choice]
        passage = _cut(documents[number][start : start + _LOOK_AHEAD * room], tokenizer, vocabulary, room)
        spans = [(begin, begin + len(text)) for (other, begin), text in taken.items() if other == number]
        if not passage or any(start < end and begin < start + len(passage) for begin, end in spans):
            continue
        taken[number, start] = passage
        missing -= len(passage)
        if missing <= 0:
            break
    if not taken:
        raise DataError(
            f"no passage of the {len(documents)} documents fits into a block of {block_size} tokens; give text, or a "
            "larger model.block_size"
        )
    return [taken[key] for key in sorted(taken)]


def _line_starts(documents: Sequence[str]) -> list[tuple[int, int]]:
    """Document and first character of every line that is not blank."""
    starts = []
    for number, document in enumerate(documents):
        start = 0
        for line in document.split("\n"):
            if line.strip():
                starts.append((number, start))
            start += len(line) + 1
    return starts


def _cut(text: str, tokenizer: Tokenizer, vocabulary: Vocabulary, room: int) -> str:
    """The longest beginning of `text` that ends with a token and a whole character and never takes over `room`."""
    longest = longest_segmentations(vocabulary.edges(text.encode("utf-8")))
    num_chars = np.cumsum([0, *(len(character.encode("utf-8")) for character in text)]).tolist()
    whole = {num_bytes: count for count, num_bytes in enumerate(num_chars)}
    token_num_bytes = tokenizer.token_num_bytes
    end = best = 0
    for index in tokenizer.encode(text):
        end += int(token_num_bytes[index])
        if longest[end] > room:
            break
        best = whole.get(end, best)
    return text[:best]
