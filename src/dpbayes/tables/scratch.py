"""A private folder for rows that an engine cannot hold in memory.

Each process has one, of mode 0700, below the system's folder for temporary files (``TMPDIR`` moves it). It is removed
when the process ends. A process that is killed cannot do so: its folder is removed by the next process that needs one.
A lock on the folder tells whether its process still lives. The system releases it with the process, so no process is
ever mistaken for a later one of the same number.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dpbayes.errors import TableError

PREFIX = "dpbayes-rows-"


@dataclass(frozen=True, slots=True)
class _Held:
    path: Path
    process: int
    room: int


_held: list[_Held] = []  # the one of this process; after a fork, the parent's until the child makes its own
_guard = threading.Lock()


def private_folder() -> Path:
    """The private folder of this process, made when it is first asked for; folders of dead processes are removed."""
    return _mine().path


def room() -> int:
    """How many bytes an engine may write there: half of what was free when the folder was made."""
    return _mine().room


def sweep() -> None:
    """Remove the folders that processes of this user left behind when they were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # it is locked by a living process, or another process was faster
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(folder).st_uid == os.geteuid():
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(folder)


def _mine() -> _Held:
    with _guard:
        if not _held or _held[0].process != os.getpid() or not _held[0].path.is_dir():
            try:
                sweep()
                path = _made()
                held = _Held(path, os.getpid(), shutil.disk_usage(path).free // 2)
            except OSError:
                raise TableError(
                    "Table: no private folder for temporary files can be made. Set TMPDIR to a folder you can write to."
                ) from None
            _held[:] = [held]
            atexit.register(_remove, held)
        return _held[0]


def _made() -> Path:
    """A new folder, locked for as long as this process lives."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(FileNotFoundError):  # a sweep found it before it was locked
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)  # never closed: the lock goes with it
            with suppress(OSError):  # a file system without locks: nobody can sweep there either
                fcntl.flock(folder, fcntl.LOCK_EX)
            if path.stat().st_ino == os.fstat(folder).st_ino:
                return path


def _remove(held: _Held) -> None:
    if held.process == os.getpid():  # not in a child that was forked
        shutil.rmtree(held.path, ignore_errors=True)
