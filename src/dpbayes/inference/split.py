"""Which tables to measure, and how exactly: the split of a budget that serves the wanted tables best.

Everything here is public: it depends on the numbers of levels and on what is wanted, never on data. Shares are
relative; the guarantee of the whole plan is priced elsewhere, by scaling all noises with one factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument
from dpbayes.inference.measurement import Axes, Sizes, cells, closure, subsets, without

OWNER = "best_split"

Kind = Literal["gaussian", "laplace"]

MOST_STEPS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Shares of the budget, and what they buy; variances are in units of one table that has the whole budget."""

    kind: Kind
    shares: dict[Axes, float]
    """For each table to measure, its share: of the precision 1/σ² (Gaussian) or of 1/scale (Laplace). Sum one."""
    variance: dict[Axes, float]
    """Of a cell of each wanted table."""
    objective: float
    """The weighted mean of the variances; the largest ratio to its wanted square if standard errors are wanted."""
    optimum: float
    """The least objective of any Gaussian mechanism that measures linear functions of the table."""
    redundant: dict[Axes, Axes]
    """Wanted tables that are not measured, because a measured table contains them, or () if they are public."""
    added: tuple[Axes, ...]
    """Tables that nobody asked for and that pay nevertheless."""


def best_split(
    sizes: Sizes,
    wanted: Sequence[Axes],
    *,
    weights: Sequence[float] | None = None,
    errors: Sequence[float] | None = None,
    groups: Sequence[Axes] | None = None,
    kind: Kind = "gaussian",
    exact: Sequence[Axes] = ((),),
) -> Split:
    """The split over the wanted tables and their margins with the least weighted mean of cell variances.

    minimise Σ_C a_C/τ_C,   τ_C = Σ_{B⊇C} p_B/n_{B∖C},   Σ p_B = 1;   p_B ← p_B·√g_B, g_B = Σ_{C⊆B} a_C/(τ_C²·n_{B∖C})
    Symbols: p_B precision of table B, a_C = Σ_A w_A·Π_{i∈C}(1 − 1/n_i)/n_{A∖C}², w_A weight of the wanted table A.
    Source: docs/explanation/proofs/residual-basis.md, the best split.
    Adjacency: under replace-one the number of records, the table (), is ``exact``: it costs nothing and has no error.

    Args:
        sizes: Levels of each attribute.
        wanted: Sets of attributes.
        weights: Of the wanted tables; alike by default. Numbers of cells make all cells weigh alike.
        errors: Wanted standard errors instead of weights: then the objective is the whole precision 1/σ² (the whole
            1/scale², for Laplace noise) that is needed, in the units of the errors.
        groups: With errors, for each table the attributes within whose combinations shares are taken, or (): then the
            error is that of c − n/2, for a cell c of a group n, which is n times that of a share of one half.
        kind: Gaussian noise, whose precisions add up to the budget, or Laplace noise, whose 1/scale do.
        exact: Tables that are public already: (), the number of records, unless it is private, and public margins.

    >>> split = best_split({"a": 2, "b": 5}, [("a", "b"), ("a",)])
    >>> {axes: round(share, 2) for axes, share in split.shares.items()}
    {('a',): 0.34, ('a', 'b'): 0.66}
    """
    checks.one_of(OWNER, ("gaussian", "laplace"), kind=kind)
    tables = [tuple(name for name in sizes if name in axes) for axes in wanted]
    _check(sizes, wanted, tables, weights, errors)
    if errors is not None:
        within = [tuple(name for name in sizes if name in each) for each in groups or [()] * len(tables)]
        return _Problem(sizes, tables, kind, exact, within).reaching(np.array(errors, dtype=np.float64))
    problem = _Problem(sizes, list(dict.fromkeys(tables)), kind, exact)
    given, place = np.zeros(len(problem.wanted)), {axes: number for number, axes in enumerate(problem.wanted)}
    for axes, weight in zip(tables, weights if weights is not None else [1.0] * len(tables), strict=True):
        given[place[axes]] += weight
    return problem.split(given / given.sum())


def optimum(sizes: Sizes, wanted: Sequence[Axes], *, exact: Sequence[Axes] = ((),)) -> float:
    """The least mean variance, over wanted tables that weigh alike, of any Gaussian mechanism of total precision one.

    >>> round(optimum({"a": 2, "b": 5}, [("a", "b"), ("a",)]), 3)
    0.858
    """
    tables = list(dict.fromkeys(tuple(name for name in sizes if name in axes) for axes in wanted))
    return _Problem(sizes, tables, "gaussian", exact)._least(np.full(len(tables), 1 / len(tables)))


class _Sparse:
    """A matrix of few entries, and its products with vectors."""

    def __init__(self, entries: Sequence[tuple[int, int, float]], shape: tuple[int, int]) -> None:
        rows, columns, values = zip(*entries, strict=True)
        self.rows, self.columns = np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64)
        self.values, self.shape = np.array(values, dtype=np.float64), shape

    def of(self, vector: Floats) -> Floats:
        """The matrix times a vector."""
        return np.asarray(np.bincount(self.rows, self.values * vector[self.columns], self.shape[0]), dtype=np.float64)

    def turned(self, vector: Floats) -> Floats:
        """The transposed matrix times a vector."""
        return np.asarray(np.bincount(self.columns, self.values * vector[self.rows], self.shape[1]), dtype=np.float64)


class _Problem:
    """The wanted tables, the tables that may be measured, and how each residual matters to each of them."""

    def __init__(
        self, sizes: Sizes, wanted: list[Axes], kind: Kind, exact: Sequence[Axes], groups: Sequence[Axes] = ()
    ) -> None:
        self.sizes, self.wanted, self.kind = sizes, wanted, kind
        known = set(closure([tuple(name for name in sizes if name in axes) for axes in exact]))
        self.parts = [axes for axes in closure(wanted) if axes not in known]
        if not self.parts:
            raise InvalidArgument(f"{OWNER}: everything that is wanted is public already. There is nothing to measure.")
        place = {axes: number for number, axes in enumerate(self.parts)}

        def matrix(tables: list[Axes], value: str) -> _Sparse:
            entries = [
                (row, place[part], self._entry(axes, part, value, groups[row] if groups and value == "need" else ()))
                for row, axes in enumerate(tables)
                for part in subsets(axes)
                if part in place
            ]
            return _Sparse(entries, (len(tables), len(self.parts)))  # some part is unknown, so there is an entry

        self.reach = matrix(self.parts, "reach")
        self.need = matrix(wanted, "need")
        self.cost = np.array([math.prod(1 - 1 / sizes[name] for name in part) for part in self.parts])

    def _entry(self, axes: Axes, part: Axes, value: str, group: Axes) -> float:
        """1/n_{A∖C}; or Π_{i∈C}(1 − 1/n_i)/n_{A∖C}², times (1 − n_{A∖J}/2)² for C ⊆ J where c − n/2 is wanted.

        The coefficient of a residual of the group J in c is 1/n_{A∖C}, and in n it is n_{A∖J} times as large.
        """
        rest = cells(without(axes, part), self.sizes)
        if value == "reach":
            return 1 / rest
        found = math.prod(1 - 1 / self.sizes[name] for name in part) / rest**2
        inside = bool(group) and set(part) <= set(group)
        return found * (1 - cells(without(axes, group), self.sizes) / 2) ** 2 if inside else found

    def variances(self, shares: Floats) -> Floats:
        """Of a cell of each wanted table."""
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1 / self.reach.turned(self._precision(shares))
            return self.need.of(np.where(self.cost > 0, inverse, 0.0))

    def split(self, weights: Floats) -> Split:
        """The best split for weights that add up to one."""
        shares = self._without_helpers(self._pruned(self._best(weights), weights), weights)
        return self._described(shares, lambda each: float(weights @ self.variances(each)), self._least(weights))

    def reaching(self, errors: Floats) -> Split:
        """The split with the least largest ratio of a variance to its wanted square.

        max over weights ω of min over splits of Σ ω_A v_A/e_A²: weights of tables that miss most grow.
        """
        weights = np.full(errors.size, 1 / errors.size)
        best, least, shares = math.inf, 0.0, self._even(self.parts)
        current: Floats | None = None
        for _ in range(400):
            current = self._best(weights / errors**2, start=current, steps=200)
            ratios = self.variances(current) / errors**2
            least = max(least, self._least(weights / errors**2))
            if ratios.max() < best:
                best, shares = float(ratios.max()), current
            if ratios.max() <= (1 + 1e-4) * float(weights @ ratios):
                break
            weights = weights * np.sqrt(ratios)
            weights = weights / weights.sum()
        found = self._pruned(shares, weights / errors**2)
        return self._described(found, lambda each: float((self.variances(each) / errors**2).max()), least)

    def _best(self, weights: Floats, start: Floats | None = None, steps: int = MOST_STEPS) -> Floats:
        if self.kind == "gaussian":
            return self._descend(weights, self._even(self.parts) if start is None else start, steps)
        inside = {axes for other in self.wanted for axes in subsets(other) if axes != other}
        largest = [axes for axes in self.parts if axes not in inside]
        starts = [self._even(self.parts), self._even(self.wanted), self._even(largest)]
        found = [self._descend(weights, each, steps) for each in starts]
        return min(found, key=lambda shares: float(weights @ self.variances(shares)))

    def _even(self, tables: list[Axes]) -> Floats:
        known = set(tables) - {()}  # the number of records is no table: what starts at nothing stays there
        chosen = np.array([axes in known for axes in self.parts], dtype=np.float64)
        chosen = chosen if chosen.any() else np.ones(len(self.parts))
        return np.asarray(chosen / chosen.sum())

    def _precision(self, shares: Floats) -> Floats:
        """1/s² of each table: the share itself for Gaussian noise, its square for Laplace noise."""
        return shares if self.kind == "gaussian" else shares**2

    def _descend(self, weights: Floats, shares: Floats, steps: int) -> Floats:
        """Repeat p ← p·√g (Gaussian) or q ← q·(q·g)^⅓ (Laplace), each exact in one step for separate tables."""
        need = self.need.turned(weights)
        for _ in range(steps):
            tau = self.reach.turned(self._precision(shares))
            pull = self.reach.of(np.where(need > 0, need / np.maximum(tau, 1e-300) ** 2, 0.0))
            if self.kind == "gaussian":
                value, slope = float(shares @ pull), pull
                shares = shares * np.sqrt(pull)
            else:
                value, slope = float(shares**2 @ pull), shares * pull
                shares = shares * np.cbrt(slope)
            shares = shares / shares.sum()
            if slope.max() <= (1 + 1e-5) * value:  # as near to the optimum, by convexity, for Gaussian noise
                break
        return shares

    def _pruned(self, shares: Floats, weights: Floats) -> Floats:
        """Without tables of a tiny share, unless that would make the answer worse than it is worth."""
        kept = np.where(shares >= 1e-4, shares, 0.0)
        kept = kept / kept.sum()
        before, after = (float(weights @ self.variances(each)) for each in (shares, kept))
        return kept if after <= (1 + 1e-3) * before else shares

    def _without_helpers(self, shares: Floats, weights: Floats) -> Floats:
        """Without tables that nobody asked for, unless standard errors would grow by more than 1 % without them."""

        def value(each: Floats) -> float:
            found = float(weights @ self.variances(each))
            return found if math.isfinite(found) else math.inf

        helpers = [place for place, axes in enumerate(self.parts) if shares[place] > 0 and axes not in self.wanted]
        own, kept = value(shares), shares.copy()
        for place in helpers:
            rest = np.where(np.arange(shares.size) == place, 0.0, shares)
            if value(rest / rest.sum()) <= (1 + 0.01) ** 2 * own:
                kept[place] = 0.0
        trial = self._descend(weights, kept / kept.sum(), MOST_STEPS)
        return trial if value(trial) <= (1 + 0.01) ** 2 * own else shares

    def _least(self, weights: Floats) -> float:
        """(Σ_C √(a_C·Π_{i∈C}(1 − 1/n_i)))², the least weighted mean of variances of any Gaussian matrix mechanism.

        Symbols: a_C as in ``best_split``; Π(1 − 1/n_i) is what a unit of precision on the residual of C costs.
        Source: [ResidualPlanner], the sum of variances; docs/explanation/proofs/residual-basis.md.
        Adjacency: add/remove; the number of records is left out where it is public.
        """
        return float(np.sqrt(self.need.turned(weights) * self.cost).sum() ** 2)

    def _described(self, shares: Floats, value: Callable[[Floats], float], optimum: float) -> Split:
        measured = {axes: float(share) for axes, share in zip(self.parts, shares, strict=True) if share > 0}
        objective = value(shares)
        redundant = {
            axes: next((other for other in sorted(measured, key=len) if set(axes) < set(other)), ())
            for axes in self.wanted
            if axes not in measured
        }
        return Split(
            kind=self.kind,
            shares=measured,
            variance={axes: float(found) for axes, found in zip(self.wanted, self.variances(shares), strict=True)},
            objective=objective,
            optimum=optimum,
            redundant=redundant,
            added=tuple(axes for axes in measured if axes not in self.wanted),
        )


def _check(
    sizes: Sizes,
    wanted: Sequence[Axes],
    tables: list[Axes],
    weights: Sequence[float] | None,
    errors: Sequence[float] | None,
) -> None:
    if not tables or any(len(axes) == 0 for axes in tables):
        raise InvalidArgument(f"{OWNER}: expected one wanted table or more, each with an attribute.")
    for asked, axes in zip(wanted, tables, strict=True):
        unknown = [name for name in asked if name not in sizes]
        if unknown or len(axes) != len(tuple(asked)):
            raise InvalidArgument(f"{OWNER}: expected different attributes out of {', '.join(sizes)}, got {asked!r}.")
    if weights is not None and errors is not None:
        raise InvalidArgument(f"{OWNER}: expected weights or errors, not both.")
    for name, given in (("weights", weights), ("errors", errors)):
        if given is not None and (len(given) != len(tables) or not all(math.isfinite(x) and x > 0 for x in given)):
            raise InvalidArgument(f"{OWNER}: expected one of {name} > 0 for each wanted table.")
