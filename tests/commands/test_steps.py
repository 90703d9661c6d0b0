"""The whole chain on a small corpus: what is made, what is left alone, what is refused."""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from chain_helpers import CHAIN_TRAIN, CHAIN_WORDS, experiment_values, write_corpus, write_experiment
from compare.experiment import load_experiment
from compare.outputs.held_equal import not_held_equal
from compare.runs import check_comparable, read_run
from compare.steps import Steps
from compare.table import budget_words, row_of
from data.errors import CheckpointError, ConfigError, ReportError, TokenizerError
from data.files import read_json
from model import checkpoint
from scripts import sample
from tokenizer.bpe import BPETokenizer
from tokenizer.loading import load_tokenizer

ROOT = Path(__file__).resolve().parents[2]


def steps_of(folder: Path, settings: tuple[str, ...] = ()) -> tuple[Steps, list[str]]:
    lines: list[str] = []
    return Steps(load_experiment(folder / "words.yaml", settings), echo=lines.append), lines


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    write_experiment(tmp_path / "words.yaml", experiment_values(tmp_path / "run", write_corpus(tmp_path / "texts")))
    return tmp_path


@pytest.fixture
def finished(finished_chain: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The finished comparison of the session, in its folder, for tests that only read it."""
    monkeypatch.chdir(finished_chain)
    return finished_chain


def test_artefacts_lie_where_the_design_says(finished: Path) -> None:
    root = finished / "run"
    for path in (
        "data/processed/words_train_clean.txt",
        "data/processed/manifest.json",
        "data/processed/words_val_docs.npy",
        "tokenizer/char_tokenizer.json",
        "tokenizer/bpe_tokenizer.json",
        "data/encoded/train_ids.pt",
        "data/encoded_bpe/test_ids.pt",
        "data/encoded_bpe/manifest.json",
        "checkpoints/bpe/last.pt",
        "checkpoints/bpe/best.pt",
        "checkpoints/bpe/tokenizer.json",
        "checkpoints/bpe/config.json",
        "checkpoints/bpe/metrics.jsonl",
        "checkpoints/bpe/report.json",
        "checkpoints/char/val_nats.npz",
        "checkpoints/char/test_nats.npz",
        "reports/comparison.json",
        "reports/comparison.md",
        "reports/comparison.txt",
        "reports/baselines.json",
        "reports/index.html",
        "reports/curve_characters.svg",
        "reports/curve_seconds.svg",
    ):
        assert (root / path).is_file(), path
    assert {path.name for path in finished.iterdir()} == {"words.yaml", "texts", "run"}  # nothing outside the root


def test_every_tensor_file_loads_without_unpickling(finished: Path) -> None:
    paths = sorted((finished / "run").rglob("*.pt"))
    assert len(paths) == 2 * 3 + 2 * 2  # ids of three splits, two checkpoints, for two contestants
    for path in paths:
        assert torch.load(path, weights_only=True) is not None


def test_a_second_run_does_nothing_and_touches_nothing(finished: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (finished / "run").rglob("*") if path.is_file()}
    steps, lines = steps_of(finished)
    answer = steps.compare().answer
    assert steps.num_done == 0
    assert all("up to date" in line for line in lines)
    assert answer.endswith(".")
    assert {path: path.stat().st_mtime_ns for path in (finished / "run").rglob("*") if path.is_file()} == before


def test_a_touched_file_costs_nothing(finished: Path) -> None:
    for path in [*(finished / "texts").iterdir(), *(finished / "run").rglob("*.json")]:
        os.utime(path)
    steps, _ = steps_of(finished)
    steps.compare()
    assert steps.num_done == 0


def test_both_contestants_are_scored_on_the_same_text_exactly(finished: Path) -> None:
    reports = [read_json(finished / "run/checkpoints" / name / "report.json") for name in ("char", "bpe")]
    text = (finished / "run/data/processed/words_test_clean.txt").read_text(encoding="utf-8")
    for report in reports:
        test = report["splits"]["test"]
        assert test["num_chars"] == len(text)
        assert test["num_bytes"] == len(text.encode("utf-8"))
        assert test["num_words"] == len(text.split())
        assert test["bits_per_byte"] == pytest.approx(test["bits_per_char"] * len(text) / len(text.encode("utf-8")))
    assert reports[0]["splits"]["test"]["text_sha256"] == reports[1]["splits"]["test"]["text_sha256"]


def test_a_budget_in_characters_is_met_by_both_within_one_step(finished: Path) -> None:
    for name in ("char", "bpe"):
        seen = read_json(finished / "run/checkpoints" / name / "report.json")["seen"]
        manifest = read_json(finished / "run/data" / ("encoded" if name == "char" else "encoded_bpe") / "manifest.json")
        longest_step = 8 * 16 * manifest["splits"]["train"]["num_chars"] / manifest["splits"]["train"]["num_tokens"] * 2
        assert 1_500 <= seen["characters"] < 1_500 + longest_step


def test_identity_runs_down_the_chain(finished: Path) -> None:
    root = finished / "run"
    corpus = read_json(root / "data/processed/manifest.json")["words"]
    tokenizer = load_tokenizer(root / "tokenizer/bpe_tokenizer.json")
    encoded = read_json(root / "data/encoded_bpe/manifest.json")
    checkpoint = torch.load(root / "checkpoints/bpe/best.pt", weights_only=True)
    report = read_json(root / "checkpoints/bpe/report.json")
    assert encoded["splits"]["test"]["text_sha256"] == corpus["splits"]["test"]["sha256"]
    assert encoded["tokenizer_fingerprint"] == tokenizer.fingerprint() == checkpoint["tokenizer_fingerprint"]
    assert report["tokenizer"]["fingerprint"] == tokenizer.fingerprint()
    assert report["splits"]["test"]["text_sha256"] == corpus["splits"]["test"]["sha256"]
    comparison = read_json(root / "reports/comparison.json")
    assert comparison["fingerprints"]["bpe"] == tokenizer.fingerprint()


def test_new_training_text_reaches_the_checkpoint_or_is_refused(chain: Path) -> None:
    steps_of(chain)[0].train("char")
    write_corpus(chain / "texts", seed=2)
    steps, lines = steps_of(chain)
    with pytest.raises(CheckpointError) as caught:
        steps.train("char")  # the finished run is of the old text: nothing is thrown away unasked
    assert "make train-char FORCE=1" in str(caught.value)
    assert any(line.startswith("data: wrote") for line in lines)
    assert any(line.startswith("encode char: wrote") for line in lines)
    steps.train("char", restart=True)
    again, _ = steps_of(chain)
    again.train("char")
    assert again.num_done == 0


def test_own_settings_survive_later_steps_until_the_configuration_changes(chain: Path) -> None:
    steps_of(chain)[0].tokenizer("bpe", own_settings={"vocab_size": 40})
    later, lines = steps_of(chain)
    later.encode("bpe")
    assert later.tokenizer("bpe").vocab_size == 40
    assert any("vocab_size" in line and "40" in line for line in lines)
    edited, _ = steps_of(chain, ("contestants.bpe.tokenizer.vocab_size=50",))
    assert edited.tokenizer("bpe").vocab_size == 50


def test_the_command_tokenizer_without_own_settings_means_the_configuration(chain: Path) -> None:
    steps_of(chain)[0].tokenizer("bpe", own_settings={"vocab_size": 40})
    assert steps_of(chain)[0].tokenizer("bpe", own_settings={}).vocab_size == 60


def test_own_settings_survive_new_training_text(chain: Path) -> None:
    steps_of(chain)[0].tokenizer("bpe", own_settings={"vocab_size": 40})
    write_corpus(chain / "texts", seed=2)
    later, lines = steps_of(chain)
    assert later.tokenizer("bpe").vocab_size == 40
    assert any("= 40; stopped" in line for line in lines)  # trained again, under the same settings


def test_a_damaged_tokenizer_file_stops_other_commands_and_is_replaced_by_its_own(chain: Path) -> None:
    path = chain / "run/tokenizer/bpe_tokenizer.json"
    steps_of(chain)[0].tokenizer("bpe")
    good = path.read_bytes()
    path.write_bytes(good[:100])
    with pytest.raises(TokenizerError, match="run `make tokenizer` again"):
        steps_of(chain)[0].encode("bpe")
    assert path.read_bytes() == good[:100]
    steps, lines = steps_of(chain)
    steps.tokenizer("bpe", own_settings={})
    assert path.read_bytes() == good
    assert any("training again" in line for line in lines)


def test_one_contestant_leaves_the_other_alone(chain: Path) -> None:
    steps_of(chain)[0].encode("char")
    before = (chain / "run/data/encoded/train_ids.pt").read_bytes()
    steps_of(chain)[0].encode("bpe")
    assert (chain / "run/data/encoded/train_ids.pt").read_bytes() == before


def test_a_vocabulary_below_the_alphabet_names_the_minimum(chain: Path) -> None:
    steps, _ = steps_of(chain, ("contestants.bpe.tokenizer.vocab_size=3",))
    with pytest.raises(TokenizerError, match="the minimum here is"):
        steps.tokenizer("bpe")
    assert not (chain / "run/tokenizer/bpe_tokenizer.json").exists()


def edit_report(folder: Path, contestant: str, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "run/checkpoints" / contestant / "report.json"
    report = read_json(path)
    change(report)
    path.write_text(json.dumps(report), encoding="utf-8")


def test_stored_losses_that_are_not_the_reports_are_refused(chain: Path) -> None:
    steps_of(chain)[0].train("bpe")
    folder = chain / "run/checkpoints/bpe"
    original = (folder / "test_nats.npz").read_bytes()
    (folder / "test_nats.npz").write_bytes((folder / "val_nats.npz").read_bytes())
    with pytest.raises(ReportError, match="sha256"):
        read_run(folder)
    (folder / "test_nats.npz").write_bytes(original)
    edit_report(chain, "bpe", lambda report: report["splits"]["test"].update(bits_per_char=0.7))
    with pytest.raises(ReportError, match="gives bits_per_char"):
        read_run(folder)


def test_different_texts_are_refused(chain: Path) -> None:
    steps_of(chain)[0].entries()
    edit_report(chain, "bpe", lambda report: report["splits"]["test"].update(text_sha256="0" * 64))
    runs = [read_run(chain / "run/checkpoints" / name) for name in ("char", "bpe")]
    with pytest.raises(ReportError, match="scored on different test texts"):
        check_comparable(runs)


def test_the_same_seed_gives_the_same_result(chain: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    write_experiment(other / "words.yaml", experiment_values(other / "run", write_corpus(other / "texts")))
    results = []
    for folder in (chain, other):
        report = read_json(steps_of(folder)[0].train("bpe"))
        metrics = [json.loads(line) for line in (folder / "run/checkpoints/bpe/metrics.jsonl").read_text().splitlines()]
        results.append((report["splits"], [{k: v for k, v in m.items() if k != "seconds"} for m in metrics]))
        for split in report["splits"].values():
            split.pop("nats_sha256")
    assert results[0] == results[1]


SEEDS = ("seeds=[1,2]",)


@pytest.fixture(scope="module")
def two_seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs of the session's experiment over two seeds, shared by tests that only read them."""
    folder = tmp_path_factory.mktemp("two_seeds")
    values: dict[str, Any] = experiment_values(folder / "run", write_corpus(folder / "texts", num_words=CHAIN_WORDS))
    values["train"] |= CHAIN_TRAIN
    write_experiment(folder / "words.yaml", values)
    steps_of(folder, SEEDS)[0].entries()
    return folder


def test_each_seed_has_a_whole_run_in_its_own_folder(two_seeds: Path) -> None:
    for name in ("char", "bpe"):
        folder = two_seeds / "run/checkpoints" / name
        assert {path.name for path in folder.iterdir()} == {"seed_1", "seed_2"}
        for seed in (1, 2):
            assert read_json(folder / f"seed_{seed}/report.json")["train"]["seed"] == seed
            assert read_json(folder / f"seed_{seed}/config.json")["train_config"]["seed"] == seed


def test_entries_hold_the_runs_in_the_order_of_the_seeds(two_seeds: Path) -> None:
    steps, _ = steps_of(two_seeds, ("seeds=[2,1]",))
    entries = {entry.name: entry for entry in steps.entries()}
    assert steps.num_done == 0
    assert set(entries) == {"char", "bpe"}
    for entry in entries.values():
        assert [run.seed for run in entry.runs] == [2, 1]
        bits = [run.test.bits_per_char for run in entry.runs]
        assert bits[0] != bits[1]
        assert entry.evaluation("test").bits_per_char == pytest.approx(sum(bits) / 2, rel=1e-7)


def test_a_run_of_several_is_the_run_that_it_is_alone(two_seeds: Path, finished: Path) -> None:
    alone = read_json(finished / "run/checkpoints/bpe/report.json")["splits"]
    of_several = read_json(two_seeds / "run/checkpoints/bpe/seed_1/report.json")["splits"]
    for split in ("val", "test"):
        assert of_several[split]["total_nats"] == alone[split]["total_nats"]


def test_a_second_run_over_the_seeds_does_nothing_and_names_them(two_seeds: Path) -> None:
    steps, lines = steps_of(two_seeds, SEEDS)
    steps.entries()
    assert steps.num_done == 0
    trained = [line.split(":")[0] for line in lines if line.startswith("train")]
    assert sorted(trained) == [f"train {name}, seed {seed}" for name in ("bpe", "char") for seed in (1, 2)]


def test_another_seed_trains_itself_only(chain: Path) -> None:
    steps_of(chain, ("seeds=[4]",))[0].train_all("bpe")
    steps, lines = steps_of(chain, ("seeds=[4,6]",))
    reports = steps.train_all("bpe")
    assert reports == [chain / f"run/checkpoints/bpe/seed_{seed}/report.json" for seed in (4, 6)]
    assert [line.split(" (")[0] for line in lines if line.startswith("train")] == [
        "train bpe, seed 4: up to date",
        f"train bpe, seed 6: wrote {reports[1]}",
    ]


def test_a_contestant_without_seeds_has_one_run_and_restarts_it(chain: Path) -> None:
    first = steps_of(chain)[0].train_all("char")
    assert first == [chain / "run/checkpoints/char/report.json"]
    before = first[0].read_bytes()
    steps, lines = steps_of(chain)
    assert steps.train_all("char", restart=True) == first
    assert steps.num_done == 1
    assert lines[-1] == f"train char: wrote {first[0]}"
    assert first[0].read_bytes() != before  # its seconds are new


def test_both_contexts_in_one_experiment(chain: Path) -> None:
    values = experiment_values(chain / "run", write_corpus(chain / "texts"))
    tokenizer = {"kind": "char_bpe", "vocab_size": 60}
    values["contestants"] = {
        "char": {"tokenizer": {"kind": "char"}},
        "bpe": {"tokenizer": tokenizer},
        "same": {"tokenizer": tokenizer, "context": "characters"},
    }
    write_experiment(chain / "words.yaml", values)
    steps, _ = steps_of(chain)
    entries = steps.entries()
    reports = {name: read_json(chain / "run/checkpoints" / name / "report.json") for name in ("char", "bpe", "same")}
    train = read_json(chain / "run/data/encoded_same/manifest.json")["splits"]["train"]
    mean = train["num_chars"] / train["num_tokens"]
    assert reports["char"]["block"] == {"tokens": 16, "mean_characters": 16.0}
    assert reports["bpe"]["block"] == {"tokens": 16, "mean_characters": 16 * mean}
    assert reports["same"]["block"] == {"tokens": round(16 / mean), "mean_characters": round(16 / mean) * mean}
    assert abs(reports["same"]["block"]["mean_characters"] - 16) <= mean / 2
    assert reports["same"]["model"]["block_size"] == round(16 / mean) < 16
    assert reports["same"]["evaluate"]["stride"] == round(16 / mean) // 2
    config = read_json(chain / "run/checkpoints/same/config.json")
    assert config["model_config"]["block_size"] == round(16 / mean)
    said = not_held_equal(steps.experiment, entries, [row_of(entry) for entry in entries], {})
    assert said[0] == "context: bpe tokens, char tokens, same characters"
    again, _ = steps_of(chain)
    again.entries()
    assert again.num_done == 0


def test_a_stride_beyond_a_block_in_characters_is_refused_before_training(chain: Path) -> None:
    settings = ("contestants.bpe.context=characters", "evaluate.stride=16")
    with pytest.raises(ConfigError, match="stride 16 is greater than block_size"):
        steps_of(chain, settings)[0].train("bpe")
    assert not (chain / "run/checkpoints/bpe").exists()


@pytest.mark.parametrize(
    ("unit", "amount", "words"),
    [
        ("characters", 3_000, "characters seen (3,000)"),
        ("tokens", 2_000, "tokens seen (2,000)"),
        ("steps", 20, "optimizer steps (20)"),
        ("flops", 100_000_000, "training FLOPs (100,000,000)"),
        ("seconds", 1, "seconds of training (1)"),
    ],
)
def test_every_unit_of_the_budget_can_be_what_is_held_equal(chain: Path, unit: str, amount: int, words: str) -> None:
    steps, _ = steps_of(chain, (f"train.budget={{unit: {unit}, amount: {amount}}}",))
    assert budget_words(steps.entries()).startswith(f"at equal {words}, on ")
    for name in ("char", "bpe"):
        report = read_json(chain / "run/checkpoints" / name / "report.json")
        spent = report["seen"][unit]
        assert amount <= spent < amount + 2 * spent / report["seen"]["steps"] + 0.5 * (unit == "seconds")


def test_a_run_of_the_former_version_is_refused_and_still_writes(
    chain: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps_of(chain)[0].train("char")
    for name in (checkpoint.LAST, checkpoint.BEST):
        path = chain / "run/checkpoints/char" / name
        torch.save(torch.load(path, weights_only=True) | {"training_version": checkpoint.TRAINING_VERSION - 1}, path)
    said = rf"by version {checkpoint.TRAINING_VERSION - 1} of the training.*`make train-char FORCE=1`"
    with pytest.raises(CheckpointError, match=said):
        steps_of(chain)[0].train("char")
    sample.main(["--config", str(chain / "words.yaml"), "--contestant", "char", "--tokens", "5", "--prompt", "the"])
    assert len(capsys.readouterr().out) == len("the") + 5 + 1


def test_an_up_to_date_chain_reads_each_file_for_its_hash_at_most_once(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    monkeypatch.setattr("data.files.time.time_ns", lambda: now + 60 * 10**9)  # all files have been there for a minute
    monkeypatch.setattr("data.files._HASHES", {})
    read: Counter[int] = Counter()
    digest = hashlib.file_digest

    def counted(file: Any, name: str) -> Any:
        read[os.fstat(file.fileno()).st_ino] += 1
        return digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    steps, _ = steps_of(finished)
    steps.compare()
    assert steps.num_done == 0 and len(read) > 30
    assert set(read.values()) == {1}


def test_a_text_is_encoded_once_by_the_tokenizer_that_was_trained_on_it(
    chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[str] = []
    original = BPETokenizer.encode_documents

    def counted(self: BPETokenizer, texts: Any, **options: Any) -> Any:
        encoded.extend(texts)
        return original(self, texts, **options)

    monkeypatch.setattr(BPETokenizer, "encode_documents", counted)
    steps, lines = steps_of(chain)
    splits = steps.encode("bpe")
    assert "".join(encoded) == "".join(split.text for split in steps.data().values())
    shown = {line.split()[0]: line.split()[4] for line in "\n".join(lines).split("\n") if " characters -> " in line}
    assert shown == {name: f"{len(split.ids):,}" for name, split in splits.items()}
    assert steps.take_ids("bpe") == {}  # nothing is held on to


@pytest.mark.parametrize("module", ["data", "tokenizer", "trace"])
def test_commands_that_need_no_torch_do_not_wait_for_it(chain: Path, module: str) -> None:
    steps_of(chain)[0].tokenizer("bpe")
    options = [] if module == "trace" else ["--config", "words.yaml"]
    code = f"import sys\nfrom scripts import {module}\n{module}.main({options!r})\nassert 'torch' not in sys.modules"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=chain, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
