"""A world in which every step of a transaction that touches disk, ledger, rows or randomness can go wrong.

A process that is killed does nothing more: from then on all its steps raise, those of its clean-up too. What happens is
the same in every run that has the same seed and the same faults.
"""

from __future__ import annotations

import errno
import io
import os
import random
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import dpbayes.jobs.base
import dpbayes.report.folder
from dpbayes.base.errors import TableError
from dpbayes.curator import Curator
from dpbayes.hellinger.baselines import PosteriorLaplace
from dpbayes.ledger.connection import Connection
from dpbayes.ledger.store import Store
from dpbayes.mechanisms.selection import Selection
from dpbayes.mechanisms.threshold import Threshold
from dpbayes.tables.duckdb import DuckDBEngine

Fault = Literal["kill", "half", "lost", "full", "stays full", "denied", "away", "other", "restart"]
"""Killed before a step, killed in the middle of a write, killed after a step whose answer is lost; a disk that is full
once or until it is mended; permission that is refused once; a ledger that is away until it is mended; another process
that does something meanwhile; a server that stops at once and starts again, in the middle of a transaction too."""

WRITES = ("open", "write", "sync", "rename", "replace", "mkdir", "commit", "numbers")
"""Steps that need room."""


class Killed(BaseException):
    """The process is no more."""


@dataclass
class Process:
    """A process with the faults that it will meet, by the number of the step."""

    faults: dict[int, Fault] = field(default_factory=dict)
    meanwhile: Callable[[], None] = lambda: None
    trace: list[str] = field(default_factory=list)
    met: list[Fault] = field(default_factory=list)
    dead: bool = False


class World:
    """A folder, the processes that work in it, and what is wrong with it at the moment."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.full = self.away = False
        self._processes: list[Process] = []

    def mend(self) -> None:
        self.full = self.away = False

    @contextmanager
    def process(self, process: Process) -> Iterator[Process]:
        """What is done in this block is done by this process; its death ends the block and no more."""
        self._processes.append(process)
        try:
            yield process
        except Killed:
            assert process.dead
        finally:
            self._processes.pop()

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """What is done in this block is part of no history."""
        running, self._processes = self._processes, []
        try:
            yield
        finally:
            self._processes = running

    def step(self, name: str, act: Callable[[], Any], half: Callable[[], object] = lambda: None) -> Any:
        """Take a step, or meet the fault that waits there."""
        if not self._processes:
            return act()
        process = self._processes[-1]
        if process.dead:
            raise Killed
        process.trace.append(name)
        fault = process.faults.get(len(process.trace))
        self._meet(process, fault, name, half)
        if self.full and name in WRITES:
            half()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.away and name in ("connect", "commit"):
            raise OSError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        done = act()
        if fault == "lost":
            process.dead = True
            if isinstance(done, io.IOBase):
                done.close()
            raise Killed
        return done

    def _meet(self, process: Process, fault: Fault | None, name: str, half: Callable[[], object]) -> None:
        if fault is not None:
            process.met.append(fault)
        if fault in ("kill", "half"):
            if fault == "half":
                half()
            process.dead = True
            raise Killed
        if fault == "full" and name in WRITES:
            half()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if fault == "denied" and name == "count":
            raise TableError("Table: it cannot be read.")
        if fault == "denied" and name in (*WRITES, "unlink"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        # another writer would wait for this one to commit
        if fault == "restart" or (fault == "other" and name != "commit"):
            process.meanwhile()
        self.full |= fault == "stays full"
        self.away |= fault == "away"

    def inside(self, path: object) -> bool:
        return isinstance(path, (str, os.PathLike)) and str(path).startswith(str(self.folder))

    @contextmanager
    def real(self) -> Iterator[World]:
        """Put the steps in the way of the real code, and make its secrets repeatable."""
        changes = [
            *(patch.object(os, name, self._on_path(name, step)) for name, step in _ON_PATHS.items()),
            patch.object(os, "fsync", self._wrapped("sync", os.fsync)),
            patch.object(io, "open", self._opened),
            *(patch.object(owner, name, self._wrapped(step, getattr(owner, name))) for owner, name, step in _CALLS),
            patch.object(dpbayes.report.folder, "write_numbers", self._numbers),
            patch.object(secrets, "token_hex", lambda size: self.random.randbytes(size).hex()),
            patch.object(secrets, "token_bytes", self.random.randbytes),
            patch.object(secrets, "randbits", self.random.getrandbits),
            patch.object(secrets, "randbelow", self.random.randrange),
        ]
        started = []
        try:
            for change in changes:
                change.start()
                started.append(change)
            yield self
        finally:
            for change in reversed(started):
                change.stop()

    def _wrapped(self, step: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def stand_in(*arguments: Any, **named: Any) -> Any:
            return self.step(step, lambda: real(*arguments, **named))

        return stand_in

    def _on_path(self, name: str, step: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def stand_in(path: Any, *arguments: Any, **named: Any) -> Any:
            if not (self.inside(path) or named.get("dir_fd") is not None):
                return real(path, *arguments, **named)
            return self.step(step, lambda: real(path, *arguments, **named))

        return stand_in

    def _opened(self, path: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        if not self.inside(path) or "w" not in mode:
            return _OPEN(path, mode, *arguments, **named)
        raw = self.step("open", lambda: _File(self, path))
        file = io.BufferedWriter(raw)
        return file if "b" in mode else io.TextIOWrapper(file, encoding=named.get("encoding") or "utf-8")

    def _numbers(self, release: Any, table: Any, path: Path, kind: Any) -> None:
        def half() -> None:
            _NUMBERS(release, table, path, kind)
            os.truncate(path, path.stat().st_size // 2)

        self.step("numbers", lambda: _NUMBERS(release, table, path, kind), half)


class _File(io.FileIO):
    """A file whose every write is a step."""

    def __init__(self, world: World, path: Any) -> None:
        super().__init__(path, "wb")
        self._world = world

    def write(self, data: Any) -> int:
        whole, super_write = bytes(data), super().write
        return int(self._world.step("write", lambda: super_write(whole), lambda: super_write(whole[: len(whole) // 2])))


_OPEN, _NUMBERS = io.open, dpbayes.report.folder.write_numbers

_ON_PATHS = {
    "open": "open", "replace": "replace", "rename": "rename", "unlink": "unlink", "mkdir": "mkdir", "rmdir": "unlink",
}  # fmt: skip

_CALLS: list[tuple[Any, str, str]] = [
    (Store, "connect", "connect"),
    (Connection, "commit", "commit"),
    (DuckDBEngine, "count", "count"),
    (DuckDBEngine, "occupied", "count"),
    (DuckDBEngine, "values", "count"),
    (dpbayes.jobs.base, "draw_table", "draw"),
    (Threshold, "draw", "draw"),
    (Selection, "choose", "draw"),
    (PosteriorLaplace, "draw", "draw"),
    (Curator, "_draw", "curator"),
    (Curator, "_drawn_and_kept", "curator"),
    (Curator, "_noted", "curator"),
]
