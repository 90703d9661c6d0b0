"""The decorators of all numba kernels, where their machine code is kept, and two instructions that Python lacks.

numba keeps compiled kernels on disk and compiles one again when its own file changes, but not when a kernel that it
calls changes in another file. So the folder is named after the contents of all files with kernels, here and in
model/: an edit of any of them means new machine code, never stale code.

The folder is chosen when the first kernel is needed, not on import: the first of NUMBA_CACHE_DIR, the `__pycache__`
beside this file and the user's cache folder that can be written. Where none can, kernels are compiled in every
process, and one line says so. What lies in the folder is machine code in numba's format, which numba reads with
pickle: a folder that another user owns, or may write, is not used.
"""
# mypy: disable-error-code="no-untyped-call"
# numba has no types.

import functools
import hashlib
import importlib.util
import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import caching, cgutils
from numba.extending import intrinsic
from numba.misc.appdirs import AppDirs

logger = logging.getLogger(__name__)

_PACKAGES = Path(__file__).parents[2]
_HAS_KERNELS = re.compile(rb"from tokenizer(\.\w+)*\.jit import")
_OTHERS_MAY_WRITE = 0o022


def kernel(function: Callable[..., Any], **options: Any) -> Any:
    """Compile `function` at its first call, keep the result on disk, and let other threads run meanwhile.

    `options` are further options of `numba.njit`.
    """
    dispatcher = numba.njit(nogil=True, **options)(function)
    dispatcher._cache = KernelCache(function)  # what njit's own `cache=True` does, without a search on import
    return dispatcher


def inlined(function: Callable[..., Any], **options: Any) -> Any:
    """The same, for small functions that are written into their callers: a call costs more than they do."""
    return kernel(function, inline="always", **options)


def contents_of_kernels(packages: Path = _PACKAGES) -> str:
    """Hash of this file, and of every file with kernels in the packages `tokenizer` and `model` below `packages`."""
    digest = hashlib.sha256(Path(__file__).read_bytes())  # its instructions are part of kernels
    for package in ("tokenizer", "model"):
        for path in sorted((packages / package).rglob("*.py")):
            source = path.read_bytes()
            if _HAS_KERNELS.search(source):
                digest.update(source)
    return digest.hexdigest()[:16]


@functools.cache
def kernel_folder() -> Path | None:
    """The folder that keeps machine code, chosen once in a process; None if there is none, which is said."""
    name = f"kernels-{contents_of_kernels()}"
    found = [(parent / name, is_private) for parent, is_private in _parents()]
    for usable in (_can_be_written, _can_be_read):  # a filled folder of a read-only installation serves as well
        for folder, is_private in found:
            if usable(folder, is_private):
                return folder
    logger.warning(
        "no folder can keep compiled kernels, so every command compiles them again; set NUMBA_CACHE_DIR to a folder "
        "that you can write"
    )
    return None


def _parents() -> Iterator[tuple[Path, bool]]:
    """Folders that may hold ours, the preferred one first, and whether ours is to be closed to other users there."""
    given: str = numba.config.CACHE_DIR  # type: ignore[attr-defined]  # from NUMBA_CACHE_DIR
    if given:
        yield Path(given), True
    if not sys.dont_write_bytecode:  # PYTHONDONTWRITEBYTECODE: nothing is to be written next to the code
        yield Path(importlib.util.cache_from_source(__file__)).parent, False  # heeds PYTHONPYCACHEPREFIX
    users = Path(AppDirs("chars-or-bpe", appauthor=False).user_cache_dir)
    if users.is_absolute():  # it is not where there is no home folder
        yield users, True


def _can_be_written(folder: Path, is_private: bool) -> bool:
    try:
        folder.mkdir(mode=0o700 if is_private else 0o777, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        return _is_trusted(folder, is_private)
    except OSError:
        return False


def _can_be_read(folder: Path, is_private: bool) -> bool:
    try:
        return any(folder.iterdir()) and _is_trusted(folder, is_private)
    except OSError:
        return False


def _is_trusted(folder: Path, is_private: bool) -> bool:
    """Whether only this user, or whoever could change the code itself, can have put something into `folder`."""
    if os.name == "nt":  # its files have no owners in this sense
        return True
    state = folder.stat()
    is_open = is_private and state.st_mode & _OTHERS_MAY_WRITE
    return state.st_uid in (os.geteuid(), Path(__file__).stat().st_uid) and not is_open


class _Locator(caching.UserProvidedCacheLocator):
    """Tells numba to keep a kernel in the chosen folder, and nowhere else."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        super().__init__(function, file)
        self._cache_path = str(Path(kernel_folder() or "") / self.get_suitable_cache_subpath(file))

    def ensure_cache_path(self) -> None:
        """Make the folder; numba asks for it before it saves."""
        Path(self.get_cache_path()).mkdir(parents=True, exist_ok=True)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> "_Locator":
        """A locator without the search for a folder: that is done."""
        return cls(function, file)


class _Files(caching.FunctionCache):
    """numba's own files of one kernel, in the chosen folder."""

    class _impl_class(caching.CompileResultCacheImpl):  # noqa: N801 - numba's name
        _locator_classes: list[type[object]] = [_Locator]  # noqa: RUF012 - as numba declares it


class KernelCache(caching.NullCache):
    """Machine code of one kernel on disk. What cannot be read is compiled again, what cannot be kept is said once."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @functools.cached_property
    def _files(self) -> _Files | None:
        return None if kernel_folder() is None else _Files(self._function)

    @property
    def cache_path(self) -> str | None:
        """The folder of this kernel's files."""
        return None if self._files is None else str(self._files.cache_path)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The compiled kernel for `signature`; None if there is none."""
        if self._files is None:
            return None
        try:
            return self._files.load_overload(signature, context)
        except Exception as error:  # a damaged pickle can raise any of them; the kernel is then compiled
            logger.info("the kept kernel %s is damaged (%r) and is compiled again", self._function.__name__, error)
            self.flush()
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a compiled kernel. A folder that takes no more costs time later, but ends nothing now."""
        if self._files is None:
            return
        try:
            self._files.save_overload(signature, compiled)
        except OSError as error:
            _say_once(f"compiled kernels cannot be kept in {kernel_folder()} ({error.strerror or error})")

    def flush(self) -> None:
        """Forget the kept versions of this kernel."""
        try:
            if self._files is not None:
                self._files.flush()
        except OSError as error:
            _say_once(f"compiled kernels cannot be kept in {kernel_folder()} ({error.strerror or error})")


@functools.cache
def _say_once(line: str) -> None:
    logger.warning("%s; they are compiled again by every command", line)


# ---------------------------------------------------------------------------------------------------------------
# Two instructions of the processor that Python has no name for. LLVM writes others in their place where a processor
# lacks them, so the answers are the same everywhere.

_BYTE_POINTER = ir.IntType(8).as_pointer()
_INT32 = ir.IntType(32)


def _trailing_zeros(_typing: Any, word: Any) -> Any:
    """The number of zero bits below the lowest one bit of a 64-bit word that is not 0."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


def _prefetch(_typing: Any, array: Any, index: Any) -> Any:
    """Begin to fetch item `index` of a one-dimensional array into the cache; nothing else happens."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        items = context.make_array(signature.args[0])(context, builder, arguments[0])
        item = builder.bitcast(builder.gep(items.data, [arguments[1]]), _BYTE_POINTER)
        form = ir.FunctionType(ir.VoidType(), [_BYTE_POINTER, _INT32, _INT32, _INT32])
        function = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0i8")
        # For reading (0), into every level of the cache (3), data (1).
        builder.call(function, [item, *(ir.Constant(_INT32, number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


# Typed as what kernels see: without the first parameter, which is numba's.
trailing_zeros: Any = intrinsic(_trailing_zeros)
prefetch: Any = intrinsic(_prefetch)
