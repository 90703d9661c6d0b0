"""Golden merges, fingerprints and ids on 100,000 characters of WikiText-2, for the engine and for the reference."""

import json

import numpy as np
import pytest

from tokenizer.bpe import BPEKind, BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.pretokenize import SplitPattern
from tokenizer.train import TokenizerConfig, learn_merges
from tokenizer.vocabulary import merge_strings
from tokenizer_helpers import FIXTURES

TEXT = (FIXTURES / "wikitext2_100k.txt").read_bytes().decode("utf-8")
GOLDEN = json.loads((FIXTURES / "golden.json").read_text(encoding="utf-8"))
BASES = {"char_bpe": list(GOLDEN["char_bpe"]["base_tokens"]), "byte_bpe": sorted(BYTE_CHARACTERS)}
CASES: list[tuple[BPEKind, SplitPattern, str]] = [
    ("char_bpe", "none", "char_bpe_500_ids.npy"),
    ("byte_bpe", "gpt2", "byte_bpe_1000_ids.npy"),
]
both = pytest.mark.parametrize(("kind", "split_pattern", "ids_file"), CASES, ids=[kind for kind, _, _ in CASES])


def merges_of(kind: BPEKind, split_pattern: SplitPattern, engine: str) -> list[list[str]]:
    config = TokenizerConfig(kind, 9999, split_pattern=split_pattern)
    num_merges = len(GOLDEN[kind]["merges"])
    training = learn_merges([TEXT], BASES[kind], config, num_merges=num_merges, engine_name=engine)  # type: ignore[arg-type]
    return [list(pair) for pair in merge_strings(BASES[kind], training)]


def test_the_text_is_the_one_that_the_golden_values_were_taken_from() -> None:
    assert len(TEXT) == 100_000
    assert len(TEXT.encode("utf-8")) == 100_233


@both
def test_the_engine_learns_the_golden_merges(kind: BPEKind, split_pattern: SplitPattern, ids_file: str) -> None:
    assert merges_of(kind, split_pattern, "fast") == GOLDEN[kind]["merges"]


@pytest.mark.slow
@both
def test_the_reference_learns_the_golden_merges(kind: BPEKind, split_pattern: SplitPattern, ids_file: str) -> None:
    assert merges_of(kind, split_pattern, "reference") == GOLDEN[kind]["merges"]


@both
def test_the_text_encodes_to_the_golden_ids(kind: BPEKind, split_pattern: SplitPattern, ids_file: str) -> None:
    merges = [(left, right) for left, right in GOLDEN[kind]["merges"]]
    tokenizer = BPETokenizer(BASES[kind], merges, kind=kind, split_pattern=split_pattern)
    assert tokenizer.fingerprint() == GOLDEN[kind]["fingerprint"]
    expected = np.load(FIXTURES / ids_file, allow_pickle=False)
    assert len(expected) == GOLDEN[kind]["num_tokens"]
    ids, offsets = tokenizer.encode_documents([TEXT])
    np.testing.assert_array_equal(ids, expected)
    assert offsets.tolist() == [0, len(expected)]
    assert tokenizer.decode(ids.tolist()) == TEXT


def test_the_published_fingerprint() -> None:
    base = BASES["char_bpe"]
    tokenizer = BPETokenizer.train(TEXT, 500, 2, base_tokens=base, verbose=False)
    assert tokenizer.fingerprint() == "4cd5a473109840c7913d44b292ecba4392207ef1b458301d0d3348fe5398acf0"
