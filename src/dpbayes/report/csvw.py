"""What the files of numbers mean, for programs: CSV on the Web, the W3C's metadata for tables.

Source: W3C Recommendations "Metadata Vocabulary for Tabular Data" and "Model for Tabular Data and Metadata on the Web"
(2015). The file has the name that the latter tells programs to look for.
"""

from __future__ import annotations

from urllib.parse import quote

from dpbayes.domain.codec import Record
from dpbayes.release.format import Release, Table
from dpbayes.report import words
from dpbayes.report.appendix import numbered_files
from dpbayes.report.cells import Column, columns
from dpbayes.report.page import about, title

FILE = "csv-metadata.json"

TYPES = {"text": "string", "integer": "integer", "number": "double"}


def csvw(release: Release) -> Record:
    """The metadata of all CSV files of a release."""
    said = about(release)
    listed = [(name, table) for name, table in numbered_files(release, "csv").items() if name.endswith(".csv")]
    found: Record = {
        "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
        "dc:title": title(release),
        "dc:description": said.get("purpose") or f"Tables of {release.dataset}.",
        "dc:rights": release.statement(),
        "dc:created": release.created,
        "tables": [_table(release, table, name) for name, table in listed if not table.long],
    }
    for key, term in (("author", "dc:creator"), ("contact", "dc:publisher"), ("supersedes", "dc:replaces")):
        if key in said:
            found[term] = said[key]
    return found


def _table(release: Release, table: Table, name: str) -> Record:
    found = columns(release, table)
    texts = [_name(column) for column in found if column.kind == "text"]
    return {
        "url": quote(name),
        "dc:title": words.title(table),
        "tableSchema": {"columns": [_column(column) for column in found], "primaryKey": texts},
    }


def _column(column: Column) -> Record:
    return {
        "name": _name(column),
        "titles": column.name,
        "dc:description": column.description,
        "datatype": TYPES[column.kind],
        "required": True,
    }


def _name(column: Column) -> str:
    """A name as URI templates allow it: letters, digits and underscores, others percent-encoded."""
    encoded = quote(column.name, safe="").replace("-", "%2D").replace(".", "%2E").replace("~", "%7E")
    return f"%5F{encoded[1:]}" if encoded.startswith("_") else encoded
