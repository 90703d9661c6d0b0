"""An experiment with sizes through the whole chain, with a ladder and seeds and without: runs, report, refusals."""

import dataclasses
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare.experiment import load_experiment
from compare.outputs.text import comparison_text
from compare.plan import plans_as_text
from compare.sizes.plans import more_warnings, rows_of_sizes
from compare.sizes.words import headline
from compare.steps import Steps
from data.errors import CheckpointError
from data.files import read_json, sha256_file
from ladder_helpers import assert_same, without_times
from model import checkpoint
from scripts import plan as plan_script
from scripts import train as train_script

CONFIG = Path("small.yaml")
WITH_LADDER: dict[str, Any] = {"ladder": {"rungs": 3}, "seeds": [1, 2]}


def make(folder: Path, **changes: Any) -> Path:
    corpus = write_corpus(folder / "texts", num_words=1_200)
    corpus |= {split: f"texts/{split}.txt" for split in ("train", "val", "test")}
    values: dict[str, Any] = experiment_values(Path("run"), corpus) | {"sizes": [1, 2.5]} | changes
    values["model"] |= {"num_layers": 2, "embedding_dim": 32}
    values["train"] |= {"budget": {"unit": "characters", "amount": 2_000}, "device": "cpu"}
    write_experiment(folder / CONFIG, values)
    return folder


def steps_of(*settings: str, lines: list[str] | None = None) -> Steps:
    return Steps(load_experiment(CONFIG, settings), echo=lambda line: lines.append(line) if lines is not None else None)


@pytest.fixture(scope="session")
def finished_sizes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two finished comparisons that nobody changes: with a ladder and two seeds, and plain."""
    folders = {}
    for name, changes in (("ladder", WITH_LADDER), ("plain", {})):
        folders[name] = make(tmp_path_factory.mktemp(name), **changes)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folders[name])
            steps_of().compare()
    return folders


@pytest.fixture(params=["ladder", "plain"])
def finished(finished_sizes: dict[str, Path], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(finished_sizes[request.param])
    return finished_sizes[request.param]


@pytest.fixture(params=["ladder", "plain"])
def copied(
    finished_sizes: dict[str, Path], request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    folder = shutil.copytree(finished_sizes[request.param], tmp_path / "copy")
    monkeypatch.chdir(folder)
    yield folder


def runs_below(folder: Path) -> set[str]:
    return {str(path.parent.relative_to(folder / "run/checkpoints")) for path in folder.rglob("report.json")}


def test_each_size_has_finished_runs_of_a_quarter_and_of_the_whole(finished_sizes: dict[str, Path]) -> None:
    seeds = ("/seed_1", "/seed_2")
    wanted = {
        f"{name}{size}{seed}{rung}"
        for name in ("char", "bpe")
        for size, rungs in (("", ("", "/rungs/500", "/rungs/1000")), ("/size_2.5", ("", "/rungs/500")))
        for seed in seeds
        for rung in rungs
    }
    assert runs_below(finished_sizes["ladder"]) == wanted
    wanted = {
        f"{name}{size}{rung}" for name in ("char", "bpe") for size in ("", "/size_2.5") for rung in ("", "/rungs/500")
    }
    assert runs_below(finished_sizes["plain"]) == wanted


def test_only_the_shape_and_the_budget_differ_from_the_main_runs(finished_sizes: dict[str, Path]) -> None:
    """The rate, its schedule, the seed and the warm-up, which with a ladder is that of the main trunk."""
    for name, seed in (("ladder", "seed_2/"), ("plain", "")):
        root = finished_sizes[name] / "run/checkpoints/char"
        main = read_json(root / seed / "config.json")
        for part, amount in (("", 2_000), ("rungs/500", 500)):
            found = read_json(root / "size_2.5" / seed / part / "config.json")
            assert found["model_config"] == main["model_config"] | {"embedding_dim": 48}
            budget = {"unit": "characters", "amount": amount}
            assert found["train_config"] == main["train_config"] | {"budget": budget}
            assert found["data"] == main["data"]
    assert read_json(finished_sizes["ladder"] / "run/checkpoints/char/size_2.5/seed_1/config.json")["train_config"][
        "warmup_amount"
    ] == int(0.05 * 500)


def test_the_report_says_whether_the_ranking_holds(finished: Path) -> None:
    again = steps_of()
    made = again.compare()
    assert again.num_done == 0
    ranking, reports = made.sizes, finished / "run/reports"
    assert ranking is not None and [(one.size, one.is_whole) for one in ranking.levels] == [
        *((1.0, False), (1.0, True), (2.5, False), (2.5, True)),
    ]
    for one in ranking.levels:
        for spread in one.certainty.contestants:
            size = "" if one.size == 1.0 else "size_2.5"
            seeds = [f"seed_{seed}" for seed in again.experiment.seeds or ()] or [""]
            for seed, bits in zip(seeds, spread.bits_per_char, strict=True):
                rung = "" if one.is_whole else "rungs/500"
                report = read_json(finished / "run/checkpoints" / spread.name / size / seed / rung / "report.json")
                assert bits == report["splits"]["test"]["bits_per_char"]
    assert ranking.at(1.0).certainty == made.certainty
    assert headline(ranking) and made.answer.endswith(headline(ranking))
    printed = comparison_text(made)
    assert "Does the answer hold at another size of model?" in printed and max(map(len, printed.split("\n"))) <= 100
    assert "## Does the answer hold at another size of model?" in (reports / "comparison.md").read_text("utf-8")
    page = (reports / "index.html").read_text(encoding="utf-8")
    assert '<details class="fold" id="sizes">' in page and headline(ranking).split(".")[0] in page
    assert read_json(reports / "verdict.json")["sizes"]["answer"] == headline(ranking)
    written = (reports / "table.csv").read_text(encoding="utf-8")
    assert '"size 2.5, T/4: bits per character (test)",' in written
    assert "size 2.5, T: bits per character (test) & " in (reports / "table.tex").read_text(encoding="utf-8")


def test_an_edited_or_missing_run_of_a_size_is_never_missed(copied: Path) -> None:
    """The report is of exactly these runs: the hash of each of their reports is one of its inputs."""
    report = next((copied / "run/checkpoints/bpe/size_2.5").rglob("rungs/500/report.json"))
    stored = read_json(copied / "run/reports/comparison.json")["inputs"]["files"]["sizes"]
    assert sha256_file(report) in str(stored)
    report.unlink()
    lines: list[str] = []
    steps = steps_of(lines=lines)
    steps.compare()
    assert steps.num_done >= 1 and any(line.startswith("train bpe, size 2.5") and "wrote" in line for line in lines)


def test_without_sizes_nothing_of_them_is_said_and_the_runs_stay(copied: Path) -> None:
    before = runs_below(copied)
    made = steps_of("sizes=null").compare()
    assert made.sizes is None and "another size" not in comparison_text(made)
    assert "sizes" not in read_json(copied / "run/reports/comparison.json")
    assert "sizes" not in read_json(copied / "run/reports/verdict.json")
    assert 'id="sizes"' not in (copied / "run/reports/index.html").read_text(encoding="utf-8")
    assert "size 2.5" not in (copied / "run/reports/table.csv").read_text(encoding="utf-8")
    assert runs_below(copied) == before
    lines: list[str] = []
    steps_of(lines=lines).compare()
    assert not [line for line in lines if line.startswith("train ") and "wrote" in line]


def test_a_changed_setting_is_refused_with_one_command_for_all(copied: Path) -> None:
    with pytest.raises(
        CheckpointError, match=r"train.learning_rate was 0.003, is 0.001.*`make train-bpe train-char FO"
    ):
        steps_of("train.learning_rate=0.001").compare()


def test_a_run_of_a_size_from_other_settings_is_refused_before_anything_is_trained(copied: Path) -> None:
    """Its checkpoint is of another shape, as after a change of the rule."""
    last = next(path for path in (copied / "run/checkpoints/bpe/size_2.5").rglob("last.pt") if "trunk" not in str(path))
    state = checkpoint.load(last)
    checkpoint.save(last, {**state, "model_config": {**state["model_config"], "num_layers": 7}})
    for path in (copied / "run/checkpoints/char").rglob("report.json"):
        path.unlink()
    for call in (lambda: steps_of().compare(), lambda: train_script.main(["--config", str(CONFIG)])):
        with pytest.raises(CheckpointError, match=r"size_2.5.*model.num_layers was 7, is 2.*`make train-bpe FORCE=1`"):
            call()
    assert not list((copied / "run/checkpoints/char").rglob("report.json"))


def test_the_command_train_trains_the_sizes_and_force_all_of_them_again(copied: Path) -> None:
    folder = copied / "run/checkpoints/bpe"
    shutil.rmtree(folder)
    train_script.main(["--config", str(CONFIG), "--contestant", "bpe"])
    made = {path: path.stat().st_mtime_ns for path in folder.rglob("last.pt")}
    assert {path for path in made if "size_2.5" in str(path)}
    train_script.main(["--config", str(CONFIG), "--contestant", "bpe"])
    assert made == {path: path.stat().st_mtime_ns for path in folder.rglob("last.pt")}
    train_script.main(["--config", str(CONFIG), "--contestant", "bpe", "--force"])
    assert all(path.stat().st_mtime_ns > before for path, before in made.items())


class Killed(Exception):  # noqa: N818 - it stands for the end of the process, not for an error
    """The process ended here."""


def states_below(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): without_times(checkpoint.load(path))
        for path in sorted(folder.rglob("*.pt"))
        if "checkpoints" in str(path)
    }


@pytest.mark.parametrize("number", [2, 5, 8])
def test_stopped_at_any_save_it_ends_as_it_would_have(
    copied: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the save of that number while the sizes are trained, then started again."""
    wanted = states_below(copied / "run/checkpoints")
    for folder in (copied / "run/checkpoints").glob("*/size_2.5"):
        shutil.rmtree(folder)
    save, count = checkpoint.save, 0

    def counted(path: Path, state: dict[str, Any]) -> None:
        nonlocal count
        count += 1
        if count == number:
            raise Killed
        save(path, state)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", counted)
        with pytest.raises(Killed):
            steps_of().compare()
    lines: list[str] = []
    steps_of(lines=lines).compare()
    assert_same(states_below(copied / "run/checkpoints"), wanted)
    assert not any(re.match(r"train bpe(, rung|:|, seed)", line) and "wrote" in line for line in lines)


def test_the_plan_lists_what_the_sizes_cost(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = steps_of()
    plans, sizes = steps.plans(), steps.size_plans()
    rows = dict(rows_of_sizes(sizes))
    report = read_json(next((finished / "run/checkpoints/char/size_2.5").rglob("report.json")))
    place = list(steps.experiment.contestants).index("char")
    assert rows["size 2.5: parameters besides the embedding"][place] == f"{report['parameters']['rest']:,}"
    for label in ("training FLOPs, all seeds", "memory of a step, MB (estimate)", "disk, MB (estimate)"):
        assert f"size 2.5: {label}" in rows
    has_ladder = steps.experiment.ladder is not None
    labels = {one.label for one in sizes}
    quarters = {"a quarter of the budget", "size 2.5, a quarter of the budget"}
    assert labels == ({"size 2.5"} if has_ladder else {"size 2.5", *quarters})
    [whole] = [one.plans[place] for one in sizes if one.label == "size 2.5"]
    share = 0.75 + 0.25 * 1.25 if has_ladder else 1.0
    assert whole.trained_share == pytest.approx(share)
    assert whole.memory_bytes > plans[place].memory_bytes
    text = plans_as_text(plans, rows_of_sizes(sizes), more_warnings(plans, sizes))
    assert max(map(len, text.split("\n"))) <= 100
    plan_script.main(["--config", str(CONFIG)])
    printed = capsys.readouterr().out
    seconds = next(line for line in printed.split("\n") if line.startswith("size 2.5: seconds, all seeds"))
    assert re.search(r"[0-9]\.[0-9] +[0-9]+\.[0-9]$", seconds)


def test_only_what_a_size_adds_is_a_warning_of_its_own(finished: Path) -> None:
    steps = steps_of()
    plans, sizes = steps.plans(), steps.size_plans()
    assert more_warnings(plans, sizes) == []  # too little training at every size
    rich = [dataclasses.replace(plan, other_parameters=1, embedding_parameters=0) for plan in plans]
    found = more_warnings(rich, sizes)
    assert found and all(line.startswith("size 2.5: ") and "tokens per parameter" in line for line in found)
    assert not [line for line in found if "quarter" in line]
