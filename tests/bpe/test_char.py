"""The character tokenizer and the alphabet under it."""

import hashlib
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import TokenizerError
from factories import examples
from tokenizer.base import Tokenizer
from tokenizer.char import Alphabet, CharTokenizer, alphabet_of, check_ids
from tokenizer.loading import load_tokenizer
from tokenizer_helpers import LOSSLESS_TEXTS, SURROGATES


def test_alphabet_of_is_sorted_and_holds_a_newline() -> None:
    assert alphabet_of(["ba", "", "aé"]) == ["\n", "a", "b", "é"]
    assert alphabet_of([]) == ["\n"]
    assert alphabet_of(iter(["x"])) == ["\n", "x"]


def test_ids_follow_the_order_given() -> None:
    tokenizer = CharTokenizer(["z", "\n", "a", "\U0001f600"])
    assert tokenizer.encode("az\U0001f600\n") == [2, 0, 3, 1]
    assert tokenizer.decode([2, 0, 3, 1]) == "az\U0001f600\n"
    assert tokenizer.vocab_size == 4
    assert tokenizer.stoi == {"z": 0, "\n": 1, "a": 2, "\U0001f600": 3}
    assert tokenizer.itos[3] == "\U0001f600"


@pytest.mark.parametrize("name", LOSSLESS_TEXTS)
def test_lossless(name: str) -> None:
    text = LOSSLESS_TEXTS[name]
    tokenizer = CharTokenizer(alphabet_of([text]))
    ids = tokenizer.encode(text)
    assert len(ids) == len(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode_bytes(ids) == text.encode()
    assert int(tokenizer.token_num_chars[ids].sum()) == len(text)
    assert int(tokenizer.token_num_bytes[ids].sum()) == len(text.encode())


@examples(60)
@given(st.text(min_size=1))
def test_lossless_on_any_text(text: str) -> None:
    tokenizer = CharTokenizer(alphabet_of([text]))
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_documents_are_encoded_one_by_one() -> None:
    tokenizer = CharTokenizer(["\n", "a", "b"])
    texts = ["", "ab\n", "", "b\n", ""]
    ids, offsets = tokenizer.encode_documents(texts)
    assert ids.dtype == offsets.dtype == np.int64
    assert offsets.tolist() == [0, 0, 3, 3, 5, 5]
    assert [ids[s:e].tolist() for s, e in pairwise(offsets)] == [tokenizer.encode(text) for text in texts]
    ids, offsets = tokenizer.encode_documents([])
    assert (ids.tolist(), offsets.tolist()) == ([], [0])


def test_is_a_tokenizer() -> None:
    assert isinstance(CharTokenizer(["a"]), Tokenizer)


# ---------------------------------------------------------------------------------------- unknown characters


def test_every_unknown_character_is_named() -> None:
    tokenizer = CharTokenizer(["\n", "a", "b"])
    with pytest.raises(TokenizerError) as caught:
        tokenizer.encode("abéab\U0001f600é\u2028~ab~")
    assert str(caught.value) == (
        "4 characters have no token: 'é' (U+00E9) first at offset 2; '😀' (U+1F600) first at offset 5; "
        "'\\u2028' (U+2028) first at offset 7; '~' (U+007E) first at offset 8; "
        "train the tokenizer on text that holds them, or use a byte kind"
    )


def test_unknown_characters_beyond_the_table_and_inside_it() -> None:
    tokenizer = CharTokenizer(["\n", "\U0010ffff"])
    with pytest.raises(TokenizerError, match=r"1 character has no token: 'q' \(U\+0071\) first at offset 1;"):
        tokenizer.encode("\nq\U0010ffff")
    with pytest.raises(TokenizerError, match=r"\(U\+10FFFF\) first at offset 0;"):
        CharTokenizer(["a"]).encode("\U0010ffff")


def test_unknown_character_among_documents() -> None:
    with pytest.raises(TokenizerError, match=r"'c' \(U\+0063\) first at offset 3;"):
        CharTokenizer(["\n", "a"]).encode_documents(["aa\n", "ca\n"])


def test_an_empty_alphabet_knows_nothing() -> None:
    assert Alphabet([]).ids("").tolist() == []
    with pytest.raises(TokenizerError, match=r"'\\x00' \(U\+0000\) first at offset 0"):
        Alphabet([]).ids("\x00")


@pytest.mark.parametrize("name", SURROGATES)
def test_lone_surrogates_are_refused(name: str) -> None:
    tokenizer = CharTokenizer(["\n", " ", "a", "b", "c", "\U0001f600"])
    for encode in (tokenizer.encode, lambda text: tokenizer.encode_documents(["a\n", text])):
        with pytest.raises(TokenizerError, match=r"U\+D[89A-F][0-9A-F]{2}\) first at offset"):
            encode(SURROGATES[name])
    with pytest.raises(TokenizerError, match=r"is the lone surrogate U\+D[89A-F][0-9A-F]{2}, which cannot be written"):
        CharTokenizer(alphabet_of([SURROGATES[name]]))


# ------------------------------------------------------------------------------------------------- the alphabet


@pytest.mark.parametrize(
    ("characters", "message"),
    [
        (["a", "bc"], "base token 1 is 'bc', not a single character"),
        (["a", ""], "base token 1 is '', not a single character"),
        (["a", 7], "base token 1 is 7, not a single character"),
        (["a", "b", "a"], "base token 'a' stands twice in the alphabet"),
        (["e\u0301"], "base token 0 is 'e\u0301', not a single character"),
        (["a", "\udc80"], "base token 1 is the lone surrogate U+DC80, which cannot be written as UTF-8"),
    ],
)
def test_bad_alphabets(characters: list[str], message: str) -> None:
    with pytest.raises(TokenizerError) as caught:
        CharTokenizer(characters)
    assert str(caught.value) == message


@pytest.mark.parametrize(("ids", "wrong"), [([0, 1, 2], 2), ([0, -1], -1), ([99], 99)])
def test_ids_out_of_range(ids: list[int], wrong: int) -> None:
    tokenizer = CharTokenizer(["a", "b"])
    for decode in (tokenizer.decode, tokenizer.decode_bytes):
        with pytest.raises(TokenizerError) as caught:
            decode(ids)
        position = ids.index(wrong)
        assert str(caught.value) == f"id {wrong} at position {position} is outside the vocabulary of 2"


def test_check_ids_names_the_first_of_several() -> None:
    with pytest.raises(TokenizerError, match="id 5 at position 1 "):
        check_ids([0, 5, -3, 7], 2)
    check_ids([], 0)


# ----------------------------------------------------------------------------------------------- identity, file


def test_fingerprint_is_the_published_formula() -> None:
    tokenizer = CharTokenizer(["\n", "é", '"'])
    payload = '{"base_tokens":["\\n","é","\\""],"merges":[]}'
    assert tokenizer.fingerprint() == hashlib.sha256(payload.encode()).hexdigest()


def test_fingerprint_depends_on_the_order_but_not_on_the_history() -> None:
    first = CharTokenizer(["a", "b"])
    assert CharTokenizer(["b", "a"]).fingerprint() != first.fingerprint()
    assert CharTokenizer(["a", "b"], trained_on={"kind": "char"}).fingerprint() == first.fingerprint()


def test_file(tmp_path: Path) -> None:
    characters = ["\n", " ", "#", '"', "\\", "é", "\u2028", "\U0001f600"]
    tokenizer = CharTokenizer(characters, trained_on={"kind": "char"})
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    tokenizer.save(first)
    loaded = load_tokenizer(first)
    assert isinstance(loaded, CharTokenizer)
    loaded.save(second)
    assert first.read_bytes() == second.read_bytes()
    contents = json.loads(first.read_text("utf-8"))
    assert list(contents) == ["type", "base_tokens", "vocab_size", "fingerprint", "trained_on"]
    assert contents["type"] == "character"
    assert contents["base_tokens"] == characters
    assert contents["vocab_size"] == len(characters)
    assert "😀" in first.read_text("utf-8")  # readable, not escaped
