"""Attack everything that is published: ``python -m audit [--quick] [--publish] [part …]``.

Prints a table of attacks, claims and what was measured, and keeps it in out/audit.json. Exit code 1 where a claim is
refuted. ``--publish`` stores the run and renews docs/reproduction/audit.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from audit import page
from audit.planted import FAULTS
from audit.result import LONG, QUICK, Effort, Row

PARTS = ("mechanisms", "products", "discovery", "floats", "adaptive", "oracle", "canaries")
"""Modules of this package; each has ``run(effort) -> list[Row]``."""


def run(part: str, effort: Effort) -> list[Row]:
    """The rows of one part."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # budgets that are meaningless on purpose
        found: list[Row] = import_module(f"audit.{part}").run(effort)
    return found


def with_power(part: str, effort: Effort) -> list[Row]:
    """The rows of one part, each with the weakest planted fault that it notices."""
    rows = run(part, effort)
    for fault in FAULTS[part]:
        if all(row.rejects for row in rows):
            break
        with fault.plant():
            refuted = {row.attack for row in run(part, effort) if not row.holds}
        rows = [row if row.rejects or row.attack not in refuted else replace(row, rejects=fault.words) for row in rows]
    return rows


def main(arguments: list[str]) -> int:
    """Run the parts and report."""
    parser = argparse.ArgumentParser(prog="python -m audit", description="Attack everything that is published.")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"some of: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, and far less power")
    parser.add_argument("--publish", action="store_true", help="store the run and renew the page")
    asked = parser.parse_args(arguments)
    unknown = set(asked.parts) - set(PARTS)
    if unknown or (asked.publish and (asked.quick or asked.parts)):
        parser.error("unknown parts, or --publish of less than a full run")
    rows: list[Row] = []
    for part in asked.parts or PARTS:
        started = time.perf_counter()
        rows += run(part, QUICK) if asked.quick else with_power(part, LONG)
        print(f"{part}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    records = [row.record() for row in rows]
    print(page.table(records))
    print(f"\n{page.summary(records)}")
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    kept = json.dumps(page.record(rows, version("dpbayes")), indent=1, ensure_ascii=False)
    (folder / "audit.json").write_text(kept + "\n", encoding="utf-8")
    if asked.publish:
        page.publish(rows, version("dpbayes"))
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
