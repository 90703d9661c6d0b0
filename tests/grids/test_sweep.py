"""A real sweep of two sizes and two split patterns, small enough for every run of the tests; and its parts."""

import contextlib
import io
import json
import signal
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare import cli
from compare.experiment import load_experiment
from compare.grids.sweep import (
    VERSION,
    Point,
    Reference,
    Sweep,
    check_is_sweep,
    draw_sweep,
    line_labels,
    sweep_as_text,
    sweep_is_up_to_date,
    sweep_of,
    sweep_paths,
    write_sweep,
)
from compare.runs import Entry, Run
from compare.steps import Steps
from data.errors import ConfigError, DataError, ReportError
from data.files import read_json
from model import checkpoint
from model.report_file import BudgetFacts
from model.training.loop import Run as TrainingRun
from report_helpers import changed
from scripts import sweep

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
SIZES = (262, 275)


def sweep_values(root: Path, corpus: dict[str, str]) -> dict[str, Any]:
    """Four points, in an order that is not the sweep's, and one reference."""
    values: dict[str, Any] = experiment_values(root, corpus)
    values["contestants"] = {"a_char": {"tokenizer": {"kind": "char"}}} | {
        f"{pattern}_{size}": {"tokenizer": {"kind": "byte_bpe", "split_pattern": pattern, "vocab_size": size}}
        for size in reversed(SIZES)
        for pattern in ("none", "gpt2")
    }
    values["train"]["budget"]["amount"] = 1_500
    return values


def prepare(folder: Path) -> Path:
    values = sweep_values(folder / "run", write_corpus(folder / "texts"))
    return write_experiment(folder / "sizes.yaml", values)


def run_sweep(config: Path, *settings: str) -> tuple[str, int]:
    """What `make sweep` prints, and its exit code."""
    printed = io.StringIO()
    options = [option for setting in settings for option in ("--set", setting)]
    code = 0
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(sys, "argv", ["sweep", "--config", str(config), *options])
        try:
            cli.run(sweep.main)
        except SystemExit as stop:
            code = int(str(stop.code))
    return printed.getvalue(), code


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep, shared by tests that only read it. `printed` holds what was printed."""
    folder = tmp_path_factory.mktemp("finished")
    printed, code = run_sweep(prepare(folder))
    assert code == 0
    (folder / "printed").write_text(printed, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def stored(finished: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_json(finished / "run/reports/sweep.json")
    return found


@pytest.fixture(scope="module")
def small(stored: dict[str, Any]) -> Sweep:
    return Sweep.from_json(stored)


def reports_of(folder: Path, contestant: str) -> dict[str, Any]:
    found: dict[str, Any] = read_json(folder / "run/checkpoints" / contestant / "report.json")
    return found


def test_the_sweep_holds_what_the_runs_say(finished: Path, stored: dict[str, Any]) -> None:
    assert stored["experiment"] == "sizes"
    assert stored["budget"] == {"unit": "characters", "amount": 1_500}
    assert [(p["split_pattern"], p["vocab_size"]) for p in stored["points"]] == [
        ("gpt2", 262),
        ("gpt2", 275),
        ("none", 262),
        ("none", 275),
    ]
    assert stored["references"] == [stored["reference"]]
    assert (stored["reference"]["contestant"], stored["reference"]["kind"]) == ("a_char", "char")
    for figures in (*stored["points"], stored["reference"]):
        report = reports_of(finished, figures["contestant"])
        test, parameters = report["splits"]["test"], report["parameters"]
        assert figures["bits_per_char"] == test["bits_per_char"]
        assert figures["bits_by_seed"] == [test["bits_per_char"]]
        assert figures["val_bits_per_char"] == report["splits"]["val"]["bits_per_char"]
        assert figures["chars_per_token"] == test["num_chars"] / test["num_tokens"]
        assert figures["embedding_share"] == parameters["embedding"] / parameters["total"]
        assert figures["seconds"] == report["seen"]["seconds"]
        assert figures["vocab_size"] == report["tokenizer"]["vocab_size"]
        assert stored["test_text_sha256"] == test["text_sha256"]
    assert {point["kind"] for point in stored["points"]} == {"byte_bpe"}
    assert set(stored["reports"]) == {"a_char", *(point["contestant"] for point in stored["points"])}


def test_larger_vocabularies_make_longer_tokens_and_a_larger_embedding(stored: dict[str, Any]) -> None:
    for lower, upper in (stored["points"][:2], stored["points"][2:]):
        assert lower["chars_per_token"] < upper["chars_per_token"]
        assert lower["embedding_share"] < upper["embedding_share"]
    assert stored["reference"]["chars_per_token"] == 1.0


def test_the_table_is_printed_aligned_and_narrow(finished: Path, small: Sweep) -> None:
    printed = (finished / "printed").read_text(encoding="utf-8")
    text = sweep_as_text(small)
    assert printed.endswith("\n" + text)
    table = text.split("\n\n")[1].split("\n")
    assert len(table) == 1 + 4 + 1
    assert len({len(line) for line in table}) == 1
    assert max(map(len, text.split("\n"))) < 100
    assert table[0].split() == [
        "size",
        "bits",
        "on",
        "val",
        "on",
        "test",
        "chars/token",
        "embedding",
        "share",
        "seconds",
    ]
    point = small.points[1]
    assert table[2].split()[:4] == ["split", "gpt2", "275", f"{point.val_bits_per_char:.4f}"]
    assert "(1,500 characters each; 1 seed)" in text
    best = min((*small.points, *small.references), key=lambda figures: figures.val_bits_per_char)
    assert small.best == best
    assert f"Fewest bits on val: {best.contestant}, {best.val_bits_per_char:.4f} per character" in text
    assert f"on test it has {best.bits_per_char:.4f}." in text


def test_a_second_sweep_does_nothing_and_touches_nothing(finished: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (finished / "run").rglob("*") if path.is_file()}
    printed, code = run_sweep(finished / "sizes.yaml")
    assert code == 0
    assert {path: path.stat().st_mtime_ns for path in (finished / "run").rglob("*") if path.is_file()} == before
    progress, _, table = printed.partition("\nsizes: ")
    assert all("up to date" in line for line in progress.strip().split("\n"))
    assert "sweep: up to date" in progress
    assert "Fewest bits" in table


def test_an_interrupted_sweep_goes_on_where_it_was(
    tmp_path: Path, stored: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = prepare(tmp_path)
    first, second, *later = load_experiment(config).contestants
    step = TrainingRun._step

    def step_and_ask_to_stop(run: TrainingRun, *arguments: Any) -> float:
        if run.identity["contestant"] == second and run.spent.steps == 3:
            signal.raise_signal(signal.SIGTERM)
        return step(run, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingRun, "_step", step_and_ask_to_stop)
        _, code = run_sweep(config)
    assert code == 130
    runs = tmp_path / "run/checkpoints"
    assert sorted(path.name for path in runs.iterdir()) == sorted([first, second])
    assert not (tmp_path / "run/reports").exists()
    halted = checkpoint.load(runs / second / checkpoint.LAST)
    assert (halted["spent"]["steps"], halted["finished"]) == (4, False)
    of_first = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in (runs / first).iterdir()}

    taken: dict[str, list[int]] = {}

    def step_and_count(run: TrainingRun, *arguments: Any) -> float:
        taken.setdefault(run.identity["contestant"], []).append(run.spent.steps)
        return step(run, *arguments)

    monkeypatch.setattr(TrainingRun, "_step", step_and_count)
    printed, code = run_sweep(config)
    assert code == 0
    assert f"train {first}: up to date" in printed
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in (runs / first).iterdir()} == of_first
    assert set(taken) == {second, *later}
    assert taken[second][0] == 4  # the step after the last one that was saved
    assert all(taken[name][0] == 0 for name in later)
    found = read_json(tmp_path / "run/reports/sweep.json")
    timeless = [[{k: v for k, v in p.items() if k != "seconds"} for p in s["points"]] for s in (found, stored)]
    assert timeless[0] == timeless[1]  # as if it had never been stopped


def test_a_new_size_trains_itself_only_and_draws_again(tmp_path: Path) -> None:
    values = sweep_values(tmp_path / "run", write_corpus(tmp_path / "texts"))
    contestants = values["contestants"]
    values["contestants"] = {"gpt2_262": contestants["gpt2_262"]}
    config = write_experiment(tmp_path / "sizes.yaml", values)
    run_sweep(config)
    before = read_json(tmp_path / "run/reports/sweep.json")
    assert (len(before["points"]), before["reference"]) == (1, None)
    values["contestants"] |= {"none_275": contestants["none_275"]}
    write_experiment(config, values)
    printed, _ = run_sweep(config)
    assert [line.split(":")[0] for line in printed.split("\n") if ": wrote" in line] == [
        "encode none_275",
        "train none_275",
        "sweep",
    ]
    after = read_json(tmp_path / "run/reports/sweep.json")
    assert len(after["points"]) == 2
    assert after["points"][0] == before["points"][0]


def test_damaged_or_missing_files_are_written_again(small: Sweep, tmp_path: Path) -> None:
    assert not sweep_is_up_to_date(tmp_path, small)
    write_sweep(tmp_path, small)
    assert sorted(tmp_path.iterdir()) == sorted(sweep_paths(tmp_path))
    assert sweep_is_up_to_date(tmp_path, small)
    for path in sweep_paths(tmp_path):
        kept = path.read_bytes()
        path.unlink()
        assert not sweep_is_up_to_date(tmp_path, small)
        path.write_bytes(kept)
    (tmp_path / "sweep.json").write_text('{"points": [', encoding="utf-8")
    assert not sweep_is_up_to_date(tmp_path, small)


def test_another_report_makes_the_sweep_out_of_date(small: Sweep, tmp_path: Path) -> None:
    write_sweep(tmp_path, small)
    other = replace(small, reports={**small.reports, "none_262": ("0" * 64,)})
    assert not sweep_is_up_to_date(tmp_path, other)


def entries_of(finished: Path) -> list[Entry]:
    return Steps(load_experiment(finished / "sizes.yaml"), echo=lambda _: None).entries()


def with_bits(run: Run, seed: int, bits: float, **train: Any) -> Run:
    splits = {"test": {"bits_per_char": bits}}
    seen, train = {"seconds": 10.0 * seed}, {"seed": seed, **train}
    report = changed(run.report, {"splits": splits, "seen": seen, "train": train})
    return replace(run, report=report, report_sha256=f"report {seed}")


def test_seeds_are_averaged_and_kept(finished: Path) -> None:
    experiment, entries = load_experiment(finished / "sizes.yaml"), entries_of(finished)
    entries[1] = Entry(
        entries[1].name,
        (with_bits(entries[1].runs[0], 1, 2.0), with_bits(entries[1].runs[0], 2, 2.5)),
    )
    found = sweep_of(experiment, entries)
    point = next(point for point in found.points if point.contestant == entries[1].name)
    assert (point.bits_per_char, point.bits_by_seed, point.seconds) == (2.25, (2.0, 2.5), 15.0)
    assert found.reports[entries[1].name] == ("report 1", "report 2")
    assert "; the mean of 2 seeds)" in sweep_as_text(found)


def test_val_names_the_winner_and_test_does_not(finished: Path) -> None:
    experiment, entries = load_experiment(finished / "sizes.yaml"), entries_of(finished)
    entries[1] = Entry(entries[1].name, (with_bits(entries[1].runs[0], 1, 0.75),))  # the lowest by far, on test only
    run = entries[2].runs[0]
    run = replace(run, report=changed(run.report, {"splits": {"val": {"bits_per_char": 0.625}}}))
    entries[2] = Entry(entries[2].name, (run,))
    found = sweep_of(experiment, entries)
    assert found.best.contestant == entries[2].name
    test = entries[2].runs[0].test.bits_per_char
    said = f"Fewest bits on val: {entries[2].name}, 0.6250 per character; on test it has {test:.4f}."
    assert said in sweep_as_text(found)


def test_unequal_budgets_are_said(finished: Path) -> None:
    experiment, entries = load_experiment(finished / "sizes.yaml"), entries_of(finished)
    other = with_bits(entries[1].runs[0], 1, 2.0, budget={"unit": "steps", "amount": 5})
    entries[1] = Entry(entries[1].name, (other,))
    found = sweep_of(experiment, entries)
    assert found.budget is None
    assert "(unequal budgets; 1 seed)" in sweep_as_text(found)


def test_runs_on_other_text_are_refused(finished: Path) -> None:
    experiment, entries = load_experiment(finished / "sizes.yaml"), entries_of(finished)
    run = with_bits(entries[1].runs[0], 1, 2.0)
    run = replace(run, report=changed(run.report, {"splits": {"test": {"text_sha256": "0" * 64}}}))
    entries[1] = Entry(entries[1].name, (run,))
    with pytest.raises(ReportError, match="scored on different test texts"):
        sweep_of(experiment, entries)


def test_without_a_bpe_contestant_nothing_is_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = sweep_values(tmp_path / "run", write_corpus(tmp_path / "texts"))
    values["contestants"] = {"char": {"tokenizer": {"kind": "char"}}, "bytes": {"tokenizer": {"kind": "byte"}}}
    config = write_experiment(tmp_path / "none.yaml", values)
    with pytest.raises(ConfigError, match=r"none\.yaml: no contestant has a tokenizer of kind char_bpe or byte_bpe"):
        check_is_sweep(load_experiment(config))
    assert run_sweep(config)[1] == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def figures_of(kind: str, size: int, bits: tuple[float, ...]) -> dict[str, Any]:
    return {
        "kind": kind,
        "vocab_size": size,
        "bits_per_char": sum(bits) / len(bits),
        "bits_by_seed": bits,
        "val_bits_per_char": sum(bits) / len(bits),
        "chars_per_token": 2.5,
        "embedding_share": 0.25,
        "seconds": 1234.5,
    }


def point(kind: str, pattern: str, size: int, *bits: float) -> Point:
    figures = figures_of(kind, size, bits)
    return Point(contestant=f"{kind}_{pattern}_{size}", split_pattern=pattern, **figures)


def drawn_sweep() -> Sweep:
    points = (
        point("byte_bpe", "gpt2", 300, 2.5, 2.6),
        point("byte_bpe", "gpt2", 4000, 2.1, 2.3),
        point("byte_bpe", "none", 300, 2.4, 2.4),
    )
    references = (Reference(contestant="char", **figures_of("char", 149, (2.2, 2.3))),)
    return Sweep(
        version=VERSION,
        experiment="sizes",
        test_text_sha256="t" * 64,
        test_borders_sha256="b" * 64,
        budget=BudgetFacts("characters", 2_000_000),
        points=points,
        references=references,
        reports={},
    )


def test_kinds_are_named_only_where_they_are_mixed() -> None:
    points = [point("byte_bpe", "gpt2", 300, 2.0), point("byte_bpe", "none", 300, 2.0)]
    assert list(line_labels(points).values()) == ["split gpt2", "split none"]
    points.append(point("char_bpe", "none", 300, 2.0))
    assert list(line_labels(points).values()) == [
        "byte_bpe, split gpt2",
        "byte_bpe, split none",
        "char_bpe, split none",
    ]


def test_the_widest_table_stays_under_100_columns() -> None:
    points = (point("byte_bpe", "space", 100_000, 2.0), point("char_bpe", "gpt2", 100_000, 2.0))
    drawn = replace(drawn_sweep(), points=points)
    assert max(map(len, sweep_as_text(drawn).split("\n"))) < 100


def test_the_picture_has_units_a_legend_and_every_size(tmp_path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):  # text stays text
        draw_sweep(tmp_path, drawn_sweep())
    svg, png = tmp_path / "sweep.svg", tmp_path / "sweep.png"
    assert sorted(tmp_path.iterdir()) == sorted([svg, png])
    assert png.read_bytes().startswith(_PNG_SIGNATURE)
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    text = svg.read_text(encoding="utf-8")
    for expected in (
        *("vocabulary size (tokens, logarithmic)", "bits per character on test"),
        *("split gpt2", "split none", "char (149 tokens)", ">300<", ">4,000<"),
    ):
        assert expected in text, expected
    assert "stroke-dasharray" in text  # the reference


def test_sizes_lie_on_a_logarithmic_axis(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    scales = []
    with pytest.MonkeyPatch.context() as patch:
        save = Figure.savefig
        patch.setattr(
            Figure,
            "savefig",
            lambda figure, *args, **options: (
                scales.append(figure.axes[0].get_xscale()),
                save(figure, *args, **options),
            ),
        )
        draw_sweep(tmp_path, drawn_sweep())
    assert scales == ["log", "log"]


def test_the_same_sweep_gives_the_same_bytes(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        write_sweep(folder, drawn_sweep())
    for left, right in zip(sweep_paths(tmp_path / "a"), sweep_paths(tmp_path / "b"), strict=True):
        assert left.read_bytes() == right.read_bytes()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file where a folder should be", encoding="utf-8")
    with pytest.raises(DataError, match=r"cannot write .*reports"):
        write_sweep(tmp_path / "reports", drawn_sweep())


def test_the_sweep_is_read_back_from_its_json_without_a_loss(stored: dict[str, Any], small: Sweep) -> None:
    written = small.as_json()
    assert json.loads(json.dumps(written)) == written == {key: stored[key] for key in written}
    assert list(written) == [key for key in stored if key in written]
    assert Sweep.from_json(replace(small, budget=None, references=()).as_json()).references == ()
