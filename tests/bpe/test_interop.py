"""GPT-2's files in, tiktoken and the tokenizers library out; against those libraries where they are installed."""

import hashlib
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from data.errors import TokenizerError
from gpt2_helpers import SMALL_MERGES, write_gpt2_files
from tokenizer.bpe import BPEKind, BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.interop import (
    END_OF_TEXT,
    find_gpt2_files,
    load_gpt2,
    to_hf_json,
    to_tiktoken_arguments,
    to_tiktoken_ranks,
)
from tokenizer.loading import load_tokenizer
from tokenizer.pretokenize import PATTERNS, SPLIT_PATTERNS, SplitPattern
from tokenizer.train import TokenizerConfig, learn_merges
from tokenizer.vocabulary import merge_strings
from tokenizer_helpers import LOSSLESS_TEXTS, SHARED_DATA, read_shared

KNOWN_IDS = {  # published with GPT-2's encoder and its tutorials
    "Hello world": [15496, 995],
    "Hello, world!": [15496, 11, 995, 0],
    " the": [262],
    "the": [1169],
    " ": [220],
    "\n": [198],
    "\n\n": [628],
    "\n\na": [198, 198, 64],  # the pattern leaves the last line end to what follows
    "!": [0],
    "<|endoftext|>": [27, 91, 437, 1659, 5239, 91, 29],
    "": [],
}


@cache
def gpt2() -> BPETokenizer:
    return load_gpt2(SHARED_DATA / "gpt2" / "encoder.json", SHARED_DATA / "gpt2" / "vocab.bpe")


def need_gpt2() -> BPETokenizer:
    if not (SHARED_DATA / "gpt2" / "encoder.json").exists():
        pytest.skip("needs GPT-2's two files in the shared development data")
    return gpt2()


# --- reading GPT-2's files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["", "#version: 0.2\n"])
def test_ids_are_those_of_the_encoder(tmp_path: Path, version: str) -> None:
    encoder_path, merges_path = write_gpt2_files(tmp_path, version=version)
    tokenizer = load_gpt2(encoder_path, merges_path)
    encoder = json.loads(encoder_path.read_text(encoding="utf-8"))
    assert tokenizer.stoi | dict(tokenizer.special_tokens) == encoder
    assert tokenizer.merges == SMALL_MERGES  # those that begin with # are among them
    assert (tokenizer.split_pattern, tokenizer.kind, tokenizer.vocab_size) == ("gpt2", "byte_bpe", 264)
    assert tokenizer.encode("! the###") == [0, 262, 257]
    assert tokenizer.decode_bytes([261]) == b"he"
    assert tokenizer.decode_bytes([260]) == b"\xc2\xa0"  # spelled with U+0142, split at the one space only


def test_it_saves_and_loads_like_any_other(tmp_path: Path) -> None:
    tokenizer = load_gpt2(*write_gpt2_files(tmp_path))
    tokenizer.save(tmp_path / "tokenizer.json")
    again = load_tokenizer(tmp_path / "tokenizer.json")
    assert again.fingerprint() == tokenizer.fingerprint()
    assert again.encode("the ## ###") == tokenizer.encode("the ## ###")


def rewrite(path: Path, change: Callable[[str], str]) -> None:
    path.write_bytes(change(path.read_bytes().decode("utf-8")).encode("utf-8"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("Ġ t\n", "Ġ\u00a0t\n"), r"vocab\.bpe: line 3 is 'Ġ\\xa0t', not two tokens with one"),
        (lambda text: text.replace("Ġ t\n", "Ġ  t\n"), "line 3 is 'Ġ  t'"),
        (lambda text: text.replace("Ġ t\n", "Ġ t x\n"), "line 3 is 'Ġ t x'"),
        (lambda text: text.replace("Ġ t\n", "\nĠ t\n"), "line 3 is ''"),
        (lambda text: text + "\n", "line 8 is ''"),
        (lambda text: "#version: 0.2\n#version: 0.2\n" + text, "id 256 is '##', but merge 0 .* makes '#version:0.2'"),
        (lambda text: text[: text.index("h e")], "the 5 merges .* are 262: one of the two files is cut short"),
        (lambda text: text.replace("Ġ t\n", "Ġ a\n"), "id 258 is 'Ġt', but merge 2 .* makes 'Ġa'"),
        (lambda text: text.replace("# #\n## #\n", "## #\n# #\n"), "id 256 is '##', but merge 0 .* makes '###'"),
        (lambda text: text.replace("# #\n## #\n", ""), "the 5 merges .* one of the two files is cut short"),
    ],
)
def test_damaged_merges_are_named(tmp_path: Path, change: Callable[[str], str], message: str) -> None:
    encoder_path, merges_path = write_gpt2_files(tmp_path)
    rewrite(merges_path, change)
    with pytest.raises(TokenizerError, match=message):
        load_gpt2(encoder_path, merges_path)


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"he": 300}, "'he' has id 300; 264 tokens have ids from 0 upwards"),
        ({"he": -1}, "'he' has id -1"),
        ({"he": True}, "'he' has id True"),
        ({"he": 1.0}, r"'he' has id 1\.0"),
        ({"he": 260}, "id 260 stands twice, for 'Âł' and 'he'"),
        ({"he": 263, END_OF_TEXT: 261}, r"id 261 is '<\|endoftext\|>', but merge 5 .* makes 'he'"),
        ({"!": 1, '"': 0, "Âł": 255, "Ń": 260}, "id 260 is 'Ń'"),
    ],
)
def test_wrong_ids_are_named(tmp_path: Path, replaced: dict[str, Any], message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        load_gpt2(*write_gpt2_files(tmp_path, **replaced))


def test_the_last_id_is_the_end_of_text(tmp_path: Path) -> None:
    encoder_path, merges_path = write_gpt2_files(tmp_path)
    rewrite(encoder_path, lambda text: text.replace(END_OF_TEXT, "<|end|>"))
    with pytest.raises(TokenizerError, match=r"id 263 is '<\|end\|>', not <\|endoftext\|>"):
        load_gpt2(encoder_path, merges_path)


def test_a_base_that_is_not_the_bytes_is_refused(tmp_path: Path) -> None:
    encoder_path, merges_path = write_gpt2_files(tmp_path)
    rewrite(encoder_path, lambda text: text.replace('"!"', '"€"'))
    with pytest.raises(TokenizerError, match=r"encoder\.json and .*vocab\.bpe: the base tokens of a byte_bpe"):
        load_gpt2(encoder_path, merges_path)


@pytest.mark.parametrize("contents", ["[]", "{", '"x"'])
def test_an_encoder_that_is_no_object_is_refused(tmp_path: Path, contents: str) -> None:
    encoder_path, merges_path = write_gpt2_files(tmp_path)
    encoder_path.write_text(contents, encoding="utf-8")
    with pytest.raises(TokenizerError, match=r"encoder\.json"):
        load_gpt2(encoder_path, merges_path)


def test_absent_and_binary_files_are_named(tmp_path: Path) -> None:
    encoder_path, merges_path = write_gpt2_files(tmp_path)
    with pytest.raises(TokenizerError, match=r"cannot read .*absent"):
        load_gpt2(tmp_path / "absent", merges_path)
    merges_path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TokenizerError, match="UTF-16"):
        load_gpt2(encoder_path, merges_path)
    merges_path.write_bytes(b"a \x80")
    with pytest.raises(TokenizerError, match=r"vocab\.bpe is not valid UTF-8: byte 0x80 at offset 2"):
        load_gpt2(encoder_path, merges_path)


def test_tiktokens_cache_is_found_without_tiktoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert find_gpt2_files() is None
    address = "https://openaipublic.blob.core.windows.net/gpt-2/encodings/main/"
    paths = write_gpt2_files(tmp_path, version="#version: 0.2\n")
    for path in paths:
        assert find_gpt2_files() is None  # one of the two is not enough
        path.rename(tmp_path / hashlib.sha1((address + path.name).encode()).hexdigest())
    found = find_gpt2_files()
    assert found is not None
    assert load_gpt2(*found).vocab_size == 264


# --- GPT-2's own vocabulary, without any other library -----------------------------------------------------------


@pytest.mark.parametrize("text", KNOWN_IDS)
def test_published_ids(text: str) -> None:
    assert need_gpt2().encode(text) == KNOWN_IDS[text]


def test_gpt2_is_whole() -> None:
    tokenizer = need_gpt2()
    encoder = json.loads(read_shared("gpt2/encoder.json"))
    assert (tokenizer.vocab_size, len(tokenizer.merges)) == (50_257, 50_000)
    assert tokenizer.special_tokens == {END_OF_TEXT: 50_256}
    assert tokenizer.stoi | dict(tokenizer.special_tokens) == encoder
    assert ("#", "#") in tokenizer.merges
    assert tokenizer.encode(f"a{END_OF_TEXT}b", allow_special=True) == [64, 50_256, 65]


def test_gpt2_loses_nothing_of_real_text() -> None:
    tokenizer, text = need_gpt2(), read_shared("wikitext2/wiki.test.raw")
    ids = tokenizer.encode(text)
    assert len(ids) == 286_221  # as tiktoken counts, see the test below
    assert tokenizer.decode(ids) == text
    assert int(tokenizer.token_num_chars[ids].sum()) == len(text)


# --- export: what can be said without the libraries --------------------------------------------------------------


@cache
def trained(kind: BPEKind, split_pattern: SplitPattern) -> BPETokenizer:
    text = "".join(LOSSLESS_TEXTS.values()) * 3 + "they'll say 'low', lower, lowest... 1234 12345\n" * 20
    base = BYTE_CHARACTERS if kind == "byte_bpe" else sorted(set(text))
    config = TokenizerConfig(kind, len(base) + 120, split_pattern=split_pattern)
    merges = merge_strings(base, learn_merges([text], base, config, num_merges=120))
    return BPETokenizer(base, merges, kind=kind, split_pattern=split_pattern, special_tokens=["<|end|>", "<|e|>"])


def test_ranks_are_all_tokens_but_the_special_ones() -> None:
    tokenizer = trained("byte_bpe", "gpt2")
    ranks = to_tiktoken_ranks(tokenizer)
    assert len(ranks) == 256 + 120
    assert ranks[b"A"] == 65
    assert all(tokenizer.decode_bytes([index]) == raw for raw, index in ranks.items())


def test_arguments_for_tiktoken() -> None:
    arguments = to_tiktoken_arguments(trained("byte_bpe", "gpt4"), "mine")
    assert list(arguments) == ["name", "pat_str", "mergeable_ranks", "special_tokens"]
    assert arguments["pat_str"] == PATTERNS["gpt4"]
    assert arguments["special_tokens"] == {"<|end|>": 376, "<|e|>": 377}


def test_a_character_bpe_cannot_go_to_tiktoken() -> None:
    with pytest.raises(TokenizerError, match="a char_bpe tokenizer cannot be exported to tiktoken"):
        to_tiktoken_ranks(trained("char_bpe", "none"))


def test_a_merge_that_tiktoken_would_make_and_we_would_not_is_refused() -> None:
    tokenizer = BPETokenizer(BYTE_CHARACTERS, [("b", "c"), ("a", "b"), ("ab", "c")], kind="byte_bpe")
    assert tokenizer.encode("abc") == [97, 256]
    with pytest.raises(TokenizerError, match=r"merge 2 \('ab', 'c'\) can never happen, because 'abc' alone becomes"):
        to_tiktoken_ranks(tokenizer)


@pytest.mark.parametrize("run", ["a" * 7, "ab" * 6, "aab" * 5])
def test_overlapping_merges_can_be_exported(run: str) -> None:
    config = TokenizerConfig("byte_bpe", 300, min_pair_frequency=1)
    merges = merge_strings(BYTE_CHARACTERS, learn_merges([run], BYTE_CHARACTERS, config, num_merges=44))
    tokenizer = BPETokenizer(BYTE_CHARACTERS, merges, kind="byte_bpe")
    assert to_tiktoken_ranks(tokenizer)[run.encode()] == 255 + len(merges)


def test_the_json_holds_both_tables() -> None:
    contents = to_hf_json(trained("char_bpe", "none"))
    json.dumps(contents, allow_nan=False)
    assert contents["pre_tokenizer"] is None
    assert contents["model"]["vocab"]["\n"] == trained("char_bpe", "none").stoi["\n"]
    assert len(contents["model"]["merges"]) == 120
    assert [(t["content"], t["id"]) for t in contents["added_tokens"]] == list(
        trained("char_bpe", "none").special_tokens.items()
    )


def test_the_token_for_unknown_characters_is_never_a_real_one() -> None:
    base = sorted(set("<no such token>"))
    text = "<no such token>"
    merges = [(text[:i], text[i]) for i in range(1, len(text))]
    tokenizer = BPETokenizer(base, merges)
    assert text in tokenizer.stoi
    assert to_hf_json(tokenizer)["model"]["unk_token"] == "<<no such token>>"


def test_a_special_token_spelled_like_an_ordinary_one_cannot_go_to_hf() -> None:
    tokenizer = BPETokenizer(["a", "b"], [("a", "b")], special_tokens=["ab"])
    with pytest.raises(TokenizerError, match="special token 'ab' is spelled like the ordinary token 2"):
        to_hf_json(tokenizer)


# --- against the libraries themselves ----------------------------------------------------------------------------


def texts_for_comparison() -> list[str]:
    """Everything that others lost something of, and seeded random strings of the same characters."""
    characters = sorted(set("".join(LOSSLESS_TEXTS.values())))
    rng = random.Random(5)
    drawn = ["".join(rng.choices(characters, k=rng.randrange(1, 40))) for _ in range(300)]
    return [*LOSSLESS_TEXTS.values(), *drawn, "a" * 500, " " * 501]


def as_hf(tokenizer: BPETokenizer) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    return tokenizers.Tokenizer.from_str(json.dumps(to_hf_json(tokenizer)))


def as_tiktoken(tokenizer: BPETokenizer) -> Any:
    tiktoken = pytest.importorskip("tiktoken")
    return tiktoken.Encoding(**to_tiktoken_arguments(tokenizer, "exported"))


def representable(tokenizer: BPETokenizer, text: str) -> bool:
    return tokenizer.kind == "byte_bpe" or set(text) <= set(tokenizer.base_tokens)


@pytest.mark.parametrize("split_pattern", SPLIT_PATTERNS)
@pytest.mark.parametrize("kind", ["byte_bpe", "char_bpe"])
def test_the_tokenizers_library_gives_the_same_ids(kind: BPEKind, split_pattern: SplitPattern) -> None:
    tokenizer = trained(kind, split_pattern)
    other = as_hf(tokenizer)
    compared = [text for text in texts_for_comparison() if representable(tokenizer, text)]
    assert len(compared) > 300
    for text in compared:
        ids = tokenizer.encode(text)
        assert other.encode(text).ids == ids, repr(text)
        assert other.decode(ids) == text
    assert other.encode("low<|end|><|e|>er").ids == tokenizer.encode("low<|end|><|e|>er", allow_special=True)
    assert other.get_vocab_size() == tokenizer.vocab_size


def test_the_tokenizers_library_refuses_unknown_characters_too() -> None:
    with pytest.raises(Exception, match="no such token"):
        as_hf(trained("char_bpe", "none")).encode("low 龘")


@pytest.mark.parametrize("split_pattern", SPLIT_PATTERNS)
def test_tiktoken_gives_the_same_ids(split_pattern: SplitPattern) -> None:
    tokenizer = trained("byte_bpe", split_pattern)
    other = as_tiktoken(tokenizer)
    for text in texts_for_comparison():
        assert other.encode_ordinary(text) == tokenizer.encode(text), repr(text)
    text = "low<|end|><|e|>er"
    assert other.encode(text, allowed_special="all") == tokenizer.encode(text, allow_special=True)
    assert other.n_vocab == tokenizer.vocab_size


@pytest.mark.parametrize("convert", [as_hf, as_tiktoken])
def test_gpt2s_vocabulary_gives_the_same_ids_on_real_text(convert: Callable[[BPETokenizer], Any]) -> None:
    tokenizer, text = need_gpt2(), read_shared("wikitext2/wiki.test.raw")
    other = convert(tokenizer)
    ids = other.encode(text).ids if convert is as_hf else other.encode_ordinary(text)
    assert ids == tokenizer.encode(text)
