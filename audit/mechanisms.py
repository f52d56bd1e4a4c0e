"""Every mechanism that draws, on its worst neighbours, scored by its privacy loss.

One entry for each record name, here or in ``EXEMPT`` with the reason; a test fails where a name has neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from audit.bounds import Claim, distinguish
from audit.result import Attack, Effort, Row, from_betrayals, from_evidence
from dpbayes import Dirichlet, Gaussian, Laplace, Unit
from dpbayes.hellinger import calibration
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.certificate import certify
from dpbayes.mechanisms.kinds import KINDS
from dpbayes.mechanisms.subsampled import subsampled
from dpbayes.mechanisms.sum_zero import SumZeroLaplace

AREA = "mechanism"
REPLACE, ADD = Unit(adjacency="replace-one"), Unit(adjacency="add-remove")
TWICE = Unit(adjacency="replace-one", max_rows=2)
DELTAS = (0.1, 0.03, 0.01, 0.003)
"""Claims are tested where samples of this size can refute them."""

AUDITS: dict[str, Attack] = {}
EXEMPT = {
    "dp-event-1": "a draw made elsewhere, priced by dp-accounting: it draws nothing itself",
    "stated-1": "a statement about a draw made elsewhere: it draws nothing itself",
    "stated-rdp-1": "a statement about a draw made elsewhere: it draws nothing itself",
}


def audits(name: str) -> Callable[[Attack], Attack]:
    """Register the audit of a record name."""

    def keep(attack: Attack) -> Attack:
        AUDITS[name] = attack
        return attack

    return keep


def unaudited() -> set[str]:
    """Record names that nobody attacks."""
    return set(KINDS) - AUDITS.keys() - EXEMPT.keys()


def run(effort: Effort) -> list[Row]:
    """All mechanisms."""
    attacks = dict.fromkeys(AUDITS[name] for name in KINDS if name in AUDITS)  # one attack may serve two names
    rows = [row for attack in attacks for row in attack(effort)]
    return rows + [
        Row(area=AREA, attack=name, claim="has an audit", measured="has none", holds=False) for name in unaudited()
    ]


def claims_of(mechanism: Any) -> list[Claim]:
    """What the mechanism states: its profile at a few δ, and its pure ε where it has one."""
    stated = [(mechanism.epsilon(delta), delta) for delta in DELTAS]
    pure = mechanism.renyi(math.inf)
    return [claim for claim in stated if 0 < claim[0] < math.inf] + ([(pure, 0.0)] if math.isfinite(pure) else [])


def name_of(mechanism: Any) -> str:
    """The record name under which a mechanism is drawn today."""
    return str(mechanism.record()["mechanism"])


def attacked(name: str, what: str, mechanism: Any, one: Any, other: Any) -> Row:
    """A row for one mechanism and the scores of its two neighbours."""
    return from_evidence(AREA, f"{name}: {what}", distinguish(one, other, claims_of(mechanism)))


def neighbours(unit: Unit) -> tuple[list[int], list[int]]:
    """The two tables that noise must hide: one person's rows are all in the first cell, or not."""
    return ([unit.max_rows, 0], [0, unit.max_rows]) if unit.replaces else ([unit.max_rows], [0])


def noisy(mechanism: Gaussian | Laplace, draws: int) -> tuple[Any, Any]:
    """The first noisy count minus the second: it grows with the privacy loss."""
    weights = (1, -1)
    return tuple(
        mechanism.draw(np.tile(table, (draws, 1))) @ weights[: len(table)] for table in neighbours(mechanism.unit)
    )  # type: ignore[return-value]


@audits("gaussian-1")
def _gaussian(effort: Effort) -> list[Row]:
    asked = [(1.0, ADD), (2.0, REPLACE), (0.7, REPLACE), (5.0, ADD), (20.0, ADD), (4.0, TWICE)]
    rows = []
    for sigma, unit in asked if effort.thorough else asked[:2]:
        made = Gaussian(sigma=sigma, unit=unit)
        what = f"σ = {sigma:g}, {_unit(unit)}"
        rows.append(attacked("gaussian-1", what, made, *noisy(made, effort.draws)))
    return rows


@audits("laplace-1")
def _laplace(effort: Effort) -> list[Row]:
    asked = [(0.7, ADD), (1.5, REPLACE), (0.3, ADD), (2.0, ADD), (5.0, ADD), (3.0, TWICE)]
    rows = []
    for scale, unit in asked if effort.thorough else asked[:2]:
        made = Laplace(scale=scale, unit=unit)
        what = f"scale = {scale:g}, {_unit(unit)}"
        rows.append(attacked("laplace-1", what, made, *noisy(made, effort.draws)))
    return rows


@audits("sum-zero-laplace-1")
def _sum_zero_laplace(effort: Effort) -> list[Row]:
    """One table a draw: its loss is a function of the two cells that a person's rows may be in."""
    rows, draws = [], min(effort.draws // 5, 20_000)
    for scale, cells, unit in ((2.0, 3, REPLACE), (2.0, 2, REPLACE), (3.0, 4, TWICE)):
        made = SumZeroLaplace(scale=scale, cells=cells, unit=unit)
        tables = [[*table, *[0] * (cells - 2)] for table in neighbours(unit)]
        one, other = (np.array([made.draw(table)[:2] @ (1, -1) for _ in range(draws)]) for table in tables)
        what = f"{cells} cells, scale = {scale:g}, {_unit(unit)}"
        rows.append(attacked("sum-zero-laplace-1", what, made, one, other))
    return rows


@audits("subsampled-1")
def _subsampled(effort: Effort) -> list[Row]:
    """Many tables of one row or none: Poisson samples of their rows are independent."""
    made = subsampled(Laplace(scale=0.7, unit=ADD), 0.5)
    one, other = (made.draw(np.tile(table, (effort.draws, 1)))[:, 0] for table in neighbours(ADD))
    return [attacked("subsampled-1", f"half of the rows, scale = 0.7, {_unit(ADD)}", made, one, other)]


@audits("dirichlet-1")
@audits("dirichlet-2")
def _dirichlet(effort: Effort) -> list[Row]:
    """Many pairs in one table: the shares of a pair do not depend on the other cells."""
    rows = []
    for weight, alpha, unit in ((1.0, 3.0, REPLACE), (0.2, 1.0, REPLACE), (1.0, 2.0, ADD)):
        made = Dirichlet(weight=weight, concentration=alpha, unit=unit)
        halves = [np.tile(table, (effort.draws, 1)) for table in neighbours(unit)]
        shares = np.asarray(made.draw(np.concatenate(halves)))
        scores = np.log(shares[:, 0] / shares[:, 1]) if unit.replaces else shares[:, 0]
        what = f"r = {weight:g}, α = {alpha:g}, {_unit(unit)}"
        rows.append(attacked(name_of(made), what, made, scores[: effort.draws], scores[effort.draws :]))
    return rows


@audits("pseudo-records-1")
def _pseudo_records(effort: Effort) -> list[Row]:
    """Counts of records from an urn: the loss of the first two cells, in closed form."""
    from dpbayes.mechanisms.urn import PseudoRecords

    made = PseudoRecords(weight=1.0, concentration=2.0, records=20, unit=REPLACE)
    draws = min(effort.draws // 5, 20_000)
    scores = [
        [urn_loss(made.draw(table).tolist(), weight=1.0, alpha=2.0) for _ in range(draws)]
        for table in ((1, 0, 0), (0, 1, 0))
    ]
    return [attacked(name_of(made), "r = 1, α = 2, 20 records", made, *scores)]


def urn_loss(drawn: Sequence[int], *, weight: float, alpha: float) -> float:
    """The loss ln P/Q of counts drawn from Dirichlet(α+r, α, …) against Dirichlet(α, α+r, …)."""
    first, second = (math.lgamma(alpha + weight + drawn[k]) - math.lgamma(alpha + drawn[k]) for k in (0, 1))
    return first - second


@audits("laplace-threshold-1")
def _threshold(effort: Effort) -> list[Row]:
    """Is a category kept that only one person has, and one more that is near the threshold?"""
    from dpbayes.mechanisms.threshold import threshold_for

    rows = []
    for epsilon, delta, unit in ((2.0, 0.01, ADD), (5.0, 0.01, REPLACE), (8.0, 1e-3, ADD)):
        made = threshold_for(epsilon=epsilon, delta=delta, unit=unit)
        what = f"ε = {epsilon:g}, {_unit(unit)}"
        kept = int(made.draw(np.ones(effort.draws, dtype=np.int64)).sum())
        attack = f"{name_of(made)}: a category of one person, {what}"
        rows.append(from_betrayals(AREA, attack, kept, effort.draws, made.delta(epsilon)))
        counts = made.threshold + 1, made.threshold
        one, other = (made.draw(np.full(effort.draws, count)) for count in counts)
        rows.append(attacked(name_of(made), f"at the threshold, {what}", made, one, other))
    return rows


@audits("selection-1")
def _selection(effort: Effort) -> list[Row]:
    """Of two candidates, one moves up and the other down, as far as a person can move them."""
    from dpbayes.mechanisms.selection import Selection

    made = Selection(sharpness=2.0, unit=REPLACE)
    draws = min(effort.draws // 2, 20_000)
    one, other = ([made.choose(scores, spread=2) for _ in range(draws)] for scores in ([0, 1], [1, 0]))
    return [attacked(name_of(made), "two candidates, ε = 2", made, one, other)]


@audits("hellinger-1")
def _hellinger(effort: Effort) -> list[Row]:
    rows = []
    for prior, total in (((1.0, 1.0), 20), ((0.5, 0.5, 0.5), 6)):
        common = {"prior": prior, "total": total, "unit": REPLACE}
        made = {
            "global": calibration.with_global(epsilon=2.0, **common),
            "proved": calibration.proved(epsilon=2.0, delta=1e-3, **common),
            "certified": calibration.certified(epsilon=2.0, delta=0.0, **common),
            "published": calibration.published(epsilon=2.0, delta=1e-3, **common),
        }
        for how, mechanism in made.items():
            worst = certify(prior, total, sharpness=mechanism.sharpness, smoothing=mechanism.smoothing, delta=0.0)
            rows.append(
                _enumerated(
                    "hellinger-1", f"{how}, {_size(prior, total)}", mechanism, worst.table, worst.neighbour, effort
                )
            )
    return rows if effort.thorough else rows[:4]


@audits("posterior-exponential-1")
def _exponential(effort: Effort) -> list[Row]:
    rows = []
    for score in ("hellinger", "kl", "total-variation"):
        made = PosteriorExponential(prior=(1.0, 1.0), total=20, sharpness=2.0, score=score, unit=REPLACE)
        rows.append(_enumerated("posterior-exponential-1", score, made, *_worst(made), effort))
    return rows


@audits("posterior-laplace-1")
def _posterior_laplace(effort: Effort) -> list[Row]:
    rows = []
    for prior in ((1.0, 1.0), (1.0, 1.0, 1.0)):
        made = PosteriorLaplace(prior=prior, total=8, scale=2.0, truncated=True, unit=REPLACE)
        rows.append(_enumerated("posterior-laplace-1", _size(prior, 8), made, *_worst(made), effort))
    return rows


def _enumerated(
    name: str, what: str, mechanism: Any, table: Sequence[int], other: Sequence[int], effort: Effort
) -> Row:
    """Score each drawn candidate by the logarithm of its two probabilities' ratio."""
    listed, p = mechanism.law(table)
    _, q = mechanism.law(other)
    loss = dict(zip(map(tuple, np.asarray(listed).tolist()), np.log(p / q), strict=True))
    draws = min(effort.draws, 50_000)
    one, two = (
        [loss[tuple(candidate)] for candidate in mechanism.draw_many(counts, draws).tolist()]
        for counts in (table, other)
    )
    return attacked(name, what, mechanism, one, two)


def _worst(mechanism: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The neighbours with the largest ratio of probabilities, by looking at all of them."""
    tables = [tuple(table) for table in np.asarray(mechanism.law(_even(mechanism))[0]).tolist()]
    best, worst = -1.0, (tables[0], tables[0])
    for table in tables:
        p = np.log(mechanism.law(table)[1])
        for other in _moved(table):
            gap = float(np.abs(p - np.log(mechanism.law(other)[1])).max())
            if gap > best:
                best, worst = gap, (table, other)
    return worst


def _even(mechanism: Any) -> list[int]:
    rest = [0] * (len(mechanism.prior) - 1)
    return [mechanism.total, *rest]


def _moved(table: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All tables with one record in another cell."""
    found = []
    for source, target in ((i, j) for i in range(len(table)) for j in range(len(table)) if i < j):
        if table[source]:
            other = list(table)
            other[source] -= 1
            other[target] += 1
            found.append(tuple(other))
    return found


def _unit(unit: Unit) -> str:
    rows = "" if unit.max_rows == 1 else f", {unit.max_rows} rows"
    return f"{unit.adjacency}{rows}"


def _size(prior: Sequence[float], total: int) -> str:
    return f"{len(prior)} cells, {total} records"
