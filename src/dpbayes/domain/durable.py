"""Files that are on disk when a call returns, and appear whole or not at all.

What is under way has a hidden name beside its final one, ``.name.<16 hex digits>``, and its writer holds a lock on it.
A writer that is killed leaves it behind, and it may be as private as the table: whoever writes the same name next
removes it, as nobody holds its lock any more.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

NO_LOCKS = "its file system has no locks. Move the ledger to one that has"
"""Why a lock cannot be had, and what helps."""


def write(
    path: Path,
    content: str | bytes | Callable[[Path], object],
    *,
    private: bool = False,
    held: ExitStack | None = None,
) -> None:
    """Write a file beside its final name, flush it, rename it into place; ``private`` ones are their owner's only.

    The lock under which it was written goes over to ``held``, if that is given; else it ends here.
    """
    with beside(path, mode=0o600 if private else 0o666, held=held) as under_way:
        if callable(content):
            content(under_way)
        else:
            under_way.write_bytes(content.encode() if isinstance(content, str) else content)
        flush(under_way)
        under_way.replace(path)
        flush(path.absolute().parent)


@contextmanager
def beside(path: Path, *, mode: int = 0o666, folder: bool = False, held: ExitStack | None = None) -> Iterator[Path]:
    """A new file or folder with a hidden name next to a path, to be renamed to it; else it is removed."""
    where = path.absolute()
    sweep(where.parent, where.name)
    with ExitStack() as until:
        handle = None
        while handle is None:  # a sweeper can be faster than the lock, once
            under_way = where.with_name(f".{where.name[:100]}.{secrets.token_hex(8)}")
            if folder:
                make_folder(under_way)
            else:
                os.close(os.open(under_way, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            until.callback(_discard, under_way)
            handle = locked(under_way, needed=held is not None)
        (held or until).callback(os.close, handle)
        yield under_way


def locked(path: Path, *, needed: bool = True) -> int | None:
    """A handle that holds the lock of a file; None if somebody else does, or has renamed or removed it meanwhile.

    Where a file system has no locks, an unlocked handle will do unless the lock is ``needed``: then OSError says so.
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with ExitStack() as until:
        until.callback(os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(handle), path.stat()):
                return None
        except (BlockingIOError, FileNotFoundError):
            return None
        except OSError as problem:
            if needed:
                raise OSError(problem.errno, NO_LOCKS) from None
        until.pop_all()
    return handle


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove what killed writers left in a folder, or what they left of one file; what cannot be removed stays."""
    of = r".+" if name is None else re.escape(name[:100])
    with suppress(OSError):
        for path in [each for each in folder.iterdir() if re.fullmatch(rf"\.{of}\.[0-9a-f]{{16}}", each.name)]:
            handle = locked(path)
            if handle is not None:
                try:
                    with suppress(OSError):  # the others can be removed still
                        _remove(path)
                finally:
                    os.close(handle)


def _discard(path: Path) -> None:
    with suppress(FileNotFoundError):
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def lacks_locks(folder: Path) -> bool:
    """Whether a file in a folder cannot be locked as databases do it; no, where no file can be made to try."""
    with suppress(OSError), tempfile.TemporaryFile(dir=folder) as tried:
        try:
            fcntl.lockf(tried, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def make_folder(path: Path, mode: int = 0o777) -> None:
    """A folder, with those above it that are missing; each is on disk before something is put into it."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(mode=mode, exist_ok=True)
    flush(path.parent)


def flush(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
