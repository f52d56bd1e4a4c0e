"""Releases of one data set, read together: they agree, sharpen each other, and what does not fit is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.releases import ADD, REPLACE, a_release, release_of, schema_of

from dpbayes import ApproxDP, Gaussian, Posterior, Release
from dpbayes.base.errors import InvalidArgument, ReleaseError, SchemaError
from dpbayes.release.products import complete

USUAL = ApproxDP(epsilon=1, delta=1e-6)
NOISE = Gaussian(sigma=8, unit=REPLACE)
SCHEMA = schema_of("sex", "income", "region")


def release(*asked: str, sigma: float = 8.0, shift: float = 0.0, **others: object) -> Release:
    """Drawn with the same seed each time, so a second one is shifted to have noise of its own."""
    made = release_of(
        *asked, mechanism=Gaussian(sigma=sigma, unit=REPLACE), promise=USUAL, estimates=False,
        **{"schema": SCHEMA, "records": 4000, **others},
    )  # fmt: skip
    moved = tuple(
        replace(table, values=table.values + np.rint(shift * np.sin(np.arange(len(table.values)))))
        for table in made.tables
    )
    return complete(replace(made, tables=moved))


def test_tables_of_a_release_agree_and_show_the_joint_estimate() -> None:
    made = release("sex", "income", "income|sex", "income,sex")
    one, two, given, both = (made.array(table, "counts") for table in made.tables)
    assert both.sum(axis=0) == pytest.approx(one, abs=1e-6)
    assert both.sum(axis=1) == pytest.approx(two, abs=1e-6)
    assert given == pytest.approx(both.T, abs=1e-6)
    found = Posterior(made).table("income|sex")
    shown = made["income|sex"].to_arrow()
    for part, name in ((found.counts, "counts"), (found.records, "empirical"), (found.population, "population")):
        assert shown.column(name).to_numpy() == pytest.approx(part.values.ravel())
        assert shown.column(f"{name}_lower").to_numpy() == pytest.approx(part.lower.ravel())
        assert shown.column(f"{name}_upper").to_numpy() == pytest.approx(part.upper.ravel())
    assert made.verify().checks[-1].passed


def test_estimates_that_were_edited_do_not_verify() -> None:
    made = release("sex", "income,sex")
    table = made.tables[0]
    counts = replace(table.products["counts"], values=table.products["counts"].values + 1.0)
    edited = replace(made, tables=(replace(table, products={**table.products, "counts": counts}), made.tables[1]))
    assert not edited.verify().checks[-1].passed


def test_a_second_release_sharpens_the_first() -> None:
    first, second = release("income,sex"), release("income,sex", shift=5.0)
    widths = [
        float((part.upper - part.lower).mean())
        for part in (Posterior(each).table("income,sex").counts for each in (first, [first, second]))
    ]
    assert widths[1] == pytest.approx(widths[0] / np.sqrt(2), rel=0.1)


def test_what_a_larger_table_determines_can_be_asked_for() -> None:
    posterior = release("income,sex", "region|sex").posterior()
    assert posterior.table("income").counts.values.sum() == pytest.approx(4000)
    found = posterior.ask("share(income='high' | sex='male') - share(income='high' | sex='female')")
    assert found.lower <= found.estimate <= found.upper
    counts = posterior.joint.linear(("sex", "income"))[0]
    share = counts[:, 2] / counts.sum(axis=1)
    assert found.estimate == pytest.approx(share[1] - share[0], abs=1e-9)


def test_draws_agree_in_what_they_share() -> None:
    one, two = release("income,sex", "region|sex").posterior().draws(
        ["income,sex", "region|sex"], 50, np.random.default_rng(0)
    )  # fmt: skip
    assert one.sum(axis=1) == pytest.approx(two.sum(axis=2), abs=1e-6)


@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        ({"schema": schema_of("sex", "income", "region", dataset="census")}, "of different data sets"),
        ({"schema": schema_of("sex", "income")}, "different schemas"),
        ({"schema": schema_of("sex", "income", "region", unit=ADD), "records": None}, "different units"),
        ({"seeded": True}, "seeded release, which is not private"),
    ],
)
def test_releases_that_do_not_belong_together_are_refused(others: dict[str, object], sentence: str) -> None:
    with pytest.raises(ReleaseError, match=sentence):
        Posterior([release("income,sex"), release("income", **others)])


def test_a_release_twice_and_none_at_all_are_refused() -> None:
    made = release("income,sex")
    with pytest.raises(ReleaseError, match="there twice"):
        Posterior([made, Release.from_json(made.to_json())])
    for nothing in ([], None, [None]):
        with pytest.raises(ReleaseError, match="expected one release or more"):
            Posterior(nothing)  # type: ignore[arg-type]
    for missing in ("published", ["published"]):
        with pytest.raises(ReleaseError, match="cannot read 'published'"):
            Posterior(missing)  # type: ignore[arg-type]
    with pytest.raises(ReleaseError, match="tables of counts or gammas"):
        Posterior(a_release("pseudo-records")).table("income")


def test_questions_that_cannot_be_answered_say_why() -> None:
    posterior = release("income,sex", "region").posterior()
    for ask in (
        lambda: posterior.table("income|region"),
        lambda: posterior.ask("share(income='high' | region='North')"),
    ):
        with pytest.raises(InvalidArgument, match="Measure a table that contains income × region"):
            ask()
    with pytest.raises(InvalidArgument, match="Measure a table that contains region"):
        release("income,sex").posterior().table("region")
    with pytest.raises(SchemaError, match=r"has no level 'rich'\. It has 'low', 'middle', 'high'"):
        posterior.ask("share(income='rich')")
    with pytest.raises(SchemaError, match="'wealth'"):
        posterior.ask("share(wealth='high')")
    with pytest.raises(SchemaError, match="'wealth'"):
        posterior.table("wealth")
    with pytest.raises(InvalidArgument, match="at character"):
        posterior.ask("share(income='high'")
