"""Read the file of a release, strictly: what is not understood is refused, in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

from dpbayes.base.codec import Record, canonical
from dpbayes.base.errors import DpbayesError, ReleaseError
from dpbayes.release import numbers
from dpbayes.release.format import FORMAT, VERSION, Release


def load(path: str | Path) -> Release:
    """A release, from its file or from the folder that holds it."""
    return Release.load(path)


def releases_in(path: str | Path) -> tuple[Release, ...]:
    """The release in a file or folder; of a folder of releases all, by their names."""
    where = Path(path)
    found = sorted(where.glob("*/release.json"), key=lambda file: (len(file.parent.name), file.parent.name))
    if not found or (where / "release.json").is_file():
        return (Release.load(where),)
    return tuple(Release.load(file.parent) for file in found)


def release_of(text: str | bytes, folder: Path | None = None) -> Release:
    """The release in a JSON file of this version, with the numbers that lie beside it in its folder."""
    record = parse(text)
    try:
        _check_version(record)
        return _faithful(_with_numbers(record, folder))
    except ReleaseError:
        raise
    except DpbayesError as problem:
        said = " ".join(str(problem).split())  # a schema lists its faults line by line
        raise ReleaseError(f"Release: {said}") from None
    except (ArithmeticError, AttributeError, KeyError, LookupError, TypeError, ValueError, RecursionError):
        raise ReleaseError("Release: a part of the file is missing or malformed.") from None


def _check_version(record: Record) -> None:
    name, version = record.get("format"), record.get("version")
    if name == FORMAT and version == VERSION:
        return
    if version == 1 and name in (FORMAT, "dpbayes-model", "dpbayes-posterior"):
        raise ReleaseError("Release: written by dpbayes 0.1.0, which no later version reads. Make the release again.")
    if name == FORMAT:
        raise ReleaseError(
            f"Release: expected version {VERSION}, got {str(version)[:20]}. A newer dpbayes may have written it: "
            "upgrade to read it."
        )
    raise ReleaseError(f"Release: expected a JSON object whose format is {FORMAT!r}.")


def _faithful(record: Record) -> Release:
    """Read a record of which nothing gets lost: what is not understood could mislead those who read the file."""
    read, written = Release.from_record(record), {key: value for key, value in record.items() if key != "seal"}
    if "tables" in written:
        written["tables"] = [numbers.bits(table) for table in written["tables"]]
    if not read.seal or canonical(read._content(numbers.bits)) != canonical(written):
        raise ReleaseError("Release: the file lacks a seal, or holds something that dpbayes does not write.")
    return read


def _with_numbers(record: Record, folder: Path | None) -> Record:
    tables, files = record.get("tables"), record.get("files")
    if not isinstance(tables, list):
        return record
    listed = sorted(files) if isinstance(files, dict) else []
    beside = [folder / name for name in listed if folder and name.endswith(".parquet") and Path(name).name == name]
    return {**record, "tables": [numbers.look_up(table, beside) for table in tables]}


def parse(text: str | bytes) -> Record:
    """The JSON object in a file."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        raise ReleaseError("Release: the file is not JSON. Name a release, such as published/1.") from None
    if not isinstance(record, dict):
        raise ReleaseError(f"Release: expected a JSON object whose format is {FORMAT!r}.")
    return record
