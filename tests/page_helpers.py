"""A comparison small enough for the page's tests: real tokenizers, made-up losses."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from budget_helpers import answer_for
from compare.bits_by.result import KindRow, RangeRow, Unseen, UnseenCharacter, WhereBitsGo, WordRow
from compare.certainty.intervals import Interval
from compare.certainty.pairs import Certainty, Pair, Spread
from compare.grids.sweep import Point, Reference, Sweep
from compare.outputs.comparison import BaselineLine, Comparison, Details, Identity
from compare.page.data import page_of
from compare.page.values import Page, Sample
from compare.runs import Entry, Run
from compare.table import row_of
from data.files import sha256_text
from data.splits import Split
from model.evaluate import Evaluation
from model.report_file import BudgetFacts
from report_helpers import report_of
from sizes_helpers import ranking_for
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPEKind, BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, ByteTokenizer
from tokenizer.char import CharTokenizer, alphabet_of
from tokenizer.pretokenize import SPLIT_PATTERNS, SplitPattern
from tokenizer.studies.intrinsic import CutNumber, GluedTokens, Intrinsic
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


def plain_comparison(entries: Sequence[Entry]) -> Comparison:
    """A comparison without anything that a comparison need not have."""
    names = [entry.name for entry in entries]
    by_name = {name: 2.0 + 0.25 * number for number, name in enumerate(names)}
    unsure = Pair(names[0], "", (0.0,), None, None, None, margin=0.01, outcome="undecided", reason="One block of text.")
    return Comparison(
        experiment="small",
        budget="at equal characters seen (1,000), on 1,000 test characters",
        certainty=Certainty(
            num_documents=len(DOCUMENTS),
            num_blocks=3,
            seeds=(1, 2),
            contestants=tuple(Spread(name, (1, 2), (value, value + 0.01)) for name, value in by_name.items()),
            pairs=tuple(replace(unsure, b=name) for name in names[1:]),
            baseline=names[0],
        ),
        rows=tuple(row_of(entry) for entry in entries),
        not_held_equal=("tokens seen: a 1 & b 2",),
        baselines=(),
        details=Details(
            where_bits_go=_where_bits_go(by_name),
            intrinsic={},
            sweep=None,
            marginal={},
            corpus={
                "source": "text",
                "revision": None,
                "cleaning": {"name": "minimal", "crlf_converted": 3, "lone_cr_converted": 0},
                "versions": {"python": "3"},
            },
        ),
        identity=Identity(
            reports={},
            fingerprints={},
            test_text_sha256=SPLITS["test"].sha256,
            test_chars=len(SPLITS["test"].text),
            text_path="texts/small & own.txt",
            model_shape="2 layers of width 16",
            batch="8 blocks of 16 tokens",
            flops_formula="training FLOPs per token = 6 * N",
            about=(),
        ),
        clean=None,
        mixtures=(),
    )


def full_comparison(entries: Sequence[Entry]) -> Comparison:
    """A comparison with every optional part; values by hand."""
    plain = plain_comparison(entries)
    names = [entry.name for entry in entries]
    same = "a" * (len(names) - 1)
    decided = replace(
        plain.certainty.pairs[0],
        by_seed=(-0.24, -0.26),
        documents=Interval(-0.3, -0.2),
        blocks=Interval(-0.31, -0.19),
        interval=Interval(-0.32, -0.18),
        outcome="a",
        reason="",
    )
    baselines = (
        BaselineLine("uniform", 6.5, "log2 of 90 characters", None),
        BaselineLine("xz", 3.2, "the test text by itself", None),
        BaselineLine("xz after train", 1.9, "what test adds to train", None),
        BaselineLine("gzip", 5.2, "the test text by itself", None),
        BaselineLine("character n-gram", 3.4, "order 5", None),
    )
    points = (Point(**_figures("large", 1000, 2.1), split_pattern="gpt2"),)
    points = (*points, Point(**_figures("small", 300, 2.2), split_pattern="gpt2"))
    references = (Reference(**_figures("char", 90, 2.3)),)
    sweep = Sweep(2, "small", "t" * 64, "b" * 64, BudgetFacts("characters", 1000), points, references, {})
    return replace(
        plain,
        certainty=replace(plain.certainty, pairs=(decided, *plain.certainty.pairs[1:])),
        baselines=baselines,
        details=replace(plain.details, intrinsic=dict.fromkeys(names, _INTRINSIC), sweep=sweep),
        ladder=answer_for(names),
        sizes=ranking_for(names, dict.fromkeys((1.0, 2.5), same), {1.0: same, 2.5: f"{same[1:]}?"}),
    )


def _where_bits_go(by_name: Mapping[str, float]) -> WhereBitsGo:
    cut, nothing = dict.fromkeys(by_name, 0.4), dict.fromkeys(by_name)
    figures: dict[str, Any] = {"bits": by_name, "bits_per_char": by_name, "cut_share": cut}
    empty = figures | {"bits_per_char": nothing, "cut_share": nothing}
    return WhereBitsGo(
        rule="A token's bits are shared.",
        cut_note="",
        num_chars=1000,
        total_bits=by_name,
        kinds=(KindRow("digit", "0 to 9", 100, **figures), KindRow("space", "white space", 100, **figures)),
        positions=(
            RangeRow(0, 0, dict.fromkeys(by_name, 12), **figures),
            RangeRow(1, None, dict.fromkeys(by_name, 0), **empty),
        ),
        position_note="",
        context_seen=(),
        context_note="",
        word_frequency=(WordRow("never in train", 7, 100, **figures),),
        word_note="a word is a run of letters",
        unseen=Unseen(1, (UnseenCharacter("\u2028", "U+2028", 2),), 2, **figures),
    )


_INTRINSIC = Intrinsic(
    chars_per_token=2.5,
    bytes_per_token=2.6,
    vocab_size=300,
    vocab_used=200,
    vocab_used_share=2 / 3,
    tokens_per_word=None,
    renyi_efficiency=0.7,
    embedding_share=0.25,
    glued_tokens=GluedTokens(2, 0.031, ("s, ", "'t")),
    numbers=(CutNumber("42", ("4", "2")), CutNumber("1999", None)),
    chars_in_128_tokens=320.0,
)


def _figures(name: str, size: int, bits: float) -> dict[str, Any]:
    return {
        "contestant": name,
        "kind": "byte_bpe",
        "vocab_size": size,
        "bits_per_char": bits,
        "bits_by_seed": (bits - 0.02, bits + 0.02),
        "val_bits_per_char": bits,
        "chars_per_token": 2.5,
        "embedding_share": 0.1,
        "seconds": 12.0,
    }


SAMPLES = {
    "char": (
        Sample("The ", "cat </script><b>sat</b>\n  on", temperature=0.8, seed=1),
        Sample("\n", "on & on", temperature=0.8, seed=2),
    )
}


def plain_page(entries: Sequence[Entry], splits: Mapping[str, Split] = SPLITS) -> Page:
    """The page of `plain_comparison`."""
    return page_of(plain_comparison(entries), entries=entries, splits=splits, tokenizers={}, samples={})


def full_page(tokenizers: Mapping[str, Tokenizer] | None = None, seeds: Sequence[int] = (1, 2)) -> Page:
    """A page with every section, and words of the answer that are made up."""
    tokenizers = every_tokenizer() if tokenizers is None else tokenizers
    names = [name for name in ("char", "char_bpe_none", "byte_bpe_gpt2") if name in tokenizers]
    entries = entries_of({name: tokenizers[name] for name in names}, seeds)
    page = page_of(full_comparison(entries), entries=entries, splits=SPLITS, tokenizers=tokenizers, samples=SAMPLES)
    sure = "a needs 0.100 fewer bits per character than <b> (95 % interval 0.05 to 0.15, over 9 documents)."
    return replace(
        page,
        answer="a is better than <b>. c and a are equal.",
        how_sure=(sure,),
        noise="Training noise is assumed, because there is one seed.",
    )
