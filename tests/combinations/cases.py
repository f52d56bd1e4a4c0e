"""What can be combined: every registered job with every option of its own, and everything that it can meet."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import parquet
from tests.combinations.covering import covering, picked

from dpbayes import RDP, TCDP, ZCDP, ApproxDP, Attribute, BayesNet, Laplace, NaiveBayes, PureDP, Schema, Unit
from dpbayes.base.errors import DpbayesError
from dpbayes.jobs import Quantiles
from dpbayes.jobs.base import kinds
from dpbayes.ledger.ledger import Ledger
from dpbayes.models import Histogram
from dpbayes.privacy.cost import Cost
from dpbayes.schema import Marginal
from dpbayes.schema.public import Impossible, Margin, Within

ROWS = 12
Case = Mapping[str, Any]

QUANTILES = Quantiles(lower=0, upper=100, bins=3, candidates=9)
FIELDS: dict[str, list[Any]] = {
    "marginals": [("sex", "town|sex"), ("sex,town",)],
    "marginal": [Marginal(("sex",))],
    "column": ["code"],
    "state": [lambda schema, folder: str(folder / "people.wide")],
    "quantiles": [QUANTILES],
    "entries": [("one", "two")],
    "scores": [lambda schema, folder: tuple((1.0, 0.5 * k) for k in range(len(schema["sex"].levels)))],
    "model": [
        NaiveBayes(target="sex"),
        NaiveBayes(target="sex", estimate="draw"),
        BayesNet.of([["state", "town"]]),
        BayesNet(),
        Histogram(attributes=("sex", "town")),
    ],
    "want": [(), ("sex ± 20 records", "town|sex ± 40 points"), ("sex,town ± 20 records",)],
    "edges": [{}, {"age": QUANTILES}],
    "target": [None, "sex"],
    "pseudo_records": [None, 5],
}
"""Values for fields of jobs, by name. Choices and flags are read off the types; what is left has a default."""

TARGETS = {
    "pure": PureDP(epsilon=2.0),
    "approximate": ApproxDP(epsilon=2.0, delta=1e-6),
    "zCDP": ZCDP(rho=0.2),
    "tCDP": TCDP(rho=0.2, omega=8.0),
    "Rényi": RDP(order=5.0, epsilon=1.0),
}
LIMITS = {
    "none": None,
    "gaussian": (ApproxDP(epsilon=10.0, delta=1e-4), "gaussian"),
    "gaussian, used": (ApproxDP(epsilon=10.0, delta=1e-4), "gaussian"),
    "renyi": (ApproxDP(epsilon=10.0, delta=1e-4), "renyi"),
    "pure": (PureDP(epsilon=10.0), "gaussian"),
    "zCDP": (ZCDP(rho=10.0), "gaussian"),
    "tCDP": (TCDP(rho=10.0, omega=8.0), "gaussian"),
    "Rényi": (RDP(order=5.0, epsilon=20.0), "gaussian"),
    "too small": (ApproxDP(epsilon=0.01, delta=1e-7), "gaussian"),
}
UNITS = {
    "replaced": {"adjacency": "replace-one"},
    "added": {"adjacency": "add-remove"},
    "replaced, 3 rows": {"adjacency": "replace-one", "max_rows": 3},
    "added, 3 rows": {"adjacency": "add-remove", "max_rows": 3},
    "replaced, person": {"adjacency": "replace-one", "person": "id"},
    "added, person": {"adjacency": "add-remove", "max_rows": 2, "person": "id"},
}
STRUCTURES = ("none", "margin", "all public", "impossible", "within", "within and margin")
SOURCES = ("csv", "parquet", "duckdb", "dictionary", "pandas", "polars", "arrow", "Engine")
MISSING_RULES = ("other", "category", "drop", "closed")


def constructed(kind: str, chosen: Mapping[str, Any], schema: Schema, folder: Path) -> object:
    """The job with these fields; those that depend on the schema are made for it."""
    made = import_module(f"dpbayes.jobs.{kind.replace('-', '_')}").JOB
    given = {name: value(schema, folder) if callable(value) else value for name, value in chosen.items()}
    return made(*given.pop("marginals", ()), **given)


def choices(kind: str) -> dict[str, list[Any]]:
    """For each field of a job, the values that are tried."""
    made = import_module(f"dpbayes.jobs.{kind.replace('-', '_')}").JOB
    hints, found = get_type_hints(made), {}
    for each in fields(made):
        if each.name in FIELDS:
            found[each.name] = FIELDS[each.name]
        elif values := _listed(hints[each.name]):
            found[each.name] = values
        else:
            required = each.default is MISSING and each.default_factory is MISSING
            assert not required, f"the job {kind} needs {each.name}: say in FIELDS which values to try"
    return found


def _listed(hint: Any) -> list[Any]:
    """All values of a type that has few."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if hint is bool:
        return [False, True]
    if NoneType in get_args(hint):
        rest = [value for each in get_args(hint) if each is not NoneType for value in _listed(each)]
        return [None, *rest] if rest else []
    return []


@cache
def products() -> list[tuple[str, dict[str, Any]]]:
    """Every registered job with all pairs of its options that can meet."""
    plain = schema({"unit": "replaced", "structure": "none", "missing": "other", "records": True})
    found = []
    for kind in kinds():
        tried = choices(kind)
        every = [dict(zip(tried, values, strict=True)) for values in product(*tried.values())]
        made = [chosen for chosen in every if _possible(kind, chosen, plain)]
        assert made, f"no {kind} can be made: say in FIELDS which values to try"
        found += [(kind, dict(chosen)) for chosen in picked(made)]
    return found


def _possible(kind: str, chosen: Mapping[str, Any], declared: Schema) -> bool:
    try:
        constructed(kind, chosen, declared, Path("nowhere"))
    except DpbayesError:
        return False
    return True


def people() -> dict[str, list[Any]]:
    rng = np.random.default_rng(4)
    town = rng.choice(["a", "b", "c"], ROWS)
    missing = rng.random(ROWS) < 0.1
    return {
        "sex": [None if gone else str(each) for gone, each in zip(missing, rng.choice(["F", "M"], ROWS), strict=True)],
        "town": town.tolist(),
        "state": ["x" if each == "a" else "y" for each in town],
        "age": rng.integers(18, 90, ROWS).tolist(),
        "code": rng.integers(0, 4, ROWS).tolist(),
        "id": rng.integers(0, 8, ROWS).tolist(),
    }


def schema(case: Case) -> Schema:
    """What is declared; refused here, before there is a curator, where declarations contradict each other."""
    unit = dict(UNITS[case["unit"]])
    person = unit.pop("person", None)

    def rule(level: str) -> dict[str, Any]:
        return {"closed": level} if case["missing"] == "closed" else {"missing": case["missing"]}

    sex = Attribute(name="sex", categories=("F", "M"), **rule("M"))
    town = Attribute(name="town", categories=("a", "b", "c"), **rule("c"))
    more: dict[str, Any] = {}
    margins = {"margin": [("sex",)], "all public": [("sex", "town")], "within and margin": [("town",)]}
    if chosen := margins.get(case["structure"]):
        more["margins"] = tuple(_margin(names, {"sex": sex, "town": town}) for names in chosen)
    if case["structure"] == "impossible":
        more["impossible"] = (Impossible(levels={"town": ("a",), "state": ("y",)}),)
    if case["structure"].startswith("within"):
        more["within"] = (Within(inner="town", outer="state", map={"a": "x", "b": "y", "c": "y"}),)
    return Schema(
        id="people",
        unit=Unit(**unit),
        person=person,
        records=ROWS if case["records"] else None,
        attributes=(
            sex,
            town,
            Attribute(name="state", categories=("x", "y"), **rule("y")),
            Attribute(name="age", edges=(0.0, 40.0, 100.0), **rule("[0, 40)")),
        ),
        **more,
    )


def _margin(names: tuple[str, ...], attributes: Mapping[str, Attribute]) -> Margin:
    rows, goes = people(), {"other": "other", "category": "missing", "drop": "(dropped)"}
    shape = [attributes[name].levels for name in names]
    filled = [
        tuple(
            goes.get(rule := attributes[name].missing, rule) if value is None else value
            for name, value in zip(names, row, strict=True)
        )
        for row in zip(*(rows[name] for name in names), strict=True)
    ]
    counted, cells = Counter(filled), [()]
    for levels in shape:
        cells = [(*cell, level) for cell in cells for level in levels]  # type: ignore[misc]
    return Margin(of=names, totals=tuple(counted[cell] for cell in cells))


def source(kind: str, folder: Path) -> object:
    """The table in one of the forms that users have."""
    rows = people()
    table = pa.table(rows)
    match kind:
        case "csv":
            pd.DataFrame(rows).to_csv(folder / "people.csv", index=False)
            return folder / "people.csv"
        case "parquet":
            parquet.write_table(table, folder / "people.parquet")
            return str(folder / "people.parquet")
        case "duckdb":
            with duckdb.connect(str(folder / "people.duckdb")) as connection:
                connection.register("given", table)
                connection.execute("CREATE TABLE people AS SELECT * FROM given")
            return f"{folder / 'people.duckdb'}?table=people"
        case "pandas":
            return pd.DataFrame(rows)
        case "polars":
            return pl.DataFrame(rows)
        case "arrow":
            return table
        case "Engine":
            from dpbayes.tables.sources import open_table

            return open_table(table)
    return rows


def ledger(case: Case, declared: Schema, folder: Path) -> Path | None:
    """A ledger with this limit, into which a release has gone before if it is used."""
    if (limit := LIMITS[case["ledger"]]) is None:
        return None
    path = folder / "people.ledger"
    book = Ledger(path)
    book.open(declared, limit[0], rule=limit[1])  # type: ignore[arg-type]
    if case["ledger"].endswith("used"):
        book.charge("people", Cost.of(Laplace(scale=8.0 * declared.unit.max_rows, unit=declared.unit)))
    return path


FACTORS: dict[str, list[Any]] = {
    "target": list(TARGETS),
    "ledger": list(LIMITS),
    "unit": list(UNITS),
    "structure": list(STRUCTURES),
    "source": list(SOURCES),
    "missing": list(MISSING_RULES),
    "records": [True, False],
}


def pairs(barred: Callable[[Case], bool]) -> list[dict[str, Any]]:
    """Every kind of job meets everything, and its products take turns: few combinations."""
    return _in_turn(covering({"kind": list(kinds()), **FACTORS}, barred=barred), barred)


def every(barred: Callable[[Case], bool]) -> list[dict[str, Any]]:
    """Every product meets everything, and every kind each target in each ledger and each unit: many combinations."""
    listed = [each for each in products() if not barred({"product": each})]
    triples = [("kind", "target", "ledger"), ("kind", "target", "unit")]
    more = covering({"kind": list(kinds()), **FACTORS}, triples=triples, barred=barred)
    return [*covering({"product": listed, **FACTORS}, barred=barred), *_in_turn(more, barred)]


def _in_turn(rows: list[dict[str, Any]], barred: Callable[[Case], bool]) -> list[dict[str, Any]]:
    """Each row with the next product of its kind that can meet the rest of it."""
    waiting = {kind: [each for each in products() if each[0] == kind] for kind in kinds()}
    for row in rows:
        listed = waiting[row["kind"]]
        row["product"] = next((each for each in listed if not barred({**row, "product": each})), listed[0])
        listed.remove(row["product"])
        listed.append(row["product"])
    return rows


def refused(barred: Callable[[Case], bool], many: int) -> list[dict[str, Any]]:
    """Some of the combinations that cannot be."""
    rows = [row for row in covering({"product": products(), **FACTORS}) if barred(row)]
    return random.Random(7).sample(rows, min(many, len(rows)))
