"""Whatever happens to a file of a finished experiment: compare gives equal figures or one sentence, no traceback."""

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from chain_helpers import CHAIN
from compare import report
from compare.experiment import load_experiment
from compare.page.curves import curve_paths
from compare.runs import read_run
from compare.steps import Steps
from data.errors import UserError
from data.files import read_json, sha256_file

RUN = "checkpoints/bpe"
Damage = Callable[[Path], None]


def compared(folder: Path) -> dict[str, Any]:
    """What `make compare` finds: bits per character of every contestant, and the table of all figures but the time."""
    with contextlib.chdir(folder):
        Steps(load_experiment(Path(CHAIN)), echo=lambda _line: None).compare()
    summary = read_json(folder / "run/reports/comparison.json")
    timed = ("seconds", "tokens_per_second")
    return {row["contestant"]: {k: v for k, v in row.items() if k not in timed} for row in summary["rows"]}


@pytest.fixture(scope="module")
def finished(finished_chain: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("damaged") / "chain"
    shutil.copytree(finished_chain, folder)
    return folder, compared(folder)


@pytest.fixture
def copied(finished: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The finished experiment, moved aside and copied back to its place after the test."""
    folder, _ = finished
    shutil.copytree(folder, tmp_path / "kept")
    sample = {"prompt": "\n", "text": "made up", "temperature": 0.0, "seed": 1}
    monkeypatch.setattr(report, "draw_curves", lambda path, *_: [one.touch() for one in curve_paths(path)])
    monkeypatch.setattr(report, "samples_of", lambda *_arguments: [sample])
    return folder


@pytest.fixture(autouse=True)
def put_back(finished: tuple[Path, dict[str, Any]], tmp_path: Path) -> Any:
    yield
    kept = tmp_path / "kept"
    if kept.exists():
        shutil.rmtree(finished[0])
        shutil.copytree(kept, finished[0])


def text(contents: str) -> Damage:
    return lambda path: path.write_text(contents, encoding="utf-8") and None


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def setting(*keys: str, value: Any) -> Damage:
    """One value below `keys` replaced; None as `value` writes null."""

    def damage(path: Path) -> None:
        contents = json.loads(path.read_text(encoding="utf-8"))
        inner = contents
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        path.write_text(json.dumps(contents), encoding="utf-8")

    return damage


def without(key: str) -> Damage:
    def damage(path: Path) -> None:
        contents = json.loads(path.read_text(encoding="utf-8"))
        del contents[key]
        path.write_text(json.dumps(contents), encoding="utf-8")

    return damage


def of_the_other(path: Path) -> None:
    """The file of the other contestant."""
    shutil.copyfile(Path(str(path).replace("/bpe/", "/char/")), path)


def stored(value: Any) -> Damage:
    return lambda path: torch.save(value, path)


def arrays(change: Callable[[dict[str, Any]], None]) -> Damage:
    """The losses changed, and the report's hash with them, so that the change is not noticed by the hash."""

    def damage(path: Path) -> None:
        with np.load(path) as found:
            changed = {name: found[name] for name in found.files}
        change(changed)
        with path.open("wb") as file:
            np.savez_compressed(file, **changed)
        split = path.name.removesuffix("_nats.npz")
        setting("splits", split, "nats_sha256", value=sha256_file(path))(path.parent / "report.json")

    return damage


def not_a_number(path: Path) -> None:
    state = torch.load(path, weights_only=True)
    next(iter(state["model"].values()))[0] = float("nan")
    torch.save(state, path)


REPORTS: dict[str, Damage] = {
    "empty": text(""),
    "object": text("{}"),
    "list": text("[]"),
    "null": text("null"),
    "truncated": truncated,
    "other": of_the_other,
    "no splits": without("splits"),
    "seen null": setting("seen", value=None),
    "bits nan": setting("splits", "test", "bits_per_char", value=float("nan")),
    "unit": setting("train", "budget", "unit", value="pages"),
}
LOSSES: dict[str, Damage] = {
    "truncated": truncated,
    "other": of_the_other,
    "nan": arrays(lambda found: found.__setitem__("nats", found["nats"] * np.float32("nan"))),
    "doubles": arrays(lambda found: found.__setitem__("nats", found["nats"].astype(np.float64))),
    "square": arrays(lambda found: found.__setitem__("nats", found["nats"][:, None])),
    "borders": arrays(lambda found: found.__setitem__("document_offsets", found["document_offsets"][[0, -1, 1, -1]])),
    "none": arrays(lambda found: found.pop("token_num_bytes")),
}
METRICS: dict[str, Damage] = {
    "list": text("[]\n"),
    "null": text("null\n"),
    "truncated": truncated,
    "missing": Path.unlink,
    "other": of_the_other,
}
CHECKPOINTS: dict[str, Damage] = {
    "truncated": truncated,
    "object": stored({}),
    "list": stored([1, 2]),
    "tensor": stored(torch.zeros(3)),
    "other": of_the_other,
}
CASES = [
    *((f"{RUN}/report.json", name, damage) for name, damage in REPORTS.items()),
    *((f"{RUN}/test_nats.npz", name, damage) for name, damage in LOSSES.items()),
    *((f"{RUN}/metrics.jsonl", name, damage) for name, damage in METRICS.items()),
    *((f"{RUN}/{file}", name, damage) for file in ("last.pt", "best.pt") for name, damage in CHECKPOINTS.items()),
    (f"{RUN}/best.pt", "nan", not_a_number),
    *(
        ("data/processed/manifest.json", name, damage)
        for name, damage in {"object": text("{}"), "list": text("[]"), "null": text("null")}.items()
    ),
    *(("reports/baselines.json", name, text(name)) for name in ("{}", "[]", "null")),
]


@pytest.mark.parametrize(("file", "name", "damage"), CASES, ids=[f"case_49-{file}-{name}" for file, name, _ in CASES])
def test_compare_gives_the_same_figures_or_one_sentence(
    finished: tuple[Path, dict[str, Any]], copied: Path, file: str, name: str, damage: Damage
) -> None:
    damage(copied / "run" / file)
    try:
        found = compared(copied)
    except UserError as error:
        assert "\n" not in str(error) and len(str(error)) > 20
        assert file.split("/")[-1] in str(error) or "losses are not finite" in str(error)
    else:
        assert found == finished[1]


CONTENTS: dict[str, tuple[Damage, str]] = {
    "object": (text("{}"), "key 'contestant' is missing"),
    "list": (text("[]"), "expected an object, found a list of 0"),
    "null": (text("null"), "expected an object, found null"),
    "seed": (setting("train", "seed", value="1"), r"train: key 'seed': expected a whole number, found '1'"),
    "split": (setting("splits", "val", value=None), "splits: key 'val': expected an object, found null"),
    "size": (setting("tokenizer", "vocab_size", value=0), "'vocab_size': expected a number greater than 0, found 0"),
    "huge": (text('{"contestant": 1e999}'), "key 'contestant': expected a string, found inf"),
}


@pytest.mark.parametrize("name", CONTENTS, ids=[f"case_49-{name}" for name in CONTENTS])
def test_a_report_that_is_read_alone_says_what_is_wrong(copied: Path, name: str) -> None:
    damage, message = CONTENTS[name]
    damage(copied / "run" / RUN / "report.json")
    with pytest.raises(UserError, match=rf"report\.json.*{message}.*run `make "):
        read_run(copied / "run" / RUN)
