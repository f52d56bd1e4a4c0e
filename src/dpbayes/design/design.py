"""What to measure for the tables that are wanted, with how much noise each, and how near that is to the best.

Public things alone decide and describe it: the schema, the tables and the mechanisms. So a plan and a release are
described alike, and anyone can compute it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpbayes.base.display import rounded_down
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.design.noise import Need, TableMechanism, Wish, calibrate_noise, least, noise_kinds
from dpbayes.inference.measurement import Axes, even_covariance, even_noise
from dpbayes.inference.split import best_split, optimum
from dpbayes.mechanisms.kinds import TableNoise
from dpbayes.privacy.convert import gaussian_mu
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.estimates import measured_noise
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One table that is measured."""

    marginal: Marginal
    """Which table."""
    variance: float
    """Of the noise on a cell."""
    share: float
    """Of the budget: of all 1/σ², or of all 1/scale for Laplace noise."""
    asked: bool
    """Whether it was asked for, or only helps others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """What is measured, and what follows from it."""

    asked: tuple[Marginal, ...]
    sizes: dict[str, int]
    exact: tuple[Axes, ...]
    noise: dict[Axes, float]
    """Variance of each residual: everything else follows from these."""
    measured: tuple[Measured, ...]
    derived: dict[Marginal, Marginal | None]
    """Tables that were asked for and not measured, with the measured one that holds them; None: they are public."""
    laplace: bool
    """Whether parts of the budget are parts of 1/scale, rather than of 1/σ²."""
    over_optimum: float | None
    """Standard error over the least that any Gaussian mechanism of linear measurements has; None for other noise."""

    @property
    def added(self) -> tuple[Marginal, ...]:
        """Tables that nobody asked for and that sharpen those that were."""
        return tuple(each.marginal for each in self.measured if not each.asked)

    def covariance(self, axes: Sequence[str], margin: Sequence[str]) -> float:
        """Of a cell of a table with its total in a margin of the table; of itself, its variance."""
        return even_covariance(self.noise, self.sizes, self.ordered(axes), self.ordered(margin))

    def variance(self, axes: Sequence[str]) -> float:
        """Of a cell of a table."""
        return self.covariance(axes, axes)

    @property
    def mean_variance(self) -> float:
        """Of a cell, over the tables that were asked for."""
        return self._mean_variance(self.noise)

    @property
    def over_separate(self) -> float:
        """Standard error over that of separate tables with equal parts of the budget."""
        power = -0.5 if self.laplace else -1.0
        whole = sum(each.variance**power for each in self.measured)
        return math.sqrt(self.mean_variance / (whole / len(self.asked)) ** (1 / power))

    def gains(self) -> dict[Marginal, float]:
        """How many times larger standard errors were if a table's part went to the others; infinite if it is needed."""
        found = {}
        for own in self.measured:
            left = (1 - own.share) ** (2 if self.laplace else 1)
            others = [each for each in self.measured if each is not own]
            rest = [(self.ordered(each.marginal.names), each.variance * left) for each in others]
            mean = self._mean_variance(even_noise(self.sizes, rest, self.exact))
            found[own.marginal] = math.sqrt(mean / self.mean_variance) if self.mean_variance > 0 else 1.0
        return found

    def _mean_variance(self, noise: dict[Axes, float]) -> float:
        tables = list(dict.fromkeys(self.ordered(each.names) for each in self.asked))
        if any(tuple(name for name in axes if self.sizes[name] > 1) not in noise for axes in tables):
            return math.inf  # a table is lost: its largest residual is measured by nothing
        return sum(even_covariance(noise, self.sizes, axes, axes) for axes in tables) / len(tables)

    def ordered(self, axes: Sequence[str]) -> Axes:
        """In the order of the schema."""
        return _ordered(axes, self.sizes)

    def sentence(self, *, compared: bool = True) -> str:
        """What differs from measuring every table by itself, and how exact that is; empty if nothing does."""
        parts = []
        if self.derived:
            follow = ", ".join(
                f"{one} follows from {other}" if other else f"{one} is public" for one, other in self.derived.items()
            )
            parts.append(f"{follow}, so no budget goes to {'it' if len(self.derived) == 1 else 'them'}")
        if self.added:
            parts.append(f"measured besides, because it pays: {'; '.join(map(str, self.added))}")
        if compared and (len(self.measured) > 1 or parts):
            parts.append(f"standard errors are {self.over_separate:.2f} of those of separate, equal tables")
            if self.over_optimum is not None:
                parts.append(f"and {self.over_optimum:.2f} of the least that any Gaussian mechanism reaches")
        return "; ".join(parts).replace("; and ", " and ")


def describe(
    schema: Schema,
    asked: Sequence[Marginal],
    measured: Sequence[tuple[Marginal, object]],
    records: int | None = None,
) -> Design:
    """The design of tables that were asked for and of those that are measured, each with its mechanism.

    ``records`` is a guess at their number, which the noise of a Dirichlet draw depends on.
    """
    sizes, made = {each.name: len(each.levels) for each in schema.attributes}, dict(measured)
    exact = known(schema)
    splits = {getattr(mechanism, "split", None) for _, mechanism in measured}
    laplace = splits == {"laplace"}
    variances = [_variance(marginal, mechanism, schema, records) for marginal, mechanism in measured]
    parts = np.array(variances) ** (-0.5 if laplace else -1.0)
    named = [set(each.names) for each in asked]
    wanted = list(dict.fromkeys(tuple(name for name in sizes if name in names) for names in named))
    found = Design(
        asked=tuple(asked),
        sizes=sizes,
        exact=exact,
        laplace=laplace,
        measured=tuple(
            Measured(marginal=marginal, variance=value, share=float(share), asked=set(marginal.names) in named)
            for (marginal, _), value, share in zip(measured, variances, parts / parts.sum(), strict=True)
        ),
        noise=even_noise(
            sizes, [(_ordered(each.names, sizes), v) for (each, _), v in zip(measured, variances, strict=True)], exact
        ),
        derived={each: _source(each, measured, schema, exact) for each in asked if each not in made},
        over_optimum=None,
    )
    if not splits <= {"gaussian"} or not searchable(wanted) or found.mean_variance == 0:
        return found
    least = optimum(sizes, wanted, exact=exact) / float(parts.sum())
    return replace(found, over_optimum=math.sqrt(found.mean_variance / least))


def _variance(marginal: Marginal, mechanism: object, schema: Schema, records: int | None) -> float:
    """Of the noise on a cell; on an average one where it depends on the count."""
    size = marginal.size(schema)
    noise = measured_noise(mechanism, marginal.shape(schema))
    typical = np.full((1,) if noise.even else marginal.shape(schema), (schema.records or records or 0) / size)
    return max(float(noise.variance(typical).mean()), 1e-30)  # noise may be too small to show


def _ordered(names: Sequence[str], sizes: dict[str, int]) -> Axes:
    return tuple(name for name in sizes if name in names)


def known(schema: Schema) -> tuple[Axes, ...]:
    """Tables that are public without any release: the number of records, where the unit fixes it, and margins."""
    return ((), *(margin.of for margin in schema.margins)) if schema.unit.fixed_size else ()


def searchable(wanted: Sequence[Sequence[str]]) -> bool:
    """Whether there are few enough margins to search for the best split over them."""
    return sum(3.0 ** len(axes) for axes in wanted) <= 300_000


def _source(
    asked: Marginal, measured: Sequence[tuple[Marginal, object]], schema: Schema, exact: tuple[Axes, ...]
) -> Marginal | None:
    """The smallest measured table that holds another; None if it is public."""
    holding = [each for each, _ in measured if set(asked.names) <= set(each.names)]
    if any(set(asked.names) <= set(axes) for axes in exact) or not holding:
        return None
    return min(holding, key=lambda each: each.size(schema))


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

    kind: type[TableNoise]
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
        # errors this little above what is wanted are as wanted
        return all(each.of(self.design) <= each.error * (1 + 1e-3) for each in wanted)


def plan_tables(
    schema: Schema, marginals: Sequence[Marginal], need: Need, wanted: Sequence[Wanted] = ()
) -> tuple[tuple[Marginal, ...], tuple[TableMechanism, ...], str]:
    """Tables to measure, a mechanism for each, all of them together within the target, and why these.

    With ``wanted`` errors the budget is split for them instead of for tables that weigh alike. Whether they are
    reached is for the caller to see.

    ``auto`` compares all kinds of noise that suit the target, by the variance of a cell times what each uses up of the
    ledger's limit, if there is one: pure noise may be smaller and still leave less for later. A Dirichlet draw has the
    variance of Gaussian noise at best, so it is never chosen.
    """
    found: list[Candidate] = []
    problem: TargetUnreachable | None = None
    for kind in noise_kinds(need.wish, need.target, need.unit):
        try:
            made = _candidate(kind, schema, marginals, need, wanted)
            if all(made.mechanisms != other.mechanisms for other in found):
                found.append(made)
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
    for kind in noise_kinds(wish, cap, schema.unit):
        shares, whole = _shares(kind, schema, marginals, wanted)
        tables = _named(list(shares), marginals, schema)
        noise = [_sized(kind, whole, shares[frozenset(each.names)], each, schema) for each in tables]
        cost = Cost.total(noise)
        target = least(cap, lambda each, cost=cost: price(each).gap(cost) <= 0)  # type: ignore[misc]  # the cost of this turn
        if target is not None:
            found.append((_used(price(target), cost)[0], target.size, target))
    return min(found, key=lambda each: each[:2])[2] if found else None


def _sized(kind: type[TableNoise], whole: float, share: float, table: Marginal, schema: Schema) -> TableNoise:
    """The noise whose variance is at most 1/(precision of the whole · share), or · share² for Laplace noise.

    Discrete Gaussian noise has at most the variance σ², discrete Laplace noise ½ sinh(1/2b)⁻² ≤ 2b².
    """
    gaussian = kind.split == "gaussian"
    size = 1 / math.sqrt(whole * share) if gaussian else 1 / (share * math.sqrt(2 * whole))
    return kind.of_size(size, schema.unit, table.size(schema), joint=not table.given)


def _candidate(
    kind: type[TableNoise], schema: Schema, marginals: Sequence[Marginal], need: Need, wanted: Sequence[Wanted] = ()
) -> Candidate:
    shares, _ = _shares(kind, schema, marginals, wanted)
    tables = _named(list(shares), marginals, schema)
    sizes = [shares[frozenset(each.names)] ** (-0.5 if kind.split == "gaussian" else -1.0) for each in tables]
    mechanisms = calibrate_noise(
        kind,  # type: ignore[arg-type]  # a class is hashable
        need,
        tuple((each.size(schema), not each.given) for each in tables),
        tuple(sizes),
    )
    used, leaves = _used(need.target, Cost.total(mechanisms))
    return Candidate(
        kind=kind,
        tables=tables,
        mechanisms=mechanisms,
        design=describe(schema, marginals, list(zip(tables, mechanisms, strict=True)), need.records),
        used=used,
        leaves=leaves,
    )


def _shares(
    kind: type[TableNoise], schema: Schema, marginals: Sequence[Marginal], errors: Sequence[Wanted] = ()
) -> tuple[dict[frozenset[str], float], float]:
    """The best split of the budget over tables and their margins; an equal one where there are too many margins.

    And the precision of the whole that wanted errors need.
    """
    sizes = {each.name: len(each.levels) for each in schema.attributes}
    wanted = [each.names for each in marginals]
    exact = known(schema)
    if not searchable(wanted):
        if errors:
            raise InvalidArgument("accuracy: expected tables of fewer attributes. Name a target instead of accuracies.")
        return dict.fromkeys(map(frozenset, wanted), 1.0), 1.0
    if errors:
        groups = [each.group for each in errors]
        aims = [each.error for each in errors]
        split = best_split(
            sizes, [each.names for each in errors], errors=aims, groups=groups, kind=kind.split, exact=exact
        )
    else:
        split = best_split(sizes, wanted, kind=kind.split, exact=exact)
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
    if (charged := target.charged) is None:
        return 1.0, None
    limit = charged.limit
    before, after = limit.left(charged), limit.left(charged.plus(cost))
    whole, rest = (gaussian_mu(each, limit.exception) ** 2 if each > 0 else 0.0 for each in (before, after))
    return max(whole - rest, 1e-12 * whole), after


def _why(best: Candidate, found: Sequence[Candidate], need: Need, *, compared: bool) -> str:
    """The reasons in a sentence or two."""
    said = f"{best.kind.name} noise: "
    others = [each for each in found if each is not best]
    if need.wish == best.kind.name:
        said += "asked for"
    elif not others:
        said += f"the least that meets {need.target}"
    else:
        ratio = math.sqrt(best.design.mean_variance / others[0].design.mean_variance)
        said += f"errors {ratio:.2f} times those of {others[0].kind.name} noise"
        if best.leaves is not None and others[0].leaves is not None:
            left = [rounded_down(each.leaves or 0.0, 3) for each in (best, others[0])]
            said += f" now, and ε={left[0]} instead of {left[1]} left for later"
    return "; ".join(each for each in (said, best.design.sentence(compared=compared), "no data was read") if each)
