"""Corpus encoding equals the replay of the merges, pretoken by pretoken, wherever it is cut."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import TokenizerError
from factories import examples
from tokenizer import bpe, reference
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.engine import encoder, intern
from tokenizer.engine.cuts import NEVER
from tokenizer.engine.encode import encode_short, encode_texts
from tokenizer.engine.intern import text_bytes
from tokenizer.pretokenize import SplitPattern, pretokenize
from tokenizer.train import TokenizerConfig, learn_merges
from tokenizer.vocabulary import merge_strings
from tokenizer_helpers import merge_table, read_shared

KINDS: list[tuple[str, SplitPattern]] = [
    ("char_bpe", "none"),
    ("char_bpe", "space"),
    ("char_bpe", "gpt2"),
    ("byte_bpe", "none"),
    ("byte_bpe", "space"),
    ("byte_bpe", "gpt2"),
    ("byte_bpe", "gpt4"),
]
every_kind = pytest.mark.parametrize(("kind", "split_pattern"), KINDS)

CHARACTERS = sorted("\n ab_é\u0301東\U0001f600'1")
small = st.text("ab ", max_size=30)
rich = st.text(st.sampled_from([*CHARACTERS, "a", " "]), max_size=30)
runs = st.lists(st.tuples(st.sampled_from("a_ é"), st.integers(1, 90)), max_size=4).map(
    lambda pieces: "".join(character * length for character, length in pieces)
)
documents_lists = st.lists(st.one_of(small, rich, runs), max_size=5)
sizes = st.integers(1, 50)


def trained(kind: str, split_pattern: SplitPattern, documents: Sequence[str], num_merges: int) -> BPETokenizer:
    """A tokenizer that knows the characters of all these tests, with merges learned from `documents`."""
    base = CHARACTERS if kind == "char_bpe" else BYTE_CHARACTERS
    config = TokenizerConfig(kind, 999, min_pair_frequency=1, split_pattern=split_pattern)  # type: ignore[arg-type]
    training = learn_merges(documents, base, config, num_merges=num_merges)
    return BPETokenizer(
        base,
        merge_strings(base, training),
        kind=kind,  # type: ignore[arg-type]
        split_pattern=split_pattern,
    )


def base_ids(tokenizer: BPETokenizer, text: str) -> list[int]:
    if tokenizer.kind == "char_bpe":
        return [tokenizer.stoi[character] for character in text]
    return [tokenizer.stoi[BYTE_CHARACTERS[byte]] for byte in text.encode()]


def replayed(tokenizer: BPETokenizer, document: str, limit: int | None = None) -> list[int]:
    """What the reference says."""
    pairs = [(tokenizer.stoi[left], tokenizer.stoi[right]) for left, right in tokenizer.merges[:limit]]
    pieces = pretokenize(document, tokenizer.split_pattern)
    size = len(tokenizer.base_tokens)
    return [index for piece in pieces for index in reference.encode(base_ids(tokenizer, piece), pairs, size)]


def by_document(encoded: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    ids, offsets = encoded
    assert ids.dtype == offsets.dtype == np.int64
    assert offsets[0] == 0 and offsets[-1] == len(ids)
    return [ids[start:end].tolist() for start, end in pairwise(offsets.tolist())]


@contextmanager
def sizes_set(span_bytes: int, group_characters: int) -> Iterator[None]:
    """Everything that is cut, cut small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intern, "_SPAN_BYTES", span_bytes)
        patch.setattr(encoder, "_GROUP_CHARACTERS", group_characters)
        patch.setattr(bpe, "_SHORT_TEXT", 3)
        yield


@pytest.fixture(scope="module", autouse=True)
def _compile_the_kernels() -> None:
    """The first call compiles, which is nobody's example."""
    for kind, split_pattern in KINDS[:2]:
        trained(kind, split_pattern, ["aa a"], 1).encode("a" * 200)


# ----------------------------------------------------------------------------------------------- equal to the reference

Case = tuple[list[str], list[str], int, int | None, int, tuple[int, int]]
cases = st.tuples(
    documents_lists,
    documents_lists,
    st.integers(0, 40),
    st.none() | st.integers(0, 45),
    st.sampled_from([1, 2]),
    st.tuples(sizes, sizes),
)


def check_encoding(kind: str, split_pattern: SplitPattern, case: Case) -> None:
    training_documents, documents, num_merges, limit, num_threads, cut_small = case
    # Merges of the very documents as well, so that they are used.
    tokenizer = trained(kind, split_pattern, training_documents + documents[:1], num_merges)
    wanted = [replayed(tokenizer, document, limit) for document in documents]
    with sizes_set(*cut_small):
        found = by_document(tokenizer.encode_documents(documents, limit=limit, num_threads=num_threads))
        assert [tokenizer.encode(document, limit=limit) for document in documents] == wanted
    assert found == wanted
    assert by_document(tokenizer.encode_documents(documents, limit=limit)) == wanted
    assert [tokenizer.encode(document, limit=limit) for document in documents] == wanted


@every_kind
@examples(40)
@given(case=cases)
def test_equals_the_reference(kind: str, split_pattern: SplitPattern, case: Case) -> None:
    check_encoding(kind, split_pattern, case)


@every_kind
@pytest.mark.parametrize("documents", [[], [""], ["", ""], ["", "ab a", "", "", "ab a", ""], ["a", "b"]])
@pytest.mark.parametrize("num_threads", [None, 1, 2])
def test_empty_documents(kind: str, split_pattern: SplitPattern, documents: list[str], num_threads: int | None) -> None:
    tokenizer = trained(kind, split_pattern, ["ab ab a"], 3)
    wanted = [replayed(tokenizer, document) for document in documents]
    assert by_document(tokenizer.encode_documents(documents, num_threads=num_threads)) == wanted
    with sizes_set(1, 1):
        assert by_document(tokenizer.encode_documents(documents, num_threads=num_threads)) == wanted


def test_documents_are_not_joined() -> None:
    tokenizer = BPETokenizer(["a", "b"], [("a", "b"), ("ab", "ab")])
    assert by_document(tokenizer.encode_documents(["a", "b", "ab", "ab"], num_threads=2)) == [[0], [1], [2], [2]]


# ------------------------------------------------------------------------------------------------------------ safe cuts


@pytest.mark.parametrize("kind", ["char_bpe", "byte_bpe"])
@examples(60)
@given(documents=documents_lists, num_merges=st.integers(0, 40), limit=st.integers(0, 40), span_bytes=sizes)
def test_no_token_reaches_across_a_cut(
    kind: str, documents: list[str], num_merges: int, limit: int, span_bytes: int
) -> None:
    tokenizer = trained(kind, "none", documents, num_merges)
    table = tokenizer._encoder().table(min(limit, len(tokenizer.merges)))
    cuts = tokenizer._encoder().cuts(table.limit)
    with sizes_set(span_bytes, 10**9):
        cut = encode_texts(text_bytes(documents), table, "none", cuts, num_threads=2)
    whole = encode_texts(text_bytes(documents), table, "none", NEVER, num_threads=1)
    assert by_document(cut) == by_document(whole)


def test_cuts_are_where_they_help() -> None:
    """If nothing could be cut, the property above would hold for nothing."""
    tokenizer = trained("char_bpe", "none", ["ab ab 1 ab\n"], 2)
    joins = tokenizer._encoder().cuts(2).joins
    assert 0 < np.count_nonzero(joins[:0x80, :0x80]) <= 2
    with sizes_set(1, 10**9):
        assert len(intern.shares_of(text_bytes(["1111 1111"]), 3, joins=joins)) == 3


# ------------------------------------------------------------------------------------------------------------ long runs


@every_kind
@pytest.mark.parametrize("character", [" ", "_"])
def test_a_run_of_a_million(kind: str, split_pattern: SplitPattern, character: str) -> None:
    doubles = [character * 2**k for k in range(20)]
    base = [character] if kind == "char_bpe" else BYTE_CHARACTERS
    spelled = [token.replace(" ", "Ġ") for token in doubles] if kind == "byte_bpe" else doubles
    tokenizer = BPETokenizer(
        base,
        [(token, token) for token in spelled[:-1]],
        kind=kind,  # type: ignore[arg-type]
        split_pattern=split_pattern,
    )
    tokenizer.encode("")
    [ids] = by_document(tokenizer.encode_documents([character * 10**6]))  # a quadratic step would take hours
    lengths = [len(tokenizer.tokens[index]) for index in ids]
    assert lengths == [2**k for k in range(19, -1, -1) if 10**6 & 2**k]


@pytest.mark.slow
@every_kind
def test_one_long_line_without_a_place_to_cut(kind: str, split_pattern: SplitPattern) -> None:
    """10 MB: `ab` and `ba` both stand inside tokens. A quadratic step would take hours, beyond the limit of a test."""
    tokenizer = trained(kind, split_pattern, ["abaabbabab" * 9], 12)
    line = "".join(np.random.default_rng(2).choice(["a", "b", "ab"], 7 * 10**6).tolist())[: 10**7]
    assert len(line) > 9 * 10**6
    ids, _ = tokenizer.encode_documents([line])
    assert tokenizer.decode(ids.tolist()) == line


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("split_pattern", ["none", "space", "gpt2"])
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("group", [3, 10**6])
def test_every_unknown_character_is_named_with_its_offset(
    split_pattern: SplitPattern, num_threads: int, group: int
) -> None:
    tokenizer = trained("char_bpe", split_pattern, ["ab ab"], 1)
    documents = ["ab a\n", "é a", "", "abx aé \u0436\n", "x y"]
    text = "".join(documents)
    with sizes_set(2, group), pytest.raises(TokenizerError) as raised:
        tokenizer.encode_documents(documents, num_threads=num_threads)
    message = str(raised.value)
    assert message.startswith("3 characters have no token")
    for character in "x\u0436y":
        assert f"(U+{ord(character):04X}) first at offset {text.index(character)}" in message
    assert "U+00E9" not in message and "\n" not in message


@every_kind
def test_a_lone_surrogate_is_refused_with_its_offset(kind: str, split_pattern: SplitPattern) -> None:
    tokenizer = trained(kind, split_pattern, ["ab ab"], 1)
    for group in (1, 10**6):
        with sizes_set(2, group), pytest.raises(TokenizerError, match=r"D800.*\b4\b|\b4\b.*D800"):
            tokenizer.encode_documents(["ab a", "\ud800b"], num_threads=2)


def test_the_limit_is_not_negative() -> None:
    with pytest.raises(TokenizerError, match="found -1"):
        trained("char_bpe", "none", ["ab"], 1).encode_documents(["ab"], limit=-1)


# ---------------------------------------------------------------------------------------------------- pieces, real text


def test_pieces_keep_their_borders() -> None:
    """Of six symbols 010101 cut as 0|1010|1, with an empty piece at two places."""
    table = merge_table([(0, 1), (2, 2)], base_size=2, limit=2)
    text, offsets = np.array([0, 1, 0, 1, 0, 1], dtype=np.uint8), np.array([0, 1, 1, 5, 6, 6], dtype=np.int64)
    ids = encode_short(text, offsets, *table)
    assert ids.tolist() == [0, 1, 2, 0, 1]
    assert ids.dtype == np.int32


@every_kind
def test_wikitext(kind: str, split_pattern: SplitPattern, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads, spans and groups of every size; the reference for the beginning."""
    text = read_shared("wikitext2/wiki.test.raw")[:100_000]
    base = sorted(set(text)) if kind == "char_bpe" else BYTE_CHARACTERS
    config = TokenizerConfig(kind, 9999, split_pattern=split_pattern)  # type: ignore[arg-type]
    training = learn_merges([text], base, config, num_merges=150)
    tokenizer = BPETokenizer(
        base,
        merge_strings(base, training),
        kind=kind,  # type: ignore[arg-type]
        split_pattern=split_pattern,
    )
    ids, _ = tokenizer.encode_documents([text], num_threads=1)
    assert tokenizer.decode(ids.tolist()) == text
    assert tokenizer.encode(text[:1_500]) == replayed(tokenizer, text[:1_500])
    monkeypatch.setattr(intern, "_SPAN_BYTES", 1_000)
    for num_threads in (1, 2, 3):
        np.testing.assert_array_equal(tokenizer.encode_documents([text], num_threads=num_threads)[0], ids)
    lines = text.splitlines(keepends=True)
    by_line = tokenizer.encode_documents(lines, num_threads=2)
    monkeypatch.setattr(encoder, "_GROUP_CHARACTERS", 5_000)
    for found, wanted in zip(tokenizer.encode_documents(lines, num_threads=2), by_line, strict=True):
        np.testing.assert_array_equal(found, wanted)
