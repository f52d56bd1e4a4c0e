"""An open question of the paper, answered: what a draw from the noisy posterior costs when only the draw is published.

Counts get Gaussian noise of ρ-zCDP, are clipped at zero, get the prior 1 and make a Dirichlet posterior; one sample y
of it is published. y is a function of independent gammas z_k whose shapes are the clipped noisy counts plus one, so it
costs at most what they cost. A replaced record takes one from a cell and adds one to another: the largest divergence
of the one step plus that of the other, over counts up to 100 (it falls beyond), by quadrature over noise and z.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import gammaln, logsumexp

from dpbayes import ZCDP, Unit, calibrate
from dpbayes.mechanisms.tuning import gaussian_noise
from dpbayes.schema import Adjacency
from experiments import style
from experiments.lab import Claim, verdict

PAPER = "[tCDP]"
TITLE = "Appendix C: what a draw from a noisy posterior costs"
UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)


def tasks(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"rho": rho, "count": count} for rho in settings["rhos"] for count in settings["counts"]]


def measure(task: Mapping[str, Any], settings: Mapping[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    sigma, count = calibrate(gaussian_noise(UNIT), ZCDP(rho=task["rho"])).sigma, task["count"]
    log_z = np.linspace(-60.0, np.log(count + settings["spread"] * sigma + 60.0), settings["nodes"])
    fewer, more = (_log_density(log_z, c, sigma, settings) for c in (count, count + 1))
    step = log_z[1] - log_z[0]

    def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
        return float(logsumexp(order * p + (1.0 - order) * q) + np.log(step)) / (order - 1.0)

    return [
        {"order": order, "entering": renyi(fewer, more, order) / order, "leaving": renyi(more, fewer, order) / order}
        for order in settings["orders"]
    ]


def _log_density(log_z: np.ndarray, count: int, sigma: float, settings: Mapping[str, Any]) -> np.ndarray:
    """ln of the density of ln z, z ~ Gamma(max(count + noise, 0) + 1)."""
    normal = np.linspace(-settings["spread"], settings["spread"], 2 * settings["nodes"] + 1)
    log_weight = -0.5 * normal**2
    shape = np.maximum(count + sigma * normal, 0.0) + 1.0
    terms = (log_weight - logsumexp(log_weight) - gammaln(shape))[:, None] + shape[:, None] * log_z
    return logsumexp(terms, axis=0) - np.exp(log_z)


def draw(rows: pd.DataFrame, settings: Mapping[str, Any]) -> Figure:
    figure, axes = style.panels(1, width=5.6, height=3.4)
    panel = axes[0, 0]
    for (rho, found), color, marker in zip(
        rows.groupby("rho"), (style.BLUE, style.ORANGE, style.GREEN), "osv", strict=True
    ):
        worst = found.assign(cost=found["entering"] + found["leaving"]).groupby("count")["cost"].max() / rho
        panel.plot(worst.index, worst, color=color, marker=marker, label=f"ρ = {rho:g}")
    panel.axhline(1.0, color=style.BLACK, linestyle="--", label="the noisy counts themselves")
    panel.set_xscale("symlog", linthresh=1.0)
    panel.set_xlim(-0.3, 1.2 * max(settings["counts"]))
    panel.set(xlabel="records in the cells that change", ylabel="cost of the draw / ρ", ylim=(0, 1.05))
    style.shared_legend(figure, panel)
    return figure


def claims(rows: pd.DataFrame, settings: Mapping[str, Any]) -> list[Claim]:
    largest = rows.groupby(["rho", "order"])[["entering", "leaving"]].max().sum(axis=1).groupby("rho").max()
    share = largest / largest.index
    return [
        Claim(
            where="Appendix C, last sentence",
            says="The posterior from Gaussian counts may cost less than ρ; this is left to further study.",
            measured="up to order 3 a draw costs at most "
            + ", ".join(f"{value:.2f}·ρ (ρ = {rho:g})" for rho, value in share.items()),
            verdict=verdict(bool((share < 1).all())),
            why="It does if only the draw is published. Whoever publishes the posterior itself publishes the counts.",
        )
    ]
