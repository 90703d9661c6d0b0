"""Special tokens: before or after the vocabulary, in a text or not, and as separators that are counted nowhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chain_helpers import CHAIN, make_chain
from compare.experiment import load_experiment
from compare.steps import Steps
from data.errors import ConfigError, DataError, TokenizerError
from data.files import read_json
from model.batches import windows_of
from model.evaluate import EvaluateConfig, context_of, evaluate_split
from model.gpt import MiniGPT
from model_helpers import tiny_model
from tokenizer import load as load_tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.config import TokenizerConfig
from tokenizer.encode_splits import EncodedSplit, is_up_to_date, load_encoded, write_encoded
from tokenizer.train import train_tokenizer
from tokenizer_helpers import make_splits

SPECIAL = ["<s>", "</s>", "<s><s>"]
MERGES = [("a", "b"), ("ab", "ab")]


def made(kind: Any, **options: Any) -> BPETokenizer:
    base = ["\n", *"<>/sab"] if kind == "char_bpe" else BYTE_CHARACTERS
    return BPETokenizer(base, MERGES, kind=kind, special_tokens=SPECIAL, **options)


# ---- placement ----


@pytest.mark.parametrize("kind", ["char_bpe", "byte_bpe"])
@given(text=st.text(alphabet="<s>/ab\n", max_size=40))
def test_first_shifts_every_other_id_and_nothing_else(kind: str, text: str) -> None:
    last, first = made(kind), made(kind, placement="first")
    number = len(SPECIAL)
    assert [first.special_tokens[token] for token in SPECIAL] == [0, 1, 2]
    assert [last.special_tokens[token] for token in SPECIAL] == [len(last.tokens) + k for k in range(number)]
    ids = first.encode(text)
    assert ids == [index + number for index in last.encode(text)]
    assert first.decode(ids) == text and first.encode_tokens(text) == last.encode_tokens(text)
    assert all(first.itos[first.stoi[token]] == token for token in first.tokens)
    with_special = first.encode(text, allow_special=True)
    assert first.decode(with_special) == text
    content = len(last.tokens)
    assert with_special == [i + number if i < content else i - content for i in last.encode(text, allow_special=True)]


@pytest.mark.parametrize("kind", ["char_bpe", "byte_bpe"])
def test_the_fast_path_shifts_too(kind: str) -> None:
    """Long texts go through the engine, short ones through plain Python; both give the same ids."""
    first = made(kind, placement="first")
    document = "abab<s>ab\n" * 2_000
    [whole] = first.encode_batch([document])
    assert first._engine is not None
    assert whole == first.encode(document) == made(kind, placement="first").encode("abab<s>ab\n") * 2_000


def test_files_keep_it_and_those_of_before_are_what_they_were(tmp_path: Path) -> None:
    last, first = made("char_bpe"), made("char_bpe", placement="first", document_separator="</s>")
    assert len({last.fingerprint(), first.fingerprint(), made("char_bpe", placement="first").fingerprint()}) == 3
    for number, one in enumerate((last, first)):
        one.save(tmp_path / f"{number}.json")
        loaded = load_tokenizer(tmp_path / f"{number}.json")
        assert isinstance(loaded, BPETokenizer)
        assert (loaded.placement, loaded.document_separator) == (one.placement, one.document_separator)
        assert loaded.fingerprint() == one.fingerprint() and loaded.encode("ab</s>") == one.encode("ab</s>")
    contents = read_json(tmp_path / "0.json")
    assert "placement" not in contents and "document_separator" not in contents
    damaged = read_json(tmp_path / "1.json") | {"placement": "middle"}
    (tmp_path / "1.json").write_text(json.dumps(damaged))
    with pytest.raises(TokenizerError, match="placement: 'middle' is not one of last, first"):
        load_tokenizer(tmp_path / "1.json")
    damaged = read_json(tmp_path / "0.json") | {"document_separator": "<pad>"}
    (tmp_path / "0.json").write_text(json.dumps(damaged))
    with pytest.raises(TokenizerError, match="document_separator '<pad>' is not among the special tokens"):
        load_tokenizer(tmp_path / "0.json")


def test_the_config_refuses_what_means_nothing() -> None:
    with pytest.raises(ConfigError, match="placement: there are no special_tokens"):
        TokenizerConfig("byte_bpe", 300, placement="first")
    with pytest.raises(ConfigError, match="document_separator: '<s>' is not among special_tokens"):
        TokenizerConfig("byte_bpe", 300, document_separator="<s>")
    with pytest.raises(ConfigError, match="document_separator: '<s>' is not among special_tokens"):
        TokenizerConfig("char", document_separator="<s>")


# ---- special tokens in a text ----


def test_tiktokens_rules_for_special_tokens_in_a_text() -> None:
    one = made("byte_bpe")
    text = "ab<s><s>ab</s>"
    plain = one.encode(text)
    assert plain == one.encode(text, allowed_special=set(), disallowed_special=())
    everything = one.encode(text, allowed_special="all", disallowed_special="all")
    assert everything == one.encode(text, allow_special=True)
    assert [i for i in everything if i >= len(one.tokens)] == [one.special_tokens["<s><s>"], one.special_tokens["</s>"]]
    some = one.encode(text, allowed_special={"<s>"})
    assert [i for i in some if i >= len(one.tokens)] == [one.special_tokens["<s>"]] * 2
    with pytest.raises(TokenizerError, match=r"special token '</s>' at offset 10, which is disallowed"):
        one.encode(text, allowed_special={"<s>", "<s><s>"}, disallowed_special="all")
    with pytest.raises(TokenizerError, match=r"special token '<s><s>' at offset 2"):
        one.encode(text, disallowed_special="all")
    assert one.encode("ab", disallowed_special="all") == one.encode("ab")
    for wrong in ({"<pad>"}, "<s>"):
        with pytest.raises(TokenizerError, match="special tokens"):
            one.encode(text, allowed_special=wrong)


def test_tiktoken_itself_agrees() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    from tokenizer.interop import to_tiktoken_arguments

    for placement in ("last", "first"):
        ours = made("byte_bpe", placement=placement, split_pattern="gpt2")
        theirs = tiktoken.Encoding(**to_tiktoken_arguments(ours, "t"))
        text = "ab ab<s>abab</s> <s"
        assert ours.encode(text) == theirs.encode_ordinary(text)
        for allowed in ("all", {"<s>"}, set()):
            wanted = theirs.encode(text, allowed_special=allowed, disallowed_special=())
            assert ours.encode(text, allowed_special=allowed) == wanted
        with pytest.raises(ValueError):
            theirs.encode(text)
        with pytest.raises(TokenizerError):
            ours.encode(text, disallowed_special="all")


# ---- separators ----

SPLITS = make_splits(["abab\n", "", "ab<s>\n"], ["ab\n", "b\n"], ["aab\n", "", "ba\n"])


def loaded_splits(folder: Path, tokenizer: BPETokenizer) -> dict[str, EncodedSplit]:
    write_encoded(folder, SPLITS, tokenizer)
    return load_encoded(folder, tokenizer, tokenizer_path=Path("t.json"), make="make encode")


@pytest.mark.parametrize("placement", ["last", "first"])
def test_they_stand_before_every_document_of_the_encoded_splits(tmp_path: Path, placement: Any) -> None:
    tokenizer = made("char_bpe", placement=placement, document_separator="<s>")
    splits = loaded_splits(tmp_path, tokenizer)
    assert is_up_to_date(tmp_path, SPLITS, tokenizer.fingerprint())
    separator = tokenizer.special_tokens["<s>"]
    for name in ("train", "val", "test"):
        stored = torch.load(tmp_path / f"{name}_ids.pt", weights_only=True).tolist()
        documents = [tokenizer.encode(document) for document in SPLITS[name].documents()]
        assert stored == [index for document in documents for index in (separator, *document)]
        ids, offsets = splits[name].ids.tolist(), splits[name].document_offsets
        if name == "train":
            assert ids == stored and [ids[begin] for begin in offsets[:-1]] == [separator] * len(documents)
        else:  # they are scored, and no separator is
            assert ids == [index for document in documents for index in document]
            assert np.diff(offsets).tolist() == [len(document) for document in documents]


def test_a_split_that_lost_its_separators_is_refused(tmp_path: Path) -> None:
    tokenizer = made("char_bpe", document_separator="<s>")
    loaded_splits(tmp_path, tokenizer)
    plain = made("char_bpe")
    write_encoded(tmp_path / "plain", SPLITS, plain)
    manifest = read_json(tmp_path / "plain/manifest.json") | {"tokenizer_fingerprint": tokenizer.fingerprint()}
    (tmp_path / "plain/manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="document 0 does not begin with the separator"):
        load_encoded(tmp_path / "plain", tokenizer, tokenizer_path=Path("t.json"), make="make encode")


def test_a_uniform_model_pays_for_the_text_and_not_for_separators(tmp_path: Path) -> None:
    """Its figure is log2 V for each token of the text over the characters, with separators as without."""
    tokenizer = made("char_bpe", document_separator="<s>")
    test = loaded_splits(tmp_path, tokenizer)["test"]
    model = MiniGPT(tiny_model(tokenizer.vocab_size, dropout=0.0)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    found = evaluate_split(model, test, tokenizer, EvaluateConfig())
    num_tokens = sum(len(tokenizer.encode(document)) for document in SPLITS["test"].documents())
    assert len(found.nats) == num_tokens and found.num_chars == len(SPLITS["test"].text)
    assert found.bits_per_char == pytest.approx(np.log2(tokenizer.vocab_size) * num_tokens / found.num_chars, rel=1e-6)
    assert context_of(tokenizer) == [tokenizer.special_tokens["<s>"]]
    assert context_of(made("char_bpe")) == made("char_bpe").encode("\n")


def test_training_counts_no_characters_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole comparison: characters seen are those of the text, the report names what differs."""
    folder = make_chain(tmp_path)
    monkeypatch.chdir(folder)
    text = Path("texts/train.txt").read_text()
    Path("texts/train.txt").write_text(text.replace(" the ", "\x1e"))
    values = yaml.safe_load(Path(CHAIN).read_text())
    values["contestants"]["bpe"]["tokenizer"] |= {
        "special_tokens": ["<|document|>"],
        "placement": "first",
        "document_separator": "<|document|>",
    }
    Path(CHAIN).write_text(yaml.safe_dump(values))
    steps = Steps(load_experiment(Path(CHAIN)), echo=lambda _line: None)
    steps.compare()
    report = read_json(Path("run/reports/comparison.json"))
    assert "what a document is read after: bpe '<|document|>', char a newline" in report["not_held_equal"]

    [row] = [row for row in report["rows"] if row["contestant"] == "bpe"]
    tokenizer = load_tokenizer(Path("run/tokenizer/bpe_tokenizer.json"))
    encoded = load_encoded(Path("run/data/encoded_bpe"), tokenizer, tokenizer_path=Path("t"), make="make encode")
    windows = windows_of("random", encoded["train"], block_size=16, batch_size=8, seed=row["seeds"][0])
    targets = torch.cat([windows.batch(step)[1].flatten() for step in range(round(row["steps"]))]).numpy()
    assert np.count_nonzero(targets == 0) > 5, "separators were among what was learned"
    of_text = targets[targets != 0]
    assert row["characters_seen"] == tokenizer.token_num_chars[of_text].sum()


def test_training_a_tokenizer_keeps_them() -> None:
    config = TokenizerConfig("char_bpe", 12, special_tokens=("<s>",), placement="first", document_separator="<s>")
    tokenizer, _ = train_tokenizer(config, SPLITS)
    assert isinstance(tokenizer, BPETokenizer)
    assert (tokenizer.special_tokens, tokenizer.document_separator_id) == ({"<s>": 0}, 0)
    assert tokenizer.trained_on is not None and tokenizer.trained_on["document_separator"] == "<s>"
