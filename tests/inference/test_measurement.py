"""What a measurement is made of: numbers from which noise can be told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbayes.base.errors import InvalidArgument
from dpbayes.inference import Exact, GammaNoise


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("others", [(), (2.0,)])
def test_every_concentration_is_positive_and_finite(wrong: float, others: tuple[float, ...]) -> None:
    with pytest.raises(InvalidArgument, match="every concentration"):
        GammaNoise(weight=1.0, concentration=np.array([wrong, *others]))


def test_the_law_of_one_gamma_is_that_of_cells_that_are_alike() -> None:
    with pytest.raises(InvalidArgument, match="one concentration for all cells"):
        GammaNoise(weight=1.0, concentration=np.array([1.0, 2.0])).log_law(1.0, np.array([3, 4]))


def test_without_noise_only_the_value_itself_is_possible() -> None:
    assert Exact().log_law(3.0, np.array([2, 3, 4])).tolist() == [-math.inf, 0.0, -math.inf]
    assert Exact().variance(np.array([2.0, 3.0])).tolist() == [0.0, 0.0]
