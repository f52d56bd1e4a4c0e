"""A drawing as a list of shapes, in pixels: SVG in the report's style, or PNG and PDF replayed by matplotlib.

Colours come from the style sheet of the report alone: SVG follows light and dark, PNG and PDF are light.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpbayes.domain.markup import Html, embedded, joined, style, tag
from dpbayes.errors import InvalidArgument, MissingExtra
from dpbayes.report.page import page

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
        return embedded(self.figure)

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
            return tag("rect", x=x, y=y, width=f"{wide:.1f}", height=f"{high:.1f}", class_=_kind(shape.kind))
        case "dot":
            return tag("circle", cx=x, cy=y, r=f"{wide:g}", class_=f"p-{shape.kind}")
        case _:
            return tag("text", shape.text, x=x, y=y, text_anchor=shape.anchor, class_=f"p-{shape.kind}")


def _kind(kind: str) -> str:
    return kind if re.fullmatch(r"s\d", kind) else f"p-{kind}"


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
        shapes += [_moved(shape, top) for shape in each.shapes]
        top += each.height + 10
    said = " ".join(each.words for each in pictures)
    width = max(each.width for each in pictures)
    return Picture(title=title, words=said, width=width, height=top, shapes=tuple(shapes))


def _moved(shape: Shape, down: float) -> Shape:
    points = tuple((x, y + down) for x, y in shape.points)
    return Shape(shape.what, shape.kind, points, shape.size, shape.text, shape.anchor)
