"""All tables of a release as one workbook. Written by XlsxWriter (extra ``xlsx``)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from dpbayes.errors import MissingExtra
from dpbayes.release.format import Release, Table
from dpbayes.report import words
from dpbayes.report.cells import columns
from dpbayes.report.page import about, title

FILE = "tables.xlsx"

MOST_ROWS = 1_048_570
"""A sheet ends there; release.json has all cells."""

WIDEST = 40


def check() -> None:
    """Refuse before anything is charged if the writer is not installed."""
    try:
        import xlsxwriter  # noqa: F401 - asking is the point
    except ImportError:
        raise MissingExtra("xlsx: XlsxWriter is not installed. Install dpbayes[xlsx].") from None


def write_xlsx(release: Release, path: Path) -> None:
    """A sheet that says what the release is, and a sheet for each table. The same release has the same bytes."""
    check()
    import xlsxwriter

    plain = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    book = xlsxwriter.Workbook(str(path), plain)
    try:
        made = datetime.fromisoformat(release.created).replace(tzinfo=None)
    except ValueError:
        made = datetime(2000, 1, 1)
    book.set_properties({"title": title(release), "author": about(release).get("author", ""), "created": made})
    styles = {"title": book.add_format({"bold": True, "font_size": 14}), "head": book.add_format({"bold": True})}
    styles |= {"wrap": book.add_format({"text_wrap": True, "valign": "top"})}
    _front(book.add_worksheet("About"), release, styles)
    for number, table in enumerate(release.asked, start=1):
        _sheet(book.add_worksheet(f"Table {number}"), release, table, number, styles)
    book.close()


def _front(sheet: Any, release: Release, styles: dict[str, Any]) -> None:
    said = about(release)
    facts = [("Data set", release.dataset), ("Drawn", release.created), ("Promise", release.statement())]
    facts = [
        (key.capitalize(), said[key]) for key in ("author", "contact", "purpose", "supersedes") if key in said
    ] + facts
    sheet.write_string(0, 0, title(release), styles["title"])
    sheet.set_column(0, 0, 14)
    sheet.set_column(1, 1, 100, styles["wrap"])
    for row, (name, value) in enumerate(facts, start=2):
        sheet.write_string(row, 0, name, styles["head"])
        sheet.write_string(row, 1, value, styles["wrap"])
    start = 3 + len(facts)
    for row, (number, table) in enumerate(enumerate(release.asked, start=1), start=start):
        sheet.write_url(row, 0, f"internal:'Table {number}'!A1", string=f"Table {number}")
        sheet.write_string(row, 1, words.title(table))


def _sheet(sheet: Any, release: Release, table: Table, number: int, styles: dict[str, Any]) -> None:
    sheet.write_string(0, 0, f"Table {number}. {words.title(table)}", styles["title"])
    if table.long:
        sheet.write_string(1, 0, "This table is large: its numbers are in the Parquet file beside this workbook.")
        return
    found = columns(release, table)
    sheet.write_string(1, 0, f"Estimates with {100 * release.level:g} % intervals, rounded to what the noise supports.")
    for at, column in enumerate(found):
        sheet.write_string(3, at, column.name, styles["head"])
        sheet.write_comment(3, at, column.description)
        cells = column.plain[:MOST_ROWS]
        write = sheet.write_string if column.kind == "text" else sheet.write_number
        for row, cell in enumerate(cells, start=4):
            write(row, at, cell)
        longest = max([len(column.name), *(len(word) for word in column.words), 8])
        sheet.set_column(at, at, min(longest + 2, WIDEST))
    sheet.freeze_panes(4, sum(column.kind == "text" for column in found))
