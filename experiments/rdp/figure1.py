"""The trigamma function ψ′, which sets the price of a Dirichlet draw, between its two bounds.

All of the paper's privacy bounds are ψ′ at some point: about 1/x² for small arguments and 1/x for large ones. Beside
the figure the facts about ψ and ψ′ that its proofs use are checked on a grid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import digamma, polygamma

from dpbayes.privacy.bounds import trigamma
from experiments import style
from experiments.lab import Claim, verdict

PAPER = "[RDP]"
TITLE = "Figure 1: the trigamma function"


def tasks(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{}]


def measure(task: Mapping[str, Any], settings: Mapping[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    return [
        {
            "x": x,
            "trigamma": trigamma(x),
            "lower": 1 / x + 1 / (2 * x**2),
            "upper": 1 / x + 1 / x**2,
            "slope": float(polygamma(2, x)),
            "curvature": float(polygamma(3, x)),
            "digamma": float(digamma(x)),
        }
        for x in np.geomspace(settings["lowest"], settings["highest"], settings["points"])
    ]


def draw(rows: pd.DataFrame, settings: Mapping[str, Any]) -> Figure:
    figure, axes = style.panels(2)
    plain, relative = axes[0]
    shown = rows[(rows["x"] >= 0.2) & (rows["x"] <= 5)]
    plain.plot(shown["x"], shown["trigamma"], color=style.ORANGE)
    plain.set(xlabel="x", ylabel="ψ′(x)", title="ψ′, as in the paper", ylim=(0, None))
    for column, colour, label in (
        ("upper", style.GREEN, "upper bound 1/x + 1/x²"),
        ("trigamma", style.ORANGE, "ψ′"),
        ("lower", style.BLUE, "lower bound 1/x + 1/2x²"),
    ):
        relative.plot(rows["x"], rows[column] * rows["x"], color=colour, label=label)
    relative.set(xlabel="x", ylabel="x · value", xscale="log", yscale="log", title="equation (4), times x")
    relative.legend()
    return figure


def claims(rows: pd.DataFrame, settings: Mapping[str, Any]) -> list[Claim]:
    grid = f"on {len(rows)} points from {rows['x'].min():g} to {rows['x'].max():g}"
    value, x = rows["trigamma"], rows["x"]
    shape = (value > 0).all() and (rows["slope"] < 0).all() and (rows["curvature"] > 0).all()
    between = ((rows["lower"] < value) & (value < rows["upper"])).all()
    small, large = (value * x**2).iloc[0], (value * x).iloc[-1]
    beyond_half = rows[x > 0.5]
    bounded = (np.log(beyond_half["x"] - 0.5) < beyond_half["digamma"]) & (
        beyond_half["digamma"] < np.log(beyond_half["x"])
    )
    return [
        Claim(
            where="Section 2.3, equation (4)",
            says="ψ′(x) lies between 1/x + 1/2x² and 1/x + 1/x².",
            measured=f"{'holds' if between else 'fails'} {grid}",
            verdict=verdict(between),
        ),
        Claim(
            where="Section 2.3",
            says="ψ′ behaves like 1/x² near zero and like 1/x far out.",
            measured=f"x²ψ′ = {small:.4f} at x = {x.iloc[0]:g}; xψ′ = {large:.4f} at x = {x.iloc[-1]:g}",
            verdict=verdict(abs(small - 1) < 0.01 and abs(large - 1) < 0.01),
        ),
        Claim(
            where="Section 2.3",
            says="ψ increases and is concave; ψ′ is positive, convex and decreasing.",
            measured=f"ψ′ > 0, ψ″ < 0 and ψ‴ > 0 {'hold' if shape else 'fail'} {grid}",
            verdict=verdict(shape),
        ),
        Claim(
            where="Appendix D",
            says="The proof of privacy calls ψ′ increasing.",
            measured=f"ψ″ > 0 at {int((rows['slope'] > 0).sum())} of {len(rows)} points",
            verdict=verdict((rows["slope"] > 0).all()),
            why="A slip of the pen: ψ′ decreases, as section 2.3 says and as the step needs.",
        ),
        Claim(
            where="Appendix E, equation (13)",
            says="ln(x − ½) < ψ(x) < ln x for x > ½.",
            measured=f"{'holds' if bounded.all() else 'fails'} at the {len(beyond_half)} points above ½",
            verdict=verdict(bool(bounded.all())),
        ),
    ]
