"""The mechanisms that these experiments compare, and how far from the true posterior their releases are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpbayes import ApproxDP, Gaussian, Laplace, PureDP, Unit, calibrate
from dpbayes.hellinger import Hellinger, calibration
from dpbayes.hellinger.baselines import PosteriorLaplace
from dpbayes.hellinger.distance import hellinger
from dpbayes.mechanisms.tuning import gaussian_noise, laplace_noise
from dpbayes.schema import Adjacency
from experiments.estimates import noise_aware as estimated

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)
Floats = NDArray[np.float64]


def paper_laplace(prior: tuple[float, ...], total: int, epsilon: float) -> PosteriorLaplace:
    """The papers' baseline: noise of scale 2/ε on every count but the last, then truncated to a table of n records."""
    return PosteriorLaplace(prior=prior, total=total, scale=2.0 / epsilon, truncated=True, unit=UNIT)


def readings(prior: tuple[float, ...], total: int, epsilon: float, delta: float) -> dict[str, Hellinger]:
    """The published mechanism, and the other ways in which its text can be read.

    [H-abstract] section 4 measures the distance of data sets by ℓ₁ between histograms, twice the number of records that
    differ, so γ counts twice. [H-notes] section 4.4 has weights exp(−εH/S), without the 2 of the definition.
    """
    published = calibration.published(prior=prior, total=total, epsilon=epsilon, delta=delta, unit=UNIT)

    def read(sharpness: float, smoothing: float) -> Hellinger:
        return Hellinger(
            prior=prior, total=total, sharpness=sharpness, smoothing=smoothing, calibration="proved", unit=UNIT
        )

    return {
        "paper": published,
        "paper, l1": read(epsilon, 2.0 * published.smoothing),
        "paper, no 2": read(2.0 * epsilon, published.smoothing),
        "paper, l1, no 2": read(2.0 * epsilon, 2.0 * published.smoothing),
    }


def noise_aware(
    mechanism: Laplace | Gaussian, prior: tuple[float, ...], counts: Floats, runs: int, rng: np.random.Generator
) -> Floats:
    """Parameters α + E[counts | noisy counts] of ``runs`` releases with noise on every count; n is public."""
    total = int(np.sum(counts))
    return np.array(prior) + np.array([estimated(mechanism.draw(counts, rng), mechanism, total) for _ in range(runs)])


def fair_laplace(epsilon: float) -> Laplace:
    """Pure ε on all counts."""
    return calibrate(laplace_noise(UNIT), PureDP(epsilon=epsilon))


def fair_gaussian(epsilon: float, delta: float) -> Gaussian:
    """(ε, δ) on all counts."""
    return calibrate(gaussian_noise(UNIT), ApproxDP(epsilon=epsilon, delta=delta))


def distances(prior: tuple[float, ...], counts: Floats, parameters: Floats) -> Floats:
    """Hellinger distance of each released posterior from the true one."""
    return np.asarray(hellinger(parameters, np.array(prior) + counts))


def described(values: Floats) -> dict[str, float]:
    """Mean, its standard error, and the quantiles of a box plot."""
    quantiles = np.quantile(values, (0.0, 0.25, 0.5, 0.75, 1.0))
    return {
        "mean": float(values.mean()),
        "error": float(values.std(ddof=1) / np.sqrt(values.size)),
        **dict(zip(("lowest", "lower", "median", "upper", "highest"), quantiles.tolist(), strict=True)),
    }


def split(total: int, shares: list[float]) -> NDArray[np.int64]:
    """Counts in these proportions; the last cell takes the rounding."""
    counts = np.floor(total * np.array(shares) / np.sum(shares)).astype(np.int64)
    counts[-1] += total - counts.sum()
    return counts
