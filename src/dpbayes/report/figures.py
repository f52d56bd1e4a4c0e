"""Bars with whiskers, as SVG without text: labels and numbers stay HTML, so they wrap, scale and can be read aloud."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpbayes.domain.markup import Html, joined, tag

ROW, BAR, CAP = 24, 12, 8
"""Height in pixels of a row, of its bar and of the whisker's caps."""

TALLEST = 1000
"""Lines of the grid fill rows whose labels wrap up to this height; the style sheet clips them."""

MOST_DIGITS = 6

NOTHING = 1e-12
"""Bars shorter than this are as good as none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One cell: its levels, its share, and the interval of the share."""

    labels: tuple[str, ...]
    value: float
    lower: float | None = None
    upper: float | None = None

    @property
    def reach(self) -> float:
        """Where the drawing ends."""
        return max(self.value, self.upper or 0.0)

    @property
    def width(self) -> float | None:
        """Of the interval."""
        return None if self.lower is None or self.upper is None else self.upper - self.lower


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

    def at(self, share: float) -> str:
        """The position of a share along the axis, which drawings never leave."""
        return f"{100.0 * min(max(share / self.end, 0.0), 1.0):.3f}%"

    @property
    def marks(self) -> list[float]:
        """The marked shares."""
        return [index * self.step for index in range(self.steps + 1)]


def digits_for(bars: Sequence[Bar]) -> int:
    """Decimals of a percentage that show two digits of the typical uncertainty."""
    widths = sorted(bar.width for bar in bars if bar.width is not None and bar.width > 0)
    typical = widths[len(widths) // 2] if widths else 0.1
    return min(max(1 - math.floor(math.log10(100.0 * typical)), 0), MOST_DIGITS)


def percent(share: float, digits: int) -> str:
    """A share for people."""
    return f"{100.0 * float(share):.{digits}f} %"


def bar_chart(columns: Sequence[str], bars: Sequence[Bar], scale: Scale, *, digits: int) -> Html:
    """A table with one row a bar: the levels, the drawing, the number and its interval."""
    with_interval = any(bar.width is not None for bar in bars)
    head = [tag("th", column, scope="col") for column in columns]
    head += [tag("td", class_="drawing"), tag("th", "share", scope="col", class_="number")]
    if with_interval:
        head.append(tag("th", "interval", scope="col", class_="number interval"))
    rows = []
    for bar in bars:
        cells = [tag("th", label, scope="row", dir="auto") for label in bar.labels]
        cells += [
            tag("td", _drawing(bar, scale), class_="drawing"),
            tag("td", percent(bar.value, digits), class_="number"),
        ]
        if with_interval:
            cells.append(tag("td", _interval(bar, digits), class_="number interval"))
        rows.append(tag("tr", *cells))
    axis = tag("tr", *(tag("td") for _ in columns), tag("td", _axis(scale), class_="drawing"))
    return tag(
        "table",
        tag("thead", tag("tr", *head)),
        tag("tbody", *rows),
        tag("tfoot", axis, aria_hidden="true"),
        class_="bars",
    )


def _interval(bar: Bar, digits: int) -> str:
    if bar.lower is None or bar.upper is None:
        return "–"
    return f"{100.0 * bar.lower:.{digits}f} – {100.0 * bar.upper:.{digits}f}"


def _drawing(bar: Bar, scale: Scale) -> Html:
    middle, half_cap = ROW / 2, CAP / 2
    shapes = [_line(scale.at(mark), scale.at(mark), -TALLEST, TALLEST, "grid") for mark in scale.marks]
    shapes.append(tag("rect", x=0, y=middle - BAR / 2, width=scale.at(bar.value), height=BAR, class_="bar"))
    if bar.lower is not None and bar.upper is not None:
        low, high = scale.at(bar.lower), scale.at(bar.upper)
        shapes.append(_line(low, high, middle, middle, "whisker"))
        shapes += [_line(end, end, middle - half_cap, middle + half_cap, "whisker") for end in (low, high)]
    return tag("svg", joined(shapes), width="100%", height=ROW, aria_hidden="true")


def _axis(scale: Scale) -> Html:
    every = 2 if scale.steps > 3 else 1
    apart = 100.0 * scale.step * every
    digits = next((digits for digits in range(12) if math.isclose(apart, round(apart, digits))), 12)
    marks = [
        tag("text", f"{100.0 * mark:.{digits}f}", x=scale.at(mark), y=14, text_anchor="middle")
        for mark in scale.marks[::every]
    ]
    return tag("svg", joined(marks), width="100%", height=20, class_="axis")


def _line(x1: str, x2: str, y1: float, y2: float, kind: str) -> Html:
    return tag("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=kind)


def gauge(share: float, label: str) -> Html:
    """How much of a limit is used up."""
    return tag(
        "svg",
        tag("title", label),
        tag("rect", x=0, y=0, width="100%", height=18, class_="limit"),
        tag("rect", x=0, y=0, width=f"{100.0 * min(max(share, 0.0), 1.0):.3f}%", height=18, class_="spent"),
        width="100%",
        height=18,
        role="img",
        aria_label=label,
    )
