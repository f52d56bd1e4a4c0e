"""No product that ``--as`` makes reads a row, charges or writes when it is planned, or released with ``--dry-run``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import dpbayes

from dpbayes import ApproxDP, Ledger, Schema
from dpbayes.jobs.base import requestable

SCHEMA = """
id = "people"
adjacency = "replace-one"
records = 300
[[attribute]]
name = "sex"
categories = ["F", "M"]
[[attribute]]
name = "age"
edges = [0, 40, 100]
"""
SPENT = ("--epsilon", 1, "--delta", 1e-8)
ASKED: dict[str, tuple[object, ...]] = {
    "tables": ("sex",),
    "draw": ("sex", "age|sex"),
    "pseudo-records": ("sex", "--set", "draws=50"),
    "naive-bayes": ("sex",),
    "network": ("sex", "age|sex"),
    "posterior": ("sex", "--set", "mechanism=laplace"),
    "vector": ("sex", "--set", "scores=scores.csv"),
    "categories": ("job",),
    "edges": ("age", "--set", "bins=3", "--set", "bounds=0:100"),
    "wide": ("sex,age",),
    "synthetic": ("sex",),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,age,job\n" + "F,30,cook\n" * 180 + "M,50,nurse\n" * 120)
    Path("people.toml").write_text(SCHEMA)
    Path("scores.csv").write_text("sex,f,m\nF,1,0\nM,0,1\n")
    Ledger("people.ledger").open(Schema.load("people.toml"), ApproxDP(epsilon=5, delta=1e-6))
    return tmp_path


def _files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_every_product_is_tried() -> None:
    assert set(ASKED) == set(requestable())


@pytest.mark.parametrize("ledger", ["people.ledger", "none"])
@pytest.mark.parametrize("product", ASKED)
def test_a_dry_run_reads_no_row_charges_nothing_and_writes_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, product: str, ledger: str
) -> None:
    from dpbayes.tables.duckdb import DuckDBEngine

    def read(*_: object, **__: object) -> None:
        raise AssertionError("rows were read")

    for method in ("count", "values", "occupied", "codes", "fingerprint"):
        monkeypatch.setattr(DuckDBEngine, method, read)
    before = _files(here)
    common = ("people.csv", *ASKED[product], "--as", product, *SPENT, "--ledger", ledger)
    planned, dry = dpbayes("plan", *common), dpbayes("release", *common, "--dry-run")
    assert (planned.code, planned.err) == (0, "")
    assert planned == dry
    assert "Dry run: no rows were read and nothing was charged." in planned.out
    assert dpbayes("plan", *common, "--json").result["rows_read"] == 0
    assert _files(here) == before
