"""The Dirichlet mechanism is not ε-differentially private for any ε: its privacy loss has no upper end.

Left: the log-ratio of the densities at y for two tables that differ by one record, as a cell of y goes to zero. Right:
the exact ε that a draw costs for smaller and smaller δ; a pure guarantee would level off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import beta

from dpbayes import Dirichlet, Laplace, PureDP, Unit, calibrate
from dpbayes.base.errors import TargetUnreachable
from dpbayes.mechanisms.tuning import dirichlet_at_weight
from dpbayes.schema import Adjacency
from experiments import style
from experiments.lab import Claim, verdict

PAPER = "[RDP]"
TITLE = "Proposition 3: no pure differential privacy"
UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)


def tasks(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"weight": weight} for weight in settings["weights"]]


def measure(task: Mapping[str, Any], settings: Mapping[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    weight, alpha = task["weight"], settings["concentration"]
    made = Dirichlet(weight=weight, concentration=alpha, unit=UNIT)
    scale = 2.0 / made.epsilon(settings["compared_at"])
    rows: list[dict[str, Any]] = []
    for power in settings["powers"]:
        share, delta = 10.0**-power, 10.0**-power
        loss = beta.logpdf(share, alpha, alpha) - beta.logpdf(share, alpha + weight, alpha)
        noise = Laplace(scale=scale, unit=UNIT)
        rows.append(
            {
                "power": power,
                "loss": float(loss),
                "epsilon": made.epsilon(delta),
                "laplace": noise.epsilon(delta),
                "laplace_pure": noise.renyi(np.inf),
            }
        )
    return [{**row, "pure_refused": _refused(weight)} for row in rows]


def _refused(weight: float) -> bool:
    """Whether dpbayes finds no concentration that makes a draw of this weight purely private."""
    try:
        calibrate(dirichlet_at_weight(weight, UNIT), PureDP(epsilon=1000.0))
    except TargetUnreachable:
        return True
    return False


def draw(rows: pd.DataFrame, settings: Mapping[str, Any]) -> Figure:
    figure, axes = style.panels(2, width=4.4)
    loss, cost = axes[0]
    for colour, (weight, part) in zip((style.ORANGE, style.BLUE, style.GREEN), rows.groupby("weight"), strict=True):
        loss.plot(part["power"], part["loss"], color=colour, label=f"Dirichlet, r = {weight:g}")
        cost.plot(part["power"], part["epsilon"], color=colour, label=f"Dirichlet, r = {weight:g}")
        cost.plot(part["power"], part["laplace"], color=colour, linestyle="--", label=f"Laplace, like r = {weight:g}")
    for panel in axes[0]:
        panel.set(xscale="log", yscale="log")
    loss.set(xlabel="−log₁₀ of the share y₁", ylabel="log-ratio of densities", title="privacy loss at y")
    cost.set(xlabel="−log₁₀ δ", ylabel="exact ε", title=f"exact (ε, δ), α = {settings['concentration']:g}")
    style.shared_legend(figure, cost, columns=3)
    return figure


def claims(rows: pd.DataFrame, settings: Mapping[str, Any]) -> list[Claim]:
    groups = rows.groupby("weight")
    growth = groups.apply(lambda part: float(np.polyfit(part["power"] * np.log(10), part["loss"], 1)[0]))
    unbounded = groups.apply(lambda part: bool((part["epsilon"].diff().iloc[1:] > 0).all()))
    last = rows[rows["power"] == rows["power"].max()].set_index("weight")
    return [
        Claim(
            where="Appendix A, Proposition 3",
            says="A draw from Dirichlet(r·f(x) + α) is not ε-differentially private for any ε.",
            measured="exact ε at δ = 10^−{:.0f}: {}; still growing for {} of {} weights".format(
                rows["power"].max(),
                ", ".join(f"{row.epsilon:.1f} (r = {weight:g})" for weight, row in last.iterrows()),
                int(unbounded.sum()),
                len(unbounded),
            ),
            verdict=verdict(bool(unbounded.all() and rows["pure_refused"].all())),
            why="dpbayes refuses a pure target for this mechanism. Laplace noise of the same ε at "
            f"δ = {settings['compared_at']:g} levels off at its pure guarantee.",
        ),
        Claim(
            where="Appendix A, proof",
            says="The ratio of densities at y is a constant times 1/y₁.",
            measured="slope of the log-ratio against ln(1/y₁): "
            + ", ".join(f"{slope:.3f} (r = {weight:g})" for weight, slope in growth.items()),
            verdict=verdict(bool((abs(growth - 1) < 1e-3).all())),
            why="The exponent is the weight r: the ratio is a constant times y₁^−r. The printed form is the case r = "
            "1; the conclusion does not change.",
        ),
    ]
