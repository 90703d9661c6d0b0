"""Characters and bytes with special tokens: the plain ids moved, the same rules, their files and exports."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from data.errors import TokenizerError
from model.evaluate import EvaluateConfig, context_of, evaluate_split
from model.generate import prompt_ids
from model.gpt import MiniGPT
from model_helpers import encoded_splits, tiny_model
from tokenizer import load as load_tokenizer
from tokenizer.base import Tokenizer
from tokenizer.config import TokenizerConfig
from tokenizer.export.prove import LOADERS, export
from tokenizer.special.unmerged import UnmergedTokenizer
from tokenizer.train import train_tokenizer
from tokenizer_helpers import make_splits

DOCUMENTS = ["the cat sat on the mat\n" * 8, "é <s> the </s>\n", "hat\n"]
SPLITS = make_splits(DOCUMENTS, ["a\n"], ["the end\n"])


def made(kind: Any, special: tuple[str, ...] = ("<s>", "</s>"), **settings: Any) -> Any:
    return train_tokenizer(TokenizerConfig(kind, special_tokens=special, **settings), SPLITS)[0]


@pytest.mark.parametrize("kind", ["char", "byte"])
@pytest.mark.parametrize("placement", ["first", "last"])
def test_the_ids_are_the_plain_ones_moved(kind: str, placement: str, tmp_path: Path) -> None:
    plain, placed = made(kind, ()), made(kind, placement=placement)
    moved, number = (2 if placement == "first" else 0), plain.vocab_size
    assert isinstance(placed, UnmergedTokenizer) and placed.kind == kind and placed.vocab_size == number + 2
    assert placed.special_tokens == ({"<s>": 0, "</s>": 1} if moved else {"<s>": number, "</s>": number + 1})
    for text in (*DOCUMENTS, "", "".join(DOCUMENTS) * 200):  # the last one by the engine
        assert placed.encode(text) == [index + moved for index in plain.encode(text)]
        assert placed.decode(placed.encode(text)) == text
    assert [placed.decode([i]) for i in placed.encode("t<s>", allowed_special="all")] == ["t", "<s>"]
    with pytest.raises(TokenizerError, match=r"'</s>' at offset 1"):
        placed.encode("t</s>", allowed_special={"<s>"}, disallowed_special="all")
    placed.save(tmp_path / "t.json")
    loaded = load_tokenizer(tmp_path / "t.json")
    assert isinstance(loaded, UnmergedTokenizer) and loaded.trained_on == placed.trained_on
    assert loaded.fingerprint() == placed.fingerprint() and loaded.encode("the") == placed.encode("the")
    contents = json.loads((tmp_path / "t.json").read_text())
    contents["placement"] = "last" if moved else "first"
    (tmp_path / "t.json").write_text(json.dumps(contents))
    with pytest.raises(TokenizerError, match="fingerprint"):
        load_tokenizer(tmp_path / "t.json")


@pytest.mark.parametrize("kind", ["char", "byte"])
def test_the_identity_covers_all_of_it(kind: str) -> None:
    ones = [
        made(kind, ()),
        made(kind),
        made(kind, placement="first"),
        made(kind, ("<s>",), placement="first"),
        made(kind, placement="first", document_separator="<s>"),
        made(kind, placement="first", document_separator="</s>"),
    ]
    assert len({one.fingerprint() for one in ones}) == len(ones)
    assert "special_tokens" not in ones[0].trained_on  # files of before are up to date


@pytest.mark.parametrize("kind", ["char", "byte"])
def test_a_separator_is_read_and_not_counted(kind: str, tmp_path: Path) -> None:
    tokenizer = made(kind, placement="first", document_separator="</s>")
    splits = encoded_splits(tmp_path, tokenizer, DOCUMENTS, DOCUMENTS[:1], ["the end\n", "the\n"])
    assert int((splits["train"].ids == 1).sum()) == len(DOCUMENTS) and splits["train"].ids[0] == 1
    assert context_of(tokenizer) == [1] == prompt_ids(tokenizer, "")
    model = MiniGPT(tiny_model(tokenizer.vocab_size))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()  # every token costs log2(V), and the separator nothing
    found = evaluate_split(model, splits["test"], tokenizer, EvaluateConfig(alarm_below_bits_per_char=0.0))
    assert found.num_chars == 12 and len(found.nats) == len(tokenizer.encode("the end\nthe\n"))
    assert found.bits_per_char == pytest.approx(len(found.nats) * math.log2(tokenizer.vocab_size) / 12, rel=1e-5)


def test_an_empty_prompt_without_separator_is_a_newline() -> None:
    tokenizer: Tokenizer = made("char", ())
    assert prompt_ids(tokenizer, "") == tokenizer.encode("\n")


@pytest.mark.parametrize(
    ("form", "kind"), [("hf", "char"), ("hf", "byte"), ("tiktoken", "byte"), ("sentencepiece", "char")]
)
def test_placed_first_they_are_exported(form: str, kind: str, tmp_path: Path) -> None:
    pytest.importorskip({"hf": "tokenizers"}.get(form, form))
    tokenizer = made(kind, placement="first")
    export(tokenizer, form, DOCUMENTS, tmp_path)
    assert LOADERS[form](tmp_path)("the cat") == tokenizer.encode("the cat")
