"""The page that is printed after training."""

import pytest

from data.splits import Split
from tokenizer.base import Tokenizer
from tokenizer.reference import Training
from tokenizer.studies.summary import describe
from tokenizer.train import TokenizerConfig, train_tokenizer
from tokenizer_helpers import make_splits

SPLITS = make_splits(["low lower lowest\n"] * 2, ["slower\n"], ["lowé\n"])


def described(tokenizer: Tokenizer, training: Training | None, splits: dict[str, Split]) -> str:
    num_tokens = {name: len(tokenizer.encode_documents(split.documents())[0]) for name, split in splits.items()}
    return describe("mine", tokenizer, training, splits, num_tokens)


def page(config: TokenizerConfig) -> list[str]:
    tokenizer, training = train_tokenizer(config, SPLITS)
    return described(tokenizer, training, SPLITS).split("\n")


def test_a_character_bpe() -> None:
    lines = page(TokenizerConfig("char_bpe", 13))
    # Base: newline, space, e, l, o, r, s, t, w, é. Merges: lo 6, low 6, " low" 4.
    assert lines[0].startswith("mine: char_bpe, 13 tokens, fingerprint ")
    assert lines[1] == "  base 10 + merges 3 + special 0 = 13; stopped: target reached"
    # `low| low|e|r| low|e|s|t|\n` are 9 tokens for 17 characters, twice.
    assert lines[2] == "  train           34 characters ->           18 tokens: 1.889 characters per token, 47.1% fewer"
    assert lines[3] == "  val              7 characters ->            5 tokens: 1.400 characters per token, 28.6% fewer"
    assert lines[4] == "  test             5 characters ->            3 tokens: 1.667 characters per token, 40.0% fewer"
    assert lines[5] == "  30 longest learned tokens with ids:  ' low' 12  'low' 11  'lo' 10"
    assert lines[6] == "  first 50 merges:  'l'+'o'  'lo'+'w'  ' '+'low'"
    assert lines[7] == f"  sample   {SPLITS['train'].text!r}"
    once = ["low", " low", "e", "r", " low", "e", "s", "t", "\n"]
    assert lines[8] == f"  tokens   {once * 2}"
    assert lines[9] == f"  ids      {[11, 12, 2, 5, 12, 2, 6, 7, 0] * 2}"
    assert lines[10] == f"  decoded  {SPLITS['train'].text!r}"
    assert len(lines) == 11


@pytest.mark.parametrize("kind", ["char", "byte"])
def test_kinds_that_learn_nothing(kind: str) -> None:
    lines = page(TokenizerConfig(kind))  # type: ignore[arg-type]
    assert lines[0].startswith(f"mine: {kind}, {10 if kind == 'char' else 256} tokens, fingerprint ")
    assert lines[1] == "  train           34 characters ->           34 tokens: 1.000 characters per token, 0.0% fewer"
    assert not any("merges" in line for line in lines)
    assert lines[-1] == f"  decoded  {SPLITS['train'].text!r}"


def test_byte_tokens_that_are_no_whole_characters_are_shown() -> None:
    splits = make_splits(["é€\n"], ["é\n"], ["\n"])
    tokenizer, training = train_tokenizer(TokenizerConfig("byte"), splits)
    lines = described(tokenizer, training, splits).split("\n")
    shown = ["\\xc3", "\\xa9", "\\xe2", "\\x82", "\\xac", "\n"]
    assert lines[-3] == f"  tokens   {shown}"
    assert (
        lines[1] == "  train            3 characters ->            6 tokens: 0.500 characters per token, -100.0% fewer"
    )


def test_lists_are_cut() -> None:
    text = "".join(chr(ord("a") + i // 26) + chr(ord("a") + i % 26) + " " for i in range(200)) * 2
    splits = make_splits([text + "\n"], ["\n"], ["\n"])
    config = TokenizerConfig("char_bpe", 28 + 80, split_pattern="space")
    tokenizer, training = train_tokenizer(config, splits)
    lines = described(tokenizer, training, splits).split("\n")
    longest, first, sample = (
        next(line for line in lines if line.startswith(start))
        for start in ("  30 longest", "  first 50 merges", "  sample")
    )
    assert longest.count("'") == 2 * 30
    assert first.count("'+'") == 50
    assert sample == f"  sample   {text[:80]!r}"
