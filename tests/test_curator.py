"""The release path: charge, then count, then draw; nothing leaves that was not paid for."""

import re
from dataclasses import replace
from pathlib import Path, PurePath

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from dpbayes import RDP, ApproxDP, Curator, PosteriorTable, PureDP, Release, Synthetic, Tables, Unit
from dpbayes.base import files
from dpbayes.base.errors import (
    BudgetExceeded,
    InvalidArgument,
    LedgerError,
    ReleaseError,
    SchemaError,
    TableError,
    TargetUnreachable,
    Unfinished,
    UnitMismatch,
)
from dpbayes.jobs import Vector
from dpbayes.ledger.ledger import Ledger
from dpbayes.schema import Adjacency
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.marginal import Marginal, Prior
from dpbayes.schema.public import Margin
from dpbayes.schema.schema import Schema
from dpbayes.tables.sources import open_table

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)
ADD = Unit(adjacency=Adjacency.ADD_REMOVE)
TARGET = ApproxDP(epsilon=1, delta=1e-6)


def schema(unit=REPLACE, **more):
    return Schema(
        id="people",
        unit=unit,
        attributes=(
            Attribute(name="sex", categories=("F", "M"), missing="other"),
            Attribute(name="income", categories=("low", "high"), missing="category"),
        ),
        **more,
    )


def people(rows=400):
    rng = np.random.default_rng(4)
    return {"sex": rng.choice(["F", "M"], rows).tolist(), "income": rng.choice(["low", "high", None], rows).tolist()}


def curator(tmp_path, unit=REPLACE, budget=ApproxDP(epsilon=3, delta=1e-6), table=None, **more):  # noqa: B008
    ledger = Ledger(tmp_path / "people.ledger")
    if "people" not in (ledger.datasets() if (tmp_path / "people.ledger").exists() else []):
        ledger.open("people", budget, unit)
    made = Curator(people() if table is None else table, schema(unit), ledger=ledger, **more)
    return made, ledger


def laws(release):
    return {paid.mechanism.record()["mechanism"] for paid in release.paid}


@pytest.mark.parametrize("mechanism", ["dirichlet", "gaussian", "laplace"])
@pytest.mark.parametrize("unit", [REPLACE, ADD])
def test_a_release_costs_what_it_says_and_the_ledger_knows(tmp_path, mechanism, unit):
    made, ledger = curator(tmp_path, unit)
    release = made.release(Tables("sex", "sex,income", mechanism=mechanism), TARGET)
    assert TARGET.gap(release.cost) <= 0
    assert -1e-9 <= ledger.priced("people", TARGET).gap(release.cost) <= 0
    account = ledger.account("people")
    assert account.cost.epsilon(1e-6) == pytest.approx(release.cost.epsilon(1e-6), abs=1e-9)
    assert account.spent <= 1.0 + 1e-9
    assert release.spending.hash == account.charges[1].entry.hash
    assert account.charges[1].state == "drawn"
    assert account.charges[1].digest == release.digest()
    assert release.records == (400 if unit is REPLACE else None)
    assert Release.from_json(release.to_json()).record() == release.record()


@pytest.mark.parametrize("mechanism", ["dirichlet", "gaussian", "laplace"])
def test_a_public_prior_guides_estimates_is_published_and_verifies(tmp_path, mechanism):
    made, ledger = curator(tmp_path)
    steps = tuple(float(2**k) for k in range(12))
    incomes = tuple(float(8**k) for k in range(4))  # as in the other guess: tables agree, so guesses should
    asked = Tables(
        "sex,income",
        "income|sex",
        mechanism=mechanism,
        priors=(Prior(of=("income", "sex"), shares=steps), Prior(of=("income",), shares=incomes)),
    )
    release = made.release(asked, ApproxDP(epsilon=0.001, delta=1e-6))  # so much noise that no guess can be outvoted
    joint, conditional = (release.array(table, "population") for table in release.tables)
    by_income = np.array(steps).reshape(4, 3)
    assert np.corrcoef(joint.T.ravel(), by_income.ravel())[0, 1] > 0.8
    assert np.corrcoef(conditional.mean(axis=0), incomes)[0, 1] > 0.8
    assert Release.from_json(release.to_json()).verify(ledger=ledger).ok
    without = {key: value for key, value in release.job.items() if key != "priors"}
    assert not replace(release, job=without).verify().ok


@pytest.mark.parametrize("mechanism", ["dirichlet", "gaussian", "laplace"])
def test_estimates_are_near_the_truth_at_a_generous_budget(tmp_path, mechanism):
    made, _ = curator(tmp_path, budget=ApproxDP(epsilon=50, delta=1e-6))
    release = made.release(Tables("sex,income", mechanism=mechanism), ApproxDP(epsilon=20, delta=1e-6))
    (table,) = release.tables
    truth = open_table(people()).count(schema(), [Marginal.parse("sex,income")])[0].array / 400
    found = release.array(table, "empirical")
    assert np.abs(found - truth).max() < 0.02
    assert found.sum() == pytest.approx(1, abs=1e-6)
    assert (release.array(table, "empirical", "lower") <= found + 1e-9).all()


def test_rows_of_a_conditional_release_are_distributions_with_their_group_sizes(tmp_path):
    made, _ = curator(tmp_path)
    release = made.release(Tables("income|sex", mechanism="dirichlet"), TARGET)
    (table,) = release.tables
    assert release.array(table, "population").sum(axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    assert release.array(table, "draw").sum(axis=1) == pytest.approx(np.ones(3), abs=1e-9)
    assert [group.levels for group in table.groups] == [("F",), ("M",), ("other",)]
    assert table.groups[2].prior_share > table.groups[0].prior_share


def test_gammas_leave_only_on_the_public_grid(tmp_path):
    made, _ = curator(tmp_path)
    release = made.release(Tables("sex", product="draw"), TARGET)
    steps = release.tables[0].values / release.paid[0].mechanism.grid
    assert (steps == np.rint(steps)).all()
    assert (steps >= 1).all()


def test_a_table_too_large_for_doubles_is_refused_before_it_is_charged(tmp_path):
    _, ledger = curator(tmp_path)
    made = Curator(people(), schema(records_guess=10**12), ledger=ledger)
    with pytest.raises(TargetUnreachable, match="Gaussian noise"):
        made.release(Tables("sex", mechanism="dirichlet"), TARGET)
    assert not ledger.account("people").charges
    release = made.release(Tables("sex"), TARGET)
    assert release.tables[0].kind == "noisy-counts"


@pytest.mark.parametrize("unit", [REPLACE, ADD])
@pytest.mark.parametrize("target", [PureDP(epsilon=0.5), ApproxDP(epsilon=0.5, delta=1e-6), RDP(order=4, epsilon=0.2)])
def test_pseudo_records_are_priced_by_their_number_and_verify(tmp_path, target, unit):
    made, ledger = curator(tmp_path, unit, budget=ApproxDP(epsilon=10, delta=1e-6))
    release = made.release(Tables("sex", "income|sex", product="records", pseudo_records=57), target)
    assert laws(release) == {"pseudo-records-1"}
    assert [table.values.sum() for table in release.tables] == [57, 57]
    assert target.gap(release.cost) <= 0
    assert -1e-9 <= ledger.priced("people", target).gap(release.cost) <= 0
    found = Release.from_json(release.to_json()).verify(ledger=ledger)
    assert found.ok, found


def test_pseudo_records_with_the_papers_parameters_cost_less_than_they_promise(tmp_path):
    made, ledger = curator(tmp_path)
    release = made.release(Tables("sex", product="records", pseudo_records=57, accounting="published"), TARGET)
    assert laws(release) == {"pseudo-records-1"}
    assert release.verify(ledger=ledger).ok


def test_pseudo_records_are_whole_and_as_many_as_asked(tmp_path):
    made, _ = curator(tmp_path)
    release = made.release(Tables("sex,income", product="records", pseudo_records=57), TARGET)
    values = release.record()["tables"][0]["values"]
    assert sum(values) == 57
    assert all(type(value) is int for value in values)


def test_overspending_is_refused_before_the_table_is_read(tmp_path):
    made, ledger = curator(tmp_path, budget=ApproxDP(epsilon=0.5, delta=1e-6))
    made._engine = _Untouchable(made._engine)
    with pytest.raises(BudgetExceeded) as refusal:
        made.release(Tables("sex", mechanism="gaussian"), TARGET)
    assert refusal.value.asked == pytest.approx(1, abs=1e-6)
    assert refusal.value.limit == 0.5
    assert 0 < refusal.value.fits <= 0.5
    assert ledger.account("people").charges == {}
    assert not list(ledger.kept.folder.glob("*"))  # no draft of a release that will never be


def test_a_charge_whose_answer_got_lost_keeps_the_draft_that_finishes_it(tmp_path, monkeypatch):
    made, ledger = curator(tmp_path)
    charge = Ledger.charge

    def lost(*args, **named):
        charge(*args, **named)
        raise LedgerError("Ledger: the connection broke.")

    monkeypatch.setattr(Ledger, "charge", lost)
    with pytest.raises(LedgerError, match="the connection broke"):
        made.release(Tables("sex", mechanism="gaussian"), TARGET)
    assert [charge.state for charge in ledger.account("people").charges.values()] == ["charged"]
    with ledger.kept.unfinished() as (left,):
        assert ledger.receipt(left.key).serial == 1


class _Untouchable:
    """An engine that must not be counted."""

    def __init__(self, engine):
        self.columns = engine.columns

    def count(self, schema, marginals):
        raise AssertionError("the table was read")


def test_a_dry_run_has_no_way_to_the_rows(tmp_path):
    made, _ = curator(tmp_path, dry_run=True)
    made._engine = _Untouchable(made._engine)
    plan = replace(made.plan(Tables("sex", mechanism="gaussian"), TARGET), schema=schema(records=400))
    for way in (made.changed, made.undeclared, lambda: made._draw(plan), lambda: made._check_size(plan)):
        with pytest.raises(InvalidArgument, match="a dry run reads no rows"):
            way()


class _Failing(_Untouchable):
    def count(self, schema, marginals):
        raise TableError("Table: it went away.")


def test_a_failed_count_keeps_its_charge_and_says_how_to_finish(tmp_path):
    """That it failed may have told something about the rows."""
    made, ledger = curator(tmp_path)
    made._engine = _Failing(made._engine)
    with pytest.raises(Unfinished, match=r"it went away.*`dpbayes ledger finish`"):
        made.release(Tables("sex", mechanism="gaussian"), TARGET)
    account = ledger.account("people")
    assert account.charges[1].state == "charged"
    assert account.cost.releases == 1


@pytest.mark.parametrize(
    ("bad", "error"),
    [(["sexx"], SchemaError), (["sex|sex"], SchemaError), (["sex", "sex"], InvalidArgument), ([], InvalidArgument)],
)
def test_refused_requests_charge_nothing(tmp_path, bad, error):
    made, ledger = curator(tmp_path)
    with pytest.raises(error):
        made.release(Tables(*bad, mechanism="gaussian"), TARGET)
    assert ledger.account("people").charges == {}


def test_a_seeded_release_is_stamped_repeatable_and_never_charged(tmp_path):
    made, ledger = curator(tmp_path, seed=7)
    first, second = (made.release(Tables("sex", mechanism="gaussian"), TARGET) for _ in range(2))
    assert first.seeded
    assert "no privacy" in first.statement()
    assert first.record()["tables"] == second.record()["tables"]
    assert (first.spending, first.lock) == (None, "")
    assert ledger.account("people").charges == {}


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7"])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(InvalidArgument, match="whole number"):
        Curator(people(), schema(), seed=seed)


def test_auto_chooses_without_data_and_says_why(tmp_path):
    made, _ = curator(tmp_path)
    plan = made.plan(Tables("sex,income"), TARGET)
    assert "no data was read" in plan.choice
    assert made.plan(Tables("sex,income"), TARGET).paid == plan.paid
    (pure,) = made.plan(Tables("sex"), PureDP(epsilon=1)).paid
    assert pure.mechanism.record()["mechanism"] == "sum-zero-laplace-1"


def test_what_is_no_job_is_refused(tmp_path):
    made, _ = curator(tmp_path)
    with pytest.raises(InvalidArgument, match="expected a job"):
        made.release("sex", TARGET)


# -- what a schema declares is never compared with counts for free --------------------------------------------------


def declared(total_of_f):
    """A schema whose guess at a private count is a public total."""
    margin = Margin(of=("sex",), totals=(total_of_f, 400 - total_of_f, 0))
    return replace(schema(), records=400, margins=(margin,))


def test_guessing_declared_totals_costs_what_it_learns_and_never_more_than_one_schema_is_tried(tmp_path):
    """The count oracle: a wrong guess was refused after counting, and its charge taken back."""
    ledger = Ledger(tmp_path / "people.ledger")
    ledger.open("people", ApproxDP(epsilon=3, delta=1e-6), REPLACE)
    asked, target = Tables("income|sex", mechanism="gaussian"), ApproxDP(epsilon=0.01, delta=1e-6)
    right = people()["sex"].count("F")
    answers = []
    for guess in (right, right - 1, right + 50):
        made = Curator(people(), declared(guess), ledger=ledger)
        if guess != right:
            with pytest.raises(LedgerError, match="dpbayes ledger accept"):
                made.release(asked, target)
            ledger.accept("people", declared(guess).digest, about="the owner looked at it")
        answers.append(made.release(asked, target))
    assert [charge.state for charge in ledger.account("people").charges.values()] == ["drawn"] * 3
    notes = [note for answer in answers for table in answer.tables for note in table.notes]
    assert not [note for note in notes if "do not fit" in note]  # the noise hides it
    assert all(answer.verify(ledger=ledger).ok for answer in answers)


def test_published_values_that_contradict_declared_totals_are_noted(tmp_path):
    ledger = Ledger(tmp_path / "people.ledger")
    ledger.open("people", ApproxDP(epsilon=50, delta=1e-6), REPLACE)
    made = Curator(people(), declared(0), ledger=ledger)
    release = made.release(Tables("sex,income", mechanism="gaussian"), ApproxDP(epsilon=10, delta=1e-6))
    said = ("The published values do not fit the totals of sex that the schema declares.",)
    assert [table.notes for table in release.tables] == [said]
    assert release.verify(ledger=ledger).ok


def test_with_a_person_column_the_number_of_records_is_not_published(tmp_path):
    """Replacing somebody by rows without an id changes it."""
    table = {**people(), "id": [str(k) for k in range(399)] + [None]}
    named = replace(schema(), person="id")
    ledger = Ledger(tmp_path / "people.ledger")
    ledger.open("people", ApproxDP(epsilon=3, delta=1e-6), named.unit)
    released = Curator(table, named, ledger=ledger).release(Tables("sex", "income|sex", mechanism="gaussian"), TARGET)
    assert released.records is None
    assert released.unit.person == "id"
    assert released.verify(ledger=ledger).ok
    assert not replace(released, records=399).verify().ok


def test_an_empty_table_is_released_like_any_other(tmp_path):
    empty = pa.table({"sex": pa.array([], pa.string()), "income": pa.array([], pa.string())})
    made, _ = curator(tmp_path, table=empty, unit=ADD)
    release = made.release(Tables("sex", mechanism="gaussian"), TARGET)
    assert len(release.tables[0].values) == 3


def test_an_rdp_target_is_met_at_its_order(tmp_path):
    made, _ = curator(tmp_path, budget=RDP(order=5, epsilon=2))
    target = RDP(order=5, epsilon=0.5)
    release = made.release(Tables("sex", mechanism="dirichlet"), target)
    assert -1e-9 <= target.gap(release.cost) <= 0


@pytest.mark.parametrize("target", [PureDP(epsilon=2e6), RDP(order=float("inf"), epsilon=1)])
def test_a_guarantee_that_nothing_can_be_computed_with_is_refused(tmp_path, target):
    made, ledger = curator(tmp_path)
    with pytest.raises(InvalidArgument, match="expected a"):
        made.release(Tables("sex"), target)
    assert ledger.account("people").charges == {}


def test_progress_tells_what_is_being_done_and_how_far_whatever_the_rows_are(tmp_path: Path) -> None:
    schema = Schema(
        id="people",
        unit=Unit(adjacency="add-remove"),
        attributes=(Attribute(name="sex", categories=("F", "M"), missing="other"),),
    )
    told: list[list[str]] = []
    for number, rows in enumerate((["F"], ["M"] * 5000)):
        told.append([])
        ledger = Ledger(tmp_path / f"{number}.ledger")
        ledger.open(schema, PureDP(epsilon=1))
        curator = Curator({"sex": rows}, schema, ledger=ledger, progress=told[-1].append)
        curator.release(Tables("sex", mechanism="laplace"), PureDP(epsilon=0.5), out=tmp_path / str(number))
    assert told[0] == told[1]
    assert [line.partition(", step ")[2] for line in told[0]] == [f"{place} of 5" for place in range(1, 6)]


PRODUCTS = [
    Tables("sex"),
    Synthetic(target="income"),
    PosteriorTable(marginal=Marginal("sex"), mechanism="laplace"),
    Vector(marginal="sex", entries=("x", "y"), scores=((1, 0), (0, 1), (1, 1))),
]


@pytest.mark.parametrize("job", PRODUCTS, ids=lambda job: job.kind)
def test_a_false_number_of_records_is_refused_with_both_numbers_and_nothing_is_charged(tmp_path, job):
    declared, ledger = schema(records=61697), Ledger(tmp_path / "people.ledger")
    ledger.open(declared, ApproxDP(epsilon=3, delta=1e-6))
    with pytest.raises(SchemaError, match=r"declares records = 61,697, and the table has 400 rows\. .* nothing was"):
        Curator(people(), declared, ledger=ledger).release(job, TARGET)
    assert not ledger.account("people").charges
    assert not list(ledger.kept.folder.glob("*"))
    with pytest.raises(SchemaError, match="61,697"):
        Curator(people(), declared).release(job, TARGET)


@pytest.mark.parametrize("rows", [1, 399, 400, 401])
def test_whoever_declares_another_unit_than_the_ledger_does_not_learn_the_size(tmp_path, rows):
    ledger, said = Ledger(tmp_path / "people.ledger"), []
    ledger.open("people", ApproxDP(epsilon=3, delta=1e-6), ADD)
    with pytest.raises(UnitMismatch) as caught:
        Curator(people(rows), schema(records=400), ledger=ledger, progress=said.append).release(Tables("sex"), TARGET)
    assert said == ["calibrating, step 1 of 5"]
    assert [file.name for file in tmp_path.iterdir()] == ["people.ledger"]
    assert not {"399", "400", "401"} & set(re.findall(r"\d+", str(caught.value)))
    ledger.open("others", ApproxDP(epsilon=3, delta=1e-6), REPLACE)
    with pytest.raises(LedgerError) as caught:  # the ledger does not know the data set of this schema
        Curator(people(rows), replace(schema(records=400), id="nobody's"), ledger=ledger).release(Tables("sex"), TARGET)
    assert not re.search("399|400|401", str(caught.value))


@pytest.mark.parametrize("rows", [39, 40])
def test_with_a_person_column_the_number_of_rows_that_count_is_private_and_is_not_compared(rows):
    table = {**people(rows), "id": [str(place // 2) for place in range(rows)]}
    made = Curator(table, schema(records=400, person="id")).release(Tables("sex"), TARGET)
    assert made.records is None


def test_what_keeps_a_table_from_being_counted_is_told_after_the_charge(tmp_path):
    class Broken(type(open_table(people()))):
        def count(self, *_):
            raise TableError("Table: it went away.")

    declared, ledger = schema(records=400), Ledger(tmp_path / "people.ledger")
    ledger.open(declared, ApproxDP(epsilon=3, delta=1e-6))
    made = Curator(people(), declared, ledger=ledger)
    made._engine.__class__ = Broken
    with pytest.raises(Unfinished, match="it went away"):
        made.release(Tables("sex"), TARGET)
    assert len(ledger.account("people").charges) == 1


def test_whether_a_table_has_changed_is_told_by_a_ledger_and_asks_for_every_declared_column(tmp_path):
    rows = people()
    assert curator(tmp_path, table=rows)[0].changed() is False
    assert curator(tmp_path, table=rows)[0].changed() is False
    rows["sex"] = [*rows["sex"][1:], "M" if rows["sex"][0] == "F" else "F"]
    assert curator(tmp_path, table=rows)[0].changed() is True
    made, _ = curator(tmp_path, table={"sex": rows["sex"]})
    with pytest.raises(TableError, match="no column 'income'"):
        made.changed()
    made, _ = curator(tmp_path, table=pa.table(rows | {"income": [["low"]] * len(rows["sex"])}))
    with pytest.raises(SchemaError, match="does not go with categories"):
        made.changed()
    with pytest.raises(InvalidArgument, match="expected a ledger"):
        Curator(rows, schema()).changed()


def test_a_plan_without_a_target_asks_for_one(tmp_path):
    for made in (Curator(people(), schema()), curator(tmp_path)[0]):
        with pytest.raises(InvalidArgument, match="expected a target, such as"):
            made.plan(Tables("sex"), None)


def test_the_owner_is_told_which_columns_hold_something_undeclared():
    rows = people()
    assert Curator(rows, schema()).undeclared() == {}
    rows["sex"][0] = "X"
    assert Curator(rows, schema()).undeclared() == {"sex": 1 / 400}


@pytest.mark.parametrize("out", [None, "folder"])
def test_a_release_that_will_not_fit_on_its_disk_is_refused_before_the_charge(tmp_path, monkeypatch, out):
    made, ledger = curator(tmp_path)
    monkeypatch.setattr(files, "DISK", 1 << 60)
    with pytest.raises(ReleaseError, match=r"on disk, and .* are free"):
        made.release(Tables("sex"), TARGET, out=out and tmp_path / out)
    assert not ledger.account("people").charges
    assert not (tmp_path / "folder").exists()


def test_a_table_finds_its_schema_and_its_ledger_and_never_charges_another_data_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pa.table({"sex": ["F", "M"] * 200, "income": ["low", "high", None, "low"] * 100})
    csv.write_csv(table, "people.csv")
    with pytest.raises(SchemaError, match=r"there is no 'people.toml'. `dpbayes schema init people.csv`"):
        Curator("people.csv")
    Path("people.toml").write_text(schema().to_toml())
    made = Curator("people.csv")
    with pytest.raises(LedgerError, match=r"there is no 'people.ledger'.*`dpbayes ledger init people.csv"):
        made.release(Tables("sex"), TARGET)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "people.toml"]
    assert Curator("people.csv", ledger="none").release(Tables("sex"), TARGET).spending is None
    other = Ledger("people.ledger")
    other.open("others", ApproxDP(3, 1e-6), REPLACE)
    with pytest.raises(LedgerError, match="people"):
        Curator("people.csv").release(Tables("sex"), TARGET)
    assert not other.account("others").charges
    other.open("people.toml", ApproxDP(3, 1e-6))
    release = Curator("people.csv").release(Tables("sex"), TARGET)
    assert release.spending.hash == other.account("people").charges[1].entry.hash
    Path("other.toml").write_text(schema().to_toml().replace('"low"', '"lower"'))
    with pytest.raises(LedgerError, match="another schema"):
        Curator("people.csv", "other.toml").release(Tables("sex"), TARGET)
    Curator(PurePath("people.csv")).release(Tables("sex"), TARGET)
    assert len(other.account("people").charges) == 2  # any kind of path is one
    with pytest.raises(SchemaError, match="in memory"):
        Curator(people())
