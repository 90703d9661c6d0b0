"""Tokenizer files -> tokenizers, with everything checked; the one place that knows the classes of all kinds."""

from pathlib import Path

from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import ByteTokenizer
from tokenizer.char import CharTokenizer
from tokenizer.foreign.make import CLASSES, from_contents
from tokenizer.special.unmerged import UnmergedTokenizer
from tokenizer.stored import StoredTokenizer, checked, named, read_contents

FOREIGN_TYPES = tuple(CLASSES)


def load_tokenizer(path: Path) -> Tokenizer:
    """Load any tokenizer file this project writes.

    Types, counts, the existence of every merge's halves, duplicates and the stored fingerprint are checked.
    Raises TokenizerError: one sentence, what is wrong and where; and DataError for a file that may not be read.
    """
    contents = read_contents(path)
    with named(path):
        if isinstance(contents, dict) and contents.get("type") in FOREIGN_TYPES:
            return from_contents(contents)
        stored = checked(contents)
        tokenizer = _build(stored)
        stored.check(tokenizer)
    return tokenizer


def _build(stored: StoredTokenizer) -> Tokenizer:
    if stored.kind in ("char", "byte") and stored.special_tokens:
        return UnmergedTokenizer(
            "char" if stored.kind == "char" else "byte",
            stored.base_tokens,
            special_tokens=stored.special_tokens,
            placement=stored.placement,
            document_separator=stored.document_separator,
            trained_on=stored.trained_on,
        )
    if stored.kind == "byte":
        return ByteTokenizer(trained_on=stored.trained_on)
    if stored.kind == "char":
        return CharTokenizer(stored.base_tokens, trained_on=stored.trained_on)
    return BPETokenizer.from_stored(stored)
