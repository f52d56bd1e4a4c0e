"""Pictures of models: the network, its tables as heat maps, and a calibration curve. Drawn by matplotlib (``plot``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpbayes.errors import InvalidArgument, MissingExtra
from dpbayes.models.base import Model
from dpbayes.models.metrics import Scores
from dpbayes.models.network import Network
from dpbayes.release.table import TableView
from dpbayes.report.charts import BLUE, GREY, ORANGE
from dpbayes.report.view import View

FORMATS = (".png", ".svg", ".pdf")
LARGEST_MAP = 60
"""Rows and columns of a heat map; larger tables show their first ones."""


def _pyplot() -> Any:
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtra("figure: matplotlib is not installed; install dpbayes[plot].") from None
    mpl.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save_model(path: Path, model: Model, *, node: str | None = None, scored: Scores | None = None) -> None:
    """Draw a model: its graph, one of its tables if a node is named, and a calibration curve if there are scores."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidArgument(f"figure: expected a file that ends in {', '.join(FORMATS)}, got {path.name!r}.")
    plt, network = _pyplot(), model.network
    panels = 1 + (node is not None) + (scored is not None)
    with plt.rc_context({"font.size": 10, "svg.hashsalt": "dpbayes"}):
        figure, axes = plt.subplots(1, panels, figsize=(6.5 * panels, 5.5), layout="constrained", squeeze=False)
        remaining = iter(axes[0])
        _draw_graph(next(remaining), network)
        if node is not None:
            _draw_table(next(remaining), network, node)
        if scored is not None:
            _draw_calibration(next(remaining), scored)
        figure.suptitle(model.published.statement(), fontsize=8, wrap=True)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _draw_graph(axes: Any, network: Network) -> None:
    """Nodes in layers: parents above children."""
    depth: dict[str, int] = {}
    for node, parents in network.parents.items():
        depth[node] = 1 + max((depth[parent] for parent in parents), default=-1)
    layers = [[node for node in depth if depth[node] == level] for level in range(max(depth.values()) + 1)]
    place = {
        node: ((index + 0.5) / len(layer), -float(level) - 0.25 * (index % 2) * (len(layer) > 5))
        for level, layer in enumerate(layers)
        for index, node in enumerate(layer)
    }
    for parent, child in network.edges:
        axes.annotate(
            "",
            xy=place[child],
            xytext=place[parent],
            arrowprops={"arrowstyle": "-|>", "color": GREY, "shrinkA": 14, "shrinkB": 14},
        )
    for node, (x, y) in place.items():
        axes.text(
            x, y, node, ha="center", va="center", bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": BLUE}
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(-len(layers) + 0.5, 0.5)
    axes.axis("off")


def _draw_table(axes: Any, network: Network, node: str) -> None:
    if node not in network.parents:
        raise InvalidArgument(f"figure: there is no node {node!r}. It has {', '.join(network.nodes)}.")
    parents, levels = network.parents[node], network.levels[node]
    table = network.tables[node][:LARGEST_MAP, :LARGEST_MAP]
    shape = [len(network.levels[parent]) for parent in parents]
    rows = [
        ", ".join(network.levels[p][i] for p, i in zip(parents, index, strict=True)) for index in np.ndindex(*shape)
    ]
    image = axes.imshow(table, vmin=0.0, vmax=1.0, cmap="viridis", aspect="auto")
    axes.set_xticks(range(table.shape[1]), levels[:LARGEST_MAP], rotation=60, ha="right", fontsize=7)
    axes.set_yticks(range(table.shape[0]), rows[:LARGEST_MAP], fontsize=7)
    axes.set_title(f"{node} given {', '.join(parents) or 'nothing'}", loc="left")
    axes.figure.colorbar(image, ax=axes, shrink=0.8)


def _draw_calibration(axes: Any, scored: Scores) -> None:
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    axes.plot(scored.confidence, scored.correct, color=ORANGE, marker="o")
    axes.set_xlabel("predicted probability")
    axes.set_ylabel("how often right")
    axes.set_title(f"calibration on {scored.records:,} public records", loc="left")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)


def plot_table(view: TableView, path: str | Path | None = None) -> Any:
    """Shares of a table with their intervals, one panel for each group of a conditional one."""
    if path is not None and Path(path).suffix.lower() not in FORMATS:
        raise InvalidArgument(f"figure: expected a file that ends in {', '.join(FORMATS)}, got {Path(path).name!r}.")
    plt = _pyplot()
    shown = View(view.release, view.table)
    cells, product = shown.shown, shown.shares
    if product is None:
        raise InvalidArgument("figure: this table carries no estimate. Use release.save, or Posterior, to compute it.")
    figure, panel = plt.subplots(figsize=(7.0, 0.9 + 0.28 * len(cells)), layout="constrained")
    for position, cell in enumerate(reversed(cells)):
        panel.barh(position, 100.0 * product.values[cell], color=BLUE, height=0.6)
        if product.lower is not None and product.upper is not None:
            ends = [100.0 * product.lower[cell], 100.0 * product.upper[cell]]
            panel.plot(ends, [position, position], color=GREY, linewidth=1.5)
    panel.set_yticks(range(len(cells)), [" · ".join(shown.names(cell)) for cell in reversed(cells)])
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_xlabel(f"share, in percent, with {100 * view.release.level:g} % intervals")
    figure.suptitle(str(view.marginal), fontsize=11)
    if path is not None:
        figure.savefig(path, dpi=150)
        plt.close(figure)
    return figure
