"""What a file of synthetic records is, for machine learning: the metadata format Croissant of MLCommons.

Source: Croissant Format Specification 1.0 (MLCommons, 2024).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow

from dpbayes.domain.codec import Record, digest
from dpbayes.release.format import Release
from dpbayes.report.page import about, title

FORMATS = {".csv": "text/csv", ".parquet": "application/x-parquet"}

CONTEXT: Record = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant(release: Release, records: Path, columns: pyarrow.Schema, rows: int) -> Record:
    """The metadata of a file of synthetic records that was made of a release."""
    said, file = about(release), records.name
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
    return found


def croissant_json(release: Release, records: Path, columns: pyarrow.Schema, rows: int) -> str:
    """The metadata as a file."""
    return json.dumps(croissant(release, records, columns, rows), indent=1, ensure_ascii=False) + "\n"


def _field(release: Release, file: str, name: str, kind: pyarrow.DataType) -> Record:
    axis = release.schema[name]
    what = f"{len(axis.categories)} categories" if axis.categories else f"{len(axis.edges) - 1} bins"
    place = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return {
        "@type": "cr:Field",
        "@id": f"records/{place}",
        "name": name,
        "description": f"The attribute {name}, with {what} declared.",
        "dataType": "sc:Float"
        if pyarrow.types.is_floating(kind)
        else "sc:Integer"
        if pyarrow.types.is_integer(kind)
        else "sc:Text",
        "source": {"fileObject": {"@id": file}, "extract": {"column": name}},
    }
