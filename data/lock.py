"""One process at a time on one artefact: who comes second is told who came first, and waits or is refused.

The lock of `folder/name` is the file `folder/.name.lock`, which is there only while somebody works. The system keeps
it (flock) and frees it however the process ends, so a file that a killed process left behind is simply taken over.
The owner, which is in the file, is for the message. It decides only where the system cannot: another machine's
process may live without being seen from here, and some network file systems keep no locks at all.

Readers need no lock: all files are written whole, and every artefact is checked by its hashes.
"""

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import shlex
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from data.errors import DataError, InUseError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PATIENCE_SECONDS = 3600.0
"""How long a step that can be waited for is waited for."""
_POLL_SECONDS = 0.2
_VANISHES = 500
_WRITING_SECONDS = 1.0
_OWNER_BYTES = 4096
_COMMAND_CHARACTERS = 300
_NO_LOCKS_HERE = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Owner:
    """Who holds a lock, as the lock file tells."""

    pid: int
    host: str
    boot: str
    """What tells one start of a machine from all others; empty where the system does not say."""
    since: str
    command: str

    def is_elsewhere(self) -> bool:
        """Whether it runs on another machine, where this one's locks may not be seen.

        Containers of one machine have names of their own and its boot; a restarted machine has its name and a new boot.
        """
        own = _this_process()
        return self != UNKNOWN and self.host != own.host and (self.boot != own.boot or not own.boot)

    def __str__(self) -> str:
        if self == UNKNOWN:
            return "another process, which has not written who it is"
        return f"process {self.pid} on {self.host}, since {self.since}: `{self.command}`"


UNKNOWN = Owner(0, "", "", "", "")


@dataclass
class _Held:
    """A lock that this process has."""

    thread: int
    file: Path
    descriptor: int
    """Of `file`."""
    descriptors: contextlib.ExitStack
    """Closing it frees the lock."""
    depth: int = 1
    made: list[Path] = field(default_factory=list)
    """Folders that were made for it, innermost first; those that stay empty go with it."""


_held: dict[Path, _Held] = {}


@contextmanager
def alone(path: Path, *, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[bool]:
    """Be the only process that writes the file or folder `path`; yields whether another one had to be waited for.

    After a wait look again whether there is still something to do. A thread may take the same lock again inside.
    Raises InUseError, which names the owner, where that one does not end within `patience_seconds`, and DataError
    where no lock file can be written.
    """
    real = Path(os.path.realpath(path))
    held, has_waited = _held.get(real), False
    if held is not None and held.thread == threading.get_ident():
        held.depth += 1
    else:
        held, has_waited = _wait_for(real, path, patience_seconds)
        _held[real] = held
    try:
        yield has_waited
    finally:
        held.depth -= 1
        if held.depth == 0 and _held.get(real) is held:  # a forked child holds nothing, and gives nothing back
            del _held[real]
            _release(held)


def _wait_for(real: Path, path: Path, patience_seconds: float) -> tuple[_Held, bool]:
    file = real.with_name(f".{real.name}.lock")
    deadline, has_waited, num_vanished = time.monotonic() + patience_seconds, False, 0
    while True:
        try:
            made = [folder for folder in file.parents if not folder.exists()]
            file.parent.mkdir(parents=True, exist_ok=True)
            found = _take(file)
        except OSError as error:
            raise DataError(f"cannot write {file}: {error.strerror or error}; nothing was changed") from error
        if isinstance(found, _Held):
            found.made = made
            return found, has_waited
        if found is None:
            num_vanished += 1
            if num_vanished > _VANISHES:
                raise DataError(f"cannot lock {path}: {file} is another file each time that it is looked at")
            time.sleep(_POLL_SECONDS / 10)
            continue
        owner, surely_lives = found
        if not surely_lives:
            raise InUseError(
                f"{path} is in use by {owner}; whether that process is still there cannot be seen from "
                f"{socket.gethostname()}: if it is not, delete {file} and run the same command again"
            )
        if time.monotonic() >= deadline:
            stop = f" or stop it (kill {owner.pid})" if owner.pid and not owner.is_elsewhere() else ""
            raise InUseError(f"{path} is in use by {owner}; wait for its end{stop}, then run the same command again")
        if not has_waited:
            print(f"waiting for {path}, which is in use by {owner}", file=sys.stderr, flush=True)
        has_waited = True
        time.sleep(_POLL_SECONDS)


def _take(file: Path) -> _Held | tuple[Owner, bool] | None:
    """The lock; or who has it, and whether that one surely lives; or None where the file vanished: look again."""
    with contextlib.ExitStack() as descriptors:
        try:
            descriptor, is_new = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), True
        except FileExistsError:
            try:
                descriptor, is_new = _open_existing(file), False
            except FileNotFoundError:
                return None
        descriptors.callback(os.close, descriptor)
        try:
            is_free, are_locks_kept = _lock(descriptor), True
        except OSError as error:
            if error.errno not in _NO_LOCKS_HERE:
                raise
            is_free, are_locks_kept = _lock_on_this_machine(file, descriptors), False
        if not is_free:
            return _read_owner(descriptor), True
        if not _is_still(file, descriptor):
            return None
        if not are_locks_kept and not is_new and _read_owner(descriptor) == UNKNOWN:
            time.sleep(_WRITING_SECONDS)  # a process of another machine may have made it just now
        left = _read_owner(descriptor)  # of one that was killed, as the lock is free
        if left.is_elsewhere():
            return left, False
        try:
            _write_owner(descriptor)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            file.unlink()  # another user left it, and it can only be read: make way for one of our own
            return None
        return _Held(threading.get_ident(), file, descriptor, descriptors.pop_all())


def _open_existing(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR)
    except PermissionError:
        return os.open(file, os.O_RDONLY)  # another user's; it can be locked all the same


def _lock(descriptor: int) -> bool:
    """Lock the open file unless another process has; whether that went well. The end of a process frees its locks."""
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _OWNER_BYTES, os.SEEK_SET)  # a byte beyond the text: others cannot read a locked one
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except PermissionError:
        if sys.platform == "win32":
            return False
        raise
    return True


def _lock_on_this_machine(file: Path, descriptors: contextlib.ExitStack) -> bool:
    """In place of a file system without locks: a lock in the machine's own folder for temporary files."""
    name = hashlib.sha256(os.fsencode(file)).hexdigest()[:24]
    local = Path(tempfile.gettempdir()) / f"chars-or-bpe-{name}.lock"
    try:
        descriptor = os.open(local, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        descriptor = _open_existing(local)
    descriptors.callback(os.close, descriptor)
    return _lock(descriptor)


def _is_still(file: Path, descriptor: int) -> bool:
    """Whether `file` is the open one: its owner deletes it at the end, and another process may have made it again."""
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _release(held: _Held) -> None:
    with held.descriptors, contextlib.suppress(OSError):  # a file that stays there is taken over by the next one
        if _is_still(held.file, held.descriptor):
            held.file.unlink()
            for folder in held.made:
                folder.rmdir()  # not of one that holds something by now


def _forget_in_child() -> None:
    """Close what a forked child shares with its parent: it would keep the locks when the parent has ended."""
    for held in _held.values():
        held.descriptors.close()
    _held.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_in_child)


def _this_process() -> Owner:
    boot = _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else ""
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    return Owner(os.getpid(), socket.gethostname(), boot, since, shlex.join(sys.orig_argv)[:_COMMAND_CHARACTERS])


def _write_owner(descriptor: int) -> None:
    text = json.dumps(dataclasses.asdict(_this_process())).encode("ascii")
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, text.ljust(_OWNER_BYTES))  # over all that another owner may have written


def _read_owner(descriptor: int) -> Owner:
    """Who wrote the lock file; UNKNOWN where that cannot be read, as in the moment before it is written."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        stored = json.loads(os.read(descriptor, _OWNER_BYTES))
        words = {name: _printable(stored[name]) for name in ("host", "boot", "since", "command")}
        return Owner(pid=int(stored["pid"]), **words)
    except (ValueError, OverflowError, KeyError, TypeError):
        return UNKNOWN


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
