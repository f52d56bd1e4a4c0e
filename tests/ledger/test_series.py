"""A series is charged once, at its composed price, and draws no more than was paid."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from dpbayes import ApproxDP, Cost, Dirichlet, Laplace, Ledger, PureDP, Unit
from dpbayes.base.errors import BudgetExceeded, DpbayesError, InvalidArgument
from dpbayes.ledger.history import Series
from dpbayes.mechanisms import Stated

UNIT = Unit(adjacency="add-remove")
DRAW = Dirichlet(weight=1, concentration=60, unit=UNIT)
NOISE = Laplace(scale=20, unit=UNIT)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "trial.ledger")
    made.open("trial", ApproxDP(epsilon=4.0, delta=1e-6), UNIT)
    return made


@pytest.mark.parametrize("rule", ["gaussian", "renyi"])
def test_a_series_costs_its_composition_and_less_than_its_draws_one_by_one(rule: str, tmp_path: Path) -> None:
    spent = []
    for together in (True, False):
        book = Ledger(tmp_path / f"{rule}{together}.ledger")
        book.open("trial", ApproxDP(epsilon=9.0, delta=1e-6), UNIT, rule=rule)  # type: ignore[arg-type]
        if together:
            with book.series("trial", Cost.of(DRAW, 20)) as series:
                for _ in range(20):
                    series.draw([1, 2])
        else:
            for _ in range(20):
                book.charge("trial", Cost.of(DRAW))
        spent.append(book.account("trial").spent)
    assert Cost.of(DRAW, 20).epsilon(1e-6) <= spent[0] <= spent[1] * (1 + 1e-9)
    assert rule == "renyi" or spent[0] < 0.92 * spent[1]


def test_the_ledger_holds_one_entry_and_nothing_more_is_charged_by_drawing(ledger: Ledger) -> None:
    series = ledger.series("trial", Cost.of(DRAW, 5), about="five draws")
    before = ledger.account("trial").spent
    for step in range(5):
        assert series.left == 5 - step
        assert series.draw([step, 3]).sum() == pytest.approx(1.0)
    assert ledger.account("trial").spent == before
    (charge,) = ledger.account("trial").charges.values()
    assert charge.cost == Cost.of(DRAW, 5)
    assert (charge.state, series.drawn) == ("charged", 5)
    series.close()
    (charge,) = ledger.account("trial").charges.values()
    assert charge.state == "drawn"


def test_no_draw_is_made_beyond_those_that_were_paid(ledger: Ledger) -> None:
    with ledger.series("trial", Cost.of(DRAW, 2)) as series:
        series.draw([1, 2])
        series.gammas([1, 2])
        with pytest.raises(BudgetExceeded, match="all its draws are made"):
            series.draw([1, 2])
    with pytest.raises(BudgetExceeded, match="closed"):
        series.draw([1, 2])


def test_a_draw_that_is_refused_is_used_up(ledger: Ledger) -> None:
    """The refusal tells something about the counts."""
    with ledger.series("trial", Cost.of(DRAW, 2)) as series:
        with pytest.raises(InvalidArgument):
            series.draw([-1, 2])
        assert series.left == 1


def test_what_a_mechanism_cannot_draw_is_refused_and_uses_nothing_up(ledger: Ledger) -> None:
    with ledger.series("trial", Cost.of(NOISE, 2)) as series:
        with pytest.raises(InvalidArgument, match="Laplace has no gammas"):
            series.gammas([1, 2])
        assert series.left == 2
        series.draw([1, 2])


def test_the_running_price_is_that_of_the_draws_that_were_made(ledger: Ledger) -> None:
    with ledger.series("trial", Cost.of(DRAW, 6)) as series:
        prices = [series.epsilon(1e-6)]
        for _ in range(6):
            series.draw([1, 2])
            prices.append(series.epsilon(1e-6))
    assert prices[0] == 0.0
    assert prices == sorted(prices)
    assert prices[1:] == [Cost.of(DRAW, k).epsilon(1e-6) for k in range(1, 7)]
    assert prices[-1] == series.cost.epsilon(1e-6)


def test_mechanisms_draw_in_the_order_that_was_charged(ledger: Ledger) -> None:
    cost = Cost.of(NOISE, 2) + Cost.of(DRAW, 1)
    with ledger.series("trial", cost) as series:
        made = [series.draw([4, 5]) for _ in range(3)]
        assert [each.dtype.kind for each in made] == ["i", "i", "f"]
        assert series.so_far == cost


@pytest.mark.parametrize("ends", [None, RuntimeError("the rows said so")])
def test_a_series_is_paid_for_even_if_what_the_rows_hold_keeps_it_from_drawing(
    ledger: Ledger, ends: Exception | None
) -> None:
    with contextlib.suppress(RuntimeError), ledger.series("trial", Cost.of(DRAW, 3)):
        if ends is not None:
            raise ends
    (charge,) = ledger.account("trial").charges.values()
    assert charge.state == "drawn"
    assert ledger.account("trial").spent > 0


def test_what_does_not_fit_is_refused_before_anything_is_drawn(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        ledger.series("trial", Cost.of(DRAW, 500))
    assert not ledger.account("trial").charges


def test_a_series_cannot_be_copied_or_kept_or_drawn_in_another_process(ledger: Ledger) -> None:
    series = ledger.series("trial", Cost.of(DRAW, 3))
    for twice in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(DpbayesError, match="twice"):
            twice(series)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            series.draw([1, 2])
            os.write(writer, b"drawn")
        except InvalidArgument:
            os.write(writer, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 10) == b"refused"
    series.draw([1, 2])


def test_what_others_made_is_no_series(ledger: Ledger) -> None:
    stated = Stated(epsilon_stated=0.1, delta_stated=0.0, unit=UNIT, what="a map")
    with pytest.raises(InvalidArgument, match="that draw"):
        ledger.series("trial", Cost.of(stated, 2))
    assert not ledger.account("trial").charges


def test_counts_that_depend_on_earlier_draws_leak_no_more_than_the_price(tmp_path: Path) -> None:
    """A person's answer lands where the draw before said: both outputs together, enumerated."""
    noise, far = Laplace(scale=2.0, unit=UNIT), 45
    grid = np.arange(-far, far + 1)
    law = np.exp(-np.abs(grid) / 2.0)
    law /= law.sum()

    def joint(person: int) -> np.ndarray:
        """The first draw counts the person; the next one does in a cell that the first chose, or with others."""
        rows = []
        for first in grid:
            here = np.roll(law, person)
            chosen = person if first % 2 else 0
            rows.append(here[first + far] * np.roll(law, chosen + (first > 0)))
        return np.array(rows)

    book = Ledger(tmp_path / "book.ledger")
    book.open("trial", PureDP(epsilon=2.0), UNIT)
    with book.series("trial", Cost.of(noise, 2)) as series:
        claimed = series.cost
        series.draw([1])
    for epsilon, (one, other) in product((0.0, 0.3, 0.7, 0.99), ((0, 1), (1, 0))):
        p, q = joint(one), joint(other)
        inner = np.s_[1:-1, 3:-3]  # np.roll wraps around at the border
        assert np.maximum(p - math.exp(epsilon) * q, 0)[inner].sum() <= claimed.delta(epsilon) + 1e-9


def test_it_says_how_far_it_is(ledger: Ledger) -> None:
    series: Series = ledger.series("trial", Cost.of(DRAW, 3))
    series.draw([1, 2])
    assert repr(series) == "Series('trial': 1 of 3 draws)"
