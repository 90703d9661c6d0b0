"""A comparison small enough for the page's tests: real tokenizers, made-up losses."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from budget_helpers import answer_for
from compare.ladder.stored import answer_as_json
from compare.page.data import page_data
from compare.runs import Entry, Run
from compare.table import row_of
from data.files import sha256_text
from data.splits import Split
from model.evaluate import Evaluation
from report_helpers import report_of
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPEKind, BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, ByteTokenizer
from tokenizer.char import CharTokenizer, alphabet_of
from tokenizer.pretokenize import SPLIT_PATTERNS, SplitPattern
from tokenizer.train import TokenizerConfig, train_tokenizer

PROSE = (
    "  \nThe naïve reader's café\nThe cat isn't on the mat; the mats were 12,345 in 1999. I'll say: DON'T!\n\tx = 1\n",
    "Counting tokens\n" + "How many tokens does the text have, and how many characters? They're not the same.\n" * 20,
    "日本語の文章 and “quotes” – a dash, e\u0301 combined, 🙂 and 👩‍👩‍👧.\n",
    "<script>alert('&amp;')</script> </script> <!-- {{ braces }} -->\n",
)
DOCUMENTS = tuple(f"{number}. {text}" for number in range(3) for text in PROSE)


def split_of(name: str, documents: Sequence[str]) -> Split:
    """A split of the documents."""
    text = "".join(documents)
    return Split(name, text, np.array([0, *accumulate(map(len, documents))], np.int64), sha256_text(text))


SPLITS = {name: split_of(name, DOCUMENTS) for name in ("train", "val", "test")}


@cache
def bpe_of(kind: BPEKind, split_pattern: SplitPattern) -> BPETokenizer:
    """A BPE trained on DOCUMENTS."""
    size = 180 if kind == "char_bpe" else 400
    config = TokenizerConfig(kind=kind, vocab_size=size, split_pattern=split_pattern, training_characters=None)
    tokenizer, _ = train_tokenizer(config, SPLITS)
    assert isinstance(tokenizer, BPETokenizer)
    return tokenizer


@cache
def every_tokenizer() -> dict[str, Tokenizer]:
    """Every kind under every split pattern, and a byte BPE whose bytes are not in byte order (as GPT-2's are not)."""
    tokenizers: dict[str, Tokenizer] = {"char": CharTokenizer(alphabet_of(DOCUMENTS)), "byte": ByteTokenizer()}
    kinds: tuple[BPEKind, ...] = ("char_bpe", "byte_bpe")
    for kind in kinds:
        for pattern in SPLIT_PATTERNS:
            tokenizers[f"{kind}_{pattern}"] = bpe_of(kind, pattern)
    merges = bpe_of("byte_bpe", "gpt2").merges
    tokenizers["shuffled"] = BPETokenizer(BYTE_CHARACTERS[::-1], merges, kind="byte_bpe", split_pattern="gpt2")
    return tokenizers


def evaluation_of(tokenizer: Tokenizer, split: Split, seed: int) -> Evaluation:
    """Losses drawn at random, about two bits for a character."""
    ids, offsets = tokenizer.encode_documents(split.documents())
    lengths = tokenizer.token_num_chars[ids]
    nats = np.random.default_rng(seed).exponential(1.4, len(ids)) * np.maximum(lengths, 0.2)
    return Evaluation(
        nats=nats.astype(np.float32),
        token_num_chars=lengths.astype(np.int32),
        token_num_bytes=tokenizer.token_num_bytes[ids].astype(np.int32),
        document_offsets=offsets,
        disjoint_total_nats=float(nats.sum() * 1.02),
        text_sha256=split.sha256,
        tokenizer_fingerprint=tokenizer.fingerprint(),
        stride=8,
        block_size=16,
    )


def run_of(name: str, tokenizer: Tokenizer, seed: int = 1) -> Run:
    """A run as `read_run` gives it, without a folder."""
    evaluations = {part: evaluation_of(tokenizer, SPLITS[part], seed) for part in ("val", "test")}
    parts = {
        part: {
            "text_sha256": one.text_sha256,
            "num_chars": one.num_chars,
            "num_tokens": len(one.nats),
            "num_documents": len(DOCUMENTS),
            "total_nats": one.total_nats,
            "bits_per_char": one.bits_per_char,
            "bits_per_byte": one.bits_per_byte,
            "disjoint_bits_per_char": one.disjoint_bits_per_char,
            "word_perplexity": None,
            "nats_sha256": f"{seed:064x}",
        }
        for part, one in evaluations.items()
    }
    metrics = [
        {"step": step, "characters": 1e5 * step + seed, "flops": 1e9 * step, "seconds": step / 2}
        | ({"val_sample_bits_per_char": 4.0 - 0.1 * step + 0.05 * seed} if step % 2 == 0 else {})
        for step in range(1, 11)
    ]
    changes = {
        "contestant": name,
        "tokenizer": {
            "kind": tokenizer.kind,
            "vocab_size": tokenizer.vocab_size,
            "fingerprint": tokenizer.fingerprint(),
        },
        "model": {"vocab_size": tokenizer.vocab_size},
        "train": {"seed": seed},
        "block": {"mean_characters": 30.0},
        "splits": parts,
    }
    report = report_of(changes)
    return Run(name, Path(name), report, f"{seed + 100:064x}", evaluations, metrics)


def entries_of(tokenizers: Mapping[str, Tokenizer], seeds: Sequence[int] = (1,)) -> list[Entry]:
    """One entry for each tokenizer, one run for each seed."""
    return [Entry(name, tuple(run_of(name, one, seed) for seed in seeds)) for name, one in tokenizers.items()]


def summary_of(entries: Sequence[Entry]) -> dict[str, Any]:
    """What comparison.json holds at least."""
    return {
        "experiment": "small",
        "answer": "a is better than <b>. c and a are equal.",
        "how_sure": ["a needs 0.100 fewer bits per character than <b> (95 % interval 0.05 to 0.15, over 9 documents)."],
        "noise": "Training noise is assumed, because there is one seed.",
        "text_path": "texts/small & own.txt",
        "model_shape": "2 layers of width 16",
        "batch": "8 blocks of 16 tokens",
        "rows": [asdict(row_of(entry)) for entry in entries],
        "not_held_equal": ["tokens seen: a 1 & b 2"],
        "flops_formula": "training FLOPs per token = 6 * N",
        "corpus": {
            "source": "text",
            "revision": None,
            "cleaning": {"name": "minimal", "crlf_converted": 3, "lone_cr_converted": 0},
            "versions": {"python": "3"},
        },
    }


def full_summary(entries: Sequence[Entry]) -> dict[str, Any]:
    """A comparison with every optional part, in the shapes that their modules write; values by hand."""
    names = [entry.name for entry in entries]
    by_name = {name: 2.0 + 0.25 * number for number, name in enumerate(names)}
    pair = {
        "a": names[0],
        "b": names[1],
        "difference": -0.25,
        "documents": {"low": -0.3, "high": -0.2},
        "blocks": {"low": -0.31, "high": -0.19},
        "by_seed": [-0.25, -0.26],
        "by_seed_sd": 0.007,
        "interval": {"low": -0.32, "high": -0.18},
        "margin": 0.01,
        "outcome": "a",
        "reason": "",
    }
    unsure = pair | {"documents": None, "blocks": None, "by_seed": [0.0], "by_seed_sd": None, "outcome": "undecided"}
    row = {"num_chars": 100, "bits_per_char": by_name, "cut_share": dict.fromkeys(names, 0.4)}
    class_ = {"bits": by_name} | row
    empty = class_ | {"bits_per_char": dict.fromkeys(names), "cut_share": dict.fromkeys(names)}
    return summary_of(entries) | {
        "ladder": answer_as_json(answer_for(names)),
        "statistics": {
            "num_documents": len(DOCUMENTS),
            "block_characters": 2000,
            "num_blocks": 3,
            "contestants": {
                name: {"seeds": [1, 2], "bits_per_char": [value, value + 0.01], "mean": value, "sd": 0.007}
                for name, value in by_name.items()
            },
            "pairs": [pair, unsure],
        },
        "baselines": [
            {"name": "uniform", "bits_per_char": 6.5, "note": "log2 of 90 characters"},
            {"name": "xz", "bits_per_char": 3.2, "note": "the test text by itself"},
            {"name": "xz after train", "bits_per_char": 1.9, "note": "what test adds to train"},
            {"name": "gzip", "bits_per_char": 5.2, "note": "the test text by itself"},
            {"name": "character n-gram", "bits_per_char": 3.4, "note": "order 5"},
        ],
        "where_bits_go": {
            "rule": "A token's bits are shared.",
            "word_note": "a word is a run of letters",
            "num_chars": 1000,
            "kinds": [class_ | {"name": "digit", "description": "0 to 9"}, class_ | {"name": "space"}],
            "positions": [
                row | {"from": 0, "to": 0, "num_chars": dict.fromkeys(names, 12)},
                empty | {"from": 1, "to": None, "num_chars": dict.fromkeys(names, 0)},
            ],
            "word_frequency": [class_ | {"name": "never in train", "num_words": 7}],
            "unseen": {
                "num_distinct": 1,
                "num_chars": 2,
                "characters": [{"character": "\u2028", "code_point": "U+2028", "count": 2}],
                "bits": by_name,
                "bits_per_char": by_name,
            },
        },
        "intrinsic": {name: _intrinsic() for name in names},
        "sweep": {
            "budget": {"unit": "characters", "amount": 1000},
            "points": [
                _point("large", 1000, 2.1) | {"split_pattern": "gpt2"},
                _point("small", 300, 2.2) | {"split_pattern": "gpt2"},
            ],
            "references": [_point("char", 90, 2.3)],
        },
    }


def _intrinsic() -> dict[str, Any]:
    return {
        "chars_per_token": 2.5,
        "bytes_per_token": 2.6,
        "vocab_size": 300,
        "vocab_used": 200,
        "tokens_per_word": None,
        "renyi_efficiency": 0.7,
        "embedding_share": 0.25,
        "glued_tokens": {"num": 2, "share": 0.031, "examples": ["s, ", "'t"]},
        "numbers": [{"text": "42", "tokens": ["4", "2"]}, {"text": "1999", "tokens": None}],
        "chars_in_128_tokens": 320.0,
    }


def _point(name: str, size: int, bits: float) -> dict[str, Any]:
    return {
        "contestant": name,
        "kind": "byte_bpe",
        "vocab_size": size,
        "bits_per_char": bits,
        "bits_by_seed": [bits - 0.02, bits + 0.02],
        "embedding_share": 0.1,
        "seconds": 12.0,
    }


SAMPLES = {
    "char": [
        {"prompt": "The ", "text": "cat </script><b>sat</b>\n  on", "temperature": 0.8, "top_k": 50, "seed": 1},
        {"prompt": "\n", "text": "on & on", "temperature": 0.8, "top_k": None, "seed": 2},
    ]
}


def full_page(tokenizers: Mapping[str, Tokenizer] | None = None, seeds: Sequence[int] = (1, 2)) -> dict[str, Any]:
    """A page with every section."""
    tokenizers = every_tokenizer() if tokenizers is None else tokenizers
    names = [name for name in ("char", "char_bpe_none", "byte_bpe_gpt2") if name in tokenizers]
    entries = entries_of({name: tokenizers[name] for name in names}, seeds)
    return page_data(
        summary=full_summary(entries), entries=entries, splits=SPLITS, tokenizers=tokenizers, samples=SAMPLES
    )
