"""Write a release to a folder: JSON, numbers, report. All of it appears at once, or nothing does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dpbayes import _checks
from dpbayes.domain import durable
from dpbayes.domain.codec import digest
from dpbayes.errors import ReleaseError
from dpbayes.release import arrow
from dpbayes.release.format import Release
from dpbayes.release.products import completed
from dpbayes.release.table import TableView
from dpbayes.report.appendix import file_names
from dpbayes.report.page import report_html

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
        with durable.beside(nearest / where.name, folder=True):
            pass
    except OSError as problem:
        raise _cannot_write(where, problem) from None
    return where


def save(release: Release, folder: str | Path, *, numbers: Numbers = "csv") -> tuple[Path, ...]:
    """Write ``release.json``, ``report.html`` and one file of numbers per table; return their paths.

    The folder must be new or empty. The files are written and flushed beside it, then renamed into place, and
    ``release.json`` names the hash of each.
    """
    _checks.one_of("save", ("csv", "parquet"), numbers=numbers)
    where = check_folder(folder)
    if not any(table.products for table in release.asked):
        release = completed(release)
    writers: dict[str, Callable[[Path], object]] = {
        "report.html": lambda path: path.write_text(report_html(release), encoding="utf-8")
    }
    for name, table in zip(file_names(release, f".{numbers}"), release.asked, strict=True):
        view = TableView(release, table)
        writers[name] = lambda path, view=view: _write_numbers(view.to_arrow(), path, numbers)  # type: ignore[misc]
    try:
        with durable.beside(where, folder=True) as beside:
            for name, write in writers.items():
                write(beside / name)
                durable.flush(beside / name)
            files = {name: digest((beside / name).read_bytes()) for name in writers}
            (beside / "release.json").write_text(replace(release, files=files).to_json(), encoding="utf-8")
            durable.flush(beside / "release.json")
            beside.rename(where)
            durable.flush(where.absolute().parent)
    except OSError as problem:
        raise _cannot_write(where, problem) from None
    return (where / "release.json", *(where / name for name in writers))


def _cannot_write(where: Path, problem: OSError) -> ReleaseError:
    return ReleaseError(f"Release: cannot write to {str(where)!r}: {problem.strerror or 'the disk refused'}.")


def _write_numbers(numbers: pyarrow.Table, path: Path, kind: Numbers) -> None:
    if kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(numbers, path)
        return
    import pyarrow
    from pyarrow import csv

    texts = [arrow.decoded(column) for column in numbers.columns]
    csv.write_csv(pyarrow.table(texts, names=numbers.column_names), path)
