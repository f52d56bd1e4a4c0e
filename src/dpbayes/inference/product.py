"""Sums over all tables of n records: laws of independent cells given their sum, and the normaliser of a mechanism.

Tables of two cells are listed, others drawn. The normaliser of the Hellinger mechanism is Z(c) = Σ_k e^{−a·H(c, k)}.
With q = e^{−D}, e^{−a√(1−q)} is a positive mixture of powers qᵐ, and each Σ_k qᵐ is a coefficient of a product of one
generating function for each cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates
from dpbayes.hellinger.distance import STIRLING_FROM, bregman
from dpbayes.hellinger.sampler import ClosedSum, Line

Logs = Callable[[Ints], Floats]
"""The logarithm of a law of one count, up to a constant."""

DRAWS = 4800
"""Draws of a table, fewer where it has more than a hundred cells."""

LISTED = 200_000
"""Up to this many tables of two cells are listed, and nothing is drawn."""

DEPTH = 45.0
"""Weights below e^−45 of the largest are left out: 2⁻⁶⁵, far below the rounding of a sum of doubles."""


def product_law(
    logs: Sequence[Logs], total: int, near: Sequence[Ints], rng: np.random.Generator
) -> tuple[Ints, Floats, float]:
    """Tables c, Σc = n, of the law ∝ Π_i e^{l_i(c_i)}, their probabilities, and ln of the sum of all products.

    All cells but one are drawn independently; the last closes the sum and is accepted by its own factor, which is
    exact. The symbols: l logs, n total.
    """
    low, high = _windows(logs, total, near)
    if len(logs) == 2 and high[0] - low[0] < LISTED:
        first = np.arange(low[0], high[0] + 1)
        tables = np.column_stack([first, total - first])
        values = logs[0](tables[:, 0]) + logs[1](tables[:, 1])
        return tables, candidates.shares(values), float(np.logaddexp.reduce(values))
    lines = []
    for log, bottom, top, hint in zip(logs, low, high, near, strict=True):
        values = log(np.arange(bottom, top + 1))
        kept = _kept(values)
        lines.append(Line(values[kept[0] : kept[-1] + 1], int(bottom + kept[0]), int(hint[0])))
    number = int(np.clip(500_000 // len(logs), 200, DRAWS))
    if len(logs) > 1000:  # draws need not add up to n: a cell's law is off by about one part in d
        tables, mass = np.column_stack([line.draw(number, rng) for line in lines]), float("nan")
    else:
        law = ClosedSum(lines, total, int(np.argmax([line.moments()[1] for line in lines])))
        tables, rate = closed_draws(law, number, rng)
        mass = law.log_mass + float(np.log(rate))
    return tables, np.full(number, 1.0 / number), mass


def closed_draws(law: ClosedSum, number: int, rng: np.random.Generator) -> tuple[Ints, float]:
    """So many accepted tables, one per row, and the share of proposals that was accepted."""
    found: list[Ints] = []
    missing = number
    proposed = accepted = 0
    while missing > 0:
        tables, alive = law.propose(2 * number, rng)
        proposed, accepted = proposed + 2 * number, accepted + int(alive.sum())
        found.append(tables[alive][:missing])
        missing -= len(found[-1])
    return np.concatenate(found), accepted / proposed


def hints(seen: Sequence[Floats], prior: Sequence[float], total: int) -> list[Ints]:
    """Counts near which the law of each cell may be: what was released, what the prior expects, and the ends."""
    expected = np.asarray(prior) / np.sum(prior) * total
    rows = [np.clip(np.rint(each), 0, total).astype(np.int64) for each in (*seen, expected)]
    return [np.array([*column, 0, total]) for column in np.column_stack(rows)]


def _kept(values: Floats) -> Ints:
    """Where a logarithm can be told from that of zero."""
    kept = np.flatnonzero(values > values.max() - DEPTH)
    if not kept.size:
        raise InvalidArgument("Reading: no table of this size could have led to these released parameters.")
    return kept


def _windows(logs: Sequence[Logs], total: int, near: Sequence[Ints]) -> tuple[Ints, Ints]:
    """For each cell the counts whose weight can be told from zero; never too few, perhaps some too many."""
    steps = np.unique(np.append(np.geomspace(1, max(total, 2), 120).astype(np.int64), 0))
    low, high = np.zeros(len(logs), np.int64), np.zeros(len(logs), np.int64)
    for cell, (log, hint) in enumerate(zip(logs, near, strict=True)):
        grid = np.unique(np.clip(np.add.outer(hint, np.append(-steps, steps)).ravel(), 0, total))
        values = log(grid)
        kept = _kept(values)
        low[cell], high[cell] = grid[max(kept[0] - 1, 0)], grid[min(kept[-1] + 1, grid.size - 1)]
    return np.maximum(low, total - (high.sum() - high)), np.minimum(high, total - (low.sum() - low))


class Normaliser:
    """ln Z for tables of n records under one prior, at exponents up to ``largest``."""

    def __init__(self, prior: tuple[float, ...], total: int, largest: float) -> None:
        self._prior, self._total, self._size = prior, total, total + math.fsum(prior)
        self.log_candidates = candidates.log_number(total, len(prior))
        top = max(min(3000.0 * largest**2, 80.0 * self._size), 2.0)
        steps = np.exp(np.linspace(0.0, math.log(top), int(math.log(top) / 0.4) + 2))  # a ladder, even in ln m
        self.rates: Ints = np.unique(np.rint(steps)).astype(np.int64)
        self._fit = lru_cache(maxsize=4096)(self._fitted)
        self._functions = lru_cache(maxsize=None)(self._generating)

    def mixture(self, exponent: float) -> Floats:
        """Logarithms of weights: of the power 0, of those in ``rates``, and of the power ∞, which is D = 0 alone.

        Σ v_m e^{−mD} ≈ e^{−a√(1−e^{−D})}, fitted by non-negative least squares in relative error on D = 0 and
        D ≥ 1/(4.4·U); no two tables are nearer.
        Symbols: a exponent, U = n + Σα.
        Source: docs/explanation/proofs/hellinger.md, reading a release.
        Adjacency: none, this is an identity of functions.
        """
        return self._fit(float(exponent))

    def _fitted(self, exponent: float) -> Floats:
        from scipy.optimize import nnls

        grid = np.append(0.0, np.geomspace(1.0 / (4.4 * self._size), 60.0, 220))
        depth = exponent * np.sqrt(-np.expm1(-grid))
        depth -= 0.05 * np.maximum(depth - self.log_candidates - 60.0, 0.0)  # out there nothing has any mass
        exponents = depth[:, None] - np.multiply.outer(grid, np.append(0, self.rates))
        tops = exponents.max(axis=0)
        matrix = np.column_stack([np.exp(exponents - tops), grid == 0])
        amounts, _ = nnls(matrix, np.ones(grid.size), maxiter=100 * self.rates.size)  # 3 by default, and 4 are needed
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(amounts) - np.append(tops, 0.0))

    def log_powers(self, tables: Ints, used: Ints) -> Floats:
        """Logarithms of W_m(c) = Σ_k e^{−m·D(c,k)} = (1/N)·Σ_φ Π_i G(c_i, m, φ), φ = 2πl/N, for some of the rates.

        The sum of k has spread √(4U/m) whatever the table is, so one public N serves all.
        Symbols: U = n + Σα, G generating function of one cell.
        Source: docs/explanation/proofs/hellinger.md, reading a release.
        Adjacency: none, this is an identity.
        """
        found = np.empty((len(tables), used.size))
        values, place = np.unique(tables, return_inverse=True)
        place = place.reshape(tables.shape)
        for column, at in enumerate(used):
            modulus, frequencies = self._frequencies(int(self.rates[at]))
            logs = np.zeros((len(tables), frequencies.size), dtype=np.complex128)
            for alpha in set(self._prior):
                own = self._at(alpha, int(at), values)
                for cell in np.flatnonzero(np.asarray(self._prior) == alpha):
                    logs += own[place[:, cell]]
            top = logs[:, :1].real
            terms = np.exp(logs - top).real
            total = terms[:, 0] + 2.0 * terms[:, 1:].sum(axis=1)
            found[:, column] = top[:, 0] + np.log(np.maximum(total, 1e-12)) - math.log(modulus)
        return found

    def log_cell(self, alpha: float, rate: int, counts: Ints) -> Floats:
        """The logarithm of G(c, m, 0) of one cell, for the rate at this place."""
        return np.asarray(self._at(alpha, rate, counts)[:, 0].real)

    def log(self, tables: Ints, exponents: Floats) -> Floats:
        """The logarithm of Z of tables, each at its own exponent.

        Mixtures are fitted at steps of 0.1 in ln a; ln Z is linear in between, to about 3·10⁻⁴.
        """
        place = np.log(exponents) / 0.1
        even = np.ptp(exponents) < 1e-12 * exponents[0]  # global sensitivity
        below = np.zeros(len(tables), np.int64) if even else np.floor(place).astype(np.int64)
        grid = [float(exponents[0])] if even else [math.exp(0.1 * at) for at in range(below.min(), below.max() + 2)]
        mixtures = np.array([self.mixture(each) for each in grid])
        used = np.flatnonzero(np.isfinite(mixtures[:, 1:-1]).any(axis=0))
        powers = self.log_powers(tables, used)
        powers = np.column_stack([np.full(len(tables), self.log_candidates), powers, np.zeros(len(tables))])
        mixtures = mixtures[:, np.concatenate([[0], used + 1, [mixtures.shape[1] - 1]])]
        if even:
            return _log_sum(powers + mixtures[0])
        part, first = place - below, below - below.min()
        ends = [_log_sum(powers + mixtures[first + end]) for end in (0, 1)]
        return np.asarray((1.0 - part) * ends[0] + part * ends[1])

    def _frequencies(self, rate: int) -> tuple[int, Floats]:
        """N and the frequencies φ ≥ 0 at which products can be told from zero.

        They end at 5 standard deviations of the spectrum: e^−12.5 is left out.
        """
        spread = math.sqrt(4.0 * self._size / rate)
        modulus = 2 * int(0.5 * (15.0 * spread + 60.0 / rate)) + 17
        most = min((modulus - 1) // 2, math.ceil(5.0 * modulus / (2.0 * math.pi * spread)))
        return modulus, np.arange(most + 1, dtype=np.float64) * (2.0 * math.pi / modulus)

    def _at(self, alpha: float, rate: int, counts: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.complex128]]:
        return np.asarray(self._functions(alpha, rate)(np.log(counts + alpha + 1.0)))

    def _generating(self, alpha: float, at: int):  # type: ignore[no-untyped-def]  # a spline of scipy
        """The logarithm of G(c, m, φ) = Σ_{k≥0} e^{−m·h(c,k) + iφ(k−c)}, as a function of ln(c + α + 1)."""
        from scipy.interpolate import CubicSpline

        rate = int(self.rates[at])
        _, frequencies = self._frequencies(rate)
        last = max(self._total, 4)
        ends = math.log(alpha + 1.0), math.log(last + alpha + 1.0)
        counts = np.unique(np.clip(np.rint(np.exp(np.linspace(*ends, 100)) - alpha - 1.0), 0, last))
        u = counts + alpha
        reach = np.sqrt(8.0 * u * DEPTH / rate) + 1.0
        while (short := _divergence(u, reach) * rate < DEPTH).any():
            reach[short] *= 1.5
        wide = u * rate > 60.0  # then k = 0 is out of reach, and the sum is as smooth as an integral
        step = np.where(wide, np.maximum(np.floor(np.sqrt(4.0 * u / rate) / 3.0), 1.0), 1.0)
        steps = np.ceil(reach / step)
        moves = np.arange(-steps.max(), steps.max() + 1)[None, :] * step[:, None]
        inside = (np.abs(moves) <= (steps * step)[:, None]) & (counts[:, None] + moves >= 0)
        safe = np.where(inside, moves, 0.0)
        weights = np.where(inside, np.exp(-rate * _divergence(np.broadcast_to(u[:, None], safe.shape), safe)), 0.0)
        turn = np.exp(1j * frequencies[1] * safe)
        turned, sums = weights * step[:, None] + 0j, []
        for _ in frequencies:
            sums.append(turned.sum(axis=1))
            turned *= turn
        found = np.column_stack(sums)
        logs = np.log(np.maximum(np.abs(found), 1e-300)) + 1j * np.unwrap(np.angle(found), axis=1)
        return CubicSpline(np.log(counts + alpha + 1.0), logs)


def _divergence(u: Floats, step: Floats) -> Floats:
    """The part h of −ln BC that a cell has when its parameter is u there and u + step here."""
    from scipy.special import gammaln

    half = 0.5 * step
    middle, other = u + half, u + step
    small = np.minimum(u, other) < STIRLING_FROM
    found = np.empty(np.shape(step))
    a, b, m = u[small], other[small], middle[small]
    found[small] = 0.5 * (gammaln(a) + gammaln(b)) - gammaln(m)
    large = ~small
    a, b, m, s = u[large], other[large], middle[large], half[large]
    found[large] = 0.5 * (bregman(m, b, s) + bregman(m, a, -s))
    return np.maximum(found, 0.0)


def _log_sum(terms: Floats) -> Floats:
    top = terms.max(axis=1, keepdims=True)
    return np.asarray(top[:, 0] + np.log(np.exp(terms - top).sum(axis=1)))
