"""Files that folders and globs do not give: what experiments have written, and the files of this program."""

import os
from pathlib import Path

from data.layout import is_artefact, is_root
from data.sources.left_out import OTHER, OWN
from data.sources.paths import real_path

PROGRAM_FOLDER = Path(__file__).resolve().parents[2]
"""It holds the packages of this program."""


class Written:
    """Tells who wrote a file; each folder is looked at once."""

    def __init__(self, root: Path | None = None) -> None:
        """`root` is where this experiment writes; None: nowhere."""
        self._own_root = None if root is None else Path(real_path(root))
        self._roots: dict[str, tuple[Path, ...]] = {}

    def by(self, real: str, base: str) -> str | None:
        """OWN or OTHER if an experiment wrote the file or folder `real`; None if none did.

        `base` is the part of the pattern that the user spelled out: who points into another experiment's output means
        it, so it counts as written only where it was merely met on the way.
        """
        if self._own_root is not None and _is_artefact(real, self._own_root):
            return OWN
        for root in self._roots_around(os.path.dirname(real)):  # noqa: PTH120 - real is a string
            if _is_artefact(real, root) and not _is_artefact(base, root):
                return OTHER
        return None

    def _roots_around(self, folder: str) -> tuple[Path, ...]:
        """Where experiments have written, among `folder` and all folders above it; each is looked at once."""
        new: list[str] = []
        while folder not in self._roots and (not new or folder != new[-1]):
            new.append(folder)
            folder = os.path.dirname(folder)  # noqa: PTH120 - a string, as above
        roots = self._roots.get(folder, ())
        for folder in reversed(new):
            roots = self._roots[folder] = (*roots, Path(folder)) if is_root(Path(folder)) else roots
        return roots


def _is_artefact(real: str, root: Path) -> bool:
    above = os.path.join(root, "")  # noqa: PTH118 - with the separator at its end
    return real.startswith(above) and is_artefact(Path(real[len(above) :]).parts)


def is_of_program(real: str) -> bool:
    """Whether `real` is a file of one of this program's packages: code, its compiled form, its marker, a template."""
    if not real.startswith(str(PROGRAM_FOLDER)):
        return False
    path = Path(real)
    if not path.is_relative_to(PROGRAM_FOLDER):
        return False
    package, *below = path.relative_to(PROGRAM_FOLDER).parts
    folders = [PROGRAM_FOLDER.joinpath(package, *below[:depth]) for depth in range(len(below))]
    if not folders or not (folders[0] / "py.typed").is_file():
        return False
    if path.parent.name in ("__pycache__", "templates"):
        folders.pop()
    elif path.suffix != ".py" and path.name != "py.typed":
        return False
    return all((folder / "__init__.py").is_file() for folder in folders)
