"""The BPE tokenizer: golden values, losslessness, special tokens, limits, and what it refuses."""

import hashlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import TokenizerError
from factories import examples
from tokenizer import reference
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, ByteTokenizer
from tokenizer.char import CharTokenizer, alphabet_of
from tokenizer.engine import encoder, intern
from tokenizer.pretokenize import SPLIT_PATTERNS, SplitPattern, pretokenize
from tokenizer.train import TokenizerConfig, train_tokenizer
from tokenizer_helpers import LOSSLESS_TEXTS, SURROGATES, make_splits

GOLDEN_LOW = "e86af6dffc135c9e8f114243ce3eae4c6989dbfad45067b258c413e76e2b8a50"
ENGLISH = "the cat's cat sat on the mat;  the cats don't.\n"


def trained(
    kind: str, text: str, merges: int = 40, split_pattern: SplitPattern = "none", special_tokens: tuple[str, ...] = ()
) -> BPETokenizer:
    """A BPE trained on `text` (and able to represent a newline), down to pairs that are seen once."""
    base_size = 256 if kind == "byte_bpe" else len(alphabet_of([text]))
    config = TokenizerConfig(
        kind,  # type: ignore[arg-type]
        base_size + merges + len(special_tokens),
        min_pair_frequency=1,
        split_pattern=split_pattern,
        special_tokens=special_tokens,
    )
    tokenizer, _ = train_tokenizer(config, make_splits([text], ["\n"], ["\n"]))
    assert isinstance(tokenizer, BPETokenizer)
    return tokenizer


# ---------------------------------------------------------------------------------------------- golden values


def test_golden_low_lower_lowest(capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = BPETokenizer.train("low lower lowest", 20, 2)
    assert tokenizer.base_tokens == [" ", "e", "l", "o", "r", "s", "t", "w"]
    assert tokenizer.merges == [("l", "o"), ("lo", "w"), (" ", "low"), (" low", "e")]
    assert tokenizer.tokens == [*tokenizer.base_tokens, "lo", "low", " low", " lowe"]
    assert tokenizer.vocab_size == 12
    assert tokenizer.fingerprint() == GOLDEN_LOW
    assert tokenizer.encode_tokens("low lower lowest") == ["low", " lowe", "r", " lowe", "s", "t"]
    assert tokenizer.encode("lowest slow") == [9, 1, 5, 6, 0, 5, 9]
    assert capsys.readouterr().out == ("8 base tokens + 4 merges = 12: best pair below the minimum frequency\n")


def test_fingerprint_is_the_published_formula() -> None:
    tokenizer = BPETokenizer.train("low lower lowest", 20, 2, verbose=False)
    payload = (
        '{"base_tokens":[" ","e","l","o","r","s","t","w"],"merges":[["l","o"],["lo","w"],[" ","low"],[" low","e"]]}'
    )
    assert hashlib.sha256(payload.encode()).hexdigest() == tokenizer.fingerprint()


def test_api_that_readers_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = BPETokenizer.train(text="low lower", target_vocab_size=9, minimum_pair_frequency=2, verbose=False)
    assert capsys.readouterr().out == ""
    assert tokenizer.stoi["lo"] == 6 and tokenizer.itos[6] == "lo"
    assert tokenizer.itos == {index: token for token, index in tokenizer.stoi.items()}
    tokenizer.save(tmp_path / "t.json")
    loaded = BPETokenizer.from_file(tmp_path / "t.json")
    assert loaded.fingerprint() == tokenizer.fingerprint()
    assert BPETokenizer.from_file(str(tmp_path / "t.json")).merges == tokenizer.merges
    rebuilt = BPETokenizer(tokenizer.base_tokens, tokenizer.merges)
    assert rebuilt.fingerprint() == tokenizer.fingerprint()
    assert rebuilt.encode("lower low") == tokenizer.encode("lower low")


def test_from_file_refuses_another_kind(tmp_path: Path) -> None:
    CharTokenizer(["a"]).save(tmp_path / "char.json")
    with pytest.raises(TokenizerError, match=r"char\.json holds a char tokenizer, not a BPE$"):
        BPETokenizer.from_file(tmp_path / "char.json")


# --------------------------------------------------------------------------------------------- target, base size


@pytest.mark.parametrize(
    ("target", "tokens"), [(2, ["a", "b"]), (3, ["a", "b", "ab"]), (10**6, ["a", "b", "ab", "abab"])]
)
def test_targets(target: int, tokens: list[str]) -> None:
    assert BPETokenizer.train("abab", target, 1, verbose=False).tokens == tokens


def test_target_below_the_alphabet() -> None:
    with pytest.raises(TokenizerError) as caught:
        BPETokenizer.train("abc", 2)
    assert str(caught.value) == "vocab_size 2 is below the 3 base tokens; the minimum here is 3"


def test_empty_and_blank_texts() -> None:
    empty = BPETokenizer.train("", 0, verbose=False)
    assert (empty.vocab_size, empty.encode(""), empty.decode([])) == (0, [], "")
    assert BPETokenizer.train("", 5, base_tokens=["a"], verbose=False).merges == []
    blank = BPETokenizer.train("    ", 9, 1, verbose=False)
    assert blank.merges == [(" ", " "), ("  ", "  ")]
    assert blank.encode_tokens("     ") == ["    ", " "]


def test_base_tokens_may_be_given_and_must_hold_the_text() -> None:
    tokenizer = BPETokenizer.train("abab", 4, base_tokens=["z", "b", "a"], verbose=False)
    assert tokenizer.tokens == ["z", "b", "a", "ab"]
    with pytest.raises(TokenizerError, match=r"2 characters have no token: 'b' \(U\+0062\) first at offset 1; 'é'"):
        BPETokenizer.train("abéab", 9, base_tokens=["a"])


# ---------------------------------------------------------------------------------------------- losslessness

KINDS = [("char_bpe", pattern) for pattern in SPLIT_PATTERNS] + [("byte_bpe", pattern) for pattern in SPLIT_PATTERNS]
every_kind = pytest.mark.parametrize(("kind", "split_pattern"), KINDS)
FOREIGN_BYTE_BPE = {pattern: trained("byte_bpe", ENGLISH, split_pattern=pattern) for pattern in SPLIT_PATTERNS}


def check_lossless(tokenizer: BPETokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode_bytes(ids) == text.encode()
    assert int(tokenizer.token_num_chars[ids].sum()) == len(text)
    assert int(tokenizer.token_num_bytes[ids].sum()) == len(text.encode())


@every_kind
@pytest.mark.parametrize("name", LOSSLESS_TEXTS)
def test_lossless(kind: str, split_pattern: SplitPattern, name: str) -> None:
    text = LOSSLESS_TEXTS[name]
    check_lossless(trained(kind, text, split_pattern=split_pattern), text)
    if kind == "byte_bpe":  # represents every text, whatever it was trained on
        check_lossless(FOREIGN_BYTE_BPE[split_pattern], text)


@pytest.mark.parametrize("split_pattern", SPLIT_PATTERNS)
@examples(60)
@given(text=st.one_of(st.text(), st.text(st.sampled_from("the cat's é\U0001f600\n"))))
def test_lossless_on_any_text(split_pattern: SplitPattern, text: str) -> None:
    check_lossless(FOREIGN_BYTE_BPE[split_pattern], text)


@every_kind
def test_encoding_is_the_replay_inside_every_pretoken(kind: str, split_pattern: SplitPattern) -> None:
    text = "the cat's mat, the 1234 cäts\n\n  don’t\n"
    tokenizer = trained(kind, text, split_pattern=split_pattern)
    pairs = [(tokenizer.stoi[left], tokenizer.stoi[right]) for left, right in tokenizer.merges]
    wanted = []
    for pretoken in pretokenize(text, split_pattern):
        spelled = pretoken if kind == "char_bpe" else "".join(BYTE_CHARACTERS[byte] for byte in pretoken.encode())
        base_ids = [tokenizer.stoi[character] for character in spelled]
        wanted += reference.encode(base_ids, pairs, len(tokenizer.base_tokens))
    assert tokenizer.encode(text) == wanted


def test_base_bytes_may_stand_in_any_order() -> None:
    backwards = BPETokenizer(BYTE_CHARACTERS[::-1], [("Ã", "©")], kind="byte_bpe")
    assert backwards.encode("aé") == [255 - ord("a"), 256]
    assert backwards.decode([255 - ord("a"), 256]) == "aé"


# ------------------------------------------------------------------------------------------------- documents

DOCUMENTS = ["", "the cat\n", "", "the mat, the cat's\n", "\n", "the cat\n", ""]


def every_tokenizer() -> list[Tokenizer]:
    text = "".join(DOCUMENTS)
    bpes = [trained(kind, text, split_pattern=pattern) for kind, pattern in KINDS]
    return [CharTokenizer(alphabet_of([text])), ByteTokenizer(), *bpes]


@pytest.mark.parametrize("tokenizer", every_tokenizer(), ids=lambda t: f"{t.kind}-{getattr(t, 'split_pattern', '')}")
def test_documents_equal_one_by_one(tokenizer: Tokenizer) -> None:
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer.token_num_chars.shape == tokenizer.token_num_bytes.shape == (tokenizer.vocab_size,)
    ids, offsets = tokenizer.encode_documents(DOCUMENTS)
    assert ids.dtype == offsets.dtype == np.int64
    assert offsets[0] == 0 and offsets[-1] == len(ids)
    parts = [ids[start:end].tolist() for start, end in pairwise(offsets)]
    assert parts == [tokenizer.encode(document) for document in DOCUMENTS]
    for nothing in ([], [""], ["", ""]):
        ids, offsets = tokenizer.encode_documents(nothing)
        assert (ids.tolist(), offsets.tolist()) == ([], [0] * (len(nothing) + 1))


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 10**9])
def test_chunks_leave_no_seams(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the corpus is cut into groups, and the groups into spans."""
    tokenizer = BPETokenizer(["a", "b"], [("a", "b"), ("ab", "ab")])
    monkeypatch.setattr(encoder, "_GROUP_CHARACTERS", chunk)
    monkeypatch.setattr(intern, "_SPAN_BYTES", chunk)
    assert tokenizer.encode_tokens("abababab") == ["abab", "abab"]
    ids, offsets = tokenizer.encode_documents(["abab", "", "ababab", "b", "abababab", ""])
    assert ids.tolist() == [3, 3, 2, 1, 3, 3]
    assert offsets.tolist() == [0, 1, 1, 3, 4, 6, 6]
    split = BPETokenizer(["a", "b", " "], [("a", "b"), ("ab", "ab")], split_pattern="space")
    assert split.encode_tokens("abababab abab ab") == ["abab", "abab", " ", "abab", " ", "ab"]


def test_the_order_of_learning_decides() -> None:
    tokenizer = BPETokenizer(["b", "c"], [("c", "c"), ("b", "b"), ("c", "b")])
    assert tokenizer.encode_tokens("cbb") == ["c", "bb"]
    assert tokenizer.encode_tokens("ccbbcb") == ["cc", "bb", "cb"]


# ------------------------------------------------------------------------------------------------------ limit


@every_kind
def test_limit_is_the_tokenizer_of_the_first_merges(kind: str, split_pattern: SplitPattern) -> None:
    whole = trained(kind, ENGLISH, split_pattern=split_pattern)
    assert len(whole.merges) > 12
    for limit in (0, 1, 7, len(whole.merges) - 1, len(whole.merges), 10**6):
        prefix = BPETokenizer(
            whole.base_tokens,
            whole.merges[:limit],
            kind=kind,  # type: ignore[arg-type]
            split_pattern=split_pattern,
        )
        assert whole.encode(ENGLISH, limit=limit) == prefix.encode(ENGLISH)
        limited, wanted = whole.encode_documents(DOCUMENTS[:2], limit=limit), prefix.encode_documents(DOCUMENTS[:2])
        for found, expected in zip(limited, wanted, strict=True):
            np.testing.assert_array_equal(found, expected)


# ---------------------------------------------------------------------------------------------- special tokens


def test_a_learned_token_that_spells_a_special_one() -> None:
    text = "a <unk> b <unk> c <unk> d\n"
    tokenizer = trained("char_bpe", text, merges=5, special_tokens=(" <unk>", "<s>"))
    learned, special = tokenizer.stoi[" <unk>"], tokenizer.special_tokens[" <unk>"]
    assert learned < len(tokenizer.tokens) <= special < tokenizer.vocab_size
    as_text, as_special = tokenizer.encode(text), tokenizer.encode(text, allow_special=True)
    assert as_text.count(learned) == 3 and special not in as_text
    assert as_special.count(special) == 3 and learned not in as_special
    assert tokenizer.decode(as_text) == tokenizer.decode(as_special) == text
    ids, _ = tokenizer.encode_documents([text])
    assert ids.tolist() == as_text
    assert int(tokenizer.token_num_chars[as_special].sum()) == len(text)


@pytest.mark.parametrize("text", ["<|endoftext|>", "<unk>", "#version: 0.2", "# #", "a<|endoftext|>b\n"])
@every_kind
def test_what_looks_special_is_text(kind: str, split_pattern: SplitPattern, text: str) -> None:
    plain = trained(kind, text, split_pattern=split_pattern)
    special = trained(
        kind, text, split_pattern=split_pattern, special_tokens=("<|endoftext|>", "<unk>", "#version: 0.2")
    )
    assert special.encode(text) == plain.encode(text)
    assert special.decode(special.encode(text)) == text
    assert max(special.encode(text)) < len(special.tokens)
    assert special.decode(special.encode(text, allow_special=True)) == text


def test_special_tokens_are_cut_out_first_and_the_longest_wins() -> None:
    tokenizer = BPETokenizer(["a", "b", "<", ">"], [("a", "<")], special_tokens=["<a>", "<a><b>", "[.*]"])
    ids = tokenizer.encode("a<a><b>a<b", allow_special=True)
    # `a<` was learned, but the special token takes the `<` of the first one.
    assert ids == [0, tokenizer.special_tokens["<a><b>"], tokenizer.stoi["a<"], 1]
    assert tokenizer.encode("[.*]<a>", allow_special=True) == [7, 5]
    assert tokenizer.encode("<a>", limit=0, allow_special=True) == [5]


def test_special_tokens_may_hold_characters_that_the_alphabet_lacks() -> None:
    tokenizer = BPETokenizer(["a"], [], special_tokens=["<é>"])
    assert tokenizer.encode("a<é>a", allow_special=True) == [0, 1, 0]
    assert tokenizer.decode([0, 1, 0]) == "a<é>a"
    assert tokenizer.token_num_bytes.tolist() == [1, 4]
    with pytest.raises(TokenizerError, match="3 characters have no token"):
        tokenizer.encode("a<é>a")


@pytest.mark.parametrize("special", [["<s>", "<s>"], [""], [7]])
def test_bad_special_tokens(special: list[str]) -> None:
    with pytest.raises(TokenizerError) as caught:
        BPETokenizer(["a"], [], special_tokens=special)
    assert str(caught.value) == f"special token {special[-1]!r} is empty, not a string, or stands twice"


# -------------------------------------------------------------------------------------------------- partial UTF-8


def emoji_tokenizer() -> BPETokenizer:
    """The emoji's first three bytes are one token (with a letter before them), its last byte another."""
    first, second, third, last = (BYTE_CHARACTERS[byte] for byte in "\U0001f600".encode())
    merges = [(first, second), (first + second, third), (last, "!")]
    return BPETokenizer(BYTE_CHARACTERS, merges, kind="byte_bpe")


def test_an_emoji_over_two_tokens() -> None:
    tokenizer = emoji_tokenizer()
    ids = tokenizer.encode("\U0001f600!")
    assert ids == [257, 258]
    assert tokenizer.decode(ids) == "\U0001f600!"
    assert tokenizer.token_num_chars[ids].tolist() == [1, 1]  # the emoji begins in the first, `!` in the second
    assert tokenizer.token_num_bytes[ids].tolist() == [3, 2]
    decoder = tokenizer.streaming_decoder()
    assert [decoder.push(257), decoder.push(258), decoder.finish()] == ["", "\U0001f600!", ""]


def test_decoding_part_of_a_character() -> None:
    tokenizer = emoji_tokenizer()
    for ids, raw, message in (
        ([257], b"\xf0\x9f\x98", r"byte 0xf0 at offset 0 \(unexpected end of data\)"),
        ([258], b"\x80!", r"byte 0x80 at offset 0 \(invalid start byte\)"),
        ([128], b"\x80", r"byte 0x80 at offset 0 \(invalid start byte\)"),
    ):
        assert tokenizer.decode_bytes(ids) == raw
        assert tokenizer.decode(ids, errors="replace") == raw.decode("utf-8", "replace")
        with pytest.raises(TokenizerError, match=message):
            tokenizer.decode(ids)


def test_streaming_decoder_of_a_character_bpe() -> None:
    tokenizer = BPETokenizer.train("low lower lowest é", 20, 2, verbose=False)
    decoder = tokenizer.streaming_decoder()
    assert [decoder.push(index) for index in tokenizer.encode("lowé")] == ["low", "é"]
    assert decoder.finish() == ""


# --------------------------------------------------------------------------------------------- what it refuses


def test_ids_out_of_range() -> None:
    tokenizer = BPETokenizer(["a", "b"], [("a", "b")], special_tokens=["<s>"])
    for ids in ([0, 4], [0, -1]):
        with pytest.raises(TokenizerError) as caught:
            tokenizer.decode(ids)
        assert str(caught.value) == f"id {ids[1]} at position 1 is outside the vocabulary of 4"


UNKNOWN = r"2 characters have no token: 'é' \(U\+00E9\) first at offset 9; '😀' \(U\+1F600\) first at offset 13;"


@pytest.mark.parametrize("split_pattern", SPLIT_PATTERNS)
@pytest.mark.parametrize("chunk", [1, 10**9])
def test_every_unknown_character_is_named_with_its_offset_in_the_text(
    split_pattern: SplitPattern, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "_GROUP_CHARACTERS", chunk)
    tokenizer = BPETokenizer(["a", " ", "\n"], [], split_pattern=split_pattern)
    with pytest.raises(TokenizerError, match=UNKNOWN):
        tokenizer.encode("a a a a aé a\n😀 é\n")
    with pytest.raises(TokenizerError, match=UNKNOWN):  # repeated pretokens are encoded once, but all of them count
        tokenizer.encode_documents(["a a\n", "a a\naé a\n", "😀 é\n"])


@every_kind
@pytest.mark.parametrize("name", SURROGATES)
def test_lone_surrogates_are_refused(kind: str, split_pattern: SplitPattern, name: str) -> None:
    tokenizer = trained(kind, "ab c \U0001f600\n", split_pattern=split_pattern, special_tokens=("<s>",))
    text = SURROGATES[name]
    entry_points = (
        tokenizer.encode,
        tokenizer.encode_tokens,
        lambda text: tokenizer.encode(text, allow_special=True),
        lambda text: tokenizer.encode_documents([text]),
    )
    for entry_point in entry_points:
        with pytest.raises(TokenizerError, match=r"U\+D[89A-F][0-9A-F]{2}\)? (first )?at offset 3"):
            entry_point(text)
    with pytest.raises(TokenizerError, match="lone surrogate"):
        BPETokenizer.train(text, 100)
    with pytest.raises(TokenizerError, match="lone surrogate"):
        BPETokenizer(["a", text[3]], [])
    with pytest.raises(TokenizerError, match="lone surrogate"):
        BPETokenizer(["a"], [], special_tokens=[text])


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        ([("a", "c")], "merge 0 ('a', 'c'): 'c' is not a token by then"),
        ([("ab", "a"), ("a", "b")], "merge 0 ('ab', 'a'): 'ab' is not a token by then"),
        ([("a", "b"), ("a", "b")], "merge 1 ('a', 'b') makes 'ab', which exists already"),
        ([("a", "a"), ("aa", "a"), ("a", "aa")], "merge 2 ('a', 'aa') makes 'aaa', which exists already"),
        ([("", "a")], "merge 0 ('', 'a'): '' is not a token by then"),
    ],
)
def test_bad_merges(merges: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(TokenizerError) as caught:
        BPETokenizer(["a", "b"], merges)
    assert str(caught.value) == message


def test_a_byte_bpe_stands_on_the_256_bytes() -> None:
    for base in (BYTE_CHARACTERS[:-1], [*BYTE_CHARACTERS, "€"], ["a"]):
        with pytest.raises(TokenizerError, match="the base tokens of a byte_bpe are the 256 bytes in GPT-2's spelling"):
            BPETokenizer(base, [], kind="byte_bpe")


# ------------------------------------------------------------------------------------------------------ identity


def test_what_decides_the_ids_is_identity_and_history_is_not() -> None:
    plain = BPETokenizer(["a", "b"], [("a", "b")])
    same = BPETokenizer(["a", "b"], [("a", "b")], tie_break="first_seen", trained_on={"kind": "char_bpe"})
    assert same.fingerprint() == plain.fingerprint()
    different = [
        BPETokenizer(["b", "a"], [("a", "b")]),
        BPETokenizer(["a", "b"], []),
        BPETokenizer(["a", "b"], [("b", "a")]),
        BPETokenizer(["a", "b"], [("a", "b")], split_pattern="gpt2"),
        BPETokenizer(["a", "b"], [("a", "b")], split_pattern="space"),
        BPETokenizer(["a", "b"], [("a", "b")], special_tokens=["<s>"]),
        BPETokenizer(["a", "b"], [("a", "b")], special_tokens=["<s>", "<t>"]),
        BPETokenizer(["a", "b"], [("a", "b")], special_tokens=["<t>", "<s>"]),
        BPETokenizer(BYTE_CHARACTERS, [], kind="byte_bpe"),
        BPETokenizer(BYTE_CHARACTERS, [], kind="char_bpe"),
    ]
    fingerprints = [tokenizer.fingerprint() for tokenizer in [plain, *different]]
    assert len(set(fingerprints)) == len(fingerprints)


def test_a_character_bpe_without_merges_is_the_character_tokenizer() -> None:
    assert BPETokenizer(["a", "b"], []).fingerprint() == CharTokenizer(["a", "b"]).fingerprint()


def test_a_negative_limit_is_refused() -> None:
    tokenizer = BPETokenizer.train("low lower lowest", 12, verbose=False)
    with pytest.raises(TokenizerError, match="0 or more; found -1"):
        tokenizer.encode("low", limit=-1)
