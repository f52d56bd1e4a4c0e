"""The three Bayesian networks of the experiments, drawn.

The edges are those of the authors' public notebook; the size of a table is the
product of the levels of a node and its parents, with numbers binned as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dpbayes.models.bayes_net import BayesNet
from experiments import style
from experiments.lab import Claim, Verdict, verdict
from experiments.rdp.splits import CLASS, TITLES, split, table

PAPER = "[RDP]"
TITLE = "Figure 5: the networks"


def tasks(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"dataset": name} for name in settings["networks"]]


def measure(task: Mapping[str, Any], settings: Mapping[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    graph = settings["networks"][task["dataset"]]
    levels = split(task["dataset"], 0, only=graph["nodes"]).levels
    columns, rows = set(table(task["dataset"]).columns), []
    for node, parents in BayesNet.of(graph).parents.items():
        cells = int(np.prod([levels[name] for name in (node, *parents)]))
        rows.append(
            {
                "node": node,
                "parents": ", ".join(parents),
                "cells": cells,
                "is_column": node in columns,
            }
        )
    return rows


def draw(rows: pd.DataFrame, settings: Mapping[str, Any]) -> Figure:
    figure, axes = style.panels(1, 3, width=9.2, height=3.7)
    for panel, (name, part) in zip(axes[:, 0], rows.groupby("dataset", sort=False), strict=True):
        graph = settings["networks"][name]
        for x, y in graph["nodes"].values():
            panel.plot(x, y, alpha=0)  # sets the limits of the axes
        boxes = {row.node: _box(panel, row, graph["nodes"][row.node]) for row in part.itertuples()}
        for parent, child in graph["edges"]:
            panel.annotate(
                "",
                xy=graph["nodes"][child],
                xytext=graph["nodes"][parent],
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": style.BLACK,
                    "lw": 0.9,
                    "patchA": boxes[parent],
                    "patchB": boxes[child],
                    "shrinkA": 1,
                    "shrinkB": 1,
                },
                zorder=1,
            )
        panel.set_title(f"{TITLES[name]}: {len(part)} nodes, {len(graph['edges'])} edges")
        panel.margins(0.12)
        panel.axis("off")
    return figure


def _box(panel: Axes, row: Any, place: tuple[float, float]) -> Patch:
    """A node with the size of its table; the class stands out."""
    fill, edge = ("#FDF3DF", style.ORANGE) if row.node == CLASS else ("#EAF3FA", style.BLUE)
    text = panel.text(
        *place,
        f"{row.node}\n{row.cells} cells",
        ha="center",
        va="center",
        fontsize=9.5,
        bbox={"boxstyle": "round,pad=0.3", "fc": fill, "ec": edge},
        zorder=2,
    )
    return text.get_bbox_patch()


def claims(rows: pd.DataFrame, settings: Mapping[str, Any]) -> list[Claim]:
    sizes = ", ".join(
        f"{TITLES[name]} {len(part)} nodes and {part['cells'].sum()} cells"
        for name, part in rows.groupby("dataset", sort=False)
    )
    return [
        Claim(
            where="Section 5.2, Figure 5",
            says="Networks over attributes of Adult, Bank and GermanCredit.",
            measured=f"{sizes}; every node is a column: {bool(rows['is_column'].all())}",
            verdict=verdict(bool(rows["is_column"].all())),
        ),
        Claim(
            where="Section 5.2",
            says="They are parts of the networks of Le Quy et al. (2022).",
            measured="the edges of the authors' notebook; the survey's repository has a learned network for COMPAS "
            "only",
            verdict=Verdict.UNKNOWN,
            why="Neither the picture in the paper nor those of the survey could be compared edge by edge.",
        ),
    ]
