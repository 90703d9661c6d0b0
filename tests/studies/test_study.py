"""The study of vocabularies: its figures against counting by hand, its page, and its command."""

import doctest
import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from data.errors import ConfigError, TokenizerError
from data.splits import Split
from gpt2_helpers import write_gpt2_files
from scripts import study as study_command
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, ByteTokenizer
from tokenizer.char import CharTokenizer, alphabet_of
from tokenizer.interop import load_gpt2
from tokenizer.studies import study as module
from tokenizer.studies.study import (
    EXAMPLES,
    GPT2,
    OWN_WORDS,
    STUDIED_PATTERNS,
    StudyConfig,
    context_coverage,
    cut,
    glued_tokens,
    own_words,
    prefix_limits,
    run_study,
    study_inputs,
)
from tokenizer.studies.study_text import as_text
from tokenizer_helpers import make_split, make_splits

WORDS = ["it's", "the", "don't", "naïve,", "(the", "end.", "1999", "12", "中文", "torch.nn", "über", "x_y", "😀"]
CONFIG = StudyConfig(num_merges=300, width=16, window_tokens=8)


def documents(seed: int, count: int, num_words: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=num_words)) + "\n" for _ in range(count)]


SPLITS = make_splits(documents(1, 20, 150), documents(2, 3, 60), documents(3, 3, 60))


def contestants_of(splits: Mapping[str, Split]) -> dict[str, Tokenizer]:
    return {"char": CharTokenizer(alphabet_of(split.text for split in splits.values())), "byte": ByteTokenizer()}


@pytest.fixture(scope="module")
def study() -> dict[str, Any]:
    return run_study(CONFIG, SPLITS, contestants_of(SPLITS), echo=lambda line: None)


def byte_bpe(merges: list[tuple[str, str]], **settings: Any) -> BPETokenizer:
    return BPETokenizer(BYTE_CHARACTERS, merges, kind="byte_bpe", **settings)


def test_doctests() -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


# --- the parts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_size", "num_merges", "tokens"),
    [
        (256, 0, [256]),
        (256, 1, [256, 257]),
        (256, 256, [256, 512]),
        (256, 257, [256, 512, 513]),
        (256, 16_128, [256, 512, 1024, 2048, 4096, 8192, 16_384]),
        (259, 1000, [259, 512, 1024, 1259]),
        (255, 5, [255, 256, 260]),
    ],
)
def test_prefixes_double_up_to_the_whole_table(base_size: int, num_merges: int, tokens: list[int]) -> None:
    assert [base_size + limit for limit in prefix_limits(base_size, num_merges)] == tokens


@pytest.mark.parametrize(
    ("token", "is_glued"),
    [
        ("'s", True),
        ("a.", True),
        ("(a", True),
        ("a_b", True),
        ("é,", True),
        ("a+", True),  # a symbol
        ("a\n\n.", True),
        ("a€", True),
        ("ab", False),
        ("1.", False),
        ("a1", False),
        (" a", False),
        ("a\n", False),
        ("...", False),
        ("e\u0301", False),  # a combining accent is part of a letter
    ],
)
def test_what_is_glued(token: str, is_glued: bool) -> None:
    spelled = "".join(BYTE_CHARACTERS[byte] for byte in token.encode())
    merges = [(spelled[:end], spelled[end]) for end in range(1, len(spelled))]
    tokenizer = byte_bpe(merges)
    assert tokenizer.token_bytes[-1] == token.encode()
    assert (tokenizer.vocab_size - 1 in glued_tokens(tokenizer)) == is_glued


def test_base_tokens_and_special_tokens_are_not_learned() -> None:
    assert glued_tokens(byte_bpe([], special_tokens=["<|a|>"])) == []


def test_half_a_character_is_no_letter() -> None:
    e_acute = "".join(BYTE_CHARACTERS[byte] for byte in "é".encode())
    tokenizer = byte_bpe([(",", e_acute[0]), ("," + e_acute[0], e_acute[1])])
    assert glued_tokens(tokenizer) == [257]


@pytest.mark.parametrize(
    ("text", "frequent", "rare"),
    [
        ("ποταμός και πύργος, ποταμός\n", ("ποταμός", " πύργος", " ποταμός"), ()),
        ("河流。河流。" + "字" * 30, ("字" * 20,), ()),
        ("한국어 문장입니다 " * 2 + "a" * 40 + " bb", (" 문장입니다", " " + "a" * 19), ()),
        ("a b a", ("a", " b", " a"), ()),
        ("1 2 3 …\n", (), ()),
        (" aaaa" * 2 + " bbbb" * 2 + " cccc" * 2 + " dddd" * 2 + " eeee" * 2 + " longest ffff longer",
         (" aaaa", " bbbb", " cccc", " dddd", " eeee"), (" longest", " longer", " ffff")),
    ],
)  # fmt: skip
def test_words_of_the_corpus_itself(text: str, frequent: tuple[str, ...], rare: tuple[str, ...]) -> None:
    found = own_words(text)
    assert found == {group: words for group, words in zip(OWN_WORDS, (frequent, rare), strict=True) if words}


def test_cuts_join_to_the_text_and_spell_bytes() -> None:
    tokenizer = byte_bpe([("Ġ", "d"), ("o", "n")])
    assert cut(tokenizer, " don't") == [" d", "on", "'", "t"]
    assert cut(tokenizer, "é") == ["\\xc3", "\\xa9"]
    assert cut(tokenizer, "") == []
    assert cut(ByteTokenizer(), "é ") == ["\\xc3", "\\xa9", " "]
    assert cut(CharTokenizer(["a", "é"]), "éa") == ["é", "a"]
    with pytest.raises(TokenizerError):
        cut(CharTokenizer(["a", "é"]), "ab")


def test_context_is_counted_inside_documents() -> None:
    split = make_split("test", ["ab\n", "", "cdéfgh\n", "i\n"])
    found = context_coverage(ByteTokenizer(), split, 4)
    # Bytes: "cdéfgh\n" is 8 of them; the windows are cdé, dé f (é is two), éfg, and \xa9fgh, fgh\n, in characters
    # that begin there; the other documents are too short.
    assert found["num_windows"] == 5
    spans = [3, 3, 3, 3, 4]
    assert found["percentile_50"] == np.percentile(spans, 50)
    assert found["percentile_95"] == np.percentile(spans, 95)
    assert found["mean_characters"] == pytest.approx(4 * 12 / 13)


@pytest.mark.parametrize("window", [1, 2, 3, 5])
def test_context_of_characters_is_the_window_itself(window: int) -> None:
    split = make_split("val", ["abcd\n", "ab\n"])
    found = context_coverage(CharTokenizer(sorted(set(split.text))), split, window)
    assert found["num_windows"] == sum(max(0, length - window + 1) for length in (5, 3))
    assert found["mean_characters"] == found["percentile_5"] == found["percentile_95"] == window


def test_documents_shorter_than_the_window_have_no_percentiles() -> None:
    split = make_split("val", ["ab\n", "c\n"])
    found = context_coverage(ByteTokenizer(), split, 4)
    assert (found["num_windows"], found["percentile_5"], found["percentile_50"]) == (0, None, None)
    assert found["mean_characters"] == 4
    assert context_coverage(ByteTokenizer(), split, 400)["num_windows"] == 0


@pytest.mark.parametrize("name", ["width", "window_tokens", "min_pair_frequency"])
def test_settings_have_ranges(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be at least 1, found 0"):
        StudyConfig(**{name: 0})
    with pytest.raises(ConfigError, match="num_merges must be at least 0, found -1"):
        StudyConfig(num_merges=-1)


# --- the whole ---------------------------------------------------------------------------------------------------


def test_figures_are_those_of_counting(study: dict[str, Any]) -> None:
    assert list(study["vocabularies"]) == list(STUDIED_PATTERNS)
    for pattern, vocabulary in study["vocabularies"].items():
        assert vocabulary["split_pattern"] == pattern
        assert vocabulary["vocab_size"] == 256 + vocabulary["num_merges"]
        assert vocabulary["embedding_parameters"] == vocabulary["vocab_size"] * 16
        first, *_, last = vocabulary["prefixes"]
        assert (first["merges"], last["merges"]) == (0, vocabulary["num_merges"])
        for part in ("val", "test"):
            text = SPLITS[part].text
            assert first[part]["num_tokens"] == len(text.encode())
            assert first[part]["bytes_per_token"] == 1.0
            assert first[part]["characters_per_token"] == len(text) / len(text.encode())
            sizes = [prefix[part]["num_tokens"] for prefix in vocabulary["prefixes"]]
            assert sizes == sorted(sizes, reverse=True) and sizes[-1] < sizes[0] / 2
            uses = sum(token["uses"][part] for token in vocabulary["glued"]["tokens"])
            assert vocabulary["glued"]["share_of_text"][part] == uses / last[part]["num_tokens"]
        assert vocabulary["glued"]["count"] == len(vocabulary["glued"]["tokens"])
    glued = {name: vocabulary["glued"] for name, vocabulary in study["vocabularies"].items()}
    assert [token["text"] for token in glued["gpt2"]["tokens"]] in (["'t", "'s"], ["'s", "'t"])  # contractions alone
    assert glued["space"]["count"] > 10
    assert any(" " in token["text"].strip() for token in glued["none"]["tokens"])
    assert not any(" " in token["text"].strip() for token in glued["space"]["tokens"])


def test_one_table_serves_all_sizes(study: dict[str, Any]) -> None:
    # A prefix of the table is the vocabulary that training would have given for that size.
    small = run_study(
        StudyConfig(num_merges=256, width=16, window_tokens=8), SPLITS, contestants_of(SPLITS), echo=lambda line: None
    )
    rows = {row["tokens"]: row for row in study["vocabularies"]["none"]["prefixes"]}
    assert list(rows) == [256, 512, 556]
    assert small["vocabularies"]["none"]["prefixes"] == [rows[256], rows[512]]


def test_every_example_is_cut_by_every_vocabulary(study: dict[str, Any]) -> None:
    for vocabulary in study["vocabularies"].values():
        found = {group: tuple(row["text"] for row in rows) for group, rows in vocabulary["cuts"].items()}
        assert found == own_words(SPLITS["test"].text) | EXAMPLES
        for rows in vocabulary["cuts"].values():
            for row in rows:
                assert "".join(row["tokens"]) == row["text"] or any("\\x" in token for token in row["tokens"])


def test_contestants_are_measured(study: dict[str, Any]) -> None:
    char, byte = study["contestants"]["char"], study["contestants"]["byte"]
    assert char["context"]["test"]["mean_characters"] == 8
    assert byte["context"]["val"]["mean_characters"] < 8  # some characters take several bytes
    assert byte["embedding_parameters"] == 256 * 16


def test_the_same_inputs_give_the_same_study_and_other_inputs_are_noticed(study: dict[str, Any]) -> None:
    again = run_study(CONFIG, SPLITS, contestants_of(SPLITS), echo=lambda line: None)
    assert json.dumps(again) == json.dumps(study)
    inputs = study_inputs(CONFIG, SPLITS, contestants_of(SPLITS), None)
    assert json.loads(json.dumps(inputs)) == study["inputs"]
    others = [
        study_inputs(StudyConfig(num_merges=300, width=17, window_tokens=8), SPLITS, contestants_of(SPLITS), None),
        study_inputs(CONFIG, SPLITS | {"val": SPLITS["test"]}, contestants_of(SPLITS), None),
        study_inputs(CONFIG, SPLITS, {"byte": ByteTokenizer()}, None),
        study_inputs(CONFIG, SPLITS, contestants_of(SPLITS), byte_bpe([])),
    ]
    assert all(other != inputs for other in others)


def test_a_vocabulary_that_ends_early_says_so() -> None:
    lines: list[str] = []
    found = run_study(StudyConfig(num_merges=5000), SPLITS, contestants_of(SPLITS), echo=lines.append)
    assert found["vocabularies"]["gpt2"]["num_merges"] < 200
    page = as_text(found)
    for pattern in STUDIED_PATTERNS:
        learned = found["vocabularies"][pattern]
        assert learned["stop_reason"] in ("no pair left", "best pair below the minimum frequency")
        sentence = f"With split pattern {pattern} there are only {learned['num_merges']:,} merges: "
        assert sentence + learned["stop_reason"] in page
    assert [line for line in lines if "learning" in line] == [
        f"study: learning 5,000 merges with split pattern {pattern}" for pattern in STUDIED_PATTERNS
    ]


# --- the page ----------------------------------------------------------------------------------------------------


def test_the_page_is_narrow_and_holds_the_figures(study: dict[str, Any], tmp_path: Path) -> None:
    gpt2 = load_gpt2(*write_gpt2_files(tmp_path))
    both = run_study(CONFIG, SPLITS, contestants_of(SPLITS), gpt2=gpt2, echo=lambda line: None)
    assert both["vocabularies"]["none"] == study["vocabularies"]["none"]
    assert list(both["vocabularies"]) == [*STUDIED_PATTERNS, GPT2]
    page = as_text(json.loads(json.dumps(both)))
    for line in page.split("\n"):
        assert len(line) < 100
        assert line.isprintable(), repr(line)
        assert line == line.rstrip()
    bytes_per_token = both["vocabularies"]["none"]["prefixes"][-1]["test"]["bytes_per_token"]
    for part in (
        f"{bytes_per_token:.3f}",
        "     512           8,192",
        "GPT-2's own  1 of 7 (14.3%); they are 0.0% of the text's tokens",  # the merge of # and " t"
        "␣electromagnetism",
        "␣8045311447",
        "Characters that 8 tokens of each contestant span",
        "char                char",
    ):
        assert part in page, part


def test_the_page_does_without_percentiles() -> None:
    short = make_splits(["ab ab ab\n"] * 9, ["ab\n"], ["ab\n"])
    found = run_study(StudyConfig(num_merges=3), short, {"byte": ByteTokenizer()}, echo=lambda line: None)
    assert as_text(found).split("\n")[-2].endswith("128.0       –       –       –")


# --- the command -------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "no cache"))
    values = experiment_values(tmp_path / "run", write_corpus(tmp_path / "texts"))
    config = str(write_experiment(tmp_path / "words.yaml", values))
    reports = tmp_path / "run" / "reports"

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["study", "--config", config, "--merges", "20", *arguments])
        study_command.main()
        return capsys.readouterr().out

    first = run()
    assert "study: learning 20 merges with split pattern none" in first
    assert "GPT-2's own vocabulary is not here; --gpt2 FOLDER" in first
    written = {path.name: path.read_bytes() for path in reports.iterdir()}
    assert set(written) == {"study.json", "study.svg", "study.png"}
    stored = json.loads(written["study.json"])
    assert stored["inputs"]["width"] == 16  # the experiment's
    assert set(stored["contestants"]) == {"char", "bpe"}

    second = run()
    assert "study: up to date" in second and "learning" not in second
    assert second.split("\n\n", 1)[1] == first.split("\n\n", 1)[1]  # the same page
    (reports / "study.json").write_text("{", encoding="utf-8")
    assert "study: learning" in run()
    assert (reports / "study.json").read_bytes() == written["study.json"]

    folder = tmp_path / "gpt2"
    folder.mkdir()
    write_gpt2_files(folder)
    beside = run("--gpt2", str(folder), "--width", "32", "--window", "9")
    assert "embedding, 32" in beside and "Characters that 9 tokens" in beside
    assert "study: measuring GPT-2's own 264 tokens" in beside
    assert "is not here" not in beside


def test_the_command_names_what_it_cannot_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["study", "--config", "smoke", "--gpt2", str(tmp_path / "absent")])
    with pytest.raises(ConfigError, match=r"absent: no such folder; it holds encoder\.json and vocab\.bpe"):
        study_command.main()
    monkeypatch.setattr(sys, "argv", ["study", "--config", "smoke", "--gpt2", str(tmp_path)])
    with pytest.raises(TokenizerError, match=r"cannot read .*encoder\.json"):
        study_command.main()
