"""What one Dirichlet draw costs by the bounds of all papers, and what synthetic records of such a draw cost.

Left: the same draw of weight 1 over three cells, priced exactly, by Theorem 2 of [tCDP], by equation (10) of [RDP] at
its best order, and by the bound of Gohari et al. for vectors on the simplex. Right: m synthetic records as in the maps
of commuters of Machanavajjhala et al.: their pure price ln(1 + m/α), which is exact; the exact price at δ; and that of
publishing the draw itself, which covers any number of records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpbayes import Dirichlet, Unit
from dpbayes.mechanisms import PseudoRecords
from dpbayes.papers import tcdp
from dpbayes.papers.related import commuters_prior, simplex_epsilon
from dpbayes.schema import Adjacency
from experiments import style
from experiments.lab import Claim, verdict

PAPER = "[RDP]"
TITLE = "Section 1.2: related mechanisms"
UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)
LINES = {
    "simplex": ("Gohari et al.", style.GREEN),
    "rdp": ("[RDP], best order", style.ORANGE),
    "tcdp": ("[tCDP], Theorem 2", "#a33e00"),
    "exact": ("dpbayes: exact", style.BLUE),
}


def tasks(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    draws = [{"concentration": alpha, "drawn": 0} for alpha in settings["concentrations"]]
    return draws + [{"concentration": settings["commuters_concentration"], "drawn": m} for m in settings["drawn"]]


def measure(task: Mapping[str, Any], settings: Mapping[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    alpha, weight, delta = task["concentration"], settings["weight"], settings["delta"]
    made = Dirichlet(weight=weight, concentration=alpha, unit=UNIT)
    row = {"exact": made.epsilon(delta)}
    if task["drawn"]:
        records = PseudoRecords.of(made, task["drawn"])
        row |= {"pure": records.renyi(np.inf), "synthetic": records.epsilon(delta)}
        row |= {"theirs": float(np.log1p(task["drawn"] / alpha))}
        return [row | {"prior again": float(commuters_prior(drawn=task["drawn"], epsilon=row["theirs"]))}]
    shape = {"r": weight, "alpha": alpha, "delta": delta}
    row |= {"rdp": made.published().epsilon(delta), "tcdp": tcdp.theorem_2(**shape).printed}
    return [row | {"simplex": float(simplex_epsilon(**shape, d=settings["cells"], N=settings["records"]))}]


def draw(rows: pd.DataFrame, settings: Mapping[str, Any]) -> Figure:
    figure, axes = style.panels(2, width=4.6, height=3.4)
    left, right = axes[0]
    draws, synthetic = rows[rows["drawn"] == 0], rows[rows["drawn"] > 0]
    for name, (label, colour) in LINES.items():
        left.plot(draws["concentration"], draws[name], color=colour, label=label)
    left.set(xscale="log", yscale="log", xlabel="concentration α", ylabel="ε at δ = 10⁻⁵", title="one draw")
    right.plot(synthetic["drawn"], synthetic["pure"], color=style.GREEN, label="synthetic records, pure")
    right.plot(synthetic["drawn"], synthetic["synthetic"], color=style.BLUE, label="the same, exact at δ")
    right.axhline(synthetic["exact"].iloc[0], color=style.BLACK, linestyle="--", label="the draw itself, at δ")
    right.set(xscale="log", yscale="log", xlabel="synthetic records m", title="α = 10")
    for panel in (left, right):
        style.plain_log(panel)
        panel.legend(fontsize=7)
    return figure


def claims(rows: pd.DataFrame, settings: Mapping[str, Any]) -> list[Claim]:
    draws, synthetic = rows[rows["drawn"] == 0], rows[rows["drawn"] > 0]
    times = draws["simplex"] / draws["exact"]
    growing = bool(synthetic["pure"].is_monotonic_increasing)
    meet = int(synthetic.loc[synthetic["pure"] > synthetic["exact"], "drawn"].min())
    return [
        Claim(
            where="Section 1.2, on Gohari et al. (2021)",
            says="Their guarantee needs numerical integration and optimisation over the simplex; the Rényi one is "
            "simpler.",
            measured=f"with a union bound in place of the integral it is a formula, and {times.min():.1f} to "
            f"{times.max():.1f} times the exact ε; the Rényi bound {(draws['rdp'] / draws['exact']).min():.2f} to "
            f"{(draws['rdp'] / draws['exact']).max():.2f} times",
            verdict=verdict(bool((draws["rdp"] < draws["simplex"]).all())),
            why="Simpler, and much closer to the truth.",
        ),
        Claim(
            where="Section 1.2, on Machanavajjhala et al. (2008)",
            says="The ε of synthetic records grows with their number, that of the draw does not.",
            measured=f"pure ε {synthetic['pure'].iloc[0]:.3f} for one record to {synthetic['pure'].iloc[-1]:.2f} for "
            f"{settings['drawn'][-1]:,}; the draw costs {synthetic['exact'].iloc[0]:.3f} at δ = 10⁻⁵, less than the "
            f"pure price from {meet} records on",
            verdict=verdict(growing),
            why="At the same δ, synthetic records never cost more than the draw: exactly priced they cost "
            f"{synthetic['synthetic'].iloc[-1]:.3f} at most.",
        ),
        Claim(
            where="Machanavajjhala et al. (2008), ours beside it",
            says="Their price of synthetic records, ln(1 + m/α), is exact.",
            measured="largest difference to the dominating pair "
            f"{(synthetic['pure'] - synthetic['theirs']).abs().max():.0e}",
            verdict=verdict(bool((synthetic["pure"] - synthetic["theirs"]).abs().max() < 1e-9)),
            ours=True,
        ),
    ]
