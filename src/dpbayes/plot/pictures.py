"""Every picture: shares with intervals, profiles, risks, plans, models, answers. Functions of public objects alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.base.display import plural
from dpbayes.base.errors import InvalidArgument
from dpbayes.inference.released import Reading
from dpbayes.models.fidelity import Scores
from dpbayes.models.network import Network
from dpbayes.plot.canvas import (
    Bar,
    Frame,
    Picture,
    Scale,
    Shape,
    box,
    cut,
    dot,
    label,
    line,
    shade,
    stacked,
    text,
    widest,
)
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.risk import Profile, chords, percent, success
from dpbayes.release.estimates import TableView
from dpbayes.release.format import Product
from dpbayes.schema.labels import labels
from dpbayes.schema.schema import Schema
from dpbayes.words.report import caption, title
from dpbayes.words.view import View

WIDTH, LINE, TOP = 720, 24, 14


def shares(view: TableView) -> Picture:
    """Shares of a table with their intervals, a bar for each cell."""
    shown = View(view.release, view.table)
    product, cells = shown.shares, shown.shown
    if product is None:
        raise InvalidArgument("picture: this table carries no estimate. Save the release, or use its posterior.")
    names = [cut(" · ".join(shown.names(cell)), 36) for cell in cells]
    bars = [bar_of(shown, product, cell) for cell in cells]
    scale, left = Scale.over(bars), widest(names)
    bottom = TOP + LINE * len(cells)

    def at(share: float) -> float:
        return left + (WIDTH - 20 - left) * min(max(share / scale.end, 0.0), 1.0)

    shapes: list[Shape] = []
    for mark in scale.marks:
        shapes += [line("grid", (at(mark), TOP), (at(mark), bottom))]
        shapes += [label(f"{100 * mark:.4g}", at(mark), bottom + 16, "middle")]
    for row, bar in enumerate(bars):
        y = TOP + LINE * row
        shapes += [text(names[row], left - 8, y + 16, anchor="end")]
        shapes += [box("bar", left, y + 6, at(bar.value) - left, LINE - 12)]
        if bar.lower is not None and bar.upper is not None:
            shapes += _whisker(at(bar.lower), at(bar.upper), y + LINE / 2)
    largest = names[int(np.argmax(product.values[cells]))]
    note = caption(shown)
    return Picture(
        title=title(view.table.marginal),
        words=f"Bars: {title(view.table.marginal)}. {note} {plural(len(cells), 'cell')}; the largest is {largest}.",
        width=WIDTH,
        height=int(bottom + 26),
        shapes=tuple(shapes),
        note=note,
    )


def bar_of(view: View, product: Product, cell: int, texts: tuple[str, ...] = ()) -> Bar:
    """The bar of a cell; one that is lost in the noise is not drawn."""
    lower = None if product.lower is None else float(product.lower[cell])
    upper = None if product.upper is None else float(product.upper[cell])
    value = 0.0 if view.swallowed[cell] else float(product.values[cell])
    return Bar(labels=view.names(cell), value=value, lower=lower, upper=upper, texts=texts)


def densities(view: TableView) -> Picture:
    """The density of the share of each cell of a released posterior, and the prior's: of the six largest cells."""
    shown = View(view.release, view.table)
    names = {cell: " · ".join(shown.names(cell)) for cell in shown.shown}
    return law_picture(view.reading, names, title(view.table.marginal), view.release.level)


def law_picture(found: Reading, names: Mapping[int, str], about: str, level: float = 0.95) -> Picture:
    """The density of the share of each cell, and the prior's: of the six largest cells."""
    cells = sorted(names, key=lambda cell: -float(found.mean[cell]))[:6]
    cells = sorted(cells)[: 1 if len(found.mean) == 2 else 6]  # of two shares, one tells the other
    wide = found.interval(0.998)
    lower, upper = found.interval(level)
    panels = []
    for cell in cells:
        low, high = float(wide[0][cell]), float(wide[1][cell])
        ends = max(low - 0.6 * (high - low), 0.0), min(high + 0.6 * (high - low), 1.0)
        grid = np.linspace(max(ends[0], 1e-6), min(ends[1], 1 - 1e-6), 161)
        now, before = found.density(cell, grid)
        peak = 1.08 * max(float(now[np.isfinite(now)].max()), 1e-9)
        frame = Frame(20, 18, WIDTH - 20, 110, (100 * ends[0], 100 * ends[1]), (0.0, peak))
        name = cut(names[cell], 36)
        shapes = frame.axes(_marks(*frame.x), [], f"share of {name}, %", "")
        for kind, law in (("guess", before), ("line", now)):
            shapes.append(line(kind, *(frame.at(100 * float(x), float(y)) for x, y in zip(grid, law, strict=True))))
        at = [frame.at(100 * float(end), 0.0)[0] for end in (lower[cell], upper[cell], found.mean[cell])]
        shapes += [*_whisker(at[0], at[1], frame.bottom), dot("mean", at[2], frame.bottom, 3.5)]
        said = f"{name}: {100 * found.mean[cell]:.3g} %, {100 * lower[cell]:.3g} to {100 * upper[cell]:.3g} %."
        panels.append(Picture(title=name, words=said, width=WIDTH, height=150, shapes=tuple(shapes)))
    note = (
        "Solid: what the release says about the share in the population. Dashed: the prior, before it. Dot and bar: "
        f"the mean and the {100 * level:g} % interval."
    )
    name = f"Density of the shares of {about}"
    said = " ".join([name, *(each.words for each in panels)])
    drawn = panels[0] if len(panels) == 1 else stacked(panels, name)
    return Picture(title=name, words=said, width=WIDTH, height=drawn.height, shapes=drawn.shapes, note=note)


def _marks(low: float, high: float) -> list[float]:
    """Round marks between two numbers."""
    step = Scale.over([Bar(labels=(), value=high - low)]).step
    first = math.ceil(low / step - 1e-9)
    return [round(step * (first + each), 12) for each in range(math.floor(high / step + 1e-9) - first + 1)]


def _whisker(low: float, high: float, y: float) -> list[Shape]:
    return [line("whisker", (low, y), (high, y)), *(line("whisker", (x, y - 4), (x, y + 4)) for x in (low, high))]


def _epsilons(cost: Cost) -> Floats:
    """ε from zero to where δ is next to nothing."""
    end = min(float(cost.renyi(math.inf)), float(cost.epsilon(1e-12)))
    return np.linspace(0.0, end if math.isfinite(end) and end > 0 else 1.0, 96)


def profile_picture(cost: Cost) -> Picture:
    """δ as a function of ε: every (ε, δ) on the line is kept by the same releases."""
    epsilons = _epsilons(cost)
    deltas = np.array([float(cost.delta(float(epsilon))) for epsilon in epsilons])
    seen = deltas > 0
    least = 10.0 ** math.floor(math.log10(max(float(deltas[seen].min()), 1e-12))) if seen.any() else 1e-12
    frame = Frame(64, 30, WIDTH - 20, 330, (0.0, float(epsilons[-1])), (least, 1.0), log_y=True)
    powers = range(round(math.log10(least)), 1, max(1, round(-math.log10(least) / 6)))
    shapes = frame.axes(_marks(0.0, float(epsilons[-1])), [10.0**power for power in powers], "ε", "δ")
    points = [frame.at(float(e), float(d)) for e, d in zip(epsilons, deltas, strict=True) if d >= least]
    shapes.append(line("line", *points))
    epsilon = float(cost.epsilon(1e-6)) if least <= 1e-6 else math.inf
    if epsilon <= epsilons[-1]:
        x, y = frame.at(epsilon, 1e-6)
        beside = (10, -8, "start") if x < WIDTH - 190 else (-10, 18, "end")
        said = f"ε = {epsilon:.3g} at δ = 1e-06"
        shapes += [dot("chosen", x, y), text(said, x + beside[0], y + beside[1], anchor=beside[2])]
    said = f"Line: δ falls from {deltas[0]:.3g} at ε = 0 to {deltas[-1]:.1g} at ε = {epsilons[-1]:.3g}."
    return Picture(
        title=f"Privacy profile of {_releases(cost)}", words=said, width=WIDTH, height=376, shapes=tuple(shapes)
    )


def _releases(cost: Cost) -> str:
    return "one release" if cost.releases == 1 else f"{cost.releases:,} releases"


def tradeoff_picture(cost: Cost) -> Picture:
    """What the best attacker can do: false alarms against misses. The dashed line is guessing."""
    profile = chords(_epsilons(cost), cost.delta)
    misses = [(alpha, 1.0 - success(profile, alpha)) for alpha in np.linspace(0.0, 1.0, 101)[1:-1].tolist()]
    best = (1.0 + float(cost.delta(0.0))) / 2.0
    note = (
        "An attacker who knows all other rows decides whether a person's data is one thing or another. No test lies "
        f"below the line; the best is right with probability {min(best, 1.0):.3g}, and guessing with 0.5."
    )
    said = f"Trade-off curve of {_releases(cost)}", note
    return _square(*said, ("false alarms", "misses"), [(0.0, 1.0), *misses, (1.0, 0.0)], falling=True, note=note)


def risk_picture(profile: Profile, name: str) -> Picture:
    """How often the best attacker is right, against how often a blind guess is; the dashed line tells nothing."""
    right = [(blind, success(profile, blind)) for blind in np.linspace(0.0, 1.0, 101)[1:-1].tolist()]
    half = percent(success(profile, 0.5))
    said = f"{name}: a guess about a person that is right half the time becomes right at most {half} of the time."
    axes = "a blind guess is right", "the best attacker is right"
    return _square(name, said, axes, [(0.0, 0.0), *right, (1.0, 1.0)], note=said)


def calibration_picture(scored: Scores) -> Picture:
    """How often predictions of a given confidence are right; the dashed line is perfect."""
    name = f"Calibration on {scored.records:,} public records"
    points = [(float(x), float(y)) for x, y in zip(scored.confidence, scored.correct, strict=True)]
    axes = "predicted probability", "how often right"
    return _square(name, f"{name}: accuracy {scored.accuracy:.3g}.", axes, points, kind="second", dots=True)


def _square(
    name: str,
    said: str,
    axes: tuple[str, str],
    points: Sequence[tuple[float, float]],
    *,
    kind: str = "line",
    dots: bool = False,
    falling: bool = False,
    note: str = "",
) -> Picture:
    """A line in the unit square, and the dashed diagonal that it is compared with."""
    frame = Frame(64, 30, 384, 350, (0.0, 1.0), (0.0, 1.0))
    marks = [0.0, 0.25, 0.5, 0.75, 1.0]
    shapes = frame.axes(marks, marks, *axes)
    shapes.append(line("guess", frame.at(0, falling), frame.at(1, not falling)))
    placed = [frame.at(*point) for point in points]
    shapes += [line(kind, *placed)] if placed else []
    shapes += [dot("chosen", *point, radius=3.5) for point in placed] if dots else []
    return Picture(title=name, words=said, width=420, height=396, shapes=tuple(shapes), note=note)


def interval_picture(lower: float, upper: float, estimate: float, said: str) -> Picture:
    """An estimate with its interval on a line that shows zero too."""
    least, most = min(lower, 0.0), max(upper, 0.0)
    spread = most - least or 1.0

    def at(value: float) -> float:
        return WIDTH * (value - least + 0.03 * spread) / (1.11 * spread)

    shapes = [
        line("grid", (0, LINE), (WIDTH, LINE)),
        line("axis", (at(0.0), TOP), (at(0.0), LINE + 10)),
        label("0", at(0.0), LINE + 24, "middle"),
        *_whisker(at(lower), at(upper), LINE),
        dot("mean", at(estimate), LINE),
    ]
    return Picture(title=said, words=said, width=WIDTH, height=2 * LINE + 4, shapes=tuple(shapes))


def pairs_picture(names: Sequence[str], chosen: set[frozenset[str]], at: int) -> Picture:
    """All pairs of many attributes: a mark for each table that was chosen, a line for the row on display."""
    side = WIDTH / 3
    step, place = side / len(names), {name: number for number, name in enumerate(names)}
    shown = [sorted(place[name] for name in axes) for axes in chosen if len(axes) <= 2 and axes <= place.keys()]
    here = (at + 0.5) * step
    shapes = [
        line("grid", (0, 0), (0, side), (side, side), (0, 0)),
        line("line", (0, here), (here, here), (here, side)),
        *(box("bar", axes[0] * step, axes[-1] * step, max(step, 4.0), max(step, 4.0)) for axes in shown),
    ]
    said = f"{len(shown)} chosen tables among {len(names):,} attributes; the row on display is {names[at]}"
    return Picture(title="Chosen tables", words=said, width=int(side), height=int(side), shapes=tuple(shapes))


def errors_picture(
    rows: Sequence[tuple[str, float, float]], chosen: str, *, failure: float, measure: str, title: str, why: str
) -> Picture:
    """Predicted errors on a logarithmic axis: the mean as a dot, and where errors stay below but for ``failure``.

    ``rows`` are names, means and these ends; one name is ``chosen``.
    """
    names = [cut(name, 40) for name, _, _ in rows]
    left, bottom = widest(names, 40), TOP + 14 + LINE * len(rows)
    low = min(mean for _, mean, _ in rows)
    high = max(max(mean, end) for _, mean, end in rows)
    first, last = math.floor(math.log10(low / 1.5)), math.ceil(math.log10(high * 1.5))

    def at(error: float) -> float:
        return left + (WIDTH - 80 - left) * (math.log10(error) - first) / max(last - first, 1)

    shapes: list[Shape] = []
    for power in range(first, last + 1):
        x = at(10.0**power)
        shapes += [line("grid", (x, TOP), (x, bottom)), label(f"{10.0**power:g}", x, bottom + 16, "middle")]
    most = f"{100 * (1 - failure):g} %"
    for row, (name, mean, quantile) in enumerate(rows):
        y, end = TOP + 7 + LINE * row + LINE / 2, at(max(quantile, mean))
        shapes += [text(names[row], left - 8, y + 4, anchor="end")]
        shapes += [line("whisker", (at(mean), y), (end, y)), line("whisker", (end, y - 4), (end, y + 4))]
        shapes += [dot("chosen" if name == chosen else "mean", at(mean), y), text(f"{mean:.2g}", end + 8, y + 4)]
    shapes.append(
        label(f"{measure}; the dot is the mean, the tick has {most} of errors below it", left, bottom + 34, "start")
    )
    said = f"Dots: {', '.join(f'{name} {mean:.2g}' for name, mean, _ in rows)}. {why}"
    return Picture(title=title, words=said, width=WIDTH, height=int(bottom + 44), shapes=tuple(shapes), note=why)


def network_picture(network: Network, title: str) -> Picture:
    """Nodes in layers of up to five, parents above children, with an arrow for each edge."""
    depth: dict[str, int] = {}
    for node, parents in network.parents.items():
        depth[node] = 1 + max((depth[parent] for parent in parents), default=-1)
    rows: list[list[str]] = []
    for level in range(max(depth.values()) + 1):
        layer = [node for node in depth if depth[node] == level]
        rows += [layer[first : first + 5] for first in range(0, len(layer), 5)]
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
    """The table of a node: up to 40 rows, one for each combination of its parents, shaded by probability."""
    if node not in network.parents:
        raise InvalidArgument(f"picture: there is no node {node!r}. It has {', '.join(network.nodes)}.")
    parents = network.parents[node]
    numbers = network.tables[node][:40, :40]
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
