"""Answers to questions about a posterior: an estimate and an interval, from the linear law.

Sums and differences have an exact normal law, a share within a group is solved by Fieller's theorem, and anything
else is read off many joint draws of the sums that it is made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

import numpy as np

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes._normal import quantile
from dpbayes.errors import InvalidArgument
from dpbayes.inference.intervals import ratio
from dpbayes.inference.question import OWNER, Atom, Condition, Node, read
from dpbayes.inference.residuals import Axes, widened

if TYPE_CHECKING:
    from dpbayes.inference.posterior import Posterior

DRAWS = 20_000
"""Joint draws for questions that have no closed form; the same ones every time."""

Target = Literal["records", "population"]
Levels = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is known about a derived number.

    The estimate is unbiased up to being cut to what is possible, so it may differ from the sum of printed cells, each
    of which was drawn to its margins.
    """

    question: str
    estimate: float
    lower: float
    upper: float
    level: float
    target: Target
    method: Literal["normal", "fieller", "draws"]


@dataclass(frozen=True, slots=True)
class _Value:
    """A part of a question: how to compute it from sums of cells, and between which bounds it must lie."""

    compute: Callable[[Floats], Floats]
    bounds: tuple[float, float]
    linear: dict[int, float] | None
    """Coefficients of the sums; −1 is the constant. None if it is not linear in them."""


def answer(posterior: Posterior, question: str, levels: Levels, *, level: float, target: Target) -> Answer:
    """Estimate and interval of a question, as ``Posterior.ask`` promises."""
    _checks.probability(OWNER, level=level)
    _checks.one_of(OWNER, ("records", "population"), target=target)
    asked = _Asked(posterior, levels)
    tree = read(question)
    value = asked.value(tree)
    mean, covariance = asked.moments(target)
    estimate = float(value.compute(mean[None])[0])
    z = quantile(0.5 + level / 2)
    method: Literal["normal", "fieller", "draws"] = "draws"
    if isinstance(tree, Atom) and value.linear is None:
        method = "fieller"
        whole = max(float(mean[1]), 0.0) if target == "population" else 0.0
        noise = asked.noise
        ends = ratio(mean[:1], mean[1:2], noise[:1, 0], noise[:1, 1], noise[1:2, 1], level, sampled=whole)
        lower, upper = float(ends[0][0]), float(ends[1][0])
    elif value.linear is not None:
        method = "normal"
        weights = np.array([value.linear.get(place, 0.0) for place in range(mean.size)])
        spread = z * math.sqrt(max(float(weights @ covariance @ weights), 0.0))
        possible = float(np.clip(estimate, *value.bounds))
        outside = abs(estimate - possible) > spread  # nothing possible explains the estimate: say what noise allows
        middle = possible if outside else estimate
        lower, upper = middle - spread, middle + spread
    else:
        lower, upper = _quantiles(value.compute(_draws(mean, covariance)), level)
    low, high = value.bounds
    estimate, lower, upper = (float(np.clip(each, low, high)) for each in (estimate, lower, upper))
    return Answer(
        question=question,
        estimate=estimate,
        lower=min(lower, estimate),
        upper=max(upper, estimate),
        level=level,
        target=target,
        method=method,
    )


class _Asked:
    """The sums of cells that a question is made of."""

    def __init__(self, posterior: Posterior, levels: Levels) -> None:
        self.posterior, self.levels = posterior, levels
        self.sums: list[tuple[Axes, Floats]] = []
        self.noise = np.zeros((0, 0))

    def value(self, node: Node) -> _Value:
        """Compile a tree; sums of cells are collected on the way."""
        if isinstance(node, float):
            constant = node
            return _Value(lambda sums: np.full(sums.shape[0], constant), (constant, constant), {-1: constant})
        if isinstance(node, Atom):
            return self._count(node) if node.kind == "count" else self._share(node)
        return _joined(node.sign, self.value(node.left), self.value(node.right))

    def moments(self, target: Target) -> tuple[Floats, Floats]:
        """Means of the sums, and their covariance: of the noise, and of sampling if the population is asked about."""
        if not self.sums:
            return np.zeros(1), np.zeros((1, 1))
        mean, self.noise = self.posterior.functional(*({axes: weights} for axes, weights in self.sums))
        if target == "records":
            return mean, self.noise
        return mean, self.noise + self._sampling()

    def _count(self, atom: Atom) -> _Value:
        place = self._sum(atom.of)
        top = self.posterior.total if self.posterior.known else math.inf
        return _Value(lambda sums: sums[:, place], (0.0, top), {place: 1.0})

    def _share(self, atom: Atom) -> _Value:
        total = self.posterior.total
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

    def _sum(self, conditions: tuple[Condition, ...]) -> int:
        """The place of the sum of all cells that fulfil the conditions."""
        axes = self.posterior.law.ordered([each.name for each in conditions])
        named = {each.name: each for each in conditions}
        weights = np.ones([self.posterior.sizes[name] for name in axes])
        for place, name in enumerate(axes):
            shape = [1] * len(axes)
            shape[place] = -1
            weights = weights * self._chosen(named[name]).reshape(shape)
        self.sums.append((axes, weights))
        return len(self.sums) - 1

    def _chosen(self, condition: Condition) -> Floats:
        known = list(self.levels.get(condition.name, range(self.posterior.sizes[condition.name])))
        names = [str(each) for each in known]
        for level in condition.levels:
            if level not in names:
                listed = ", ".join(repr(each) for each in names[:12]) + (", …" if len(names) > 12 else "")
                near = get_close_matches(level, names, n=2)
                hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"It has {listed}."
                raise InvalidArgument(f"{OWNER}: {condition.name} has no level {level!r}. {hint}")
        chosen = np.array([each in condition.levels for each in names], dtype=np.float64)
        return 1 - chosen if condition.excluded else chosen

    def _sampling(self) -> Floats:
        """Cov of multinomial counts: |f ∧ g| − |f|·|g|/N; sums over tables never published together are independent."""
        number = len(self.sums)
        tables, total = self.posterior.settled.counts, max(self.posterior.total, 1e-300)
        sizes = [float((tables[axes] * weights).sum()) if axes in tables else 0.0 for axes, weights in self.sums]
        found = np.zeros((number, number))
        for first in range(number):
            for second in range(first + 1):
                (axes, weights), (other, others) = self.sums[first], self.sums[second]
                joint = self.posterior.law.ordered(tuple(dict.fromkeys((*axes, *other))))
                if joint in tables:
                    both = widened(weights, axes, joint) * widened(others, other, joint) * tables[joint]
                    found[first, second] = found[second, first] = (
                        float(both.sum()) - sizes[first] * sizes[second] / total
                    )
        return found


def _joined(sign: str, left: _Value, right: _Value) -> _Value:
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
        return _Value(lambda sums: left.compute(sums) * right.compute(sums), _product(a, b, c, d), _scaled(left, right))
    if right.linear is not None and set(right.linear) <= {-1}:
        if c == 0:
            raise InvalidArgument(f"{OWNER}: expected a divisor other than zero.")
        return _joined("*", left, _Value(lambda sums: np.full(sums.shape[0], 1 / c), (1 / c, 1 / c), {-1: 1 / c}))

    def divided(sums: Floats) -> Floats:
        top, bottom = left.compute(sums), right.compute(sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(bottom == 0, np.inf, top / bottom))

    bounds = (0.0, math.inf) if a >= 0 and c >= 0 else (-math.inf, math.inf)
    return _Value(divided, bounds, None)


def _product(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    ends = [0.0 if 0.0 in (x, y) else x * y for x in (a, b) for y in (c, d)]
    return min(ends), max(ends)


def _scaled(left: _Value, right: _Value) -> dict[int, float] | None:
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
