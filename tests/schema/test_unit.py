"""What one promise protects."""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes import Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.schema import Adjacency, Sensitivity

units = st.builds(Unit, adjacency=st.sampled_from(list(Adjacency)), max_rows=st.integers(1, 3))


@given(units)
def test_sensitivities_are_the_largest_distances_between_neighbouring_tables(unit: Unit) -> None:
    cells, rows = 3, unit.max_rows
    persons = [np.array(p) for p in product(range(rows + 1), repeat=cells) if sum(p) <= rows]
    differences = (
        [one - other for one in persons for other in persons if one.sum() == other.sum()]
        if unit.replaces
        else persons + [-p for p in persons]
    )
    sensitivity = unit.sensitivity
    assert max(np.abs(d).sum() for d in differences) == sensitivity.l1
    assert max((d**2).sum() for d in differences) == sensitivity.l2_squared
    assert max(np.abs(d).max() for d in differences) == sensitivity.linf


@given(units)
def test_records_round_trip_through_json(unit: Unit) -> None:
    assert Unit.from_record(json.loads(json.dumps(unit.record()))) == unit


def test_adjacencies_can_be_named_by_their_text() -> None:
    assert Unit(adjacency="replace-one") == Unit(adjacency=Adjacency.REPLACE_ONE)
    assert isinstance(Unit(adjacency="add-remove").adjacency, Adjacency)
    assert Unit(adjacency="replace-one").replaces
    assert not Unit(adjacency="add-remove").replaces


def test_there_is_no_default_adjacency() -> None:
    with pytest.raises(TypeError, match="adjacency"):
        Unit()


@pytest.mark.parametrize("bad", ["replace", "", None, 1, ["replace-one"], True])
def test_unknown_adjacencies_are_refused(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="adjacency"):
        Unit(adjacency=bad)


@pytest.mark.parametrize("bad", [0, -1, 1.0, 1.5, True, "1", None, math.nan, math.inf])
def test_the_number_of_rows_is_whole_and_positive(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="max_rows"):
        Unit(adjacency="add-remove", max_rows=bad)


@pytest.mark.parametrize("bad", [None, {}, [], {"adjacency": "add-remove"}, {"adjacency": "add-remove", "rows": 1}])
def test_wrong_records_are_refused(bad: object) -> None:
    with pytest.raises(InvalidArgument):
        Unit.from_record(bad)


@pytest.mark.parametrize("name", ["l1", "l2_squared", "linf"])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True, "1", None])
def test_sensitivities_are_positive(name: str, bad: object) -> None:
    with pytest.raises(InvalidArgument, match=name):
        Sensitivity(**{"l1": 1.0, "l2_squared": 1.0, "linf": 1.0, name: bad})


def test_units_are_frozen_and_hashable() -> None:
    unit = Unit(adjacency="add-remove")
    with pytest.raises(AttributeError):
        unit.max_rows = 2
    assert len({unit, Unit(adjacency=Adjacency.ADD_REMOVE)}) == 1


def test_numpy_numbers_of_rows_are_written_as_json() -> None:
    assert json.dumps(Unit(adjacency="add-remove", max_rows=np.int64(2)).record())
