"""The visible training: equal to the reference's and the engine's, complete as data; and its command."""

import json
import random
import sys
from itertools import product
from typing import Any

import pytest

from data.errors import ConfigError, TokenizerError
from scripts import trace as trace_command
from tokenizer.bpe import BPEKind
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.pretokenize import SPLIT_PATTERNS, SplitPattern
from tokenizer.reference import TIE_BREAKS, TieBreak, Training
from tokenizer.studies.trace import as_data, trace_training
from tokenizer.studies.trace_text import as_text
from tokenizer.train import ENGINES, TokenizerConfig, learn_merges
from tokenizer.vocabulary import merge_strings
from tokenizer_helpers import LOSSLESS_TEXTS

KINDS: tuple[BPEKind, ...] = ("char_bpe", "byte_bpe")
WORDS = ["low low lower lowest", "don't  stop 1234 the 12\n", "ααβ ααβ 中文中文 aaaaaaa"]


def base_of(kind: BPEKind, texts: list[str]) -> list[str]:
    return BYTE_CHARACTERS if kind == "byte_bpe" else sorted(set("".join(texts)))


def run_command(*arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["trace", *arguments])
    trace_command.main()
    return capsys.readouterr().out


def test_the_worked_example() -> None:
    trace = trace_training(["aaa", "aba"], tie_break="lowest_ids", min_pair_frequency=1)
    first, second = trace.rounds[:2]
    assert list(first.candidates.items()) == [((97, 97), 2), ((97, 98), 1), ((98, 97), 1)]
    assert (first.merge.pair, first.merge.count, first.merge.replacements) == ((97, 97), 2, 1)
    assert first.documents == [[[256, 97]], [[97, 98, 97]]]
    assert (second.merge.pair, second.merge.count, second.merge.replacements) == ((97, 98), 1, 1)
    assert second.tied == [(256, 97), (97, 98), (98, 97)]
    assert second.documents == [[[256, 97]], [[257, 97]]]
    assert trace.documents == [[[97, 97, 97]], [[97, 98, 97]]]  # what was before the first round is kept as it was
    assert trace.stop_reason == "no pair left"


@pytest.mark.parametrize(
    ("kind", "tie_break", "split_pattern", "engine"), list(product(KINDS, TIE_BREAKS, SPLIT_PATTERNS, ENGINES))
)
def test_merges_equal_the_references_and_the_engines(
    kind: BPEKind, tie_break: TieBreak, split_pattern: SplitPattern, engine: Any
) -> None:
    rng = random.Random(f"{kind} {tie_break} {split_pattern}")
    drawn = [["".join(rng.choices("ab c", k=rng.randrange(0, 30))) for _ in range(3)] for _ in range(5)]
    for texts in (WORDS, list(LOSSLESS_TEXTS.values()), *drawn):
        for minimum in (1, 2):
            trace = trace_training(
                texts,
                kind=kind,
                split_pattern=split_pattern,
                tie_break=tie_break,
                num_merges=12,
                min_pair_frequency=minimum,
            )
            config = TokenizerConfig(
                kind, 10**6, min_pair_frequency=minimum, split_pattern=split_pattern, tie_break=tie_break
            )
            trained = learn_merges(texts, base_of(kind, texts), config, num_merges=12, engine_name=engine)
            assert Training([made.merge for made in trace.rounds], trace.stop_reason) == trained


def test_tokens_are_those_of_the_tokenizer() -> None:
    trace = trace_training(WORDS, kind="char_bpe", tie_break="first_seen", num_merges=20)
    base = base_of("char_bpe", WORDS)
    pairs = merge_strings(base, Training([made.merge for made in trace.rounds], trace.stop_reason))
    assert [raw.decode() for raw in trace.token_bytes] == [*base, *(left + right for left, right in pairs)]


# --- as data -----------------------------------------------------------------------------------------------------


def test_data_is_complete_and_consistent() -> None:
    trace = trace_training(WORDS, split_pattern="gpt2", tie_break="greatest_bytes", num_merges=15)
    data = json.loads(json.dumps(as_data(trace)))
    assert (data["kind"], data["split_pattern"], data["tie_break"]) == ("byte_bpe", "gpt2", "greatest_bytes")
    assert data["stop_reason"] == "target reached"
    assert [made["round"] for made in data["rounds"]] == list(range(15))
    raw = {token["id"]: bytes.fromhex(token["bytes"]) for token in data["tokens"]}
    for state in (data["sequences"], *(made["sequences"] for made in data["rounds"])):
        joined = [b"".join(raw[index] for pretoken in document for index in pretoken) for document in state]
        assert joined == [text.encode() for text in WORDS]
    for made in data["rounds"]:
        counts = {tuple(candidate["pair"]): candidate["windows"] for candidate in made["candidates"]}
        assert counts[tuple(made["winner"])] == made["windows"] == max(counts.values()) >= made["replacements"]
        assert made["tied"] == [list(pair) for pair, count in counts.items() if count == made["windows"]]
        assert made["decided_by"] == ("count" if len(made["tied"]) == 1 else "greatest_bytes")
        assert raw[made["new_id"]] == b"".join(raw[half] for half in made["winner"])
    assert {made["decided_by"] for made in data["rounds"]} == {"count", "greatest_bytes"}


def test_bytes_that_are_no_character_are_spelled_out() -> None:
    data = as_data(trace_training(["é"], num_merges=1))
    assert data["tokens"] == [
        {"id": 0xA9, "text": "\\xa9", "bytes": "a9"},
        {"id": 0xC3, "text": "\\xc3", "bytes": "c3"},
        {"id": 256, "text": "é", "bytes": "c3a9"},
    ]


# --- the command -------------------------------------------------------------------------------------------------


def test_the_command_prints_the_same_as_text_and_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = trace_training(["low lower", "lowest\n"], kind="char_bpe", tie_break="first_seen", num_merges=4)
    arguments = ("low lower|lowest\n", "--kind", "char_bpe", "--merges", "4")  # the kind's own tie rule
    assert run_command(*arguments, monkeypatch=monkeypatch, capsys=capsys) == as_text(trace) + "\n"
    printed = run_command(*arguments, "--json", monkeypatch=monkeypatch, capsys=capsys)
    assert json.loads(printed) == json.loads(json.dumps(as_data(trace)))


def test_the_commands_options(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    printed = run_command(
        *("--tie-break", "greatest_bytes", "--split-pattern", "space", "--min-pair-frequency", "2", "--top", "3"),
        *("--", "-a b|-a b"),
        monkeypatch=monkeypatch,
        capsys=capsys,
    )
    assert "byte_bpe, split pattern space, ties by greatest_bytes" in printed
    assert "minimum frequency 2, up to 10 merges" in printed
    assert "start     - a  ␣ b\n          - a  ␣ b\n" in printed
    assert "best pair below the minimum frequency" not in printed  # the text runs out of pairs first
    default = run_command(monkeypatch=monkeypatch, capsys=capsys)
    assert default == as_text(trace_training(["aaa", "aba"])) + "\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "--merges", "-1"), "--merges: must be at least 0, found -1"),
        (("x", "--min-pair-frequency", "0"), "--min-pair-frequency: must be at least 1, found 0"),
        (("x", "--top", "0"), "--top: must be at least 1"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        trace_command.main(arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_a_lone_surrogate_is_refused(kind: BPEKind) -> None:
    with pytest.raises(TokenizerError, match="surrogate U\\+DC80"):
        trace_training(["a\udc80"], kind=kind)
