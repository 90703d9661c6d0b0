"""Encoded splits: lossless or not written, tied to text and tokenizer, refused when either changed."""

import hashlib
import json
import math
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from data.errors import DataError, TokenizerError
from data.layout import Layout
from data.splits import Split
from tokenizer import encode_splits
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import ByteTokenizer
from tokenizer.char import CharTokenizer, alphabet_of
from tokenizer.encode_splits import (
    check_id_range,
    encode_split,
    is_up_to_date,
    load_encoded,
    summarize,
    write_encoded,
)
from tokenizer.train import TokenizerConfig, train_tokenizer
from tokenizer_helpers import LOSSLESS_TEXTS, make_split, make_splits

SPLITS = make_splits(["the cät sat\n", "", "the mat\n"], ["the hat\n"], ["that\n", "sat \U0001f600\n"])
MAKE = "make encode EXPERIMENT=x"
KINDS = {
    "char": TokenizerConfig("char"),
    "byte": TokenizerConfig("byte"),
    "char_bpe": TokenizerConfig("char_bpe", 20),
    "byte_bpe": TokenizerConfig("byte_bpe", 270, split_pattern="gpt2"),
}


def char_tokenizer() -> CharTokenizer:
    """The character tokenizer of all splits."""
    return CharTokenizer(alphabet_of(split.text for split in SPLITS.values()))


def load(folder: Path, tokenizer: Tokenizer) -> Any:
    return load_encoded(folder, tokenizer, tokenizer_path=Path("tokenizer/x_tokenizer.json"), make=MAKE)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file under `folder` with its bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# --------------------------------------------------------------------------------------------------- round trip


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind: str, tmp_path: Path) -> None:
    tokenizer, _ = train_tokenizer(KINDS[kind], SPLITS)
    manifest = write_encoded(tmp_path, SPLITS, tokenizer)
    encoded = load(tmp_path, tokenizer)
    assert list(encoded) == ["train", "val", "test"]
    for name, split in SPLITS.items():
        found = encoded[name]
        assert found.name == name
        assert found.ids.dtype == torch.long and found.ids.ndim == 1
        documents = split.documents()
        offsets = found.document_offsets.tolist()
        assert found.document_offsets.dtype == np.int64 and len(offsets) == len(documents) + 1
        ids = found.ids.tolist()
        assert [tokenizer.decode(ids[s:e]) for s, e in pairwise(offsets)] == documents
        assert found.num_chars == len(split.text)
        assert found.num_bytes == len(split.text.encode())
        assert found.text_sha256 == split.sha256 == hashlib.sha256(split.text.encode()).hexdigest()
        assert found.tokenizer_fingerprint == tokenizer.fingerprint() == manifest["tokenizer_fingerprint"]
        assert found.path == tmp_path / f"{name}_ids.pt"
        assert found.ids_sha256 == hashlib.sha256(found.path.read_bytes()).hexdigest()
        assert int(tokenizer.token_num_chars[ids].sum()) == len(split.text)


def test_files_and_manifest(tmp_path: Path) -> None:
    tokenizer = ByteTokenizer()
    returned = write_encoded(tmp_path, SPLITS, tokenizer)
    names = [f"{split}_{what}" for split in SPLITS for what in ("ids.pt", "docs.npy")]
    assert sorted(snapshot(tmp_path)) == sorted([*names, "manifest.json"])
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    assert manifest == returned
    assert list(manifest) == [
        *("inputs", "tokenizer_kind", "tokenizer_fingerprint", "vocab_size", "splits", "content_sha256"),
    ]
    assert (manifest["tokenizer_kind"], manifest["vocab_size"]) == ("byte", 256)
    train, raw = manifest["splits"]["train"], SPLITS["train"].text.encode()
    assert train == {
        "num_tokens": len(raw),
        "num_chars": len(raw) - 1,  # ä takes two bytes
        "num_bytes": len(raw),
        "num_documents": 3,
        "text_sha256": hashlib.sha256(raw).hexdigest(),
        "borders_sha256": hashlib.sha256(np.array(SPLITS["train"].document_offsets, "<i8").tobytes()).hexdigest(),
        "ids_sha256": hashlib.sha256((tmp_path / "train_ids.pt").read_bytes()).hexdigest(),
        "document_offsets": "train_docs.npy",
        "document_offsets_sha256": hashlib.sha256((tmp_path / "train_docs.npy").read_bytes()).hexdigest(),
    }
    assert np.load(tmp_path / "train_docs.npy", allow_pickle=False).tolist() == [0, 13, 13, 21]


def test_a_bare_tensor_that_others_can_load(tmp_path: Path) -> None:
    tokenizer = char_tokenizer()
    write_encoded(tmp_path, SPLITS, tokenizer)
    for mmap in (True, False):
        ids = torch.load(tmp_path / "val_ids.pt", weights_only=True, mmap=mmap)
        assert type(ids) is torch.Tensor
        assert ids.dtype == torch.long and ids.ndim == 1
        assert ids.tolist() == tokenizer.encode(SPLITS["val"].text)


@pytest.mark.parametrize("kind", KINDS)
def test_awkward_texts(kind: str, tmp_path: Path) -> None:
    splits = make_splits(list(LOSSLESS_TEXTS.values()), ["\n"], ["\r\n\n"])
    config = TokenizerConfig("char_bpe", 250) if kind == "char_bpe" else KINDS[kind]
    tokenizer, _ = train_tokenizer(config, splits)
    write_encoded(tmp_path, splits, tokenizer)
    assert tokenizer.decode(load(tmp_path, tokenizer)["train"].ids.tolist()) == splits["train"].text


def test_writing_again_gives_the_same_bytes(tmp_path: Path) -> None:
    write_encoded(tmp_path, SPLITS, char_tokenizer())
    before = snapshot(tmp_path)
    write_encoded(tmp_path, SPLITS, char_tokenizer())
    assert snapshot(tmp_path) == before


def test_an_empty_split_is_an_empty_tensor(tmp_path: Path) -> None:
    splits = make_splits(["a\n"], [], [""])
    write_encoded(tmp_path, splits, ByteTokenizer())
    encoded = load(tmp_path, ByteTokenizer())
    assert [len(encoded[name].ids) for name in splits] == [2, 0, 0]
    assert encoded["val"].document_offsets.tolist() == [0]
    assert encoded["test"].document_offsets.tolist() == [0, 0]


# ---------------------------------------------------------------------------------------- tokenizers from outside


class Outside(ByteTokenizer):
    """A byte tokenizer whose faults the tests choose; the contract has to catch each."""

    def __init__(self, drop: str = "", only_in: str = "") -> None:
        super().__init__()
        self.drop, self.only_in = drop, only_in

    def encode_documents(self, texts: Sequence[str]) -> tuple[Any, Any]:
        broken = self.only_in in "".join(texts)
        return super().encode_documents([text.replace(self.drop, "") if broken else text for text in texts])


def refused(tokenizer: Tokenizer, folder: Path) -> str:
    """The message with which writing is refused; what stood in the folder must stand there still."""
    write_encoded(folder, SPLITS, ByteTokenizer())
    before = snapshot(folder)
    with pytest.raises(TokenizerError) as caught:
        write_encoded(folder, SPLITS, tokenizer)
    assert snapshot(folder) == before
    with pytest.raises(TokenizerError):
        write_encoded(folder / "fresh", SPLITS, tokenizer)
    assert not (folder / "fresh").exists()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_tokenizer_that_drops_a_character(tmp_path: Path) -> None:
    assert refused(Outside(drop="m"), tmp_path) == (
        "train: document 2 does not survive encoding and decoding (first difference at character 4: "
        "the text has 'the mat\\n', its ids stand for 'the at\\n'); nothing was written"
    )


def test_a_tokenizer_that_drops_the_end(tmp_path: Path) -> None:
    assert "train: document 0 does not survive encoding and decoding (first difference at character 11: " in refused(
        Outside(drop="\n"), tmp_path
    )


def test_a_fault_in_the_last_split_only(tmp_path: Path) -> None:
    message = refused(Outside(drop="\U0001f600", only_in="\U0001f600"), tmp_path)
    assert message.startswith("test: document 1 does not survive")
    assert message.endswith("nothing was written")


def test_a_wrong_table_of_lengths(tmp_path: Path) -> None:
    class EveryByteACharacter(Outside):
        @property
        def token_num_chars(self) -> Any:
            return np.ones(256, dtype=np.int64)

    assert refused(EveryByteACharacter(only_in="\0"), tmp_path) == (
        "train: the tokens' lengths add up to 21 characters, the text has 20; "
        "the tokenizer's token_num_chars is wrong, nothing was written"
    )


@pytest.mark.parametrize("wrong", [256, -1, 2**40])
def test_ids_outside_the_vocabulary(wrong: int, tmp_path: Path) -> None:
    class OutOfRange(ByteTokenizer):
        def encode_documents(self, texts: Sequence[str]) -> tuple[Any, Any]:
            ids, offsets = super().encode_documents(texts)
            ids[5] = wrong
            return ids, offsets

    assert refused(OutOfRange(), tmp_path) == (
        f"train: id {wrong} at position 5 is outside the vocabulary of 256; the tokenizer is broken, "
        "nothing was written"
    )


@pytest.mark.parametrize("edit", [lambda o: o[:-1], lambda o: o + 1, lambda o: o * 0, lambda o: np.append(o, o[-1])])
def test_offsets_that_do_not_cover_the_ids(edit: Any, tmp_path: Path) -> None:
    class WrongOffsets(ByteTokenizer):
        def encode_documents(self, texts: Sequence[str]) -> tuple[Any, Any]:
            ids, offsets = super().encode_documents(texts)
            return ids, edit(offsets)

    assert refused(WrongOffsets(), tmp_path) == (
        "train: the tokenizer's document offsets do not cover its ids; nothing was written"
    )


def test_a_border_in_the_wrong_place(tmp_path: Path) -> None:
    class Shifted(ByteTokenizer):
        def encode_documents(self, texts: Sequence[str]) -> tuple[Any, Any]:
            ids, offsets = super().encode_documents(texts)
            offsets[1] += 1
            return ids, offsets

    assert "train: document 0 does not survive encoding and decoding" in refused(Shifted(), tmp_path)


def test_text_that_the_tokenizer_cannot_represent(tmp_path: Path) -> None:
    message = refused(CharTokenizer(sorted(set("the cät satm\n"))), tmp_path)
    assert message.startswith("1 character has no token: '\U0001f600' (U+1F600) first at offset 9;")


def test_a_slice_is_stored_without_its_neighbours(tmp_path: Path) -> None:
    class SliceOfMuch(ByteTokenizer):
        def encode_documents(self, texts: Sequence[str]) -> tuple[Any, Any]:
            ids, offsets = super().encode_documents(texts)
            everything = np.zeros(10**6, dtype=np.int64)
            everything[1000 : 1000 + len(ids)] = ids
            return everything[1000 : 1000 + len(ids)], offsets

    splits = make_splits(["a" * 9_999 + "\n"], ["\n"], ["\n"])
    write_encoded(tmp_path, splits, SliceOfMuch())
    size = (tmp_path / "train_ids.pt").stat().st_size
    assert 80_000 < size < 80_000 + 4_000
    write_encoded(tmp_path, splits, ByteTokenizer())
    assert (tmp_path / "train_ids.pt").stat().st_size == size


def test_ids_of_another_dtype_are_stored_as_long() -> None:
    class Narrow(ByteTokenizer):
        def encode_documents(self, texts: Sequence[str]) -> tuple[Any, Any]:
            ids, offsets = super().encode_documents(texts)
            return ids.astype(np.uint16), offsets

    ids, _ = encode_split(SPLITS["val"], Narrow())
    assert ids.dtype == torch.long
    assert bytes(ids.tolist()).decode() == SPLITS["val"].text


# ------------------------------------------------------------------------------------------------ loading refuses


def load_refused(folder: Path, tokenizer: Tokenizer) -> str:
    with pytest.raises(DataError) as caught:
        load(folder, tokenizer)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(f"run `{MAKE}`")
    return str(caught.value)


def test_another_tokenizer_of_the_same_size(tmp_path: Path) -> None:
    tokenizer = char_tokenizer()
    other = CharTokenizer(tokenizer.base_tokens[::-1])
    assert other.vocab_size == tokenizer.vocab_size
    write_encoded(tmp_path, SPLITS, tokenizer)
    assert load_refused(tmp_path, other) == (
        f"{tmp_path / 'manifest.json'} was encoded by tokenizer {tokenizer.fingerprint()[:12]}…, but "
        f"{Path('tokenizer/x_tokenizer.json')} is {other.fingerprint()[:12]}…; run `{MAKE}`"
    )


@pytest.mark.parametrize("what", ["ids.pt", "docs.npy"])
@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_an_edited_file(split: str, what: str, tmp_path: Path) -> None:
    write_encoded(tmp_path, SPLITS, ByteTokenizer())
    path = tmp_path / f"{split}_{what}"
    raw = bytearray(path.read_bytes())
    wanted = hashlib.sha256(raw).hexdigest()
    raw[-20] ^= 1
    path.write_bytes(raw)
    found = hashlib.sha256(raw).hexdigest()
    assert load_refused(tmp_path, ByteTokenizer()) == (
        f"{path} has sha256 {found[:12]}…, but {tmp_path / 'manifest.json'} says {wanted[:12]}…; run `{MAKE}`"
    )


@pytest.mark.parametrize("name", ["train_ids.pt", "test_ids.pt", "val_docs.npy"])
def test_a_missing_file(name: str, tmp_path: Path) -> None:
    write_encoded(tmp_path, SPLITS, ByteTokenizer())
    (tmp_path / name).unlink()
    assert load_refused(tmp_path, ByteTokenizer()) == (
        f"{tmp_path / name} does not exist, although {tmp_path / 'manifest.json'} lists it; run `{MAKE}`"
    )


def test_no_manifest(tmp_path: Path) -> None:
    wanted = f"{tmp_path / 'manifest.json'} does not exist; run `{MAKE}`"
    assert load_refused(tmp_path, ByteTokenizer()) == wanted


def replace_ids(folder: Path, value: Any) -> None:
    """Another tensor in place of the train ids, with a manifest that agrees."""
    path = folder / "train_ids.pt"
    torch.save(value, path)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["splits"]["train"]["ids_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")


@pytest.mark.parametrize(("ids", "position"), [([1, 2, 256], 2), ([-1, 2], 0), ([0, 2**40, -7], 1)])
def test_ids_out_of_range_in_a_file(ids: list[int], position: int, tmp_path: Path) -> None:
    write_encoded(tmp_path, SPLITS, ByteTokenizer())
    replace_ids(tmp_path, torch.tensor(ids))
    assert load_refused(tmp_path, ByteTokenizer()) == (
        f"{tmp_path / 'train_ids.pt'}: id {ids[position]} at position {position} is outside the vocabulary of 256; "
        f"run `{MAKE}`"
    )


@pytest.mark.parametrize(
    "value", [torch.zeros(4, dtype=torch.int32), torch.zeros(2, 2).long(), {"ids": torch.zeros(1)}]
)
def test_a_file_that_holds_no_ids(value: Any, tmp_path: Path) -> None:
    write_encoded(tmp_path, SPLITS, ByteTokenizer())
    replace_ids(tmp_path, value)
    wanted = f"{tmp_path / 'train_ids.pt'} does not hold a 1-D long tensor; run `{MAKE}`"
    assert load_refused(tmp_path, ByteTokenizer()) == wanted


def test_check_id_range_accepts_the_borders() -> None:
    check_id_range(torch.tensor([0, 255]), 256, Path("x.pt"), MAKE)
    check_id_range(torch.tensor([], dtype=torch.long), 0, Path("x.pt"), MAKE)
    with pytest.raises(DataError, match=r"^x\.pt: id 0 at position 0 is outside the vocabulary of 0; "):
        check_id_range(torch.tensor([0]), 0, Path("x.pt"), MAKE)


# ----------------------------------------------------------------------------------------------------- up to date


def up_to_date(folder: Path, splits: dict[str, Split] = SPLITS, tokenizer: Tokenizer | None = None) -> bool:
    return is_up_to_date(folder, splits, (tokenizer or ByteTokenizer()).fingerprint())


def test_up_to_date_after_writing_and_not_before(tmp_path: Path) -> None:
    assert not up_to_date(tmp_path)
    write_encoded(tmp_path, SPLITS, ByteTokenizer())
    assert up_to_date(tmp_path)


def test_content_decides_and_not_the_time(tmp_path: Path) -> None:
    write_encoded(tmp_path, SPLITS, ByteTokenizer())
    path = tmp_path / "train_ids.pt"
    for when in (0, 2**31):  # touched: still up to date
        for file in tmp_path.iterdir():
            os.utime(file, (when, when))
        assert up_to_date(tmp_path)
    times, raw = path.stat(), bytearray(path.read_bytes())
    raw[-20] ^= 1
    path.write_bytes(raw)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # edited behind the clock's back: never missed
    assert not up_to_date(tmp_path)


@pytest.mark.parametrize("name", ["val", "test", "train"])
def test_changed_text(name: str, tmp_path: Path) -> None:
    write_encoded(tmp_path, SPLITS, ByteTokenizer())
    documents = SPLITS[name].documents()
    changed = SPLITS | {name: make_split(name, [*documents[:-1], documents[-1].replace("t", "T", 1)])}
    assert not up_to_date(tmp_path, changed)
    write_encoded(tmp_path, changed, ByteTokenizer())
    assert up_to_date(tmp_path, changed)
    assert not up_to_date(tmp_path)


def test_changed_borders_of_documents(tmp_path: Path) -> None:
    write_encoded(tmp_path, SPLITS, ByteTokenizer())
    joined = SPLITS | {"train": make_split("train", [SPLITS["train"].text])}
    assert joined["train"].sha256 == SPLITS["train"].sha256
    assert not up_to_date(tmp_path, joined)


def test_changed_tokenizer(tmp_path: Path) -> None:
    tokenizer = char_tokenizer()
    write_encoded(tmp_path, SPLITS, tokenizer)
    assert up_to_date(tmp_path, tokenizer=tokenizer)
    assert not up_to_date(tmp_path, tokenizer=CharTokenizer(tokenizer.base_tokens[::-1]))


def test_another_set_of_splits(tmp_path: Path) -> None:
    write_encoded(tmp_path, {"train": SPLITS["train"]}, ByteTokenizer())
    assert not up_to_date(tmp_path)


@pytest.mark.parametrize("name", ["train_ids.pt", "val_docs.npy", "manifest.json"])
def test_a_missing_file_is_not_up_to_date(name: str, tmp_path: Path) -> None:
    write_encoded(tmp_path, SPLITS, ByteTokenizer())
    (tmp_path / name).unlink()
    assert not up_to_date(tmp_path)


def test_an_interrupted_run_is_not_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_encoded(tmp_path, SPLITS, ByteTokenizer())
    changed = SPLITS | {"train": make_split("train", ["another\n"]), "test": make_split("test", ["text\n"])}
    save = torch.save

    def save_twice(value: Any, file: Any) -> None:
        if torch.equal(value, torch.tensor(list(b"text\n"))):
            raise KeyboardInterrupt
        save(value, file)

    monkeypatch.setattr(torch, "save", save_twice)
    with pytest.raises(KeyboardInterrupt):
        write_encoded(tmp_path, changed, ByteTokenizer())
    assert not up_to_date(tmp_path, changed)
    assert "train_ids.pt has sha256" in load_refused(tmp_path, ByteTokenizer())  # the manifest is the old one
    assert not list(tmp_path.glob(".*"))  # no half file


# ------------------------------------------------------------------------------------------------------ contestants


def test_contestants_do_not_touch_each_other(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    tokenizers = {
        "char": char_tokenizer(),
        "bpe": train_tokenizer(KINDS["char_bpe"], SPLITS)[0],
        "byte": ByteTokenizer(),
    }
    states: dict[str, dict[str, bytes]] = {}
    for name, tokenizer in tokenizers.items():
        write_encoded(layout.encoded(name), SPLITS, tokenizer)
        for earlier, state in states.items():
            assert snapshot(layout.encoded(earlier)) == state
        states[name] = snapshot(layout.encoded(name))
    assert sorted(p.name for p in (tmp_path / "data").iterdir()) == ["encoded", "encoded_bpe", "encoded_byte"]
    assert layout.encoded("char") == tmp_path / "data" / "encoded"
    assert {str(p.relative_to(tmp_path)).split("/")[0] for p in tmp_path.rglob("*")} == {"data"}
    for name, tokenizer in tokenizers.items():
        assert isinstance(tokenizer, Tokenizer)
        assert up_to_date(layout.encoded(name), tokenizer=tokenizer)
        assert load(layout.encoded(name), tokenizer)["train"].tokenizer_fingerprint == tokenizer.fingerprint()


def test_special_tokens_never_come_from_text() -> None:
    tokenizer = BPETokenizer(["<", "s", ">", "\n"], [], special_tokens=["<s>"])
    ids, _ = encode_split(make_split("train", ["<s>\n"]), tokenizer)
    assert ids.tolist() == [0, 1, 2, 3]


# ---------------------------------------------------------------------------------------------------------- summary


def test_summarize(tmp_path: Path) -> None:
    manifest = write_encoded(tmp_path, make_splits(["é\n" * 500], ["a\n"], [""]), ByteTokenizer())
    lines = summarize(manifest).split("\n")
    assert [line.split()[0] for line in lines] == ["train", "val", "test"]
    assert "1,500 tokens" in lines[0] and "1,000 characters" in lines[0] and "0.667 characters per token" in lines[0]
    assert "1.000 characters per token" in lines[1]
    assert f"{math.nan} characters per token" in lines[2]


@pytest.mark.parametrize("contents", ["{}", "[]", "not json", '{"tokenizer_fingerprint": 1, "splits": 3}'])
def test_a_damaged_manifest_is_not_up_to_date(tmp_path: Path, contents: str) -> None:
    (tmp_path / "manifest.json").write_text(contents, encoding="utf-8")
    assert not is_up_to_date(tmp_path, make_splits(["a"], ["b"], ["c"]), "0" * 64)


def test_lengths_are_added_up_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents that begin and end at the seams, empty ones, and a prefix that is no part of the text."""

    class Prefixed(ByteTokenizer):
        document_prefix = " "

    tokenizer, documents = Prefixed(), ["", "ab", "c", "", "d\u00e9fg", "", ""]
    raws = [f" {document}".encode() if document else b"" for document in documents]
    ids = np.frombuffer(b"".join(raws), dtype=np.uint8).astype(np.int64)
    offsets = np.cumsum([0, *map(len, raws)], dtype=np.int64)
    for at_once in range(1, len(ids) + 2):
        monkeypatch.setattr(encode_splits, "_CHECKED_AT_ONCE", at_once)
        assert encode_splits._total_lengths(tokenizer, ids, offsets) == [(7, 0), (8, 0)]
        for number, document in enumerate(documents):
            own = ids[offsets[number] : offsets[number + 1]]
            encode_splits._check_round_trip("train", number, document, own, tokenizer)
            if document:
                with pytest.raises(TokenizerError, match="does not survive"):
                    encode_splits._check_round_trip("train", number, document + "x", own, tokenizer)
                with pytest.raises(TokenizerError, match="does not survive"):
                    encode_splits._check_round_trip("train", number, document[:-1], own, tokenizer)


@pytest.mark.parametrize("name", ["../outside.npy", "/tmp/outside.npy", "val_docs.npy"])
def test_a_manifest_that_names_another_file_is_not_followed(tmp_path: Path, name: str) -> None:
    tokenizer = char_tokenizer()
    write_encoded(tmp_path, SPLITS, tokenizer)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    manifest["splits"]["train"]["document_offsets"] = name
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(DataError, match=r"splits\.train: document_offsets is .*, not 'train_docs\.npy'"):
        load(tmp_path, tokenizer)
