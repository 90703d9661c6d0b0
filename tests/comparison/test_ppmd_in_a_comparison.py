"""`make compare` with pyppmd installed: both rows of PPMd, with figures that anyone can compute."""

import re
import shutil
from pathlib import Path

import pytest

from chain_helpers import CHAIN
from compare.baselines import ppmd
from data.files import read_json
from data.layout import Layout
from scripts import compare


@pytest.mark.skipif(ppmd.installed_version() is None, reason="pyppmd is not installed")
def test_its_rows_hold_what_a_direct_call_gives(
    finished_chain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyppmd

    folder = tmp_path / "chain"
    shutil.copytree(finished_chain, folder)
    monkeypatch.chdir(folder)
    (folder / "run/reports/baselines.json").unlink(missing_ok=True)
    compare.main(["--config", CHAIN])
    printed = capsys.readouterr().out
    layout = Layout(Path("run"))
    texts = {name: layout.split_text("words", name).read_text(encoding="utf-8") for name in ("train", "test")}

    def size(text: str, order: int) -> int:
        return len(pyppmd.compress(text.encode(), max_order=order, mem_size=ppmd.MEMORY_MIB << 20, variant="H"))

    found = {row["name"]: row for row in read_json(Path("run/reports/comparison.json"))["baselines"]}
    for name in ("PPMd", "PPMd after train"):
        note = found[name]["note"]
        order = int(re.search(r"order (\d+), chosen on val", note).group(1))  # type: ignore[union-attr]
        num_bytes = size(texts["test"], order)
        if "train" in name:
            num_bytes = size(texts["train"] + texts["test"], order) - size(texts["train"], order)
        bits = 8.0 * num_bytes / len(texts["test"])
        assert found[name]["bits_per_char"] == pytest.approx(bits, rel=1e-12)
        assert re.search(rf"^  {name} +{bits:.4f}", printed, re.MULTILINE)
