"""How many records the paper's formulas ask for, and how many it takes.

Left, equation (12): until the expected KL divergence between Dirichlet(x + 1) and the private posterior is below half
a nat, for an uneven table of ten cells. Middle and right, equations (14) and (15): until no share is off by more than
0.05 but with probability 0.05, against ρ and against the number of cells. The paper states orders of growth; its
formulas are drawn with the constant 1. "It takes" is exact: the sum over all tables, the beta law of the worst share
at the worst distribution (all records in one cell), the quantile of the Gaussian noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpbayes import TCDP, Unit
from dpbayes.mechanisms import ConcentrationCurve
from dpbayes.papers import tcdp
from dpbayes.schema import Adjacency
from experiments import style
from experiments.lab import Claim, verdict

PAPER = "[tCDP]"
TITLE = "Sample sizes (12), (14) and (15)"
UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)


def tasks(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    kl = [{"part": "kl", "table": name, "rho": rho} for name in ("even", "uneven") for rho in settings["kl_rhos"]]
    linf = [{"part": "rho", "cells": settings["cells"], "rho": rho} for rho in settings["linf_rhos"]]
    return (
        kl
        + linf
        + [{"part": "cells", "cells": cells, "rho": settings["rho_of_dimensions"]} for cells in settings["dimensions"]]
    )


def measure(task: Mapping[str, Any], settings: Mapping[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    return _for_kl(task, settings) if task["part"] == "kl" else _for_linf(task, settings)


def _for_kl(task: Mapping[str, Any], settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    rho, d, error = task["rho"], settings["cells"], settings["kl_error"]
    p = np.full(d, 1.0 / d) if task["table"] == "even" else 1.0 / np.arange(1, d + 1)
    p /= p.sum()
    target = TCDP(rho=rho, omega=1.0 + settings["kl_gamma"])
    published, exact = (
        max(ConcentrationCurve(target=target, unit=UNIT, accounting=accounting).concentration(1.0), 1.0)
        for accounting in ("published", "exact")
    )
    high = published - settings["kl_gamma"] > 1.0

    def until(which: str, alpha: float) -> int:
        return _first(lambda n: getattr(tcdp.theorem_3(p, N=n, alpha=1.0, alpha_prime=alpha), which) <= error)

    return [
        {
            "high privacy": high,
            "formula": float(tcdp.sample_size_kl(p, epsilon=error, rho_prime=rho, high_privacy=high)),
            "bound": until("printed", published),
            "needed": until("exact", published),
            "needed, exact": until("exact", exact),
            "alpha": published,
        }
    ]


def _for_linf(task: Mapping[str, Any], settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    rho, d, error, failure = task["rho"], task["cells"], settings["linf_error"], settings["failure"]
    gamma = settings["linf_gamma"]
    target = TCDP(rho=rho, omega=1.0 + gamma)
    published, exact = (
        ConcentrationCurve(target=target, unit=UNIT, accounting=accounting).concentration(1.0)
        for accounting in ("published", "exact")
    )
    worst = np.eye(d)[0]
    high = published - gamma > 1.0

    def drawn(n: int, alpha: float) -> float:
        return float(tcdp.theorem_4(n * worst, alpha=alpha, beta=failure).upper)

    def noisy(n: int) -> Any:
        return tcdp.equation_16(d=d, N=n, rho=rho, beta=failure)

    formula = tcdp.equation_14 if high else tcdp.equation_15
    return [
        {
            "high privacy": high,
            "formula": float(formula(d=d, beta=failure, epsilon=error, rho=rho, gamma=gamma)),
            "bound": tcdp.sample_size(d=d, beta=failure, epsilon=error, alpha=published).printed,
            "needed": _first(lambda n: drawn(n, published) <= error),
            "needed, exact": _first(lambda n: drawn(n, exact) <= error),
            "gaussian bound": _first(lambda n: noisy(n).printed <= error),
            "gaussian": _first(lambda n: noisy(n).exact <= error),
        }
    ]


def _first(enough: Callable[[int], bool]) -> int:
    """The smallest number of records that is enough, for a condition that stays true."""
    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def draw(rows: pd.DataFrame, settings: Mapping[str, Any]) -> Figure:
    figure, axes = style.panels(3, width=4.0, height=3.4)
    kl = rows[rows["part"] == "kl"]
    lines = (
        ("formula", "paper", {"linestyle": ":", "marker": "", "label": "formula, constant 1"}),
        ("bound", "paper", {"linestyle": "--", "marker": "", "label": "the theorem behind it"}),
        ("needed", "paper", {"label": "it takes"}),
        ("needed, exact", "dpbayes", {"label": "it takes, prior by exact accounting"}),
        ("gaussian", "fair gaussian", {"label": "it takes, Gaussian noise"}),
    )
    for name, method, options in lines[:-1]:
        found = kl[kl["table"] == "uneven"]
        style.curve(axes[0, 0], found["rho"], found[name], method, **options)
    axes[0, 0].set(xlabel="ρ", ylabel="records N", title=f"(12): KL ≤ {settings['kl_error']:g} nats, d = 10, uneven")
    for panel, part, x in ((axes[0, 1], "rho", "rho"), (axes[0, 2], "cells", "cells")):
        found = rows[rows["part"] == part]
        for name, method, options in lines:
            style.curve(panel, found[x], found[name], method, **options)
    axes[0, 1].set(xlabel="ρ", title=f"(14), (15): error ≤ {settings['linf_error']:g}, d = {settings['cells']}")
    axes[0, 2].set(
        xlabel="cells d", title=f"(14): error ≤ {settings['linf_error']:g}, ρ = {settings['rho_of_dimensions']:g}"
    )
    for panel in axes[0]:
        panel.set(xscale="log", yscale="log")
    style.shared_legend(figure, axes[0, 1], columns=5)
    return figure


def claims(rows: pd.DataFrame, settings: Mapping[str, Any]) -> list[Claim]:
    kl = rows[rows["part"] == "kl"]
    uneven, even = (kl[kl["table"] == name].set_index("rho") for name in ("uneven", "even"))
    high, low = kl[kl["high privacy"]], kl[~kl["high privacy"]]
    steep = _slope(high[high["table"] == "uneven"].nsmallest(3, "rho"), "rho", "needed")
    tightness = kl["bound"] / kl["needed"]
    linf, cells = rows[rows["part"] == "rho"], rows[rows["part"] == "cells"]
    private, loose = linf[linf["high privacy"]], linf[~linf["high privacy"]]
    gain = pd.concat([linf, cells])
    more = gain["needed"] / gain["gaussian"]
    loosest = low["formula"] / low["needed"]
    return [
        Claim(
            where="Theorem 3, equation (10)",
            says="The expected KL divergence is below G(p)·s²/(N + 1).",
            measured=f"the bound asks for {_range(tightness)} times the records it takes",
            verdict=verdict(bool((tightness >= 1).all())),
        ),
        Claim(
            where="Section 4.1, equation (12)",
            says="With much privacy the records needed grow like 1/ρ².",
            measured=f"exponent {steep:.2f} at the smallest ρ; (12) with the constant 1 is "
            f"{_range(high['formula'] / high['needed'])} times what it takes",
            verdict=verdict(abs(steep + 2.0) < 0.25),
            why="Section 4.1 leaves out the ½ of Theorem 1, a factor of 4 in (12).",
        ),
        Claim(
            where="Section 4.1",
            says="With little privacy they grow like 1/ρ.",
            measured=f"the formula asks for {_range(loosest)} times what it takes",
            verdict=verdict(bool(loosest.max() < 10)),
            why="An upper bound only: the private prior meets the base prior 1 at a finite ρ, and from there on one "
            "record is enough.",
        ),
        Claim(
            where="Section 4.1",
            says="Uneven tables, with a larger G(p), need more records.",
            measured=f"uneven/even {_range(uneven['needed'] / even['needed'])}",
            verdict=verdict(bool((uneven["needed"] >= even["needed"]).all())),
        ),
        Claim(
            where="Section 4.2, equation (14)",
            says="With much privacy ℓ∞ error asks for records in proportion to d and to 1/ρ.",
            measured=f"exponents {_slope(cells, 'cells', 'needed'):.2f} in d and "
            f"{_slope(private.nsmallest(3, 'rho'), 'rho', 'needed'):.2f} in ρ; (14) is "
            f"{_range(private['formula'] / private['needed'])} times what it takes at the worst distribution",
            verdict=verdict(abs(_slope(private.nsmallest(3, "rho"), "rho", "needed") + 1) < 0.15),
        ),
        Claim(
            where="Section 4.2, equation (15)",
            says="With little privacy the prior is worth Δ₂/√(2ρ) + γ records a cell.",
            measured=f"(15) is {_range(loose['formula'] / loose['needed'])} times what it takes",
            verdict=verdict(bool((loose["formula"] >= loose["needed"]).all())),
            why="γ soon outweighs the other term, so N stops falling: with γ = 1 the prior never comes below 1.",
        ),
        Claim(
            where="Section 4.2, inequality (17)",
            says="Gaussian noise needs fewer records for the same ℓ∞ error in both regimes.",
            measured=f"the draw takes {_range(more)} times as many",
            verdict=verdict(bool((more > 1).all())),
            why="At the worst distribution, and with raw noise on the shares; see figure 2 for typical tables.",
        ),
    ]


def _slope(rows: pd.DataFrame, x: str, y: str) -> float:
    return float(np.polyfit(np.log(rows[x]), np.log(rows[y]), 1)[0])


def _range(values: pd.Series) -> str:
    return " to ".join(f"{value:.0f}" if value >= 100 else f"{value:.2g}" for value in (values.min(), values.max()))
