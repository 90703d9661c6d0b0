"""Tokenizers of other tools: the ids of their own library, exact characters and bytes, or a refusal with the place."""

import json
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare.experiment import load_experiment
from compare.steps import Steps
from data.errors import ConfigError, LibraryError, TokenizerError
from foreign_helpers import (
    DOCUMENTS,
    GPT2_PATTERN,
    byte_level_json,
    hf_library,
    ids_by_document,
    metaspace_json,
    read,
    sentencepiece_model,
)
from model.evaluate import read_nats
from tokenizer.base import token_lengths
from tokenizer.config import TokenizerConfig
from tokenizer.encode_splits import encode_split
from tokenizer.foreign import libraries
from tokenizer.foreign.make import file_inputs
from tokenizer.foreign.tiktoken_ranks import ranks_file
from tokenizer.loading import load_tokenizer
from tokenizer_helpers import SURROGATES, make_split


def check_exact(tokenizer: Any, documents: list[str]) -> None:
    """The whole proof for one tokenizer, and that it is the same from its own file."""
    split = make_split("test", documents)
    ids, offsets = encode_split(split, tokenizer)
    num_chars, num_bytes = token_lengths(tokenizer, ids.numpy(), offsets)
    for number, document in enumerate(documents):
        inside = slice(offsets[number], offsets[number + 1])
        assert num_chars[inside].sum() == len(document)
        assert num_bytes[inside].sum() == len(document.encode("utf-8"))


def test_a_byte_level_file_gives_its_librarys_ids(tmp_path: Path) -> None:
    path = byte_level_json(tmp_path / "tokenizer.json")
    tokenizer = read("hf", path=str(path))
    theirs = hf_library().Tokenizer.from_file(str(path))
    assert ids_by_document(tokenizer, DOCUMENTS) == [theirs.encode(text).ids for text in DOCUMENTS]
    assert tokenizer.document_prefix == ""
    check_exact(tokenizer, DOCUMENTS)


@pytest.mark.parametrize("prepend_scheme", ["first", "never"])
def test_metaspace_with_byte_fallback(tmp_path: Path, prepend_scheme: str) -> None:
    path = metaspace_json(tmp_path / "tokenizer.json", prepend_scheme=prepend_scheme)
    tokenizer = read("hf", path=str(path))
    theirs = hf_library().Tokenizer.from_file(str(path))
    documents = ["the cat on the mat", "x the\n\n☃", "", "a  b "]
    assert ids_by_document(tokenizer, documents) == [theirs.encode(text).ids for text in documents]
    assert tokenizer.document_prefix == ("" if prepend_scheme == "never" else " ")
    check_exact(tokenizer, documents)


def test_a_space_that_the_library_would_have_put_there_itself_is_refused(tmp_path: Path) -> None:
    """Metaspace puts no second space before " the", so that its ids are those of "the"."""
    tokenizer = read("hf", path=str(metaspace_json(tmp_path / "tokenizer.json", prepend_scheme="first")))
    assert tokenizer.encode(" the") == tokenizer.encode("the")
    with pytest.raises(
        TokenizerError, match=r"document 1 does not survive .* at character 0: the text has ' the', its"
    ):
        encode_split(make_split("val", ["the", " the"]), tokenizer)


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
@pytest.mark.parametrize("add_dummy_prefix", [True, False])
def test_sentencepiece(tmp_path: Path, model_type: str, add_dummy_prefix: bool) -> None:
    path = sentencepiece_model(tmp_path / "m.model", model_type, add_dummy_prefix=add_dummy_prefix)
    tokenizer = read("sentencepiece", path=str(path))
    theirs = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_file=str(path))
    assert ids_by_document(tokenizer, DOCUMENTS) == theirs.encode(DOCUMENTS)
    assert tokenizer.document_prefix == (" " if add_dummy_prefix else "")
    check_exact(tokenizer, DOCUMENTS)


@pytest.mark.parametrize(
    ("options", "document", "place"),
    [
        ({"normalization_rule_name": "nmt_nfkc"}, "the ﬁsh", "at character 4: the text has 'the ﬁsh', its .* 'the fi"),
        ({"remove_extra_whitespaces": True}, "the  cat", "at character 4: the text has 'the  cat', .* for 'the cat'"),
        ({"byte_fallback": False, "vocab_size": 40}, "the ☂", "at character 4: the text has 'the ☂'"),
        ({}, "the ▁", "at character 4: the text has 'the ▁', its ids stand for 'the  '"),
    ],
)
def test_what_sentencepiece_changes_is_refused_with_the_place(
    tmp_path: Path, options: dict[str, Any], document: str, place: str
) -> None:
    tokenizer = read("sentencepiece", path=str(sentencepiece_model(tmp_path / "m.model", "bpe", **options)))
    with pytest.raises(TokenizerError, match=f"test: document 1 does not survive .*{place}"):
        encode_split(make_split("test", ["the", document]), tokenizer)


def test_lower_case_and_wordpiece_are_refused_with_the_place(tmp_path: Path) -> None:
    library = hf_library()
    vocab = {piece: index for index, piece in enumerate(["[UNK]", "the", "##s", "cat", "."])}
    made = library.Tokenizer(library.models.WordPiece(vocab, unk_token="[UNK]"))
    made.normalizer = library.normalizers.Lowercase()
    made.pre_tokenizer = library.pre_tokenizers.Whitespace()
    made.decoder = library.decoders.WordPiece()
    (tmp_path / "t.json").write_text(made.to_str(), encoding="utf-8")
    tokenizer = read("hf", path=str(tmp_path / "t.json"))
    check_exact(tokenizer, ["the cats", "the"])  # words with one space between them: nothing is lost
    for document, place in (
        ("the Cat", "character 4: the text has 'the Cat'"),
        ("the cat.", r"character 7: the text has 'the cat\.', its ids stand for 'the cat \.'"),
        ("the\ncat", "character 3"),
        ("the dog", r"for 'the \[UNK\]'"),
    ):
        with pytest.raises(TokenizerError, match=place):
            encode_split(make_split("test", [document]), tokenizer)


def test_added_tokens_in_a_text_are_counted_by_their_spelling(tmp_path: Path) -> None:
    added = {"id": 299, "content": "<é>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    path = byte_level_json(tmp_path / "tokenizer.json", added_tokens=[added | {"id": 9_999, "special": True}])
    tokenizer = read("hf", path=str(path))
    assert hf_library().Tokenizer.from_file(str(path)).encode("a<é>b").ids == tokenizer.encode("a<é>b")
    check_exact(tokenizer, ["a<é>b", "<é>"])


def test_truncation_and_padding_of_a_file_are_not_obeyed(tmp_path: Path) -> None:
    cut = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    tokenizer = read("hf", path=str(byte_level_json(tmp_path / "tokenizer.json", truncation=cut)))
    check_exact(tokenizer, DOCUMENTS)


def ranks(tmp_path: Path) -> Path:
    tokens = [bytes([byte]) for byte in range(256)] + [b"th", b"the", b" the", b"\xe2\x98"]
    path = tmp_path / "ranks.tiktoken"
    path.write_bytes(ranks_file({token: rank for rank, token in enumerate(tokens)}))
    return path


@pytest.mark.parametrize("pattern", ["gpt2", GPT2_PATTERN, "gpt4"])
def test_tiktoken_ranks(tmp_path: Path, pattern: str) -> None:
    pytest.importorskip("tiktoken")
    tokenizer = read("tiktoken", path=str(ranks(tmp_path)), pattern=pattern)
    assert tokenizer.encode("the the☃") == [257, 258, 259, 0x83]
    check_exact(tokenizer, [*DOCUMENTS, "<|endoftext|>"])


@pytest.mark.parametrize("text", SURROGATES.values())
def test_a_lone_surrogate_is_refused(tmp_path: Path, text: str) -> None:
    pytest.importorskip("tiktoken")
    tokenizer = read("tiktoken", path=str(ranks(tmp_path)), pattern="gpt2")
    for encode in (tokenizer.encode, lambda found: tokenizer.encode_documents(["a", found])):
        with pytest.raises(TokenizerError, match="lone surrogate"):
            encode(text)


def test_the_file_is_kept_and_edits_of_it_show(tmp_path: Path) -> None:
    tokenizer = read("hf", path=str(byte_level_json(tmp_path / "tokenizer.json")))
    tokenizer.save(tmp_path / "kept.json")
    (tmp_path / "tokenizer.json").unlink()
    again = load_tokenizer(tmp_path / "kept.json")
    assert (again.fingerprint(), again.encode("the cat")) == (tokenizer.fingerprint(), tokenizer.encode("the cat"))
    whole = json.loads((tmp_path / "kept.json").read_text(encoding="utf-8"))
    for change, message in (
        ({"library": "tokenizers 0.1.0"}, "was made with tokenizers 0.1.0, and tokenizers .* may give other ids"),
        ({"vocab_size": 299}, "vocab_size says 299, but what is in the file gives"),
        ({"options": {"x": 1}}, "fingerprint says .* edited or damaged"),
        ({"source_base64": whole["source_base64"][:-8]}, "its source is not a whole tokenizer.json"),
        ({"source_base64": "§"}, "source_base64 is damaged"),
        ({"source_base64": 3}, "source_base64: expected str, found 3"),
    ):
        (tmp_path / "kept.json").write_text(json.dumps(whole | change), encoding="utf-8")
        with pytest.raises(TokenizerError, match=f"kept.json: .*{message}"):
            load_tokenizer(tmp_path / "kept.json")


def test_identity_follows_file_pattern_and_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tiktoken")
    path = ranks(tmp_path)
    config = TokenizerConfig("tiktoken", path=str(path), pattern="gpt2")
    found = [read("tiktoken", path=str(path), pattern="gpt2").fingerprint(), json.dumps(file_inputs(config))]
    other = TokenizerConfig("tiktoken", path=str(path), pattern="gpt4")
    found += [read("tiktoken", path=str(path), pattern="gpt4").fingerprint(), json.dumps(file_inputs(other))]
    with monkeypatch.context() as patch:
        patch.setattr("importlib.metadata.version", lambda _name: "0.0.1")
        found += [read("tiktoken", path=str(path), pattern="gpt2").fingerprint(), json.dumps(file_inputs(config))]
    path.write_bytes(path.read_bytes().replace(b" 259\n", b" 260\n"))
    found += [read("tiktoken", path=str(path), pattern="gpt2").fingerprint(), json.dumps(file_inputs(config))]
    assert len(set(found)) == len(found)


def test_a_missing_library_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentencepiece", None)
    with pytest.raises(LibraryError, match=r"package sentencepiece is not installed; run `\.venv/bin/python -m pip"):
        libraries.version_of("sentencepiece")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "hf"}, "path is missing; kind hf needs it"),
        ({"kind": "hf", "path": " "}, "path: expected text"),
        ({"kind": "gpt2", "vocab": "a"}, "merges is missing"),
        ({"kind": "tiktoken", "path": "a"}, "kind tiktoken needs name, or path and pattern"),
        ({"kind": "tiktoken", "name": "a", "pattern": "b"}, "kind tiktoken needs name, or path and pattern"),
        (
            {"kind": "sentencepiece", "path": "a", "vocab_size": 9},
            "vocab_size: a sentencepiece tokenizer has the size of",
        ),
        ({"kind": "char", "path": "a"}, "path: not offered for kind char"),
        ({"kind": "spm_bpe"}, "vocab_size is missing"),
        ({"kind": "spm_bpe", "vocab_size": 300, "split_pattern": "gpt2"}, "split_pattern: not offered"),
        ({"kind": "hf_bpe", "vocab_size": 300, "special_tokens": ("<a>",)}, "special_tokens: not offered"),
        ({"kind": "hf_bpe", "vocab_size": 300, "tie_break": "first_seen"}, "tie_break: hf_bpe has its own rule"),
    ],
)
def test_settings_that_do_not_go_together(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TokenizerConfig(**values)


def test_the_whole_chain_with_a_prefix(tmp_path: Path) -> None:
    """SentencePiece with its space before every document, trained, scored and compared beside characters."""
    model = sentencepiece_model(tmp_path / "m.model", "unigram")
    values = experiment_values(tmp_path / "run", write_corpus(tmp_path / "texts", num_words=1_200))
    values["contestants"] = {
        "char": {"tokenizer": {"kind": "char"}},
        "foreign": {"tokenizer": {"kind": "sentencepiece", "path": str(model)}},
    }
    said: list[str] = []
    steps = Steps(load_experiment(write_experiment(tmp_path / "e.yaml", values)), echo=said.append)
    steps.compare()
    test = steps.data()["test"]
    for name in ("char", "foreign"):
        evaluation = read_nats(tmp_path / "run" / "checkpoints" / name / "test_nats.npz")
        assert (evaluation.num_chars, evaluation.num_bytes) == (len(test.text), len(test.text.encode()))
    assert (tmp_path / "run/checkpoints/foreign/tokenizer.json").read_bytes() == (
        tmp_path / "run/tokenizer/foreign_tokenizer.json"
    ).read_bytes()
    said.clear()
    again = Steps(load_experiment(tmp_path / "e.yaml"), echo=said.append)
    again.compare()
    assert again.num_done == 0, said
    sentencepiece_model(model, "bpe")
    changed = Steps(load_experiment(tmp_path / "e.yaml"), echo=said.append)
    changed.encode("foreign")
    assert changed.num_done == 2  # tokenizer and ids
