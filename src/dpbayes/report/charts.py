"""Charts in one style: legible, colour-blind safe, no network. Drawn by matplotlib (extra ``plot``)."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpbayes.errors import InvalidArgument, MissingExtra

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#666666"
"""Two colours of the palette of Okabe and Ito, and a grey."""

FORMATS = (".png", ".svg", ".html")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar with an optional whisker up to ``upper``."""

    label: str
    value: float
    upper: float | None = None
    highlighted: bool = False


def save_bars(path: Path, rows: Sequence[Bar], *, title: str, axis: str, note: str = "") -> None:
    """Draw horizontal bars on a logarithmic axis into a PNG, SVG or self-contained HTML file."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidArgument(f"chart: expected a file that ends in {', '.join(FORMATS)}, got {path.name!r}.")
    kind = path.suffix.lower().removeprefix(".")
    drawn = _draw(rows, title, axis, "png" if kind == "png" else "svg")
    if kind == "html":
        svg = drawn.decode("utf-8")
        svg = svg[svg.index("<svg") :]
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
            '<body style="font-family:sans-serif;max-width:60rem;margin:2rem auto">'
            f"{svg}<p>{html.escape(note)}</p></body></html>\n"
        )
        drawn = page.encode("utf-8")
    path.write_bytes(drawn)


def _draw(rows: Sequence[Bar], title: str, axis: str, kind: str) -> bytes:
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtra("chart: matplotlib is not installed; install dpbayes[plot].") from None
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with mpl.rc_context({"font.size": 11, "svg.hashsalt": "dpbayes"}):
        figure, axes = plt.subplots(figsize=(8.5, 1.3 + 0.45 * len(rows)), layout="constrained")
        for position, row in enumerate(reversed(rows)):
            axes.barh(position, row.value, color=ORANGE if row.highlighted else BLUE, height=0.6)
            end = row.value
            if row.upper is not None:
                end = max(row.upper, row.value)
                axes.plot([row.value, end], [position, position], color=GREY, linewidth=1.5)
                axes.plot([end], [position], color=GREY, marker="|", markersize=9)
            axes.annotate(f"  {row.value:.3g}", (end, position), va="center", fontsize=10)
        axes.set_yticks(range(len(rows)), [row.label for row in reversed(rows)])
        axes.set_xscale("log")
        axes.set_xlim(0.5 * min(row.value for row in rows), 2.5 * max(row.upper or row.value for row in rows))
        axes.set_xlabel(axis)
        axes.set_title(title, loc="left", fontsize=12)
        axes.spines[["top", "right"]].set_visible(False)
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
        plt.close(figure)
    return buffer.getvalue()
