"""The benchmark itself: its texts, its stopwatch, its verdicts, and every part of it on a text of a few kilobytes.

How fast anything is is not tested here; whether what is printed was measured, compared and judged rightly is.
Peers take part where they can be imported.
"""

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import peers, texts
from bench import tokenizer as bench_tokenizer
from bench.peers import ENCODERS, HF, OURS, TINY, TRAINERS
from bench.texts import ORDER, BenchText, Line, as_table, draw, fit, measure
from bench.tokenizer import Bench
from chain_helpers import WORDS, experiment_values, write_corpus, write_experiment
from data.errors import ConfigError, DataError
from data.files import write_text
from data.splits import Split
from tokenizer.bpe import BPETokenizer
from tokenizer.pretokenize import PATTERNS, pretokenize

ROOT = Path(__file__).resolve().parents[2]
VOCAB_SIZE = 320
VERSIONS, _ = peers.find()


def sentences(num_words: int, *, seed: int = 1) -> str:
    rng = random.Random(seed)
    words = [
        rng.choice(WORDS) + rng.choice(["", "", "ly", "ing", ", ", "\n", "\n\n  ", " 12"]) for _ in range(num_words)
    ]
    return " ".join(words) + " café 日本 👍\n"


def split_of(name: str, documents: list[str]) -> Split:
    return Split(name, "".join(documents), np.cumsum([0, *map(len, documents)], dtype=np.int64), "")


def corpus_in(folder: Path) -> BenchText:
    documents = [sentences(300, seed=seed) for seed in range(4)]
    return texts.one_file("words", [split_of("train", documents[:3]), split_of("val", documents[3:])], folder)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """On a small text, with numbers to match, and without the processes of their own, which take seconds each."""
    monkeypatch.setattr(texts, "spawn", lambda *arguments: (2.0, 5_000_000))
    monkeypatch.setattr(bench_tokenizer, "VOCAB_SIZE", VOCAB_SIZE)
    monkeypatch.setattr(bench_tokenizer, "UNSPLIT_VOCAB_SIZE", VOCAB_SIZE)
    monkeypatch.setattr(bench_tokenizer, "RUN_LENGTH", 1000)
    return Bench(corpus_in(tmp_path / "texts"), None, tmp_path / "run", repeat=2)


def line_of(bench: Bench, row: str, engine: str = OURS) -> Line:
    (found,) = [line for line in bench.lines if row in line.row and line.engine == engine]
    return found


# The texts.


def test_one_file_is_all_documents_of_all_splits(tmp_path: Path) -> None:
    documents = ["one\r\n", "zwei é\n", "three\n"]
    text = texts.one_file("c", [split_of("train", documents[:2]), split_of("val", documents[2:])], tmp_path)
    assert text.path.read_bytes() == "".join(documents).encode("utf-8")
    assert text.documents() == documents
    assert text.num_bytes == len("".join(documents).encode("utf-8"))
    assert text.num_distinct_bytes == len(set("".join(documents).encode("utf-8")))
    assert text.facts() == {
        "name": "c",
        "num_bytes": text.num_bytes,
        "num_chars": text.num_bytes - 1,
        "num_documents": 3,
        "sha256": text.sha256,
    }


def test_documents_are_new_strings_every_time(tmp_path: Path) -> None:
    text = corpus_in(tmp_path)
    assert all(a is not b for a, b in zip(text.documents(), text.documents(), strict=True))


def test_a_part_of_the_corpus_is_whole_documents(tmp_path: Path) -> None:
    split = split_of("train", ["é" * 10 + "\n", "b" * 10 + "\n", "c\n"])
    assert texts.one_file("c", [split], tmp_path, most_bytes=32).documents() == split.documents()[:2]
    assert texts.one_file("c", [split], tmp_path, most_bytes=31).documents() == split.documents()[:1]
    with pytest.raises(DataError, match="first document is larger than 20 bytes"):
        texts.one_file("c", [split], tmp_path, most_bytes=20)


def test_drawn_text_holds_only_what_the_source_holds() -> None:
    source = sentences(2000)
    ring = source + source[: ORDER + 1]
    known = {ring[i : i + ORDER + 1] for i in range(len(source))}
    drawn = b"".join(draw(fit(source), 200_000, seed=1)).decode("utf-8")
    chains = [drawn[i : i + 4096] for i in range(0, len(drawn), 4096)]
    assert all(chain[-1] == "\n" for chain in chains[:-1])
    assert {chain[i : i + ORDER + 1] for chain in chains for i in range(len(chain) - ORDER - 1)} <= known


def test_drawn_text_has_the_odds_of_the_source() -> None:
    source = "abcdX abcdX abcdX abcdY " * 50
    followers = Counter(source[i + ORDER] for i in range(len(source) - ORDER) if source[i : i + ORDER] == "abcd")
    assert followers == {"X": 150, "Y": 50}
    drawn = b"".join(draw(fit(source), 400_000, seed=3)).decode("utf-8")
    share = drawn.count("abcdX") / (drawn.count("abcdX") + drawn.count("abcdY"))
    assert share == pytest.approx(0.75, abs=0.01)  # more than 60,000 draws: 0.01 is over five standard deviations


def test_drawn_text_depends_on_the_seed_and_on_nothing_else() -> None:
    model = fit(sentences(500))
    texts = [b"".join(draw(model, 50_000, seed=seed)) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert len(texts[0]) == 50_000


@pytest.mark.parametrize("num_bytes", range(100, 108))
def test_a_character_is_not_cut_in_two(num_bytes: int) -> None:
    drawn = b"".join(draw(fit("日本語👍é" * 20), num_bytes, seed=1))
    assert num_bytes - 4 < len(drawn) <= num_bytes
    assert set(drawn.decode("utf-8")) <= set("日本語👍é")


def test_new_pretokens_keep_turning_up(tmp_path: Path) -> None:
    source = corpus_in(tmp_path)
    small, big = (b"".join(draw(fit(source.text), size, seed=1)).decode("utf-8") for size in (50_000, 200_000))
    assert len(set(pretokenize(big, "gpt2"))) > 1.3 * len(set(pretokenize(small, "gpt2")))
    assert len(set(pretokenize(source.text * 9, "gpt2"))) <= 1.01 * len(set(pretokenize(source.text, "gpt2")))


@pytest.mark.parametrize(
    ("source", "message"),
    [("abcd", "needs more than 4 characters"), ("".join(map(chr, range(0x10000, 0x20001))), "65,537")],
)
def test_texts_that_have_no_model(source: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fit(source)


def test_a_drawn_file_is_written_once(tmp_path: Path) -> None:
    source = corpus_in(tmp_path)
    first = texts.synthetic_file(source, 1, tmp_path)
    written = first.path.stat().st_mtime_ns
    again = texts.synthetic_file(source, 1, tmp_path)
    assert again == first
    assert first.path.stat().st_mtime_ns == written
    assert 1_000_000 - 4 < first.num_bytes <= 1_000_000
    assert texts.synthetic_file(source, 1, tmp_path, seed=2).sha256 != first.sha256
    other = replace(source, sha256="f" * 64)
    assert texts.synthetic_file(other, 1, tmp_path).path != first.path


# The stopwatch.


def test_contestants_take_turns_and_are_prepared_anew() -> None:
    events: list[str] = []

    def prepare(name: str) -> Callable[[], Any]:
        events.append(f"prepare {name}")
        return lambda: events.append(name) or name

    lines, results = measure("row", 10, {name: lambda name=name: prepare(name) for name in ("a", "b")}, {}, repeat=2)
    assert events == ["prepare a", "a", "prepare b", "b"] * 2
    assert results == {"a": "a", "b": "b"}
    assert [len(line.seconds) for line in lines.values()] == [2, 2]
    assert all(line.best > 0 and line.peak_bytes is None for line in lines.values())


def test_processes_are_measured_beside_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter([7, 9, 8])
    monkeypatch.setattr(texts, "spawn", lambda *arguments: (float(len(arguments)), next(peaks)))
    lines, _ = measure("row", 10, {}, {"a": ("train", "a", "x")}, repeat=3)
    assert lines["a"].process_seconds == [3.0, 3.0, 3.0]
    assert lines["a"].peak_bytes == 9
    assert lines["a"].seconds == []


def test_a_peer_that_fails_says_so_and_is_left_in_peace() -> None:
    calls: list[str] = []

    def fail() -> Any:
        calls.append("peer")
        raise OSError("no\n  such thing")

    lines, results = measure("row", 1, {OURS: lambda: lambda: 1, "peer": lambda: fail}, {}, repeat=3)
    assert calls == ["peer"]
    assert lines["peer"].failed
    assert lines["peer"].result == "failed: no such thing"
    assert results == {OURS: 1}
    assert "failed: no such thing" in as_table(list(lines.values()))


def test_a_failure_of_ours_is_not_hidden() -> None:
    def fail() -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure("row", 1, {OURS: lambda: fail}, {}, repeat=1)


def test_what_engines_print_stays_out(capfd: pytest.CaptureFixture[str]) -> None:
    def noisy() -> None:
        os.write(1, b"from below")
        os.write(2, b"an error from below")

    measure("row", 1, {"peer": lambda: noisy}, {}, repeat=1)
    print("heard again")
    assert capfd.readouterr() == ("heard again\n", "")


# The table and the verdicts.


def test_the_table_compares_best_with_best() -> None:
    lines = [
        Line("train", OURS, 2_000_000, [0.5, 0.4, 0.6], [2.0], 50_000_000, "all"),
        Line("train", "peer", 2_000_000, [1.0, 3.0, 2.0], [1.0, 4.0]),
        Line("start-up", "peer", 1, [], [3.0]),
    ]
    header, title, ours, peer, second, alone = as_table(lines).splitlines()
    words = [" ".join(line.split()) for line in (header, ours, peer, alone)]
    assert (title, second) == ("train", "start-up")
    assert words == [
        "min s median s MB/s x ours process min s median s x ours peak MB result",
        "ours 0.4000 0.5000 5.0 1.00 2.0000 2.0000 1.00 50 all",
        "peer 1.0000 2.0000 2.0 2.50 1.0000 2.5000 0.50 –",
        "peer – – – – 3.0000 3.0000 – –",
    ]
    assert ours.index("1.00") + len("1.00") == peer.index("2.50") + len("2.50")


def test_merges_are_compared_rank_by_rank() -> None:
    expected: peers.Learned = [(b"a", b"b"), (b"ab", b"c"), (b"x", b"yz")]
    assert peers.compared(expected, expected) == "3 of 3 merges"
    assert peers.compared([(b"ab",), (b"abc",), (b"xy",)], expected) == "2 of 3 merges"
    assert peers.compared([(b"a", b"b"), (b"a", b"bc")], expected) == "1 of 3 merges"
    assert peers.compared([], expected) == "cuts in its own way"


# The engines.


def test_the_pattern_is_the_one_of_the_tokenizer() -> None:
    assert PATTERNS["gpt2"] == peers.GPT2


def test_every_engine_has_a_name_that_find_knows() -> None:
    assert {name.partition(",")[0] for name in (*TRAINERS, *ENCODERS)} == {OURS, *peers.PEERS}
    assert peers.encoders([]) == [OURS]
    assert peers.encoders(["tiktoken"]) == [OURS, peers.TIKTOKEN_2, peers.TIKTOKEN]


def test_missing_peers_are_named_with_the_reason() -> None:
    assert peers.find(("json_but_faster",)) == ({}, {"json_but_faster": "No module named 'json_but_faster'"})


def test_only_gigabpe_is_asked_for_less() -> None:
    assert {name: peers.vocab_size_for(name, 8192, 200) for name in (OURS, HF, "gigabpe")} == {
        OURS: 8192,
        HF: 8192,
        "gigabpe": 8136,
    }


@pytest.mark.skipif(HF not in VERSIONS, reason="tokenizers is not installed")
@pytest.mark.parametrize("engine", [OURS, "gigatoken", "gigabpe"])
def test_merges_equal_those_of_hf(engine: str, tmp_path: Path) -> None:
    if engine not in (OURS, *VERSIONS):
        pytest.skip(f"{engine} is not installed")
    corpus = corpus_in(tmp_path)
    expected = peers.train_hf(corpus.path, VOCAB_SIZE, as_one_text=engine in peers.ONE_TEXT)
    size = peers.vocab_size_for(engine, VOCAB_SIZE, corpus.num_distinct_bytes)
    found = peers.learned(engine, TRAINERS[engine](corpus.path, size))
    assert len(found) == VOCAB_SIZE - 256
    assert found == peers.learned(HF, expected)


def test_every_encoder_reads_our_vocabulary(tmp_path: Path) -> None:
    corpus = corpus_in(tmp_path)
    trained = TRAINERS[OURS](corpus.path, VOCAB_SIZE)
    peers.write_vocabulary(tmp_path, trained, corpus.path, VOCAB_SIZE, list(VERSIONS))
    tokenizer = BPETokenizer.from_file(tmp_path / "ours.json")
    assert tokenizer.vocab_size == VOCAB_SIZE
    assert len((tmp_path / "ranks.tiktoken").read_text(encoding="utf-8").splitlines()) == VOCAB_SIZE
    expected = [index for document in corpus.documents() for index in tokenizer.encode(document)]
    for name in peers.encoders(list(VERSIONS)):
        ids = ENCODERS[name](tmp_path)(corpus.documents())
        assert str(ids.dtype) == "torch.int64"
        if name != "sentencepiece":
            assert ids.tolist() == expected, name


def test_a_process_of_its_own_tells_its_peak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    write_text(tmp_path / "tiny.txt", TINY)
    seconds, peak = peers.spawn("train", OURS, str(tmp_path / "tiny.txt"), "300")
    assert seconds > 0.05
    assert 20_000_000 < peak < 2_000_000_000
    with pytest.raises(RuntimeError, match=r"train nobody x 300: exit code 1; Traceback(?s:.)*KeyError: 'nobody'"):
        peers.spawn("train", "nobody", "x", "300")


# The parts.


def test_train(bench: Bench) -> None:
    bench.vocab_sizes = (VOCAB_SIZE,)
    bench_tokenizer.train(bench)
    ours = line_of(bench, "train words, gpt2 pattern, 320 tokens")
    assert len(ours.seconds) == len(ours.process_seconds) == 2
    assert ours.num_bytes == bench.corpus.num_bytes
    assert {line.engine for line in bench.lines} == set(bench.trainers)
    assert ours.result == ("64 of 64 merges" if HF in VERSIONS else "")


def test_encode(bench: Bench) -> None:
    bench_tokenizer.encode(bench)
    for form in ("documents", "one text"):
        assert len(line_of(bench, f"as {form}").seconds) == 2
        assert line_of(bench, f"as {form}").result == ("ids equal: yes" if "tiktoken" in VERSIONS else "")
    assert {line.engine for line in bench.lines if "documents" in line.row} == set(peers.encoders(list(VERSIONS)))


def test_ids_that_differ_are_called_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(peers, "encoders", lambda versions: [OURS, peers.TIKTOKEN])
    monkeypatch.setitem(ENCODERS, peers.TIKTOKEN, lambda folder: lambda documents: torch.zeros(3).long())
    bench_tokenizer.encode(bench)
    assert line_of(bench, "documents").result == "ids equal: NO"
    assert line_of(bench, "documents", peers.TIKTOKEN).result == "ids equal: yes"


def test_unsplit(bench: Bench) -> None:
    bench_tokenizer.unsplit(bench)
    assert line_of(bench, "train").result == "first 3 merges as the naive loop: yes"
    assert line_of(bench, "encode").result == "lossless: yes"
    naive = line_of(bench, "train", "naive loop, extrapolated")
    assert naive.best > line_of(bench, "train").best


def test_runs(bench: Bench) -> None:
    bench_tokenizer.runs(bench)
    assert len(bench.lines) == 8
    assert {line.num_bytes for line in bench.lines if line.engine == OURS} == {1000}
    assert {line.num_bytes for line in bench.lines if line.engine != OURS} == {2000}
    for row in {line.row for line in bench.lines}:
        once, twice = (line_of(bench, row, name) for name in (OURS, "ours, twice as long"))
        assert twice.result == f"{twice.best / once.best:.2f} times the time of 1,000"


def test_large_says_the_peak(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_tokenizer.large(bench)
    assert "left out" in capsys.readouterr().out
    assert bench.lines == []
    bench.large = texts.synthetic_file(bench.corpus, 1, tmp_path)
    bench_tokenizer.large(bench)
    assert line_of(bench, "order4_1MB").result == "peak 5.00 x the file"  # the fixture's 5 MB


def test_a_large_text_is_not_measured_often(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_tokenizer, "_LARGE_BYTES", 10)
    bench.repeat = 5
    for num_bytes, expected in ((9, 5), (10, 2)):
        lines, _ = bench.measure("row", num_bytes, {OURS: lambda: lambda: None})
        assert len(lines[OURS].seconds) == expected


# The command.


def test_the_command_writes_table_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_tokenizer, "RUN_LENGTH", 1000)
    values = experiment_values(tmp_path / "root", write_corpus(tmp_path / "texts"))
    path = write_experiment(tmp_path / "mine.yaml", values)
    monkeypatch.setattr(sys, "argv", ["bench", "--config", str(path), "--quick", "--rows", "runs,large"])
    bench_tokenizer.main()
    printed = capsys.readouterr().out
    report = json.loads((tmp_path / "root/reports/bench_tokenizer.json").read_text(encoding="utf-8"))
    assert report["corpus"]["sha256"] in printed
    assert report["repeat"] == 1
    assert report["large"] is None
    assert report["peers"] == VERSIONS
    assert set(report["not_importable"]) == set(peers.PEERS) - set(VERSIONS)
    assert len(report["lines"]) == 8
    assert all(len(line["seconds"]) == 1 for line in report["lines"])
    for text in ('train "a" * 1,000, no split pattern', *report["not_importable"]):
        assert text in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "encode,trian"], "no part 'trian'; did you mean 'train'"),
        (["--peers", "gigatokn"], "no peer 'gigatokn'"),
    ],
)
def test_wrong_options_are_said_before_anything_is_measured(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    with pytest.raises(ConfigError, match=message):
        bench_tokenizer.main()


@pytest.mark.slow
def test_startup_compiles_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(texts, "spawn", peers.spawn)
    bench_tokenizer.startup(bench)
    compiles = line_of(bench, "start-up", "ours, first use of everything, compiles")
    again = line_of(bench, "start-up", "ours, the same again")
    assert min(compiles.process_seconds) > 2 * min(again.process_seconds)
    assert len(line_of(bench, "start-up").process_seconds) == 2
