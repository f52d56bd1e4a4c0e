"""Read ledgers, exports, release files and schemas of any version, and list what an advisory touches.

Entries are read as they stand: a ledger that a later version would refuse is looked at all the same.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpbayes.advisories import judge
from dpbayes.advisories.known import Finding
from dpbayes.errors import DpbayesError, InvalidArgument

SUFFIXES = {".json", ".jsonl", ".ndjson", ".ledger", ".sqlite", ".db", ".toml"}
"""What is looked at in a folder; a file that is named is looked at whatever its name."""

SQLITE = b"SQLite format 3\0"
LARGEST = 2**30
"""Files larger than this are no ledgers or releases."""

Body = dict[str, Any]


@dataclass(slots=True)
class Report:
    """What was found, and how much was looked at."""

    findings: list[Finding] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    """Files that are ours and make no sense: nothing can be said of them."""
    files: int = 0

    @property
    def clean(self) -> bool:
        """Whether nothing is affected, damaged, or needs a check."""
        return not self.damaged and all(finding.status == "unknown" for finding in self.findings)


def search(paths: Iterable[str | Path]) -> Report:
    """Look at files, folders and PostgreSQL addresses."""
    report, schemas, noise = Report(), judge.Schemas(), False
    for where, named in _files(paths):
        kind, content = _read(where, named)
        if kind == "nothing":
            continue
        report.files += 1
        label = _plain(where)
        try:
            bodies = [body for chain in content.values() for body in chain] if kind == "ledger" else [content]
            noise = judge.draws_noise(bodies) or noise
            report.findings += _judged(kind, label, content)
            for schema in (body if kind == "schema" else body.get("schema") for body in bodies):
                if isinstance(schema, dict):
                    schemas.add(label, schema)
        except (DpbayesError, AttributeError, KeyError, TypeError, ValueError, OverflowError):
            report.damaged.append(label)
    report.findings += schemas.findings()
    if noise:
        report.findings.append(judge.biased_noise())
    return report


def _judged(kind: str, label: str, content: Any) -> list[Finding]:
    if kind == "ledger":
        return [each for dataset, bodies in content.items() for each in judge.ledger(label, dataset, bodies)]
    return judge.published(label, content) if kind == "published" else []


def _files(paths: Iterable[str | Path]) -> Iterator[tuple[str, bool]]:
    for path in paths:
        if "://" in str(path):
            yield str(path), True
        elif Path(path).is_dir():
            found = sorted(each for each in Path(path).rglob("*") if each.suffix.lower() in SUFFIXES and each.is_file())
            yield from ((str(each), False) for each in found)
        elif Path(path).is_file():
            yield str(path), True
        else:
            raise InvalidArgument(f"affected: there is no file or folder {str(path)!r}.")


def _read(where: str, named: bool) -> tuple[str, Any]:
    """What a file is, and what it says; ``nothing`` for what is not ours in a folder."""
    kind, content = "nothing", None
    try:
        kind, content = _recognised(where)
    except DpbayesError:  # a database that is no ledger, or does not answer
        if named:
            raise
    except (OSError, ValueError, RecursionError):
        pass
    if kind == "nothing" and named:
        raise InvalidArgument(
            f"affected: expected a ledger, an export of one, a published file or a schema, got {_plain(where)!r}."
        )
    return kind, content


def _recognised(where: str) -> tuple[str, Any]:
    if "://" in where:
        return "ledger", _entries(where)
    path = Path(where)
    if path.stat().st_size > LARGEST:
        return "nothing", None
    start = path.read_bytes()[: len(SQLITE)]
    if start == SQLITE:
        return "ledger", _entries(where)
    text = path.read_text(encoding="utf-8")
    if path.suffix.lower() == ".toml":
        found = tomllib.loads(text)
        return ("schema", found) if {"id", "adjacency", "attribute"} <= found.keys() else ("nothing", None)
    try:
        body = json.loads(text)
    except ValueError:
        return _exported(text)
    return ("published", body) if isinstance(body, dict) and judge.is_ours(body) else ("nothing", None)


def _exported(text: str) -> tuple[str, Any]:
    """Lines of JSON that are entries of ledgers."""
    chains: dict[str, list[Body]] = {}
    for line in text.splitlines():
        body = json.loads(line)
        if not isinstance(body, dict) or not {"dataset", "kind", "serial"} <= body.keys():
            return "nothing", None
        chains.setdefault(str(body["dataset"]), []).append(body)
    return ("ledger", chains) if chains else ("nothing", None)


def _entries(where: str) -> Mapping[str, list[Body]]:
    """The entries of every data set, unchecked: `dpbayes ledger verify` checks them."""
    from dpbayes.ledger import tables
    from dpbayes.ledger.store import Store

    chains: dict[str, list[Body]] = {}
    with Store(where).reading() as connection:
        for dataset, text in tables.entries(connection):
            chains.setdefault(str(dataset), []).append(json.loads(text))
    return chains


def _plain(where: str) -> str:
    """An address without a password, a path as it is."""
    scheme, mark, rest = where.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark else where
