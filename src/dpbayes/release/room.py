"""Whether there is room for a release: a free folder, disk and memory. All of it is known before the charge."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from dpbayes.domain import durable
from dpbayes.errors import InvalidArgument, ReleaseError

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
        with durable.beside(nearest / where.name, folder=True):
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
