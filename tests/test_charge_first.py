"""Charge, then read: whatever reads rows asks the ledger first.

A ledger that refuses everything, and tables whose rows cannot be read: who looks at a row first complains of the row.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.commands import dpbayes

from dpbayes import (
    ApproxDP,
    Attribute,
    BayesNet,
    Categories,
    Curator,
    Edges,
    Ledger,
    NaiveBayes,
    PosteriorTable,
    PureDP,
    Schema,
    Synthetic,
    Tables,
    Unit,
)
from dpbayes.base.errors import BudgetExceeded, DpbayesError, TableError, Unfinished
from dpbayes.curator import as_job
from dpbayes.jobs import Fit, Quantiles, Vector, Wide
from dpbayes.jobs.base import kinds
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.sklearn import PrivateCategoricalNB
from dpbayes.tables.engine import Column, Kind

UNIT = Unit(adjacency="replace-one")
SCHEMA = Schema(
    id="d",
    unit=UNIT,
    records=1000,
    attributes=tuple(Attribute(name=name, categories=("a", "b"), missing="other") for name in ("v", "w")),
)
PAID = ["--ledger", "d.ledger", "--epsilon", 1, "--delta", 0]
ASKED = ["--schema", "d.toml", *PAID]
DISCOVERED = [*ASKED, "v"]
COMMANDS: dict[str, list[object]] = {
    "release": ["release", "FILE", *ASKED, "v", "v|w"],
    "release, chosen": ["release", "FILE", *ASKED, "v", "--set", "mechanism=laplace", "--out", "published"],
    "fit": ["release", "FILE", *ASKED, "w", "--as", "naive-bayes"],
    "fit, tempered": ["release", "FILE", *ASKED, "w", "--as", "naive-bayes", "--set", "tempered=true"],
    "fit a network": ["release", "FILE", *ASKED, "v", "w|v", "--as", "network"],
    "wide": ["release", "--as", "wide", "FILE", *ASKED, "--delta", 1e-6, "v,w"],
    "posterior": [
        "release",
        "--as",
        "posterior",
        "FILE",
        *ASKED,
        "v",
        "--set",
        "prior=1",
        "--set",
        "mechanism=laplace",
    ],
    "draw": ["release", "--as", "vector", "FILE", *ASKED, "--delta", 1e-6, "v", "--set", "scores=scores.csv"],
    "discover categories": ["release", "--as", "categories", "FILE", *DISCOVERED, "--delta", 1e-6],
    "discover edges": ["release", "--as", "edges", "FILE", *DISCOVERED, "--set", "bins=2", "--set", "bounds=0:1"],
}


def poor(path: Path) -> Ledger:
    ledger = Ledger(str(path))
    ledger.open("d", ApproxDP(epsilon=1e-4, delta=1e-9), UNIT)
    return ledger


def rich(path: Path) -> Ledger:
    ledger = Ledger(str(path))
    ledger.open("d", ApproxDP(epsilon=100, delta=1e-3), UNIT)
    return ledger


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files whose names and types can be read, and whose rows cannot."""
    monkeypatch.chdir(tmp_path)
    Path("d.toml").write_text(SCHEMA.to_toml())
    Path("scores.csv").write_text("v,one,two\na,0.5,0.1\nb,0.25,1.5\n")
    Path("d.csv").write_bytes(b'v,w\n\xff\xfe,"a\n' + b"a,b,c,d\n" * 10)
    pa.parquet.write_table(pa.table({"v": ["a", "b"] * 500, "w": ["b", "a"] * 500}), "d.parquet", compression="none")
    whole = Path("d.parquet").read_bytes()
    Path("d.parquet").write_bytes(whole[:4] + b"\xff" * 200 + whole[204:])
    return tmp_path


@pytest.mark.parametrize("file", ["d.csv", "d.parquet"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_looks_at_a_row_before_the_ledger_is_asked(command: str, file: str, here: Path) -> None:
    asked = [file if argument == "FILE" else argument for argument in COMMANDS[command]]
    ledger = poor(here / "d.ledger")
    assert "Ledger: " in dpbayes(*asked).sentence
    assert ledger.account("d").charges == {}
    if file == "d.parquet":  # a damaged line of a CSV file is a row of unknown values, and complains no more
        Path("d.ledger").unlink()
        rich(here / "d.ledger")
        assert "Table: " in dpbayes(*asked).sentence  # so these rows do complain


class Rows:
    """An engine whose rows cannot be read."""

    def columns(self) -> tuple[Column, ...]:
        return (*(Column(name, Kind.TEXT) for name in ("v", "w")), Column("n", Kind.NUMBER))

    def read(self, *_: object, **__: object) -> None:
        raise TableError("rows were read")

    count = values = fingerprint = occupied = codes = read


PURE, APPROXIMATE = PureDP(epsilon=1.0), ApproxDP(epsilon=1.0, delta=1e-6)
JOBS: dict[str, tuple[object, Guarantee]] = {
    "tables": (Tables("v", mechanism="laplace"), PURE),
    "naive Bayes": (NaiveBayes(target="w"), PURE),
    "a network": (BayesNet.of('[["v", "w"]]'), PURE),
    "naive Bayes, tempered": (Fit(model=NaiveBayes(target="w"), tempered=True), PURE),
    "wide": (Wide(marginal="v,w", state="STATE"), APPROXIMATE),
    "synthetic": (Synthetic(target="w"), APPROXIMATE),
    "a posterior": (PosteriorTable(marginal="v", mechanism="laplace"), PURE),
    "a vector": (
        Vector(marginal="v", entries=("one", "two"), scores=((0.5, 0.1), (0.25, 1.5), (0.0, 0.0))),
        APPROXIMATE,
    ),
    "categories": (Categories(column="v"), APPROXIMATE),
    "edges": (Edges(column="n", quantiles=Quantiles(lower=0, upper=1, bins=2)), PURE),
}


@pytest.mark.parametrize("name", JOBS)
def test_no_job_asks_the_engine_for_rows_before_the_ledger(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job, target = JOBS[name]
    with pytest.raises(BudgetExceeded):
        Curator(Rows(), SCHEMA, ledger=poor(tmp_path / "poor.ledger")).release(job, target)
    with pytest.raises(DpbayesError, match="rows were read"):
        Curator(Rows(), SCHEMA, ledger=rich(tmp_path / "rich.ledger")).release(job, target)


def test_every_kind_of_job_is_asked() -> None:
    assert {as_job(job).kind for job, _ in JOBS.values()} == set(kinds())


class Watched(str):
    """A text that notices when somebody looks at it."""

    looks = 0
    __slots__ = ()

    def _look(self) -> None:
        Watched.looks += 1

    def __hash__(self) -> int:
        self._look()
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        self._look()
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self._look()
        return str.__ne__(self, other)

    def __lt__(self, other: str) -> bool:
        self._look()
        return str.__lt__(self, other)

    def __str__(self) -> str:
        self._look()
        return str.__str__(self)

    def __float__(self) -> float:
        self._look()
        return 0.0


def watched(*values: str) -> np.ndarray:
    made = np.empty(300, dtype=object)
    made[:] = [Watched(values[position % len(values)]) for position in range(300)]
    return made


X, Y = watched("a", "b", "c"), watched("x", "y")
ESTIMATORS: dict[str, tuple[dict[str, object], object]] = {
    "of an array": ({"categories": [["a", "b"]]}, X[:, None]),
    "of a frame": ({"categories": {"v": ["a", "b"]}}, pd.DataFrame({"v": X})),
    "without a temperature": ({"categories": {"v": ["a", "b"]}, "tempered": False}, pd.DataFrame({"v": X})),
    "with edges": ({"edges": {"v": (0.0, 1.0, 2.0)}}, pd.DataFrame({"v": X})),
    "with quantiles": (
        {"edges": [Quantiles(lower=0, upper=1, bins=3)]}, np.linspace(0, 1, 300)[:, None],
    ),
    "of a schema": (
        {"schema": Schema(id="d", unit=UNIT, attributes=(
            Attribute(name="v", categories=("a", "b")), Attribute(name="class", categories=("x", "y"))
        )), "classes": None, "unit": None},
        pd.DataFrame({"v": X}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_estimator_looks_at_a_row_before_the_ledger_is_asked(name: str, tmp_path: Path) -> None:
    options, rows = ESTIMATORS[name]
    Watched.looks = 0
    given = {"epsilon": 1.0, "classes": ["x", "y"], "unit": UNIT, **options}
    with pytest.raises(BudgetExceeded):
        PrivateCategoricalNB(**given, ledger=poor(tmp_path / "poor.ledger")).fit(rows, Y)
    assert Watched.looks == 0
    PrivateCategoricalNB(**given, ledger=rich(tmp_path / "rich.ledger")).fit(rows, Y)
    assert Watched.looks > 0


def test_a_charge_stays_where_rows_could_not_be_read(tmp_path: Path) -> None:
    ledger = rich(tmp_path / "d.ledger")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT 'a' AS v, 'b' AS w")
        curator = Curator((connection, "people"), replace(SCHEMA, records=None), ledger=ledger)
        connection.execute("DROP TABLE people")
        with pytest.raises(Unfinished, match=r"The charge and the release are kept"):
            curator.release(Tables("v", mechanism="laplace"), PureDP(epsilon=0.1))
    assert [charge.state for charge in ledger.account("d").charges.values()] == ["charged"]
