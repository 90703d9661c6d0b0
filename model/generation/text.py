"""From drawn tokens to text: whole characters, stop strings, and the log-probability of each character."""

import codecs
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from tokenizer.base import Tokenizer

_BYTES_AT_ONCE = 4096


class TextStream:
    """Takes tokens one by one and hands out characters as soon as they are whole and cannot begin a stop string.

    The bytes of an unfinished character are held back, and become U+FFFD only if the text ends inside it; so do bytes
    that are not UTF-8. The text ends before the first stop string, wherever the borders of its tokens are.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        """An empty text. `stop` holds strings of at least one character."""
        self._tokenizer = tokenizer
        self._stop = tuple(stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
        self.stopped_by: str | None = None
        """The stop string that ended the text, if one did."""

    def add(self, token: int) -> str:
        """The characters that can be handed out now that `token` has come."""
        return self._released(self._decoder.decode(self._tokenizer.decode_bytes([token])))

    def end(self) -> str:
        """The characters that were held back, after the last token."""
        released = self._released(self._decoder.decode(b"", final=True))
        rest, self._held = self._held, ""
        return released + rest

    def _released(self, characters: str) -> str:
        if self.stopped_by is not None:
            return ""
        text = self._held + characters
        found = [(at, word) for word in self._stop if (at := text.find(word)) >= 0]
        if found:
            end, self.stopped_by = min(found)
            self._held = ""
            return text[:end]
        num_held = max((_overlap(text, word) for word in self._stop), default=0)
        self._held = text[len(text) - num_held :]
        return text[: len(text) - num_held]


def _overlap(text: str, word: str) -> int:
    """The length of the longest end of `text` with which `word` begins."""
    return next((size for size in range(min(len(text), len(word)), 0, -1) if text.endswith(word[:size])), 0)


def character_log_probabilities(tokens: Sequence[bytes], log_probabilities: Sequence[float]) -> list[tuple[str, float]]:
    """Each character of the text that `tokens` make, with its share of their log-probabilities (natural logarithms).

    The log-probability of a token is divided equally among the characters that begin in it; a token that holds only a
    later part of a character adds its own to that character. So the sum over the characters is the sum over the tokens.
    Bytes that are not UTF-8 are characters U+FFFD, as many as Python's decoder makes.
    """
    raw = b"".join(tokens)
    starts = list(accumulate(map(len, tokens), initial=0))[:-1]
    characters, begins = _characters(raw)
    owners = [bisect_right(starts, begin) - 1 for begin in begins]  # of empty tokens at one place, the last
    num_begun = [0] * len(tokens)
    for owner in owners:
        num_begun[owner] += 1
    shares = [log_probabilities[owner] / num_begun[owner] for owner in owners]
    for token, (start, count) in enumerate(zip(starts, num_begun, strict=True)):
        if count == 0 and shares:
            shares[max(0, bisect_right(begins, start) - 1)] += log_probabilities[token]
    return list(zip(characters, shares, strict=True))


def _characters(raw: bytes) -> tuple[str, list[int]]:
    """The text of `raw` with U+FFFD for what is not UTF-8, and the byte at which each character begins."""
    pieces: list[str] = []
    begins: list[int] = []
    position = 0
    while position < len(raw):
        part = raw[position : position + _BYTES_AT_ONCE]
        whole, resume = len(part), len(part)
        try:
            piece = part.decode("utf-8")
        except UnicodeDecodeError as error:
            whole, resume = error.start, error.end
            piece = part[:whole].decode("utf-8")
            if error.end == len(part) and position + len(part) < len(raw):
                resume = whole  # a character that the part cuts: the next part begins with it
        begin = position
        for character in piece:
            begins.append(begin)
            begin += len(character.encode("utf-8"))
        if resume > whole:
            piece += "\ufffd"
            begins.append(begin)
        pieces.append(piece)
        position += resume
    return "".join(pieces), begins
