"""Pictures that the server draws: SVG, with words for those who do not see them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from dpbayes.domain.markup import Html, joined, tag

SIDE = 260
"""Width and height of the map of a wide triangle."""

PLOT_WIDTH, PLOT_HEIGHT, LEFT, BOTTOM = 420, 260, 56, 40


def safe(html: Html) -> Markup:
    """For templates: what our own markup made is escaped already."""
    return Markup(html)  # noqa: S704 - see above


def overview(names: Sequence[str], chosen: set[frozenset[str]], at: int) -> Markup:
    """All pairs of many attributes: a dot for each table that was chosen, a line for the row on display."""
    step = SIDE / len(names)
    place = {name: number for number, name in enumerate(names)}
    dots = []
    for axes in chosen:
        if len(axes) > 2 or not all(name in place for name in axes):
            continue
        low, high = min(place[name] for name in axes), max(place[name] for name in axes)
        size = max(step, 4.0)
        where = {"x": f"{low * step:.1f}", "y": f"{high * step:.1f}", "width": f"{size:.1f}", "height": f"{size:.1f}"}
        dots.append(tag("rect", class_="dot", **where))
    here = f"{(at + 0.5) * step:.1f}"
    label = f"{len(dots)} chosen tables among {len(names):,} attributes; the row on display is {names[at]}"
    shapes = [
        tag("path", d=f"M0 0V{SIDE}H{SIDE}Z", class_="field"),
        tag("path", d=f"M0 {here}H{here}V{SIDE}", class_="here"),
        *dots,
    ]
    return safe(
        tag("svg", joined(shapes), viewBox=f"-2 -2 {SIDE + 4} {SIDE + 4}", role="img", aria_label=label, class_="map")
    )


def network(parents: dict[str, tuple[str, ...]]) -> Markup:
    """A network from top to bottom: every node below its parents, an arrow for each edge."""
    depth: dict[str, int] = {}
    for node, above in parents.items():
        depth[node] = 1 + max((depth[parent] for parent in above), default=-1)
    layers: dict[int, list[str]] = {}
    for node, level in depth.items():
        layers.setdefault(level, []).append(node)
    per_row = 6
    rows = [
        nodes[first : first + per_row] for _, nodes in sorted(layers.items()) for first in range(0, len(nodes), per_row)
    ]
    width, box, high, gap = 760.0, 116.0, 32.0, 78.0
    where: dict[str, tuple[float, float]] = {}
    for row, nodes in enumerate(rows):
        for place, node in enumerate(nodes):
            where[node] = (width * (place + 1) / (len(nodes) + 1), 20 + row * gap)
    shapes: list[Html] = [_tip()]
    for node, above in parents.items():
        for parent in above:
            (x1, y1), (x2, y2) = where[parent], where[node]
            bend = (y1 + y2) / 2 + high / 2
            path = f"M{x1:.1f} {y1 + high:.1f}C{x1:.1f} {bend:.1f} {x2:.1f} {bend:.1f} {x2:.1f} {y2 - 1:.1f}"
            shapes.append(tag("path", d=path, class_="edge", marker_end="url(#tip)"))
    for node, (x, y) in where.items():
        shapes.append(tag("rect", x=f"{x - box / 2:.1f}", y=f"{y:.1f}", width=box, height=high, rx=5, class_="node"))
        shown = node if len(node) <= 15 else node[:14] + "…"
        shapes.append(tag("text", shown, x=f"{x:.1f}", y=f"{y + 21:.1f}", text_anchor="middle", class_="node-name"))
    edges = sum(len(above) for above in parents.values())
    label = f"Network of {len(parents)} attributes and {edges} edges"
    return safe(
        tag(
            "svg",
            joined(shapes),
            viewBox=f"0 0 {width:g} {20 + len(rows) * gap:g}",
            role="img",
            aria_label=label,
            class_="network",
        )
    )


def _tip() -> Html:
    """The head of an arrow."""
    size = {"viewBox": "0 0 8 8", "refX": 8, "refY": 4, "markerWidth": 7, "markerHeight": 7, "orient": "auto"}
    return tag("defs", tag("marker", tag("path", d="M0 0L8 4L0 8z", class_="tip"), id="tip", **size))


def curve(
    points: Sequence[tuple[float, float]],
    *,
    label: str,
    x_axis: str,
    y_axis: str,
    marks: Sequence[tuple[float, float, str]] = (),
    diagonal: bool = False,
) -> Markup:
    """A line through points of the unit square, with axes from 0 to 100 %."""
    shapes: list[Html] = []
    for step in range(0, 101, 25):
        x, y = _at(step / 100, 0.0)[0], _at(0.0, step / 100)[1]
        shapes.append(tag("line", x1=LEFT, x2=PLOT_WIDTH - 12, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid"))
        shapes.append(tag("text", f"{step} %", x=LEFT - 8, y=f"{y + 4:.1f}", text_anchor="end", class_="label"))
        shapes.append(
            tag("text", f"{step} %", x=f"{x:.1f}", y=PLOT_HEIGHT - BOTTOM + 18, text_anchor="middle", class_="label")
        )
    if diagonal:
        (x1, y1), (x2, y2) = _at(0.0, 1.0), _at(1.0, 0.0)
        shapes.append(tag("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_="guess"))
    path = "L".join("{:.1f} {:.1f}".format(*_at(x, y)) for x, y in points)
    shapes.append(tag("path", d=f"M{path}", class_="line"))
    for x, y, said in marks:
        px, py = _at(x, y)
        shapes.append(tag("circle", tag("title", said), cx=f"{px:.1f}", cy=f"{py:.1f}", r=5, class_="mark-point"))
    shapes.append(
        tag("text", x_axis, x=(LEFT + PLOT_WIDTH) / 2, y=PLOT_HEIGHT - 4, text_anchor="middle", class_="label")
    )
    shapes.append(tag("text", y_axis, x=LEFT - 48, y=12, class_="label"))
    return safe(
        tag(
            "svg",
            joined(shapes),
            viewBox=f"0 0 {PLOT_WIDTH} {PLOT_HEIGHT}",
            role="img",
            aria_label=label,
            class_="plot",
        )
    )


def _at(x: float, y: float) -> tuple[float, float]:
    wide, high = PLOT_WIDTH - LEFT - 12, PLOT_HEIGHT - BOTTOM - 24
    return LEFT + wide * x, 24 + high * (1.0 - y)


def whisker(lower: float, upper: float, estimate: float, *, least: float, most: float) -> Markup:
    """An estimate with its interval on a line from the least to the most that is possible."""
    span = most - least if math.isfinite(most - least) and most > least else 1.0

    def at(value: float) -> str:
        return f"{100.0 * min(max((value - least) / span, 0.0), 1.0):.2f}%"

    shapes = [
        tag("line", x1="0%", x2="100%", y1=14, y2=14, class_="grid"),
        tag("line", x1=at(0.0), x2=at(0.0), y1=4, y2=24, class_="zero"),
        tag("text", "0", x=at(0.0), y=38, text_anchor="middle", class_="label"),
        tag("line", x1=at(lower), x2=at(upper), y1=14, y2=14, class_="interval"),
        tag("circle", cx=at(estimate), cy=14, r=5, class_="mark-point"),
    ]
    return safe(tag("svg", joined(shapes), width="100%", height=42, aria_hidden="true"))
