"""compare/calibrate/judge.py and its command: the right metric passes, every wrong one is found out."""

import json
import math
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from compare import cli
from compare.calibrate.exact_models import OracleModel, UniformModel
from compare.calibrate.judge import (
    SPLIT_SEEDS,
    Calibration,
    Exact,
    Plan,
    Trained,
    as_text,
    calibrate,
    full_plans,
    judge,
    write_experiment,
)
from compare.calibrate.known_sources import KnownSource, grammar_source, markov_source
from compare.certainty.intervals import Interval
from compare.experiment import load_experiment
from compare.steps import Steps
from data.errors import DataError, UserError
from model import windows
from model.evaluate import evaluate_split
from model.settings import EvaluateConfig
from model.windows import ScoringError, Windows
from model_helpers import CharTable, encoded_splits
from scripts import calibrate as calibrate_command
from tokenizer.bpe import BPETokenizer

SMALL = Plan(
    source=markov_source("\nab é→", seed=3, mean_characters=25),
    num_chars={"train": 40_000, "val": 2_000, "test": 8_000},
    contestants={
        "char": {"tokenizer": {"kind": "char"}},
        "char_bpe": {"tokenizer": {"kind": "char_bpe", "vocab_size": 8}},
        "byte_bpe": {"tokenizer": {"kind": "byte_bpe", "vocab_size": 257}},
    },
    model={"block_size": 16, "embedding_dim": 32, "num_heads": 2, "num_layers": 1, "dropout": 0.0},
    train={
        "budget": {"unit": "steps", "amount": 200},
        "batch_size": 16,
        "learning_rate": 1e-2,
        "weight_decay": 0.0,
        "val_characters": 2_000,
        "val_every_fraction": 0.5,
        "num_threads": 1,
        "device": "cpu",
    },
)
SOURCE = Trained("source", 2.0, 1_000, Interval(-0.1, 0.1))


def quiet(_line: str) -> None:
    """No progress of the chain in the tests' output."""


def rows_of(calibration: Calibration) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in calibration.rows}


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Calibration]:
    """The small plan, run once."""
    root = tmp_path_factory.mktemp("calibrate")
    return root, calibrate(SMALL, root, echo=quiet)


@pytest.fixture
def trained_root(calibrated: tuple[Path, Calibration], tmp_path: Path) -> Path:
    """A copy with its models trained but not scored yet, so that a wrong metric scores them."""
    root = tmp_path / "copy"
    shutil.copytree(calibrated[0], root)
    for report in root.glob("*/checkpoints/*/report.json"):
        report.unlink()
    return root


# The judgement alone.


def judged(bits: float, low: float, high: float, num_chars: int = 1_000) -> dict[str, object]:
    trained = [Trained("char", bits, num_chars, Interval(low, high))]
    rows, is_straight = judge(rate=2.0, source=SOURCE, exact=[], trained=trained)
    assert is_straight is rows[-1]["is_straight"]
    return rows[-1]


def test_a_contestant_a_little_above_the_source_is_straight() -> None:
    row = judged(2.02, 0.01, 0.03)
    assert row["is_straight"] and row["verdict"] == "right, +1.00%"
    assert row["difference"] == pytest.approx(0.02)
    assert (row["low"], row["high"]) == (0.01, 0.03)


def test_below_the_source_is_bent_only_beyond_the_interval() -> None:
    assert judged(1.99, -0.02, 0.001)["is_straight"]
    row = judged(1.99, -0.02, -0.001)
    assert not row["is_straight"] and row["verdict"] == "WRONG: below source, -0.50%"


def test_over_two_percent_above_is_bent() -> None:
    assert judged(2.0399, 0.03, 0.05)["is_straight"]
    assert judged(2.0402, 0.03, 0.05)["verdict"] == "WRONG: over 2% above, +2.01%"
    assert not judged(math.nan, math.nan, math.nan)["is_straight"]
    assert not judged(math.inf, math.inf, math.inf)["is_straight"]


def test_other_characters_than_the_texts_are_bent() -> None:
    assert judged(2.02, 0.01, 0.03, num_chars=999)["verdict"] == "WRONG: -1 characters"


def test_what_must_be_exact_is_held_to_it() -> None:
    for measured, fine in ((5.0, True), (5.00004, True), (5.0001, False), (4.9999, False), (math.nan, False)):
        rows, is_straight = judge(rate=2.0, source=SOURCE, exact=[Exact("uniform", measured, 5.0)], trained=[])
        assert is_straight is fine
        assert rows[-1]["verdict"] == ("exact" if fine else "WRONG: must be 5.00000")


def test_a_sample_far_from_the_rate_is_bent() -> None:
    for bits, fine in ((1.97, True), (1.95, False), (2.05, False), (math.nan, False)):
        source = replace(SOURCE, bits_per_char=bits)
        assert judge(rate=2.0, source=source, exact=[], trained=[])[1] is fine


def test_one_bent_line_bends_the_ruler() -> None:
    good = Trained("good", 2.01, 1_000, Interval(0.0, 0.02))
    bad = replace(good, name="bad", interval=Interval(-0.2, -0.1))
    assert judge(rate=2.0, source=SOURCE, exact=[], trained=[good])[1]
    assert not judge(rate=2.0, source=SOURCE, exact=[], trained=[bad, good])[1]


def test_the_table_fits_a_terminal() -> None:
    trained = [Trained("a_long_name_of_its_own", 12.02, 1_000, Interval(-10.02, -9.03))]
    rows, is_straight = judge(rate=12.0, source=SOURCE, exact=[Exact("uniform", 1.0, 12.0)], trained=trained)
    text = as_text(Calibration("title", rows, is_straight))
    assert max(map(len, text.splitlines())) < 100
    assert text.count("WRONG") == 3
    assert text.splitlines()[0] == "title"


# Models of known score.


@pytest.mark.parametrize(
    "source", [markov_source("\nab é→", mean_characters=20), grammar_source()], ids=lambda s: s.name
)
def test_an_oracle_scores_exactly_the_sources_own_bits(source: KnownSource, tmp_path: Path) -> None:
    documents = source.draw(3_000, seed=8)
    tokens = CharTable("".join(sorted(source.alphabet, reverse=True)))  # ids in another order than the symbols
    split = encoded_splits(tmp_path, tokens, ["a\n"], documents)["val"]
    oracle = OracleModel(source, tokens, block_size=max(map(len, documents)) + 1)
    evaluation = evaluate_split(oracle, split, tokens, EvaluateConfig(batch_size=7, alarm_below_bits_per_char=0.0))
    own = float(source.document_bits(documents).sum())
    assert evaluation.total_nats / math.log(2) == pytest.approx(own, rel=1e-6)
    assert evaluation.bits_per_char == pytest.approx(own / len("".join(documents)), rel=1e-6)


def test_an_oracle_refuses_a_window_that_begins_inside_a_document(tmp_path: Path) -> None:
    source = markov_source("\nab", mean_characters=20)
    tokens = CharTable(source.alphabet)
    documents = source.draw(300, seed=1)
    split = encoded_splits(tmp_path, tokens, ["a\n"], documents)["val"]
    oracle = OracleModel(source, tokens, block_size=max(map(len, documents)) - 1)
    with pytest.raises(ValueError, match="block_size is too small"):
        evaluate_split(oracle, split, tokens, EvaluateConfig())


def test_a_uniform_model_has_equal_logits() -> None:
    model = UniformModel(11, block_size=4)
    logits = model(torch.zeros(2, 4, dtype=torch.long))
    assert logits.shape == (2, 4, 11)
    assert torch.equal(logits, torch.zeros(2, 4, 11))


# Through the whole chain.


def test_the_metric_is_right(calibrated: tuple[Path, Calibration]) -> None:
    calibration = calibrated[1]
    assert calibration.is_straight, as_text(calibration)
    names = list(rows_of(calibration))
    assert names[:2] == ["true rate", "the source's own bits"]
    assert names[2:] == ["oracle over char", *(f"uniform over {c}" for c in SMALL.contestants), *SMALL.contestants]
    assert calibration.rows[0]["bits_per_char"] == SMALL.source.entropy_rate()


def test_the_figures_are_those_of_the_stored_reports(calibrated: tuple[Path, Calibration]) -> None:
    root, calibration = calibrated
    documents = SMALL.source.draw(SMALL.num_chars["test"], SPLIT_SEEDS["test"])
    text = "".join(documents)
    own = SMALL.source.document_bits(documents).sum() / len(text)
    for name in SMALL.contestants:
        report = json.loads((root / "markov" / "checkpoints" / name / "report.json").read_text(encoding="utf-8"))
        row = rows_of(calibration)[name]
        assert row["bits_per_char"] == report["splits"]["test"]["bits_per_char"]
        assert report["splits"]["test"]["num_chars"] == len(text)
        assert report["splits"]["test"]["num_bytes"] == len(text.encode("utf-8")) > len(text)
        assert row["difference"] == pytest.approx(row["bits_per_char"] - own)
        assert row["low"] < row["difference"] < row["high"]
        assert row["bits_per_char"] >= own  # on this sample not even by chance below


def test_characters_and_bpe_agree_though_they_are_cut_otherwise(calibrated: tuple[Path, Calibration]) -> None:
    figures = [rows_of(calibrated[1])[name]["bits_per_char"] for name in SMALL.contestants]
    assert max(figures) / min(figures) < 1.02  # type: ignore[operator]
    folder = calibrated[0] / "markov" / "checkpoints"
    tests = [json.loads((folder / name / "report.json").read_text())["splits"]["test"] for name in SMALL.contestants]
    char, char_bpe, byte_bpe = (test["num_tokens"] for test in tests)
    assert char_bpe < char == tests[0]["num_chars"] < byte_bpe < tests[0]["num_bytes"]


def test_a_second_calibration_has_nothing_to_do(calibrated: tuple[Path, Calibration]) -> None:
    root, calibration = calibrated
    lines: list[str] = []
    assert calibrate(SMALL, root, echo=lines.append) == calibration
    assert lines and all("up to date" in line for line in lines)


def test_a_chain_that_changes_the_text_is_refused(tmp_path: Path) -> None:
    source = SMALL.source
    carriage = replace(source, alphabet=source.alphabet.replace("a", "\r"))  # cleaning makes it a newline
    with pytest.raises(DataError, match="not what source markov drew"):
        calibrate(replace(SMALL, source=carriage), tmp_path, echo=quiet)


def test_one_document_has_no_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = replace(
        SMALL, num_chars={"train": 4_000, "val": 300, "test": 1}, contestants={"char": SMALL.contestants["char"]}
    )
    one = replace(one, train={**SMALL.train, "budget": {"unit": "steps", "amount": 2}})
    with pytest.raises(DataError, match="draw at least two"):
        calibrate(one, tmp_path, echo=quiet)


# Wrong metrics. Each is caught by the chain's exact counts; and with those taken out, by the calibration itself.


def without_the_tail(plan: Callable[..., Windows]) -> Callable[..., Windows]:
    """No partial window but a document's first, as where a loop stops at n - block_size."""

    def bent(offsets: np.ndarray, *, num_context: int, block_size: int, stride: int) -> Windows:
        straight = plan(offsets, num_context=num_context, block_size=block_size, stride=stride)
        is_first = straight.starts + straight.shifts == straight.first_target - (num_context - 1)
        kept = is_first | (straight.lengths == block_size)
        return Windows(*(getattr(straight, name)[kept] for name in Windows.__dataclass_fields__))

    return bent


def without_the_first_token(plan: Callable[..., Windows]) -> Callable[..., Windows]:
    """A document's first token is context only, as where no newline stands before it."""

    def bent(offsets: np.ndarray, *, num_context: int, block_size: int, stride: int) -> Windows:
        straight = plan(offsets, num_context=num_context, block_size=block_size, stride=stride)
        return replace(straight, first_target=straight.first_target + 1)

    return bent


def decoded_one_by_one(self: BPETokenizer) -> np.ndarray:
    """Lengths by decoding each id alone, where a piece of a character becomes U+FFFD."""
    pieces = [self.decode_bytes([i]).decode("utf-8", errors="replace") for i in range(self.vocab_size)]
    return np.array([len(piece) for piece in pieces], dtype=np.int64)


BENDS = {"dropped tail": without_the_tail, "skipped first token": without_the_first_token}


def bend(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how == "single ids":
        monkeypatch.setattr(BPETokenizer, "token_num_chars", property(decoded_one_by_one))
    else:
        monkeypatch.setattr(windows, "plan_windows", BENDS[how](windows.plan_windows))


def take_out_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.windows.check_counts", lambda _counts, _figure: None)
    monkeypatch.setattr("model.evaluate.check_lengths", lambda _evaluation, _split: None)
    monkeypatch.setattr("model.val_sample.check_sample", lambda _text, _tokens: None)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("dropped tail", "tokens were not scored exactly once; token .* was scored 0 times"),
        ("skipped first token", "tokens were not scored exactly once; token 0 was scored 0 times"),
        (
            "single ids",
            r"test: scored \d+ characters and \d+ bytes, the text has \d+ and \d+|val: scored|the val sample has \d+ ",
        ),
    ],
)
def test_the_exact_counts_catch_a_bent_ruler(
    trained_root: Path, monkeypatch: pytest.MonkeyPatch, how: str, message: str
) -> None:
    bend(monkeypatch, how)
    with pytest.raises(ScoringError, match=message):
        calibrate(SMALL, trained_root, echo=quiet)


@pytest.mark.parametrize("how", ["dropped tail", "skipped first token"])
def test_the_calibration_catches_tokens_that_go_unpaid(
    trained_root: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    bend(monkeypatch, how)
    take_out_the_counts(monkeypatch)
    calibration = calibrate(SMALL, trained_root, echo=quiet)
    rows = rows_of(calibration)
    assert not calibration.is_straight
    # The oracle's block holds whole documents, so it has no partial window that could be dropped.
    assert rows["oracle over char"]["is_straight"] is (how == "dropped tail")
    for name in SMALL.contestants:
        assert str(rows[f"uniform over {name}"]["verdict"]).startswith("WRONG: must be"), name
        assert str(rows[name]["verdict"]).startswith("WRONG: below source"), name


def test_the_calibration_catches_lengths_of_single_ids(trained_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bend(monkeypatch, "single ids")
    take_out_the_counts(monkeypatch)
    rows = rows_of(calibrate(SMALL, trained_root, echo=quiet))
    assert "characters" in str(rows["byte_bpe"]["verdict"]) and not rows["byte_bpe"]["is_straight"]
    assert not rows["uniform over byte_bpe"]["is_straight"]
    assert rows["char"]["is_straight"] and rows["uniform over char_bpe"]["is_straight"]


def test_lengths_of_single_ids_do_not_even_get_encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bend(monkeypatch, "single ids")
    documents = {split: SMALL.source.draw(500, seed) for split, seed in SPLIT_SEEDS.items()}
    steps = Steps(load_experiment(write_experiment(SMALL, documents, tmp_path)), echo=quiet)
    with pytest.raises(UserError, match="the tokenizer's token_num_chars is wrong"):
        steps.encode("byte_bpe")


# The command.


def run_command(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.setattr(calibrate_command, "full_plans", lambda: [SMALL])
    monkeypatch.setattr(sys, "argv", ["calibrate", "--root", str(root)])
    cli.run(calibrate_command.main)


def test_the_command_prints_the_table_and_ends_well(
    calibrated: tuple[Path, Calibration], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, calibration = calibrated
    run_command(monkeypatch, root)
    printed = capsys.readouterr().out
    assert as_text(calibration) in printed
    assert printed.endswith("\nThe metric is right.\n")
    stored = json.loads((root / "calibration.json").read_text(encoding="utf-8"))
    assert stored[0]["rows"] == calibration.rows and stored[0]["is_straight"] is True


def test_the_command_ends_with_1_where_the_ruler_is_bent(
    trained_root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bend(monkeypatch, "skipped first token")
    take_out_the_counts(monkeypatch)
    with pytest.raises(SystemExit) as caught:
        run_command(monkeypatch, trained_root)
    assert caught.value.code == 1
    printed = capsys.readouterr().out
    assert "The metric is WRONG" in printed and "WRONG: below source" in printed


def test_the_full_plans_are_sound(tmp_path: Path) -> None:
    plans = full_plans()
    assert [plan.source.name for plan in plans] == ["markov", "grammar"]
    for plan in plans:
        documents = {split: plan.source.draw(300, seed) for split, seed in SPLIT_SEEDS.items()}
        experiment = load_experiment(write_experiment(plan, documents, tmp_path))
        assert [c.tokenizer.kind for c in experiment.contestants.values()] == ["char", "char_bpe", "byte_bpe"]
        assert experiment.layout.root == tmp_path / plan.source.name
        for name in experiment.contestants:
            Steps(experiment, echo=quiet).tokenizer(name)
    assert len({tuple(sorted(plan.num_chars.items())) for plan in plans}) == 1


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_full_calibration(tmp_path: Path) -> None:
    for plan in full_plans():
        calibration = calibrate(plan, tmp_path, echo=quiet)
        assert calibration.is_straight, as_text(calibration)
