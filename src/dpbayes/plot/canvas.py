"""A drawing as a list of shapes, in pixels: SVG in the report's style, or PNG and PDF replayed by matplotlib.

Colours come from the style sheet of the report alone: SVG follows light and dark, PNG and PDF are light. Charts of
bars are HTML tables: their labels and numbers wrap, scale and can be read aloud.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpbayes.base.display import Html, embed, joined, page, style, tag
from dpbayes.base.errors import InvalidArgument, MissingExtra

FORMATS = (".svg", ".html", ".png", ".pdf")

COLOURS = {
    "line": "edge", "second": "second", "grid": "rule", "axis": "faint", "whisker": "whisker", "bar": "bar",
    "mean": "edge", "chosen": "second", "arrow": "faint", "node": "paper", "guess": "faint",
}  # fmt: skip
"""The variable of the style sheet that colours each kind of shape."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A line through points, a box, a dot or a text."""

    what: str
    kind: str
    points: tuple[tuple[float, float], ...]
    size: tuple[float, float] = (0.0, 0.0)
    text: str = ""
    anchor: str = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A drawing with a title, words for those who do not see it, and its size in pixels.

    Notebooks show it; ``save`` writes SVG or HTML, and PNG or PDF where matplotlib is installed.
    """

    title: str
    words: str
    width: int
    height: int
    shapes: tuple[Shape, ...] = field(repr=False)
    note: str = ""

    @property
    def svg(self) -> Html:
        """The drawing for a page that has the style sheet."""
        box = f"0 0 {self.width} {self.height}"
        drawn = joined([tag("title", self.title), *map(_svg, self.shapes)])
        return tag("svg", drawn, viewBox=box, role="img", aria_label=self.words, class_="picture", width=self.width)

    @property
    def figure(self) -> Html:
        """The drawing with its title and note."""
        note = [tag("p", self.note, class_="note")] if self.note else []
        return tag("figure", tag("figcaption", self.title), self.svg, *note)

    def _repr_html_(self) -> str:
        return embed(self.figure)

    def save(self, path: str | Path) -> Path:
        """Write a file, in the format that its name says."""
        target = Path(path)
        kind = target.suffix.lower()
        if kind not in FORMATS:
            raise InvalidArgument(f"picture: expected a file that ends in {', '.join(FORMATS)}, got {target.name!r}.")
        try:
            if kind == ".html":
                target.write_text(page(self.title, self.figure), encoding="utf-8")
            elif kind == ".svg":
                target.write_text(self._file(), encoding="utf-8")
            else:
                self._replay(target)
        except OSError as problem:
            raise InvalidArgument(f"picture: cannot write {str(path)!r}: {problem.strerror}.") from None
        return target

    def _file(self) -> str:
        """The drawing as a file of its own, with the style inside."""
        body = self.svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        at = body.index(">") + 1
        ground = f'<rect width="{self.width}" height="{self.height}" class="ground"/>'
        return f"{body[:at]}<style>{style()}</style>{ground}{body[at:]}\n"

    def _replay(self, path: Path) -> None:
        try:
            import matplotlib as mpl
        except ImportError:
            raise MissingExtra(
                f"picture: {path.suffix} needs matplotlib; install dpbayes[plot], or write .svg or .html."
            ) from None
        mpl.use("Agg")
        from matplotlib import pyplot as plt

        figure = plt.figure(figsize=(self.width / 100, self.height / 100))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        axes.axis("off")
        colours = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", style()[: style().index("@media")]))
        for order, shape in enumerate(self.shapes):
            _replayed(axes, shape, colours, order)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)  # its font lacks some scripts
            figure.savefig(path, dpi=200)
        plt.close(figure)


def _svg(shape: Shape) -> Html:
    points = [(f"{x:g}", f"{y:g}") for x, y in ((round(x, 1), round(y, 1)) for x, y in shape.points)]
    (x, y), (wide, high) = points[0], shape.size
    match shape.what:
        case "path":
            return tag("path", d="M" + "L".join(f"{a} {b}" for a, b in points), class_=f"p-{shape.kind}")
        case "box":
            shaded = re.fullmatch(r"s\d", shape.kind)
            css = shape.kind if shaded else f"p-{shape.kind}"
            return tag("rect", x=x, y=y, width=f"{wide:.1f}", height=f"{high:.1f}", class_=css)
        case "dot":
            return tag("circle", cx=x, cy=y, r=f"{wide:g}", class_=f"p-{shape.kind}")
        case _:
            return tag("text", shape.text, x=x, y=y, text_anchor=shape.anchor, class_=f"p-{shape.kind}")


def _replayed(axes: Any, shape: Shape, colours: dict[str, str], order: int) -> None:
    """Draw one shape again with matplotlib; later shapes lie above earlier ones."""
    from matplotlib.patches import Circle, Rectangle

    (x, y), (wide, high) = shape.points[0], shape.size
    if re.fullmatch(r"s\d", shape.kind):
        colour = colours.get(shape.kind, colours["paper"])
    else:
        colour = colours.get(COLOURS.get(shape.kind, "ink"), colours["ink"])
    edge = colours["edge"] if shape.kind in ("bar", "node") else colour
    match shape.what:
        case "path":
            thin, dashed = shape.kind in ("grid", "axis"), shape.kind == "guess"
            axes.plot(
                *zip(*shape.points, strict=True), color=colour, linewidth=0.7 if thin else 1.4,
                linestyle="--" if dashed else "-", zorder=order,
            )  # fmt: skip
        case "box":
            axes.add_patch(Rectangle((x, y), wide, high, facecolor=colour, edgecolor=edge, linewidth=0.8, zorder=order))
        case "dot":
            axes.add_patch(Circle((x, y), wide, facecolor=colour, edgecolor=edge, zorder=order))
        case _:
            side = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
            ink = colours["faint"] if shape.kind == "label" else colours["ink"]
            axes.text(x, y, shape.text.replace("$", r"\$"), ha=side, va="baseline", fontsize=8, color=ink, zorder=order)


def line(kind: str, *points: tuple[float, float]) -> Shape:
    """A line through points."""
    return Shape("path", kind, points)


def box(kind: str, x: float, y: float, width: float, height: float) -> Shape:
    """A rectangle."""
    return Shape("box", kind, ((x, y),), (max(width, 0.0), max(height, 0.0)))


def dot(kind: str, x: float, y: float, radius: float = 4.5) -> Shape:
    """A filled circle."""
    return Shape("dot", kind, ((x, y),), (radius, radius))


def text(words: str, x: float, y: float, *, kind: str = "text", anchor: str = "start") -> Shape:
    """Words, on their baseline."""
    return Shape("text", kind, ((x, y),), text=words, anchor=anchor)


def cut(words: str, most: int) -> str:
    """Words that fit."""
    return words if len(words) <= most else words[: most - 1] + "…"


def widest(labels: Sequence[str], most: int = 36) -> float:
    """How many pixels labels need, at most."""
    return 7.0 * min(max(map(len, labels), default=0), most) + 8.0


def stacked(pictures: list[Picture], title: str) -> Picture:
    """Several pictures below each other, each with its title."""
    shapes: list[Shape] = []
    top = 0
    for each in pictures:
        shapes.append(text(each.title, 4, top + 16, kind="heading"))
        top += 26
        shapes += [replace(one, points=tuple((x, y + top) for x, y in one.points)) for one in each.shapes]
        top += each.height + 10
    said = " ".join(each.words for each in pictures)
    width = max(each.width for each in pictures)
    return Picture(title=title, words=said, width=width, height=top, shapes=tuple(shapes))


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
                label(f"{value:g}", x, self.bottom + 16, "middle"),
            ]
        for value in ys:
            y = self.at(self.x[0], value)[1]
            shapes += [line("grid", (self.left, y), (self.right, y)), label(f"{value:g}", self.left - 6, y + 4, "end")]
        shapes.append(label(x_name, (self.left + self.right) / 2, self.bottom + 34, "middle"))
        return [*shapes, label(y_name, 4, self.top - 8, "start")]


def label(said: str, x: float, y: float, anchor: str) -> Shape:
    """Faint words."""
    return text(said, x, y, kind="label", anchor=anchor)


ROW = 22
"""Height in pixels of a row; its bar has half of it, and the whisker's caps a third."""

WIDTH = 1000
"""Units across a drawing, however wide it is on the page."""

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
        if reach < 1e-12:
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
    styles = ["number" if at < 2 else "number wide" for at in range(len(columns))]  # small screens show two
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
    middle, cap = ROW // 2, ROW // 3
    top, low_end = (ROW - cap) // 2, (ROW + cap) // 2
    # Lines of the grid are as tall as any row whose labels wrap: the style sheet clips them.
    grid = "".join(f"M{scale.at(mark)}-{WIDTH}V{WIDTH}" for mark in scale.marks)
    shapes = [
        tag("path", d=grid, class_="grid"),
        tag("rect", y=(ROW - middle) // 2, width=scale.at(bar.value), height=middle, class_="bar"),
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
