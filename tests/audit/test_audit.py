"""No attack of the audit succeeds, and its page shows a stored full run in which none did."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from audit.__main__ import PARTS, run
from audit.bounds import ERROR
from audit.result import LONG, QUICK, Effort

from audit import page


def refuted(part: str, effort: Effort) -> list[str]:
    rows = run(part, effort)
    assert rows
    assert sum(row.bounds for row in rows) * ERROR < 1e-6
    return [f"{row.attack}: claimed {row.claim}, measured {row.measured}" for row in rows if not row.holds]


@pytest.mark.parametrize("part", PARTS)
def test_no_quick_attack_succeeds(part: str) -> None:
    assert refuted(part, QUICK) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_no_long_attack_succeeds(part: str) -> None:
    assert refuted(part, LONG) == []


def test_the_page_shows_the_stored_runs() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.written(text) == text, "run python -m audit --publish"


def test_the_stored_run_is_green_and_has_every_attack_of_the_first_one() -> None:
    now, first = page.stored("now")["rows"], page.stored("0.1.0")["rows"]
    assert [row["attack"] for row in now if not row["holds"]] == []
    assert {row["area"] for row in now} >= {row["area"] for row in first}


@pytest.mark.parametrize(
    "broken",
    [
        lambda row: row["area"] == "discovery" and "text of one person" in row["attack"],
        lambda row: row["area"] == "floats" and "which cell" in row["attack"],
        lambda row: row["area"] == "ledger" and "chosen by the outcome" in row["attack"],
        lambda row: row["area"] == "ledger" and "guess a count" in row["attack"],
        lambda row: row["area"] == "leak" and "spills" in row["attack"],
    ],
    ids=["discovery", "floats", "adaptive", "oracle", "spill"],
)
def test_the_audit_would_have_stopped_the_first_version(broken: Callable[[dict[str, object]], bool]) -> None:
    rows = [row for row in page.stored("0.1.0")["rows"] if broken(row)]
    assert rows
    assert not all(row["holds"] for row in rows)
