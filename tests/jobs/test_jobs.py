"""Every kind of job: its record gives it back, its plan can be drawn later, and its release verifies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.covering import PARTS
from tests.releases import ASKED, PEOPLE, USUAL, made_by_a_curator, people

from dpbayes import BayesNet, Curator, PosteriorTable, PureDP, Release, Tables
from dpbayes.base import codec
from dpbayes.base.errors import DpbayesError, InvalidArgument, ReleaseError, SchemaError
from dpbayes.jobs import Fit, Wide
from dpbayes.jobs.base import job_from_record, kinds, plan_from_record, plan_record
from dpbayes.models import Histogram
from dpbayes.schema import Marginal, Prior

MORE = {
    "tables with a prior": Tables("sex", priors=(Prior(of=("sex",), shares=(1.0, 2.0, 3.0)),), level=0.5),
    "a network": Fit(model=BayesNet.of('[["sex", "income"]]')),
    "a histogram": Fit(model=Histogram(attributes=("sex", "income")), mechanism="laplace"),
    "a certified posterior": PosteriorTable(marginal=Marginal("sex"), prior=(0.5, 1.0, 2.0), around=(1, 2, 3)),
    "another law": Wide(marginal=Marginal(("sex", "income")), state="x.wide", law="cells"),
}


def test_every_kind_has_an_example_here(tmp_path: Path) -> None:
    assert {asked.job(tmp_path).kind for asked in ASKED.values()} == set(kinds())  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [*ASKED, *MORE])
def test_a_job_that_was_written_down_is_the_same_job(name: str, tmp_path: Path) -> None:
    job = MORE[name] if name in MORE else ASKED[name].job(tmp_path)
    record = json.loads(json.dumps(job.record()))  # type: ignore[attr-defined]
    assert job_from_record(record) == job
    assert job_from_record(record).record() == record
    for spoilt in ({**record, "addition": 1}, {**record, "kind": "magic"}, {"kind": record["kind"]}):
        with pytest.raises(DpbayesError):
            job_from_record(spoilt)


@pytest.mark.parametrize("name", ASKED)
def test_a_plan_that_was_written_down_draws_the_same(name: str, tmp_path: Path) -> None:
    asked = ASKED[name]
    curator = Curator(people(), PEOPLE, seed=3)
    plan = curator.plan(asked.job(tmp_path), asked.target)
    again = plan_from_record(json.loads(codec.canonical(plan_record(plan))))
    assert again == plan
    first, second = (curator._draw(each) for each in (plan, replace(again, lock=""))) if name != "wide" else (1, 1)
    if isinstance(first, Release) and isinstance(second, Release):
        assert replace(first, created="").record() == replace(second, created="").record()


@pytest.mark.parametrize("name", ASKED)
def test_a_release_of_every_kind_comes_back_from_its_file_and_verifies(name: str, tmp_path: Path) -> None:
    made = made_by_a_curator(name, tmp_path)
    release = made.release
    assert Release.from_json(release.to_json()).record() == release.record()
    assert release.verify().ok
    assert release.verify(ledger=made.ledger).ok
    release.save(tmp_path / "published")
    assert replace(Release.load(tmp_path / "published"), files={}).digest() == release.digest()
    assert len(repr(release)) < 300
    assert "<script" not in release._repr_html_()
    for table in release.tables:
        view = release[str(table.marginal)]
        assert len(view.to_arrow()) == len(table.values) == len(view.to_pandas()) == len(view.to_polars())
        assert str(table.marginal) in repr(view)
        assert {part for part, held in table.products.items() if held.lower is not None} <= set(PARTS), (
            "see covering.py"
        )
    with pytest.raises(ReleaseError, match="it has no table"):
        release["nobody"]


def test_a_plan_reads_no_rows(tmp_path: Path) -> None:
    class Headers:
        def __init__(self) -> None:
            from dpbayes.tables.sources import open_table

            self.columns = open_table(people()).columns

        def read(self, *_: object) -> None:
            raise AssertionError("rows were read")

        count = values = occupied = codes = fingerprint = read

    for asked in ASKED.values():
        plan = Curator(Headers(), PEOPLE).plan(asked.job(tmp_path), asked.target)
        assert asked.target.gap(plan.cost) <= 0
        assert plan.paid


# -- what each kind refuses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "options", "said"),
    [
        ((), {}, "one marginal or more"),
        (("sex", "sex"), {}, "asked for twice"),
        (("sex,income", "income,sex"), {}, "asked for twice"),
        (("sex",), {"product": "magic"}, "product"),
        (("sex",), {"magic": 1}, "no option"),
        (("sex",), {"level": 1.0}, "level"),
        (("sex",), {"pseudo_records": 5}, "product='records'"),
        (("sex",), {"product": "draw", "mechanism": "gaussian"}, "Dirichlet"),
        (("sex",), {"expected_records": 9}, "no option 'expected_records'"),
        (("sex",), {"priors": (Prior(of=("income",), shares=(1.0,)),)}, "no marginal is"),
        (("sex",), {"product": "records", "priors": (Prior(of=("sex",), shares=(1.0,)),)}, "have none"),
        (("sex",), {"priors": (Prior(of=("sex",), shares=(1.0,)),) * 2}, "two priors"),
    ],
)
def test_tables_that_cannot_be_made_are_refused(asked: tuple[str, ...], options: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        Tables(*asked, **options)


def test_a_posterior_needs_a_known_size_a_joint_table_and_a_fitting_prior() -> None:
    with pytest.raises(InvalidArgument, match="joint table"):
        PosteriorTable(marginal=Marginal("income", "sex"))
    with pytest.raises(InvalidArgument, match="prior"):
        PosteriorTable(marginal=Marginal("sex"), prior=(0.0,))
    job = PosteriorTable(marginal=Marginal("sex"), prior=(1.0, 1.0))
    with pytest.raises(InvalidArgument, match="or 3, got 2"):
        job.plan(PEOPLE, PureDP(epsilon=1))
    with pytest.raises(SchemaError, match="records"):
        PosteriorTable(marginal=Marginal("sex")).plan(replace(PEOPLE, records=None), PureDP(epsilon=1))
    with pytest.raises(InvalidArgument, match="needs a δ"):
        PosteriorTable(marginal=Marginal("sex"), mechanism="hellinger", calibration="published").plan(
            PEOPLE, PureDP(epsilon=1)
        )


@pytest.mark.parametrize("mechanism", ["auto", "hellinger", "exponential", "laplace", "improved-laplace"])
def test_a_posterior_by_every_mechanism_keeps_its_promise(mechanism: str) -> None:
    small = replace(PEOPLE, records=20)
    job = PosteriorTable(marginal=Marginal("sex"), mechanism=mechanism, even_if_noise=True)  # type: ignore[arg-type]
    plan = job.plan(small, USUAL if mechanism == "hellinger" else PureDP(epsilon=1))
    assert plan.target.gap(plan.cost) <= 1e-9
    release = Curator(people(20), small).release(job, plan.target)
    assert release.verify().ok
    assert len(release.tables[0].values) == 3
