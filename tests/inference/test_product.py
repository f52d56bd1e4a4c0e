"""Laws of counts given their sum, cell by cell."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes.base.errors import InvalidArgument
from dpbayes.inference.product import Normaliser, _windows


def test_parameters_that_no_table_could_have_led_to_are_refused() -> None:
    nowhere = [lambda counts: np.full(np.shape(counts), -np.inf)] * 2
    with pytest.raises(InvalidArgument, match="no table of this size"):
        _windows(nowhere, 10, [np.array([0, 10])] * 2)


@pytest.mark.parametrize(
    ("cells", "records", "largest", "exponent"),
    [(8, 116634, 26.03554228244422, 0.43700440749724995), (3, 318608, 149.729624374001, 0.253018521215949)],
)
def test_a_mixture_is_found_where_least_squares_takes_more_steps_than_usual(cells, records, largest, exponent) -> None:
    law = Normaliser((1.0,) * cells, records, largest)
    logs = law.mixture(exponent)
    depth = np.append(0.0, np.geomspace(1.0 / (4.4 * (records + cells)), 60.0, 500))
    powers = np.exp(-np.multiply.outer(depth, np.append(0.0, law.rates)))
    found = powers @ np.exp(logs[:-1]) + np.exp(logs[-1]) * (depth == 0.0)
    assert found == pytest.approx(np.exp(-exponent * np.sqrt(-np.expm1(-depth))), rel=1e-5)
