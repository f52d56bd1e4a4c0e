"""Wanted accuracies: the least guarantee that gives them, and what is out of reach."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpbayes import ZCDP, ApproxDP, Attribute, Curator, PureDP, Request, Schema, Tables, Unit
from dpbayes.base.errors import DpbayesError, InvalidArgument, TargetUnreachable
from dpbayes.design.forecast import forecast
from dpbayes.design.noise import least, wants
from dpbayes.jobs.base import job_from_record
from dpbayes.ledger.ledger import Ledger
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.privacy.cost import Cost

LEVELS = {"sex": 2, "income": 4, "region": 6}
ASKED = Tables(want={"income|sex": "± 1 point", "region": "± 50 records", "income,region": "± 60 records"})
CAPS = [ApproxDP(epsilon=20.0, delta=1e-6), PureDP(epsilon=20.0), ZCDP(rho=5.0)]


def schema(**options: object) -> Schema:
    attributes = tuple(
        Attribute(name=name, categories=(*(f"{name} {level}" for level in range(number)), "other"), missing="other")
        for name, number in LEVELS.items()
    )
    given = {"records": 3000} | options
    return Schema(id="people", unit=Unit(adjacency="replace-one"), attributes=attributes, **given)  # type: ignore[arg-type]


def people(rows: int = 3000) -> dict[str, list[str]]:
    rng = np.random.default_rng(5)
    return {name: [f"{name} {level}" for level in rng.integers(0, number, rows)] for name, number in LEVELS.items()}


def reached(job: Tables, target: object) -> dict[str, float]:
    """What a plan gives, in the units that were wanted."""
    found = {}
    for each in forecast(job.plan(schema(), target)):  # type: ignore[arg-type]
        found[str(each.marginal)] = each.group_points if each.marginal.given else each.records
    return found  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("cap", "mechanism"),
    [(cap, mechanism) for cap in CAPS for mechanism in ("auto", "gaussian", "laplace")
     if mechanism != "gaussian" or not isinstance(cap, PureDP)],  # Gaussian noise is never pure
    ids=str,
)  # fmt: skip
def test_the_least_guarantee_is_enough_and_a_smaller_one_is_not(cap: ApproxDP, mechanism: str) -> None:
    asked = Tables(want=dict(text.split(" ± ") for text in ASKED.want), mechanism=mechanism)
    found = asked.least(schema(), cap)
    got = reached(asked, found)
    assert got["income|sex"] <= 1.001
    assert got["region"] <= 50.05
    assert got["income,region"] <= 60.06
    name = "rho" if isinstance(cap, ZCDP) else "epsilon"
    less = reached(asked, replace(found, **{name: 0.97 * found.size}))  # type: ignore[type-var]
    assert less["income|sex"] > 1 or less["region"] > 50 or less["income,region"] > 60


def test_no_other_split_needs_less_by_search() -> None:
    """Over splits of the same tables at random: none gives the accuracies for a smaller ρ."""
    found = ASKED.least(schema(), ZCDP(rho=5.0)).size
    plan = ASKED.plan(schema(), ZCDP(rho=5.0))
    rng = np.random.default_rng(0)
    for _ in range(60):
        shares = rng.dirichlet(np.ones(len(plan.tables)))
        sigmas = np.sqrt(1 / (shares / shares.sum()))
        made = [Gaussian(sigma=sigma, unit=schema().unit) for sigma in sigmas]
        other = replace(
            plan,
            paid=tuple(replace(plan.paid[0], mechanism=each, times=1) for each in made),
            places=tuple(range(len(made))),
        )
        errors = {str(each.marginal): each for each in forecast(other)}
        worst = max(
            (errors["income|sex"].group_points or 0) / 1,
            errors["region"].records / 50,
            errors["income,region"].records / 60,
        )
        rho = ZCDP(rho=1.0).amount(Cost.total(made)) * worst**2
        assert rho >= 0.995 * found


@pytest.mark.parametrize("cap", [ApproxDP(epsilon=0.05, delta=1e-6), PureDP(epsilon=0.05), ZCDP(rho=1e-4)], ids=str)
def test_what_is_out_of_reach_is_said_with_what_it_needs_and_what_there_is(cap: ApproxDP) -> None:
    with pytest.raises(TargetUnreachable, match=r"out of reach: it needs .* region is ± [\d,]+ records"):
        ASKED.least(schema(), cap)


def test_a_release_pays_and_promises_the_least(tmp_path: Path) -> None:
    book = Ledger(tmp_path / "ledger")
    book.open("people", ApproxDP(epsilon=6.0, delta=1e-6), unit=schema().unit, schema=schema().digest)
    curator = Curator(people(), schema(), ledger=book)
    release = curator.release(Tables(want=["region ± 50 records"]))
    assert release.promise.size < 1
    assert release.verify(ledger=book).ok
    counts = release["region"].table.products["counts"]
    assert counts.lower is not None
    assert counts.upper is not None
    assert (counts.upper - counts.lower <= 2 * 50 + 2).all()
    assert book.account("people").left() > 5
    with pytest.raises(TargetUnreachable, match="out of reach"):
        curator.release(Tables(want=["region ± 0.01 records"]))
    assert len(book.account("people").charges) == 1
    with pytest.raises(InvalidArgument, match="accuracies need a limit"):
        Curator(people(), schema(), seed=1).release(Tables(want=["region ± 50 records"]))


def test_a_request_file_says_it_too(tmp_path: Path) -> None:
    asked = Request.from_toml('tables = ["region ± 50 records", "income|sex ± 2 points"]\nepsilon = 9\ndelta = 1e-6')
    assert Request.from_toml(asked.to_toml()) == asked
    plan = Curator(people(), schema(), seed=1).plan(asked)
    assert plan.target.size < 9
    with pytest.raises(InvalidArgument, match="cannot read"):
        Request.from_toml('tables = ["region ± 50 apples"]')


def test_a_job_with_wants_is_written_down_and_read_again() -> None:
    assert job_from_record(ASKED.record()) == ASKED


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"region": "a little"}, "cannot read"),
        ({"region": "± 0 records"}, "above 0"),
        (["± 3 records"], "cannot read"),
        (["region ± 3 records", "region ± 1 point"], "named twice"),
        ("region ± 3 records", "expected texts"),
        ([3], "expected texts"),
        (["regoin ± 3 records"], "Did you mean 'region'"),
    ],
)
def test_wants_that_cannot_be_read_are_refused_in_a_sentence(given: object, said: str) -> None:
    with pytest.raises(DpbayesError, match=said):
        Tables(want=given).least(schema(), CAPS[0])


def test_wants_that_cannot_be_met_as_asked_are_refused_in_a_sentence() -> None:
    with pytest.raises(InvalidArgument, match="want says nothing about sex"):
        Tables("sex", want={"region": "± 3 records"})
    with pytest.raises(InvalidArgument, match="wanted accuracies go with estimates"):
        Tables(want={"region": "± 3 records"}, mechanism="dirichlet")
    with pytest.raises(InvalidArgument, match="need the number of records"):
        Tables(want={"region": "± 3 points"}).least(schema(records=None), CAPS[0])
    assert Tables(want={"region": "± 3 points"}).least(schema(records=None, records_guess=3000), CAPS[0]).size > 0


def test_the_least_guarantee_of_a_cost_is_rounded_up() -> None:
    cost = Cost.of(Gaussian(sigma=10.0, unit=schema().unit))
    found = least(ApproxDP(epsilon=3.0, delta=1e-6), lambda each: each.gap(cost) <= 0)
    assert found is not None
    assert 0 <= found.size - cost.epsilon(1e-6) < 1e-3
    assert found.gap(cost) <= 0
    assert least(ApproxDP(epsilon=0.01, delta=1e-6), lambda each: each.gap(cost) <= 0) is None


def test_signs_and_units_are_read_as_people_write_them() -> None:
    texts = [
        "a ± 1 point",
        "b|c +- 2.5 points",
        "c +/- 3 records",
        "d,e ± 1 record",
        "f ± .5 %",
    ]
    assert [str(each) for each in wants(texts)] == [
        "a ± 1 point",
        "b|c ± 2.5 points",
        "c ± 3 records",
        "d,e ± 1 record",
        "f ± 0.5 points",
    ]


def test_what_is_refused_as_out_of_reach_is_not_reached_by_what_is_allowed() -> None:
    for size in (4.0, 4.2, 4.5, 4.8):
        cap = ApproxDP(epsilon=size, delta=1e-6)
        try:
            found = Tables("sex ± .95 records").least(schema(), cap)
            assert found.size <= size
        except TargetUnreachable as problem:
            reached = re.search(r"With that, sex is ± ([\d.]+) records", str(problem))
            assert reached is not None
            assert float(reached[1]) > 0.95
