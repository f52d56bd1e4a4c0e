"""Weighted draws of the counts behind a release of the Hellinger mechanism, and how near shares will be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.hellinger import candidates
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.hellinger.sampler import ClosedSum, Line, ScoreCell
from dpbayes.hellinger.sensitivity import global_sensitivity, many_cells, step_divergence, two_cell_sensitivities
from dpbayes.inference.product import DEPTH, DRAWS, Logs, Normaliser
from dpbayes.mechanisms.gaussian import Gaussian, GaussianNoise
from dpbayes.mechanisms.laplace import Laplace, LaplaceNoise

EVERY = 20_000
"""Up to this many tables of two cells ln Z is computed at each, beyond at a tenth of so many."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What is public of one release: P(k | c) = e^{−a(c)·H(c, k)}/Z(c), a = ε/(2S(c))."""

    prior: tuple[float, ...]
    sharpness: float
    smoothing: float
    released: Ints

    @property
    def total(self) -> int:
        """The public number of records."""
        return int(self.released.sum())

    def exponents(self, tables: Ints) -> Floats:
        """The a(c) of tables, one per row."""
        if self.smoothing == 0:
            value = self.sharpness / (2.0 * global_sensitivity(self.prior, self.total))
            return np.full(len(tables), value)
        if len(self.prior) == 2:
            line = two_cell_sensitivities(self.prior, self.total, self.smoothing)
            return np.asarray(self.sharpness / (2.0 * line[tables[:, 0]]))
        return np.asarray(self.sharpness / (2.0 * many_cells(self.prior, tables, self.smoothing)))

    def normaliser(self) -> Normaliser:
        """For all exponents that a table of this size can have: S is least where the table is even."""
        if self.smoothing == 0:
            return _normaliser(self.prior, self.total, float(self.exponents(self.released[None])[0]))
        even = (self.total + sum(self.prior)) / len(self.prior)
        least = np.sqrt(-np.expm1(-2.0 * step_divergence(even)))
        return _normaliser(self.prior, self.total, float(self.sharpness / (2.0 * least)))


_normaliser = lru_cache(maxsize=4)(Normaliser)
"""What takes most of a reading depends on public numbers alone, so releases of one design share it."""


def list_tables(release: Observed, logs: Sequence[Logs]) -> tuple[Ints, Floats]:
    """All tables of two cells, and their probabilities."""
    total = release.total
    tables = candidates.all_tables(total, 2)
    divergence = _divergences(release, tables)
    exponents = release.exponents(tables)
    normaliser = release.normaliser()
    if total < EVERY:
        normalisers = normaliser.log(tables, exponents)
    else:  # dense at both ends, where sensitivities change fastest
        steps = np.geomspace(1, total / 2, EVERY // 20).astype(np.int64)
        knots = np.unique(np.concatenate([[0], steps, total - steps, [total]]))
        normalisers = np.interp(tables[:, 0], knots, normaliser.log(tables[knots], exponents[knots]))
    likelihood = -exponents * np.sqrt(-np.expm1(-divergence)) - normalisers
    return tables, candidates.shares(likelihood + logs[0](tables[:, 0]) + logs[1](tables[:, 1]))


def draw_tables(
    release: Observed,
    logs: Sequence[Logs],
    background: tuple[Ints, float],
    rng: np.random.Generator,
    *,
    pilot: int = 400,
) -> tuple[Ints, Floats]:
    """Tables with weights: half near the release and half from the ``background``, weighted by target over proposal.

    The background is draws of Π_i e^{l_i(c_i)}, given that Σc = n, with the logarithm of the mass of that product. Near
    the release tables have probability ∝ Π_i e^{l_i}/G_i^λ · Σ_m v_m·e^{−mD}, which can be drawn like the mechanism
    itself, with the roles of table and release exchanged; ``pilot`` draws show which exponents such tables have.

    Symbols: l logs, G generating function of a cell, λ the chance that the release is near, v mixture weights.
    Source: docs/explanation/proofs/hellinger.md, reading a release.
    Adjacency: none, this is post-processing.
    """
    normaliser, k = release.normaliser(), release.released
    own = release.exponents(k[None])
    mixture = normaliser.mixture(float(own[0]))
    used = np.flatnonzero(np.isfinite(mixture[1:-1]))
    parts = mixture[1:-1][used] + normaliser.log_powers(k[None], used)[0]
    at = int(used[parts.argmax()])
    near = -np.expm1(mixture[0] + normaliser.log_candidates - normaliser.log(k[None], own)[0])
    pairs = list(zip(logs, release.prior, k.tolist(), strict=True))
    bent = [_bend(log, normaliser, alpha, at, max(float(near), 0.0)) for log, alpha, _ in pairs]
    cells = [ScoreCell(prior=alpha, count=count, total=release.total, reach=DEPTH) for _, alpha, count in pairs]

    def local(exponents: Floats) -> _Near:
        mixtures = np.array([normaliser.mixture(float(each))[1:-1] for each in exponents])
        weights = np.exp(mixtures - mixtures.max()).mean(axis=0)
        kept = np.flatnonzero(weights)
        return _Near(cells, bent, release.total, normaliser.rates[kept], np.log(weights[kept]))

    first = local(own).draw(pilot, rng)
    distance = _divergences(release, first)
    closest = first[distance <= np.median(distance)]
    law = local(np.quantile(release.exponents(closest), [0.05, 0.25, 0.5, 0.75, 0.95]) if release.smoothing else own)
    many = 3 * DRAWS // 8  # these know nothing of the release: it may be a table drawn at random
    tables = np.concatenate([background[0][:many], law.draw(DRAWS - many, rng)])
    share = min(many, len(background[0])) / len(tables)
    divergence = _divergences(release, tables)
    before = _sum(logs, tables)
    exponents = release.exponents(tables)
    target = before - exponents * np.sqrt(-np.expm1(-divergence)) - normaliser.log(tables, exponents)
    proposed = np.logaddexp(
        np.log(share) + before - background[1], np.log1p(-share) + law.log_density(_sum(bent, tables), divergence)
    )
    return tables, candidates.shares(target - proposed)


class _Near:
    """The law ∝ Π_i e^{b_i(c_i)}·Σ_m v_m·e^{−mD(c, k)} on the tables of n records."""

    def __init__(self, cells: Sequence[ScoreCell], bent: Sequence[Logs], total: int, rates: Ints, logs: Floats) -> None:
        self._rates, self._logs = rates, logs
        values = []
        for cell, log in zip(cells, bent, strict=True):
            window, low = cell.window
            values.append((window, low, log(low + np.arange(window.size))))
        self._nodes = [_closing_sum(cells, values, float(rate), total) for rate in rates]
        mass = logs + np.array([node.log_mass for node in self._nodes])
        self._shares = candidates.shares(mass)
        self._log_mass = float(mass.max() + np.log(np.exp(mass - mass.max()).sum()))
        self._proposed = self._accepted = 0

    def draw(self, number: int, rng: np.random.Generator) -> Ints:
        """So many tables; the share of proposals that is accepted is kept, it is part of the normaliser."""
        found: list[Ints] = []
        missing = number
        while missing > 0:
            chosen = rng.multinomial(2 * missing + 64, self._shares)
            batch = [node.propose(int(many), rng) for node, many in zip(self._nodes, chosen, strict=True) if many]
            tables = np.concatenate([tables[alive] for tables, alive in batch])
            self._proposed += int(chosen.sum())
            self._accepted += len(tables)
            rng.shuffle(tables)
            found.append(tables[:missing])
            missing -= len(found[-1])
        return np.concatenate(found)

    def log_density(self, bent: Floats, divergence: Floats) -> Floats:
        """The logarithm of the probability of tables, from Σ_i b_i(c_i) and D."""
        terms = self._logs - np.multiply.outer(divergence, self._rates)
        top = terms.max(axis=1)
        rate = np.log(self._accepted / self._proposed)
        return np.asarray(bent + top + np.log(np.exp(terms - top[:, None]).sum(axis=1)) - self._log_mass - rate)


def _closing_sum(
    cells: Sequence[ScoreCell], values: Sequence[tuple[Floats, int, Floats]], rate: float, total: int
) -> ClosedSum:
    lines = []
    for cell, (window, low, logs) in zip(cells, values, strict=True):
        kept = np.flatnonzero(rate * window <= DEPTH)
        part = slice(int(kept[0]), int(kept[-1]) + 1)
        lines.append(Line(logs[part] - rate * window[part], low + part.start, cell.count))
    return ClosedSum(lines, total, int(np.argmax([line.moments()[1] for line in lines])))


def _bend(log: Logs, normaliser: Normaliser, alpha: float, rate: int, part: float) -> Logs:
    return lambda c: log(c) - part * normaliser.log_cell(alpha, rate, c)


def _divergences(release: Observed, tables: Ints) -> Floats:
    """D between tables and the release."""
    total = np.zeros(len(tables))
    for alpha, count, column in zip(release.prior, release.released, tables.T, strict=True):
        total += ScoreCell(prior=alpha, count=int(count), total=release.total, reach=DEPTH).divergence(column)
    return total


def _sum(logs: Sequence[Logs], tables: Ints) -> Floats:
    return np.asarray(sum(log(column) for log, column in zip(logs, tables.T, strict=True)))


Scored = Hellinger | PosteriorExponential


def chance_of_noise(mechanism: Scored) -> float:
    """The prior average of π₀(c) = e^{−a(c)}·|R|/Z(c), the probability that a table drawn at random is released.

    Symbols: a exponent of the weights e^{−aH}, |R| number of candidates, Z their sum.
    Source: docs/explanation/proofs/hellinger.md, reading a release.
    Adjacency: none, it depends on public numbers alone.

    >>> from dpbayes import Unit
    >>> unit = Unit(adjacency="replace-one")
    >>> weak = PosteriorExponential(prior=(1.0,) * 8, total=10_000, sharpness=0.8, score="hellinger", unit=unit)
    >>> round(chance_of_noise(weak), 2)
    1.0
    """
    tables, weights = _expected_tables(mechanism.prior, mechanism.total)
    release, exponents = _law(mechanism, tables)
    normaliser = release.normaliser()
    logs = normaliser.log_candidates - exponents - normaliser.log(tables, exponents)
    return min(float(weights @ np.exp(np.minimum(logs, 0.0))), 1.0)


def error(mechanism: Scored | PosteriorLaplace | Laplace | Gaussian, prior: tuple[float, ...], total: int) -> float:
    """√ of [1/V_prior + 1/(V_sampling + V/n²)]⁻¹, on average over cells: the error of a share under the prior.

    V is the variance of the noise on a count: V_b of Laplace noise of scale b where it is on one of two cells,
    2(1−1/d)·V_b where the last of d cells closes the sum, (1−1/d)·V_b or (1−1/d)·σ² where it is on all cells of a known
    sum, 8d·u(1−u/U)/a² of the Hellinger mechanism, which with probability π₀ says nothing.
    Symbols: d cells, n total, u = α + c, U = n + Σα, a exponent, V_prior = m(1−m)/(A+1), m = α/A, A = Σα,
    V_sampling = A·V_prior/n.
    Source: docs/explanation/proofs/hellinger.md, reading a release.
    Adjacency: none, it depends on public numbers alone.
    """
    alpha = np.asarray(prior)
    size = float(alpha.sum())
    before = alpha / size * (1.0 - alpha / size) / (size + 1.0)
    variance = _noise(mechanism, prior, total)
    after = 1.0 / (1.0 / before + 1.0 / (size * before / total + variance / total**2))
    lost = chance_of_noise(mechanism) if isinstance(mechanism, Scored) else 0.0
    return math.sqrt(float((lost * before + (1.0 - lost) * after).mean()))


def _noise(
    mechanism: Scored | PosteriorLaplace | Laplace | Gaussian, prior: tuple[float, ...], total: int
) -> float | Floats:
    cells, none = len(prior), np.zeros(1)
    if isinstance(mechanism, Gaussian):
        return (1.0 - 1.0 / cells) * float(GaussianNoise(sigma=mechanism.sigma).variance(none)[0])
    if isinstance(mechanism, Laplace | PosteriorLaplace):
        own = float(LaplaceNoise(scale=mechanism.scale).variance(none)[0])
        if isinstance(mechanism, Laplace):
            return (1.0 - 1.0 / cells) * own
        return own if cells == 2 else 2.0 * (1.0 - 1.0 / cells) * own
    tables, weights = _expected_tables(prior, total)
    _, exponents = _law(mechanism, tables)
    u = np.asarray(prior) + tables
    size = total + math.fsum(prior)
    return np.asarray(8.0 * cells * (weights @ (u * (1.0 - u / size) / np.square(exponents)[:, None])))


def _law(mechanism: Scored, tables: Ints) -> tuple[Observed, Floats]:
    release = Observed(
        prior=mechanism.prior,
        sharpness=mechanism.sharpness,
        smoothing=getattr(mechanism, "smoothing", 0.0),
        released=tables[0],
    )
    return release, release.exponents(tables)


def _expected_tables(prior: tuple[float, ...], total: int, number: int = 1000) -> tuple[Ints, Floats]:
    """All tables of two cells with their probabilities under the prior, or so many draws from it, always the same."""
    if len(prior) == 2 and total < EVERY:
        from scipy.special import gammaln

        tables, alpha = candidates.all_tables(total, 2), np.asarray(prior)
        return tables, candidates.shares((gammaln(alpha + tables) - gammaln(tables + 1.0)).sum(axis=1))
    rng = np.random.default_rng(0)  # not a secret: everybody finds the same number
    return rng.multinomial(total, rng.dirichlet(prior, size=number)), np.full(number, 1.0 / number)
