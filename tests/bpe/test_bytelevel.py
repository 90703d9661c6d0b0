"""Bytes as tokens, GPT-2's spelling of them, and decoding that never invents or loses a byte."""

import doctest
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import TokenizerError
from factories import examples
from tokenizer import bytelevel
from tokenizer.base import Tokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, BYTE_OF_CHARACTER, ByteTokenizer, StreamingDecoder, num_chars_begun
from tokenizer.loading import load_tokenizer
from tokenizer_helpers import LOSSLESS_TEXTS, SHARED_DATA, SURROGATES


def test_doctests() -> None:
    result = doctest.testmod(bytelevel)
    assert result.attempted > 0
    assert result.failed == 0


# ------------------------------------------------------------------------------------------------- the spelling


def test_byte_characters() -> None:
    assert len(set(BYTE_CHARACTERS)) == 256
    assert all(len(character) == 1 and character.isprintable() and character != " " for character in BYTE_CHARACTERS)
    assert [BYTE_OF_CHARACTER[character] for character in BYTE_CHARACTERS] == list(range(256))
    known = {0: "Ā", 10: "Ċ", 32: "Ġ", 33: "!", 126: "~", 127: "ġ", 160: "ł", 161: "¡", 173: "Ń", 255: "ÿ"}
    assert {byte: BYTE_CHARACTERS[byte] for byte in known} == known


def test_spelling_is_that_of_gpt2() -> None:
    path = SHARED_DATA / "gpt2" / "encoder.json"
    if not path.exists():
        pytest.skip("needs the shared GPT-2 vocabulary")
    vocabulary = json.loads(path.read_text("utf-8"))
    assert {token for token, index in vocabulary.items() if index < 256} == set(BYTE_CHARACTERS)
    assert set("".join(vocabulary).replace("<|endoftext|>", "")) <= set(BYTE_CHARACTERS)


# ------------------------------------------------------------------------------------------------ the tokenizer


@pytest.mark.parametrize("name", LOSSLESS_TEXTS)
def test_lossless(name: str) -> None:
    text, tokenizer = LOSSLESS_TEXTS[name], ByteTokenizer()
    ids = tokenizer.encode(text)
    assert ids == list(text.encode())
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode_bytes(ids) == text.encode()
    assert int(tokenizer.token_num_chars[ids].sum()) == len(text)
    assert int(tokenizer.token_num_bytes[ids].sum()) == len(ids)


@examples(100)
@given(st.text())
def test_lossless_on_any_text(text: str) -> None:
    tokenizer = ByteTokenizer()
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert int(tokenizer.token_num_chars[ids].sum()) == len(text)


def test_documents_are_encoded_one_by_one() -> None:
    tokenizer = ByteTokenizer()
    texts = ["", "aé\n", "", "\U0001f600", ""]
    ids, offsets = tokenizer.encode_documents(texts)
    assert ids.dtype == offsets.dtype == np.int64
    assert offsets.tolist() == [0, 0, 4, 4, 8, 8]
    assert ids.tolist() == list("aé\n\U0001f600".encode())
    ids[0] = 0  # the caller's own, writable array
    for nothing in ([], [""], ["", ""]):
        ids, offsets = tokenizer.encode_documents(nothing)
        assert (ids.tolist(), offsets.tolist()) == ([], [0] * (len(nothing) + 1))


def test_is_a_tokenizer() -> None:
    tokenizer = ByteTokenizer()
    assert isinstance(tokenizer, Tokenizer)
    assert (tokenizer.kind, tokenizer.vocab_size) == ("byte", 256)
    assert len(tokenizer.token_num_chars) == len(tokenizer.token_num_bytes) == 256


@pytest.mark.parametrize("name", SURROGATES)
def test_lone_surrogates_are_refused(name: str) -> None:
    tokenizer = ByteTokenizer()
    for encode in (tokenizer.encode, lambda text: tokenizer.encode_documents(["a\n", text]), bytelevel.utf8):
        with pytest.raises(TokenizerError, match=r"lone surrogate U\+D[89A-F][0-9A-F]{2} at offset 3: it has no UTF-8"):
            encode(SURROGATES[name])


# ---------------------------------------------------------------------------------------------------- decoding


def test_a_lone_continuation_byte() -> None:
    tokenizer = ByteTokenizer()
    with pytest.raises(TokenizerError) as caught:
        tokenizer.decode([128])
    assert str(caught.value) == (
        "the ids are not whole characters: byte 0x80 at offset 0 (invalid start byte); "
        "use decode_bytes, or errors='replace'"
    )
    assert tokenizer.decode([128], errors="replace") == "\ufffd"
    assert tokenizer.decode_bytes([128]) == b"\x80"


def test_the_offset_of_a_broken_byte() -> None:
    with pytest.raises(TokenizerError, match=r"byte 0xc3 at offset 2 \(invalid continuation byte\)"):
        ByteTokenizer().decode(list(b"ab\xc3ab"))
    with pytest.raises(TokenizerError, match=r"byte 0xf0 at offset 1 \(unexpected end of data\)"):
        ByteTokenizer().decode(list(b"a\xf0\x9f\x98"))
    # An encoded surrogate is no UTF-8 either: the policy at the way out is the one at the way in.
    with pytest.raises(TokenizerError, match=r"byte 0xed at offset 0"):
        ByteTokenizer().decode(list(b"\xed\xa0\x80"))


@pytest.mark.parametrize(("ids", "wrong", "position"), [([256], 256, 0), ([1, -1], -1, 1)])
def test_ids_out_of_range(ids: list[int], wrong: int, position: int) -> None:
    for decode in (ByteTokenizer().decode, ByteTokenizer().decode_bytes):
        with pytest.raises(TokenizerError) as caught:
            decode(ids)
        assert str(caught.value) == f"id {wrong} at position {position} is outside the vocabulary of 256"


def test_num_chars_begun() -> None:
    for text in ("", "a", "é", "€", "\U0001f600", "aé€\U0001f600"):
        raw = text.encode()
        assert num_chars_begun(raw) == len(text)
        for cut in range(len(raw) + 1):  # wherever it is cut, the parts add up
            assert num_chars_begun(raw[:cut]) + num_chars_begun(raw[cut:]) == len(text)


# --------------------------------------------------------------------------------------------------- streaming


def test_streaming_holds_an_incomplete_character_back() -> None:
    decoder = ByteTokenizer().streaming_decoder()
    assert [decoder.push(byte) for byte in "é\U0001f600a".encode()] == ["", "é", "", "", "", "\U0001f600", "a"]
    assert decoder.finish() == ""


def test_streaming_an_emoji_over_two_tokens() -> None:
    emoji = "\U0001f600".encode()
    for cut in (1, 2, 3):
        decoder = StreamingDecoder([b"x" + emoji[:cut], emoji[cut:] + b"y"])
        assert [decoder.push(0), decoder.push(1), decoder.finish()] == ["x", "\U0001f600y", ""]


def test_streaming_an_unfinished_character() -> None:
    strict, replacing = (ByteTokenizer().streaming_decoder(errors) for errors in ("strict", "replace"))
    assert (strict.push(0xF0), replacing.push(0xF0)) == ("", "")
    assert replacing.finish() == "\ufffd"
    with pytest.raises(TokenizerError) as caught:
        strict.finish()
    assert str(caught.value) == "the ids are not UTF-8: unexpected end of data; use errors='replace'"


def test_streaming_a_broken_byte() -> None:
    assert ByteTokenizer().streaming_decoder("replace").push(128) == "\ufffd"
    with pytest.raises(TokenizerError, match="the ids are not UTF-8: invalid start byte; use errors='replace'"):
        ByteTokenizer().streaming_decoder().push(128)


@pytest.mark.parametrize("index", [256, -1])
def test_streaming_an_id_out_of_range(index: int) -> None:
    with pytest.raises(TokenizerError, match=rf"id {index} at position 0 is outside the vocabulary of 256"):
        ByteTokenizer().streaming_decoder().push(index)


@examples(100)
@given(st.lists(st.integers(0, 255), max_size=20))
def test_streaming_equals_decoding_at_once(ids: list[int]) -> None:
    tokenizer = ByteTokenizer()
    decoder = tokenizer.streaming_decoder("replace")
    streamed = "".join([decoder.push(index) for index in ids]) + decoder.finish()
    assert streamed == tokenizer.decode(ids, "replace") == bytes(ids).decode("utf-8", "replace")


# --------------------------------------------------------------------------------------------------------- file


def test_file(tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    tokenizer = ByteTokenizer(trained_on={"kind": "byte"})
    tokenizer.save(first)
    loaded = load_tokenizer(first)
    assert isinstance(loaded, ByteTokenizer)
    assert loaded.trained_on == {"kind": "byte"}
    loaded.save(second)
    assert first.read_bytes() == second.read_bytes()
    assert json.loads(first.read_text("utf-8"))["fingerprint"] == ByteTokenizer().fingerprint()
