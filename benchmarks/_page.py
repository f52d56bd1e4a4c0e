"""The page of benchmarks, from a stored run: ``python -m benchmarks._page`` publishes out/bench.json and its charts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from benchmarks import _chart

PAGES = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
INTRODUCTION = (
    "# Benchmarks\n\n"
    "One run of `make bench` on a machine with two cores. Ratios are what counts; seconds are medians of a few runs "
    "and belong to that machine. Written by `python -m benchmarks._page` from [results.json](results.json). Peers come "
    "from `make peers`; one that cannot be loaded is named with the reason.\n"
)


def markdown(results: dict[str, Any]) -> str:
    """Tables of the peers and of growth, and the goals that the project set itself."""
    lines = [INTRODUCTION, "## Beside its peers", "", "![Peers](bench-peers.png)", ""]
    for job, found in results["peers"].items():
        lines += [
            f"### {job[0].upper()}{job[1:]}",
            "",
            "| library | seconds | least to most | times dpbayes | outcome |",
        ]
        lines += ["| --- | ---: | ---: | ---: | --- |"]
        for name, row in found.items():
            if isinstance(row, str):
                lines.append(f"| {name} | – | – | – | {row} |")
                continue
            outcome = ", ".join(f"{what} {value:g}" for what, value in row.items() if what not in _chart.TIMES)
            lines.append(
                f"| {name} | {row['seconds']:.3g} | {row['least']:.3g} to {row['most']:.3g} | "
                f"{row['times dpbayes']:.2g} | {outcome} |"
            )
        lines.append("")
    lines += ["The first run of each loads or compiles what it needs, so the largest time shows that cost.", ""]
    lines += ["## Growth", "", "![Growth](bench-growth.png)", "", "| | slope of the last tenfold step (1 is linear) |"]
    lines += ["| --- | ---: |"]
    lines += [f"| {title} | {found['slope at the end']} |" for title, found in results["growth"].items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    results = json.loads((Path("out") / "bench.json").read_text(encoding="utf-8"))
    PAGES.mkdir(exist_ok=True)
    (PAGES / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name in ("peers", "growth"):
        for kind in ("png", "svg"):
            shutil.copy(Path("out") / f"bench-{name}.{kind}", PAGES / f"bench-{name}.{kind}")
    (PAGES / "index.md").write_text(markdown(results), encoding="utf-8")


if __name__ == "__main__":
    main()
