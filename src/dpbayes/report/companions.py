"""What accompanies a release: metadata for programs, a workbook, a privacy sheet, and a page on synthetic records.

Source: W3C Recommendations "Metadata Vocabulary for Tabular Data" and "Model for Tabular Data and Metadata on the Web"
(2015), for CSV files; Croissant Format Specification 1.0 (MLCommons, 2024), for synthetic records; NIST Special
Publication 800-226, Guidelines for Evaluating Differential Privacy Guarantees (2025), for the privacy sheet.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dpbayes.base.codec import Record, digest
from dpbayes.base.display import Html, joined, page, tag
from dpbayes.base.display import table as html_table
from dpbayes.base.errors import MissingExtra
from dpbayes.models.fidelity import expected_distances
from dpbayes.models.model import Published
from dpbayes.release.format import Release, Table
from dpbayes.report.page import numbered_files, title
from dpbayes.report.tables import FileColumn, file_columns
from dpbayes.words import promise as say
from dpbayes.words import report as words

if TYPE_CHECKING:
    import pyarrow

CSVW_FILE = "csv-metadata.json"


def csvw(release: Release) -> Record:
    """The metadata of all CSV files of a release."""
    said = release.about
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
    found = file_columns(release, table)
    texts = [_name(column) for column in found if column.kind == "text"]
    columns = [
        {
            "name": _name(column),
            "titles": column.name,
            "dc:description": column.description,
            "datatype": {"text": "string", "integer": "integer", "number": "double"}[column.kind],
            "required": True,
        }
        for column in found
    ]
    title = words.title(table.marginal)
    return {"url": quote(name), "dc:title": title, "tableSchema": {"columns": columns, "primaryKey": texts}}


def _name(column: FileColumn) -> str:
    """A name as URI templates allow it: letters, digits and underscores, others percent-encoded."""
    encoded = quote(column.name, safe="").replace("-", "%2D").replace(".", "%2E").replace("~", "%7E")
    return f"%5F{encoded[1:]}" if encoded.startswith("_") else encoded


XLSX_FILE = "tables.xlsx"


def check_xlsx() -> None:
    """Refuse before anything is charged if the writer is not installed."""
    try:
        import xlsxwriter  # noqa: F401 - asking is the point
    except ImportError:
        raise MissingExtra("xlsx: XlsxWriter is not installed. Install dpbayes[xlsx].") from None


def write_xlsx(release: Release, path: Path) -> None:
    """A sheet that says what the release is, and a sheet for each table. The same release has the same bytes."""
    check_xlsx()
    import xlsxwriter

    plain = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    book = xlsxwriter.Workbook(str(path), plain)
    try:
        made = datetime.fromisoformat(release.created).replace(tzinfo=None)
    except ValueError:
        made = datetime(2000, 1, 1)
    book.set_properties({"title": title(release), "author": release.about.get("author", ""), "created": made})
    styles = {"title": book.add_format({"bold": True, "font_size": 14}), "head": book.add_format({"bold": True})}
    styles |= {"wrap": book.add_format({"text_wrap": True, "valign": "top"})}
    _front(book.add_worksheet("About"), release, styles)
    for number, table in enumerate(release.asked, start=1):
        _sheet(book.add_worksheet(f"Table {number}"), release, table, number, styles)
    book.close()


def _front(sheet: Any, release: Release, styles: dict[str, Any]) -> None:
    said = release.about
    facts = [(key.capitalize(), said[key]) for key in ("author", "contact", "purpose", "supersedes") if key in said]
    facts += [("Data set", release.dataset), ("Drawn", release.created), ("Guarantee", release.statement())]
    sheet.write_string(0, 0, title(release), styles["title"])
    sheet.set_column(0, 0, 14)
    sheet.set_column(1, 1, 100, styles["wrap"])
    for row, (name, value) in enumerate(facts, start=2):
        sheet.write_string(row, 0, name, styles["head"])
        sheet.write_string(row, 1, value, styles["wrap"])
    start = 3 + len(facts)
    for row, (number, table) in enumerate(enumerate(release.asked, start=1), start=start):
        sheet.write_url(row, 0, f"internal:'Table {number}'!A1", string=f"Table {number}")
        sheet.write_string(row, 1, words.title(table.marginal))


def _sheet(sheet: Any, release: Release, table: Table, number: int, styles: dict[str, Any]) -> None:
    sheet.write_string(0, 0, f"Table {number}. {words.title(table.marginal)}", styles["title"])
    if table.long:
        sheet.write_string(1, 0, "This table is large: its numbers are in the Parquet file beside this workbook.")
        return
    found = file_columns(release, table)
    sheet.write_string(1, 0, f"Estimates with {100 * release.level:g} % intervals, rounded to what the noise supports.")
    for at, column in enumerate(found):
        sheet.write_string(3, at, column.name, styles["head"])
        sheet.write_comment(3, at, column.description)
        cells = column.plain[:1_048_570]  # a sheet ends there; release.json has all cells
        write = sheet.write_string if column.kind == "text" else sheet.write_number
        for row, cell in enumerate(cells, start=4):
            write(row, at, cell)
        longest = max([len(column.name), *(len(word) for word in column.words), 8])
        sheet.set_column(at, at, min(longest + 2, 40))
    sheet.freeze_panes(4, sum(column.kind == "text" for column in found))


SHEET_FILE = "privacy-sheet.html"

Facts = list[tuple[str, str]]


def facts(release: Release) -> dict[str, Facts]:
    """The sheet as data: for each heading, what is stated."""
    letters = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    numbers = ", ".join(f"{letters[key]} = {value:g}" for key, value in say.parameters(release.promise).items())
    said = release.about
    return {
        "The guarantee": [
            ("Notion", say.variant(release.promise)),
            ("Parameters", numbers or str(release.promise)),
            ("In words", release.statement()),
            ("Unit of privacy", say.unit_name(release)),
            ("Neighbours", say.unit_details(release)),
            ("Data domain", say.domain(release)),
            ("Not protected", say.unprotected(release)),
        ],
        "Mechanisms": [
            ("Mechanisms", " ".join(say.mechanisms(release)[:20])),
            ("Implementation", say.implementation(release)),
            ("Correctness", "dpbayes verify prices the mechanisms again and recomputes the estimates from the file."),
        ],
        "Accounting": [
            ("Composition", say.composition(release)),
            ("Post-processing", say.POST),
            ("Preparation and tuning", say.preparation(release)),
        ],
        "Accuracy and bias": [
            ("Accuracy", say.accuracy(release)),
            ("Bias", "Estimates are not below zero and agree with each other, so small true counts are estimated with "
             "some bias towards what their totals suggest. The released values are unbiased or carry a known prior."),
        ],
        "Threat model": [
            ("Trust", say.TRUST),
            ("Randomness", "Seeded, so nothing is guaranteed." if release.seeded else say.SAMPLING),
            ("Floating point", say.FLOATING),
            ("Side channels", say.SIDE),
        ],
        "Data and security": [
            ("Purpose", said.get("purpose", say.OWN)),
            ("Publisher", ", ".join(said[key] for key in ("author", "contact") if key in said) or say.OWN),
            ("Access control and storage of the rows", say.OWN),
            ("Collection and consent", say.OWN),
        ],
    }  # fmt: skip


def sheet_html(release: Release) -> str:
    """The sheet as a self-contained page."""
    parts: list[Html] = [
        tag("h1", f"Privacy sheet: {title(release)}", dir="auto"),
        tag(
            "p",
            f"Data set {release.dataset}, drawn {release.created}. It follows what NIST SP 800-226 asks about a claim "
            "of differential privacy.",
            class_="faint",
        ),
    ]
    if release.seeded:
        parts.append(tag("p", say.NOT_PRIVATE, class_="danger", role="alert"))
    for heading, rows in facts(release).items():
        parts += [tag("h2", heading), html_table(heading, ("what", "statement"), rows, class_="facts quiet")]
    return page(f"Privacy sheet: {title(release)}", joined(parts))


TRUSTED, ROUGH = 0.05, 0.2
"""Total variation by noise alone, up to which a pair is called trustworthy, or rough."""


def fidelity_html(release: Release) -> str:
    """A page without scripts: the distance that noise alone makes in every pair, and what that means."""
    published = Published.of(release)
    distances = expected_distances(published)
    names = [name for name in release.schema.names if any(name in pair for pair in distances)]
    names = names[:60]  # as many as a heat map can show
    body = [tag("h1", f"{title(release)}: what synthetic records can be trusted with"), *_summary(distances)]
    if names:
        body += [tag("h2", "Pairs of attributes"), _map(names, distances)]
    body += [tag("h2", "The guarantee"), tag("p", release.statement())]
    return page(f"{title(release)}: fidelity", joined(body))


def write_fidelity(release: Release, path: str | Path) -> None:
    """Write the page."""
    Path(path).write_text(fidelity_html(release), encoding="utf-8")


def _summary(distances: dict[tuple[str, str], float]) -> list[Html]:
    if not distances:
        said = (
            "No pair of attributes was measured, because the guarantee leaves little but noise. Each column of the "
            "records follows its own distribution, and no dependence between columns can be trusted."
        )
        return [tag("p", said)]
    good = sum(value <= TRUSTED for value in distances.values())
    rough = sum(TRUSTED < value <= ROUGH for value in distances.values())
    worst = max(distances, key=lambda pair: distances[pair])
    return [
        tag(
            "p",
            f"{good} of {len(distances)} pairs are trustworthy: noise moves less than {TRUSTED:.0%} of the records to "
            f"another cell. {rough} are rough, up to {ROUGH:.0%}; of the others the records show strong dependence at "
            f"most. The least certain pair is {worst[0]} with {worst[1]}.",
        ),
        tag(
            "p",
            "The numbers are predicted from the published noise, not measured against the private table. They are for "
            "each measured pair alone; the model joins all pairs and is usually nearer. Tables of three attributes or "
            "more were not measured: what the records say about them is the model's guess.",
        ),
    ]


def _map(names: list[str], distances: dict[tuple[str, str], float]) -> Html:
    head = tag("tr", tag("th", ""), *(tag("th", name, scope="col") for name in names))
    rows = []
    for one in names:
        cells = []
        for other in names:
            value = distances.get((one, other), distances.get((other, one)))
            cells.append(tag("td", "") if value is None else _cell(value))
        rows.append(tag("tr", tag("th", one, scope="row"), *cells))
    note = "Total variation that noise alone makes; — is above 1. Darker is worse."
    return tag("table", tag("caption", note), tag("thead", head), tag("tbody", *rows))


def _cell(value: float) -> Html:
    shade = min(value / ROUGH, 1.0)
    text = "—" if value > 1.0 else f"{value:.2f}"
    return tag("td", text, style=f"background: rgba(230, 159, 0, {shade:.2f}); text-align: right")


FORMATS = {".csv": "text/csv", ".parquet": "application/x-parquet"}

CROISSANT = (
    "citeAs", "column", "conformsTo", "data", "dataType", "examples", "extract", "field", "fileProperty", "fileObject",
    "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
    "references", "regex", "repeated", "replace", "separator", "source", "subField", "transform",
)  # fmt: skip
"""The terms of the vocabulary."""

CONTEXT: Record = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in CROISSANT},
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}


def croissant_json(release: Release, records: Path, columns: pyarrow.Schema, rows: int) -> str:
    """The metadata of a file of synthetic records that was made of a release."""
    said, file = release.about, records.name
    found: Record = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"Synthetic records of {title(release)}",
        "description": f"{rows:,} synthetic records that were drawn from a private release of {release.dataset}. No "
        f"record describes a person. {release.statement()}",
        "datePublished": release.created[:10],
        "version": "1.0.0",
        "isLiveDataset": False,
        "rai:personalSensitiveInformation": release.statement(),
        "rai:dataManipulationProtocol": "Drawn from a model of published tables, at no further cost of privacy.",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file,
                "name": file,
                "contentUrl": file,
                "contentSize": f"{records.stat().st_size} B",
                "encodingFormat": FORMATS[records.suffix.lower()],
                "sha256": digest(records.read_bytes()),
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "records",
                "name": "records",
                "description": "One synthetic record per row.",
                "field": [_field(release, file, name, columns.field(name).type) for name in columns.names],
            }
        ],
    }
    if "author" in said:
        found["creator"] = {"@type": "sc:Organization", "name": said["author"]}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _field(release: Release, file: str, name: str, kind: pyarrow.DataType) -> Record:
    from pyarrow import types

    axis = release.schema[name]
    what = f"{len(axis.categories)} categories" if axis.categories else f"{len(axis.edges) - 1} bins"
    place = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return {
        "@type": "cr:Field",
        "@id": f"records/{place}",
        "name": name,
        "description": f"The attribute {name}, with {what} declared.",
        "dataType": "sc:Float" if types.is_floating(kind) else "sc:Integer" if types.is_integer(kind) else "sc:Text",
        "source": {"fileObject": {"@id": file}, "extract": {"column": name}},
    }
