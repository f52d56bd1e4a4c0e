"""The jobs that writers do in the simulation: every kind, on tables of a few cells."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.simulation.world import World

from dpbayes import (
    ZCDP,
    ApproxDP,
    Attribute,
    Categories,
    Curator,
    Edges,
    Ledger,
    NaiveBayes,
    PosteriorTable,
    PureDP,
    Schema,
    Tables,
    Unit,
    finish,
)
from dpbayes.base.errors import Unfinished
from dpbayes.design.plan import Plan
from dpbayes.jobs import Fit, Quantiles, Wide
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)
SCHEMA = Schema(
    id="people",
    unit=UNIT,
    records=60,
    attributes=(
        Attribute(name="sex", categories=("F", "M"), missing="other"),
        Attribute(name="job", categories=("cook", "nurse"), missing="other"),
    ),
)
APPROX = ApproxDP(epsilon=1.0, delta=1e-6)
BUDGETS: dict[str, Any] = {
    "pure": PureDP(epsilon=4.0), "approximate": ApproxDP(epsilon=2.5, delta=1e-5), "concentrated": ZCDP(rho=0.04)
}  # fmt: skip
"""For about four releases each, so that writers meet refusals."""

JOBS: dict[str, tuple[str, Any, Callable[[str], Any]]] = {
    "tables, gaussian": ("approximate", APPROX, lambda _: Tables("sex", mechanism="gaussian")),
    "tables, dirichlet": ("approximate", APPROX, lambda _: Tables("sex", mechanism="dirichlet")),
    "categories": ("approximate", APPROX, lambda _: Categories(column="job")),
    "wide": ("approximate", APPROX, lambda state: Wide(marginal="sex,job", state=state)),  # type: ignore[arg-type]
    "tables, laplace": ("pure", PureDP(epsilon=1.0), lambda _: Tables("sex", mechanism="laplace")),
    "edges": ("pure", PureDP(epsilon=1.0), lambda _: Edges(column="age", quantiles=QUANTILES, numeric=True)),
    "fit, tempered": ("pure", PureDP(epsilon=1.0), lambda _: Fit(model=NaiveBayes(target="job"), tempered=True)),
    "posterior": (
        "pure",
        PureDP(epsilon=1.0),
        lambda _: PosteriorTable(marginal="sex", mechanism="improved-laplace"),  # type: ignore[arg-type]
    ),
    "tables, concentrated": ("concentrated", ZCDP(rho=0.01), lambda _: Tables("job", mechanism="gaussian")),
}
QUANTILES = Quantiles(lower=0, upper=99, bins=3, candidates=12)


def kinds_of(budget: str) -> list[str]:
    return [kind for kind, (needs, _, _) in JOBS.items() if needs == budget]


def prepare(folder: Path, budget: str, ledger: str | None = None) -> None:
    """A table, and a ledger with the budget."""
    rows = [f"{'FM'[k % 2]},{('cook', 'nurse')[k % 3 > 0]},{20 + k}" for k in range(60)]
    (folder / "people.csv").write_text("sex,job,age\n" + "\n".join(rows) + "\n")
    Ledger(ledger or folder / "people.ledger").open(SCHEMA, BUDGETS[budget])


def write(folder: Path, kind: str, name: str, ledger: str | None = None) -> None:
    """One release, to a folder or a state of this name."""
    _, target, make = JOBS[kind]
    out = None if kind == "wide" else folder / f"{name}.out"
    curator = Curator(str(folder / "people.csv"), SCHEMA, ledger=ledger or folder / "people.ledger")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the note is left to be made: the checker sees it
        curator.release(make(str(folder / f"{name}.wide")), target, out=out)


def complete(folder: Path, ledger: str | None = None, *, forgo: bool = False) -> int:
    try:
        return len(finish(ledger or folder / "people.ledger", forgo=forgo))
    except Unfinished as left:  # the checker judges what is left
        return len(left.finished)


_PLANS: dict[str, Plan] = {}


@contextmanager
def planned_once(world: World) -> Iterator[None]:
    """Calibrate every job once, outside of all processes: plans are public, and no part of the transaction."""
    real = Curator.plan

    def plan(self: Curator, job: Any, target: Any, *, about: Any = None) -> Plan:
        wide = isinstance(job, Wide)
        key = f"{replace(job, state='nowhere') if wide else job!r} {target!r}"
        if key not in _PLANS:
            with world.at_rest():
                _PLANS[key] = real(self, job, target, about=about)
        return replace(_PLANS[key], job=job) if wide else _PLANS[key]

    with patch.object(Curator, "plan", plan):
        yield
