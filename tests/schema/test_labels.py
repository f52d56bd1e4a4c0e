"""Levels read as people say them: distinct, complete, and true to the edges."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes import Attribute
from dpbayes.schema.labels import labels, number, places

INF = math.inf


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        ((18, 25, 65, INF), ("18 to under 25", "25 to under 65", "65 and over")),
        ((-INF, 18, INF), ("under 18", "18 and over")),
        ((0, 1, 2, INF), ("0 to under 1", "1 to under 2", "2 and over")),
        ((0, 0.5, 1), ("0 to under 0.5", "0.5 to under 1")),
        ((-10, -5, 0), ("−10 to under −5", "−5 to under 0")),
        ((0, 15000, 30000), ("0 to under 15,000", "15,000 to under 30,000")),
        ((1990, 2000, 2010), ("1990 to under 2000", "2000 to under 2010")),
        ((-INF, INF), ("any number",)),
    ],
)
def test_bins_read_as_people_say_them(edges: tuple[float, ...], said: tuple[str, ...]) -> None:
    assert labels(Attribute(name="x", edges=edges))[: len(said)] == said


def test_categories_stay_as_they_are_declared_and_undeclared_levels_are_named() -> None:
    answered = Attribute(name="q", categories=("yes", "no"), unknown="drop", missing="category")
    assert labels(answered) == ("yes", "no", "not stated", "dropped")
    twice = labels(Attribute(name="q", categories=("other", "not stated"), missing="category"))
    assert twice == ("other", "not stated (not stated)", "not stated (missing)")


def test_labels_of_the_schema_win_and_stay_apart() -> None:
    coded = Attribute(
        name="q",
        categories=("1", "2", "9"),
        labels={"1": "yes", "2": "no", "9": "no", "other": "else"},
        missing="other",
    )
    assert labels(coded) == ("yes", "no (2)", "no (9)", "else")


def test_days_are_named_by_the_first_and_the_last() -> None:
    first, last = date(2026, 1, 1), date(2026, 7, 1)
    assert labels(Attribute(name="d", dates=(first, last)))[0] == "2026-01-01 to 2026-06-30"
    assert labels(Attribute(name="d", dates=(first, last), period="quarter"))[:2] == ("2026-Q1", "2026-Q2")


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8, unique=True), st.booleans())
def test_labels_are_distinct_and_as_many_as_levels(edges: list[float], whole: bool) -> None:
    cut = sorted({float(round(edge)) if whole else edge for edge in edges})
    if len(cut) > 1:
        attribute = Attribute(name="x", edges=tuple(cut), missing="category")
        found = labels(attribute)
        assert len(set(found)) == len(found) == len(attribute.levels)


def test_numbers_have_no_more_digits_than_they_were_declared_with() -> None:
    assert [number(value) for value in (0.1, 1e20, 9999.0, 10000.0)] == ["0.1", "1e+20", "9999", "10,000"]


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"categories": ("1", "2"), "labels": {"1": "2", "2": "1"}}, ("2 (1)", "1 (2)", "not stated", "other")),
        ({"categories": ("1", "2"), "labels": {"1": "male", "2": "1"}}, ("male", "1 (2)", "not stated", "other")),
        ({"categories": ("a", "b"), "labels": {"a": "missing"}}, ("missing (a)", "b", "not stated", "other")),
        (
            {"categories": ("dropped", "b"), "labels": {"dropped": "left"}, "unknown": "drop"},
            ("left", "b", "not stated", "dropped ((dropped))"),
        ),
    ],
)
def test_what_is_printed_for_a_level_never_means_another_in_a_question(
    declared: dict[str, Any], words: tuple[str, ...]
) -> None:
    attribute = Attribute(name="x", **declared)
    assert labels(attribute) == words
    meant = places(attribute)
    assert [meant[word] for word in words] == [meant[level] for level in attribute.levels] == [*range(len(words))]
