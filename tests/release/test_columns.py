"""Columns that are made without Arrow's conversions are the same as with them."""

from __future__ import annotations

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes.release import numbers

LEVELS = st.lists(st.text(max_size=6), min_size=1, max_size=5)


@pytest.mark.parametrize("kind", ["int32", "int64", "float64"])
def test_numbers_are_those_of_the_array(kind: str) -> None:
    values = np.array([3, -1, 2**30], dtype=kind)
    assert numbers.column(values).equals(pyarrow.array(values))
    assert numbers.column(np.arange(12, dtype=kind)[::3]).to_pylist() == [0, 3, 6, 9]


@given(LEVELS, st.lists(st.integers(0, 10**6), max_size=30))
def test_codes_and_texts_say_the_same_as_a_list(levels: list[str], drawn: list[int]) -> None:
    codes = np.array([one % len(levels) for one in drawn], dtype=np.int64)
    said = [levels[code] for code in codes]
    column = numbers.coded(codes, levels)
    column.validate(full=True)
    assert column.to_pylist() == said
    plain = numbers.texts(levels, codes)
    plain.validate(full=True)
    assert plain.equals(pyarrow.array(said, pyarrow.string()))


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_text_of_a_file_of_numbers_is_computed_by_a_spreadsheet(text: str) -> None:
    assert numbers.harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a", "-5", "+1.5e3", "a=b", "'=1", "[65, inf)"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert numbers.harmless(text) == text


def test_texts_too_long_for_an_ordinary_column_get_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "LONGEST", 5)
    column = numbers.texts(["abc", "ü"], np.array([0, 1, 0]))
    column.validate(full=True)
    assert column.type == pyarrow.large_string()
    assert column.to_pylist() == ["abc", "ü", "abc"]
