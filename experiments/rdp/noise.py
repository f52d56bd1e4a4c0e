"""The additive baselines of [RDP] section 5, as the paper ran them and as one should."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from dpbayes import RDP, Dirichlet, Gaussian, Laplace, Unit, calibrate
from dpbayes.mechanisms.tuning import gaussian_noise, laplace_noise, published_dirichlet
from experiments.estimates import clip_and_smooth

CLIPPED_AT = 1e-6
"""What the authors' runs put in the place of smaller noisy counts."""

AUTHORS_PRIOR = 0.1
"""What the authors' runs add to every exact count."""

Estimate = Callable[[np.ndarray], np.ndarray]


def _clipped(noisy: np.ndarray) -> np.ndarray:
    rows = np.maximum(noisy, CLIPPED_AT)
    return rows / rows.sum(axis=-1, keepdims=True)


def paper_scales(target: RDP, releases: int) -> tuple[float, float]:
    """σ = √(λk/ε) and the Laplace scale √(2λk/ε): [RDP] sections 5.1 and 5.2, for k tables."""
    sigma = float(np.sqrt(target.order * releases / target.epsilon))
    return sigma, float(np.sqrt(2.0)) * sigma


def spent(target: RDP, releases: int, unit: Unit) -> dict[str, float]:
    """What the paper's mechanisms cost in all tables by exact accounting, as a part of the target."""
    sigma, scale = paper_scales(target, releases)
    mechanisms: dict[str, Dirichlet | Gaussian | Laplace] = {
        "paper": published_dirichlet(target, unit, releases=releases),
        "paper gaussian": Gaussian(sigma=sigma, unit=unit),
        "paper laplace": Laplace(scale=scale, unit=unit),
    }
    return {way: releases * made.renyi(target.order) / target.epsilon for way, made in mechanisms.items()}


def baselines(target: RDP, releases: int, unit: Unit, rng: np.random.Generator) -> dict[str, Estimate]:
    """Shares within the rows of a table of counts, one of ``releases`` that share the target equally.

    As in the paper: N(0, λk/ε) or Laplace noise of scale √(2λk/ε), clipped at almost zero. Fair: whole-number noise
    that meets the target exactly, clipped at zero, and one standard deviation of the noise added to every cell.
    """
    sigma, scale = paper_scales(target, releases)
    gaussian = calibrate(gaussian_noise(unit), target, times=releases)
    laplace = calibrate(laplace_noise(unit), target, times=releases)
    return {
        "paper gaussian": lambda counts: _clipped(counts + rng.normal(0.0, sigma, counts.shape)),
        "paper laplace": lambda counts: _clipped(counts + rng.laplace(0.0, scale, counts.shape)),
        "fair gaussian": lambda counts: clip_and_smooth(gaussian.draw(counts, rng), gaussian.sigma),
        "fair laplace": lambda counts: clip_and_smooth(laplace.draw(counts, rng), np.sqrt(2.0) * laplace.scale),
    }


def tables(counts: Iterable[np.ndarray], estimate: Estimate) -> list[np.ndarray]:
    """The same estimate of every table."""
    return [estimate(table) for table in counts]
