"""Exact draws from exp(−a·s(D)) over all tables with n records, without listing them.

The weight of a candidate is exp(−a·s(D)), D = −ln BC a sum over cells and s a Bernstein function. So the weight
is a positive mixture of exponentials e^{−cD}, c = 0, 1, 2, …, and each of these is a product over the cells, which
can be sampled. A few dozen of them, fitted and then raised until they certainly dominate, make the envelope.

A draw: draw an exponential, draw all cells but the widest independently, let that one close the sum, accept it by its
own factor, and finally accept the table by target over envelope. What is accepted has exactly the target law, whatever
the envelope, as long as it dominates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates
from dpbayes.hellinger.distance import bregman

ROUNDING = 1e-9
"""Added to the height of every envelope, to cover the rounding of its certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A score as a function of D: s increasing and concave from s(0) = 0 to s(∞) = 1.

    ``bend`` is −s″; ``spacing`` is that of ln c in the ladder of exponentials which fits it.
    """

    score: Callable[[Floats], Floats]
    bend: Callable[[Floats], Floats]
    spacing: float


def _hellinger(divergence: Floats) -> Floats:
    return np.sqrt(-np.expm1(-divergence))


def _hellinger_bend(divergence: Floats) -> Floats:
    s, q = _hellinger(divergence), np.exp(-divergence)
    return q / (2.0 * s) + q * q / (4.0 * s**3)


HELLINGER = Curve(score=_hellinger, bend=_hellinger_bend, spacing=0.25)
"""s(D) = √(1 − e^{−D}) = H."""

SQUARED_HELLINGER = Curve(
    score=lambda divergence: -np.expm1(-divergence), bend=lambda divergence: np.exp(-divergence), spacing=0.05
)
"""s(D) = 1 − e^{−D} = H², a lower bound of the total variation distance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """E(D) = Σ_j exp(log_weights_j − rates_j·D); the first rate is 0."""

    rates: Floats
    log_weights: Floats

    def log(self, divergence: Floats) -> Floats:
        """The logarithm of E(D)."""
        terms = self.log_weights - np.multiply.outer(divergence, self.rates)
        top = terms.max(axis=-1, keepdims=True)
        return np.asarray(np.log(np.exp(terms - top).sum(axis=-1)) + top[..., 0])

    def slope(self, divergence: Floats) -> Floats:
        """(ln E)′(D), the average rate with its sign changed."""
        terms = self.log_weights - np.multiply.outer(divergence, self.rates)
        shares = np.exp(terms - terms.max(axis=-1, keepdims=True))
        return np.asarray(-(shares @ self.rates) / shares.sum(axis=-1))

    def raised(self, height: float) -> Envelope:
        """e^height times the envelope."""
        return Envelope(rates=self.rates, log_weights=self.log_weights + height)


def shortfall(envelope: Envelope, curve: Curve, sharpness: float) -> float:
    """The least σ that proves e^σ·E(D) ≥ e^{−a·s(D)} for all D ≥ 0.

    The logarithms of both sides are convex and decreasing. Between neighbouring points of a grid the right side lies
    below its chord and the left side above its tangent, so two comparisons settle the interval; before the first
    point the weight is at most 1, after the last one the envelope is at least its constant term.

    Symbols: a sharpness, s curve, E envelope.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: none, this is an inequality between functions.
    """
    grid = certificate_grid(curve, sharpness)
    target = -sharpness * curve.score(grid)
    height, slope = envelope.log(grid), envelope.slope(grid)
    tangent = height[:-1] + slope[:-1] * np.diff(grid)
    gaps = (-height[0], (target - height).max(), (target[1:] - tangent).max(), target[-1] - envelope.log_weights[0])
    return float(max(gaps)) + ROUNDING


def certificate_grid(curve: Curve, sharpness: float) -> Floats:
    """Points of D between which a chord of a·s(D) bends away by about the same small amount."""
    a = sharpness
    fine = np.geomspace(min(1e-4 / a**2, 1e-3 / a, 1e-4), np.log(200.0 * a + 200.0), 4000)
    # a chord of the log-weight may lie a hundredth above it
    density = np.sqrt(a * curve.bend(fine) / 0.08)
    passed = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(fine))])
    points = int(passed[-1]) + 64
    return np.asarray(np.unique(np.interp(np.linspace(0.0, passed[-1], points), passed, fine)))


def envelope_of(curve: Curve, sharpness: float) -> Envelope:
    """An envelope of exp(−a·s(D)), tight to a few percent, with its domination certified.

    Symbols: a sharpness, s curve.
    Source: [BernsteinFunctions] theorem 3.7 for the mixture; our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: none, this is an inequality between functions.
    """
    from scipy.optimize import nnls

    if not (np.isfinite(sharpness) and sharpness > 0):
        raise InvalidArgument(f"Envelope: expected a finite sharpness > 0, got {sharpness!r}.")
    rates = _ladder(curve, sharpness)
    grid = certificate_grid(curve, sharpness)
    grid = np.append(grid, grid[-1] + np.array([3.0, 40.0]))
    depth = sharpness * curve.score(grid)
    # deep in the tail a coarse ladder cannot follow the weight: aim a little above it, which costs next to nothing
    depth -= 0.01 * np.maximum(depth - 60.0, 0.0)
    exponents = depth[:, None] - np.multiply.outer(grid, rates)
    tops = exponents.max(axis=0)
    amounts, _ = nnls(np.exp(exponents - tops), np.ones(grid.size))
    kept = amounts > 0
    kept[0] = True
    amounts[0] = max(amounts[0], 1e-6)
    envelope = Envelope(rates=rates[kept], log_weights=np.log(amounts[kept]) - tops[kept])
    return envelope.raised(shortfall(envelope, curve, sharpness))


def _ladder(curve: Curve, sharpness: float) -> Floats:
    """Rates 0, 1, … in nearly geometric steps, up to where the steepest useful exponential is."""
    start = min(1e-4 / sharpness**2, 1e-4)
    steepest = sharpness * curve.score(np.array([start]))[0] / start
    ladder = np.geomspace(1.0, max(steepest, 2.0), int(np.log(max(steepest, 2.0)) / curve.spacing) + 2)
    return np.concatenate([[0.0], np.unique(np.round(ladder))])


UNDERFLOW = 745.0
"""exp(−745) is the smallest positive double: beyond it a weight is zero in any table of doubles."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class ScoreCell:
    """One cell of the table: h(k) = its part of −ln BC when a candidate has k records there.

    Tables reach as far as the slowest exponential of the envelope, ``reach``, can be told from zero.
    """

    prior: float
    count: int = field(repr=False)  # private
    total: int
    reach: float

    def divergence(self, k: Ints) -> Floats:
        """h(k) elementwise, for any k between 0 and the total."""
        window, low = self.window
        inside = (k >= low) & (k < low + window.size)
        values = window[np.clip(k - low, 0, window.size - 1)]
        if not inside.all():
            values[~inside] = self._far(k[~inside].astype(np.float64))
        return values

    def _far(self, k: Floats) -> Floats:
        own, other = self.prior + self.count, self.prior + k
        half = 0.5 * (k - self.count)
        middle = own + half
        return 0.5 * (bregman(middle, other, half) + bregman(middle, np.broadcast_to(own, k.shape), -half))

    @cached_property
    def window(self) -> tuple[Floats, int]:
        """All h(k) ≤ reach (h falls and rises about the count), and the first such k."""
        low, high = self._ends()
        return candidates.cell_divergences(self.prior, self.count, low, high), low

    def _ends(self) -> tuple[int, int]:
        """First and last k of the window."""
        return self.count - self._radius(-1, self.count), self.count + self._radius(1, self.total - self.count)

    def _radius(self, sign: int, farthest: int) -> int:
        """Steps to one side until h exceeds the reach, at most twice as many as needed."""
        radius = int(np.sqrt(8.0 * (self.prior + self.count) * self.reach)) + 1
        while radius < farthest and self._far(np.array([self.count + sign * radius], np.float64))[0] < self.reach:
            radius *= 2
        return min(radius, farthest)


class KlCell(ScoreCell):
    """The same for KL(candidate ‖ posterior): h(k) = lnΓ(u) − lnΓ(v) − (u − v)·ψ(v), u = α + count, v = α + k."""

    def _far(self, k: Floats) -> Floats:
        own = np.full(k.shape, self.prior + self.count)
        return bregman(self.prior + k, own, self.count - k)

    @cached_property
    def window(self) -> tuple[Floats, int]:
        """All h(k) ≤ reach, and the first such k."""
        low, high = self._ends()
        return self._far(np.arange(low, high + 1, dtype=np.float64)), low


class Sampler:
    """Draws tables k, Σk = n, with probability proportional to exp(log_target(k, D(k))) ≤ E(D(k))."""

    def __init__(
        self, cells: list[ScoreCell], envelope: Envelope, log_target: Callable[[Ints, Floats], Floats]
    ) -> None:
        self._cells = cells
        self._total = cells[0].total
        self._envelope = envelope
        self._log_target = log_target
        self._closing = int(np.argmax([cell.prior + cell.count for cell in cells]))
        self._nodes = [self._node(float(rate)) for rate in envelope.rates]
        logs = envelope.log_weights + np.array([node.log_mass for node in self._nodes])
        self._shares = np.exp(logs - logs.max())
        self._shares /= self._shares.sum()
        self.proposed = self.accepted = 0

    def _node(self, rate: float) -> _Uniform | ClosedSum:
        if rate == 0:
            return _Uniform(total=self._total, cells=len(self._cells))
        return ClosedSum([_line(cell, rate) for cell in self._cells], self._total, self._closing)

    def draw(self, size: int, rng: np.random.Generator) -> Ints:
        """``size`` independent tables, one per row."""
        found: list[Ints] = []
        missing = size
        while missing > 0:
            rate = (self.accepted + 1.0) / (self.proposed + 4.0)
            batch = int(min(1.2 * missing / rate + 16, 2**17 / len(self._cells) + 16))
            tables = self._accepted(batch, rng)
            self.proposed += batch
            self.accepted += len(tables)
            found.append(tables[:missing])
            missing -= len(found[-1])
        return np.concatenate(found)

    def _accepted(self, batch: int, rng: np.random.Generator) -> Ints:
        """The accepted ones of a batch of independent proposals, in the order they were proposed."""
        chosen = rng.choice(self._shares.size, size=batch, p=self._shares)
        tables = np.zeros((batch, len(self._cells)), dtype=np.int64)
        alive = np.zeros(batch, dtype=bool)
        for index in np.unique(chosen):
            slots = np.flatnonzero(chosen == index)
            tables[slots], alive[slots] = self._nodes[index].propose(slots.size, rng)
        tables = tables[alive]
        divergence = np.zeros(len(tables))
        for cell, counts in zip(self._cells, tables.T, strict=True):
            divergence += cell.divergence(counts)
        log_ratio = self._log_target(tables, divergence) - self._envelope.log(divergence)
        return tables[-rng.standard_exponential(len(tables)) < log_ratio]


def score_sampler(prior: tuple[float, ...], table: Ints, exponent: float, curve: Curve) -> Sampler:
    """The sampler of weights e^{−a·s(D)}: a certified envelope of them, and one cell of tables per count."""
    total = int(table.sum())
    cells = [ScoreCell(prior=p, count=int(k), total=total, reach=UNDERFLOW) for p, k in zip(prior, table, strict=True)]
    return Sampler(cells, envelope_of(curve, exponent), lambda _, divergence: -exponent * curve.score(divergence))


class _Uniform:
    """The constant term of the envelope: every table alike, as a multinomial draw with uniform shares."""

    def __init__(self, *, total: int, cells: int) -> None:
        self._total, self._cells = total, cells
        self.log_mass = candidates.log_number(total, cells)

    def propose(self, size: int, rng: np.random.Generator) -> tuple[Ints, Flags]:
        shares = rng.dirichlet(np.ones(self._cells), size=size)
        return rng.multinomial(self._total, shares), np.ones(size, dtype=bool)


class ClosedSum:
    """Independent laws of cells given that they add up to n: one closes the sum, accepted by its own factor.

    Free cells may add up to more than n on average. As Σk = n is fixed, a factor e^{tk} in every cell changes
    nothing but the proposals: t is chosen so that they add up to n.
    """

    def __init__(self, lines: list[Line], total: int, closing: int) -> None:
        self._total, self._closing = total, closing
        surplus, spread = _surplus(lines, total)
        if abs(surplus) > spread:
            lines = _balanced(lines, total, surplus)
        self._lines = lines
        self.log_mass = lines[closing].log_top + sum(t.log_mass for i, t in enumerate(lines) if i != closing)

    def propose(self, size: int, rng: np.random.Generator) -> tuple[Ints, Flags]:
        """Tables, and which of them survive the factor of the closing cell."""
        tables = np.zeros((size, len(self._lines)), dtype=np.int64)
        for index, line in enumerate(self._lines):
            if index != self._closing:
                tables[:, index] = line.draw(size, rng)
        rest = self._total - tables.sum(axis=1)
        tables[:, self._closing] = rest
        return tables, -rng.standard_exponential(size) < self._lines[self._closing].log_factor(rest)


def _surplus(lines: list[Line], total: int) -> tuple[float, float]:
    """How far the independent cells add up to more than n on average, and their joint standard deviation."""
    means, variances = zip(*(line.moments() for line in lines), strict=True)
    return sum(means) + (sum(line.anchor for line in lines) - total), float(np.sqrt(sum(variances)))


def _balanced(lines: list[Line], total: int, surplus: float) -> list[Line]:
    """The same laws with the tilt at which their means add up to n, to within a part of their spread."""
    outer = -1.0 if surplus > 0 else 1.0
    while _surplus([line.tilted(outer) for line in lines], total)[0] * surplus > 0:
        outer *= 2.0
    inner = 0.0
    for _ in range(40):
        middle = 0.5 * (inner + outer)
        trial = [line.tilted(middle) for line in lines]
        left, spread = _surplus(trial, total)
        if abs(left) < 0.1 * spread:
            break
        inner, outer = (middle, outer) if left * surplus > 0 else (inner, middle)
    return trial


class Line:
    """A law on consecutive whole numbers from ``low`` on, by the logarithms of its weights; tilts leave ``anchor``."""

    def __init__(self, logs: Floats, low: int, anchor: int) -> None:
        self._logs, self._low, self.anchor = logs, low, anchor
        self.log_top = float(logs.max())
        self._weights = np.exp(logs - self.log_top)
        self._cumulative = np.cumsum(self._weights)
        self.log_mass = self.log_top + float(np.log(self._cumulative[-1]))

    def tilted(self, tilt: float) -> Line:
        """The same law times e^{t(k − anchor)}."""
        return Line(self._logs + tilt * self._steps(), self._low, self.anchor)

    def _steps(self) -> Ints:
        return self._low - self.anchor + np.arange(self._logs.size)

    def moments(self) -> tuple[float, float]:
        """Mean and variance of k − anchor."""
        shares, steps = self._weights / self._cumulative[-1], self._steps()
        mean = float(shares @ steps)
        return mean, float(shares @ (steps - mean) ** 2)

    def log_factor(self, k: Ints) -> Floats:
        """The logarithm of the weight of k relative to the largest; −∞ outside."""
        index = k - self._low
        inside = (index >= 0) & (index < self._logs.size)
        return np.where(inside, self._logs[np.where(inside, index, 0)] - self.log_top, -np.inf)

    def draw(self, size: int, rng: np.random.Generator) -> Ints:
        """Independent draws by inversion."""
        points = rng.random(size) * self._cumulative[-1]
        index = np.searchsorted(self._cumulative, points, side="right")
        return np.asarray(self._low + np.minimum(index, self._cumulative.size - 1))


def _line(cell: ScoreCell, rate: float) -> Line:
    """The law ∝ e^{−c·h(k)} of one cell on the consecutive k where it can be told from zero."""
    window, low = cell.window
    centre = cell.count - low
    right = centre + int(np.searchsorted(window[centre:], UNDERFLOW / rate, side="right"))
    left = centre + 1 - int(np.searchsorted(window[centre::-1], UNDERFLOW / rate, side="right"))
    return Line(-rate * window[left:right], low + left, cell.count)
