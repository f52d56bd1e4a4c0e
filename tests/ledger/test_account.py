"""Entries of the ledger say exactly what they may say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpbayes import Cost, Laplace, Ledger, PureDP, Unit
from dpbayes.base.errors import BudgetExceeded, InvalidArgument
from dpbayes.ledger.account import MOST_TIMES, release

DRAWN = Laplace(scale=2.0, unit=Unit(adjacency="replace-one")).record()


@pytest.mark.parametrize("times", [1, MOST_TIMES])
def test_a_mechanism_is_drawn_once_or_many_times(times: int) -> None:
    text, drawn = release({"mechanism": DRAWN, "times": times})
    assert (json.loads(text), drawn) == (json.loads(json.dumps(DRAWN)), times)


@pytest.mark.parametrize(
    "changed", [{"times": 0}, {"times": -1}, {"times": MOST_TIMES + 1}, {"times": 1.5}, {"free": 1}]
)
def test_a_mechanism_drawn_never_or_with_more_to_say_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match="number of times"):
        release({"mechanism": DRAWN, "times": 1, **changed})


def test_a_limit_that_is_used_up_leaves_nothing_to_promise(tmp_path: Path) -> None:
    unit = Unit(adjacency="add-remove")
    ledger = Ledger(tmp_path / "book.ledger")
    ledger.open("trial", PureDP(epsilon=1.0), unit)
    assert ledger.account("trial").rest() == PureDP(epsilon=1.0)
    ledger.charge("trial", Cost.of(Laplace(scale=1.0, unit=unit)))
    assert ledger.account("trial").left() == 0.0
    with pytest.raises(BudgetExceeded, match="nothing is left of"):
        ledger.account("trial").rest()
