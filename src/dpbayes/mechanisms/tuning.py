"""Choosing among the parameters that meet a target, by purpose and public numbers only, never by data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.mechanisms.dirichlet import LARGEST_CONCENTRATION, Dirichlet, UnroundedDirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.mechanisms.urn import PseudoRecords
from dpbayes.mechanisms.utility import expected_kl, worst_expected_kl, zipf
from dpbayes.privacy.bounds import algorithm_1
from dpbayes.privacy.calibrate import Family, calibrate, calibrate_all
from dpbayes.privacy.convert import TOLERANCE, best_order
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.privacy.guarantee import RDP, ApproxDP, Guarantee
from dpbayes.schema.unit import Sensitivity, Unit

Purpose = Literal["draw", "estimate"]
Accounting = Literal["exact", "published"]

SLACK = 3.0
"""In the slack g(r) = 3(λ−1)rΔ∞ of [RDP] algorithm 1."""

REFERENCE_CELLS = 10
REFERENCE_RECORDS = 1000
"""The table for which a weight is chosen when the caller names none."""


def gaussian_noise(unit: Unit) -> Family[Gaussian]:
    """Gaussian noise of any standard deviation."""
    return Family(name="gaussian", make=lambda sigma: Gaussian(sigma=sigma, unit=unit))


def laplace_noise(unit: Unit) -> Family[Laplace]:
    """Laplace noise of any scale."""
    return Family(name="laplace", make=lambda scale: Laplace(scale=scale, unit=unit))


def dirichlet_at_weight(
    weight: float, unit: Unit, *, least_count: int = 0, start: float | None = None
) -> Family[UnroundedDirichlet]:
    """Dirichlet mechanisms of one weight and any concentration, for searches; ``rounding`` makes the one that draws."""
    checks.positive("dirichlet_at_weight", weight=weight)
    return Family(
        name="dirichlet",
        make=lambda alpha: UnroundedDirichlet(weight=weight, concentration=alpha, unit=unit, least_count=least_count),
        start=start or max(weight, 1.0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcentrationCurve:
    """α(r): for each weight the smallest concentration that meets the target. The papers fix one point on it.

    ``releases`` is how often the mechanism will be released, ``alongside`` what else the target must cover.
    ``sensitivity`` is that of a vector other than a table of counts; then the published bound is all there is.

    Source: theory in docs/explanation/choosing-parameters.md.

    >>> from dpbayes import RDP, Unit
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    >>> curve = ConcentrationCurve(target=RDP(order=5, epsilon=1), unit=unit)
    >>> round(curve.at(2.4412).concentration, 2)  # the papers need 40.06 for this weight
    29.76
    """

    target: Guarantee
    unit: Unit
    releases: int = 1
    least_count: int = 0
    alongside: Cost | None = None
    accounting: Accounting = "exact"
    sensitivity: Sensitivity | None = None

    def __post_init__(self) -> None:
        checks.positive_integer("ConcentrationCurve", releases=self.releases)
        checks.one_of("ConcentrationCurve", ("exact", "published"), accounting=self.accounting)

    def at(self, weight: float, *, tolerance: float = TOLERANCE) -> Dirichlet:
        """The mechanism of this weight with the smallest concentration, if doubles can carry it."""
        return _rounding(self._at(weight, tolerance), self.target)

    def _at(self, weight: float, tolerance: float) -> UnroundedDirichlet:
        family = dirichlet_at_weight(weight, self.unit, least_count=self.least_count, start=self._first_guess(weight))
        if self.accounting == "published" or self.sensitivity is not None:
            exact = family
            family = replace(exact, make=lambda alpha: replace(exact.make(alpha), sensitivity=self.moved))
        found = calibrate(family, self.target, times=self.releases, alongside=self.alongside, tolerance=tolerance)
        return replace(found, sensitivity=self.sensitivity)  # counts priced as published cost no more in truth

    @property
    def moved(self) -> Sensitivity:
        """How far neighbours are apart."""
        return self.sensitivity or self.unit.sensitivity

    def _first_guess(self, weight: float) -> float:
        """Where α(r) lies for large α: the trigamma bound with ψ′(x) ≈ 1/x."""
        sketch, moved = self._sketch(), self.moved
        guess = 0.5 * sketch.order * weight**2 * moved.l2_squared / sketch.epsilon
        return max(guess + (sketch.order - 1.0) * weight * moved.linf - weight * self.least_count, 1e-9)

    def concentration(self, weight: float) -> float:
        """α(r)."""
        return _scalar(self._at(weight, TOLERANCE))

    def best(
        self,
        *,
        purpose: Purpose = "draw",
        cells: int = REFERENCE_CELLS,
        records: int = REFERENCE_RECORDS,
        guess: ArrayLike | None = None,
    ) -> Dirichlet:
        """The point on the curve for a purpose, a public number of cells and of records.

        ``draw`` minimises the expected KL of the draw, at a public ``guess`` of the distribution if there is one,
        else at the worst distribution. ``estimate`` wants the least
        noisy window on the counts: its variance (r·c + α)/r² exceeds the Gaussian limit by (c − ½)/r, so the weight
        is taken large enough to come within a hundredth of it at every count, or as large as doubles carry. Where that
        would double the variance, Gaussian noise is the better mechanism, and TargetUnreachable says so.
        """
        checks.one_of("ConcentrationCurve", ("draw", "estimate"), purpose=purpose)
        checks.positive_integer("ConcentrationCurve", cells=cells, records=records)
        if purpose == "estimate":
            sketch = self._sketch()
            variance = self.moved.l2_squared * sketch.order / (2.0 * sketch.epsilon)
            most = math.sqrt(0.25 * LARGEST_CONCENTRATION / variance)
            if max(records / variance, sketch.epsilon) > most:
                raise _beyond(self.target)
            return self.at(min(100.0 * max(records / variance, sketch.order), most))
        return self.at(self._weight_for_draw(max(cells, 2), records, guess))

    def _sketch(self) -> RDP:
        """One Rényi order that stands for the target while a weight is chosen; the result is priced exactly."""
        if (sketch := self.target.sketch) is None:
            raise TargetUnreachable(
                f"ConcentrationCurve: no Dirichlet mechanism meets {self.target}: its privacy loss is unbounded. "
                "Ask for (ε, δ), RDP at one order or tCDP, or take Gaussian or Laplace noise."
            )
        order, budget = sketch.order, sketch.epsilon
        spent = 0.0 if self.alongside is None else self.alongside.renyi(order)
        left = budget - spent if math.isfinite(spent) and spent < budget else 0.5 * budget
        return RDP(order=order, epsilon=left / self.releases)

    def _weight_for_draw(self, cells: int, records: int, guess: ArrayLike | None) -> float:
        sketch = self._sketch()
        rough = replace(self, target=sketch, releases=1, alongside=None)

        def loss(log_weight: float) -> float:
            made = rough._at(math.exp(log_weight), 1e-3)
            numbers = {"records": records, "weight": made.weight, "concentration": made.smallest[0]}
            if guess is not None:
                return expected_kl(guess, **numbers)
            return worst_expected_kl(cells=cells, **numbers)

        # a replaced record costs about λr²/α, so that the draw's two errors meet near r ≈ ε
        middle = math.log((math.sqrt(sketch.epsilon / sketch.order) + sketch.epsilon) / self.moved.linf)
        return math.exp(_minimum(loss, middle - 3.0, middle + 5.0))


def dirichlet_draws(
    target: Guarantee,
    unit: Unit,
    *,
    tables: Sequence[tuple[int, int]],
    records: int,
    parts: Sequence[float] | None = None,
    alongside: Sequence[Priced] = (),
) -> tuple[Dirichlet, ...]:
    """Single draws of several tables under one target, each with a weight that suits its own size.

    ``tables`` are (rows, cells per row), ``parts`` shares of the divergence, equal by default. The weight of a table
    has the least expected KL of a row with Zipf's shares and its part of the records, N/rows; its concentration follows
    from the part. All concentrations are then raised or lowered together until the target is just met.

    Source: docs/explanation/choosing-parameters.md, several draws.

    >>> from dpbayes import RDP
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    >>> wide, narrow = dirichlet_draws(RDP(order=5, epsilon=1), unit, tables=[(2, 40), (2, 3)], records=1000)
    >>> wide.weight < narrow.weight
    True
    """
    beside = Cost.total(alongside) if alongside else None
    sketch = ConcentrationCurve(target=target, unit=unit, alongside=beside)._sketch()
    shares = np.ones(len(tables)) if parts is None else np.asarray(parts, dtype=np.float64)
    shares = shares / shares.sum()
    families: dict[tuple[int, int, float], Family[UnroundedDirichlet]] = {}
    wanted = [(rows, width, float(share)) for (rows, width), share in zip(tables, shares, strict=True)]
    for rows, width, share in wanted:
        if (rows, width, share) not in families:
            curve = ConcentrationCurve(target=RDP(order=sketch.order, epsilon=sketch.epsilon * share), unit=unit)
            weight = curve._weight_for_draw(max(width, 2), max(round(records / rows), 1), zipf(width))
            start = _scalar(curve._at(weight, 1e-3))
            families[rows, width, share] = dirichlet_at_weight(weight, unit, start=start)
    made = calibrate_all([families[each] for each in wanted], target, alongside=alongside)
    return tuple(_rounding(each, target) for each in made)


def published_dirichlet(
    target: Guarantee,
    unit: Unit,
    *,
    releases: int = 1,
    cells: int = REFERENCE_CELLS,
    records: int = REFERENCE_RECORDS,
    sensitivity: Sensitivity | None = None,
    slack: float = SLACK,
) -> Dirichlet:
    """The parameters that the papers would use.

    RDP: algorithm 1 of [RDP] at ε/k (lemma 1). (ε, δ): algorithm 1 at the order whose RDP budget, by lemma 3, gives
    the smallest worst expected KL. tCDP: theorem 1 of [tCDP], the weight chosen in the same way. ``slack`` s makes the
    g of remark 1 s·(λ−1)·r·Δ∞; the papers take 3.

    Source: [RDP] algorithm 1, remark 1, lemmas 1 and 3; [tCDP] theorem 1.
    """
    moved = sensitivity or unit.sensitivity
    checks.non_negative("published_dirichlet", slack=slack)

    def by_algorithm_1(order: float, epsilon: float) -> UnroundedDirichlet:
        weight, alpha = algorithm_1(
            order=order,
            epsilon=epsilon / releases,
            l2_squared=moved.l2_squared,
            linf=moved.linf,
            slack=lambda weight: slack * (order - 1.0) * weight * moved.linf,
        )
        return UnroundedDirichlet(weight=weight, concentration=alpha, unit=unit, sensitivity=sensitivity)

    if isinstance(target, RDP):
        return _rounding(by_algorithm_1(target.order, target.epsilon), target)
    if isinstance(target, ApproxDP):

        def budget(order: float) -> float:
            less = order - 1.0
            return target.epsilon - math.log(less) + (math.log(target.delta) + order * math.log(order)) / less

        def loss(order: float) -> float:
            if budget(order) <= 0:
                return math.inf
            made = by_algorithm_1(order, budget(order))
            return worst_expected_kl(cells=cells, records=records, weight=made.weight, concentration=_scalar(made))

        order = best_order(loss, lowest=1.01, highest=1e6)
        return _rounding(by_algorithm_1(order, budget(order)), target)
    curve = ConcentrationCurve(
        target=target, unit=unit, releases=releases, accounting="published", sensitivity=sensitivity
    )
    return curve.best(cells=cells, records=records)


@dataclass(frozen=True, slots=True, kw_only=True)
class PseudoRecordsCurve:
    """The same for pseudo-records: for each weight the smallest concentration with which ``drawn`` of them are private.

    Source: docs/explanation/proofs/pseudo-records.md.

    >>> from dpbayes import PureDP, Unit
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    >>> curve = PseudoRecordsCurve(target=PureDP(epsilon=1), unit=unit, drawn=1000)
    >>> round(curve.at(1.0).concentration, 2)  # m/(e^ε − 1)
    581.98
    """

    target: Guarantee
    unit: Unit
    drawn: int
    releases: int = 1
    alongside: Cost | None = None

    def at(self, weight: float, *, tolerance: float = TOLERANCE) -> PseudoRecords:
        """The mechanism of this weight with the smallest concentration."""
        family = Family(
            name="pseudo-records",
            make=lambda alpha: PseudoRecords(weight=weight, concentration=alpha, records=self.drawn, unit=self.unit),
            start=max(weight, 1.0),
        )
        return calibrate(family, self.target, times=self.releases, alongside=self.alongside, tolerance=tolerance)

    def best(
        self, *, cells: int = REFERENCE_CELLS, records: int = REFERENCE_RECORDS, guess: ArrayLike | None = None
    ) -> PseudoRecords:
        """The point on the curve whose posterior has the least expected KL, as ``ConcentrationCurve.best`` measures it.

        The weight is chosen at a share of a cheap target and at most 4096 records; only then is it priced.
        """
        checks.positive_integer("PseudoRecordsCurve", cells=cells, records=records)
        share = self.target.share(self.releases)
        if isinstance(share, ApproxDP):  # (ε, δ) losses of many releases grow like the root of their number
            share = replace(self.target, epsilon=share.epsilon * math.sqrt(self.releases))  # type: ignore[type-var]
        drawn = self.drawn if share.pure else min(self.drawn, 2**12)
        rough = PseudoRecordsCurve(target=share, unit=self.unit, drawn=drawn)

        def loss(log_weight: float) -> float:
            made = rough.at(math.exp(log_weight), tolerance=1e-3)
            numbers = {"records": records, "weight": made.weight, "concentration": _scalar(made)}
            if guess is not None:
                return expected_kl(guess, **numbers)
            return worst_expected_kl(cells=max(cells, 2), **numbers)

        middle = math.log(share.size)
        return self.at(math.exp(_minimum(loss, middle - 5.0, middle + 5.0, (7, 5, 5, 5))))


def _rounding(found: UnroundedDirichlet, target: Guarantee) -> Dirichlet:
    try:
        return found.rounding()
    except InvalidArgument:
        raise _beyond(target) from None


def _beyond(target: Guarantee) -> TargetUnreachable:
    return TargetUnreachable(
        f"Dirichlet: for {target} and this many records, doubles cannot carry its gammas. Take Gaussian noise, "
        "which is drawn in whole numbers."
    )


def _scalar(mechanism: Dirichlet | PseudoRecords) -> float:
    if isinstance(mechanism.concentration, tuple):
        raise TypeError("a curve has one concentration for all cells")
    return mechanism.concentration


def _minimum(value: Callable[[float], float], low: float, high: float, passes: tuple[int, ...] = (7, 5)) -> float:
    """Where a function with one valley is smallest: finer and finer grids, then a parabola through the best points."""
    for points in passes:
        grid = np.linspace(low, high, points)
        values = np.array([value(float(x)) for x in grid])
        i = min(max(int(np.argmin(values)), 1), points - 2)
        low, high = float(grid[i - 1]), float(grid[i + 1])
    before, at, after = values[i - 1 : i + 2]
    curvature = before - 2.0 * at + after
    shift = 0.5 * (before - after) / curvature if curvature > 0 else 0.0
    peak = float(grid[i] + np.clip(shift, -1.0, 1.0) * (grid[1] - grid[0]))
    return peak if value(peak) <= at else float(grid[i])  # a valley may have an edge at its bottom
