"""Bars with whiskers and shaded cells. Labels and numbers stay HTML, so they wrap, scale and can be read aloud."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpbayes.domain.markup import Html, joined, tag

ROW, BAR, CAP = 22, 11, 7
"""Height in pixels of a row, of its bar and of the whisker's caps."""

TALLEST = 999
"""Lines of the grid fill rows whose labels wrap up to this height; the style sheet clips them."""

WIDTH = 1000
"""Units across a drawing, however wide it is on the page."""

NOTHING = 1e-12
"""A bar shorter than this is not there."""

NARROW = 2
"""Columns of numbers that small screens show."""

SHADES = 6
"""Steps from paper to the darkest shade of a cell; the style sheet has a class for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One cell: its labels, its share, the interval of the share, and how the columns beside the drawing read."""

    labels: tuple[str, ...]
    value: float
    lower: float | None = None
    upper: float | None = None
    texts: tuple[str, ...] = ()

    @property
    def reach(self) -> float:
        """Where the drawing ends."""
        return max(self.value, self.upper or 0.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis of shares from zero to ``end``, marked at every ``step``."""

    step: float
    steps: int

    @classmethod
    def over(cls, bars: Sequence[Bar]) -> Scale:
        """The shortest axis of three to six round steps that holds all bars.

        >>> Scale.over([Bar(labels=("a",), value=0.31, lower=0.2, upper=0.42)])
        Scale(step=0.1, steps=5)
        """
        reach = max((bar.reach for bar in bars if math.isfinite(bar.reach)), default=0.0)
        if reach < NOTHING:
            return cls(0.25, 4)
        power = 10.0 ** math.floor(math.log10(reach))
        step = next(part * power for part in (0.2, 0.25, 0.5, 1.0, 2.0) if 6 * part * power >= reach * (1 - 1e-9))
        return cls(step, max(math.ceil(reach / step - 1e-9), 1))

    @property
    def end(self) -> float:
        """The last mark."""
        return self.step * self.steps

    def at(self, share: float) -> int:
        """The position of a share along the axis, which drawings never leave, of ``WIDTH``."""
        return round(WIDTH * min(max(share / self.end, 0.0), 1.0))

    @property
    def marks(self) -> list[float]:
        """The marked shares."""
        return [index * self.step for index in range(self.steps + 1)]


def bar_chart(caption: str, names: Sequence[str], columns: Sequence[str], bars: Sequence[Bar], scale: Scale) -> Html:
    """A table with one row per bar: its labels, the drawing, and the texts of the columns."""
    head = [tag("th", name, scope="col") for name in names]
    styles = ["number" if at < NARROW else "number wide" for at in range(len(columns))]
    head.append(tag("td", class_="drawing"))
    head += [tag("th", column, scope="col", class_=css) for column, css in zip(columns, styles, strict=True)]
    rows = []
    for bar in bars:
        cells = [tag("th", label, scope="row", dir="auto") for label in bar.labels]
        cells.append(tag("td", _drawing(bar, scale), class_="drawing"))
        cells += [tag("td", text, class_=css) for text, css in zip(bar.texts, styles, strict=True)]
        rows.append(tag("tr", *cells))
    axis = tag(
        "tr",
        *(tag("td") for _ in names),
        tag("td", _axis(scale), class_="drawing"),
        *(tag("td", class_=css) for css in styles),
    )
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *head)),
        tag("tbody", *rows),
        tag("tfoot", axis, aria_hidden="true"),
        class_="bars",
    )


def _drawing(bar: Bar, scale: Scale) -> Html:
    middle, top, low_end = ROW // 2, (ROW - CAP) // 2, (ROW + CAP) // 2
    grid = "".join(f"M{scale.at(mark)}-{TALLEST}V{TALLEST}" for mark in scale.marks)
    shapes = [
        tag("path", d=grid, class_="grid"),
        tag("rect", y=(ROW - BAR) // 2, width=scale.at(bar.value), height=BAR, class_="bar"),
    ]
    if bar.lower is not None and bar.upper is not None:
        low, high = scale.at(bar.lower), scale.at(bar.upper)
        caps = f"M{low} {top}V{low_end}M{high} {top}V{low_end}M{low} {middle}H{high}"
        shapes.append(tag("path", d=caps, class_="whisker"))
    box = f"0 0 {WIDTH} {ROW}"
    return tag("svg", joined(shapes), viewBox=box, preserveAspectRatio="none", height=ROW, aria_hidden="true")


def _axis(scale: Scale) -> Html:
    every = 2 if scale.steps > 3 else 1
    apart = 100.0 * scale.step * every
    digits = next((digits for digits in range(12) if math.isclose(apart, round(apart, digits))), 12)
    marks = [
        tag("text", f"{100.0 * mark:.{digits}f}", x=f"{100 * scale.at(mark) / WIDTH:g}%", y=13, text_anchor="middle")
        for mark in scale.marks[::every]
    ]
    return tag("svg", joined(marks), height=18, class_="axis", aria_hidden="true")


def shade(share: float, largest: float) -> str:
    """The class of a cell: the larger its share, the darker.

    >>> shade(0.0, 0.5), shade(0.5, 0.5)
    ('s0', 's6')
    """
    part = share / largest if largest > 0 and math.isfinite(share) else 0.0
    return f"s{min(max(round(SHADES * part), 0), SHADES)}"


def gauge(share: float, label: str) -> Html:
    """How much of a limit is used up."""
    return tag(
        "svg",
        tag("title", label),
        tag("rect", x=0, y=0, width="100%", height=14, class_="limit"),
        tag("rect", x=0, y=0, width=f"{100.0 * min(max(share, 0.0), 1.0):.3f}%", height=14, class_="spent"),
        width="100%",
        height=14,
        role="img",
        aria_label=label,
    )
