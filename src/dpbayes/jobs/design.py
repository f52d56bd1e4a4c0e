"""What to measure for the tables that are wanted, and with how much noise each: public numbers decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.errors import InvalidArgument, TargetUnreachable
from dpbayes.inference.design import Kind, best_split
from dpbayes.jobs.mechanisms import Need, TableMechanism, Wish, noise_family
from dpbayes.jobs.wanted import least
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.privacy.calibrate import calibrate_together
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.gdp import gaussian_mu
from dpbayes.privacy.guarantee import Guarantee, PureDP, rounded_down
from dpbayes.privacy.targets import Both, Fitting
from dpbayes.release.design import Design, described, known, searchable

SLACK = 1e-3
"""Errors this little above what is wanted are as wanted."""


def half_error(design: Design, names: Sequence[str], group: Sequence[str]) -> float:
    """Standard deviation of c − θn for a share θ of one half in a group of n: √(v_c − 2θ·cov + θ²·v_n)

    Symbols: c cell, n its group, v_c, v_n, cov their variances and covariance; over n it is the error of the share.
    Source: [Fieller54]; docs/explanation/proofs/residual-basis.md.
    Adjacency: none, this is post-processing.
    """
    cell, whole, both = design.variance(names), design.variance(group), design.covariance(names, group)
    return math.sqrt(max(cell - both + whole / 4, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A table that has to be this exact: the standard error of a cell, or of c − n/2 within groups."""

    names: tuple[str, ...]
    group: tuple[str, ...]
    error: float

    def of(self, design: Design) -> float:
        """The error that a design has instead."""
        return half_error(design, self.names, self.group) if self.group else math.sqrt(design.variance(self.names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One kind of noise, split in the best way and calibrated."""

    kind: Kind
    tables: tuple[Marginal, ...]
    mechanisms: tuple[TableMechanism, ...]
    design: Design
    used: float
    """How much of the ledger's limit it uses up, in 1/σ² of Gaussian noise; one where no ledger prices it."""
    leaves: float | None
    """The largest ε that still fits into the ledger's limit."""

    @property
    def price(self) -> float:
        """The mean variance of a cell, for what is used up of the limit."""
        return self.design.mean_variance * self.used

    def meets(self, wanted: Sequence[Wanted]) -> bool:
        """Whether it is as exact as wanted."""
        return all(each.of(self.design) <= each.error * (1 + SLACK) for each in wanted)


def designed(
    schema: Schema, marginals: Sequence[Marginal], need: Need, wanted: Sequence[Wanted] = ()
) -> tuple[tuple[Marginal, ...], tuple[TableMechanism, ...], str]:
    """Tables to measure, a mechanism for each, all of them together within the target, and why these.

    With ``wanted`` errors the budget is split for them instead of for tables that weigh alike. Whether they are
    reached is for the caller to see.

    ``auto`` takes Laplace noise for a pure guarantee. Otherwise it compares Gaussian and Laplace noise by the variance
    of a cell, times what each uses up of the ledger's limit, if there is one: pure noise may be smaller and still
    leave less for later. A Dirichlet draw has the variance of Gaussian noise at best, so it is never chosen.
    """
    found: list[Candidate] = []
    problem: TargetUnreachable | None = None
    for kind in _kinds(need.wish, need.target):
        try:
            found.append(_candidate(kind, schema, marginals, need, wanted))
        except TargetUnreachable as met:
            problem = problem or met
    if not found:
        raise problem or TargetUnreachable(f"Tables: no noise meets {need.target}; loosen it.")
    meeting = [each for each in found if each.meets(wanted)]
    best = min(meeting, key=lambda each: each.used) if wanted and meeting else min(found, key=lambda each: each.price)
    return best.tables, best.mechanisms, _why(best, found, need, compared=not wanted)


def least_target(
    schema: Schema,
    marginals: Sequence[Marginal],
    wish: Wish,
    wanted: Sequence[Wanted],
    cap: Guarantee,
    price: Callable[[Guarantee], Guarantee],
) -> Guarantee | None:
    """The smallest guarantee, of the cap's notion and up to it, that allows these errors; None if none does.

    Where a ledger prices it, the noise that uses up least of its limit is taken.
    """
    found: list[tuple[float, float, Guarantee]] = []
    for kind in _kinds(wish, cap):
        shares, whole = _shares(kind, schema, marginals, wanted)
        noise = [_sized(kind, whole, share, schema) for share in shares.values()]
        cost = Cost.total(noise)
        target = least(cost, cap, price)
        if target is not None:
            found.append((_used(price(target), cost)[0], target.size, target))
    return min(found, key=lambda each: each[:2])[2] if found else None


def _kinds(wish: Wish, target: Guarantee) -> tuple[Kind, ...]:
    if wish in ("gaussian", "laplace"):
        return (wish,)
    return ("laplace",) if isinstance(target, PureDP) else ("gaussian", "laplace")


def _sized(kind: Kind, whole: float, share: float, schema: Schema) -> Gaussian | Laplace:
    """The noise whose variance is at most 1/(precision of the whole · share), or · share² for Laplace noise.

    Discrete Gaussian noise has at most the variance σ², discrete Laplace noise ½ sinh(1/2b)⁻² ≤ 2b².
    """
    if kind == "gaussian":
        return Gaussian(sigma=1 / math.sqrt(whole * share), unit=schema.unit)
    return Laplace(scale=1 / (share * math.sqrt(2 * whole)), unit=schema.unit)


def _candidate(
    kind: Kind, schema: Schema, marginals: Sequence[Marginal], need: Need, wanted: Sequence[Wanted] = ()
) -> Candidate:
    shares, _ = _shares(kind, schema, marginals, wanted)
    tables = _named(list(shares), marginals, schema)
    factors = [shares[frozenset(each.names)] ** (-0.5 if kind == "gaussian" else -1.0) for each in tables]
    mechanisms = calibrate_together(noise_family(kind, need.unit), factors, need.target)  # type: ignore[misc]  # either family
    used, leaves = _used(need.target, Cost.total(mechanisms))
    return Candidate(
        kind=kind,
        tables=tables,
        mechanisms=mechanisms,
        design=described(schema, marginals, list(zip(tables, mechanisms, strict=True)), need.records),
        used=used,
        leaves=leaves,
    )


def _shares(
    kind: Kind, schema: Schema, marginals: Sequence[Marginal], errors: Sequence[Wanted] = ()
) -> tuple[dict[frozenset[str], float], float]:
    """The best split of the budget over tables and their margins; an equal one where there are too many margins.

    And the precision of the whole that wanted errors need.
    """
    sizes = {each.name: len(each.levels) for each in schema.attributes}
    wanted = [each.names for each in marginals]
    exact = known(schema)
    if not searchable(wanted):
        if errors:
            raise InvalidArgument("want: expected tables of fewer attributes. Name a target instead of accuracies.")
        return dict.fromkeys(map(frozenset, wanted), 1.0), 1.0
    if errors:
        groups = [each.group for each in errors]
        aims = [each.error for each in errors]
        split = best_split(sizes, [each.names for each in errors], errors=aims, groups=groups, kind=kind, exact=exact)
    else:
        split = best_split(sizes, wanted, kind=kind, exact=exact)
    return {frozenset(axes): share for axes, share in split.shares.items()}, split.objective


def _named(measured: Sequence[frozenset[str]], marginals: Sequence[Marginal], schema: Schema) -> tuple[Marginal, ...]:
    """Measured tables as they were asked for, in that order; then those that only help."""
    asked: dict[frozenset[str], Marginal] = {}
    for each in marginals:
        asked.setdefault(frozenset(each.names), each)
    helping = [names for names in measured if names not in asked]
    own = [each for names, each in asked.items() if names in set(measured)]
    return (*own, *(Marginal(tuple(name for name in schema.names if name in names)) for names in helping))


def _used(target: Guarantee, cost: Cost) -> tuple[float, float | None]:
    """What a cost uses up of a ledger's limit, in 1/σ² of Gaussian noise that then no longer fits, and what it leaves.

    μ(left before)² − μ(left after)²: precisions of Gaussian noise add, and μ² is the precision that an (ε, δ) admits.
    Symbols: μ shift of the Gaussian of (ε, δ), ``left`` the largest ε that still fits.
    Source: docs/explanation/proofs/adaptive.md.
    Adjacency: none.
    """
    if not isinstance(target, Both) or not isinstance(target.enforced, Fitting):
        return 1.0, None
    limit, costs = target.enforced.limit, list(target.enforced.costs)
    before, after = limit.left(costs), limit.left([*costs, cost])
    whole, rest = (gaussian_mu(each, limit.delta) ** 2 if each > 0 else 0.0 for each in (before, after))
    return max(whole - rest, 1e-12 * whole), after


def _why(best: Candidate, found: Sequence[Candidate], need: Need, *, compared: bool) -> str:
    """The reasons in a sentence or two."""
    said = f"{best.kind} noise: "
    others = [each for each in found if each is not best]
    if need.wish == best.kind:
        said += "asked for"
    elif not others:
        said += f"the least that meets {need.target}"
    else:
        ratio = math.sqrt(best.design.mean_variance / others[0].design.mean_variance)
        said += f"standard errors are {ratio:.2f} times those of {others[0].kind} noise"
        if best.leaves is not None and others[0].leaves is not None:
            left = [rounded_down(each.leaves or 0.0, 3) for each in (best, others[0])]
            said += f", and a release of up to ε={left[0]} still fits afterwards, instead of {left[1]}"
    return "; ".join(each for each in (said, best.design.sentence(compared=compared), "no data was read") if each)
