"""Values of the functions of ``dpbayes.papers``, computed without dpbayes: papers.json says how."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

GOLDEN = json.loads(Path(__file__).with_name("papers.json").read_text(encoding="utf-8"))
ROOMS = {name: importlib.import_module(f"dpbayes.papers.{name}") for name in ("rdp", "tcdp", "hellinger")}


def test_the_list_is_complete() -> None:
    assert len({row["id"] for row in GOLDEN}) == len(GOLDEN) == 231


@pytest.mark.parametrize("room", ROOMS)
def test_values_are_those_computed_without_dpbayes(room: str) -> None:
    rows: list[dict[str, Any]] = [row for row in GOLDEN if row["id"].startswith(f"{room}.")]
    for row in rows:
        found = eval(row["call"], ROOMS)
        assert float(found) == pytest.approx(float(row["expected"]), rel=row["rel_tol"], abs=0), row["call"]
