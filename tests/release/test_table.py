"""A released posterior is looked at like any table: by name, as a frame, a picture and a section of the report."""

from __future__ import annotations

import pytest

from dpbayes import Attribute, Curator, DirichletPosterior, PrivacyUnit, PureDP, Schema
from dpbayes.errors import ReleaseError
from dpbayes.report.page import report_html

SCHEMA = Schema(
    id="survey",
    unit=PrivacyUnit(adjacency="replace-one"),
    records=100,
    attributes=(
        Attribute(name="sex", categories=("1", "2"), unknown="2", missing="2", labels={"1": "male", "2": "female"}),
        Attribute(name="town", categories=("a", "b"), unknown="b", missing="b"),
    ),
)
ROWS = {"sex": ["1", "2", "2", "2"] * 25, "town": ["a", "b"] * 50}


def test_an_attribute_whose_other_values_go_to_a_level_is_the_beta_binomial_case():
    """Two levels and no third: the released posterior is a Beta law."""
    release = Curator(ROWS, SCHEMA, seed=0).release(DirichletPosterior(marginal="sex"), PureDP(epsilon=50))
    assert release["sex"].to_pandas().to_dict("list") == {
        "sex": ["1", "2"],
        "released": [26.0, 76.0],
        "empirical": pytest.approx([26 / 102, 76 / 102]),
    }
    assert "sex" in repr(release["sex"])
    assert "female" in str(release["sex"].plot().svg)
    with pytest.raises(ReleaseError, match="It has sex"):
        release["town"]


def test_the_report_names_the_levels_of_a_joint_posterior():
    asked = DirichletPosterior(marginal="sex,town", mechanism="laplace")
    release = Curator(ROWS, SCHEMA, seed=0).release(asked, PureDP(epsilon=0.8))
    assert "female · b" in report_html(release)
    assert (release["sex,town"].to_pandas()["empirical"] >= 0).all()
