"""Sampling text: ids come one by one, characters are handed out as soon as they are whole."""

import codecs
from collections.abc import Iterator

import torch

from data.clean import find_lone_surrogate, minimal, refuse_lone_surrogate
from data.config import require
from data.errors import DataError
from data.numbers import SEED, Range
from model.gpt import MiniGPT
from tokenizer.base import Tokenizer

TEMPERATURE = Range(1e-30, 1000, or_zero=True)
"""Nearer to 0 the division of the logits would leave float32; 0 itself takes the likeliest token undivided."""


def generate(
    model: MiniGPT,
    tokenizer: Tokenizer,
    prompt: str,
    *,
    num_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 1,
) -> Iterator[str]:
    """Yield the continuation of `prompt` (not the prompt itself) piece by piece, `num_tokens` tokens in all.

    Pieces are whole characters: the bytes of an unfinished one are held back, and become U+FFFD only if the text
    ends inside it. Temperature 0 takes the likeliest token; `top_k` keeps the k likeliest, None or anything above
    the vocabulary keeps all. An empty prompt starts after a newline, as documents do in training; of a prompt longer
    than the block the last block_size tokens count. The prompt is cleaned as text is, see `clean_prompt`. Raises
    ConfigError for settings out of range, DataError for a prompt that is not UTF-8 and the tokenizer's own error for
    one that it cannot represent, all before the first piece.
    """
    require(num_tokens >= 0, f"num_tokens must be at least 0, found {num_tokens}")
    TEMPERATURE.check("temperature", temperature)
    SEED.check("seed", seed)
    require(top_k is None or top_k >= 1, f"top_k must be at least 1 (or none), found {top_k}")
    ids = tokenizer.encode(clean_prompt(prompt) or "\n")
    return _stream(model, tokenizer, ids, num_tokens, temperature, top_k, seed)


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


def _stream(
    model: MiniGPT,
    tokenizer: Tokenizer,
    ids: list[int],
    num_tokens: int,
    temperature: float,
    top_k: int | None,
    seed: int,
) -> Iterator[str]:
    device = next(model.parameters()).device
    generator = torch.Generator(device=device).manual_seed(seed)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    context = list(ids)
    for _ in range(num_tokens):
        context = context[-model.config.block_size :]
        token = next_token(model, torch.tensor([context], device=device), temperature, top_k, generator)
        context.append(token)
        piece = decoder.decode(tokenizer.decode_bytes([token]))
        if piece:
            yield piece
    rest = decoder.decode(b"", final=True)
    if rest:
        yield rest


@torch.inference_mode()
def next_token(
    model: MiniGPT, ids: torch.Tensor, temperature: float, top_k: int | None, generator: torch.Generator
) -> int:
    """Draw the id after `ids` (1, T); dropout is off, and the model's mode is restored."""
    was_training = model.training
    model.eval()
    try:
        logits = model.logits(model.hidden(ids)[0, -1])  # (V,)
    finally:
        model.train(was_training)
    if temperature == 0.0:
        return int(logits.argmax())
    if top_k is not None and top_k < len(logits):
        kept = torch.topk(logits, top_k).indices
        lowered = torch.full_like(logits, float("-inf"))
        logits = lowered.index_copy(0, kept, logits[kept])
    # Subtracting the largest logit first keeps a tiny temperature from overflowing.
    probabilities = torch.softmax((logits - logits.max()) / temperature, dim=-1)
    return int(torch.multinomial(probabilities, 1, generator=generator))
