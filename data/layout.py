"""Where the artefacts of one experiment lie: always the same shape below its root."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

SPLITS = ("train", "val", "test")
TRUNK, RUNGS = "trunk", "rungs"
"""Below a run's folder: the part of a ladder's training that all rungs share, and a folder for each lower rung."""
_OF_SIZE, _OF_SEED = "size_", "seed_"


def is_artefact(parts: tuple[str, ...]) -> bool:
    """Whether a path relative to a root, given in parts, lies where the experiment of that root writes.

    >>> is_artefact(("checkpoints", "char", "last.pt")), is_artefact(("data", "encoded_bpe", "train_ids.pt"))
    (True, True)
    >>> is_artefact(("data", "letters.txt")), is_artefact(("tokenizer", "notes.txt"))
    (False, False)
    """
    match parts:
        case ("checkpoints" | "reports" | "tune", *_) | ("data", "raw" | "processed" | "encoded", *_):
            return True
        case ("data", name, *_) if name.startswith("encoded_"):
            return True
        case ("tokenizer", name) if name.endswith("_tokenizer.json"):
            return True
        case (name,) | ("data" | "tokenizer", name) if name.startswith("."):
            return name.endswith((".lock", ".part"))  # held or left behind by a process that writes beside it
    return False


def is_root(folder: Path) -> bool:
    """Whether an experiment has written below `folder`: there is a corpus manifest, damaged or not, or a clean split.

    A data/processed/manifest.json that is whole and says something else belongs to another program.
    """
    path = Layout(folder).corpus_manifest
    if not os.path.isdir(path.parent):  # noqa: PTH112 - Path.is_dir raises where a folder above may not be entered
        return False
    if any(path.parent.glob("*_train_clean.txt")):
        return True
    if not os.path.isfile(path):  # noqa: PTH113
        return False
    try:
        manifest = json.loads(path.read_bytes())
    except (ValueError, RecursionError):  # damaged
        return True
    except OSError:  # what may not be read is refused where it is walked
        return False
    return isinstance(manifest, dict) and all(
        isinstance(entry, dict) and "splits" in entry for entry in manifest.values()
    )


def _is_of_contestant(folder: Path) -> bool:
    """Whether `folder` lies in that of a contestant."""
    return folder.parent.parent.name == "checkpoints"


def _is_of_size(folder: Path) -> bool:
    """Whether `folder` is that of another size of a contestant's model."""
    return folder.name.startswith(_OF_SIZE) and _is_of_contestant(folder)


@dataclass(frozen=True)
class Layout:
    """The paths of one experiment. Nothing is written outside `root`."""

    root: Path

    def raw(self, corpus: str) -> Path:
        """Folder of the corpus as fetched."""
        return self.root / "data" / "raw" / corpus

    @property
    def processed(self) -> Path:
        """Folder of the cleaned splits."""
        return self.root / "data" / "processed"

    @property
    def corpus_manifest(self) -> Path:
        """What the cleaned splits are: counts, hashes, source, cleaning."""
        return self.processed / "manifest.json"

    def split_text(self, corpus: str, split: str) -> Path:
        """One cleaned split, UTF-8."""
        return self.processed / f"{corpus}_{split}_clean.txt"

    def split_documents(self, corpus: str, split: str) -> Path:
        """Character offsets of the documents in a split: int64, one more than there are documents."""
        return self.processed / f"{corpus}_{split}_docs.npy"

    def tokenizer(self, contestant: str) -> Path:
        """The tokenizer file of a contestant."""
        return self.root / "tokenizer" / f"{contestant}_tokenizer.json"

    def encoded(self, contestant: str) -> Path:
        """Folder of a contestant's id tensors; `char` has the plain name."""
        return self.root / "data" / ("encoded" if contestant == "char" else f"encoded_{contestant}")

    def checkpoints(self, contestant: str, seed: int | None = None, size: float = 1.0) -> Path:
        """Folder of a contestant's run: checkpoints, metrics, per-token losses, report.

        `seed` tells its runs apart where an experiment names several seeds; None is the one run of the others. A
        `size` other than 1 is that of a model of another size.
        """
        folder = self.root / "checkpoints" / contestant
        if size != 1.0:
            folder /= f"{_OF_SIZE}{size:g}"
        return folder if seed is None else folder / f"{_OF_SEED}{seed}"

    @staticmethod
    def contestant_of(run_folder: Path) -> str:
        """The contestant whose run lies in `run_folder`, which `checkpoints` gave, or a part of its ladder.

        >>> Layout.contestant_of(Path("runs/checkpoints/bpe/size_2.5/seed_1/rungs/1500"))
        'bpe'
        """
        if run_folder.parent.name == RUNGS and run_folder.name.isdecimal():
            run_folder = run_folder.parent.parent
        elif run_folder.name == TRUNK and run_folder.parent.name != "checkpoints":
            run_folder = run_folder.parent
        if run_folder.name.startswith(_OF_SEED) and (_is_of_contestant(run_folder) or _is_of_size(run_folder.parent)):
            run_folder = run_folder.parent
        return run_folder.parent.name if _is_of_size(run_folder) else run_folder.name

    def tuning(self, contestant: str, learning_rate: float, batch_size: int) -> Path:
        """Folder of a contestant's short run with one learning rate and batch size of `make tune`'s grid."""
        return self.root / "tune" / contestant / f"batch_{batch_size}_lr_{learning_rate!r}"

    @property
    def reports(self) -> Path:
        """Folder of the comparison."""
        return self.root / "reports"
