"""The comparison on disk: figures that agree with each other and with the runs, and what makes it be written again."""

import csv
import html
import itertools
import json
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare import report
from compare.baselines.scores import BASELINES
from compare.certainty.intervals import Interval
from compare.experiment import Experiment, load_experiment
from compare.grids.sweep import sweep_of
from compare.marginal.estimate import VERSION as MARGINAL_VERSION
from compare.marginal.result import Gap, MarginalGap, MeasuredRun
from compare.outputs.comparison import BaselineLine, Comparison
from compare.outputs.exports import table_csv, table_latex
from compare.outputs.text import comparison_text
from compare.page.curves import curve_paths
from compare.report import Materials, comparison_on_disk, write_comparison
from compare.runs import Entry
from compare.steps import Steps
from compare.table import TERMINAL_COLUMNS, Row, row_of, table_cells
from data import splits
from data.errors import ReportError
from data.files import read_json, sha256_file, sha256_text
from data.inputs import SEAL, seal
from report_helpers import changed

NAMES = ("bpe", "char")  # the order of the experiment file
SEEDS = (1, 2)
KEYS = {
    *("version", "experiment", "answer", "how_sure", "noise", "stronger", "budget", "rows", "not_held_equal"),
    *("statistics", "baselines", "where_bits_go", "intrinsic", "sweep", "marginal", "reports", "fingerprints"),
    *("test_text_sha256", "test_chars", "text_path", "model_shape", "batch", "flops_formula", "about", "corpus"),
    *("clean", "mixtures", "ladder", "inputs", "outputs", "content_sha256"),
}


@dataclass(frozen=True)
class Finished:
    """A comparison of two contestants over two seeds and two documents, as `make compare` leaves it."""

    root: Path
    experiment: Experiment
    entries: list[Entry]
    materials: Materials
    comparison: Comparison

    @property
    def printed(self) -> str:
        return comparison_text(self.comparison)

    @property
    def folder(self) -> Path:
        return self.root / "reports"

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = read_json(self.folder / "comparison.json")
        return found

    def copy(self, folder: Path) -> Path:
        """The reports in a folder that a test may change."""
        return shutil.copytree(self.folder, folder / "reports")

    def is_up_to_date(self, folder: Path, entries: list[Entry] | None = None) -> bool:
        return comparison_on_disk(folder, entries or self.entries, self.experiment, self.materials) is not None

    def write(self, folder: Path, entries: list[Entry] | None = None) -> None:
        write_comparison(folder, self.experiment, entries or self.entries, self.materials, echo=lambda _line: None)

    def report_of(self, name: str, seed: int) -> dict[str, Any]:
        found: dict[str, Any] = read_json(self.root / "checkpoints" / name / f"seed_{seed}" / "report.json")
        return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("report")
    corpus = write_corpus(folder / "texts", num_words=8_000, extra=" 12 naïve")
    values = experiment_values(folder / "run", corpus) | {"seeds": list(SEEDS)}
    experiment = load_experiment(write_experiment(folder / "words.yaml", values))
    steps = Steps(experiment, echo=lambda _line: None)
    comparison = steps.compare()
    materials = Materials(
        splits=steps.data(),
        corpus=splits.read_manifest(steps.layout, "words"),
        tokenizers={name: steps.tokenizer(name) for name in NAMES},
        tokenizer_paths={name: steps.layout.tokenizer(name) for name in NAMES},
        test={name: steps.encode(name)["test"] for name in NAMES},
    )
    return Finished(folder / "run", experiment, steps.entries(), materials, comparison)


@pytest.fixture
def curves_and_samples_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes the most time and depends on the runs alone: the curves are touched, the samples made up."""
    sample = {"prompt": "\n", "text": "made up", "temperature": 0.0, "seed": 1}
    monkeypatch.setattr(report, "draw_curves", lambda folder, *_: [p.touch() for p in curve_paths(folder)])
    monkeypatch.setattr(report, "samples_of", lambda *_arguments: [sample])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# --- what comparison.json holds ----------------------------------------------------------------------------------


def test_it_holds_exactly_what_is_promised(finished: Finished) -> None:
    summary = finished.summary
    assert set(summary) == KEYS
    assert summary["version"] == report.VERSION
    assert summary["experiment"] == "words"
    assert (summary["sweep"], summary["marginal"]) == (None, {})
    assert set(contents(finished.folder)) == {
        *("comparison.json", "comparison.md", "comparison.txt", "index.html", "baselines.json", "ngram_nats.npz"),
        *("verdict.json", "table.csv", "table.tex"),
        *(path.name for path in curve_paths(finished.folder)),
    }


def test_rows_and_statistics_are_the_means_of_the_runs_reports(finished: Finished) -> None:
    summary = finished.summary
    assert [row["contestant"] for row in summary["rows"]] == list(summary["statistics"]["contestants"]) == list(NAMES)
    for row in summary["rows"]:
        name = row["contestant"]
        tests = [finished.report_of(name, seed)["splits"]["test"] for seed in SEEDS]
        bits = [test["bits_per_char"] for test in tests]
        assert bits[0] != bits[1]
        one = summary["statistics"]["contestants"][name]
        assert one["seeds"] == row["seeds"] == list(SEEDS)
        assert one["bits_per_char"] == pytest.approx(bits, rel=1e-12)
        assert row["bits_per_char"] == pytest.approx(np.mean(bits), rel=1e-12)
        assert one["mean"] == pytest.approx(row["bits_per_char"], rel=1e-12)
        assert one["sd"] == pytest.approx(row["bits_per_char_sd"], rel=1e-9)
        assert row["bits_per_char_sd"] == pytest.approx(abs(bits[0] - bits[1]) / math.sqrt(2))
        assert row["disjoint_bits_per_char"] == pytest.approx(np.mean([t["disjoint_bits_per_char"] for t in tests]))
        seconds = [finished.report_of(name, seed)["seen"]["seconds"] for seed in SEEDS]
        assert row["seconds"] == pytest.approx(np.mean(seconds))


def test_the_pair_and_the_verdict_are_those_of_the_means(finished: Finished) -> None:
    summary = finished.summary
    means = {name: one["mean"] for name, one in summary["statistics"]["contestants"].items()}
    [pair] = summary["statistics"]["pairs"]
    assert (pair["a"], pair["b"]) == NAMES
    assert pair["difference"] == pytest.approx(means["bpe"] - means["char"])
    reports = {name: [finished.report_of(name, seed) for seed in SEEDS] for name in NAMES}
    bits = {name: [one["splits"]["test"]["bits_per_char"] for one in found] for name, found in reports.items()}
    assert pair["by_seed"] == pytest.approx(np.subtract(bits["bpe"], bits["char"]).tolist())
    for interval in (pair["documents"], pair["blocks"]):
        assert interval["low"] <= pair["difference"] <= interval["high"]
    better, worse = sorted(NAMES, key=lambda name: means[name])
    assert pair["outcome"] == ("a" if better == "bpe" else "b")  # far apart after so little training
    n_gram = "character n-gram"
    assert n_gram in summary["stronger"]
    assert summary["answer"].startswith("Too little training to say: ") and n_gram in summary["answer"]
    assert summary["answer"].endswith(f"bpe is {'better' if better == 'bpe' else 'worse'} than char.")
    [sure] = summary["how_sure"]
    gap = means[worse] - means[better]
    assert sure.startswith(f"{better} needs {gap:.3f} fewer bits per character than {worse} (95 % interval ")
    assert sure.endswith(", over 2 documents and 2 seeds).")
    assert summary["noise"] == (
        "The 95 % intervals are somewhat too wide: with 2 seeds and 2 documents they can cover 98 %."
    )
    num_chars = len(finished.materials.splits["test"].text)
    assert summary["budget"] == f"at equal characters seen (6,000), on {num_chars:,} test characters"


def test_verdict_json_is_the_verdict_for_programs(finished: Finished) -> None:
    summary, found = finished.summary, read_json(finished.folder / "verdict.json")
    assert (found["version"], found["answer"], found["baseline"]) == (2, summary["answer"], "char")
    assert found["stronger_than_all_models"] == summary["stronger"]
    assert (found["documents"], found["seeds"], found["training_noise"]) == (2, [1, 2], "measured")
    [pair], [own] = found["pairs"], summary["statistics"]["pairs"]
    assert {key: pair[key] for key in ("a", "b", "difference", "interval", "margin")} == {
        key: own[key] for key in ("a", "b", "difference", "interval", "margin")
    }
    assert pair["outcome"] == {"a": "a_better", "b": "b_better"}[own["outcome"]]


def test_the_tables_for_programs_hold_the_figures_in_full(finished: Finished) -> None:
    lines = list(csv.reader((finished.folder / "table.csv").read_text(encoding="utf-8").splitlines()))
    assert lines[0] == ["", *NAMES]
    table = {line[0]: line[1:] for line in lines}
    rows = finished.summary["rows"]
    assert [float(one) for one in table["bits per character (test)"]] == [row["bits_per_char"] for row in rows]
    latex = (finished.folder / "table.tex").read_text(encoding="utf-8").split("\n")
    assert latex[0] == r"\begin{tabular}{lrr}" and latex[-2] == r"\end{tabular}"
    assert latex[2] == r" & bpe & char \\"
    assert all(line.endswith(r"\\") for line in latex[4:-3])
    strange = [replace(row, contestant="a_b%&#") for row in finished.comparison.rows]
    assert r"a\_b\%\&\#" in table_latex(strange)
    assert next(csv.reader(table_csv(strange).splitlines())) == ["", "a_b%&#", "a_b%&#"]


def test_a_comparison_comes_back_from_its_file(finished: Finished) -> None:
    assert Comparison.from_json(finished.summary) == finished.comparison
    page = finished.comparison._repr_html_()
    assert html.escape(finished.comparison.answer) in page and "<table>" in page
    strange = replace(finished.comparison, rows=(replace(finished.comparison.rows[0], contestant="<b>"),))
    assert "<b>" not in strange._repr_html_() and "&lt;b&gt;" in strange._repr_html_()


def test_the_bits_of_the_classes_add_up_to_the_total(finished: Finished) -> None:
    summary = finished.summary
    where = summary["where_bits_go"]
    num_chars = len(finished.materials.splits["test"].text)
    assert where["num_chars"] == num_chars
    for row in summary["rows"]:
        name = row["contestant"]
        total = where["total_bits"][name]
        assert total == pytest.approx(row["bits_per_char"] * num_chars, rel=1e-6)  # float32 means over the seeds
        for classes in (where["kinds"], where["positions"]):
            assert sum(one["bits"][name] for one in classes) == pytest.approx(total, rel=1e-12)
    assert {"digit", "non-ASCII", "word start"} <= {one["name"] for one in where["kinds"]}
    assert sum(one["num_chars"] for one in where["kinds"]) == num_chars
    assert where["unseen"]["num_distinct"] == 0


def test_the_intrinsic_numbers_are_those_of_the_table(finished: Finished) -> None:
    summary = finished.summary
    for row in summary["rows"]:
        found = summary["intrinsic"][row["contestant"]]
        assert found["chars_per_token"] == pytest.approx(row["chars_per_token"], rel=1e-12)
        assert found["vocab_size"] == row["vocab_size"]
        parameters = row["parameters_embedding"] + row["parameters_rest"]
        assert found["embedding_share"] == row["parameters_embedding"] / parameters
    assert summary["intrinsic"]["char"]["chars_per_token"] == 1.0 < summary["intrinsic"]["bpe"]["chars_per_token"]


def test_the_baselines_are_those_of_this_text(finished: Finished) -> None:
    baselines = {one["name"]: one for one in finished.summary["baselines"]}
    assert list(baselines) == [baseline.name for baseline in BASELINES]
    alphabet = set("".join(split.text for split in finished.materials.splits.values()))
    assert baselines["uniform"]["bits_per_char"] == math.log2(len(alphabet))
    assert baselines["order-0"]["bits_per_char"] < baselines["uniform"]["bits_per_char"]
    kept = read_json(finished.folder / "baselines.json")
    assert {name: one["bits_per_char"] for name, one in baselines.items()} == {
        name: one["bits_per_char"] for name, one in kept.items()
    }


def test_identities_are_those_of_the_files(finished: Finished) -> None:
    summary = finished.summary
    for name in NAMES:
        folders = [finished.root / "checkpoints" / name / f"seed_{seed}" for seed in SEEDS]
        assert summary["reports"][name] == [sha256_file(folder / "report.json") for folder in folders]
        assert summary["fingerprints"][name] == finished.materials.tokenizers[name].fingerprint()
    text = finished.root / "data/processed/words_test_clean.txt"
    assert summary["test_text_sha256"] == sha256_file(text)
    assert summary["corpus"]["source"] == "text" and "splits" not in summary["corpus"]
    assert summary["flops_formula"] == finished.report_of("bpe", 2)["flops_formula"]


def test_what_was_not_held_equal_is_said(finished: Finished) -> None:
    said = finished.summary["not_held_equal"]
    for begin in ("embedding parameters: bpe ", "context in characters (mean): bpe "):
        assert any(line.startswith(begin) for line in said), begin
    assert not any(line.startswith(("train.", "model.", "tokenizer.", "context:")) for line in said)


# --- what is read ------------------------------------------------------------------------------------------------


def test_the_printed_comparison_is_narrow_and_holds_the_figures(finished: Finished) -> None:
    summary = finished.summary
    assert finished.printed == (finished.folder / "comparison.txt").read_text(encoding="utf-8")
    lines = finished.printed.split("\n")
    assert [line for line in lines if len(line) > TERMINAL_COLUMNS] == []
    assert all(line == line.rstrip() for line in lines)
    unwrapped = " ".join(finished.printed.split())
    assert unwrapped.startswith(f"words: characters or BPE? {summary['answer']} - {summary['how_sure'][0]}")
    for cells in table_cells(finished.comparison.rows):
        assert any(line.split() == " ".join(cells).split() for line in lines), cells
    [pair] = summary["statistics"]["pairs"]
    found = [line for line in lines if line.startswith("  bpe - char ")]
    assert " ".join(" ".join(line.split()[3:]) for line in found).split() == [
        f"{pair['difference']:+.4f}",
        *("bpe better" if pair["outcome"] == "a" else "char better").split(),
        *(
            word
            for kind in ("interval", "documents", "blocks")
            for word in f"{pair[kind]['low']:+.4f} to {pair[kind]['high']:+.4f}".split()
        ),
        *(f"{one:+.4f}" for one in pair["by_seed"]),
    ]
    assert unwrapped.endswith(f"Not held equal: {' '.join(f'- {one}' for one in summary['not_held_equal'])}")


def baseline_lines(text: str) -> str:
    """One line for each baseline; those that were wrapped are whole again."""
    lines = text.split("Baselines, bits per character on test:\n")[1].split("\n\n")[0]
    return re.sub(r"\n {3,}", " ", lines)


def test_baselines_that_need_fewer_bits_name_whom_they_beat(finished: Finished) -> None:
    summary = finished.summary
    printed = baseline_lines(finished.printed).split("\n")
    bits = {row["contestant"]: row["bits_per_char"] for row in summary["rows"]}
    for one, line in zip(summary["baselines"], printed, strict=True):
        beaten = [name for name in NAMES if bits[name] > one["bits_per_char"]]
        words = f" fewer bits than {', '.join(beaten)}" if beaten else ""
        if len(beaten) == len(NAMES):
            lead = Interval(**one["lead"])
            words += f"; lead over the best model {lead} (95 %{'' if lead.low > 0.0 else ', not decided'})"
        assert " ".join(line.split()) == f"{one['name']} {one['bits_per_char']:.4f}{words}"
    low, high = sorted(bits.values())
    made_up = tuple(BaselineLine("x", value, "", None) for value in (low - 0.1, low, (low + high) / 2, high))
    worse = max(NAMES, key=lambda name: bits[name])
    found = baseline_lines(comparison_text(replace(finished.comparison, baselines=made_up))).split("\n")
    ends = [line.partition("fewer bits than ")[2] for line in found]
    of_all = f"{', '.join(NAMES)}; no interval of the lead"
    assert ends == [of_all, worse, worse, ""]  # an equal figure beats nobody


def test_baselines_are_stronger_only_if_they_beat_every_contestant(finished: Finished) -> None:
    leads = {"uniform": Interval(0.5, 1.5), "xz": Interval(0.05, 0.15), "bz2": Interval(-0.05, 0.15), "gzip": None}
    made_up = tuple(BaselineLine(name, 1.0, "", lead) for name, lead in leads.items())
    assert replace(finished.comparison, baselines=made_up).stronger == ("xz",)


def test_the_markdown_holds_table_intervals_and_baselines(finished: Finished) -> None:
    summary = finished.summary
    markdown = (finished.folder / "comparison.md").read_text(encoding="utf-8")
    lines = markdown.split("\n")
    assert lines[:3] == ["# words: characters or BPE?", "", f"**{summary['answer']}**"]
    tables = [list(rows) for is_row, rows in itertools.groupby(lines, lambda line: line.startswith("|")) if is_row]
    figures, pairs, baselines = ([[cell.strip() for cell in row[1:-1].split("|")] for row in t] for t in tables)
    cells = [[cell.strip() for cell in line] for line in table_cells(finished.comparison.rows)]
    assert [figures[0], *figures[2:]] == cells
    assert figures[1] == ["---", "---:", "---:"]
    assert [row[0] for row in pairs[2:]] == ["bpe - char"]
    assert {len(row) for row in pairs} == {7} and {len(row) for row in baselines} == {4}
    for one, row in zip(summary["baselines"], baselines[2:], strict=True):
        assert (row[0], row[1], row[3]) == (one["name"], f"{one['bits_per_char']:.4f}", one["note"].strip())
    for picture in ("curve_characters.svg", "curve_seconds.svg"):
        assert f"]({picture})" in markdown and (finished.folder / picture).exists()
    for sentence in (*summary["not_held_equal"], f"bpe: tokenizer {summary['fingerprints']['bpe']}"):
        assert f"- {sentence}" in lines
    assert f"test text sha256 {summary['test_text_sha256']}" in markdown


def test_the_page_says_what_the_comparison_says(finished: Finished) -> None:
    page = (finished.folder / "index.html").read_text(encoding="utf-8")
    summary = finished.summary
    for sentence in summary["answer"].split(". "):  # the first one is the headline
        assert sentence.rstrip(".") in html.unescape(page)
    for row in summary["rows"]:
        assert f"{row['bits_per_char']:.4f}" in page
    for name in NAMES:
        for sha256 in summary["reports"][name]:
            assert sha256 in page


# --- when it is written again ------------------------------------------------------------------------------------


def test_what_is_up_to_date_is_not_written_again(finished: Finished) -> None:
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in finished.folder.iterdir()}
    lines: list[str] = []
    steps = Steps(finished.experiment, echo=lines.append)
    assert comparison_text(steps.compare()) == finished.printed
    assert steps.num_done == 0
    assert lines[-1] == f"compare: up to date ({finished.folder})"
    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in finished.folder.iterdir()} == before


@pytest.mark.parametrize(
    "name",
    [
        "comparison.json",
        "comparison.md",
        "comparison.txt",
        "index.html",
        "curve_seconds.svg",
        "verdict.json",
        "table.csv",
    ],
)
def test_a_missing_file_is_noticed(finished: Finished, tmp_path: Path, name: str) -> None:
    folder = finished.copy(tmp_path)
    assert finished.is_up_to_date(folder)
    (folder / name).unlink()
    assert not finished.is_up_to_date(folder)


def test_a_damaged_comparison_is_noticed(finished: Finished, tmp_path: Path) -> None:
    folder = finished.copy(tmp_path)
    (folder / "comparison.json").write_text('{"version": ', encoding="utf-8")
    assert not finished.is_up_to_date(folder)


def test_an_older_version_is_noticed(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "VERSION", report.VERSION + 1)
    assert not finished.is_up_to_date(finished.folder)


def test_a_change_of_any_seeds_run_is_noticed(finished: Finished) -> None:
    assert finished.is_up_to_date(finished.folder)
    for number, seed in itertools.product(range(len(NAMES)), range(len(SEEDS))):
        entries = list(finished.entries)
        runs = list(entries[number].runs)
        runs[seed] = replace(runs[seed], report_sha256=sha256_text("another report"))
        entries[number] = Entry(entries[number].name, tuple(runs))
        assert not finished.is_up_to_date(finished.folder, entries)
    fewer = [Entry(entry.name, entry.runs[:1]) for entry in finished.entries]
    assert not finished.is_up_to_date(finished.folder, fewer)
    assert not finished.is_up_to_date(finished.folder, finished.entries[:1])


def test_new_sentences_on_what_was_not_held_equal_are_noticed(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "not_held_equal", lambda *_arguments: ["something else"])
    assert not finished.is_up_to_date(finished.folder)


def test_a_removed_page_is_made_again_as_it_was(finished: Finished) -> None:
    before = contents(finished.folder)
    (finished.folder / "index.html").unlink()
    lines: list[str] = []
    steps = Steps(finished.experiment, echo=lines.append)
    assert comparison_text(steps.compare()) == finished.printed
    assert steps.num_done == 1
    assert lines[-1] == f"compare: wrote {finished.folder / 'index.html'}"
    assert contents(finished.folder) == before


# --- sweep and marginal bound next to it ------------------------------------------------------------------------


def sweep_beside(finished: Finished, folder: Path, **changes: Any) -> dict[str, Any]:
    """A sweep's file in `folder`: the experiment's own points, with `changes`."""
    sweep = sweep_of(finished.experiment, finished.entries).as_json() | changes
    (folder / "sweep.json").write_text(json.dumps(seal(sweep)), encoding="utf-8")
    stored: dict[str, Any] = read_json(folder / "sweep.json")
    return {key: value for key, value in stored.items() if key != SEAL}


def said(summary: Mapping[str, Any]) -> dict[str, Any]:
    """A comparison without what tells how it was made."""
    return {key: value for key, value in summary.items() if key not in ("inputs", "outputs", SEAL)}


@pytest.mark.usefixtures("curves_and_samples_are_left_out")
def test_a_sweep_of_the_same_text_is_taken_up_and_let_go(finished: Finished, tmp_path: Path) -> None:
    folder = finished.copy(tmp_path)
    without = contents(folder)
    sweep = sweep_beside(finished, folder)
    assert not finished.is_up_to_date(folder)
    finished.write(folder)
    stored = read_json(folder / "comparison.json")
    assert said(stored) == said(finished.summary) | {"sweep": sweep}
    assert 'id="sweep"' in (folder / "index.html").read_text(encoding="utf-8")
    assert 'id="sweep"' not in without["index.html"].decode("utf-8")
    assert finished.is_up_to_date(folder)
    sweep_beside(finished, folder, experiment="another")
    assert not finished.is_up_to_date(folder)
    (folder / "sweep.json").unlink()
    assert not finished.is_up_to_date(folder)


def test_a_sweep_of_another_text_is_left_alone(finished: Finished, tmp_path: Path) -> None:
    folder = finished.copy(tmp_path)
    for key in ("test_text_sha256", "test_borders_sha256"):
        sweep_beside(finished, folder, **{key: "0" * 64})
        assert finished.is_up_to_date(folder), key
    sweep_beside(finished, folder, version=0)  # of before it said which documents it was scored on
    assert finished.is_up_to_date(folder)
    sweep_beside(finished, folder, reports={"bpe": ["0" * 64]})  # of runs that are there no more
    assert finished.is_up_to_date(folder)


def marginal_of(finished: Finished, name: str, **changes: Any) -> dict[str, Any]:
    """A bound for the second seed's checkpoint of a contestant, as `make marginal` stores it."""
    run = next(entry for entry in finished.entries if entry.name == name).runs[1]
    gap = MarginalGap(
        samples=8,
        seed=1,
        num_passages=2,
        num_chars=4_000,
        canonical_bits_per_char=2.0,
        marginal_bits_per_char=1.975,
        gap_bits_per_char=Gap(0.025, 0.015, 0.035),
        gap_percent=Gap(1.25, 0.75, 1.75),
        effective_samples=None,
        note="",
        passages=(),
    )
    measured = MeasuredRun(
        version=MARGINAL_VERSION,
        test_text_sha256=run.test.text_sha256,
        test_borders_sha256=run.test_borders_sha256,
        tokenizer_fingerprint=run.report.tokenizer.fingerprint,
        checkpoint_sha256=run.report.checkpoint_sha256,
        gap=gap,
    )
    found = measured.as_json(passages=True) | {"passages": ["left out"]}
    return seal(found | changes)


@pytest.mark.usefixtures("curves_and_samples_are_left_out")
def test_the_marginal_bound_of_a_run_is_taken_up_and_said(finished: Finished, tmp_path: Path) -> None:
    folder = finished.copy(tmp_path)
    zero = {"value": 0.0, "low": 0.0, "high": 0.0}
    found = {"bpe": marginal_of(finished, "bpe"), "char": marginal_of(finished, "char", gap_percent=zero)}
    (folder / "marginal.json").write_text(json.dumps(found), encoding="utf-8")
    assert not finished.is_up_to_date(folder)
    finished.write(folder)
    assert finished.is_up_to_date(folder)
    for one in found.values():
        del one["passages"]
        del one[SEAL]
    now, before = said(read_json(folder / "comparison.json")), said(finished.summary)
    assert now == before | {"marginal": found, "statistics": now["statistics"]}
    largest = max(one["mean"] for one in before["statistics"]["contestants"].values())
    assert now["statistics"]["pairs"][0]["margin"] == pytest.approx(0.0125 * largest)
    assert before["statistics"]["pairs"][0]["margin"] == pytest.approx(0.005 * largest)
    sentence = "bpe: all segmentations together need about 1.2 % fewer bits than its own (95 % interval 0.8 to 1.8 %"
    for name in ("comparison.txt", "comparison.md"):
        text = " ".join((folder / name).read_text(encoding="utf-8").split())
        assert f" - {sentence}" in text, name
        assert "char: all segmentations" not in text  # one segmentation only: nothing to say
    assert sentence in html.unescape((folder / "index.html").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("curves_and_samples_are_left_out")
def test_a_marginal_bound_over_one_passage_has_no_interval(finished: Finished, tmp_path: Path) -> None:
    folder = finished.copy(tmp_path)
    found = {"bpe": marginal_of(finished, "bpe", gap_percent={"value": 1.25, "low": None, "high": None})}
    (folder / "marginal.json").write_text(json.dumps(found), encoding="utf-8")
    finished.write(folder)
    sentence = "fewer bits than its own (one passage: no interval, 4,000 characters)"
    for name in ("comparison.txt", "comparison.md", "index.html"):
        text = " ".join(html.unescape((folder / name).read_text(encoding="utf-8")).split())
        assert sentence in text, name


def test_an_edited_neighbour_is_refused(finished: Finished, tmp_path: Path) -> None:
    folder = finished.copy(tmp_path)
    found = {"bpe": marginal_of(finished, "bpe")}
    found["bpe"]["gap_percent"]["value"] = 9.0
    (folder / "marginal.json").write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(ReportError, match=r"marginal\.json: bpe is not as it was written; run `make marginal CONT"):
        finished.is_up_to_date(folder)
    (folder / "marginal.json").unlink()
    sweep_beside(finished, folder)
    edited = read_json(folder / "sweep.json") | {"experiment": "edited"}
    (folder / "sweep.json").write_text(json.dumps(edited), encoding="utf-8")
    with pytest.raises(ReportError, match=r"sweep\.json is not as it was written; run `make sweep`"):
        finished.is_up_to_date(folder)


def test_a_neighbour_with_an_edited_version_is_no_older_one(finished: Finished, tmp_path: Path) -> None:
    folder = finished.copy(tmp_path)
    found = {"bpe": marginal_of(finished, "bpe") | {"version": 0}}
    (folder / "marginal.json").write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(ReportError, match=r"marginal\.json: bpe is not as it was written"):
        finished.is_up_to_date(folder)
    (folder / "marginal.json").unlink()
    sweep_beside(finished, folder)
    edited = read_json(folder / "sweep.json") | {"version": 0}
    (folder / "sweep.json").write_text(json.dumps(edited), encoding="utf-8")
    with pytest.raises(ReportError, match=r"sweep\.json is not as it was written"):
        finished.is_up_to_date(folder)


@pytest.mark.parametrize("key", ["version", "checkpoint_sha256", "test_text_sha256", "test_borders_sha256"])
def test_a_marginal_bound_of_another_run_or_text_is_left_alone(finished: Finished, tmp_path: Path, key: str) -> None:
    folder = finished.copy(tmp_path)
    found = {"bpe": marginal_of(finished, "bpe", **{key: "0" * 64}), "gone": marginal_of(finished, "bpe")}
    (folder / "marginal.json").write_text(json.dumps(found), encoding="utf-8")
    assert finished.is_up_to_date(folder)


@pytest.mark.parametrize("command", ["sweep", "marginal"])
def test_a_damaged_neighbour_names_the_file_and_the_ways_on(finished: Finished, tmp_path: Path, command: str) -> None:
    folder = finished.copy(tmp_path)
    (folder / f"{command}.json").write_text("{", encoding="utf-8")
    with pytest.raises(
        ReportError, match=rf"{command}\.json is not valid JSON.*; run `make {command}` to make it again, or r"
    ):
        finished.is_up_to_date(folder)


# --- what is refused ---------------------------------------------------------------------------------------------


def with_report(entry: Entry, number: int, split: str, changes: Mapping[str, Any]) -> Entry:
    """`entry` with `changes` of a split's part in the report of one of its runs."""
    runs = list(entry.runs)
    runs[number] = replace(runs[number], report=changed(runs[number].report, {"splits": {split: changes}}))
    return Entry(entry.name, tuple(runs))


@pytest.mark.parametrize(("number", "split"), [(0, "test"), (1, "test"), (1, "val")])
def test_different_texts_are_refused_and_nothing_is_written(
    finished: Finished, tmp_path: Path, number: int, split: str
) -> None:
    other = with_report(finished.entries[1], number, split, {"text_sha256": "0" * 64})
    with pytest.raises(ReportError, match=f"were scored on different {split} texts"):
        finished.write(tmp_path, [finished.entries[0], other])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("curves_and_samples_are_left_out")
def test_the_comparison_says_it_is_done_only_at_the_end(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished.copy(tmp_path)
    (folder / "comparison.json").unlink()

    def stop(_path: Path, _page: Mapping[str, Any]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "write_page", stop)
    with pytest.raises(KeyboardInterrupt):
        finished.write(folder)
    assert not finished.is_up_to_date(folder)


@pytest.mark.usefixtures("curves_and_samples_are_left_out")
def test_one_contestant_with_one_seed_is_reported_without_intervals(finished: Finished, tmp_path: Path) -> None:
    alone = [Entry("bpe", finished.entries[0].runs[:1])]
    finished.write(tmp_path, alone)
    summary = read_json(tmp_path / "comparison.json")
    assert set(summary) == KEYS
    assert [Row.from_json(row) for row in summary["rows"]] == [row_of(alone[0])]
    assert (summary["statistics"]["pairs"], summary["rows"][0]["bits_per_char_sd"]) == ([], None)
    assert summary["not_held_equal"] == []
    assert summary["answer"].endswith("bpe is the only contestant.")
    text = (tmp_path / "comparison.txt").read_text(encoding="utf-8")
    assert "standard deviation over seeds" not in text
    assert finished.is_up_to_date(tmp_path, alone)
