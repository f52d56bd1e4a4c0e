"""Guard rails: what a careful colleague would say about a guarantee before anything is charged. Public numbers only."""

from __future__ import annotations

import math

from dpbayes.base.normal import quantile
from dpbayes.privacy.gdp import gaussian_mu
from dpbayes.privacy.guarantee import Guarantee, rounded_up
from dpbayes.privacy.risk import membership, percent
from dpbayes.schema.unit import PrivacyUnit

LARGE_EPSILON = 10.0
"""Beyond it, membership is guessed right with certainty but for one in ten thousand."""

COARSE = 0.1
"""A count that is uncertain by more than this share of the whole table is worth a warning."""

_Z = quantile(0.975)


def cautions(promise: Guarantee, unit: PrivacyUnit, *, records: int | None = None) -> tuple[str, ...]:
    """Sentences about a guarantee that promises too little, or leaves too little; none where all is well.

    >>> from dpbayes import ApproxDP, PrivacyUnit
    >>> unit = PrivacyUnit(adjacency="replace-one")
    >>> cautions(ApproxDP(epsilon=1, delta=1e-6), unit, records=50_000)
    ()
    >>> print(cautions(ApproxDP(epsilon=1, delta=1e-3), unit, records=5_000)[0][:58])
    δ=0.001 is not below one in the number of records (5,000):
    """
    said = []
    epsilon, delta = promise.epsilon_delta or (0.0, 0.0)
    if records and delta * records >= 1.0:
        said.append(
            f"δ={rounded_up(delta)} is not below one in the number of records ({records:,}): such a guarantee would "
            f"even allow publishing a few records in full. Choose δ below {0.1 / records:.1g}, a tenth of it."
        )
    if epsilon > LARGE_EPSILON:
        right = percent(membership(promise.profile))
        said.append(
            f"ε={rounded_up(epsilon)} protects hardly anyone: an attacker may tell whether a person is in the data in "
            f"{right} of cases. About 1 is usual for a release, up to {LARGE_EPSILON:g} for all of them together."
        )
    least = least_error(promise, unit)
    if records and least is not None and least > COARSE * records:
        said.append(
            f"With {records:,} records this guarantee leaves little to see: a single count, published alone, is "
            f"uncertain by ± {_records(least)} records. Ask for fewer tables, a larger ε, or more records."
        )
    return tuple(said)


def least_error(promise: Guarantee, unit: PrivacyUnit) -> float | None:
    """± of one count that has the whole guarantee, in records (95 %): of Laplace or Gaussian noise, the smaller one.

    None for guarantees that are neither (ε, δ) nor pure.
    """
    if promise.epsilon_delta is None:
        return None
    (epsilon, delta), moved = promise.epsilon_delta, unit.sensitivity
    laplace = -math.log(0.05) * moved.l1 / epsilon
    return laplace if promise.pure else min(laplace, _Z * math.sqrt(moved.l2_squared) / gaussian_mu(epsilon, delta))


def _records(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
