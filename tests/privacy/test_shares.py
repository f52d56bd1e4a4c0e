"""What charges use of a limit: balanced to the last digits, and priced once."""

from __future__ import annotations

import math

import pytest

from dpbayes import Adjacency, Cost, Dirichlet, Laplace, PrivacyUnit
from dpbayes.privacy import shares
from dpbayes.privacy.adaptive import AdaptiveDP
from dpbayes.privacy.cost import Priced

UNIT = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)
LIMIT = AdaptiveDP(epsilon=3, delta=1e-6)


def test_a_history_longer_than_a_thousand_charges_is_priced_once() -> None:
    costs = [Cost.of(Laplace(scale=40000.0 + i, unit=UNIT)) for i in range(900)]
    used = LIMIT.used(costs)
    before = shares.uses.cache_info().misses
    assert before >= len(LIMIT.menu) * len(costs)
    assert LIMIT.used(costs) == used
    assert shares.uses.cache_info().misses == before


@pytest.mark.parametrize(
    "mechanism", [Laplace(scale=30.0, unit=UNIT), Dirichlet(weight=0.05, concentration=20.0, unit=UNIT)]
)
def test_shift_and_slack_are_used_up_together(mechanism: Priced) -> None:
    cost, shift, slack = Cost.of(mechanism), LIMIT.shift, LIMIT.slack
    assert slack is not None
    found = shares._balanced(LIMIT, shift, cost)

    def mu(delta: float) -> float:
        return max(corner.mu(delta) for corner in shares._corners(cost))

    assert (mu(found * slack) / shift) ** 2 <= found  # on the safe side
    less = found * (1 - 1e-8)
    assert (mu(less * slack) / shift) ** 2 > less  # and no more than needed


def test_what_needs_more_than_the_limit_says_how_much() -> None:
    cost = Cost.of(Laplace(scale=0.5, unit=UNIT))
    found = shares._balanced(LIMIT, LIMIT.shift, cost)
    assert math.isfinite(found)
    assert found > 1.0
