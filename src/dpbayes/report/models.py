"""Pictures of models: the network, one of its tables as a heat map, and a calibration curve."""

from __future__ import annotations

import numpy as np

from dpbayes.domain.labels import labels
from dpbayes.domain.schema import Schema
from dpbayes.errors import InvalidArgument
from dpbayes.models.metrics import Scores
from dpbayes.models.network import Network
from dpbayes.report.canvas import Picture, Shape, box, cut, dot, line, text, widest
from dpbayes.report.figures import shade
from dpbayes.report.pictures import Frame

LARGEST_MAP = 40
"""Rows and columns of a heat map; a larger table shows its first ones."""

ROW_OF_NODES = 5


def network_picture(network: Network, title: str) -> Picture:
    """Nodes in layers, parents above children, with an arrow for each edge."""
    depth: dict[str, int] = {}
    for node, parents in network.parents.items():
        depth[node] = 1 + max((depth[parent] for parent in parents), default=-1)
    rows: list[list[str]] = []
    for level in range(max(depth.values()) + 1):
        layer = [node for node in depth if depth[node] == level]
        rows += [layer[first : first + ROW_OF_NODES] for first in range(0, len(layer), ROW_OF_NODES)]
    width, wide, high, gap = 720.0, 128.0, 28.0, 72.0
    place = {
        node: (width * (column + 1) / (len(row) + 1), 16 + level * gap)
        for level, row in enumerate(rows)
        for column, node in enumerate(row)
    }
    shapes: list[Shape] = []
    for parent, child in network.edges:
        (x1, y1), (x2, y2) = place[parent], place[child]
        start, end = (x1, y1 + high), (x2, y2 - 1)
        far = y2 - y1 > 1.5 * gap  # round what lies between
        bend = [(min(max(x1, x2) + 0.8 * wide, width - 4), (y1 + y2 + high) / 2)] if far else []
        before = bend[-1] if bend else start
        length = max(float(np.hypot(end[0] - before[0], end[1] - before[1])), 1.0)
        ux, uy = (end[0] - before[0]) / length, (end[1] - before[1]) / length
        tips = [(end[0] - 8 * ux + side * 4 * uy, end[1] - 8 * uy - side * 4 * ux) for side in (1, -1)]
        shapes += [line("arrow", start, *bend, end), line("arrow", tips[0], end, tips[1])]
    for node, (x, y) in place.items():
        shapes += [box("node", x - wide / 2, y, wide, high), text(cut(node, 17), x, y + 19, anchor="middle")]
    edges = "; ".join(f"{parent} to {child}" for parent, child in network.edges) or "none"
    said = f"Network of {len(place)} attributes. Arrows: {edges}."
    return Picture(title=title, words=said, width=720, height=int(16 + gap * len(rows)), shapes=tuple(shapes))


def table_picture(network: Network, node: str, schema: Schema) -> Picture:
    """The table of a node: a row for each combination of its parents, shaded by probability."""
    if node not in network.parents:
        raise InvalidArgument(f"picture: there is no node {node!r}. It has {', '.join(network.nodes)}.")
    parents = network.parents[node]
    numbers = network.tables[node][:LARGEST_MAP, :LARGEST_MAP]
    shape = [len(network.levels[parent]) for parent in parents]
    said = {name: labels(schema[name]) for name in (*parents, node)}
    names = [
        cut(", ".join(said[p][i] for p, i in zip(parents, index, strict=True)) or "all", 36)
        for index in np.ndindex(*shape)
    ][: len(numbers)]
    columns = [cut(level, 10) for level in said[node][: numbers.shape[1]]]
    left, wide, high = widest(names), 74.0, 22.0
    shapes: list[Shape] = [
        text(column, left + wide * (at + 0.5), 18, kind="label", anchor="middle") for at, column in enumerate(columns)
    ]
    for row, name in enumerate(names):
        y = 26 + high * row
        shapes.append(text(name, left - 8, y + 15, anchor="end"))
        for column in range(len(columns)):
            share = float(numbers[row, column])
            shapes.append(box(shade(share, 1.0), left + wide * column, y, wide, high))
            shapes.append(text(f"{100 * share:.1f}", left + wide * (column + 0.5), y + 15, anchor="middle"))
    title = f"{node} given {', '.join(parents)}, in percent" if parents else f"{node}, in percent"
    cells = f"{network.tables[node].shape[0]} rows and {network.tables[node].shape[1]} columns"
    size = (int(left + wide * len(columns) + 12), int(34 + high * len(names)))
    return Picture(
        title=title, words=f"Heat map: {title}, {cells}.", width=size[0], height=size[1], shapes=tuple(shapes)
    )


def calibration_picture(scored: Scores) -> Picture:
    """How often predictions of a given confidence are right; the dashed line is perfect."""
    frame = Frame(64, 30, 384, 350, (0.0, 1.0), (0.0, 1.0))
    marks = [0.0, 0.25, 0.5, 0.75, 1.0]
    shapes = frame.axes(marks, marks, "predicted probability", "how often right")
    shapes.append(line("guess", frame.at(0, 0), frame.at(1, 1)))
    points = [frame.at(float(x), float(y)) for x, y in zip(scored.confidence, scored.correct, strict=True)]
    shapes += [line("second", *points), *(dot("chosen", *point, radius=3.5) for point in points)] if points else []
    title = f"Calibration on {scored.records:,} public records"
    said = f"{title}: accuracy {scored.accuracy:.3g}."
    return Picture(title=title, words=said, width=420, height=396, shapes=tuple(shapes))
