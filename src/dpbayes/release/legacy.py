"""Files of 0.1.0, read as releases: tables, models, posteriors. They keep what they said, and are marked as legacy."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from dpbayes.domain import codec
from dpbayes.domain.attribute import DROPPED, MISSING, OTHER, Attribute
from dpbayes.domain.codec import Record
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import ReleaseError
from dpbayes.ledger.account import Spending
from dpbayes.mechanisms.records import from_record as mechanism_from_record
from dpbayes.privacy.guarantee import PureDP, guarantee_from_record
from dpbayes.release.format import FORMAT, Answer, Group, Paid, Product, Release, Table


def upgraded(record: Record) -> Release:
    """The release that a file of 0.1.0 describes."""
    match record:
        case {"format": "dpbayes-release", "version": 1}:
            return _tables(record)
        case {"format": "dpbayes-model", "version": 1, "release": dict(inner), "schema": schema, "model": dict(model)}:
            release = _tables(inner, Schema.from_record(schema))
            spec = {"kind": record["kind"], **model["spec"]}
            power = codec.from_record(float, model.get("temperature", 1.0), "temperature")
            return replace(release, job={"kind": "model", "model": spec, "temperature": power, "legacy": 1})
        case {"format": "dpbayes-posterior", "version": 1}:
            return _posterior(record)
        case {"format": str(name)} if name in (FORMAT, "dpbayes-model", "dpbayes-posterior"):
            raise ReleaseError(
                f"Release: expected version 2, got {str(record.get('version'))[:20]}. A newer dpbayes may have written "
                "it: upgrade to read it."
            )
    raise ReleaseError(f"Release: expected a JSON object whose format is {FORMAT!r}.")


def _tables(record: Record, schema: Schema | None = None) -> Release:
    entries = list(record["tables"])
    unit = PrivacyUnit.from_record(record["unit"])
    declared = schema or _schema(record["dataset"], unit, [entry["axes"] for entry in record["tables"]])
    records = [codec.canonical(entry["mechanism"]) for entry in record["tables"]]
    distinct = list(dict.fromkeys(records))
    tables = tuple(_table(entry, distinct.index(text)) for entry, text in zip(entries, records, strict=True))
    paid = tuple(
        Paid(mechanism=mechanism_from_record(json.loads(text)), times=records.count(text)) for text in distinct
    )
    grids = {entry["grid"] for entry in record["tables"] if entry.get("grid") is not None}
    job: Record = {
        "kind": "tables",
        "legacy": 1,
        "level": codec.from_record(float, record["level"], "level"),
        "marginals": [str(table.marginal) for table in tables],
        **({"grid": min(grids)} if grids else {}),
    }
    return Release(
        job=job,
        schema=declared,
        promise=guarantee_from_record(record["guarantee"]),
        choice=codec.from_record(str, record["choice"], "choice"),
        paid=paid,
        records=codec.from_record(int | None, record["records"], "records"),  # type: ignore[arg-type]
        seeded=codec.from_record(bool, record["seeded"], "seeded"),
        created=codec.from_record(str, record["created"], "created"),
        software={"dpbayes": codec.from_record(str, record["dpbayes"], "dpbayes")},
        tables=tables,
        spending=_spending(record.get("ledger")),
    )


def _table(entry: Record, by: int) -> Table:
    products = {
        str(name): Product(
            **{part: np.asarray(held, dtype=np.float64) for part, held in made.items() if held is not None}  # type: ignore[arg-type]
        )
        for name, made in entry["products"].items()
    }
    groups = tuple(codec.from_fields(Group, group, "groups") for group in entry.get("groups") or ())
    return Table(
        marginal=Marginal.from_record(entry["marginal"]),
        by=by,
        kind=entry["kind"],
        values=np.asarray(entry["values"], dtype=np.float64),
        products=products,
        groups=groups,
        notes=codec.from_record(tuple[str, ...], entry.get("notes", []), "notes"),
    )


def _spending(ledger: Record | None) -> Spending | None:
    if ledger is None:
        return None
    receipt = ledger["receipt"]
    return Spending(
        serial=codec.from_record(int, receipt["serial"], "serial"),
        hash=codec.from_record(str, receipt["hash"], "hash"),
        spent=codec.from_record(float, ledger["spent"], "spent"),
        left=codec.from_record(float, ledger["left"], "left"),
        budget=guarantee_from_record(ledger["budget"]).record(),
    )


def _schema(dataset: str, unit: PrivacyUnit, tables: list[list[Record]]) -> Schema:
    """A schema with the levels that the file names. Bins are read as categories: 0.1.0 wrote no edges there."""
    levels = {axis["name"]: tuple(axis["levels"]) for axes in tables for axis in axes}
    return Schema(id=dataset, unit=unit, attributes=tuple(_attribute(name, each) for name, each in levels.items()))


def _attribute(name: str, levels: tuple[str, ...]) -> Attribute:
    """The declaration that gives these levels: reserved ones stand last, in the order missing, other, dropped."""
    declared = list(levels)
    reserved = []
    for level in (DROPPED, OTHER, MISSING):
        if len(declared) > 1 and declared[-1] == level:
            reserved.append(declared.pop())
    unknown = "drop" if DROPPED in reserved and OTHER not in reserved else "other"
    for missing in ("other", "category", "drop"):
        for rule in (unknown, "drop", "other"):
            made = Attribute(name=name, categories=tuple(declared), unknown=rule, missing=missing)
            if made.levels == levels:
                return made
    raise ReleaseError("Release: the levels of an attribute are not as dpbayes writes them.")


def _posterior(record: Record) -> Release:
    mechanism = mechanism_from_record(record["mechanism"])
    cells = len(record["parameters"])
    names = record.get("levels") or [f"cell {number + 1}" for number in range(cells)]
    schema = Schema(
        id="posterior",
        unit=mechanism.unit,
        attributes=(Attribute(name="cell", categories=tuple(names), unknown="drop", missing="drop"),),
        records=getattr(mechanism, "total", None),
    )
    stated = record.get("guarantee")
    promise = PureDP(epsilon=1e6) if stated is None else guarantee_from_record(stated)
    values = tuple(codec.from_record(float, value, "parameters") for value in record["parameters"])
    return Release(
        job={"kind": "posterior", "legacy": 1, "marginal": {"of": ["cell"], "given": []}},
        schema=schema,
        promise=promise,
        choice=f"the guarantee is {record.get('calibration')}",
        paid=(Paid(mechanism=mechanism),),
        records=schema.records,
        seeded=codec.from_record(bool, record["seeded"], "seeded") or stated is None,
        software={"dpbayes": "0.1.0"},
        answers=(Answer(name="posterior of cell", by=0, values=values),),
    )
