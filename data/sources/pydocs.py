"""The offline corpus `pydocs`: the documentation that ships inside the user's own Python environment.

Docstrings of the standard library, numpy and torch, about 7.8 MB of English, code and mathematics. The sources are
parsed, never imported, so nothing runs and nothing is downloaded. Which text comes out depends on the installed
versions, which are the corpus's identity.
"""

import ast
import importlib.metadata
import importlib.util
import os
import platform
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tqdm import tqdm

from data.clean import find_lone_surrogate
from data.errors import DataError
from data.splits import Corpus, Document

PACKAGES = ("numpy", "torch")
MINIMUM_CHARACTERS = 200
"""Shorter docstrings are mostly one-line labels; they are left out."""
TEST_FOLDERS = frozenset({"test", "tests", "idle_test"})
"""Folders of test code, whose strings are not documentation; they are left out."""
_FILES_WORTH_A_POOL = 200
_MAXIMUM_WORKERS = 4


@dataclass(frozen=True)
class SourceFile:
    """A Python file and the module it defines."""

    module: str
    path: Path


@dataclass(frozen=True)
class Docstring:
    """A docstring of at least MINIMUM_CHARACTERS, indentation removed as `inspect.cleandoc` does."""

    module: str
    line: int
    """Line of the definition it documents; 1 for a module."""
    text: str


def load_pydocs() -> Corpus:
    """Read the docstrings of the running environment, deduplicated, sorted by module and line.

    A file that this Python cannot parse and a docstring with a lone surrogate are left out and counted, since the
    user cannot repair them. Raises DataError if the sources of a package are not installed.
    """
    docstrings, unparsed = collect_docstrings(environment_files())
    kept = [docstring for docstring in docstrings if find_lone_surrogate(docstring.text) is None]
    documents = [Document(f"{docstring.module}:{docstring.line}", docstring.text) for docstring in kept]
    provenance = {
        "unparsed_files": unparsed,
        "docstrings_with_lone_surrogates": len(docstrings) - len(kept),
    }
    return Corpus(documents=documents, identity=pydocs_identity(), provenance=provenance)


def pydocs_identity() -> dict[str, Any]:
    """What decides the text of the corpus: the versions of what is read, and the selection rule."""
    return {
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in PACKAGES},
        "sources": ["standard library", *PACKAGES],
        "minimum_characters": MINIMUM_CHARACTERS,
    }


def environment_files() -> list[SourceFile]:
    """The Python files of the standard library, numpy and torch as installed, test folders left out."""
    standard_library = Path(sysconfig.get_paths()["stdlib"])
    if not (standard_library / "ast.py").exists():
        raise DataError(f"this Python has no library sources in {standard_library}; use a full Python installation")
    found: list[SourceFile] = []
    for name in sorted(sys.stdlib_module_names):
        if (standard_library / f"{name}.py").is_file():
            found.append(SourceFile(name, standard_library / f"{name}.py"))
        found.extend(package_files(standard_library / name))
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)  # finds a top-level package without importing it
        if spec is None or spec.origin is None:
            raise DataError(f"{package} is not installed in this environment; run `make setup`")
        found.extend(package_files(Path(spec.origin).parent))
    return found


def package_files(folder: Path) -> list[SourceFile]:
    """All `*.py` below a package's folder with their module names, test folders left out; empty if no folder."""
    found = []
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        if TEST_FOLDERS.isdisjoint(parts[:-1]):
            found.append(SourceFile(".".join(parts).removesuffix(".__init__"), path))
    return sorted(found, key=lambda file: file.module)


def collect_docstrings(files: list[SourceFile]) -> tuple[list[Docstring], list[str]]:
    """The docstrings of `files` sorted by module and line, the first of equal texts only; and unparsed modules."""
    found: list[Docstring] = []
    unparsed: list[str] = []
    for file, docstrings in zip(files, _read_all(files), strict=True):
        if docstrings is None:
            unparsed.append(file.module)
        else:
            found.extend(docstrings)
    found.sort(key=lambda docstring: (docstring.module, docstring.line))
    first: dict[str, Docstring] = {}
    for docstring in found:
        first.setdefault(docstring.text, docstring)
    return list(first.values()), sorted(unparsed)


def _read_all(files: list[SourceFile]) -> Iterator[list[Docstring] | None]:
    """`read_docstrings` of each file, in order, on several processes if there is enough to do."""
    workers = min(_MAXIMUM_WORKERS, os.cpu_count() or 1)
    if workers == 1 or len(files) < _FILES_WORTH_A_POOL:
        yield from _with_progress(map(read_docstrings, files), len(files))
        return
    # spawn: forking a process that already runs threads (torch, numba) can deadlock
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from _with_progress(pool.map(read_docstrings, files, chunksize=32), len(files))


def _with_progress(results: Iterable[list[Docstring] | None], total: int) -> Iterator[list[Docstring] | None]:
    yield from tqdm(results, total=total, desc="reading docstrings", unit="file", file=sys.stderr, leave=False)


def read_docstrings(file: SourceFile) -> list[Docstring] | None:
    """The long docstrings of one file in order of line; None if this Python cannot parse it.

    Raises DataError if the file cannot be read.
    """
    try:
        source = file.path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {file.path}: {error.strerror or error}") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's strings
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):  # ValueError: a NUL byte, before Python 3.12
            return None
    found = []
    for node in _definitions(tree):
        text = ast.get_docstring(node)
        if text is not None and len(text) >= MINIMUM_CHARACTERS:
            found.append(Docstring(file.module, getattr(node, "lineno", 1), text))
    return sorted(found, key=lambda docstring: docstring.line)


def _definitions(
    tree: ast.Module,
) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """The module and every class and function in it; statements only, because no definition hides in an expression."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        waiting.extend(
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case)
        )
