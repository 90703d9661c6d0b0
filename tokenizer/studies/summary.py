"""What a reader wants to see after training: sizes, compression, the longest tokens, the first merges, a sample."""

from collections.abc import Mapping

import numpy as np

from data.splits import Split
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.reference import Training

_NUM_LONGEST, _NUM_FIRST = 30, 50
_SAMPLE_CHARACTERS = 80


def describe(
    name: str,
    tokenizer: Tokenizer,
    training: Training | None,
    splits: Mapping[str, Split],
    num_tokens: Mapping[str, int],
) -> str:
    """A page of text about a freshly made tokenizer; `num_tokens` are those of each of `splits`."""
    lines = [f"{name}: {tokenizer.kind}, {tokenizer.vocab_size:,} tokens, fingerprint {tokenizer.fingerprint()[:16]}…"]
    if isinstance(tokenizer, BPETokenizer) and training is not None:
        lines.append(
            f"  base {len(tokenizer.base_tokens):,} + merges {len(tokenizer.merges):,} + special "
            f"{len(tokenizer.special_tokens):,} = {tokenizer.vocab_size:,}; stopped: {training.stop_reason}"
        )
    for split in splits.values():
        num_chars, num_ids = len(split.text), num_tokens[split.name]
        lines.append(
            f"  {split.name:<5} {num_chars:>12,} characters -> {num_ids:>12,} tokens: "
            f"{num_chars / num_ids:.3f} characters per token, {1 - num_ids / num_chars:.1%} fewer"
        )
    if isinstance(tokenizer, BPETokenizer):
        lines += _learned(tokenizer)
    sample = next(iter(splits.values())).text[:_SAMPLE_CHARACTERS]
    ids_of_sample = tokenizer.encode(sample)
    lines += [
        f"  sample   {sample!r}",
        f"  tokens   {[tokenizer.decode_bytes([i]).decode('utf-8', 'backslashreplace') for i in ids_of_sample]}",
        f"  ids      {ids_of_sample}",
        f"  decoded  {tokenizer.decode(ids_of_sample)!r}",
    ]
    return "\n".join(lines)


def _learned(tokenizer: BPETokenizer) -> list[str]:
    base_size = len(tokenizer.base_tokens)
    learned = np.arange(base_size, base_size + len(tokenizer.merges))
    longest = sorted(learned.tolist(), key=lambda i: (-len(tokenizer.tokens[i]), i))[:_NUM_LONGEST]
    shown = "  ".join(f"{tokenizer.tokens[index]!r} {index}" for index in longest)
    first = "  ".join(f"{left!r}+{right!r}" for left, right in tokenizer.merges[:_NUM_FIRST])
    return [f"  {_NUM_LONGEST} longest learned tokens with ids:  {shown}", f"  first {_NUM_FIRST} merges:  {first}"]
