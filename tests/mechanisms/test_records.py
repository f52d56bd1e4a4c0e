"""Records: names keep their meaning for ever."""

from __future__ import annotations

import pytest

from dpbayes import Dirichlet, Gaussian, Laplace, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms import Stated
from dpbayes.mechanisms.dirichlet import UnroundedDirichlet
from dpbayes.mechanisms.kinds import from_record
from dpbayes.mechanisms.selection import Selection
from dpbayes.mechanisms.threshold import Threshold
from dpbayes.mechanisms.urn import PseudoRecords
from dpbayes.schema import Adjacency, Sensitivity

UNIT = Unit(adjacency=Adjacency.ADD_REMOVE, max_rows=2)
STORED = [
    (
        {
            "mechanism": "dirichlet-1",
            "weight": 0.25,
            "concentration": 3.5,
            "unit": {"adjacency": "add-remove", "max_rows": 2},
            "least_count": 4,
            "sensitivity": {"l1": 2.0, "l2_squared": 3.0, "linf": 1.0},
        },
        UnroundedDirichlet(
            weight=0.25,
            concentration=3.5,
            unit=UNIT,
            least_count=4,
            sensitivity=Sensitivity(l1=2.0, l2_squared=3.0, linf=1.0),
        ),
    ),
    (
        {
            "mechanism": "dirichlet-1",
            "weight": 1.0,
            "concentration": [1.0, 2.0],
            "unit": {"adjacency": "add-remove", "max_rows": 2},
            "least_count": 0,
            "sensitivity": None,
        },
        UnroundedDirichlet(weight=1.0, concentration=(1.0, 2.0), unit=UNIT),
    ),
    (
        {
            "mechanism": "dirichlet-2",
            "weight": 1.0,
            "concentration": [1.0, 2.0],
            "unit": {"adjacency": "add-remove", "max_rows": 2},
            "least_count": 0,
            "sensitivity": None,
            "grid": 0.015625,
        },
        Dirichlet(weight=1.0, concentration=(1.0, 2.0), unit=UNIT),
    ),
    (
        {
            "mechanism": "pseudo-records-1",
            "weight": 1.0,
            "concentration": 2.5,
            "records": 12,
            "unit": {"adjacency": "add-remove", "max_rows": 2},
            "least_count": 0,
        },
        PseudoRecords(weight=1.0, concentration=2.5, records=12, unit=UNIT),
    ),
    (
        {"mechanism": "gaussian-1", "sigma": 3.0, "unit": {"adjacency": "add-remove", "max_rows": 2}},
        Gaussian(sigma=3.0, unit=UNIT),
    ),
    (
        {"mechanism": "laplace-1", "scale": 3.0, "unit": {"adjacency": "add-remove", "max_rows": 2}},
        Laplace(scale=3.0, unit=UNIT),
    ),
    (
        {
            "mechanism": "laplace-threshold-1",
            "scale": 3.0,
            "threshold": 40,
            "unit": {"adjacency": "add-remove", "max_rows": 2},
        },
        Threshold(scale=3.0, threshold=40, unit=UNIT),
    ),
    (
        {"mechanism": "selection-1", "sharpness": 0.25, "unit": {"adjacency": "add-remove", "max_rows": 2}},
        Selection(sharpness=0.25, unit=UNIT),
    ),
    (
        {
            "mechanism": "stated-1",
            "epsilon": 0.5,
            "delta": 1e-9,
            "unit": {"adjacency": "add-remove", "max_rows": 2},
            "what": "a map",
        },
        Stated(epsilon_stated=0.5, delta_stated=1e-9, unit=UNIT, what="a map"),
    ),
]


@pytest.mark.parametrize(("record", "mechanism"), STORED, ids=lambda value: type(value).__name__)
def test_records_are_read_for_ever(record: dict[str, object], mechanism: object) -> None:
    assert from_record(record) == mechanism
    assert mechanism.record() == record


def test_the_draw_of_the_first_version_keeps_its_price_and_draws_no_more() -> None:
    old, new = (from_record({**STORED[2][0], "mechanism": name}) for name in ("dirichlet-1", "dirichlet-2"))
    assert [old.renyi(1.5), old.delta(0.3), old.epsilon(1e-6)] == [new.renyi(1.5), new.delta(0.3), new.epsilon(1e-6)]
    for draw in (old.draw, old.gammas):
        with pytest.raises(InvalidArgument, match="does not draw"):
            draw([3, 4])
    assert old.rounding() == new


@pytest.mark.parametrize(
    "record",
    [None, [], "dirichlet-1", 3, {}, {"mechanism": None}, {"mechanism": "dirichlet-9"}, {"mechanism": ["gaussian-1"]}],
)
def test_unknown_records_are_refused_with_advice(record: object) -> None:
    with pytest.raises(InvalidArgument, match="upgrade"):
        from_record(record)


@pytest.mark.parametrize(
    "unit",
    [
        None,
        "replace-one",
        {},
        {"adjacency": "replace-one"},
        {"adjacency": "sideways", "max_rows": 1},
        {"adjacency": "replace-one", "max_rows": 0},
        {"adjacency": "replace-one", "max_rows": 1.5},
        {"adjacency": "replace-one", "max_rows": 1, "extra": 1},
    ],
)
def test_records_with_a_wrong_unit_are_refused(unit: object) -> None:
    with pytest.raises(InvalidArgument):
        from_record({"mechanism": "gaussian-1", "sigma": 1.0, "unit": unit})
