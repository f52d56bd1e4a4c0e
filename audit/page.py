"""The table of the audit, for a terminal and for docs/reproduction/audit.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from audit.bounds import ERROR
from audit.result import Row

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "reproduction" / "audit.md"
RESULTS = {"now": HERE / "results.json"}
"""The stored run of the code as it is."""


def stored(name: str) -> dict[str, Any]:
    """A stored run."""
    found: dict[str, Any] = json.loads(RESULTS[name].read_text(encoding="utf-8"))
    return found


def record(rows: Sequence[Row], version: str) -> dict[str, Any]:
    """JSON form of a run."""
    return {"dpbayes": version, "rows": [row.record() for row in rows]}


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """How many claims hold, how sure that is, and which attacks are no evidence."""
    failed, bounds = sum(not row["holds"] for row in rows), sum(row["bounds"] for row in rows)
    verdict = "every claim holds" if not failed else f"{failed} claims are refuted"
    chance = f" {bounds:,} statistical bounds: a false alarm has a chance below {bounds * ERROR:.0e}." if bounds else ""
    return f"{len(rows)} attacks, {verdict}.{chance}"


def evidence(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Attacks that notice a planted fault; runs from before any was planted are shown as they are."""
    return [row for row in rows if row["rejects"]] if any(row.get("rejects") for row in rows) else list(rows)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A Markdown table of the evidence, and the names of attacks that notice no planted fault."""
    lines = ["| | attack | claim | measured | verdict | rejects |", "| --- | --- | --- | --- | --- | --- |"]
    shown = evidence(rows)
    for row in shown:
        verdict = "holds" if row["holds"] else "**refuted**"
        cells = [row["area"], row["attack"], row["claim"], row["measured"], verdict, row.get("rejects", "")]
        lines.append(f"| {' | '.join(cells)} |")
    blind = [row["attack"] for row in rows if row not in shown]
    if blind:
        lines += ["", f"No evidence, since they notice no planted fault: {'; '.join(blind)}."]
    return "\n".join(lines)


def generated(name: str) -> str:
    """What stands between the markers of a stored run."""
    rows = stored(name)["rows"]
    return f"{summary(rows)}\n\n{table(rows)}"


def written(text: str) -> str:
    """The page with its tables renewed."""
    for name in RESULTS:
        start, end = markers(name)
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = f"{before}{start}\n{generated(name)}\n{end}{after}"
    return text


def markers(name: str) -> tuple[str, str]:
    """Where the table of a run begins and ends on the page."""
    return f"<!-- audit {name} -->\n", f"\n<!-- end of audit {name} -->"


def publish(rows: Sequence[Row], version: str, name: str = "now") -> None:
    """Store a run and renew the page."""
    text = json.dumps(record(rows, version), indent=1, ensure_ascii=False) + "\n"
    RESULTS[name].write_text(text, encoding="utf-8")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
