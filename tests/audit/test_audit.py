"""No attack of the audit succeeds, and its page shows a stored full run in which none did."""

from __future__ import annotations

import pytest
from audit.__main__ import PARTS, run, with_power
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


@pytest.mark.parametrize("part", ["adaptive", "oracle", pytest.param("canaries", marks=pytest.mark.slow)])
def test_every_attack_without_chance_notices_a_planted_fault(part: str) -> None:
    assert [row.attack for row in with_power(part, QUICK) if not row.rejects] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_no_long_attack_succeeds(part: str) -> None:
    assert refuted(part, LONG) == []


def test_the_page_shows_the_stored_runs() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.written(text) == text, "run python -m audit --publish"


def test_the_stored_run_is_green() -> None:
    rows = page.stored("now")["rows"]
    assert [row["attack"] for row in rows if not row["holds"]] == []
    assert {row["area"] for row in rows} >= {"discovery", "floats", "leak", "ledger", "mechanism"}
