"""What a measurement is made of: numbers from which noise can be told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbayes.errors import InvalidArgument
from dpbayes.inference import GammaNoise


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("others", [(), (2.0,)])
def test_every_concentration_is_positive_and_finite(wrong: float, others: tuple[float, ...]) -> None:
    with pytest.raises(InvalidArgument, match="every concentration"):
        GammaNoise(weight=1.0, concentration=np.array([wrong, *others]))
