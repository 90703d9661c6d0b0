"""Tokenizer files -> tokenizers, with everything checked; the one place that knows the classes of all kinds."""

from pathlib import Path

from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import ByteTokenizer
from tokenizer.char import CharTokenizer
from tokenizer.stored import StoredTokenizer, named, read_tokenizer_file


def load_tokenizer(path: Path) -> Tokenizer:
    """Load any tokenizer file this project writes.

    Types, counts, the existence of every merge's halves, duplicates and the stored fingerprint are checked.
    Raises TokenizerError: one sentence, what is wrong and where; and DataError for a file that may not be read.
    """
    stored = read_tokenizer_file(path)
    with named(path):
        tokenizer = _build(stored)
        stored.check(tokenizer)
    return tokenizer


def _build(stored: StoredTokenizer) -> Tokenizer:
    if stored.kind == "byte":
        return ByteTokenizer(trained_on=stored.trained_on)
    if stored.kind == "char":
        return CharTokenizer(stored.base_tokens, trained_on=stored.trained_on)
    return BPETokenizer.from_stored(stored)
