"""Answers to questions about a posterior: an estimate and an interval, from the linear law.

A question about one cell gets what is printed for it. Sums and differences have an exact normal law, a share within a
group is solved by Fieller's theorem, and anything else is read off many joint draws of the sums that it is made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.display import Chart, door, embed, tag
from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.base.normal import quantile
from dpbayes.inference.intervals import half_step, ratio, whole
from dpbayes.inference.measurement import Axes, widen
from dpbayes.inference.question import OWNER, Atom, Condition, Node, read

if TYPE_CHECKING:
    from dpbayes.inference.joint import JointPosterior
    from dpbayes.inference.weighted import Weighted

DRAWS = 20_000
"""Joint draws where there is no closed form, always the same ones: they place a tail of 2.5 % to 0.1 points."""

NEARLY = 1e-9
"""A coefficient that differs from a multiple of another by less is that multiple."""

Target = Literal["records", "population"]
Levels = Mapping[str, Mapping[str, int]]
Method = Literal["table", "normal", "fieller", "draws"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reply:
    """What is known about a derived number.

    Of a single cell it is what is printed in its table. Any other estimate is unbiased up to being cut to what is
    possible, so it may differ from the sum of printed cells, each of which was drawn to its margins.
    """

    question: str
    estimate: float
    lower: float
    upper: float
    level: float
    target: Target
    method: Method
    notes: tuple[str, ...] = ()
    """What the interval allows for beside noise and independent sampling."""

    def _repr_html_(self) -> str:
        said = f"{self.question} = {self!r}"
        drawn: Chart = door("interval_picture", self.lower, self.upper, self.estimate, said)
        return embed(tag("figure", tag("figcaption", said), drawn.svg))

    def rounded(self) -> tuple[str, ...]:
        """Estimate, lower and upper end for people: with no more digits than the interval supports."""
        width = self.upper - self.lower
        half = max(width, 1e-12) / 2 if math.isfinite(width) else 0.5
        digits = max(0, 1 - math.floor(math.log10(half)))
        return tuple(f"{each:.{digits}f}" for each in (self.estimate, self.lower, self.upper))

    def __repr__(self) -> str:
        estimate, lower, upper = self.rounded()
        whose = "of the records" if self.target == "records" else "of all people they stand for"
        return f"{estimate}, {100 * self.level:g} % interval {lower} to {upper}, {whose}"


@dataclass(frozen=True, slots=True)
class _Value:
    """A part of a question: how to compute it from sums of cells, and between which bounds it must lie."""

    compute: Callable[[Floats], Floats]
    bounds: tuple[float, float]
    linear: dict[int, float] | None
    """Coefficients of the sums; −1 is the constant. None if it is not linear in them."""


def answer(posterior: JointPosterior, question: str, levels: Levels, *, level: float, target: Target) -> Reply:
    """Estimate and interval of a question, as ``Posterior.ask`` promises."""
    checks.probability(OWNER, level=level)
    checks.one_of(OWNER, ("records", "population"), target=target)
    asked = Asked(posterior, levels)
    tree = read(question)
    value = asked.value(tree)
    mean, noise = asked.moments()
    printed = asked.printed(tree, level, target) if isinstance(tree, Atom) else None
    notes = [posterior.repeats.said] if target == "population" else []
    method: Method
    if printed is not None:
        method, (estimate, lower, upper) = "table", printed
    else:
        estimate = float(value.compute(mean[None])[0])
        slope = asked.slope(value)
        sampled = target == "population" and bool(asked.sums)
        sampling, apart = asked._sampling(slope) if sampled else (np.zeros_like(noise), [])
        notes += [_overlap_note(names) for names in apart]
        if isinstance(tree, Atom) and value.linear is None:
            method, (lower, upper) = "fieller", asked.fieller(mean, noise, level, target)
        elif value.linear is not None:
            method, (lower, upper) = "normal", _normal(value, estimate, slope, noise, sampling, level)
        else:
            rounded = noise
            if target == "records":
                spread = float(slope @ noise @ slope)
                more = float(half_step(np.array(spread), level, float(np.abs(slope).max())))
                rounded = noise * ((spread + more) / spread if spread > 0 else 1.0)
            method, (lower, upper) = "draws", _quantiles(value.compute(_draws(mean, rounded + sampling)), level)
    low, high = value.bounds
    estimate, lower, upper = (float(np.clip(each, low, high)) for each in (estimate, lower, upper))
    return Reply(
        question=question,
        estimate=estimate,
        lower=min(lower, estimate),
        upper=max(upper, estimate),
        level=level,
        target=target,
        method=method,
        notes=tuple(filter(None, notes)),
    )


def names_in(question: str) -> set[str]:
    """The attributes that a question names."""

    def found(node: Node) -> set[str]:
        if isinstance(node, float):
            return set()
        if isinstance(node, Atom):
            return {each.name for each in (*node.of, *(node.given or ()))}
        return found(node.left) | found(node.right)

    return found(read(question))


def _normal(
    value: _Value, estimate: float, weights: Floats, noise: Floats, sampling: Floats, level: float
) -> tuple[float, float]:
    """Estimate ± z·sd; about records, by half the largest step more, and at numbers that whole counts can give."""
    assert value.linear is not None
    variance = float(weights @ (noise + sampling) @ weights)
    reach = quantile(0.5 + level / 2) * math.sqrt(max(variance, 0.0))
    possible = float(np.clip(estimate, *value.bounds))
    outside = abs(estimate - possible) > reach  # nothing possible explains the estimate: say what noise allows
    middle = possible if outside else estimate
    steps = np.abs(weights[weights != 0])
    if sampling.any() or variance <= 0 or not steps.size:
        return middle - reach, middle + reach
    step, constant = float(steps.min()), value.linear.get(-1, 0.0)
    even = bool((np.abs(steps / step - np.rint(steps / step)) < NEARLY).all())
    reach += (float(steps.max()) - (step if even else 0.0)) / 2
    if not even:
        return middle - reach, middle + reach
    ends = np.array([possible, middle - reach, middle + reach])
    lower, upper = whole(*((ends - constant) / step))
    return float(lower) * step + constant, float(upper) * step + constant


def _overlap_note(names: tuple[Axes, Axes]) -> str:
    first, second = (" × ".join(each) for each in names)
    return (
        f"{first} and {second} were never published in one table, so the interval allows for any overlap of the two. A "
        f"table {' × '.join(dict.fromkeys((*names[0], *names[1])))} would make it shorter."
    )


class Asked:
    """The sums of cells that a question is made of."""

    def __init__(self, posterior: JointPosterior | Weighted, levels: Levels) -> None:
        self.posterior: Any = posterior
        self.levels = levels
        self.sums: list[tuple[Axes, Floats]] = []
        self.groups: dict[tuple[Condition, ...], float] = {}
        """Groups that shares are taken in, and how many rows of one person may be in each."""

    def value(self, node: Node) -> _Value:
        """Compile a tree; sums of cells are collected on the way."""
        if isinstance(node, float):
            constant = node
            return _Value(lambda sums: np.full(sums.shape[0], constant), (constant, constant), {-1: constant})
        if isinstance(node, Atom):
            return self._count(node) if node.kind == "count" else self._share(node)
        return _join(node.sign, self.value(node.left), self.value(node.right))

    def moments(self) -> tuple[Floats, Floats]:
        """Means of the sums, and the covariance of their noise."""
        if not self.sums:
            return np.zeros(1), np.zeros((1, 1))
        found: tuple[Floats, Floats] = self.posterior.functional(*({axes: weights} for axes, weights in self.sums))
        return found

    def printed(self, atom: Atom, level: float, target: Target) -> tuple[float, float, float] | None:
        """Estimate and ends as printed, of a question about one cell of a table."""
        chosen = {each.name: self._chosen(each) for each in (*(atom.given or ()), *atom.of)}
        known = self.posterior.known
        if not chosen or any(picked.sum() != 1 for picked in chosen.values()):
            return None
        if atom.kind == "count" and target == "population" and not known:
            return None
        given = [each.name for each in atom.given or ()]
        table = self.posterior.estimate([name for name in chosen if name not in given], given, level=level)
        part = table.population if target == "population" else table.counts if atom.kind == "count" else table.records
        times = self.posterior.total if atom.kind == "count" and target == "population" else 1.0
        cell = tuple(int(picked.argmax()) for picked in chosen.values())
        return float(part.values[cell] * times), float(part.lower[cell] * times), float(part.upper[cell] * times)

    def fieller(self, mean: Floats, noise: Floats, level: float, target: Target) -> tuple[float, float]:
        """The interval of a share within a group: sums 0 and 1 are the part and the whole."""
        part, total, covariance, spread = noise[:1, 0], noise[1:2, 1], noise[:1, 1], np.zeros(1)
        sampled = max(float(mean[1]), 0.0) * self._rows() if target == "population" else 0.0
        if target == "records" and mean[1] > 0:
            share = float(np.clip(mean[0] / mean[1], 0.0, 1.0))
            spread = half_step(part - 2 * share * covariance + share**2 * total, level)
        lower, upper = ratio(mean[:1], mean[1:2], part + spread, covariance, total, level, sampled=sampled)
        return float(lower[0]), float(upper[0])

    def slope(self, value: _Value, part: float = 1e-4) -> Floats:
        """How the value moves with each sum: its coefficients, or its gradient from sums moved by this part."""
        if value.linear is not None:
            return np.array([value.linear.get(place, 0.0) for place in range(max(len(self.sums), 1))])
        at = self._sizes()
        step = np.diag(part * np.maximum(at, 1.0))
        with np.errstate(invalid="ignore"):  # a ratio may be infinite on both sides
            return np.asarray((value.compute(at + step) - value.compute(at - step)) / (2 * step.diagonal()))

    def _count(self, atom: Atom) -> _Value:
        self._within(())
        place = self._sum(atom.of)
        top = self.posterior.total if self.posterior.known else math.inf
        return _Value(lambda sums: sums[:, place], (0.0, top), {place: 1.0})

    def _share(self, atom: Atom) -> _Value:
        total = self.posterior.total
        self._within(atom.given or ())
        if atom.given is None and self.posterior.known:
            if total <= 0:
                raise InvalidArgument(f"{OWNER}: there are no records to take shares of.")
            place = self._sum(atom.of)
            return _Value(lambda sums: sums[:, place] / total, (0.0, 1.0), {place: 1 / total})
        part, whole = self._sum((*atom.of, *(atom.given or ()))), self._sum(atom.given or ())

        def compute(sums: Floats) -> Floats:
            told = sums[:, whole] > 0
            share = np.where(told, sums[:, part] / np.where(told, sums[:, whole], 1.0), np.arange(len(sums)) % 2)
            return np.clip(share, 0.0, 1.0)

        return _Value(compute, (0.0, 1.0), None)

    def _within(self, conditions: tuple[Condition, ...]) -> None:
        """Note a group that a share is taken in; a count is taken in all rows."""
        chosen = {each.name: self._chosen(each) for each in conditions if each.name in self.posterior.sizes}
        self.groups[conditions] = self.posterior.repeats.among(chosen)

    def _rows(self) -> float:
        """How many rows of one person may matter: those in any of the groups."""
        return min(sum(self.groups.values()), float(self.posterior.repeats.most))

    def _sum(self, conditions: tuple[Condition, ...]) -> int:
        """The place of the sum of all cells that fulfil the conditions; those that all levels fulfil do not matter."""
        axes = self.posterior.law.ordered([each.name for each in conditions])
        named = {each.name: self._chosen(each) for each in conditions}
        axes = tuple(name for name in axes if not named[name].all())
        weights = np.ones([self.posterior.sizes[name] for name in axes])
        for name in axes:
            weights = weights * widen(named[name], (name,), axes)
        self.sums.append((axes, weights))
        return len(self.sums) - 1

    def _chosen(self, condition: Condition) -> Floats:
        size = self.posterior.sizes[condition.name]
        names = self.levels.get(condition.name) or {str(place): place for place in range(size)}
        for level in condition.levels:
            if level not in names:
                listed = ", ".join(repr(each) for each in list(names)[:12]) + (", …" if len(names) > 12 else "")
                near = get_close_matches(level, names, n=2)
                hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"It has {listed}."
                raise SchemaError(f"{OWNER}: {condition.name} has no level {level!r}. {hint}")
        chosen = np.zeros(size)
        chosen[[names[level] for level in condition.levels]] = 1.0
        return 1 - chosen if condition.excluded else chosen

    def _sizes(self) -> Floats:
        """The agreeing estimates of the sums."""
        tables = self.posterior.settled.counts
        return np.array([float((tables[axes] * weights).sum()) for axes, weights in self.sums])

    def _sampling(self, slope: Floats) -> tuple[Floats, list[tuple[Axes, Axes]]]:
        """m·(b_fg − |f|·|g|/N), b_fg = |f ∧ g|, or the end of what it can be that makes the variance of w·sums largest

        Σ_s max(0, f_s + g_s − n_s) ≤ |f ∧ g| ≤ Σ_s min(f_s, g_s), the lower end for w_f·w_g < 0 and the upper one else
        Symbols: f, g sums of cells, s levels of the attributes that both name, f_s, g_s, n_s the rows of f, g and all
        rows there, w slope, m rows of one person. Pairs that were never published in one table are listed.
        Source: docs/explanation/proofs/population.md, theorems 1 and 2.
        Adjacency: none, this is post-processing.
        """
        sizes, tables, order = self._sizes(), self.posterior.settled.counts, self.posterior.law.ordered
        found, apart, total = np.zeros((len(sizes), len(sizes))), [], max(self.posterior.total, 1e-300)
        for first, second in combinations_with_replacement(range(len(sizes)), 2):
            (axes, weights), (other, others) = self.sums[first], self.sums[second]
            joint = order(tuple(dict.fromkeys((*axes, *other))))
            if joint in tables:
                both = float((widen(weights, axes, joint) * widen(others, other, joint) * tables[joint]).sum())
            else:
                shared = tuple(name for name in axes if name in other)
                left, right = (
                    (tables[names] * chosen).sum(axis=tuple(at for at, name in enumerate(names) if name not in shared))
                    for names, chosen in ((axes, weights), (other, others))
                )
                least = np.maximum(left + right - tables[shared], 0.0)
                opposed = slope[first] * slope[second] < 0
                both = float((least if opposed else np.minimum(left, right)).sum())
                if slope[first] and slope[second]:
                    apart.append((axes, other))
            found[first, second] = found[second, first] = both - sizes[first] * sizes[second] / total
        return self._rows() * found, list(dict.fromkeys(apart))


def _join(sign: str, left: _Value, right: _Value) -> _Value:
    """Arithmetic of values, of their bounds and, where it stays linear, of their coefficients."""
    (a, b), (c, d) = left.bounds, right.bounds
    if sign in "+-":
        factor = 1.0 if sign == "+" else -1.0
        linear = None
        if left.linear is not None and right.linear is not None:
            places = {*left.linear, *right.linear}
            linear = {each: left.linear.get(each, 0.0) + factor * right.linear.get(each, 0.0) for each in places}
        bounds = (a + c, b + d) if sign == "+" else (a - d, b - c)
        return _Value(lambda sums: left.compute(sums) + factor * right.compute(sums), bounds, linear)
    if sign == "*":
        return _Value(lambda sums: left.compute(sums) * right.compute(sums), _product(a, b, c, d), _scale(left, right))
    if right.linear is not None and set(right.linear) <= {-1}:
        if c == 0:
            raise InvalidArgument(f"{OWNER}: expected a divisor other than zero.")
        return _join("*", left, _Value(lambda sums: np.full(sums.shape[0], 1 / c), (1 / c, 1 / c), {-1: 1 / c}))

    def divided(sums: Floats) -> Floats:
        top, bottom = left.compute(sums), right.compute(sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(bottom == 0, np.inf, top / bottom))

    bounds = (0.0, math.inf) if a >= 0 and c >= 0 else (-math.inf, math.inf)
    return _Value(divided, bounds, None)


def _product(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    ends = [0.0 if 0.0 in (x, y) else x * y for x in (a, b) for y in (c, d)]
    return min(ends), max(ends)


def _scale(left: _Value, right: _Value) -> dict[int, float] | None:
    """A product is linear if one factor is a constant."""
    for one, other in ((left, right), (right, left)):
        if one.linear is not None and set(one.linear) <= {-1} and other.linear is not None:
            return {place: one.linear.get(-1, 0.0) * value for place, value in other.linear.items()}
    return None


def _draws(mean: Floats, covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = np.random.default_rng(0).standard_normal((DRAWS // 2, mean.size))
    return np.asarray(mean + np.concatenate([normal, -normal]) @ root.T)


def _quantiles(values: Floats, level: float) -> tuple[float, float]:
    """Sorted by hand, since a ratio may be infinite."""
    ordered = np.sort(values)
    tail = (1 - level) / 2
    return float(ordered[math.floor(tail * ordered.size)]), float(ordered[math.ceil((1 - tail) * ordered.size) - 1])
