"""Tokenizer files: save -> load -> save is byte-identical, and every damage is one sentence that says where."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import TokenizerError
from factories import examples
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, ByteTokenizer
from tokenizer.char import CharTokenizer, alphabet_of
from tokenizer.loading import load_tokenizer
from tokenizer.pretokenize import SPLIT_PATTERNS
from tokenizer.train import TokenizerConfig, train_tokenizer
from tokenizer_helpers import LOSSLESS_TEXTS, make_splits

AWKWARD_BASE = [
    "\n",
    " ",
    "#",
    '"',
    "'",
    "\\",
    ",",
    "[",
    "\t",
    "\r",
    "\u2028",
    "\u0085",
    "é",
    "\U0001f600",
    "\x00",
    "a",
]
AWKWARD_MERGES = [
    (" ", " "), ("  ", " "), ("\n", "\n"), ("#", " "), ("# ", "#"), ('"', "'"), ("\\", "a"),
    ("\r", "\n"), ("\u2028", "\u0085"), ("é", "\U0001f600"), ("\x00", "\x00"), ("\t", " "), ("\t", "\t"),
]  # fmt: skip


def saved(tokenizer: Tokenizer, path: Path) -> bytes:
    tokenizer.save(path)
    return path.read_bytes()


def check_round_trip(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    """Save, load, save again: the same bytes, the same identity, the same ids."""
    first = saved(tokenizer, folder / "first.json")
    loaded = load_tokenizer(folder / "first.json")
    assert saved(loaded, folder / "second.json") == first
    assert type(loaded) is type(tokenizer)
    assert (loaded.kind, loaded.vocab_size) == (tokenizer.kind, tokenizer.vocab_size)
    assert loaded.fingerprint() == tokenizer.fingerprint() == json.loads(first)["fingerprint"]
    assert loaded.token_num_bytes.tolist() == tokenizer.token_num_bytes.tolist()
    return loaded


def test_awkward_tokens_survive(tmp_path: Path) -> None:
    tokenizer = BPETokenizer(AWKWARD_BASE, AWKWARD_MERGES, special_tokens=[" <s>\n", "# #", '"', " "])
    loaded = check_round_trip(tokenizer, tmp_path)
    assert isinstance(loaded, BPETokenizer)
    assert loaded.base_tokens == AWKWARD_BASE
    assert loaded.merges == AWKWARD_MERGES
    assert list(loaded.special_tokens) == [" <s>\n", "# #", '"', " "]
    text = "# #\n\n   \"'\\a\r\n\u2028\u0085é\U0001f600\x00\x00\t\t \t"
    assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.decode(loaded.encode(text)) == text


@pytest.mark.parametrize("name", LOSSLESS_TEXTS)
@pytest.mark.parametrize("kind", ["char_bpe", "byte_bpe"])
def test_trained_tokenizers_survive(kind: str, name: str, tmp_path: Path) -> None:
    text = LOSSLESS_TEXTS[name]
    size = 256 if kind == "byte_bpe" else len(alphabet_of([text]))
    config = TokenizerConfig(kind, size + 20, min_pair_frequency=1)  # type: ignore[arg-type]
    tokenizer, _ = train_tokenizer(config, make_splits([text], ["\n"], ["\n"]))
    loaded = check_round_trip(tokenizer, tmp_path)
    assert loaded.encode(text) == tokenizer.encode(text)


@pytest.mark.parametrize("split_pattern", SPLIT_PATTERNS)
@pytest.mark.parametrize("tie_break", [None, "first_seen", "lowest_ids", "greatest_bytes"])
def test_settings_survive(split_pattern: Any, tie_break: Any, tmp_path: Path) -> None:
    tokenizer = BPETokenizer(
        ["a", "b"], [("a", "b")], split_pattern=split_pattern, tie_break=tie_break, trained_on={"kind": "x", "n": 1}
    )
    loaded = check_round_trip(tokenizer, tmp_path)
    assert isinstance(loaded, BPETokenizer)
    assert (loaded.split_pattern, loaded.tie_break) == (split_pattern, tie_break)
    assert loaded.trained_on == {"kind": "x", "n": 1}


@examples(40)
@given(characters=st.lists(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12, unique=True))
def test_any_alphabet_survives(characters: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("alphabet")
    check_round_trip(CharTokenizer(characters), folder)
    check_round_trip(BPETokenizer(characters, [(characters[0], characters[-1])]), folder)


def test_empty_tables_survive(tmp_path: Path) -> None:
    check_round_trip(CharTokenizer([]), tmp_path)
    check_round_trip(BPETokenizer([], []), tmp_path)
    check_round_trip(BPETokenizer(BYTE_CHARACTERS, [], kind="byte_bpe"), tmp_path)
    check_round_trip(ByteTokenizer(), tmp_path)


# ------------------------------------------------------------------------------------------------ the file format


def test_format(tmp_path: Path) -> None:
    tokenizer = BPETokenizer.train("low lower lowest", 20, 2, verbose=False)
    assert json.loads(saved(tokenizer, tmp_path / "t.json")) == {
        "type": "character_bpe",
        "base_tokens": [" ", "e", "l", "o", "r", "s", "t", "w"],
        "merges": [["l", "o"], ["lo", "w"], [" ", "low"], [" low", "e"]],
        "vocab_size": 12,
        "fingerprint": "e86af6dffc135c9e8f114243ce3eae4c6989dbfad45067b258c413e76e2b8a50",
        "split_pattern": "none",
        "special_tokens": [],
        "tie_break": "first_seen",
    }


def test_the_five_published_keys_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    tokenizer = BPETokenizer.train("low lower lowest", 20, 2, verbose=False)
    contents = json.loads(saved(tokenizer, path))
    for key in ("split_pattern", "special_tokens", "tie_break"):
        del contents[key]
    path.write_text(json.dumps(contents), "utf-8")  # escaped, on one line: another program may have written it
    assert load_tokenizer(path).encode("lowest") == tokenizer.encode("lowest")


def test_what_an_editor_may_change_without_harm(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    tokenizer = BPETokenizer(["é", "\n"], [("é", "\n")])
    contents = json.loads(saved(tokenizer, path))
    path.write_text(json.dumps(dict(reversed(contents.items())), ensure_ascii=True, indent=8), "utf-8")
    assert load_tokenizer(path).fingerprint() == tokenizer.fingerprint()


# ------------------------------------------------------------------------------------------------- damaged files

Edit = Callable[[dict[str, Any]], Any]


def setting(key: str, value: Any) -> Edit:
    """The edit that gives `key` another value."""
    return lambda contents: contents.update({key: value})


def base_contents() -> dict[str, Any]:
    """The file of a small character BPE."""
    tokenizer = BPETokenizer(["a", "b", "c"], [("a", "b"), ("b", "c"), ("ab", "c")])
    return {
        "type": "character_bpe",
        "base_tokens": list(tokenizer.base_tokens),
        "merges": [list(pair) for pair in tokenizer.merges],
        "vocab_size": tokenizer.vocab_size,
        "fingerprint": tokenizer.fingerprint(),
    }


EDITED = " gives {!r}: it was edited or damaged"
DAMAGES: dict[str, tuple[Edit, str]] = {
    "unknown type": (setting("type", "character_bbe"), "unknown type 'character_bbe'; did you mean 'character_bpe'?"),
    "type of another program": (
        setting("type", "WordPiece"),
        "unknown type 'WordPiece'; known: byte, byte_bpe, character, character_bpe",
    ),
    "type is a list": (
        setting("type", ["byte"]),
        "unknown type ['byte']; did you mean 'byte'?",
    ),
    "type is missing": (
        lambda contents: contents.pop("type"),
        "unknown type None; known: byte, byte_bpe, character, character_bpe",
    ),
    "unknown key": (setting("merge", []), "unknown key 'merge'; did you mean 'merges'?"),
    "version key": (
        setting("version", 2),
        "unknown key 'version'; known: base_tokens, document_separator, fingerprint, merges, placement, "
        "special_tokens, split_pattern, tie_break, trained_on, type, vocab_size",
    ),
    "merges are missing": (lambda contents: contents.pop("merges"), "key 'merges' is missing"),
    "fingerprint is missing": (lambda contents: contents.pop("fingerprint"), "key 'fingerprint' is missing"),
    "base tokens are a string": (setting("base_tokens", "abc"), "base_tokens: expected a list of strings, found str"),
    "base tokens are numbers": (setting("base_tokens", ["a", 1, "c"]), "base_tokens[1]: expected a string, found 1"),
    "base token of two characters": (
        setting("base_tokens", ["a", "b", "cc"]),
        "base token 2 is 'cc', not a single character",
    ),
    "base token is empty": (setting("base_tokens", ["", "b", "c"]), "base token 0 is '', not a single character"),
    "base token twice": (setting("base_tokens", ["a", "b", "b"]), "base token 'b' stands twice in the alphabet"),
    "base token is a lone surrogate": (
        setting("base_tokens", ["a", "b", "\ud800"]),
        "base token 2 is the lone surrogate U+D800, which cannot be written as UTF-8",
    ),
    "merges are an object": (setting("merges", {"a": "b"}), "merges: expected a list of pairs, found dict"),
    "merge is a string": (
        lambda contents: contents["merges"].__setitem__(1, "b c"),
        "merges[1]: expected a pair of strings, found 'b c'",
    ),
    "merge of three": (
        lambda contents: contents["merges"].__setitem__(0, ["a", "b", "c"]),
        "merges[0]: expected a pair of strings, found ['a', 'b', 'c']",
    ),
    "merge of numbers": (
        lambda contents: contents["merges"].__setitem__(2, ["ab", 2]),
        "merges[2]: expected a pair of strings, found ['ab', 2]",
    ),
    "merge of a token that is none": (
        lambda contents: contents["merges"].__setitem__(0, ["a", "x"]),
        "merge 0 ('a', 'x'): 'x' is not a token by then",
    ),
    "merge before its half exists": (
        lambda contents: contents["merges"].reverse(),
        "merge 0 ('ab', 'c'): 'ab' is not a token by then",
    ),
    "merge twice": (
        lambda contents: contents["merges"].append(["a", "b"]),
        "merge 3 ('a', 'b') makes 'ab', which exists already",
    ),
    "two merges that spell one token": (
        lambda contents: contents["merges"].append(["a", "bc"]),
        "merge 3 ('a', 'bc') makes 'abc', which exists already",
    ),
    "merge with an empty half": (
        lambda contents: contents["merges"].append(["", "a"]),
        "merge 3 ('', 'a'): '' is not a token by then",
    ),
    "vocabulary size is off": (
        setting("vocab_size", 7),
        "vocab_size says 7, but what is in the file" + EDITED.format(6),
    ),
    "vocabulary size is a string": (
        setting("vocab_size", "6"),
        "vocab_size says '6', but what is in the file" + EDITED.format(6),
    ),
    "vocabulary size is a fraction": (
        setting("vocab_size", 6.0),
        "vocab_size says 6.0, but what is in the file" + EDITED.format(6),
    ),
    "unknown split pattern": (
        setting("split_pattern", "gpt3"),
        "split_pattern: 'gpt3' is not one of none, space, gpt2, gpt4",
    ),
    "unknown tie rule": (
        setting("tie_break", "random"),
        "tie_break: 'random' is not one of first_seen, lowest_ids, greatest_bytes",
    ),
    "special tokens are a string": (
        setting("special_tokens", "<s>"),
        "special_tokens: expected a list of strings, found str",
    ),
    "special token twice": (
        setting("special_tokens", ["<s>", "<s>"]),
        "special token '<s>' is empty, not a string, or stands twice",
    ),
    "special token is a lone surrogate": (
        setting("special_tokens", ["\udc80"]),
        "lone surrogate U+DC80 at offset 0: it has no UTF-8 form, so it is refused; remove or replace it",
    ),
    "history is a list": (setting("trained_on", ["x"]), "trained_on: expected an object, found ['x']"),
    "byte type on characters": (
        setting("type", "byte_bpe"),
        "the base tokens of a byte_bpe are the 256 bytes in GPT-2's spelling, in any order",
    ),
    "merges in a character file": (
        setting("type", "character"),
        "unknown key 'merges'; known: base_tokens, document_separator, fingerprint, placement, special_tokens, "
        "trained_on, type, vocab_size",
    ),
}


def refused(path: Path) -> str:
    """The message with which the file is refused, checked to be one line."""
    with pytest.raises(TokenizerError) as caught:
        load_tokenizer(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message


@pytest.mark.parametrize("damage", DAMAGES)
def test_damages(damage: str, tmp_path: Path) -> None:
    edit, wanted = DAMAGES[damage]
    contents, path = base_contents(), tmp_path / "bpe_tokenizer.json"
    edit(contents)
    path.write_text(json.dumps(contents), "utf-8")
    assert refused(path) == f"{path}: {wanted}"


FINGERPRINTED: dict[str, Edit] = {
    "base tokens in another order": lambda contents: contents["base_tokens"].reverse(),
    "merges in another order": lambda contents: contents["merges"].__setitem__(slice(0, 2), [["b", "c"], ["a", "b"]]),
    "another base token": lambda contents: (contents["base_tokens"].__setitem__(2, "d"), contents.update(
        merges=[["a", "b"], ["b", "d"], ["ab", "d"]])),
    "swapped halves": lambda contents: contents["merges"].__setitem__(1, ["c", "b"]),
    "another split pattern": setting("split_pattern", "gpt2"),
    "an edited fingerprint": setting("fingerprint", "0" * 64),
    "a fingerprint that is a number": setting("fingerprint", 7),
    "an upper-case fingerprint": lambda contents: contents.update(fingerprint=contents["fingerprint"].upper()),
}  # fmt: skip


@pytest.mark.parametrize("damage", FINGERPRINTED)
def test_edits_that_only_the_fingerprint_shows(damage: str, tmp_path: Path) -> None:
    contents, path = base_contents(), tmp_path / "bpe_tokenizer.json"
    FINGERPRINTED[damage](contents)
    path.write_text(json.dumps(contents), "utf-8")
    message = refused(path)
    assert message.startswith(f"{path}: fingerprint says {contents['fingerprint']!r}, but what is in the file gives")
    assert message.endswith(": it was edited or damaged")


def test_special_tokens_added_or_dropped(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    BPETokenizer(["a"], [], special_tokens=["<s>"]).save(path)
    contents = json.loads(path.read_bytes())
    contents["special_tokens"] = []
    path.write_text(json.dumps(contents), "utf-8")
    assert refused(path).startswith(f"{path}: vocab_size says 2, but what is in the file gives 1")
    contents["special_tokens"] = ["<t>"]
    path.write_text(json.dumps(contents), "utf-8")
    assert refused(path).startswith(f"{path}: fingerprint says ")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole, path = saved(BPETokenizer(["é", "b"], [("é", "b")]), tmp_path / "t.json"), tmp_path / "cut.json"
    for size in range(len(whole) - 2):  # the last two bytes are the brace and the newline
        path.write_bytes(whole[:size])
        message = refused(path)
        assert " is not valid JSON: " in message or " is not valid UTF-8: " in message
        assert message.endswith("; run `make tokenizer` again")


def test_every_flipped_byte_is_refused_or_harmless(tmp_path: Path) -> None:
    tokenizer = BPETokenizer(["a", "b"], [("a", "b")])
    whole, path = saved(tokenizer, tmp_path / "t.json"), tmp_path / "flipped.json"
    num_harmless = 0
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        try:
            loaded = load_tokenizer(path)
        except TokenizerError as error:
            assert "\n" not in str(error).removeprefix(str(path))
        else:
            num_harmless += 1
            assert loaded.fingerprint() == tokenizer.fingerprint()
    assert num_harmless < len(whole) // 20


@pytest.mark.parametrize(
    ("contents", "wanted"),
    [
        ("[]", ": expected a JSON object, found list"),
        ('"byte"', ": expected a JSON object, found str"),
        ("null", ": expected a JSON object, found NoneType"),
        ("", " is not valid JSON: Expecting value at line 1, column 1; run `make tokenizer` again"),
        ('{"type": "byte",}', " is not valid JSON: "),
        ("#version: 0.2\na b\n", " is not valid JSON: Expecting value at line 1, column 1"),
    ],
)
def test_files_that_are_something_else(contents: str, wanted: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(contents, "utf-8")
    assert refused(path).startswith(f"{path}{wanted}")


def test_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    text = json.dumps(base_contents())
    path.write_bytes(text.encode("utf-16"))
    assert "is UTF-16" in refused(path)
    path.write_bytes(b'{"type": "\xe9"}')  # Latin-1
    assert "is not valid UTF-8: byte 0xe9 at offset 10" in refused(path)


def test_no_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.json") == f"{tmp_path / 'none.json'} does not exist; run `make tokenizer`"
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(TokenizerError, match=r"^cannot read .*folder\.json: .*; run `make tokenizer` again$"):
        load_tokenizer(tmp_path / "folder.json")


def test_the_size_of_a_byte_file_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    ByteTokenizer().save(path)
    contents = json.loads(path.read_bytes())
    for key, value in (("vocab_size", 255), ("vocab_size", 256.0), ("fingerprint", "f" * 64)):
        path.write_text(json.dumps({**contents, key: value}), "utf-8")
        assert refused(path).startswith(f"{path}: {key} says {value!r}, but what is in the file gives ")
