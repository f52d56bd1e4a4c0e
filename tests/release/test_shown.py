"""What objects say of themselves: one screen, drawn in notebooks, and nothing private."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import dpbayes as dp
from dpbayes.papers import hellinger, tcdp
from dpbayes.words.report import summary
from dpbayes.words.view import View

ROWS = 4321
"""How many records have the level that is declared; what is released has noise."""


RESULT = tcdp.theorem_2(alpha=10, delta=1e-5)
PRIVATE = rf"canary|\b{ROWS}\b|4,321|4398|4,398"


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("shown")
    schema = dp.Schema(
        id="shown", unit="add-remove", attributes=(dp.Attribute("sex", ("F", "M")), dp.Attribute("job", ("a", "<b>")))
    )
    rows = {"sex": ["F"] * ROWS + ["canary"] * 77, "job": ["a", "<b>"] * ((ROWS + 77) // 2)}
    ledger = dp.Ledger(folder / "shown.ledger")
    ledger.open(schema, dp.ApproxDP(9, 1e-6))
    curator = dp.Curator(rows, schema, ledger)
    target, asked = dp.ApproxDP(0.01, 1e-6), dp.Tables("sex", "job|sex", mechanism="gaussian")
    plan = curator.plan(asked, target)
    release = curator.release(asked, target, out=folder / "made")
    model = curator.release(dp.NaiveBayes("sex", mechanism="gaussian"), target).model()
    known = release.posterior()
    return {
        "ledger": ledger, "curator": curator, "schema": schema, "plan": plan, "release": release, "model": model,
        "posterior": known, "estimate": known["job|sex"], "answer": known.ask("share(sex='F')"), "cost": plan.cost,
        "table": release["sex"], "table of rows": release["job|sex"], "drawn": release.tables[0],
        "request": dp.Request(tables=("sex",), target=target, title="<i>Jobs</i>"), "result": RESULT,
        "released": hellinger.M_H([49, 49], prior=(1, 1), epsilon=0.8, delta=1e-8),
    }  # fmt: skip


SHOWN = (
    "ledger", "curator", "schema", "plan", "release", "model", "posterior", "estimate", "answer", "cost", "table",
    "table of rows", "request", "result", "released",
)  # fmt: skip


@pytest.mark.parametrize("name", [*SHOWN, "drawn"])
def test_a_repr_fits_on_one_screen_and_holds_nothing_private(name: str, objects: dict[str, object]) -> None:
    said = repr(objects[name])
    assert len(said.splitlines()) <= 24
    assert len(said) <= 24 * 200
    for text in (said, str(objects[name])):
        assert not re.search(PRIVATE, text)


@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_shows_a_small_page_with_nothing_private_and_no_markup_of_others(
    name: str, objects: dict[str, object]
) -> None:
    page = objects[name]._repr_html_()  # type: ignore[attr-defined]  # all have it
    HTMLParser().feed(page)
    assert len(page) < 100_000
    assert "<script" not in page.lower()
    assert not re.search(r"<b>|<i>Jobs", page)
    assert not re.search(PRIVATE, re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL))


@pytest.mark.parametrize("name", ["table", "table of rows", "answer"])
def test_what_is_estimated_draws_itself(name: str, objects: dict[str, object]) -> None:
    assert "<svg" in objects[name]._repr_html_()  # type: ignore[attr-defined]


def test_an_estimate_names_its_levels_with_half_of_their_intervals(objects: dict[str, object]) -> None:
    head, *lines = repr(objects["estimate"]).splitlines()
    assert head == "job|sex: 16 cells, with 95 % intervals"
    assert re.fullmatch(r"  F · a: -?[\d.]+ ± [\d.]+ records, [\d.]+ ± [\d.]+ %(, unreadable)?", lines[0])
    assert repr(objects["request"]).splitlines()[0] == "Request of tables"
    assert Path("made").name not in repr(objects["posterior"])


def test_a_ledger_shows_its_balance_first(objects: dict[str, object]) -> None:
    assert re.match(r"shown: 0\.\d+ of 9 spent at δ=1e-06; a release of up to", repr(objects["ledger"]))
    assert "of 9 spent" in objects["ledger"]._repr_html_()  # type: ignore[attr-defined]


def test_the_uncertainty_of_a_page_is_its_median_and_says_so() -> None:
    schema = dp.Schema(id="page", unit="replace-one", attributes=(dp.Attribute("job", tuple("abcde")),), records=900)
    release = dp.Curator({"job": list("abc") * 300}, schema, "none", seed=1).release(
        dp.Tables("job", mechanism="gaussian"), dp.ApproxDP(1, 1e-6)
    )
    said = summary(release, [view := View(release, release.tables[0])])
    found = re.search(r"the median is ± ([\d.]+) percentage points\.", said)
    assert found is not None
    assert float(found[1]) == pytest.approx(100 * np.median(view.halves[~view.swallowed]), rel=0.3)
