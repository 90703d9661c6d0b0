"""A vocabulary in GPT-2's format that is small enough for tests."""

import json
from collections.abc import Sequence
from pathlib import Path

from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.interop import END_OF_TEXT

# GPT-2's order of the bytes: those that are printable in Latin-1, then the others.
PRINTABLE_FIRST = sorted(BYTE_CHARACTERS, key=lambda character: (character > "ÿ", character))
SMALL_MERGES = [("#", "#"), ("##", "#"), ("Ġ", "t"), ("#", "Ġt"), ("Â", "ł"), ("h", "e"), ("Ġt", "he")]


def write_gpt2_files(
    folder: Path, merges: Sequence[tuple[str, str]] = SMALL_MERGES, *, version: str = "", **replaced: int
) -> tuple[Path, Path]:
    """A vocabulary in GPT-2's format with `merges`; `replaced` ids take the place of the right ones."""
    tokens = [*PRINTABLE_FIRST, *(left + right for left, right in merges), END_OF_TEXT]
    encoder = {token: index for index, token in enumerate(tokens)} | replaced
    paths = folder / "encoder.json", folder / "vocab.bpe"
    paths[0].write_text(json.dumps(encoder), encoding="utf-8")
    lines = "".join(f"{left} {right}\n" for left, right in merges)
    paths[1].write_bytes((version + lines).encode("utf-8"))
    return paths
