"""Write a release to a folder: JSON, numbers, report. All of it appears at once, or nothing does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from dpbayes.base import checks
from dpbayes.base.codec import digest
from dpbayes.base.errors import InvalidArgument
from dpbayes.base.files import beside, cannot_write, check_folder, flush
from dpbayes.release.format import Release
from dpbayes.release.products import complete
from dpbayes.report import companions, registry
from dpbayes.report.page import numbered_files, report_html
from dpbayes.report.registry import Deployment
from dpbayes.report.tables import Numbers, write_numbers

Companion = Literal["xlsx", "sheet", "registry"]
Writer = Callable[[Path], object]


def save(
    release: Release,
    folder: str | Path,
    *,
    numbers: Numbers = "csv",
    also: Iterable[Companion] = (),
    deployment: Deployment | None = None,
) -> tuple[Path, ...]:
    """Write ``release.json``, ``report.html`` and one file of numbers per table; return their paths.

    A large table has its numbers in a Parquet file, whatever was asked for, and not in ``release.json`` as well. CSV
    files come with their metadata (CSV on the Web). ``also`` asks for a workbook (``xlsx``), a privacy ``sheet`` and an
    entry for the ``registry`` of deployments, for which ``deployment`` says what the release does not. The folder must
    be new or empty. The files are written and flushed beside it, then renamed into place, and
    ``release.json`` names the hash of each.
    """
    checks.one_of("save", ("csv", "parquet"), numbers=numbers)
    where = check_folder(folder)
    if not any(table.products for table in release.tables):
        release = complete(release)
    writers = _writers(release, numbers) | _companions(release, tuple(also), deployment)
    try:
        with beside(where, folder=True) as draft:
            for name, write in writers.items():
                write(draft / name)
                flush(draft / name)
            files = {name: digest((draft / name).read_bytes()) for name in writers}
            (draft / "release.json").write_text(replace(release, files=files).to_json(beside=True), encoding="utf-8")
            flush(draft / "release.json")
            flush(draft)  # the names of the files, which are the folder's own content
            draft.rename(where)
            flush(where.absolute().parent)
    except OSError as problem:
        raise cannot_write(where, problem) from None
    return (where / "release.json", *(where / name for name in writers))


def _writers(release: Release, numbers: Numbers) -> dict[str, Writer]:
    """What every folder holds: the report, the numbers and what they mean."""
    writers: dict[str, Writer] = {"report.html": lambda path: _text(path, report_html(release))}
    for name, table in numbered_files(release, numbers).items():
        writers[name] = lambda path, table=table: write_numbers(  # type: ignore[misc]
            release, table, path, "parquet" if path.suffix == ".parquet" else "csv"
        )
    if any(name.endswith(".csv") for name in writers):
        writers[companions.CSVW_FILE] = lambda path: _text(
            path, json.dumps(companions.csvw(release), indent=1, ensure_ascii=False)
        )
    return writers


def _companions(release: Release, also: tuple[Companion, ...], deployment: Deployment | None) -> dict[str, Writer]:
    """What was asked for beyond that; refused before anything is written if it cannot be made."""
    found: dict[str, Writer] = {}
    for name in also:
        checks.one_of("save", get_args(Companion), also=name)
    if "xlsx" in also:
        companions.check_xlsx()
        found[companions.XLSX_FILE] = lambda path: companions.write_xlsx(release, path)
    if "sheet" in also:
        found[companions.SHEET_FILE] = lambda path: _text(path, companions.sheet_html(release))
    if "registry" in also:
        if deployment is None:
            raise InvalidArgument(
                "registry: expected the curator's name and type and the region, which a release does not say."
            )
        text = registry.entry_yaml(release, deployment)
        found[registry.FILE] = lambda path: _text(path, text)
    return found


def _text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
