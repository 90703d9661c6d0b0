"""The decorators of all numba kernels, and where their machine code is kept.

numba keeps compiled kernels on disk and compiles one again when its own file changes, but not when a kernel that it
calls changes in another file. So the folder is named after the contents of all files of this package: an edit of any
of them means new machine code, never stale code.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def _contents_of_package() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        source = path.read_bytes()
        if b"tokenizer.jit import" in source:
            digest.update(source)
    return digest.hexdigest()[:16]


_GIVEN: str = numba.config.CACHE_DIR  # type: ignore[attr-defined]  # from NUMBA_CACHE_DIR, set while numba is imported
_PARENT = Path(_GIVEN) if _GIVEN else Path(__file__).parent / "__pycache__"
numba.config.CACHE_DIR = str(_PARENT / f"kernels-{_contents_of_package()}")  # type: ignore[attr-defined]


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` at its first call, keep the result on disk, and let other threads run meanwhile."""
    return numba.njit(cache=True, nogil=True)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """The same, for small functions that are written into their callers: a call costs more than they do."""
    return numba.njit(cache=True, nogil=True, inline="always")(function)
