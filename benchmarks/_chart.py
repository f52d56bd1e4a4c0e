"""Charts of a run: peers as bars, growth as curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import style

TIMES = ("seconds", "least", "most", "times dpbayes")


def peers(results: dict[str, Any]) -> Any:
    """Seconds of every library in every job; the line spans all its runs."""
    figure, axes = style.panels(2, 2, width=5.2, height=2.4)
    for panel, (job, found) in zip(axes.flat, results.items(), strict=True):
        measured = {name: row for name, row in found.items() if isinstance(row, dict)}
        for place, (name, row) in enumerate(reversed(measured.items())):
            panel.barh(place, row["seconds"], color=style.BLUE if name == "dpbayes" else style.GREY, height=0.6)
            panel.plot([row["least"], row["most"]], [place, place], color=style.BLACK, linewidth=1)
            outcome = [f"{what} {row[what]:.3g}" for what in row if what not in TIMES]
            note = ", ".join([f"{row['seconds']:.2g} s", *outcome])
            panel.annotate(f" {note}", (row["most"], place), va="center", fontsize=8)
        panel.set_yticks(range(len(measured)), list(reversed(measured)))
        panel.set_xscale("log")
        left, right = panel.get_xlim()
        panel.set_xlim(left, right * 30)
        panel.set_title(job)
        panel.set_xlabel("seconds (median; line from least to most)")
        panel.grid(visible=False, axis="y")
    return figure


def growth(results: dict[str, Any]) -> Any:
    """Seconds against size, both in logarithms; the dotted line is linear growth."""
    figure, axes = style.panels(4, width=3.2, height=2.8)
    for panel, (title, found) in zip(axes[0], results.items(), strict=True):
        sizes = [float(size) for size in found["seconds"]]
        seconds = list(found["seconds"].values())
        panel.plot(sizes, seconds, color=style.BLUE, marker="s")
        linear = [seconds[-1] * size / sizes[-1] for size in sizes]
        panel.plot(sizes, linear, color=style.GREY, linestyle=":")
        panel.set(
            xscale="log",
            yscale="log",
            title=title,
            xlabel=next(word for word in title.split() if word in "NdK"),
            ylabel="processor seconds",
        )
        panel.title.set_fontsize(9)
    return figure


def save(results: dict[str, Any], folder: Path) -> None:
    """The charts of those benchmarks that have one, as PNG and SVG."""
    for name, draw in (("peers", peers), ("growth", growth)):
        if name in results:
            style.save(lambda draw=draw, found=results[name]: draw(found), folder / f"bench-{name}")
