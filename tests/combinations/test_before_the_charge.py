"""What is public is refused before the charge: sizes, folders, memory, disks. Then only rows and the machine refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import dpbayes
from tests.releases import ASKED, PEOPLE, people

from dpbayes import ApproxDP, Attribute, Curator, Ledger, PosteriorTable, Schema, Tables, Unit
from dpbayes.base import files
from dpbayes.base.errors import DpbayesError, InvalidArgument, ReleaseError, SchemaError
from dpbayes.jobs import Fit
from dpbayes.jobs.base import kinds
from dpbayes.models import Histogram
from dpbayes.schema.public import Margin

TARGET = ApproxDP(epsilon=1, delta=1e-6)
LEVELS = tuple(f"c{number}" for number in range(1000))
WIDE = Schema(
    id="wide",
    unit=Unit(adjacency="replace-one"),
    records=100,
    attributes=tuple(Attribute(name=name, categories=LEVELS, missing="other") for name in ("a", "b", "c")),
)
ROWS = {name: ["c1"] * 100 for name in ("a", "b", "c")}


def book(schema: Schema, folder: Path) -> Ledger:
    ledger = Ledger(folder / "a.ledger")
    ledger.open(schema, ApproxDP(epsilon=50, delta=1e-4))
    return ledger


@pytest.mark.parametrize(
    "job",
    [
        Tables("a,b,c"),
        Tables("a,b,c", mechanism="dirichlet"),
        Tables("a,b,c", product="draw"),
        Tables("a,b,c", product="records"),
        Tables("a,b,c", want=("a,b,c ± 5 records",)),
        Fit(model=Histogram(attributes=("a", "b", "c"))),
        PosteriorTable(marginal="a,b,c"),  # type: ignore[arg-type]
    ],
    ids=["estimate", "dirichlet", "draw", "records", "want", "model", "posterior"],
)
def test_a_table_that_no_engine_counts_is_refused_before_it_is_planned(job: object, tmp_path: Path) -> None:
    ledger = book(WIDE, tmp_path)
    with pytest.raises(SchemaError, match="1,003,003,001 cells"):
        Curator(ROWS, WIDE, ledger=ledger).release(job, TARGET)
    assert not ledger.account("wide").charges


def test_memory_disk_and_folder_are_looked_at_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = book(WIDE, tmp_path)
    curator = Curator(ROWS, WIDE, ledger=ledger)
    monkeypatch.setattr(files, "_available", lambda: 10**8)
    with pytest.raises(InvalidArgument, match=r"take about 0.301 GB of memory, and 0.1 GB are available"):
        curator.release(Tables("a,b"), TARGET)
    monkeypatch.setattr(files, "DISK", 10**15)
    with pytest.raises(ReleaseError, match="on disk"):
        curator.release(Tables("a"), TARGET)
    (tmp_path / "out").write_text("here already")
    with pytest.raises(ReleaseError, match="is a file"):
        curator.release(Tables("a"), TARGET, out=tmp_path / "out")
    assert not ledger.account("wide").charges


def test_a_table_whose_totals_are_declared_is_public_already(tmp_path: Path) -> None:
    sex = Attribute(name="sex", categories=("F", "M"), missing="other")
    schema = Schema(
        id="people",
        unit=Unit(adjacency="replace-one"),
        attributes=(sex, Attribute(name="age", edges=(0.0, 40.0, 100.0), missing="other")),
        margins=(Margin(of=("sex",), totals=(20, 18, 2)),),
    )
    curator = Curator({"sex": ["F"] * 40, "age": [30] * 40}, schema, ledger=book(schema, tmp_path))
    with pytest.raises(InvalidArgument, match="all totals of sex, so they are public already"):
        curator.release(Tables("sex"), TARGET)
    assert curator.release(Tables("sex", "age"), TARGET)["sex"] is not None


@pytest.mark.parametrize("kind", ASKED)
def test_after_the_charge_a_release_is_refused_because_of_rows_or_the_machine_only(kind: str, tmp_path: Path) -> None:
    """The same plan on another table with the same columns is the same up to the charge, whatever its rows are."""
    asked, plans = ASKED[kind], []
    for rows in (people(), {name: values[:1] * len(values) for name, values in people().items()}):
        folder = tmp_path / str(len(plans))
        folder.mkdir()
        curator = Curator(rows, PEOPLE, ledger=book(PEOPLE, folder))
        plan = curator.plan(asked.job(folder), asked.target)
        plans.append((plan.paid, plan.tables, plan.places, plan.choice, plan.columns, plan.cells))
        try:
            curator.release(plan, out=folder / "out")
        except DpbayesError as problem:
            pytest.fail(f"refused after everything public was known: {problem}")
    assert plans[0] == plans[1]


def test_every_kind_of_job_is_asked_about() -> None:
    assert {asked.job(Path("nowhere")).kind for asked in ASKED.values()} == set(kinds())  # type: ignore[attr-defined]


def test_a_release_that_is_paid_for_has_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex\n" + "F\n" * 30)
    Path("people.toml").write_text(
        'id = "people"\nadjacency = "replace-one"\n[[attribute]]\nname = "sex"\ncategories = ["F", "M"]\n'
    )
    ledger = book(Schema.load("people.toml"), tmp_path)
    common = ("release", "people.csv", "--schema", "people.toml", "sex", "--epsilon", 1, "--delta", 1e-7)
    for number in (1, 2):
        assert dpbayes(*common, "--ledger", "a.ledger").code == 0
        assert Path(f"published/{number}/release.json").is_file()
    before = len(ledger.account("people").charges)
    assert dpbayes(*common, "--ledger", "a.ledger", "--epsilon", 400).code == 3  # the number is given back
    assert (len(ledger.account("people").charges), Path("published/3").exists()) == (before, False)
    done = dpbayes(*common, "--ledger", "a.ledger", "--out", "out")
    assert (done.code, done.err) == (0, "")
    said = "of the limit of ε=50 at δ=0.0001 by the rule 'gaussian' of this ledger; by the rule 'renyi' it would take "
    assert said in " ".join(dpbayes(*common, "--ledger", "a.ledger", "--dry-run").out.split())
    much = dpbayes(*common[:-3], 45, "--delta", 1e-7, "--ledger", "a.ledger", "--out", "much")
    assert any(said in line for line in much.err.splitlines() if line.startswith("Warning: It takes "))
