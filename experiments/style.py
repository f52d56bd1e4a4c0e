"""One look for all figures: colours of Okabe and Ito, the same one for the same method everywhere."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from PIL import Image

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PINK, GREY = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
    "#888888",
)
METHODS: dict[str, dict[str, Any]] = {
    # what the papers ran
    "paper": {"color": ORANGE, "marker": "o", "label": "paper's mechanism"},
    "paper gaussian": {"color": GREEN, "marker": "v", "linestyle": ":", "label": "Gaussian, as in the paper"},
    "paper laplace": {"color": PINK, "marker": "^", "linestyle": ":", "label": "Laplace, as in the paper"},
    # the same budget, used well
    "dpbayes": {"color": BLUE, "marker": "s", "label": "dpbayes"},
    "fair gaussian": {"color": GREEN, "marker": "v", "label": "Gaussian, fair"},
    "fair laplace": {"color": PINK, "marker": "^", "label": "Laplace, fair"},
    "exact draw": {"color": SKY, "marker": "D", "label": "draw, exact accounting"},
    "not private": {"color": BLACK, "linestyle": "--", "label": "not private"},
}
"""How each method is drawn; an experiment may override the label."""

LOOK = {
    "font.size": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E5E5E5",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "lines.markersize": 4.5,
    "lines.linewidth": 1.5,
    "errorbar.capsize": 2.5,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.hashsalt": "dpbayes",
    "svg.fonttype": "path",
}


def panels(
    columns: int, rows: int = 1, *, width: float = 4.2, height: float = 3.2, **options: Any
) -> tuple[Figure, Any]:
    """A figure with a grid of panels, as ``plt.subplots`` gives them (always two-dimensional)."""
    return plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), layout="constrained", squeeze=False, **options
    )


def curve(axes: Axes, x: Any, y: Any, method: str, error: Any = None, **options: Any) -> None:
    """One method with error bars, in its own colour and marker."""
    axes.errorbar(x, y, yerr=error, **(METHODS[method] | options))


def above_zero(values: Any, error: Any) -> list[Any]:
    """Ends of error bars for a logarithmic axis: downwards they stop at a tenth of the value."""
    return [error.clip(upper=0.9 * values), error]


def boxes(axes: Axes, places: Any, rows: Any, method: str, width: float = 0.3, alpha: float = 0.75) -> None:
    """One box a row, from its columns lowest, lower, median, upper and highest, in the colour of a method."""
    columns = {"whislo": "lowest", "q1": "lower", "med": "median", "q3": "upper", "whishi": "highest"}
    drawn = [{key: row[name] for key, name in columns.items()} for _, row in rows.iterrows()]
    axes.bxp(
        drawn,
        positions=places,
        widths=width,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": METHODS[method]["color"], "alpha": alpha},
        medianprops={"color": BLACK},
    )


def shared_legend(figure: Figure, axes: Axes, columns: int = 4) -> None:
    """The legend of one panel, below all of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def plain_log(axes: Axes) -> None:
    """A logarithmic vertical axis with plain numbers at 1, 2 and 5."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def save(draw: Callable[[], Figure], stem: Path) -> None:
    """Draw in our look and save as PNG and SVG."""
    with mpl.rc_context(LOOK):
        figure = draw()
        figure.savefig(drawn := io.BytesIO(), format="png", dpi=110)
        few = Image.open(drawn).convert("RGB").quantize(128)  # a third of the size
        few.save(stem.with_suffix(".png"), optimize=True)
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        plt.close(figure)
