"""Copies of CSV files in which every line can be read, so that what is wrong with a line is a matter of that line only.

A reader that refuses a file for one line tells about that line, and one that skips the line tells through the number of
records. So what cannot be read is made readable: lines end where the line of the names ends, and other line breaks
belong to values; bytes that are no UTF-8 are spelt out; a quote that is not closed is a character like others; fields
that lack are missing, and fields too many are left out.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO, cast

from dpbayes.base.errors import TableError
from dpbayes.tables.sources import file_source


def copies(files: Sequence[str], delimiter: str, columns: int, folder: Path) -> list[str]:
    """Copies of all files, in a new private folder."""
    folder.mkdir(mode=0o700)
    return [mend(file, delimiter, columns, folder / f"{number}.csv") for number, file in enumerate(files)]


def mend(file: str, delimiter: str, columns: int, copy: Path) -> str:
    """Write a copy of a CSV file, every line with this many quoted fields, and return its path."""
    longest = min(2**14, 400_000 // columns)  # more than a category has, and no more than a line may have
    with _opened(file, "") as lines:  # what ends the line that names the columns ends every line
        names = list(_until_named(lines))
    line_end = next((end for end in ("\r\n", "\r") if names and names[-1].endswith(end)), "\n")
    with copy.open("w", encoding="utf-8", newline="") as out, _opened(file, line_end) as lines:
        writer = csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
        for fields in _Records(lines, delimiter, line_end):
            if fields != [""] or columns == 1:  # an empty line is a record of one column, and of no more
                writer.writerow([field[:longest] for field in (fields + [""] * columns)[:columns]])
    return str(copy)


def not_utf8(address: str) -> list[str]:
    """The first line of each CSV file that is not UTF-8: for the owner only, since it is about values."""
    said: list[str] = []
    with suppress(TableError):  # a database has no lines
        for file in file_source(address).files if file_source(address).format == "csv" else ():
            with gzip.open(file) if file.endswith(".gz") else open(file, "rb") as lines:  # noqa: PTH123 - as gzip has it
                wrong = (at for at, line in enumerate(lines, 1) if line.decode("utf-8", "ignore").encode() != line)
                if first := next(wrong, None):
                    said.append(f"Line {first:,} of {file} is not UTF-8 (is it Latin-1?): save the file as UTF-8.")
    return said


def _opened(file: str, line_end: str) -> TextIO:
    opener = gzip.open if file.endswith(".gz") else open
    return cast(TextIO, opener(file, "rt", encoding="utf-8-sig", newline=line_end, errors="backslashreplace"))


def _until_named(lines: TextIO) -> Iterator[str]:
    """The lines that the first record takes: more than one where a name has a line break in quotes."""
    read: list[str] = []
    for line in lines:
        read.append(line)
        yield line
        if "".join(read).count('"') % 2 == 0:
            return


class _Records:
    """The fields of every record of a file whose lines end in one way."""

    def __init__(self, lines: TextIO, delimiter: str, line_end: str) -> None:
        self._lines, self._ahead = iter(lines), list[str]()
        self._delimiter, self._end = delimiter, line_end
        self._stray = "\r" if line_end == "\n" else ""  # some lines may end in both
        self._closed = re.compile(rf'"([^"]*(?:""[^"]*)*)"(?={re.escape(delimiter)}|(?:{self._stray})?\Z)')
        self._open = re.compile(r'"[^"]*(?:""[^"]*)*\Z')

    def __iter__(self) -> Iterator[list[str]]:
        while (line := self._next()) is not None:
            text = line.removesuffix(self._end)
            yield self._fields(text) if '"' in text else text.removesuffix(self._stray).split(self._delimiter)

    def _next(self) -> str | None:
        return self._ahead.pop() if self._ahead else next(self._lines, None)

    def _fields(self, text: str) -> list[str]:
        fields, at = list[str](), 0
        while True:
            if text.startswith('"', at):
                text = self._extended(text, at)
            quoted = self._closed.match(text, at)
            if quoted is not None:
                fields.append(quoted[1].replace('""', '"'))
                stop = quoted.end()
            else:
                found = text.find(self._delimiter, at)
                stop = len(text) if found < 0 else found
                fields.append(text[at:stop] if found >= 0 else text[at:].removesuffix(self._stray))
            if not text.startswith(self._delimiter, stop):
                return fields
            at = stop + 1

    def _extended(self, text: str, at: int) -> str:
        """The text with the lines that a quoted value goes on in, if it is closed there, within 2²⁶ characters."""
        if not self._open.match(text, at):
            return text
        taken, size = list[str](), 0
        while size < 2**26 and (line := self._next()) is not None:
            taken.append(line)
            size += len(line)
            if '"' not in line:
                continue
            longer = text + self._end + "".join(taken).removesuffix(self._end)
            if self._closed.match(longer, at):
                return longer
            if not self._open.match(longer, at):
                break
        self._ahead.extend(reversed(taken))
        return text
