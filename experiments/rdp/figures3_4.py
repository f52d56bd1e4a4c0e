"""Naive Bayes on eight data sets: test cross-entropy (Figure 3) and accuracy (Figure 4) against ε, at Rényi order 5.

The paper gives ε/(K+1) to each table and takes one Dirichlet draw, or noisy counts clipped at almost zero. Beside it,
at the same budget: the same draw with exact accounting and tuned parameters; fair Gaussian and Laplace noise,
calibrated exactly, clipped at zero and smoothed by one standard deviation; and dpbayes as it comes: Gaussian noise,
budget by the sizes of the tables, noise-aware estimate, and a tenth of the budget to temper the likelihood where public
numbers say that it helps. What the authors' public runs did otherwise is shown below, as they ran it.

Curves are means over random 70/30 splits, bars two standard errors. Bins are quantiles of the training part and
categories those that occur, as in the paper; see Table 1 for what that does to the promise.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpbayes import RDP, Curator, Gaussian, calibrate
from dpbayes.base.errors import MeaninglessBudget
from dpbayes.jobs import Fit
from dpbayes.mechanisms.tuning import gaussian_noise
from dpbayes.models.naive_bayes import NaiveBayes
from dpbayes.tables.engine import CodedTable
from experiments import style
from experiments.estimates import clip_and_smooth
from experiments.lab import Claim, Verdict, verdict
from experiments.rdp import noise, ways
from experiments.rdp.noise import AUTHORS_PRIOR
from experiments.rdp.splits import CLASS, TITLES, UNIT, Split, split
from experiments.rdp.ways import DRAWN, LINES, exact_means, means, ratios

PAPER = "[RDP]"
TITLE = "Figures 3 and 4: naive Bayes"

OURS = {
    "paper": {"single_draw": True, "accounting": "published", "tempered": False},
    "exact draw": {"single_draw": True, "tempered": False},
    "untempered": {"tempered": False},
    "dpbayes": {},
}
"""Settings of the classifier for each way."""


def tasks(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"dataset": name, "repetition": repetition}
        for repetition in range(settings["repetitions"])
        for name in settings["datasets"]
    ]


def measure(task: Mapping[str, Any], settings: Mapping[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    data = split(task["dataset"], task["repetition"])
    counts = _counts(data)
    rows: list[dict[str, Any]] = []
    spent: dict[str, float] = {}

    def score(way: str, log_shares: np.ndarray, epsilon: float | None = None) -> None:
        scores = _scores(log_shares, data.test[CLASS])
        rows.append({"way": way, "epsilon": epsilon, "spent": spent.get(way), **scores})

    exact = noise.tables(counts, lambda table: clip_and_smooth(table, AUTHORS_PRIOR))
    score("exact shares", _predicted(exact[:1], data))
    score("not private", _predicted(exact, data))
    for epsilon in settings["epsilons"]:
        target = RDP(order=settings["order"], epsilon=epsilon)
        spent = noise.spent(target, len(counts), UNIT)
        for way, estimate in noise.baselines(target, len(counts), UNIT, rng).items():
            score(way, _predicted(noise.tables(counts, estimate), data), epsilon)
        alone: Gaussian = calibrate(gaussian_noise(UNIT), target)
        shares = clip_and_smooth(alone.draw(counts[0], rng), alone.sigma)
        score("shares", _predicted([shares], data), epsilon)
        for way, options in OURS.items():
            score(way, _classified(data, target, options, int(rng.integers(2**31))), epsilon)
    return rows


def _counts(data: Split) -> list[np.ndarray]:
    """The class table, then classes × values of every attribute."""
    schema = data.schema
    return [table.array for table in CodedTable(data.train).count(schema, NaiveBayes(target=CLASS).marginals(schema))]


def _predicted(shares: list[np.ndarray], data: Split) -> np.ndarray:
    """Log P(class | values) of the test records, by the class shares and as many attributes as there are tables."""
    prior, *tables = (np.log(table) for table in shares)
    joint = np.tile(prior, (len(data.test[CLASS]), 1))
    for name, table in zip(data.levels, tables, strict=False):  # the class is the last column
        joint += table.T[data.test[name]]
    return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)


def _classified(data: Split, target: RDP, options: Mapping[str, Any], seed: int) -> np.ndarray:
    """Log P(class | values) of the test records, by our classifier."""
    features = tuple(name for name in data.levels if name != CLASS)
    spec = NaiveBayes(CLASS, *features, single_draw=options.get("single_draw", False))
    rest = {name: option for name, option in options.items() if name != "single_draw"}
    job = Fit(model=spec, **rest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeaninglessBudget)  # the smallest budgets are meant to be
        schema = replace(data.schema, records_guess=len(data.train[CLASS]))
        curator = Curator(CodedTable(data.train), schema, seed=seed)
        model = spec.build(curator.release(job, target, estimates=False))
    return np.asarray(model.predict_log_proba({name: data.test[name] for name in features}))


def _scores(log_shares: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Cross-entropy, with the authors' 1e-20, and accuracy."""
    true = np.exp(log_shares[np.arange(len(labels)), labels])
    return {
        "cross_entropy": float(-np.log(true + 1e-20).mean()),
        "accuracy": float((log_shares.argmax(axis=1) == labels).mean()),
    }


def draw(rows: pd.DataFrame, settings: Mapping[str, Any]) -> Figure:
    figure, axes = style.panels(4, 4, width=2.65, height=2.35, sharex=True)
    for column, (start, label) in {"cross_entropy": (0, "cross-entropy (nats)"), "accuracy": (2, "accuracy")}.items():
        for panel, name in zip(axes[start : start + 2].flat, settings["datasets"], strict=True):
            part = rows[rows["dataset"] == name]
            for way, options in DRAWN.items():
                each = part[part["way"] == way].groupby("epsilon")[column]
                style.curve(panel, each.mean().index, each.mean(), way, 2 * each.sem(), **options)
            for way, options in LINES.items():
                panel.axhline(part.loc[part["way"] == way, column].mean(), zorder=1, **options)
            panel.set(xscale="log", title=TITLES[name])
            if column == "cross_entropy":
                style.plain_log(panel)
        for line in axes[start : start + 2]:
            line[0].set_ylabel(label)
    for panel in axes[-1]:
        panel.set_xlabel("ε at order 5")
    style.shared_legend(figure, axes[0, 0], columns=3)
    return figure


def _range(values: pd.Series) -> str:
    """What a quantity is at the smallest and at the largest ε."""
    return f"{values.iloc[0]:.2f} at ε = {values.index[0]:g}, {values.iloc[-1]:.2f} at ε = {values.index[-1]:g}"


def claims(rows: pd.DataFrame, settings: Mapping[str, Any]) -> list[Claim]:
    return [*_loss_claims(rows, settings), *_accuracy_claims(rows), ways.same_guarantee(rows, "Sections 1.1 and 5.1")]


def _loss_claims(rows: pd.DataFrame, settings: Mapping[str, Any]) -> list[Claim]:
    paper = means(rows, "paper", "cross_entropy")
    rivals = np.minimum(means(rows, "paper gaussian", "cross_entropy"), means(rows, "paper laplace", "cross_entropy"))
    wins, cases = int((paper < rivals).sum(axis=None)), paper.size
    lost = [
        f"{TITLES[name]} at ε = {at:g}"
        for name in paper.index
        for at in paper
        if paper.loc[name, at] >= rivals.loc[name, at]
    ]
    close = ["creditcard", "germancredit", "bank", "adult"]
    excess = paper.div(exact_means(rows, "not private", "cross_entropy"), axis=0).loc[close] - 1
    near = {
        TITLES[name]: next((at for at in excess.columns if (excess.loc[name, at:] < 0.1).all()), np.inf)
        for name in close
    }
    fair, fair_laplace = ratios(rows, "fair gaussian"), ratios(rows, "fair laplace")
    ours, drawn = ratios(rows, "dpbayes"), ratios(rows, "exact draw")
    behind = paper.gt(exact_means(rows, "exact shares", "cross_entropy"), axis=0).sum()
    return [
        Claim(
            where="Section 5.1, Figure 3",
            says="On all data sets the Dirichlet mechanism's cross-entropy is substantially below that of Gaussian and "
            "Laplace noise.",
            measured=f"below both in {wins} of {cases} cases (data set × ε); the better of the two is "
            f"{_range(np.exp(np.log(rivals / paper).mean()))} times the Dirichlet's (geometric mean)",
            verdict=verdict(wins >= 0.95 * cases),
            why=f"Not below: {', '.join(lost)}." if lost else "",
        ),
        Claim(
            where="Section 5.1, Figure 3",
            says="On CreditCard, GermanCredit, Bank and Adult it is remarkably close to the non-private model.",
            measured="within 10 % from ε = "
            + ", ".join(f"{at:g} ({name})" for name, at in near.items())
            + f" on; at the smallest ε up to "
            f"{100 * excess.iloc[:, 0].max():.0f} % above it",
            verdict=verdict(bool((excess < 0.1).all(axis=None))),
            why="An axis that has to hold the clipped baselines makes it look closer than it is. And close to the "
            "non-private model is not good: the paper's draw is worse than the class shares alone on "
            f"{behind.iloc[0]} of {len(paper)} data sets at the smallest ε and on {behind.iloc[-1]} at the largest. "
            "dpbayes tempers the likelihood and falls back to the class shares where noise or dependence hides the "
            "rest.",
        ),
        Claim(
            where="Section 5.1",
            says="For a small cross-entropy the Dirichlet mechanism is the attractive choice.",
            measured="geometric mean of the cross-entropy over that of the paper's draw: clipped and smoothed "
            f"Gaussian {_range(fair)}; Laplace {_range(fair_laplace)}; dpbayes {_range(ours)}",
            verdict=verdict(bool((fair > 1).all())),
            why="The conclusion depends on a weak baseline: clipping at 10⁻⁶ makes some test records almost "
            "impossible. One standard deviation added to each clipped cell is enough to turn the comparison around. "
            "A single draw with exact accounting, and a weight for each size of table, is ahead of the paper's at "
            f"{int((drawn <= 1).sum())} of {len(drawn)} ε ({_range(drawn)}).",
        ),
    ]


def _accuracy_claims(rows: pd.DataFrame) -> list[Claim]:
    paper = means(rows, "paper", "accuracy")
    rival = np.maximum(means(rows, "paper gaussian", "accuracy"), means(rows, "paper laplace", "accuracy"))
    as_good = (paper >= rival - 0.01).mean(axis=None)
    ours = (means(rows, "dpbayes", "accuracy") >= paper).mean(axis=None)
    adult = rows[(rows["way"] == "not private") & (rows["dataset"] == "adult")]["accuracy"]
    return [
        Claim(
            where="Section 5.1, Figure 4",
            says="In accuracy there is no clear winner; the Dirichlet mechanism does as well as the others in most "
            "cases.",
            measured=f"within one point of the better of the two, or ahead, in {100 * as_good:.0f} % of the cases",
            verdict=verdict(as_good > 0.5),
            why=f"dpbayes is at least as accurate as the paper's draw in {100 * ours:.0f} % of the cases.",
        ),
        _more_accurate(rows[(rows["dataset"] == "digit") & (rows["epsilon"] > 0.1)], "on Digit for ε > 0.1"),
        _more_accurate(rows[(rows["dataset"] == "adult") & (rows["epsilon"] < 0.1)], "on Adult for ε < 0.1"),
        _more_accurate(rows[rows["dataset"] == "bank"], "on Bank for all ε"),
        Claim(
            where="The authors' notebook, for Figure 4",
            says="Without privacy, naive Bayes reaches an accuracy of 0.8146 on Adult.",
            measured=f"{adult.mean():.4f}, with a standard deviation of {adult.std():.4f} over splits",
            verdict=verdict(abs(adult.mean() - 0.8146) < 2 * adult.std()),
            why="Their runs lose numeric test values in the lowest bin and those that do not occur in training; ours "
            "keep them.",
        ),
    ]


def _more_accurate(rows: pd.DataFrame, says: str) -> Claim:
    """Whether the Dirichlet mechanism is ahead of Gaussian noise, split by split, at every ε."""
    table = rows.pivot(index="repetition", columns=["way", "epsilon"], values="accuracy")
    ahead = table["paper"] - table["paper gaussian"]
    mean, error = ahead.mean(), ahead.sem()
    surely_behind = int((mean < -2 * error).sum())
    return Claim(
        where="Section 5.1, Figure 4",
        says=f"The Dirichlet mechanism is more accurate than Gaussian noise {says}.",
        measured=f"ahead at {int((mean > 0).sum())} of {len(mean)} ε, surely (two standard errors) at "
        f"{int((mean > 2 * error).sum())}, surely behind at {surely_behind}; by {100 * mean.min():.1f} to "
        f"{100 * mean.max():.1f} percentage points",
        verdict=verdict(not surely_behind) if surely_behind or (mean > 0).all() else Verdict.UNKNOWN,
        why=""
        if (mean > 0).all()
        else "The differences are of the size of those between splits."
        if surely_behind
        else "The differences are within the noise of the splits.",
    )
