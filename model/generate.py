"""Sampling text: tokens come one by one, characters are handed out as soon as they are whole."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from data.clean import find_lone_surrogate, minimal, refuse_lone_surrogate
from data.config import require
from data.errors import DataError
from data.numbers import SEED
from model.evaluate import context_of
from model.generation.draw import Drawn, Sampling, draws
from model.generation.text import TextStream, character_log_probabilities
from model.gpt import MiniGPT
from tokenizer.base import Tokenizer


@dataclass(frozen=True)
class Sample:
    """One continuation of a prompt, with how likely the model found it."""

    text: str
    """The continuation, without the prompt, up to the stop string."""
    seed: int
    """Alone with this seed it is drawn again."""
    drawn: tuple[Drawn, ...]
    """All tokens, those of the stop string included."""
    characters: tuple[tuple[str, float], ...]
    """Each character of `text` with its log-probability, see `character_log_probabilities`."""
    stopped_by: str | None
    """The stop string that ended it, if one did."""


def generate(
    model: MiniGPT,
    tokenizer: Tokenizer,
    prompt: str,
    *,
    num_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop: Sequence[str] = (),
    seed: int = 1,
    cache: bool = True,
) -> Iterator[str]:
    """Yield the continuation of `prompt` (not the prompt itself) piece by piece; `Sampling` explains the settings.

    An empty prompt starts after a newline or separator. Of a text longer than the block the end is
    seen, see `window_starts`; `cache` changes the time and not the tokens, see `draws`. The prompt is cleaned as text
    is, see `clean_prompt`. Raises ConfigError for settings out of range, DataError for a prompt that is not UTF-8 and
    the tokenizer's own error for one that it cannot represent, all before the first piece.
    """
    sampling = Sampling(num_tokens, temperature, top_k, top_p, tuple(stop), seed)
    return filter(None, pieces_of(model, tokenizer, prompt, sampling, cache=cache))


def pieces_of(
    model: MiniGPT, tokenizer: Tokenizer, prompt: str, sampling: Sampling, *, cache: bool = True
) -> Iterator[str]:
    """One piece of text for each token that is drawn, empty where no character became whole; then what was held back.

    Raises what `generate` raises, at once.
    """
    return _pieces(model, tokenizer, prompt_ids(tokenizer, prompt), sampling, cache)


def _pieces(model: MiniGPT, tokenizer: Tokenizer, ids: list[int], sampling: Sampling, cache: bool) -> Iterator[str]:
    text = TextStream(tokenizer, sampling.stop)
    for (drawn,) in draws(model, ids, sampling, 1, cache=cache):
        yield text.add(drawn.token)
        if text.stopped_by is not None:
            break
    yield text.end()


def generate_samples(
    model: MiniGPT, tokenizer: Tokenizer, prompt: str, sampling: Sampling, num_samples: int = 1, *, cache: bool = True
) -> list[Sample]:
    """`num_samples` continuations of `prompt`, drawn together; each is what `generate` gives with the sample's seed.

    Raises what `generate` raises.
    """
    require(num_samples >= 1, f"num_samples must be at least 1, found {num_samples}")
    SEED.check("the seed of the last sample", sampling.seed + num_samples - 1)
    ids = prompt_ids(tokenizer, prompt)
    texts = [TextStream(tokenizer, sampling.stop) for _ in range(num_samples)]
    pieces: list[list[str]] = [[] for _ in texts]
    drawn: list[list[Drawn]] = [[] for _ in texts]
    for step in draws(model, ids, sampling, num_samples, cache=cache):
        for row, text in enumerate(texts):
            if text.stopped_by is None:
                drawn[row].append(step[row])
                pieces[row].append(text.add(step[row].token))
        if all(text.stopped_by is not None for text in texts):
            break
    return [
        _sample(tokenizer, text, "".join(pieces[row]) + text.end(), drawn[row], sampling.seed + row)
        for row, text in enumerate(texts)
    ]


def _sample(tokenizer: Tokenizer, stream: TextStream, text: str, drawn: Sequence[Drawn], seed: int) -> Sample:
    tokens = [tokenizer.decode_bytes([one.token]) for one in drawn]
    characters = character_log_probabilities(tokens, [one.log_probability for one in drawn])
    return Sample(text, seed, tuple(drawn), tuple(characters[: len(text)]), stream.stopped_by)


def prompt_ids(tokenizer: Tokenizer, prompt: str) -> list[int]:
    """The ids of the cleaned `prompt`; an empty one is what documents are read after, see `context_of`.

    Raises DataError or the tokenizer's own error.
    """
    cleaned = clean_prompt(prompt)
    return tokenizer.encode(cleaned) if cleaned else context_of(tokenizer)


def clean_prompt(prompt: str) -> str:
    """`prompt` with the line ends of a cleaned corpus, in which CR never occurs, and without a leading byte order mark.

    Raises DataError for lone surrogates: a byte of the command line that is not UTF-8 arrives as one.
    """
    offset = find_lone_surrogate(prompt)
    if offset is not None:
        byte = ord(prompt[offset]) - 0xDC00
        if 0x80 <= byte <= 0xFF:
            raise DataError(
                f"the prompt is not valid UTF-8: byte 0x{byte:02x} at character {offset}; type it in a terminal that "
                "is set to UTF-8"
            )
        refuse_lone_surrogate(prompt, "the prompt")
    return minimal(prompt)
