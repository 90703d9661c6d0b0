"""Our tokenizers in other tools' formats: proven with the tool's library, or refused with the reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from data.errors import TokenizerError
from foreign_helpers import byte_level_json, read, sentencepiece_model
from scripts import export as export_script
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, ByteTokenizer
from tokenizer.char import CharTokenizer, alphabet_of
from tokenizer.export import prove
from tokenizer.export.prove import LOADERS, export
from tokenizer.export.texts import HOSTILE_TEXTS
from tokenizer.interop import load_gpt2
from tokenizer.train import TokenizerConfig, train_tokenizer
from tokenizer_helpers import make_splits

LIBRARIES = {"hf": "tokenizers", "gpt2": "tokenizers", "tiktoken": "tiktoken", "sentencepiece": "sentencepiece"}
TEXTS = list(HOSTILE_TEXTS.values())
DOCUMENTS = ["the cat sat on the mat, the cat's hat 12345\n  the\n" * 8, "", *TEXTS]
WITHOUT_NUL = [text for text in DOCUMENTS if "\0" not in text]


def trained(kind: str, **settings: Any) -> Tokenizer:
    size = 330 if kind == "byte_bpe" else 200
    config = TokenizerConfig(kind, vocab_size=size, **settings)  # type: ignore[arg-type]
    return train_tokenizer(config, make_splits(DOCUMENTS if kind == "byte_bpe" else WITHOUT_NUL, ["a"], ["b"]))[0]


def made(name: str) -> Tokenizer:
    return {
        "char": lambda: CharTokenizer(alphabet_of(WITHOUT_NUL)),
        "char with NUL": lambda: CharTokenizer(alphabet_of(DOCUMENTS)),
        "byte": ByteTokenizer,
        "char_bpe": lambda: trained("char_bpe"),
        "char_bpe special": lambda: trained("char_bpe", special_tokens=("<end>",)),
        "char_bpe space": lambda: trained("char_bpe", split_pattern="space"),
        "byte_bpe": lambda: trained("byte_bpe"),
        "byte_bpe gpt2": lambda: trained("byte_bpe", split_pattern="gpt2", special_tokens=("<|endoftext|>",)),
        "byte_bpe gpt4": lambda: trained("byte_bpe", split_pattern="gpt4"),
        "byte_bpe plain gpt2": lambda: trained("byte_bpe", split_pattern="gpt2"),
        "char_bpe first": lambda: trained("char_bpe", special_tokens=("<s>", "</s>"), placement="first"),
        "byte_bpe first": lambda: trained(
            "byte_bpe", split_pattern="gpt2", special_tokens=("<s>", "<|endoftext|>"), placement="first"
        ),
    }[name]()


CARRIED = {
    "hf": (
        "char",
        "char with NUL",
        "byte",
        "char_bpe",
        "char_bpe special",
        "char_bpe space",
        "byte_bpe",
        "byte_bpe gpt2",
        "byte_bpe gpt4",
        "char_bpe first",
        "byte_bpe first",
    ),
    "tiktoken": ("byte", "byte_bpe", "byte_bpe gpt2", "byte_bpe gpt4", "byte_bpe first"),
    "gpt2": ("byte_bpe gpt2", "byte_bpe plain gpt2"),
    "sentencepiece": ("char", "char_bpe", "char_bpe special", "char_bpe first"),
}


@pytest.mark.parametrize(("form", "name"), [(form, name) for form, names in CARRIED.items() for name in names])
def test_the_library_gives_our_ids(tmp_path: Path, form: str, name: str) -> None:
    pytest.importorskip(LIBRARIES[form])
    tokenizer = made(name)
    known = DOCUMENTS if name.startswith("byte") else WITHOUT_NUL
    documents = [text for text in known if not (form == "hf" and "<|endoftext|>" in text)]
    paths = export(tokenizer, form, known, tmp_path / "out")
    assert sorted(paths) == sorted((tmp_path / "out").iterdir())
    encode = LOADERS[form](tmp_path / "out")
    assert [encode(text) for text in documents] == [tokenizer.encode(text) for text in documents]


@pytest.mark.parametrize(
    ("form", "name", "reason"),
    [
        ("tiktoken", "char", "a char tokenizer cannot be exported to tiktoken, which starts from single bytes"),
        ("tiktoken", "char_bpe", "a char_bpe tokenizer cannot be exported to tiktoken"),
        ("gpt2", "byte_bpe first", "hold no special token but"),
        ("gpt2", "byte_bpe gpt4", "this is a byte_bpe with split_pattern gpt4"),
        ("gpt2", "byte", "this is a byte with split_pattern none"),
        ("gpt2", "char_bpe", "this is a char_bpe with split_pattern none"),
        ("sentencepiece", "char with NUL", r"SentencePiece takes no piece with U\+0000"),
        ("sentencepiece", "byte_bpe", "a byte_bpe tokenizer merges bytes, and SentencePiece merges characters"),
        ("sentencepiece", "char_bpe space", "this tokenizer has split_pattern space"),
    ],
)
def test_what_a_format_cannot_carry_is_refused(tmp_path: Path, form: str, name: str, reason: str) -> None:
    with pytest.raises(TokenizerError, match=reason):
        export(made(name), form, DOCUMENTS, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["byte_bpe gpt2", "byte_bpe plain gpt2"])
def test_gpt2s_two_files_are_read_back_as_they_were(tmp_path: Path, name: str) -> None:
    pytest.importorskip("tokenizers")
    tokenizer = made(name)
    export(tokenizer, "gpt2", DOCUMENTS, tmp_path)
    again = load_gpt2(tmp_path / "encoder.json", tmp_path / "vocab.bpe")
    assert again.fingerprint() == tokenizer.fingerprint()
    assert again.encode_batch(TEXTS) == [tokenizer.encode(text) for text in TEXTS]


def test_sentencepieces_own_space_character_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=r"U\+2581"):
        export(CharTokenizer(["▁", " ", "a"]), "sentencepiece", [], tmp_path)


def test_special_tokens_spelled_like_ordinary_ones_are_refused(tmp_path: Path) -> None:
    characters = BPETokenizer(["a", "b"], [("a", "b")], special_tokens=["ab"])
    in_bytes = BPETokenizer(BYTE_CHARACTERS, [("a", "b")], kind="byte_bpe", split_pattern="gpt2", special_tokens=["ab"])
    for tokenizer, form in ((characters, "hf"), (characters, "sentencepiece"), (in_bytes, "gpt2")):
        with pytest.raises(TokenizerError, match="special token 'ab' is spelled like"):
            export(tokenizer, form, [], tmp_path)


@pytest.mark.parametrize("form", list(LIBRARIES))
def test_other_ids_in_the_library_stop_the_export(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that cuts one text otherwise: it is shown, and nothing is written."""
    pytest.importorskip(LIBRARIES[form])
    load = LOADERS[form]

    def wrong(folder: Path) -> prove.Encode:
        encode = load(folder)
        return lambda text: encode(text)[:-1] if text == TEXTS[-1] else encode(text)

    monkeypatch.setattr(prove, "LOADERS", LOADERS | {form: wrong})
    with pytest.raises(
        TokenizerError, match=f"FORMAT={form} cannot carry this tokenizer: in the text with digits, beh"
    ):
        export(made(CARRIED[form][-1]), form, ["the"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_came_from_a_tool_goes_back_as_it_was(tmp_path: Path) -> None:
    path = byte_level_json(tmp_path / "t.json")
    export(read("hf", path=str(path)), "hf", ["the cat"], tmp_path / "out")
    assert (tmp_path / "out" / "tokenizer.json").read_bytes() == path.read_bytes()
    model = sentencepiece_model(tmp_path / "m.model", "unigram")
    export(read("sentencepiece", path=str(model)), "sentencepiece", ["the cat"], tmp_path / "out")
    assert (tmp_path / "out" / "tokenizer.model").read_bytes() == model.read_bytes()
    with pytest.raises(TokenizerError, match="kind hf comes from another tool and is exported as FORMAT=hf only"):
        export(read("hf", path=str(path)), "tiktoken", ["the cat"], tmp_path / "out")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tokenizers")
    values = experiment_values(tmp_path / "run", write_corpus(tmp_path / "texts"))
    config = str(write_experiment(tmp_path / "e.yaml", values))
    for name in ("bpe", "char"):
        out = tmp_path / name
        export_script.main([f"--config={config}", f"--contestant={name}", "--format=hf", f"--out={out}"])
        said = capsys.readouterr().out
        assert f"export {name}: wrote {out / 'tokenizer.json'}; its library gives the same ids for the " in said
        assert json.loads((out / "tokenizer.json").read_text(encoding="utf-8"))["model"]["type"] == "BPE"
