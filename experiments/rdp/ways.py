"""The ways that figures 3, 4 and 6 compare: how they are drawn, and their means."""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments import style
from experiments.lab import Claim, verdict

EXACT = ("exact shares", "not private")
"""Models without noise, the same at every ε."""

SMALL = {"markersize": 3, "linewidth": 1.1, "capsize": 1.5}
DRAWN = {
    "paper gaussian": {"label": "Gaussian, as in the paper"} | SMALL,
    "paper laplace": {"label": "Laplace, as in the paper"} | SMALL,
    "exact draw": {"label": "draw, exact accounting, tuned"} | SMALL,
    "fair laplace": {"label": "Laplace, clipped and smoothed"} | SMALL,
    "fair gaussian": {"label": "Gaussian, clipped and smoothed"} | SMALL,
    "paper": {"label": "paper: Algorithm 1, one draw"} | SMALL,
    "dpbayes": {"label": "dpbayes"} | SMALL,
}
LINES = {
    "exact shares": {"color": style.GREY, "linestyle": ":", "label": "class shares only, no noise"},
    "not private": {"color": style.BLACK, "linestyle": "--", "label": "naive Bayes, no noise"},
}


def means(rows: pd.DataFrame, way: str, column: str) -> pd.DataFrame:
    """Means over repetitions, data sets × ε."""
    return rows[rows["way"] == way].pivot_table(index="dataset", columns="epsilon", values=column)


def exact_means(rows: pd.DataFrame, way: str, column: str) -> pd.Series:
    """Means over repetitions of a model without noise."""
    return rows[rows["way"] == way].groupby("dataset")[column].mean()


def ratios(rows: pd.DataFrame, way: str, column: str = "cross_entropy") -> pd.Series:
    """For each ε the geometric mean over data sets of the ratio to the paper's."""
    paper = means(rows, "paper", column)
    ours = exact_means(rows, way, column) if way in EXACT else means(rows, way, column)
    return np.exp(np.log(paper.rdiv(ours, axis=0) if way in EXACT else ours / paper).mean())


def same_guarantee(rows: pd.DataFrame, where: str, remark: str = "") -> Claim:
    """What the paper's mechanisms really spend, as a claim."""
    spent = rows.dropna(subset="spent").groupby("way")["spent"].agg(["min", "max"])
    parts = {way: f"{low:.2f} to {high:.2f}" for way, low, high in spent.itertuples()}
    return Claim(
        where=where,
        says="The three mechanisms are compared at the same privacy guarantee.",
        measured=f"part of ε that is really spent: Gaussian {parts['paper gaussian']}, Dirichlet {parts['paper']}, "
        f"Laplace {parts['paper laplace']}",
        verdict=verdict(bool((spent["min"] > 0.99).all())),
        why="Laplace noise of scale √(2λk/ε) for k tables is made for one cell that moves by two; a replaced record "
        "moves two cells by one and costs half of that. Fair Laplace noise is calibrated exactly." + remark,
    )
