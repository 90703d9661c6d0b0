"""Small files of other tools, made by their own libraries."""

import io
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.config import TokenizerConfig
from tokenizer.export.texts import HOSTILE_TEXTS
from tokenizer.foreign.make import read_foreign
from tokenizer.foreign.pieces import ForeignTokenizer
from tokenizer.pretokenize import PATTERNS

DOCUMENTS = ["the cat sat on the mat.\n\n  The dog's café: ☃ 12345\n" * 5, "", " a\tb the\n", *HOSTILE_TEXTS.values()]


def hf_library() -> Any:
    return pytest.importorskip("tokenizers")


def byte_level_json(path: Path, **changes: Any) -> Path:
    """A byte-level BPE of the tokenizers library over GPT-2's pattern; `changes` replace parts of its JSON."""
    library = hf_library()
    made = library.Tokenizer(library.models.BPE())
    made.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(vocab_size=300, initial_alphabet=BYTE_CHARACTERS, show_progress=False)
    made.train_from_iterator(DOCUMENTS, trainer)
    path.write_text(json.dumps(json.loads(made.to_str()) | changes), encoding="utf-8")
    return path


def metaspace_json(path: Path, *, prepend_scheme: str) -> Path:
    """A BPE with byte fallback and Metaspace, as converted Llama tokenizers have it."""
    library = hf_library()
    byte_pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = ["<unk>", *byte_pieces, *"▁abcdehmnost", "th", "the", "▁the"]
    vocab = {piece: index for index, piece in enumerate(pieces)}
    model = library.models.BPE(
        vocab, [("t", "h"), ("th", "e"), ("▁", "the")], unk_token="<unk>", byte_fallback=True, fuse_unk=True
    )
    made = library.Tokenizer(model)
    made.pre_tokenizer = library.pre_tokenizers.Metaspace(prepend_scheme=prepend_scheme, split=False)
    decoders = library.decoders
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    path.write_text(made.to_str(), encoding="utf-8")
    return path


def sentencepiece_model(path: Path, model_type: str, **options: Any) -> Path:
    """A model of SentencePiece that keeps white space as it is, but for the space before every text."""
    library = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    settings = {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "byte_fallback": True,
        "vocab_size": 300,
        "minloglevel": 2,
        "num_threads": 1,
        "hard_vocab_limit": False,
    }
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(DOCUMENTS[:3]), model_writer=model, model_type=model_type, **settings | options
    )
    path.write_bytes(model.getvalue())
    return path


def read(kind: str, **keys: Any) -> ForeignTokenizer:
    """The contestant of these settings."""
    tokenizer = read_foreign(TokenizerConfig(kind, **keys), {})  # type: ignore[arg-type]
    assert isinstance(tokenizer, ForeignTokenizer)
    return tokenizer


def ids_by_document(tokenizer: ForeignTokenizer, documents: Sequence[str]) -> list[list[int]]:
    ids, offsets = tokenizer.encode_documents(documents)
    return [ids[start:end].tolist() for start, end in pairwise(offsets)]


GPT2_PATTERN = PATTERNS["gpt2"]
