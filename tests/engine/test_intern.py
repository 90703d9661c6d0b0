"""Pretokens become numbers: in order of first sight, counted exactly, whatever the threads, spans and map sizes."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import TokenizerError
from factories import examples
from tokenizer.engine import intern as module
from tokenizer.engine.borders import CUTS, WHOLE
from tokenizer.engine.cuts import NEVER, Cuts
from tokenizer.engine.intern import Interned, TextBytes, intern, lay_out, shares_of, text_bytes
from tokenizer.engine.scan import PATTERN_NUMBERS
from tokenizer.pretokenize import SplitPattern, pretokenize
from tokenizer_helpers import LOSSLESS_TEXTS, SURROGATES

SCANNED: list[SplitPattern] = ["space", "gpt2", "gpt4"]
THREADS = [1, 2, 3, 7]

documents_lists = st.lists(
    st.one_of(
        st.text(st.sampled_from("ab1 '\n\t.s\u00e9\u0301\u6771\u00a0\U0001f600"), max_size=40),
        st.lists(st.sampled_from(["the ", "cat", " sat", "  ", "\n", "'s", " 12345", "é"]), max_size=12).map("".join),
    ),
    max_size=6,
)


@pytest.fixture(scope="module", autouse=True)
def _compile_the_kernels() -> None:
    """The first call compiles, which is nobody's example."""
    check_documents(["a b"], "gpt2", 1)


def pieces_of(laid_out: TextBytes, interned: Interned) -> list[bytes]:
    """The distinct pretokens, in the order of their numbers."""
    return [
        laid_out.text[start : start + length].tobytes()
        for start, length in zip(interned.starts.tolist(), interned.lengths.tolist(), strict=True)
    ]


def sequence_of(laid_out: TextBytes, interned: Interned) -> list[bytes]:
    pieces = pieces_of(laid_out, interned)
    return [pieces[number] for number in interned.sequence.tolist()]


def check_interned(laid_out: TextBytes, interned: Interned, wanted: Sequence[bytes]) -> None:
    """`wanted` are the pretokens in text order."""
    pieces = pieces_of(laid_out, interned)
    assert pieces == list(dict.fromkeys(wanted))  # in order of first sight
    assert dict(zip(pieces, interned.counts.tolist(), strict=True)) == Counter(wanted)
    assert sequence_of(laid_out, interned) == list(wanted)
    assert (np.diff(interned.starts) > 0).all()


def check_documents(documents: Sequence[str], pattern: SplitPattern, num_threads: int) -> None:
    """Every share on its own is right, and the shares together are the documents, none cut inside a pretoken."""
    laid_out = text_bytes(documents)
    shares = shares_of(laid_out, num_threads)
    assert 1 <= len(shares) <= num_threads
    spans = np.concatenate(shares)
    check_spans(laid_out, spans)
    by_share = []
    for share in shares:
        interned = intern(laid_out, share, PATTERN_NUMBERS[pattern], keep_sequence=True)
        by_span = np.split(interned.sequence, interned.span_ends)[:-1]
        assert int(interned.span_ends[-1] if len(share) else 0) == len(interned.sequence)
        assert [laid_out.text[a:b].tobytes() for a, b in share.tolist()] == [
            b"".join(pieces_of(laid_out, interned)[number] for number in numbers.tolist()) for numbers in by_span
        ]
        found = sequence_of(laid_out, interned)
        check_interned(laid_out, interned, found)
        by_share.append(found)
    wanted = [pretoken.encode() for document in documents for pretoken in pretokenize(document, pattern)]
    assert [pretoken for found in by_share for pretoken in found] == wanted


def check_spans(laid_out: TextBytes, spans: np.ndarray) -> None:
    """Spans follow each other without a gap, and every document ends with a span of its own."""
    flat = spans.ravel().tolist()
    assert flat == sorted(flat)
    if len(spans):
        assert flat[0] == 0 and flat[-1] == laid_out.ends[-1]
        assert (spans[1:, 0] == spans[:-1, 1]).all()
    ends = Counter(spans[:, 1].tolist())
    assert all(ends[end] >= number for end, number in Counter(laid_out.ends.tolist()).items())


# ------------------------------------------------------------------------------------------------------- split patterns


@pytest.mark.parametrize("pattern", SCANNED)
@examples(80)
@given(documents=documents_lists, num_threads=st.sampled_from(THREADS), span_bytes=st.integers(1, 40))
def test_equals_the_pattern(pattern: SplitPattern, documents: list[str], num_threads: int, span_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SPAN_BYTES", span_bytes)
        check_documents(documents, pattern, num_threads)


@pytest.mark.parametrize("pattern", SCANNED)
@pytest.mark.parametrize("num_threads", THREADS)
def test_texts_that_others_lose(pattern: SplitPattern, num_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [text for pair in zip(LOSSLESS_TEXTS.values(), ["", "  x"] * 50, strict=False) for text in pair]
    check_documents(documents, pattern, num_threads)
    monkeypatch.setattr(module, "_SPAN_BYTES", 5)
    check_documents(documents, pattern, num_threads)


@pytest.mark.parametrize("documents", [[], [""], ["", ""], ["", "a", "", "", "b c", ""], ["a ", " b"], ["a", "b"]])
@pytest.mark.parametrize("num_threads", THREADS)
def test_documents_are_barriers(documents: list[str], num_threads: int) -> None:
    for pattern in SCANNED:
        check_documents(documents, pattern, num_threads)


@pytest.mark.parametrize("pattern", SCANNED)
def test_a_document_is_cut_only_where_every_pattern_has_a_border(
    pattern: SplitPattern, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every place where the spans may cut, between any two characters of ASCII and a third behind them."""
    monkeypatch.setattr(module, "_SPAN_BYTES", 1)
    characters = [chr(code) for code in range(0x80)]
    for third in "a1!' \n":
        document = "".join(f"{left}{right}{third}" for left in characters for right in " \n'aZ1!" + left)
        laid_out = text_bytes([document])
        [spans] = shares_of(laid_out, 1)
        assert len(spans) > 50
        borders = {0, *np.cumsum([len(pretoken) for pretoken in pretokenize(document, pattern)]).tolist()}
        assert set(spans.ravel().tolist()) <= borders


def test_threads_get_shares_of_about_the_same_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SPAN_BYTES", 100)
    laid_out = text_bytes(["some words here " * 500, "x " * 100, "more words " * 900])
    shares = shares_of(laid_out, 3)
    sizes = [int((share[:, 1] - share[:, 0]).sum()) for share in shares]
    assert sum(sizes) == laid_out.ends[-1]
    assert max(sizes) - min(sizes) < 300


# -------------------------------------------------------------------------------------------------------------- the map

# Around the key's seven bytes and the comparison's steps of eight; zeros must not vanish in the padding of a key.
LENGTHS = [1, 2, 6, 7, 8, 9, 14, 15, 16, 17, 23, 24, 25, 31, 32, 33]


def check_whole(pieces: Sequence[bytes], *, times: int = 2) -> None:
    """`pieces`, all different or not, each as one pretoken."""
    repeated = list(pieces) * times
    laid_out = lay_out(
        np.frombuffer(b"".join(repeated), dtype=np.uint8), np.cumsum([*map(len, repeated)], dtype=np.int64)
    )
    ends = laid_out.ends
    spans = np.stack([ends - np.array([*map(len, repeated)], dtype=np.int64), ends], axis=1)
    check_interned(laid_out, intern(laid_out, spans, WHOLE, keep_sequence=True), repeated)


def test_pieces_of_zeros_differ_by_their_length() -> None:
    check_whole([bytes(length) for length in LENGTHS])
    check_whole([b"a" + bytes(length) for length in LENGTHS] + [bytes(length) + b"a" for length in LENGTHS])


@pytest.mark.parametrize("length", LENGTHS)
def test_one_byte_anywhere_makes_another_piece(length: int) -> None:
    same = b"abcdefghijklmnopqrstuvwxyz0123456789"[:length]
    differing = [same[:i] + bytes([byte]) + same[i + 1 :] for i in range(length) for byte in (0x00, 0x80, 0xFF)]
    check_whole([same, *differing, *filter(None, [same[:-1]]), same + b"\x00", same])


@examples(200)
@given(
    st.lists(
        st.one_of(
            st.binary(min_size=1, max_size=20),
            st.text(st.sampled_from("\0a"), min_size=1, max_size=18).map(str.encode),
            st.integers(1, 20).map(lambda size: b"sameprefix" + b"x" * size),
        ),
        max_size=30,
    )
)
def test_any_bytes(pieces: list[bytes]) -> None:
    check_whole(pieces)


def test_the_map_grows() -> None:
    """More distinct pretokens than it has room for at first, several times over, in both lengths of key."""
    words = [f"w{number:x}" if number % 3 else f"longer word {number}".replace(" ", "_") for number in range(70_000)]
    assert len(words) > 2 * module._MOST_ROWS_AT_FIRST
    text = " ".join(words + words[::7])
    laid_out = text_bytes([text])
    interned = intern(
        laid_out, np.array([[0, len(text)]], dtype=np.int64), PATTERN_NUMBERS["space"], keep_sequence=True
    )
    check_interned(laid_out, interned, [pretoken.encode() for pretoken in pretokenize(text, "space")])
    assert len(interned.starts) == 70_000 + 1  # the first word comes again with a blank


@pytest.mark.parametrize("number", [31, 32, 33, 63, 64, 65])
def test_the_map_is_full_at_the_end(number: int) -> None:
    check_whole([bytes([65 + i]) for i in range(number)], times=1)
    check_whole([bytes([65 + i]) for i in range(number)], times=2)


def test_start_from_keeps_numbers_and_counts() -> None:
    laid_out = text_bytes(["one two one", " two three one", " four"])
    spans = np.array([[0, 11], [11, 25], [25, 30]], dtype=np.int64)
    first = intern(laid_out, spans[:1], PATTERN_NUMBERS["gpt2"])
    before = first.starts.copy(), first.lengths.copy(), first.counts.copy()
    both = intern(laid_out, spans[1:], PATTERN_NUMBERS["gpt2"], start_from=first, keep_sequence=True)
    assert pieces_of(laid_out, both) == [b"one", b" two", b" one", b" three", b" four"]
    assert both.counts.tolist() == [1, 2, 2, 1, 1]
    assert both.sequence.tolist() == [1, 3, 2, 4]
    for array, copy in zip((first.starts, first.lengths, first.counts), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_start_from_many() -> None:
    text = " ".join(f"word{number}" for number in range(40_000))
    laid_out = text_bytes([text])
    middle = text.index(" word20000")
    first = intern(laid_out, np.array([[0, middle]], dtype=np.int64), PATTERN_NUMBERS["gpt2"])
    rest = np.array([[middle, len(text)]], dtype=np.int64)
    both = intern(laid_out, rest, PATTERN_NUMBERS["gpt2"], start_from=first)
    counts = Counter(pretoken.encode() for pretoken in pretokenize(text, "gpt2"))
    assert dict(zip(pieces_of(laid_out, both), both.counts.tolist(), strict=True)) == counts


# ------------------------------------------------------------------------------------------------- whole and cut pieces


def test_whole_spans() -> None:
    laid_out = text_bytes(["ab", "c d", "ab", ""])
    spans = np.array([[0, 2], [2, 5], [5, 7], [7, 7]], dtype=np.int64)
    interned = intern(laid_out, spans, WHOLE, keep_sequence=True)
    assert sequence_of(laid_out, interned) == [b"ab", b"c d", b"ab"]
    assert interned.span_ends.tolist() == [1, 2, 3, 3]


def cut_by_hand(document: bytes, joins: np.ndarray) -> list[bytes]:
    pieces: list[bytes] = []
    for i in range(len(document)):
        if i > 0 and joins[document[i - 1], document[i]]:
            pieces[-1] += document[i : i + 1]
        else:
            pieces.append(document[i : i + 1])
    return pieces


@examples(80)
@given(
    st.lists(st.text("abc", max_size=20), max_size=5),
    st.sets(st.tuples(st.sampled_from(b"abc"), st.sampled_from(b"abc"))),
    st.sampled_from(THREADS),
    st.integers(1, 30),
)
def test_cuts(documents: list[str], together: set[tuple[int, int]], num_threads: int, span_bytes: int) -> None:
    joins = np.zeros((256, 256), dtype=np.uint16)
    for left, right in together:
        joins[left, right] = 1
    laid_out = text_bytes(documents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SPAN_BYTES", span_bytes)
        shares = shares_of(laid_out, num_threads, joins=joins)
    check_spans(laid_out, np.concatenate(shares))
    found: list[bytes] = []
    for share in shares:
        interned = intern(laid_out, share, CUTS, cuts=Cuts(joins, NEVER.contexts), keep_sequence=True)
        check_interned(laid_out, interned, sequence_of(laid_out, interned))
        found += sequence_of(laid_out, interned)
    assert found == [piece for document in documents for piece in cut_by_hand(document.encode(), joins)]


def test_never_cut_keeps_documents_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SPAN_BYTES", 3)
    laid_out = text_bytes(["some words", "", "é\n\n", "some words"])
    [spans] = shares_of(laid_out, 1, joins=NEVER.joins)
    interned = intern(laid_out, spans, CUTS, cuts=NEVER, keep_sequence=True)
    check_interned(laid_out, interned, [b"some words", "é\n\n".encode(), b"some words"])
    assert interned.span_ends.tolist() == [1, 1, 2, 3]


# --------------------------------------------------------------------------------------------------------------- layout


@examples(100)
@given(st.lists(st.text(max_size=12), max_size=5))
def test_layout(documents: list[str]) -> None:
    laid_out = text_bytes(documents)
    raw = [document.encode() for document in documents]
    assert laid_out.ends.tolist() == np.cumsum([*map(len, raw)], dtype=np.int64).tolist()
    size = sum(map(len, raw))
    assert laid_out.text[:size].tobytes() == b"".join(raw)
    assert len(laid_out.text) >= size + 16 and not laid_out.text[size:].any()
    raw_text = laid_out.text.tobytes()
    assert [int(word) for word in laid_out.at] == [
        int.from_bytes(raw_text[i : i + 8], "little") for i in range(len(raw_text) - 7)
    ]
    assert np.shares_memory(laid_out.at, laid_out.text)


@pytest.mark.parametrize("text", SURROGATES.values(), ids=SURROGATES.keys())
def test_lone_surrogates_are_refused_with_their_offset(text: str) -> None:
    with pytest.raises(TokenizerError, match=r"U\+D[89A-F][0-9A-F]{2}.*3|3.*U\+D[89A-F][0-9A-F]{2}") as raised:
        text_bytes([text])
    assert "\n" not in str(raised.value)
    with pytest.raises(TokenizerError, match="8"):
        text_bytes(["12345", text])


@pytest.mark.parametrize("size", [module._PART_CHARACTERS - 1, module._PART_CHARACTERS, 3 * module._PART_CHARACTERS])
@pytest.mark.parametrize("characters", ["abc ", "ab\u00e9", "a\u6771", "ab\U0001f600"])
def test_long_documents_are_laid_out_part_by_part(characters: str, size: int) -> None:
    documents = [(characters * size)[: size + more] for more in (0, 1)]
    laid_out = text_bytes(documents)
    raws = [document.encode() for document in documents]
    assert laid_out.text[: laid_out.ends[-1]].tobytes() == b"".join(raws)
    assert laid_out.ends.tolist() == [len(raws[0]), len(raws[0]) + len(raws[1])]


def test_a_surrogate_in_a_late_part_is_named_by_its_place() -> None:
    place = 2 * module._PART_CHARACTERS + 5
    with pytest.raises(TokenizerError, match=f"{place:,}|{place}"):
        text_bytes(["\u00e9" * place + "\ud800"])
