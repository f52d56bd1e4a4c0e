"""What to measure for the tables that are wanted, and with how much noise each: public numbers decide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.errors import TargetUnreachable
from dpbayes.inference.design import Kind, best_split
from dpbayes.jobs.mechanisms import Need, TableMechanism, noise_family
from dpbayes.privacy.calibrate import calibrate_together
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.gdp import gaussian_mu
from dpbayes.privacy.guarantee import Guarantee, PureDP, rounded_down
from dpbayes.privacy.targets import Both, Fitting
from dpbayes.release.design import Design, described, known, searchable


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


def designed(
    schema: Schema, marginals: Sequence[Marginal], need: Need
) -> tuple[tuple[Marginal, ...], tuple[TableMechanism, ...], str]:
    """Tables to measure, a mechanism for each, all of them together within the target, and why these.

    ``auto`` takes Laplace noise for a pure guarantee. Otherwise it compares Gaussian and Laplace noise by the variance
    of a cell, times what each uses up of the ledger's limit, if there is one: pure noise may be smaller and still
    leave less for later. A Dirichlet draw has the variance of Gaussian noise at best, so it is never chosen.
    """
    kinds: tuple[Kind, ...] = ("gaussian", "laplace")
    if need.wish in kinds:
        kinds = (need.wish,)
    elif isinstance(need.target, PureDP):
        kinds = ("laplace",)
    found: list[Candidate] = []
    problem: TargetUnreachable | None = None
    for kind in kinds:
        try:
            found.append(_candidate(kind, schema, marginals, need))
        except TargetUnreachable as met:
            problem = problem or met
    if not found:
        raise problem or TargetUnreachable(f"Tables: no noise meets {need.target}; loosen it.")
    best = min(found, key=lambda each: each.price)
    return best.tables, best.mechanisms, _why(best, found, need)


def _candidate(kind: Kind, schema: Schema, marginals: Sequence[Marginal], need: Need) -> Candidate:
    shares = _shares(kind, schema, marginals)
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


def _shares(kind: Kind, schema: Schema, marginals: Sequence[Marginal]) -> dict[frozenset[str], float]:
    """The best split of the budget over tables and their margins; an equal one where there are too many margins."""
    sizes = {each.name: len(each.levels) for each in schema.attributes}
    wanted = [each.names for each in marginals]
    exact = known(schema)
    if all(any(set(axes) <= set(other) for other in exact) for axes in wanted):
        exact = ((),)  # public already: measured all the same, as that was asked for
    if not searchable(wanted):
        return dict.fromkeys(map(frozenset, wanted), 1.0)
    split = best_split(sizes, wanted, kind=kind, exact=exact)
    return {frozenset(axes): share for axes, share in split.shares.items()}


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


def _why(best: Candidate, found: Sequence[Candidate], need: Need) -> str:
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
    return "; ".join(each for each in (said, best.design.sentence(), "no data was read") if each)
