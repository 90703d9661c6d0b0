"""The vocabularies that the page embeds, so that the browser encodes as Python does."""

from collections.abc import Mapping
from dataclasses import replace

from compare.page.values import Vocabulary
from data.files import canonical_json
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, ByteTokenizer
from tokenizer.char import CharTokenizer

MOST_TOKENIZER_BYTES = 1_500_000  # of all embedded vocabularies together, as JSON; keeps the page below 3 MB


def embedded_tokenizers(tokenizers: Mapping[str, Tokenizer]) -> tuple[Vocabulary, ...]:
    """What the browser needs to encode as Python does, or for each tokenizer why the page leaves it out: its vocabulary
    is too large, or its kind has no merges.
    """
    embedded, bytes_left = [], MOST_TOKENIZER_BYTES
    for name, tokenizer in tokenizers.items():
        entry = Vocabulary(name, tokenizer.kind, tokenizer.vocab_size)
        contents = _contents(tokenizer)
        if contents is None:
            entry = replace(entry, left_out=f"the page cannot encode tokenizers of kind {tokenizer.kind!r}")
        else:
            pattern, base, merges = contents
            plain = {"split_pattern": pattern, "base": base, "merges": merges}
            num_bytes = len(canonical_json(plain).encode("utf-8"))
            if num_bytes > bytes_left:
                reason = (
                    f"its vocabulary of {tokenizer.vocab_size:,} takes {num_bytes / 1e6:.1f} MB, and the page has "
                    f"{bytes_left / 1e6:.1f} MB left for vocabularies"
                )
                entry = replace(entry, left_out=reason)
            else:
                bytes_left -= num_bytes
                entry = replace(entry, split_pattern=pattern, base=base, merges=tuple(merges))
        embedded.append(entry)
    return tuple(embedded)


def _contents(tokenizer: Tokenizer) -> tuple[str, str, list[int]] | None:
    """Split pattern, base tokens in id order, and the ids of both halves of every merge."""
    if isinstance(tokenizer, ByteTokenizer):
        return "none", "".join(BYTE_CHARACTERS), []
    if isinstance(tokenizer, CharTokenizer):
        return "none", "".join(tokenizer.base_tokens), []
    if isinstance(tokenizer, BPETokenizer):
        ids = [tokenizer.stoi[half] for pair in tokenizer.merges for half in pair]
        return tokenizer.split_pattern, "".join(tokenizer.base_tokens), ids
    return None
