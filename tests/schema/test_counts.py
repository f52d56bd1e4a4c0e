from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpbayes.base.errors import InvalidArgument
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.counts import Counts
from dpbayes.schema.marginal import Marginal

SEX = Attribute(name="sex", categories=("F", "M"), missing="other")
SECRET = np.array([470_011, 470_012, 470_013])
COUNTS = Counts(Marginal("sex"), (SEX,), SECRET)


def test_printing_shows_axes_and_never_numbers():
    for text in (repr(COUNTS), str(COUNTS), f"{COUNTS}", repr([COUNTS])):
        assert "sex: 3 levels" in text
        assert "4700" not in text


def test_counts_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        COUNTS.array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        COUNTS.array = SECRET  # type: ignore[misc]
    copied = SECRET.copy()
    held = Counts(Marginal("sex"), (SEX,), copied)
    copied[0] = 0
    assert held.array[0] == 470_011


def test_the_numbers_are_exact_whole_numbers():
    large = Counts(Marginal("sex"), (SEX,), np.array([2**61 + 1, 0, 0]))
    assert large.array.dtype == np.int64
    assert int(large.array[0]) == 2**61 + 1


@pytest.mark.parametrize(("name", "array"), [("age", [1, 2, 3]), ("sex", [1, 2]), ("sex", [-470_011, 0, 0])])
def test_an_array_that_does_not_fit_is_refused_without_its_numbers(name, array):
    with pytest.raises(InvalidArgument) as caught:
        Counts(Marginal(name), (SEX,), np.array(array))
    assert "470" not in str(caught.value)
