"""A small part of the fault campaign (`make faults` is the whole): some damages, kills and refused writes."""

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign import run_part
from damages import perform, trials
from fault_chain import COMMANDS, Ended, Workshop, figures_of, make_fault_chain, run_command, without_pictures
from fuzzing import perform_fuzz

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes are forked and killed")
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workshop, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("faults")
    with without_pictures():
        made = Workshop(make_fault_chain(folder / "finished"), folder / "copy")
        expected = {}
        for command in COMMANDS:
            expected[command] = figures_of(command, run_command(made.folder, command).out)
            made.put_back()
        yield made, expected


def test_damaged_files_are_named_or_made_again(workshop: tuple[Workshop, dict[str, str]]) -> None:
    made, expected = workshop
    for trial in itertools.islice(trials(made.finished, 1, cuts=2, flips=2), 12):
        assert perform(made, trial, expected[trial.command]) is None, trial.key


def test_damage_that_changes_a_figure_would_be_found(workshop: tuple[Workshop, dict[str, str]]) -> None:
    made, expected = workshop
    trial = next(trials(made.finished, 1))
    assert perform(made, trial, expected[trial.command].replace("1", "2", 1)) is not None or trial.command == "export"


def test_mutated_inputs_end_with_0_or_2(workshop: tuple[Workshop, dict[str, str]]) -> None:
    made, _ = workshop
    for number in range(27):
        assert perform_fuzz(made, 1, number) is None, number


@pytest.mark.slow
@pytest.mark.parametrize("part", ["kills", "refusals"])
def test_killed_and_refused_chains_end_the_same(part: str, tmp_path: Path) -> None:
    ended = _campaign(part, tmp_path)
    assert ended.code == 0, ended.out


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran: list[str] = []

    def trial(name: str, found: str | None) -> tuple[str, object]:
        return name, lambda: ran.append(name) or found

    all_trials = [trial("a", None), trial("b", "broken"), trial("c", None)]
    assert run_part("part", 1, 2, all_trials) == 1  # type: ignore[arg-type]
    with Path("build/faults/part-1.jsonl").open("a", encoding="utf-8") as file:
        file.write('["c", nu')  # a campaign that was killed while it wrote
    assert run_part("part", 1, 3, all_trials) == 1  # type: ignore[arg-type]
    assert ran == ["a", "b", "c"]


def _campaign(part: str, folder: Path) -> Ended:
    import subprocess

    done = subprocess.run(
        [sys.executable, REPOSITORY / "tests/faults/campaign.py"],
        cwd=folder,
        env=os.environ | {"PART": part, "COUNT": "4", "SEED": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    return Ended(done.returncode, done.stdout + done.stderr, "")
