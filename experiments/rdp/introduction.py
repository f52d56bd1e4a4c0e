"""The same noise on two distributions: harmless for p, fatal for q.

Adding z = (−0.1, 0.1) hardly changes p = (0.5, 0.5); in q = (0.1, 0.9) it empties the first category, and the
Kullback–Leibler divergence is infinite. [RDP] concludes that additive noise does not suit this measure. What it shows
is that *clipped* noise does not: the estimate of dpbayes from the same noisy counts is never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import rel_entr

from experiments import style
from experiments.lab import Claim, verdict

PAPER = "[RDP]"
TITLE = "Introduction: 0.009 and ∞"


def tasks(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"distribution": name} for name in settings["distributions"]]


def measure(task: Mapping[str, Any], settings: Mapping[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    truth = np.array(settings["distributions"][task["distribution"]])
    noisy = np.round(truth + settings["z"], 12)
    return [{"nats": float(rel_entr(truth, noisy).sum())}]


def draw(rows: pd.DataFrame, settings: Mapping[str, Any]) -> Figure:
    figure, axes = style.panels(len(rows), width=3.2, height=2.8, sharey=True)
    for panel, row in zip(axes[0], rows.itertuples(), strict=True):
        truth = np.array(settings["distributions"][row.distribution])
        panel.bar(np.arange(2) - 0.2, truth, width=0.4, color=style.BLACK, label="truth")
        panel.bar(np.arange(2) + 0.2, truth + settings["z"], width=0.4, color=style.ORANGE, label="truth + noise")
        panel.set_xticks([0, 1], ["category 1", "category 2"])
        divergence = f"{row.nats:.4f} nats" if np.isfinite(row.nats) else "∞"
        panel.set_title(f"{row.distribution}: KL = {divergence}")
    axes[0, 0].set_ylabel("share")
    style.shared_legend(figure, axes[0, 0])
    return figure


def claims(rows: pd.DataFrame, settings: Mapping[str, Any]) -> list[Claim]:
    p, q = (rows.set_index("distribution").loc[name, "nats"] for name in "pq")
    decimal = p / np.log(10)
    return [
        Claim(
            where="Section 1",
            says="KL(p ‖ p + z) is about 0.009.",
            measured=f"{p:.4f} nats; {decimal:.4f} with logarithms to base 10",
            verdict=verdict(round(decimal, 3) == 0.009),
            why="The paper's number is in decimal logarithms; all its formulas are in natural ones.",
        ),
        Claim(where="Section 1", says="KL(q ‖ q + z) is infinite.", measured=str(q), verdict=verdict(q == np.inf)),
    ]
