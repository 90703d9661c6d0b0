"""The fault campaign: `make faults SEED=1 PART=damage COUNT=500`. It goes on where it was stopped.

Trials that are done lie in build/faults/PART-SEED.jsonl, one line each; a finding is a line that is not null.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

RESULTS = Path("build/faults")


def run_part(part: str, seed: int, count: int, keys_and_trials: Iterable[tuple[str, Callable[[], str | None]]]) -> int:
    """Run up to `count` trials that have not been run; prints one line for the part. Returns the number of findings."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{part}-{seed}.jsonl"
    done: dict[str, str | None] = {}
    if path.exists():
        lines = path.read_text(encoding="utf-8").split("\n")
        done = dict(json.loads(line) for line in lines[:-1])  # a line that a killed campaign cut short is run again
        path.write_text("".join(json.dumps(item) + "\n" for item in done.items()), encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        for key, trial in keys_and_trials:
            if len(done) >= count:
                break
            if key in done:
                continue
            done[key] = trial()
            file.write(json.dumps([key, done[key]]) + "\n")
            file.flush()
            if done[key] is not None:
                print(f"  FOUND {part}: {key}: {done[key]}", flush=True)
    findings = sum(found is not None for found in done.values())
    print(f"{part:<10} seed {seed}   {len(done):>6,} trials   {findings:>4} findings", flush=True)
    return findings


def damage(seed: int, count: int, folder: Path) -> int:
    """Part `damage`."""
    from damages import perform, trials
    from fault_chain import COMMANDS, Workshop, figures_of, make_fault_chain, run_command, without_pictures

    with without_pictures():
        finished = make_fault_chain(folder / "finished")
        workshop = Workshop(finished, folder / "copy")
        expected = {}
        for command in COMMANDS:
            expected[command] = figures_of(command, run_command(workshop.folder, command).out)
            assert expected[command] or command == "export"
            workshop.put_back()
        found = trials(finished, seed)
        return run_part(
            "damage",
            seed,
            count,
            ((one.key, lambda one=one: perform(workshop, one, expected[one.command])) for one in found),
        )


def fuzz(seed: int, count: int, folder: Path) -> int:
    """Part `fuzz`: mutated inputs."""
    from fault_chain import Workshop, make_fault_chain, without_pictures
    from fuzzing import perform_fuzz

    with without_pictures():
        workshop = Workshop(make_fault_chain(folder / "finished"), folder / "copy")
        trials = ((str(number), lambda number=number: perform_fuzz(workshop, seed, number)) for number in range(count))
        return run_part("fuzz", seed, count, trials)


def kills(seed: int, count: int, folder: Path) -> int:
    """Part `kills`: SIGKILL."""
    killed = _killed(folder)
    return run_part("kills", seed, count, killed.trials(seed))


def refusals(seed: int, count: int, folder: Path) -> int:
    """Part `refusals`: a disk that is full, read-only or failing, and too many open files."""
    killed = _killed(folder)
    return run_part("refusals", seed, count, killed.refusals(seed))


def _killed(folder: Path) -> Any:
    import scripts.compare
    import scripts.export  # noqa: F401 - forked processes then need not import anything
    from kills import Killed

    return Killed(folder)


PARTS: dict[str, tuple[Callable[[int, int, Path], int], int]] = {
    "damage": (damage, 4_000),
    "fuzz": (fuzz, 4_500),
    "kills": (kills, 200),
    "refusals": (refusals, 200),
}
"""Part -> what runs it, and how many trials it has where COUNT does not say."""


def main() -> None:
    """Run the parts that PART names, by default all."""
    seed = int(os.environ.get("SEED") or 1)
    named = os.environ.get("PART") or ",".join(PARTS)
    findings = 0
    for part in named.split(","):
        if part not in PARTS:
            sys.exit(f"PART={part}: expected one of {', '.join(PARTS)}")
        run, count = PARTS[part]
        with tempfile.TemporaryDirectory() as folder:
            findings += run(seed, int(os.environ.get("COUNT") or count), Path(folder))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
