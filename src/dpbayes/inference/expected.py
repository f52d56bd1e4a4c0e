"""How far shares read from a released posterior will be from the truth: from public numbers, before anything is drawn.

Averages over the prior, with which a mechanism is chosen and a release that says nothing is refused.
"""

from __future__ import annotations

import math

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.hellinger import candidates
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.inference.importance import EVERY, Release
from dpbayes.mechanisms.gaussian import Gaussian, GaussianNoise
from dpbayes.mechanisms.laplace import Laplace, LaplaceNoise

Scored = Hellinger | PosteriorExponential


def chance_of_noise(mechanism: Scored) -> float:
    """The prior average of π₀(c) = e^{−a(c)}·|R|/Z(c), the probability that a table drawn at random is released.

    Symbols: a exponent of the weights e^{−aH}, |R| number of candidates, Z their sum.
    Source: docs/explanation/proofs/hellinger.md, reading a release.
    Adjacency: none, it depends on public numbers alone.

    >>> from dpbayes import PrivacyUnit
    >>> unit = PrivacyUnit(adjacency="replace-one")
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


def _law(mechanism: Scored, tables: Ints) -> tuple[Release, Floats]:
    release = Release(
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
