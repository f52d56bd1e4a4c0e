"""Names of 0.2.0 that are elsewhere now: each gives one sentence with the new place."""

from __future__ import annotations

from importlib import import_module

import pytest

import dpbayes


@pytest.mark.parametrize("name", dpbayes._MOVED)
def test_a_name_that_moved_says_where_it_is(name: str) -> None:
    place = dpbayes._MOVED[name]
    with pytest.raises(AttributeError, match=rf"^dpbayes\.{name} is now {place}\.$"):
        getattr(dpbayes, name)
    room, _, thing = place.rpartition(".")
    assert getattr(import_module(room), thing).__name__ == thing
    assert name not in dpbayes.__all__
