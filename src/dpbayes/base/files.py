"""Files that are on disk when a call returns, and appear whole or not at all.

What is under way has a hidden name beside its final one, ``.name.<16 hex digits>``, and its writer holds a lock on it.
A writer that is killed leaves it behind, and it may be as private as the table: whoever writes the same name next
removes it, as nobody holds its lock any more.

Whether there is room for them, on disk and in memory, is known before anything is charged.
"""

from __future__ import annotations

import fcntl
import hmac
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from dpbayes.base.errors import InvalidArgument, ReleaseError

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
            until.callback(_discard, under_way)  # first: a folder is there although it could not be flushed
            if folder:
                make_folder(under_way)
            else:
                os.close(os.open(under_way, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            handle = lock(under_way, needed=held is not None)
        (held or until).callback(os.close, handle)
        yield under_way


def lock(path: Path, *, needed: bool = True) -> int | None:
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
            handle = lock(path)
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


def state() -> Path:
    """This user's folder: of ledgers that are no files, and of a key."""
    said = os.environ.get("DPBAYES_STATE") or os.environ.get("XDG_STATE_HOME")
    return Path(said or "~/.local/state").expanduser() / "dpbayes"


def sealed(content: bytes) -> bytes:
    """A seal of this user, by a secret that is made when it is first needed; where none can be kept, never the same."""
    key = secrets.token_bytes(32)
    with suppress(OSError, RuntimeError):
        path = state() / "own.key"
        if not path.exists():
            make_folder(path.parent, 0o700)
            write(path, key, private=True)
        key = found if len(found := path.read_bytes()) == len(key) else key
    return hmac.new(key, content, "sha256").hexdigest().encode()


def flush(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


MEMORY = 300
"""Bytes that a cell takes while it is counted, drawn, estimated and written; measured with a million cells."""

DISK = 80
"""Bytes of a cell in a folder: what was drawn, and three products with their intervals, as doubles."""


def check_folder(folder: str | Path) -> Path:
    """Refuse a folder that a release cannot be written to, before anything is charged for it."""
    where = Path(folder)
    try:
        if where.is_dir() and any(where.iterdir()):
            raise ReleaseError(f"Release: the folder {str(where)!r} is not empty. Name a new one.")
        if where.exists() and not where.is_dir():
            raise ReleaseError(f"Release: {str(where)!r} is a file. Name a new folder.")
        nearest = _nearest(where)
        with beside(nearest / where.name, folder=True):
            pass
    except OSError as problem:
        raise cannot_write(where, problem) from None
    return where


def cannot_write(where: Path, problem: OSError) -> ReleaseError:
    """What is said where the system refuses to write."""
    return ReleaseError(f"Release: cannot write to {str(where)!r}: {problem.strerror or 'the disk refused'}.")


def check_disk(cells: int, folders: Iterable[Path]) -> None:
    """Refuse a release that will not fit on a disk it is written to."""
    for folder in folders:
        free = shutil.disk_usage(_nearest(folder)).free
        if cells * DISK > free:
            raise ReleaseError(
                f"Release: {cells:,} cells take about {_size(cells * DISK)} on disk, and {_size(free)} are free for "
                f"{str(folder)!r}. Ask for smaller tables, or make room."
            )


def check_memory(cells: int) -> None:
    """Refuse tables that will not fit into memory."""
    if (needed := cells * MEMORY) > (free := _available()):
        raise InvalidArgument(
            f"Tables: {cells:,} cells take about {_size(needed)} of memory, and {_size(free)} are available. Declare "
            "fewer categories, or ask for smaller tables."
        )


def _available() -> int:
    """Memory that can be had without swapping, as Linux tells it; elsewhere all there is."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _nearest(where: Path) -> Path:
    return next(parent for parent in where.absolute().parents if parent.exists())


def _size(number: int) -> str:
    return f"{number / 1e9:.3g} GB"
