"""Pictures of numbers: shares with intervals, profiles, trade-off curves, plans. Functions of public objects alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpbayes._checks import Floats
from dpbayes.domain.display import plural
from dpbayes.errors import InvalidArgument
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.risk import Profile, success
from dpbayes.release.table import TableView
from dpbayes.report import words
from dpbayes.report.canvas import Picture, Shape, box, cut, dot, line, stacked, text, widest
from dpbayes.report.figures import Bar, Scale
from dpbayes.report.tables import caption
from dpbayes.report.view import View

WIDTH, LINE, TOP = 720, 24, 14

LEAST_DELTA, STEPS = 1e-12, 96
"""A profile is followed down to this δ, at this many ε."""

PANELS = 6
"""Densities are drawn of this many cells."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The field of a chart with its axes: numbers to pixels."""

    left: float
    top: float
    right: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float]
    log_y: bool = False

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point; what is outside lies on the edge."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        low, high = (math.log10(end) for end in self.y) if self.log_y else self.y
        up = ((math.log10(max(y, self.y[0])) if self.log_y else y) - low) / (high - low)
        across, up = min(max(across, 0.0), 1.0), min(max(up, 0.0), 1.0)
        return self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)

    def axes(self, xs: Sequence[float], ys: Sequence[float], x_name: str, y_name: str) -> list[Shape]:
        """Grid, marks and names of both axes."""
        shapes = []
        for value in xs:
            x = self.at(value, self.y[0])[0]
            shapes += [
                line("grid", (x, self.top), (x, self.bottom)),
                _label(f"{value:g}", x, self.bottom + 16, "middle"),
            ]
        for value in ys:
            y = self.at(self.x[0], value)[1]
            shapes += [line("grid", (self.left, y), (self.right, y)), _label(f"{value:g}", self.left - 6, y + 4, "end")]
        shapes.append(_label(x_name, (self.left + self.right) / 2, self.bottom + 34, "middle"))
        return [*shapes, _label(y_name, 4, self.top - 8, "start")]


def _label(said: str, x: float, y: float, anchor: str) -> Shape:
    return text(said, x, y, kind="label", anchor=anchor)


def shares(view: TableView) -> Picture:
    """Shares of a table with their intervals, a bar for each cell."""
    shown = View(view.release, view.table)
    product, cells = shown.shares, shown.shown
    if product is None:
        raise InvalidArgument("picture: this table carries no estimate. Save the release, or use its posterior.")
    names = [cut(" · ".join(shown.names(cell)), 36) for cell in cells]
    bars = [
        Bar(
            labels=(),
            value=0.0 if shown.swallowed[cell] else float(product.values[cell]),
            upper=None if product.upper is None else float(product.upper[cell]),
        )
        for cell in cells
    ]
    scale, left = Scale.over(bars), widest(names)
    bottom = TOP + LINE * len(cells)

    def at(share: float) -> float:
        return left + (WIDTH - 20 - left) * min(max(share / scale.end, 0.0), 1.0)

    shapes: list[Shape] = []
    for mark in scale.marks:
        shapes += [line("grid", (at(mark), TOP), (at(mark), bottom))]
        shapes += [_label(f"{100 * mark:.4g}", at(mark), bottom + 16, "middle")]
    for row, (cell, bar) in enumerate(zip(cells, bars, strict=True)):
        y = TOP + LINE * row
        shapes += [text(names[row], left - 8, y + 16, anchor="end")]
        shapes += [box("bar", left, y + 6, at(bar.value) - left, LINE - 12)]
        if product.lower is not None and product.upper is not None:
            low, high = at(float(product.lower[cell])), at(float(product.upper[cell]))
            shapes += _whisker(low, high, y + LINE / 2)
    title = words.title(view.table)
    largest = names[int(np.argmax(product.values[cells]))]
    said = f"Bars: {title}. {caption(shown)} {plural(len(cells), 'cell')}; the largest is {largest}."
    return Picture(
        title=title, words=said, width=WIDTH, height=int(bottom + 26), shapes=tuple(shapes), note=caption(shown)
    )


def densities(view: TableView) -> Picture:
    """The density of the share of each cell of a released posterior, and the prior's: of the largest cells."""
    shown, found = View(view.release, view.table), view.reading
    cells = sorted(shown.shown, key=lambda cell: -float(found.mean[cell]))[:PANELS]
    cells = sorted(cells)[: 1 if len(found.mean) == 2 else PANELS]  # of two shares, one tells the other
    wide = found.interval(0.998)
    lower, upper = found.interval(view.release.level)
    panels = []
    for cell in cells:
        low, high = float(wide[0][cell]), float(wide[1][cell])
        ends = max(low - 0.6 * (high - low), 0.0), min(high + 0.6 * (high - low), 1.0)
        grid = np.linspace(max(ends[0], 1e-6), min(ends[1], 1 - 1e-6), 161)
        now, before = found.density(cell, grid)
        peak = 1.08 * max(float(now[np.isfinite(now)].max()), 1e-9)
        frame = Frame(20, 18, WIDTH - 20, 110, (100 * ends[0], 100 * ends[1]), (0.0, peak))
        name = cut(" · ".join(shown.names(cell)), 36)
        shapes = frame.axes(_marks(*frame.x), [], f"share of {name}, %", "")
        for kind, law in (("guess", before), ("line", now)):
            shapes.append(line(kind, *(frame.at(100 * float(x), float(y)) for x, y in zip(grid, law, strict=True))))
        at = [frame.at(100 * float(end), 0.0)[0] for end in (lower[cell], upper[cell], found.mean[cell])]
        shapes += [*_whisker(at[0], at[1], frame.bottom), dot("mean", at[2], frame.bottom, 3.5)]
        said = f"{name}: {100 * found.mean[cell]:.3g} %, {100 * lower[cell]:.3g} to {100 * upper[cell]:.3g} %."
        panels.append(Picture(title=name, words=said, width=WIDTH, height=150, shapes=tuple(shapes)))
    note = (
        "Solid: what the release says about the share in the population. Dashed: the prior, before it. Dot and bar: "
        f"the mean and the {100 * view.release.level:g} % interval."
    )
    title = f"Density of the shares of {words.title(view.table)}"
    said = " ".join([title, *(each.words for each in panels)])
    drawn = panels[0] if len(panels) == 1 else stacked(panels, title)
    return Picture(title=title, words=said, width=WIDTH, height=drawn.height, shapes=drawn.shapes, note=note)


def _marks(low: float, high: float) -> list[float]:
    """Round marks between two numbers."""
    step = Scale.over([Bar(labels=(), value=high - low)]).step
    first = math.ceil(low / step - 1e-9)
    return [round(step * (first + each), 12) for each in range(math.floor(high / step + 1e-9) - first + 1)]


def _whisker(low: float, high: float, y: float) -> list[Shape]:
    return [line("whisker", (low, y), (high, y)), *(line("whisker", (x, y - 4), (x, y + 4)) for x in (low, high))]


def _steps(end: float, start: float = 0.0) -> list[float]:
    """Round marks from ``start`` to ``end``."""
    scale = Scale.over([Bar(labels=(), value=end - start)])
    return [start + mark for mark in scale.marks if start + mark <= end * (1 + 1e-9)]


def followed(cost: Cost) -> tuple[Floats, Floats]:
    """ε from zero to where δ is next to nothing, and δ(ε) there."""
    end = min(float(cost.renyi(math.inf)), float(cost.epsilon(LEAST_DELTA)))
    epsilons = np.linspace(0.0, end if math.isfinite(end) and end > 0 else 1.0, STEPS)
    return epsilons, np.array([float(cost.delta(float(epsilon))) for epsilon in epsilons])


def interpolated(cost: Cost) -> Profile:
    """The profile from few points, never below the truth: δ is convex in e^ε, so chords lie above it."""
    epsilons, deltas = followed(cost)
    factors = np.exp(epsilons)
    return lambda epsilon: float(np.interp(math.exp(min(epsilon, 700.0)), factors, deltas))


def profile_picture(cost: Cost) -> Picture:
    """δ as a function of ε: every (ε, δ) on the line is kept by the same releases."""
    epsilons, deltas = followed(cost)
    seen = deltas > 0
    least = 10.0 ** math.floor(math.log10(max(float(deltas[seen].min()), 1e-12))) if seen.any() else 1e-12
    frame = Frame(64, 30, WIDTH - 20, 330, (0.0, float(epsilons[-1])), (least, 1.0), log_y=True)
    powers = range(round(math.log10(least)), 1, max(1, round(-math.log10(least) / 6)))
    shapes = frame.axes(_steps(float(epsilons[-1])), [10.0**power for power in powers], "ε", "δ")
    points = [frame.at(float(e), float(d)) for e, d in zip(epsilons, deltas, strict=True) if d >= least]
    shapes.append(line("line", *points))
    for delta in (1e-6,):
        if least <= delta <= 1:
            epsilon = float(cost.epsilon(delta))
            if math.isfinite(epsilon) and epsilon <= epsilons[-1]:
                x, y = frame.at(epsilon, delta)
                said = f"ε = {epsilon:.3g} at δ = {delta:g}"
                beside = (10, -8, "start") if x < WIDTH - 190 else (-10, 18, "end")
                shapes += [dot("chosen", x, y), text(said, x + beside[0], y + beside[1], anchor=beside[2])]
    title = f"Privacy profile of {_releases(cost)}"
    said = f"Line: δ falls from {deltas[0]:.3g} at ε = 0 to {deltas[-1]:.1g} at ε = {epsilons[-1]:.3g}."
    return Picture(title=title, words=said, width=WIDTH, height=376, shapes=tuple(shapes))


def _releases(cost: Cost) -> str:
    return "one release" if cost.releases == 1 else f"{cost.releases:,} releases"


def tradeoff_picture(cost: Cost) -> Picture:
    """What the best attacker can do: false alarms against misses. The dashed line is guessing."""
    alphas = np.linspace(0.0, 1.0, 101)
    profile = interpolated(cost)
    misses = [1.0, *(1.0 - success(profile, float(alpha)) for alpha in alphas[1:-1]), 0.0]
    frame = Frame(64, 30, 384, 350, (0.0, 1.0), (0.0, 1.0))
    marks = [0.0, 0.25, 0.5, 0.75, 1.0]
    shapes = frame.axes(marks, marks, "false alarms", "misses")
    shapes.append(line("guess", frame.at(0, 1), frame.at(1, 0)))
    shapes.append(line("line", *(frame.at(float(a), float(b)) for a, b in zip(alphas, misses, strict=True))))
    best = (1.0 + float(cost.delta(0.0))) / 2.0
    title = f"Trade-off curve of {_releases(cost)}"
    note = (
        "An attacker who knows all other rows decides whether a person's data is one thing or another. No test lies "
        f"below the line; the best is right with probability {min(best, 1.0):.3g}, and guessing with 0.5."
    )
    return Picture(title=title, words=note, width=420, height=396, shapes=tuple(shapes), note=note)


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
        shapes += [line("grid", (x, TOP), (x, bottom)), _label(f"{10.0**power:g}", x, bottom + 16, "middle")]
    most = f"{100 * (1 - failure):g} %"
    for row, (name, mean, quantile) in enumerate(rows):
        y, end = TOP + 7 + LINE * row + LINE / 2, at(max(quantile, mean))
        shapes += [text(names[row], left - 8, y + 4, anchor="end")]
        shapes += [line("whisker", (at(mean), y), (end, y)), line("whisker", (end, y - 4), (end, y + 4))]
        shapes += [dot("chosen" if name == chosen else "mean", at(mean), y), text(f"{mean:.2g}", end + 8, y + 4)]
    shapes.append(
        _label(f"{measure}; the dot is the mean, the tick has {most} of errors below it", left, bottom + 34, "start")
    )
    said = f"Dots: {', '.join(f'{name} {mean:.2g}' for name, mean, _ in rows)}. {why}"
    return Picture(title=title, words=said, width=WIDTH, height=int(bottom + 44), shapes=tuple(shapes), note=why)
