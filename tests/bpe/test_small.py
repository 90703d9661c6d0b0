"""Small texts in plain Python: the reference's answers, and no engine loaded for them."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import TokenizerError
from factories import examples
from tokenizer import bpe, learn, reference, small, train
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.pretokenize import SPLIT_PATTERNS, SplitPattern
from tokenizer.reference import TIE_BREAKS, Pair, TieBreak
from tokenizer.train import TokenizerConfig, learn_merges
from tokenizer.vocabulary import merge_strings
from tokenizer_helpers import LOSSLESS_TEXTS, PROJECT

BASE_BYTES = [b"m", b"z", b"a", b"mq"]
symbols = st.integers(1, 4).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, size - 1), max_size=16), min_size=1, max_size=6)
)
runs = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=6).map(
        lambda pieces: [symbol for symbol, length in pieces for _ in range(length)]
    ),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module", autouse=True)
def _plain_python_answers() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bpe, "_PLAIN_CHARACTERS", 10**9)
        patch.setattr(learn, "is_small", lambda _num_chars: True)
        patch.setattr(train, "is_small", lambda _num_chars: True)
        yield


@examples(300)
@given(st.one_of(symbols, runs), st.integers(0, 30), st.integers(1, 3), st.sampled_from(TIE_BREAKS))
def test_training_equals_the_reference(
    sequences: list[list[int]], num_merges: int, minimum: int, tie_break: TieBreak
) -> None:
    wanted = reference.train(
        sequences, BASE_BYTES, num_merges=num_merges, min_pair_frequency=minimum, tie_break=tie_break
    )
    counts = Counter(map(tuple, sequences))
    found = small.train(
        list(counts),
        list(counts.values()),
        BASE_BYTES,
        num_merges=num_merges,
        min_pair_frequency=minimum,
        tie_break=tie_break,
    )
    assert found == wanted


@examples(300)
@given(st.one_of(symbols, runs), st.one_of(symbols, runs), st.integers(0, 30))
def test_encoding_equals_the_reference(learned_from: list[list[int]], texts: list[list[int]], limit: int) -> None:
    training = reference.train(
        learned_from, BASE_BYTES, num_merges=20, min_pair_frequency=1, tie_break="greatest_bytes"
    )
    pairs: list[Pair] = [merge.pair for merge in training.merges]
    rank_of = {pair: rank for rank, pair in enumerate(pairs)}
    for text in texts:
        wanted = reference.encode(text, pairs[:limit], len(BASE_BYTES))
        assert small.encode(text, rank_of, len(BASE_BYTES), limit) == wanted


@examples(60)
@given(
    st.lists(st.text("ab 'é\n1", max_size=20), min_size=1, max_size=4),
    st.sampled_from(["char_bpe", "byte_bpe"]),
    st.sampled_from(SPLIT_PATTERNS),
    st.sampled_from(TIE_BREAKS),
)
def test_the_whole_way_equals_the_engine(
    documents: list[str], kind: str, split_pattern: SplitPattern, tie_break: TieBreak
) -> None:
    config = TokenizerConfig(kind, 999, min_pair_frequency=1, split_pattern=split_pattern, tie_break=tie_break)  # type: ignore[arg-type]
    base = sorted("ab 'é\n1") if kind == "char_bpe" else BYTE_CHARACTERS
    training = learn_merges(documents, base, config, num_merges=20)
    assert training == learn_merges(documents, base, config, num_merges=20, engine_name="reference")
    merges = merge_strings(base, training)
    plain, fast = (BPETokenizer(base, merges, kind=kind, split_pattern=split_pattern) for _ in range(2))  # type: ignore[arg-type]
    fast._encoder()  # from now on it uses the engine
    for limit in (None, 0, 3):
        ids, offsets = plain.encode_documents(documents, limit=limit)
        wanted, bounds = fast.encode_documents(documents, limit=limit)
        assert ids.dtype == wanted.dtype and offsets.dtype == bounds.dtype
        np.testing.assert_array_equal(ids, wanted)
        np.testing.assert_array_equal(offsets, bounds)
        for document in documents:
            assert plain.encode(document, limit=limit) == fast.encode(document, limit=limit)
    assert plain._engine is None


@pytest.mark.parametrize("text", LOSSLESS_TEXTS.values(), ids=list(LOSSLESS_TEXTS))
def test_lossless(text: str) -> None:
    tokenizer = BPETokenizer(BYTE_CHARACTERS, [("a", "b"), ("Ġ", "Ġ")], kind="byte_bpe", split_pattern="gpt4")
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_unknown_characters_are_named_with_their_offsets_in_all_texts() -> None:
    tokenizer = BPETokenizer(["a", " ", "\n"], [], split_pattern="gpt2")
    with pytest.raises(
        TokenizerError, match=r"'é' \(U\+00E9\) first at offset 9; '😀' \(U\+1F600\) first at offset 13"
    ):
        tokenizer.encode_documents(["a a\n", "a a\naé a\n", "😀 é\n"])
    with pytest.raises(TokenizerError, match=r"lone surrogate U\+D800 at offset 5"):
        BPETokenizer(BYTE_CHARACTERS, [], kind="byte_bpe").encode_documents(["ab", "abc\ud800"])
    with pytest.raises(TokenizerError, match="found -1"):
        tokenizer.encode("a", limit=-1)


def test_the_engine_takes_over_when_texts_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpe, "_PLAIN_CHARACTERS", 10)
    tokenizer = BPETokenizer(["a", "b"], [("a", "b")])
    assert tokenizer.encode("ababa") == tokenizer.encode("ababa") == [2, 2, 0]
    assert tokenizer._engine is None
    assert tokenizer.encode("ababa") == [2, 2, 0]
    assert tokenizer._engine is not None
    assert tokenizer.encode("ab") == [2]


def test_small_texts_load_neither_numba_nor_torch() -> None:
    program = (
        "import sys\n"
        "from tokenizer.bpe import BPETokenizer\n"
        "from tokenizer.train import TokenizerConfig, learn_merges\n"
        "from tokenizer.bytelevel import BYTE_CHARACTERS\n"
        "config = TokenizerConfig('byte_bpe', 300, split_pattern='gpt2')\n"
        "learn_merges(['low lower lowest ' * 5_000], BYTE_CHARACTERS, config, num_merges=44)\n"
        "tokenizer = BPETokenizer.train('low lower lowest ' * 5_000, 30, verbose=False)\n"
        "assert tokenizer.decode(tokenizer.encode('lower ' * 1_000)) == 'lower ' * 1_000\n"
        "print([name for name in ('numba', 'torch', 'tokenizer.engine.jit') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
