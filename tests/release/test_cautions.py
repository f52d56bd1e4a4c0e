"""Cautions about a schema that does not fit its column, from published numbers alone."""

from __future__ import annotations

import pytest

from dpbayes import Attribute, Curator, PureDP, Schema, Tables, Unit
from dpbayes.cli.output import show_release
from dpbayes.release.verify import verify
from dpbayes.report.page import report_html


def released(
    epsilon: float, *marginals: str, categories=("male", "femal"), missing="category", rows=("male", "female")
):
    attributes = (
        Attribute(name="sex", categories=categories, missing=missing),
        Attribute(name="town", categories=("a", "b"), missing="other"),
    )
    schema = Schema(id="survey", unit=Unit(adjacency="replace-one"), attributes=attributes)
    table = {"sex": list(rows) * 2000, "town": ["a", "b"] * 1000 * len(rows)}
    return Curator(table, schema, seed=0).release(Tables(*marginals), PureDP(epsilon=epsilon))


def test_a_misspelt_category_is_said_with_its_interval(capsys):
    release = released(1.0, "sex")
    many, empty = release.tables[0].notes
    assert "are 'other': values that the schema does not list." in many
    assert " % to " in many
    assert "sex: hardly any record" in empty
    assert "is femal, although" in empty
    assert many.replace("'", "&#x27;") in report_html(release)
    show_release(release, None)
    assert "Warning: sex:" in capsys.readouterr().out
    assert any(
        "recomputed from the released values" in check.detail for check in verify(release).checks if check.passed
    )


def test_attributes_of_several_tables_are_named_once_and_larger_tables_tell_as_well():
    release = released(1.0, "sex,town", "sex")
    assert [len(table.notes) for table in release.tables] == [2, 0]


def test_missing_values_that_go_to_other_are_named():
    (note,) = (
        released(1.0, "sex", categories=("male", "female"), missing="other", rows=("male", "female", None))
        .tables[0]
        .notes
    )
    assert "does not list, or missing ones" in note


@pytest.mark.parametrize(("epsilon", "categories"), [(1.0, ("male", "female")), (1e-4, ("male", "femal"))])
def test_nothing_is_said_of_what_fits_or_what_noise_hides(epsilon, categories):
    assert released(epsilon, "sex", categories=categories).tables[0].notes == ()
