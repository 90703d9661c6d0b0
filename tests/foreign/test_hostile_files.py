"""Files of other tools that are damaged, edited or made to harm: one sentence, bounded memory, nothing run."""

import base64
import json
import os
import pickle
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from data.errors import TokenizerError
from foreign_helpers import byte_level_json, read, sentencepiece_model
from tokenizer.foreign import source_file, wire
from tokenizer.foreign.tiktoken_ranks import read_ranks
from tokenizer_helpers import PROJECT

BYTES = b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256))
KINDS: dict[str, dict[str, Any]] = {"hf": {}, "sentencepiece": {}, "tiktoken": {"pattern": "gpt2"}}


def refused(kind: str, path: Path) -> str:
    pytest.importorskip({"hf": "tokenizers"}.get(kind, kind))
    with pytest.raises(TokenizerError) as caught:
        read(kind, path=str(path), **KINDS[kind])
    message = str(caught.value)
    assert "\n" not in message and len(message) < 700
    assert str(path) in message
    return message


class RunsWhenLoaded:
    """A pickle that makes a file when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.trace),))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_is_not_unpickled(tmp_path: Path, kind: str, protocol: int) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(pickle.dumps(RunsWhenLoaded(tmp_path / "ran"), protocol))
    refused(kind, path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "raw", [b"", b"\0" * 99, b"\xff" * 99, b"[]", b"null", b"3", b"{}", b"\x1f\x8b\x08", b"[" * 99_999]
)
def test_what_is_no_tokenizer_at_all(tmp_path: Path, kind: str, raw: bytes) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(raw)
    refused(kind, path)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_files_and_folders(tmp_path: Path, kind: str) -> None:
    assert "No such file" in refused(kind, tmp_path / "none")
    assert "Is a directory" in refused(kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "large.model"
    with path.open("wb") as file:
        file.truncate(10 << 30)  # no bytes on the disk
    assert "has more than 256,000,000 bytes" in refused(kind, path)


@pytest.mark.parametrize("size", [10 << 30, 1 << 62, (1 << 70) - 1])
def test_a_length_that_claims_more_than_there_is(tmp_path: Path, size: int) -> None:
    path = sentencepiece_model(tmp_path / "m.model", "bpe")
    for raw in (b"\x0a" + wire.varint(size), path.read_bytes() + b"\x12" + wire.varint(size) + b"x"):
        path.write_bytes(raw)
        assert "is cut short or edited" in refused("sentencepiece", path)


@pytest.mark.parametrize("kind", ["hf", "sentencepiece"])
def test_cut_short_and_edited_files_never_break_anything(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "tokenizer.model"
    made = byte_level_json(path) if kind == "hf" else sentencepiece_model(path, "unigram")
    raw, rng, num_refused = made.read_bytes(), random.Random(1), 0
    for _ in range(60):
        damaged = bytearray(raw[: rng.randrange(len(raw))] if rng.random() < 0.3 else raw)
        for _ in range(rng.choice([0, 1, 4]) if len(damaged) else 0):
            damaged[rng.randrange(len(damaged))] = rng.choice(b'0129{}[]",:nu\xff\x80')
        path.write_bytes(damaged)
        try:
            read(kind, path=str(path)).encode_documents(["the cat ☃\n", "x"])
        except TokenizerError as error:
            num_refused += 1
            assert "\n" not in str(error)
    assert num_refused > 15


@pytest.mark.slow
def test_a_million_merges(tmp_path: Path) -> None:
    """They are read, in a process that may have no more than 4 GB, or refused there in one sentence."""
    pytest.importorskip("tokenizers")
    path = byte_level_json(tmp_path / "tokenizer.json")
    contents = json.loads(path.read_text(encoding="utf-8"))
    vocab, merges = contents["model"]["vocab"], []
    pair = 0
    letters = [token for token in vocab if len(token) == 1]
    tokens = list(letters)
    while len(merges) < 1_000_000:
        left, right = tokens[pair // len(letters)], letters[pair % len(letters)]
        pair += 1
        if left + right not in vocab:
            vocab[left + right] = len(vocab)
            tokens.append(left + right)
            merges.append([left, right])
    contents["model"]["merges"] = merges
    path.write_text(json.dumps(contents), encoding="utf-8")
    code = f"import sys; sys.path.insert(0, 'tests'); from foreign_helpers import read; read('hf', path={str(path)!r})"
    limit = 4 << 30
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
    )
    assert found.returncode == 0 or "TokenizerError: " in found.stderr.strip().splitlines()[-1], found.stderr[-500:]


def test_ids_that_would_need_a_huge_table(tmp_path: Path) -> None:
    path = byte_level_json(tmp_path / "tokenizer.json")
    contents = json.loads(path.read_text(encoding="utf-8"))
    contents["model"]["vocab"]["zzz"] = 4_000_000_000
    path.write_text(json.dumps(contents), encoding="utf-8")
    assert "has ids up to 4,000,000,000" in refused("hf", path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"decoder": {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True}},
            "'CTC' is not",
        ),
        ({"decoder": {"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"}}, "replaces by a pattern"),
        ({"model": {"type": "BPE"}}, "it has no model with a vocabulary"),
        ({"model": {"type": "Magic", "vocab": {}}}, "model type 'Magic' is not one of BPE, WordPiece"),
        (
            {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}},
            "the tokenizers library cannot read it",
        ),
        ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1}}, "dropout 0.1 makes the ids"),
        ({"model": {"type": "BPE", "vocab": {}, "merges": []}, "added_tokens": []}, "from 1 to 2,000,000 ids"),
    ],
)
def test_edited_json_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    assert message in refused("hf", byte_level_json(tmp_path / "tokenizer.json", **changes))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (BYTES[: BYTES.rindex(b"\n", 0, -20) + 1], "has no token for the byte 0x"),
        (BYTES + b"dGhl\n", "line 257 is 'dGhl', no token and rank"),
        (BYTES + b"dGhl 256 1\n", "line 257 is"),
        (BYTES + b"d*hl 256\n", "line 257 is"),
        (BYTES + b"dGhl -1\n", "line 257 is"),
        (BYTES + b"dGhl 1e9\n", "line 257 is"),
        (BYTES + b"dGhl 999999999\n", "line 257 has rank 999,999,999; ranks are below"),
        (BYTES + b"dGhl 99999999999999999999\n", "line 257 is"),
        (BYTES + b"dGhl 255\n", "line 257 has an empty token, or a token or rank that stands twice"),
        (BYTES + b"YQ== 256\n", "line 257 has an empty token, or a token"),
        (b'{"dGhl": 1}', "line 1 is"),
    ],
)
def test_ranks_that_are_none(raw: bytes, message: str) -> None:
    with pytest.raises(TokenizerError, match=f"ranks: {message}" if message.startswith("line") else message):
        read_ranks(raw, "ranks")


@pytest.mark.parametrize("pattern", ["(", "[a", "a{3,1}", r"\p{Nothing}"])
def test_a_pattern_that_is_none(tmp_path: Path, pattern: str) -> None:
    pytest.importorskip("tiktoken")
    path = tmp_path / "ranks"
    path.write_bytes(BYTES)
    with pytest.raises(TokenizerError, match="pattern"):
        read("tiktoken", path=str(path), pattern=pattern)


def test_the_size_limit_is_that_of_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_file, "MOST_BYTES", 3)
    (tmp_path / "a").write_bytes(b"abc")
    assert source_file.read_source(tmp_path / "a", is_text=True) == b"abc"
    (tmp_path / "a").write_bytes(b"abcd")
    with pytest.raises(TokenizerError, match="more than 3 bytes"):
        source_file.read_source(tmp_path / "a", is_text=True)
