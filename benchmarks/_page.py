"""The page of benchmarks, from a stored run: ``python -m benchmarks._page`` publishes out/bench.json and its charts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from benchmarks import _chart, synthetic_peers

PAGES = Path(__file__).resolve().parents[1] / "docs" / "reproduction"
INTRODUCTION = (
    "# Benchmarks\n\n"
    "Runs of `make bench` on a machine with two cores, which others used at the same time. Compare ratios.\n"
    "Seconds are CPU seconds unless stated, and belong to that machine.\n"
    "Written by `python -m benchmarks._page` from [benchmarks.json](benchmarks.json). Other libraries come from "
    "`make peers`; one that cannot be loaded is named with the reason.\n"
)


OUTCOMES = {True: "reached", False: "missed", None: "not measured"}


def markdown(results: dict[str, Any]) -> str:
    """Tables of the peers and of growth, and the goals that the project set itself."""
    lines = [
        INTRODUCTION,
        *_goals(results.get("goals", {})),
        "## Beside other libraries",
        "",
        "Seconds of the wall clock, measured apart from the rest: medians of a few runs, the least and the most.",
        "",
        "![Peers](bench-peers.png)",
        "",
    ]
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
    more = [*_walls(results.get("walls", {})), *_engines(results.get("scale_out", {})), *_synthetic()]
    return "\n".join([*lines, *more]) + "\n"


def _synthetic() -> list[str]:
    """Synthetic records beside other tools, from their own stored runs."""
    stored = PAGES / "synthetic-peers.json"
    if not stored.is_file():
        return []
    return [
        "",
        "## Synthetic records beside other tools",
        "",
        "Mean total variation of pairs / of 100 triples / AUC of a boosted model trained on the records, and CPU "
        "seconds of fitting; δ = 10⁻⁶. What was run and what the guarantees cover: "
        "[synthetic records](synthetic.md#beside-other-tools).",
        "",
        synthetic_peers.markdown(json.loads(stored.read_text(encoding="utf-8"))),
    ]


def _engines(found: dict[str, Any]) -> list[str]:
    """Counting where the rows are, beside what each engine takes for a scan and for the best query by hand."""
    lines = [
        "",
        "## Other engines",
        "",
        "21 tables of 21 columns of text, counted by each engine. CPU seconds of all processes of the engine; a query "
        "by hand is the best of three. Spark runs on two cores.",
        "",
        "| engine | rows | scan, s | count, s | count over scan | count over the best query by hand |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for engine, sizes in found.items():
        for rows, row in sizes.items() if isinstance(sizes, dict) else ():
            if isinstance(row, dict) and "over scan" in row:
                spent = row["processor"]
                lines.append(
                    f"| {engine} | {rows.removesuffix(' rows')} | {spent['scan']:.3g} | {spent['count']:.3g} | "
                    f"{row['over scan']} | {row.get('over the best query by hand', '–')} |"
                )
    return lines if len(lines) > 7 else []


def _walls(found: dict[str, Any]) -> list[str]:
    """Curves towards the walls, in CPU seconds."""
    if not found:
        return []
    lines = ["", "CPU seconds towards the known walls:", ""]
    lines += ["| | seconds at each size | exponent of the last step |", "| --- | --- | ---: |"]
    for title, row in found.items():
        sizes = ", ".join(f"{int(size):,}: {value:.3g}" for size, value in row["processor"].items())
        lines.append(f"| {title} | {sizes} | {row['exponent']} |")
    return [
        *lines,
        "",
        "Planning a count compares each table with all that were packed before it, so it grows faster than linearly; a "
        "thousand tables take a twentieth of a second. Different losses are composed two by two, in K·log² K.",
    ]


def _goals(found: dict[str, Any]) -> list[str]:
    """Every goal beside what was measured, and why where it was missed."""
    if not found:
        return []
    machine = found.get("machine", {})
    lines = [
        "## Goals",
        "",
        "Each job runs in a process of its own. CPU seconds are the least of a few runs (and the most).",
        "Other work shares the machine, so wall time says little: the load was "
        f"{machine.get('load when it ended', 0):.0f} on {machine.get('processors', '?')} cores when this run ended.",
        f"Bytecode was {'compiled' if machine.get('bytecode', True) else 'not compiled'}. "
        "Commands stand beside a Python that imports, or a script that counts, adds noise and writes CSV.",
        "A ratio compares two jobs of one process. Memory is the peak of the whole process, what it is compared with "
        "included.",
        "",
        "| job | goal | CPU s, least (most) | wall s | beside it | ratio | peak MB | |",
        "| --- | --- | ---: | ---: | --- | ---: | ---: | --- |",
    ]
    for row in found.values():
        if "job" not in row:
            continue
        beside = row.get("beside")
        spent = f"{row['processor']:.3g} ({row['most']:.3g})" if "processor" in row else "–"
        lines.append(
            f"| {row['job']} | {row['goal']} | {spent} | {row.get('wall', '–')} | "
            f"{beside['what'] + ', ' + format(beside['processor'], '.3g') + ' s' if beside else '–'} | "
            f"{row.get('ratio', '–')} | {row.get('peak MB', '–')} | "
            f"{OUTCOMES[row['reached']]}{': ' + row['why'] if 'why' in row else ''} |"
        )
    return [*lines, ""]


def main() -> None:
    stored = PAGES / "benchmarks.json"
    results = json.loads(stored.read_text(encoding="utf-8")) if stored.is_file() else {}
    results |= json.loads((Path("out") / "bench.json").read_text(encoding="utf-8"))
    PAGES.mkdir(exist_ok=True)
    (PAGES / "benchmarks.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name in ("peers", "growth"):
        for kind in ("png", "svg"):
            if (drawn := Path("out") / f"bench-{name}.{kind}").is_file():
                shutil.copy(drawn, PAGES / drawn.name)
    (PAGES / "benchmarks.md").write_text(markdown(results), encoding="utf-8")


if __name__ == "__main__":
    main()
