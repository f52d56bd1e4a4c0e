"""Four mechanisms side by side: global, local and smooth sensitivity, and Laplace noise.

Boxes over 1000 runs from quartile to quartile with the median, whiskers over the whole range; diamonds are exact
expectations over all candidates. In the last panel the distance is ℓ₁ between parameters. The local variant protects
nobody. The data are balanced, which is our choice: the text does not have them. Ours beside them: the Hellinger
mechanism certified (two cells) or proved (three), and Laplace noise that is fair (two cells: scale 1/ε; three: on all
counts, with the noise-aware estimate, 100 runs).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpbayes.hellinger import calibration
from dpbayes.hellinger.baselines import PosteriorLaplace
from dpbayes.hellinger.candidates import all_tables
from dpbayes.hellinger.distance import hellinger
from dpbayes.hellinger.mechanism import expected, published_smoothing
from dpbayes.hellinger.sensitivity import global_sensitivity, local_sensitivity, smooth_sensitivity
from experiments import style
from experiments.hellinger import contenders
from experiments.lab import Claim, Verdict, verdict

PAPER = "[H-notes]"
TITLE = "Figures 2 to 4: four mechanisms, by Hellinger distance and by ℓ₁"
LINES = {
    "global": ("not private", "global"),
    "smooth": ("paper", "smooth\n(paper)"),
    "local": ("not private", "local\n(no privacy)"),
    "paper laplace": ("paper laplace", "Laplace\n(paper)"),
    "ours": ("dpbayes", "Hellinger,\n{ours}"),
    "fair laplace": ("fair laplace", "Laplace,\nfair"),
}


def tasks(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"figure": name} for name in settings["cases"]]


def measure(task: Mapping[str, Any], settings: Mapping[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    case = settings["cases"][task["figure"]]
    prior, n, epsilon, delta = tuple(case["prior"]), case["total"], case["epsilon"], case["delta"]
    counts = contenders.split(n, [1.0] * len(prior))
    target = {"prior": prior, "total": n, "epsilon": epsilon, "unit": contenders.UNIT}
    two = len(prior) == 2
    made = {
        "global": calibration.with_global(**target),
        "smooth": calibration.published(**target, delta=delta),
        "local": calibration.with_local(**target),
        "paper laplace": contenders.paper_laplace(prior, n, epsilon),
        "ours": (calibration.certified if two else calibration.proved)(**target, delta=delta),
    }
    if two:
        made["fair laplace"] = PosteriorLaplace.at(**target)
    common = {
        "global sensitivity": global_sensitivity(prior, n),
        "local sensitivity": local_sensitivity(prior, counts),
        "smooth sensitivity": smooth_sensitivity(prior, counts, made["smooth"].smoothing),
        "smoothing": made["smooth"].smoothing,
        "possible": _possible(case) if "smoothing" in case else -1,
    }
    rows = []
    for name, mechanism in made.items():
        released = np.array(prior) + mechanism.draw_many(counts, settings["runs"], rng)
        found = expected(mechanism, counts)
        exact = {"hellinger": found.hellinger, "l1": found.l1}
        rows += [{**row, "expected": exact[row["measure"]]} for row in _described(name, prior, counts, released)]
    if not two:
        noise = contenders.fair_laplace(epsilon)
        released = contenders.noise_aware(noise, prior, counts, settings["estimates"], rng)
        rows += [{**row, "expected": row["mean"]} for row in _described("fair laplace", prior, counts, released)]
    return [{**row, **common} for row in rows]


def _described(name: str, prior: tuple[float, ...], counts: np.ndarray, released: np.ndarray) -> list[dict[str, Any]]:
    distances = {
        "hellinger": contenders.distances(prior, counts, released),
        "l1": np.abs(released - np.array(prior) - counts).sum(axis=1),
    }
    return [{"method": name, "measure": key, **contenders.described(value)} for key, value in distances.items()]


def draw(rows: pd.DataFrame, settings: Mapping[str, Any]) -> Figure:
    shown = [(name, "hellinger") for name in settings["cases"]] + [("4", "l1")]
    figure, axes = style.panels(3, 2, width=4.4, height=3.3)
    places = np.arange(len(LINES))
    for panel, (name, distance) in zip(axes.flat, shown, strict=True):
        found = rows[(rows["figure"] == name) & (rows["measure"] == distance)].set_index("method")
        for place, (method, (like, _)) in zip(places, LINES.items(), strict=True):
            style.boxes(
                panel, [place], found.loc[[method]], like, width=0.6, alpha=0.4 if like == "not private" else 0.75
            )
        panel.plot(
            places, found.loc[list(LINES), "expected"], color=style.BLACK, marker="D", linestyle="", markersize=3.5
        )
        case = settings["cases"][name]
        ours = "certified" if len(case["prior"]) == 2 else "proved"
        panel.set_xticks(places, [label.format(ours=ours) for _, label in LINES.values()], fontsize=7.5)
        title = f"{name}{'b' if distance == 'l1' else 'a' if name == '4' else ''}: "
        title += f"{'beta' if len(case['prior']) == 2 else 'DL'}({', '.join(f'{a:g}' for a in case['prior'])}), "
        panel.set_title(title + f"n = {case['total']}, ε = {case['epsilon']:g}")
        panel.set_ylabel("Hellinger distance" if distance == "hellinger" else "ℓ₁ distance")
    return figure


def claims(rows: pd.DataFrame, settings: Mapping[str, Any]) -> list[Claim]:
    table = rows.pivot(index=["figure", "measure"], columns="method", values="expected")
    h, l1 = (table.xs(name, level="measure") for name in ("hellinger", "l1"))
    numbers = rows.groupby("figure").first()
    printed = settings["printed"]["global_sensitivity"]
    prior = np.array(settings["cases"]["3a"]["prior"])
    outside = float(hellinger(prior, prior + np.array([1, -1, 0])))
    cases = {name: case for name, case in settings["cases"].items() if "smoothing" in case}
    theirs = {name: published_smoothing(0.8, 0.8, float(np.log(case["total"]))) for name, case in cases.items()}
    possible = {name: int(numbers.loc[name, "possible"]) for name in cases}
    right = all(abs(numbers.loc[name, "smoothing"] - case["smoothing"]) < 1e-6 for name, case in cases.items())
    same_order = bool((l1.loc["4", list(LINES)].rank() == h.loc["4", list(LINES)].rank()).all())
    ordered = bool((h["local"] <= h["smooth"] + 1e-9).all() and (h["smooth"] <= h["global"] + 1e-9).all())
    laplace = h["smooth"] / h["paper laplace"]
    fair = h["fair laplace"] / h["smooth"]
    return [
        Claim(
            where="Section 4.2, figures 2 and 3",
            says="The local sensitivity gives the smallest error, then the smooth one, then the global one.",
            measured="; ".join(
                f"{name}: {row['local']:.3f}, {row['smooth']:.3f}, {row['global']:.3f}" for name, row in h.iterrows()
            ),
            verdict=verdict(ordered),
            why="The text has no sentence about it; the definitions force it. The local variant protects nobody.",
        ),
        Claim(
            where="Section 4.2, figures 2 and 3",
            says="How the smooth variant compares with Laplace noise of scale 2/ε.",
            measured="Hellinger/Laplace " + ", ".join(f"{value:.2f} ({name})" for name, value in laplace.items()),
            verdict=Verdict.UNKNOWN,
            why="The answer is in the pictures only, and the data are not given. At balanced data Laplace noise is "
            f"nearer {'throughout' if (laplace > 1).all() else 'in part'}; fair Laplace noise has {fair.min():.2f} to "
            f"{fair.max():.2f} times the smooth variant's error.",
        ),
        Claim(
            where="Captions of figures 3 and 4",
            says=f"The global sensitivity under DL(7, 4, 5) is {printed}.",
            measured=f"{numbers.loc['3a', 'global sensitivity']:.6f}",
            verdict=verdict(abs(numbers.loc["3a", "global sensitivity"] - printed) < 1e-6),
            why=f"The printed number, {outside:.12f}, is the distance between (7, 4, 5) and (8, 3, 5): a step to a "
            "count of −1. It adds 3 % of noise and breaks nothing.",
        ),
        Claim(
            where="Captions of figures 3 and 4",
            says="γ is " + ", ".join(f"{case['smoothing']} ({name})" for name, case in cases.items()) + ".",
            measured="Theorem 4.1 with |R| candidates: "
            + ", ".join(f"{numbers.loc[name, 'smoothing']:.4f} ({name})" for name in cases)
            + "; with n in place of |R|: "
            + ", ".join(f"{value:.13f} ({name})" for name, value in theirs.items()),
            verdict=verdict(right),
            why="They took n for the number of candidates, which three cells make much larger; the caption of figure 4 "
            "repeats the γ of n = 120 for n = 150.",
        ),
        Claim(
            where="Captions of figures 3 and 4",
            says="Local and smooth sensitivity are "
            + ", ".join(f"{case['local']:g} and {case['smooth']:g} ({name})" for name, case in cases.items())
            + ".",
            measured="balanced data: "
            + ", ".join(
                "{:.4f} and {:.4f} ({})".format(*numbers.loc[name, ["local sensitivity", "smooth sensitivity"]], name)
                for name in cases
            )
            + "; tables that have the printed pair, to one unit of the last digit: "
            + ", ".join(f"{count} ({name})" for name, count in possible.items()),
            verdict=Verdict.UNKNOWN if all(possible.values()) else Verdict.DIFFERS,
            why="The data are not given"
            + (
                "."
                if all(possible.values())
                else "; no table has the pairs of which none is found, with the γ printed."
            ),
        ),
        Claim(
            where="Section 4.3, figure 4",
            says="The same comparison by ℓ₁ distance.",
            measured=f"expected ℓ₁: global {l1.loc['4', 'global']:.1f}, smooth {l1.loc['4', 'smooth']:.1f}, local "
            f"{l1.loc['4', 'local']:.1f}, Laplace {l1.loc['4', 'paper laplace']:.1f}, noise-aware "
            f"{l1.loc['4', 'fair laplace']:.1f}",
            verdict=verdict(same_order),
            why="The text draws no conclusion; agrees means here that the mechanisms come in the same order as by "
            "Hellinger distance.",
        ),
    ]


def _possible(case: Mapping[str, Any]) -> int:
    """How many tables have both printed sensitivities, to one unit of the last digit, with the printed γ."""
    prior = tuple(case["prior"])
    unit = {name: 10.0 ** -len(str(case[name]).split(".")[1]) for name in ("local", "smooth")}
    found = 0
    for counts in all_tables(case["total"], len(prior)):
        if abs(local_sensitivity(prior, counts) - case["local"]) <= unit["local"]:
            found += abs(smooth_sensitivity(prior, counts, case["smoothing"]) - case["smooth"]) <= unit["smooth"]
    return int(found)
