"""Reading a released posterior from its file."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes import Attribute, Curator, PosteriorTable, PureDP, Release, Schema, Unit
from dpbayes.release.estimates import released

TOWN = Attribute(name="town", categories=("x", "y"), missing="other")
SCHEMA = Schema(id="people", unit=Unit(adjacency="replace-one"), attributes=(TOWN,), records=300)
ROWS = {"town": ["x"] * 200 + ["y"] * 80 + ["z"] * 20}


@pytest.mark.parametrize("mechanism", ["laplace", "improved-laplace"])
def test_a_released_posterior_is_read_from_its_file(mechanism: str) -> None:
    asked = PosteriorTable(marginal="town", mechanism=mechanism, prior=(0.5,))  # type: ignore[arg-type]
    made = Curator(ROWS, SCHEMA, seed=0).release(asked, PureDP(epsilon=5))
    read = released(made, made.tables[0])
    again = released(Release.from_json(made.to_json()), made.tables[0])
    np.testing.assert_array_equal(read.counts, again.counts)
    assert read.total == 300
    assert np.abs(read.expected_counts - [200, 80, 20]).max() < 5
