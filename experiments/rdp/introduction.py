"""The same noise on two distributions: harmless for p, fatal for q.

Adding z = (−0.1, 0.1) hardly changes p = (0.5, 0.5); in q = (0.1, 0.9) it empties the first category, and the
Kullback–Leibler divergence is infinite. [RDP] concludes that additive noise does not suit this measure. What it shows
is that noisy counts should not be taken for the truth: the estimate of dpbayes reads the same noisy counts together
with the size of their noise, and is never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import rel_entr

from dpbayes import Gaussian, Unit
from experiments import style
from experiments.estimates import noise_aware
from experiments.lab import Claim, verdict

PAPER = "[RDP]"
TITLE = "Introduction: 0.009 and ∞"


def tasks(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"distribution": name} for name in settings["distributions"]]


def measure(task: Mapping[str, Any], settings: Mapping[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    truth, records = np.array(settings["distributions"][task["distribution"]]), settings["records"]
    noisy = np.round(truth + settings["z"], 12)
    sigma = records * float(np.sqrt(np.mean(np.square(settings["z"]))))
    mechanism = Gaussian(sigma=sigma, unit=Unit(adjacency="replace-one"))
    found = noise_aware(records * noisy, mechanism, records) / records
    return [
        {
            "nats": float(rel_entr(truth, noisy).sum()),
            "estimated": float(found[0]),
            "estimate_nats": float(rel_entr(truth, found).sum()),
        }
    ]


def draw(rows: pd.DataFrame, settings: Mapping[str, Any]) -> Figure:
    figure, axes = style.panels(len(rows), width=3.6, height=3.0, sharey=True)
    for panel, row in zip(axes[0], rows.itertuples(), strict=True):
        truth = np.array(settings["distributions"][row.distribution])
        found = (row.estimated, 1 - row.estimated)
        for position, (shares, colour, label) in enumerate(
            (
                (truth, style.BLACK, "truth"),
                (truth + settings["z"], style.ORANGE, "truth + noise"),
                (found, style.BLUE, "dpbayes, from truth + noise"),
            )
        ):
            panel.bar(np.arange(2) + 0.27 * (position - 1), shares, width=0.27, color=colour, label=label)
        panel.set_xticks([0, 1], ["category 1", "category 2"])
        divergence = f"{row.nats:.4f}" if np.isfinite(row.nats) else "∞"
        panel.set_title(f"{row.distribution}: KL = {divergence}, dpbayes {row.estimate_nats:.4f} nats")
    axes[0, 0].set_ylabel("share")
    style.shared_legend(figure, axes[0, 0])
    return figure


def claims(rows: pd.DataFrame, settings: Mapping[str, Any]) -> list[Claim]:
    table = rows.set_index("distribution")
    p, q = (table.loc[name, "nats"] for name in "pq")
    decimal = p / np.log(10)
    return [
        Claim(
            where="Section 1",
            says="KL(p ‖ p + z) is about 0.009.",
            measured=f"{p:.4f} nats; {decimal:.4f} with logarithms to base 10",
            verdict=verdict(round(p, 3) == 0.009),
            why="The paper's number is in decimal logarithms; all its formulas are in natural ones.",
        ),
        Claim(where="Section 1", says="KL(q ‖ q + z) is infinite.", measured=str(q), verdict=verdict(q == np.inf)),
        Claim(
            where="Section 1",
            says="So additive noise does not suit private minimisation of the KL divergence.",
            measured=f"estimated from the same noisy counts of {settings['records']} records: KL of "
            f"{table.loc['p', 'estimate_nats']:.4f} for p and {table.loc['q', 'estimate_nats']:.4f} nats for q",
            verdict=verdict(not np.isfinite(table["estimate_nats"]).all()),
            why="The example is about noisy counts taken as they are. A noise-aware estimate of the same release has "
            "no empty category.",
        ),
    ]
