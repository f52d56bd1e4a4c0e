"""Write a release to a folder: JSON, numbers, report. All of it appears at once, or nothing does."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from dpbayes import _checks
from dpbayes.domain.marginal import Marginal
from dpbayes.errors import ReleaseError
from dpbayes.release import Release, Table
from dpbayes.report import report_html

if TYPE_CHECKING:
    import pyarrow

Numbers = Literal["csv", "parquet"]


def check_folder(folder: str | Path) -> Path:
    """Refuse a folder that a release cannot be written to, before anything is charged for it."""
    where = Path(folder)
    try:
        if where.is_dir() and any(where.iterdir()):
            raise ReleaseError(f"Release: the folder {str(where)!r} is not empty. Name a new one.")
        if where.exists() and not where.is_dir():
            raise ReleaseError(f"Release: {str(where)!r} is a file. Name a new folder.")
        nearest = next(parent for parent in where.absolute().parents if parent.exists())
        attempt = _beside(nearest / where.name)
        attempt.mkdir()
        attempt.rmdir()
    except OSError as problem:
        raise _cannot_write(where, problem) from None
    return where


def write_release(release: Release, folder: str | Path, *, numbers: Numbers = "csv") -> tuple[Path, ...]:
    """Write ``release.json``, ``report.html`` and one file of numbers a table; return their paths.

    The folder must be new or empty. The files are written and flushed beside it, then renamed into place.
    """
    _checks.one_of("write_release", ("csv", "parquet"), numbers=numbers)
    where = check_folder(folder)
    writers: dict[str, Callable[[Path], object]] = {
        "release.json": lambda path: path.write_text(release.to_json(), encoding="utf-8"),
        "report.html": lambda path: path.write_text(report_html(release), encoding="utf-8"),
    }
    for number, table in enumerate(release.tables, start=1):
        name = f"{number}-{file_stem(table.asked)}.{numbers}"
        writers[name] = lambda path, table=table: _write_numbers(numbers_table(table), path, numbers)  # type: ignore[misc]
    beside = _beside(where)
    try:
        beside.mkdir(parents=True)
        for name, write in writers.items():
            write(beside / name)
            _flush(beside / name)
        beside.rename(where)
        _flush(where.absolute().parent)
    except OSError as problem:
        raise _cannot_write(where, problem) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return tuple(where / name for name in writers)


def _beside(where: Path) -> Path:
    """A new name in the same folder, so that the rename stays within one file system."""
    absolute = where.absolute()
    return absolute.with_name(f".{absolute.name[:100]}.{secrets.token_hex(8)}")


def _flush(path: Path) -> None:
    """Wait until it is on disk: a charged release that is lost cannot be drawn again for free."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _cannot_write(where: Path, problem: OSError) -> ReleaseError:
    return ReleaseError(f"Release: cannot write to {str(where)!r}: {problem.strerror or 'the disk refused'}.")


def file_stem(marginal: Marginal) -> str:
    """A file name for a table, of letters and digits.

    >>> file_stem(Marginal.parse("income|sex,age group"))
    'income-by-sex-age-group'
    """
    said = "-by-".join("-".join(side) for side in (marginal.of, marginal.given) if side)
    return re.sub(r"\W+", "-", said).strip("-")[:40] or "table"


def numbers_table(table: Table) -> pyarrow.Table:
    """One row a cell: its levels, what was released, and every product with the ends of its intervals.

    A column of numbers whose name is an attribute's already gets an underscore.
    """
    import pyarrow

    columns: dict[str, object] = {}
    positions = np.unravel_index(np.arange(len(table.values)), table.shape)
    for axis, position in zip(table.axes, positions, strict=True):
        columns[axis.name] = pyarrow.DictionaryArray.from_arrays(position.astype(np.int32), axis.levels)
    listed: dict[str, list[float] | list[int]] = {"released": table.values}
    for name, product in table.products.items():
        listed |= {name: product.values, f"{name}_lower": product.lower or [], f"{name}_upper": product.upper or []}
    for name, values in listed.items():
        if values:
            columns[_free(name, columns)] = pyarrow.array(values)
    return pyarrow.table(columns)


def _free(name: str, taken: dict[str, object]) -> str:
    used = {other.casefold() for other in taken}
    while name.casefold() in used:
        name += "_"
    return name


def _write_numbers(numbers: pyarrow.Table, path: Path, kind: Numbers) -> None:
    import pyarrow
    from pyarrow import csv, parquet

    if kind == "parquet":
        parquet.write_table(numbers, path)
        return
    texts = [
        column.cast(pyarrow.string()) if pyarrow.types.is_dictionary(column.type) else column
        for column in numbers.columns
    ]
    csv.write_csv(pyarrow.table(texts, names=numbers.column_names), path)
