"""Laws of counts given their sum, cell by cell."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes.base.errors import InvalidArgument
from dpbayes.inference.product import _windows


def test_parameters_that_no_table_could_have_led_to_are_refused() -> None:
    nowhere = [lambda counts: np.full(np.shape(counts), -np.inf)] * 2
    with pytest.raises(InvalidArgument, match="no table of this size"):
        _windows(nowhere, 10, [np.array([0, 10])] * 2)
