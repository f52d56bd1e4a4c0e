"""Releases of every kind for tests: drawn from fixed counts, or made by a curator from a small table."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from dpbayes import (
    RDP,
    ApproxDP,
    Attribute,
    Categories,
    Curator,
    Dirichlet,
    Edges,
    Gaussian,
    Laplace,
    NaiveBayes,
    PosteriorTable,
    PureDP,
    Release,
    Schema,
    Synthetic,
    Tables,
    Unit,
)
from dpbayes.base.codec import digest
from dpbayes.jobs import Fit, Quantiles, Vector, Wide, WideDistribution
from dpbayes.ledger.ledger import Ledger
from dpbayes.mechanisms import PseudoRecords
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import Paid, Table
from dpbayes.release.products import complete
from dpbayes.schema import Marginal

REPLACE, ADD = Unit(adjacency="replace-one"), Unit(adjacency="add-remove")
LEVELS = {
    "sex": ["female", "male"],
    "income": ["low", "middle", "high"],
    "region": ["North", "South", "other"],
    "code": [*(f"c{number:03d}" for number in range(199)), "other"],
    "<b>bold</b>": ["<script>alert(1)</script>", '" onload="alert(2)', "a & b", "日本", "العربية", "x" * 300, "other"],
}
"""A declared category that is named other takes in what was not declared: then these are all levels."""
RESERVED = {name: [] if "other" in levels else ["other"] for name, levels in LEVELS.items()}
Mechanism = Dirichlet | Gaussian | Laplace | PseudoRecords


def schema_of(*names: str, unit: Unit = REPLACE, dataset: str = "survey") -> Schema:
    attributes = tuple(Attribute(name=name, categories=tuple(LEVELS[name]), missing="other") for name in names)
    return Schema(id=dataset, unit=unit, attributes=attributes)


def levels_of(name: str) -> list[str]:
    return [*LEVELS[name], *RESERVED[name]]


def counts_of(names: tuple[str, ...]) -> np.ndarray:
    """Fixed counts: uneven, and few in the last level of the first attribute."""
    shape = [len(levels_of(name)) for name in names]
    table = 400 + 300 * np.sin(np.arange(np.prod(shape))).reshape(shape)
    if len(names) > 1:
        table[-1] /= 40.0
    return np.rint(table).astype(np.int64)


def table_of(asked: str, mechanism: Mechanism, *, by: int = 0) -> Table:
    """A drawn table, without estimates."""
    marginal = Marginal.parse(asked)
    counts, rng = counts_of(marginal.names), np.random.default_rng(7)
    if isinstance(mechanism, PseudoRecords):
        kind, values = "pseudo-records", counts
    elif isinstance(mechanism, Dirichlet):
        kind, values = "gammas", mechanism.gammas(counts, rng)
    else:
        kind, values = "noisy-counts", mechanism.draw(counts, rng)
    return Table(marginal=marginal, by=by, kind=kind, values=np.asarray(values, dtype=np.float64).ravel())  # type: ignore[arg-type]


def release_of(
    *asked: str, mechanism: Mechanism, promise: Guarantee, estimates: bool = True, **others: object
) -> Release:
    """A release of these tables, all by one mechanism."""
    names = tuple(dict.fromkeys(name for each in asked for name in Marginal.parse(each).names))
    common: dict[str, object] = {
        "job": {"kind": "tables", "marginals": list(asked)},
        "schema": schema_of(*names, unit=mechanism.unit),
        "choice": "asked for",
        "created": "2025-01-31T12:00:00+00:00",
        "software": {"dpbayes": "0.2.0"},
        "records": int(counts_of(Marginal.parse(asked[0]).names).sum()) if mechanism.unit.replaces else None,
        "paid": (Paid(mechanism=mechanism, times=len(asked)),),
        "tables": tuple(table_of(each, mechanism) for each in asked),
    }
    made = Release(**{**common, **others}, promise=promise)  # type: ignore[arg-type]
    return complete(made) if estimates else made


@lru_cache
def a_release(kind: str) -> Release:
    """One release of tables of each kind that readers may meet."""
    noise = Gaussian(sigma=8, unit=REPLACE)
    usual = ApproxDP(epsilon=1, delta=1e-6)
    match kind:
        case "joint":
            return release_of("sex,income", mechanism=noise, promise=usual)
        case "gammas":
            drawn = Dirichlet(weight=1.0, concentration=20.0, unit=REPLACE)
            return release_of("sex,income", mechanism=drawn, promise=RDP(order=5, epsilon=0.5))
        case "conditional":
            drawn = Dirichlet(weight=0.5, concentration=3.0, unit=REPLACE)
            return release_of("income|region", mechanism=drawn, promise=ApproxDP(epsilon=3, delta=1e-6))
        case "add-remove":
            return release_of("sex", "income", mechanism=Laplace(scale=4, unit=ADD), promise=PureDP(epsilon=0.5))
        case "pseudo-records":
            total = int(counts_of(("income",)).sum())
            urn = PseudoRecords(weight=1.0, concentration=20.0, records=total, unit=REPLACE)
            return release_of("income", mechanism=urn, promise=RDP(order=5, epsilon=0.5))
        case "seeded":
            return replace(a_release("joint"), seeded=True)
        case "large":
            return release_of("code", mechanism=noise, promise=usual)
        case "hostile":
            hostile = schema_of("<b>bold</b>", dataset="<img src=x onerror=alert(3)>")
            return release_of('"<b>bold</b>"', mechanism=noise, promise=usual, schema=hostile, choice="</td><script>")
    raise AssertionError(kind)


VERIFYING = ("joint", "gammas", "conditional", "add-remove", "pseudo-records", "large", "hostile")
KINDS = (*VERIFYING, "seeded")


def charged(release: Release, ledger: Ledger) -> Release:
    """The same release with its receipt, charged to a new account of this ledger."""
    key = secrets.token_hex(32)
    ledger.open(release.dataset, ApproxDP(epsilon=5, delta=1e-6), release.unit)
    receipt = ledger.charge(release.dataset, release.cost, schema=release.schema.digest, key=key)
    locked = replace(release, lock=digest(key))
    ledger.confirm(receipt, digest=locked.digest())
    return replace(locked, spending=receipt.spending)


# -- one of every kind, by a curator ----------------------------------------------------------------------------------

PEOPLE = Schema(
    id="people",
    unit=REPLACE,
    records=400,
    attributes=(
        Attribute(name="sex", categories=("F", "M"), missing="other"),
        Attribute(name="income", categories=("low", "high"), missing="category"),
        Attribute(name="age", edges=(0.0, 30.0, 60.0, 120.0), missing="other"),
    ),
)


def people(rows: int = 400) -> dict[str, list[object]]:
    rng = np.random.default_rng(4)
    return {
        "sex": rng.choice(["F", "M"], rows).tolist(),
        "income": rng.choice(np.array(["low", "high", None], dtype=object), rows).tolist(),
        "age": rng.uniform(18, 90, rows).round(1).tolist(),
        "job": rng.choice(["cook", "nurse", "clerk"], rows).tolist(),
    }


@dataclass(frozen=True)
class Asked:
    """A job with a guarantee that suits it."""

    job: Callable[[Path], object]
    target: Guarantee


USUAL = ApproxDP(epsilon=1, delta=1e-6)
ASKED: dict[str, Asked] = {
    "tables": Asked(lambda _: Tables("sex", "income|sex", mechanism="gaussian"), USUAL),
    "tables, drawn": Asked(lambda _: Tables("sex,income", product="draw"), USUAL),
    "tables of records": Asked(lambda _: Tables("sex", product="records", pseudo_records=57), USUAL),
    "model": Asked(
        lambda _: Fit(
            model=NaiveBayes(target="income"),
            tempered=True,
            edges={"age": Quantiles(lower=0, upper=120, bins=3, candidates=25)},
        ),
        ApproxDP(epsilon=3, delta=1e-6),
    ),
    "synthetic": Asked(lambda _: Synthetic(target="income"), USUAL),
    "posterior": Asked(
        lambda _: PosteriorTable(marginal=Marginal("sex"), mechanism="improved-laplace"), PureDP(epsilon=1)
    ),
    "vector": Asked(
        lambda _: Vector(marginal="sex", entries=("f", "m"), scores=((0.5, 0.1), (0.25, 1.5), (0.0, 0.0))), USUAL
    ),
    "wide": Asked(lambda folder: Wide(marginal=Marginal(("sex", "income")), state=str(folder / "people.wide")), USUAL),
    "categories": Asked(lambda _: Categories(column="job"), USUAL),
    "edges": Asked(
        lambda _: Edges(column="age", quantiles=Quantiles(lower=0, upper=120, bins=3, candidates=25), numeric=True),
        PureDP(epsilon=1),
    ),
}


@dataclass(frozen=True)
class Made:
    """A release in the way a user gets it, with its ledger."""

    release: Release
    ledger: Path


def made_by_a_curator(kind: str, folder: Path) -> Made:
    """Charge, draw and read back a release of this kind; of a wide distribution, one of its answers."""
    asked, path = ASKED[kind], folder / "people.ledger"
    Ledger(path).open("people", ApproxDP(epsilon=10, delta=1e-4), PEOPLE.unit, schema=PEOPLE.digest)
    release = Curator(people(), PEOPLE, ledger=path).release(asked.job(folder), asked.target)
    if kind == "wide":
        release = WideDistribution.load(folder / "people.wide").answer(["sex"])
    return Made(release=Release.from_json(release.to_json()), ledger=path)
