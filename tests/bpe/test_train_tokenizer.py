"""The entry point of training: base characters from all splits, merges from the train prefix only, settings checked."""

from pathlib import Path
from typing import Any, get_args

import pytest

from data.config import build
from data.errors import ConfigError, TokenizerError
from data.splits import Split
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, ByteTokenizer
from tokenizer.char import CharTokenizer
from tokenizer.config import Kind
from tokenizer.reference import TIE_BREAKS
from tokenizer.train import TokenizerConfig, learn_merges, provenance, train_tokenizer
from tokenizer_helpers import SURROGATES, make_split, make_splits

TRAIN = ["the cat sat\n", "the cat's mat\n", "on the mat the cat sat\n"]
SPLITS = make_splits(TRAIN, ["the hat\n"], ["that sat\n"])
CHAR_BPE = TokenizerConfig("char_bpe", 30)
BYTE_BPE = TokenizerConfig("byte_bpe", 280, split_pattern="gpt2")
CONFIGS = {
    "char": TokenizerConfig("char"),
    "byte": TokenizerConfig("byte"),
    "char_bpe": CHAR_BPE,
    "char_bpe space": TokenizerConfig("char_bpe", 30, split_pattern="space", special_tokens=("<s>",)),
    "byte_bpe": BYTE_BPE,
}
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def file_of(config: TokenizerConfig, splits: dict[str, Split], folder: Path, **options: Any) -> bytes:
    """The bytes of the tokenizer file that training gives."""
    tokenizer, _ = train_tokenizer(config, splits, **options)
    tokenizer.save(folder / "tokenizer.json")
    return (folder / "tokenizer.json").read_bytes()


# ------------------------------------------------------------------------------------------------ what comes out


@pytest.mark.parametrize(
    ("name", "cls", "kind"),
    [
        ("char", CharTokenizer, "char"),
        ("byte", ByteTokenizer, "byte"),
        ("char_bpe", BPETokenizer, "char_bpe"),
        ("byte_bpe", BPETokenizer, "byte_bpe"),
    ],
)
def test_kinds(name: str, cls: type, kind: str) -> None:
    tokenizer, training = train_tokenizer(CONFIGS[name], SPLITS)
    assert type(tokenizer) is cls
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer.kind == kind
    assert (training is None) == (kind in ("char", "byte"))
    for split in SPLITS.values():  # val and test can be represented too
        ids, _ = tokenizer.encode_documents(split.documents())
        assert tokenizer.decode(ids.tolist()) == split.text
        assert int(tokenizer.token_num_chars[ids].sum()) == len(split.text)


def test_bpe_takes_its_settings_into_the_file() -> None:
    config = TokenizerConfig(
        "byte_bpe",
        270,
        min_pair_frequency=1,
        split_pattern="gpt4",
        tie_break="greatest_bytes",
        special_tokens=("<s>", "<t>"),
    )
    tokenizer, training = train_tokenizer(config, SPLITS)
    assert isinstance(tokenizer, BPETokenizer)
    assert training is not None
    assert tokenizer.base_tokens == BYTE_CHARACTERS
    assert tokenizer.split_pattern == "gpt4"
    assert tokenizer.tie_break == "greatest_bytes"
    assert dict(tokenizer.special_tokens) == {"<s>": 268, "<t>": 269}
    assert tokenizer.vocab_size == 270  # special tokens included
    assert len(tokenizer.merges) == len(training.merges) == 12
    assert training.stop_reason == "target reached"


def test_default_tie_rules() -> None:
    assert TokenizerConfig("char_bpe", 9).resolved_tie_break == "first_seen"
    assert TokenizerConfig("byte_bpe", 900).resolved_tie_break == "lowest_ids"
    for rule in TIE_BREAKS:
        assert TokenizerConfig("char_bpe", 9, tie_break=rule).resolved_tie_break == rule
    splits = make_splits(["dcdc abab\n"], ["\n"], ["\n"])  # dc and ab stand at 2
    for rule, wanted in (("first_seen", ("d", "c")), ("lowest_ids", ("a", "b")), ("greatest_bytes", ("d", "c"))):
        config = TokenizerConfig("char_bpe", 7, tie_break=rule)
        tokenizer, _ = train_tokenizer(config, splits)
        assert isinstance(tokenizer, BPETokenizer)
        assert tokenizer.merges == [wanted]


def test_nothing_is_merged_across_documents() -> None:
    splits = make_splits(["a\n", "a\n", "a\n"], ["\n"], ["\n"])
    config = TokenizerConfig("char_bpe", 99, min_pair_frequency=1)
    tokenizer, training = train_tokenizer(config, splits)
    assert isinstance(tokenizer, BPETokenizer) and training is not None
    assert tokenizer.merges == [("a", "\n")]  # and never (newline, a)
    assert training.stop_reason == "no pair left"


@pytest.mark.parametrize("split_pattern", ["none", "space", "gpt2", "gpt4"])
@pytest.mark.parametrize("kind", ["char_bpe", "byte_bpe"])
def test_both_engines_give_the_same_file(kind: Any, split_pattern: Any, tmp_path: Path) -> None:
    config = TokenizerConfig(kind, 290, split_pattern=split_pattern, min_pair_frequency=1)
    fast, slow = (file_of(config, SPLITS, tmp_path, engine_name=name) for name in ("fast", "reference"))
    assert fast == slow


@every_config
def test_training_again_gives_the_same_file(config: TokenizerConfig, tmp_path: Path) -> None:
    assert file_of(config, SPLITS, tmp_path) == file_of(config, SPLITS, tmp_path)


# ------------------------------------------------------------------------- base from all splits, merges from train


def test_base_is_every_character_of_all_splits_and_a_newline() -> None:
    splits = make_splits(["ba"], ["é"], ["\U0001f600"])
    for config in (TokenizerConfig("char"), TokenizerConfig("char_bpe", 5)):
        tokenizer, _ = train_tokenizer(config, splits)
        assert isinstance(tokenizer, CharTokenizer | BPETokenizer)
        assert tokenizer.base_tokens == ["\n", "a", "b", "é", "\U0001f600"]


@every_config
def test_other_held_out_text_of_the_same_characters_changes_nothing(config: TokenizerConfig, tmp_path: Path) -> None:
    before = file_of(config, SPLITS, tmp_path)
    # "zz" would be the most frequent pair by far, were it counted; the characters are those of before.
    held_out = ["hahahahahaha tttttttttttttt\n"] * 50
    changed = make_splits(TRAIN, held_out, held_out[:9])
    assert set("".join(split.text for split in SPLITS.values())) == set(
        "".join(split.text for split in changed.values())
    )
    assert file_of(config, changed, tmp_path) == before
    # The same held-out text in another split, and other borders of documents, neither.
    assert file_of(config, make_splits(TRAIN, ["that ", "sat\n"], ["the hat\n"]), tmp_path) == before


@pytest.mark.parametrize("split", ["val", "test"])
def test_a_new_held_out_character_changes_the_base_and_no_merge(split: str) -> None:
    before, _ = train_tokenizer(CHAR_BPE, SPLITS)
    changed = dict(SPLITS) | {split: make_split(split, ["the hat é\n"])}
    after, _ = train_tokenizer(TokenizerConfig("char_bpe", 31), changed)
    assert isinstance(before, BPETokenizer) and isinstance(after, BPETokenizer)
    assert set(after.base_tokens) - set(before.base_tokens) == {"é"}
    assert after.merges == before.merges
    assert after.fingerprint() != before.fingerprint()
    assert after.encode("é") == [after.stoi["é"]]


def test_other_train_text_changes_the_merges() -> None:
    before, _ = train_tokenizer(CHAR_BPE, SPLITS)
    after, _ = train_tokenizer(CHAR_BPE, make_splits(["hahahahaha the cat's mat on\n"], ["the hat\n"], ["that sat\n"]))
    assert isinstance(before, BPETokenizer) and isinstance(after, BPETokenizer)
    assert after.base_tokens == before.base_tokens
    assert after.merges != before.merges


# ---------------------------------------------------------------------------------------------------- the prefix


def learned_from(train: list[str], num_chars: int | None) -> list[tuple[str, str]]:
    config = TokenizerConfig("char_bpe", 99, training_characters=num_chars)
    tokenizer, _ = train_tokenizer(config, make_splits(train, ["abcdxyz \n"], ["\n"]))
    assert isinstance(tokenizer, BPETokenizer)
    return tokenizer.merges


def test_merges_come_from_the_prefix_only() -> None:
    train = ["abab\n", "abab\n", "xyxyxyxyxyxy\n"]
    assert learned_from(train, 10) == learned_from(train[:2], None)
    assert ("x", "y") not in learned_from(train, 10)
    assert learned_from(train, None)[0] == ("x", "y")
    # What stands behind the prefix does not matter.
    assert learned_from(train, 10) == learned_from([*train[:2], "cdcdcdcdcdcd\n"], 10)


def test_a_document_is_cut_where_the_prefix_ends() -> None:
    assert learned_from(["abababab\n"], 4) == learned_from(["abab"], None) == [("a", "b")]
    assert learned_from(["ab\n", "ababxyxy\n"], 7) == learned_from(["ab\n", "abab"], None)
    # The cut is a border: `a` at its end and `b` behind it are no pair.
    assert learned_from(["ab\n", "ab"], 4) == []


def test_null_and_a_prefix_longer_than_train_are_all_of_it(tmp_path: Path) -> None:
    length = len(SPLITS["train"].text)
    files = {
        file_of(TokenizerConfig("char_bpe", 30, training_characters=num_chars), SPLITS, tmp_path)
        for num_chars in (None, length, length + 1, 10**9)
    }
    assert len(files) == 1
    assert file_of(TokenizerConfig("char_bpe", 30, training_characters=length - 20), SPLITS, tmp_path) not in files


def test_default_prefix_is_half_a_million_characters() -> None:
    train = ["abab\n" * 1000] * 100 + ["xyxy\n" * 1000] * 200
    tokenizer, _ = train_tokenizer(TokenizerConfig("char_bpe", 6), make_splits(train, ["\n"], ["\n"]))
    assert isinstance(tokenizer, BPETokenizer)
    assert tokenizer.merges == [("a", "b")]
    assert tokenizer.trained_on is not None
    assert tokenizer.trained_on["training_characters"] == 500_000
    assert tokenizer.trained_on["training_documents"] == 100


# ----------------------------------------------------------------------------------------------------- provenance


@every_config
def test_provenance_is_in_the_file(config: TokenizerConfig) -> None:
    tokenizer, _ = train_tokenizer(config, SPLITS)
    assert tokenizer.trained_on == provenance(config, SPLITS, {})  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "changed",
    [
        {"vocab_size": 29},
        {"min_pair_frequency": 3},
        {"training_characters": 20},
        {"split_pattern": "space"},
        {"tie_break": "lowest_ids"},
        {"special_tokens": ("<s>",)},
    ],
    ids=str,
)
def test_every_setting_is_part_of_the_provenance(changed: dict[str, Any]) -> None:
    config = TokenizerConfig(**{"kind": "char_bpe", "vocab_size": 30, **changed})
    assert provenance(config, SPLITS, {}) != provenance(CHAR_BPE, SPLITS, {})


def test_provenance_follows_the_text_that_matters() -> None:
    before = provenance(CHAR_BPE, SPLITS, {})
    assert provenance(CHAR_BPE, make_splits(TRAIN, ["that\n"], ["the hat\n"]), {}) == before
    assert provenance(CHAR_BPE, make_splits(TRAIN, ["é\n"], ["the hat\n"]), {}) != before
    assert provenance(CHAR_BPE, make_splits([*TRAIN, "a\n"], ["the hat\n"], ["that sat\n"]), {}) != before
    # The same characters in documents of other borders give other merges.
    assert provenance(CHAR_BPE, make_splits(["".join(TRAIN)], ["the hat\n"], ["that sat\n"]), {}) != before


# --------------------------------------------------------------------------------------------------- what is refused


def test_vocab_size_below_the_alphabet_names_the_minimum() -> None:
    num_chars = len(set("".join(split.text for split in SPLITS.values())))
    with pytest.raises(TokenizerError) as caught:
        train_tokenizer(TokenizerConfig("char_bpe", num_chars - 1), SPLITS)
    assert f"vocab_size {num_chars - 1} is below" in str(caught.value)
    assert str(caught.value).endswith(f"the minimum here is {num_chars}")
    with pytest.raises(TokenizerError, match=r"the minimum here is 256$"):
        train_tokenizer(TokenizerConfig("byte_bpe", 255), SPLITS)
    with pytest.raises(TokenizerError, match=r"the minimum here is 258$"):  # special tokens need room too
        train_tokenizer(TokenizerConfig("byte_bpe", 257, special_tokens=("<s>", "<t>")), SPLITS)


def test_vocab_size_at_the_alphabet_and_one_above() -> None:
    for extra in (0, 1):
        tokenizer, training = train_tokenizer(TokenizerConfig("byte_bpe", 256 + extra), SPLITS)
        assert isinstance(tokenizer, BPETokenizer) and training is not None
        assert (tokenizer.vocab_size, len(tokenizer.merges)) == (256 + extra, extra)
        assert training.stop_reason == "target reached"


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize("name", SURROGATES)
@every_config
def test_lone_surrogates_are_refused(config: TokenizerConfig, name: str, split: str) -> None:
    splits = dict(SPLITS) | {split: make_split(split, ["ok\n", SURROGATES[name] + "\n"])}
    with pytest.raises(TokenizerError, match=rf"^{split}: lone surrogate U\+D[89A-F][0-9A-F]{{2}} at offset 6: "):
        train_tokenizer(config, splits)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "char", "vocab_size": 9}, "vocab_size: a char tokenizer has the size of its alphabet"),
        ({"kind": "byte", "vocab_size": 256}, "vocab_size: a byte tokenizer has the size of its alphabet"),
        ({"kind": "char", "split_pattern": "gpt2"}, "split_pattern: a char tokenizer has nothing to split"),
        ({"kind": "hf", "special_tokens": ["<s>"], "path": "x"}, "special_tokens: not offered for kind hf"),
        ({"kind": "char_bpe"}, "vocab_size is missing; kind char_bpe needs one"),
        ({"kind": "byte_bpe", "vocab_size": 0}, "vocab_size must be at least 1, found 0"),
        ({"kind": "byte_bpe", "vocab_size": -5}, "vocab_size must be at least 1, found -5"),
        (
            {"kind": "char_bpe", "vocab_size": 9, "min_pair_frequency": 0},
            "min_pair_frequency must be at least 1, found 0",
        ),
        (
            {"kind": "char_bpe", "vocab_size": 9, "training_characters": 0},
            "training_characters must be at least 1, found 0",
        ),
        (
            {"kind": "char_bpe", "vocab_size": 9, "training_characters": -1},
            "training_characters must be at least 1, found -1",
        ),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(TokenizerConfig, settings, "x.yaml: contestants.bpe.tokenizer")
    assert str(caught.value) == f"x.yaml: contestants.bpe.tokenizer: {message}"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 9}, "here: key 'kind' is missing"),
        ({"kind": "bpe"}, "here.kind: 'bpe' is not one of " + ", ".join(get_args(Kind))),
        ({"kind": "byte_bpe", "vocabsize": 9}, "here: unknown key 'vocabsize'; did you mean 'vocab_size'?"),
        (
            {"kind": "byte_bpe", "vocab_size": "many"},
            "here.vocab_size: expected a whole number such as 1000, found 'many'",
        ),
        ({"kind": "byte_bpe", "vocab_size": True}, "here.vocab_size: expected a whole number such as 1000, found True"),
        (
            {"kind": "byte_bpe", "vocab_size": 300, "split_pattern": "gpt3"},
            "here.split_pattern: 'gpt3' is not one of none, space, gpt2, gpt4",
        ),
        (
            {"kind": "byte_bpe", "vocab_size": 300, "tie_break": "random"},
            "here.tie_break: 'random' is not one of first_seen, lowest_ids, greatest_bytes",
        ),
        (
            {"kind": "byte_bpe", "vocab_size": 300, "special_tokens": "<s>"},
            "here.special_tokens: expected a list, found '<s>'; write one as [first, second]",
        ),
    ],
)
def test_settings_of_the_wrong_type(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(TokenizerConfig, settings, "here")
    assert str(caught.value) == message


def test_settings_from_yaml() -> None:
    config = build(
        TokenizerConfig,
        {"kind": "char_bpe", "vocab_size": 2000, "training_characters": None, "special_tokens": ["<s>"]},
        "here",
    )
    assert config == TokenizerConfig("char_bpe", 2000, training_characters=None, special_tokens=("<s>",))
    assert build(TokenizerConfig, {"kind": "char_bpe", "vocab_size": 9}, "here") == TokenizerConfig(
        kind="char_bpe", vocab_size=9, training_characters=500_000, min_pair_frequency=2, split_pattern="none"
    )


# ------------------------------------------------------------------------------------------------------ learn_merges


def test_learn_merges_of_nothing() -> None:
    for documents in ([], [""], ["", ""]):
        for engine_name in ("fast", "reference"):
            training = learn_merges(documents, ["a"], CHAR_BPE, num_merges=5, engine_name=engine_name)
            assert (training.merges, training.stop_reason) == ([], "no pair left")
