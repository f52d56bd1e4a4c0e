"""A release verifies as it was made; altered anywhere, it does not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.releases import VERIFYING, a_release, charged

from dpbayes import ApproxDP, Cost, Gaussian, PrivacyUnit
from dpbayes.errors import ReleaseError
from dpbayes.ledger.ledger import Ledger
from dpbayes.release import Release
from dpbayes.report import report_html
from dpbayes.verify import Verification, verify

Json = dict[str, Any]


def failures(found: Verification) -> set[str]:
    return {check.name for check in found.checks if not check.passed}


def altered(kind: str, change: Callable[[Json], object]) -> Release:
    record = json.loads(a_release(kind).to_json())
    change(record)
    return Release.from_json(json.dumps(record))


def put(*path: str | int, value: object) -> Callable[[Json], None]:
    """Replace what is at a place of the file."""

    def change(record: Any) -> None:
        for key in path[:-1]:
            record = record[key]
        record[path[-1]] = value

    return change


@pytest.mark.parametrize("kind", VERIFYING)
def test_a_release_verifies_as_it_was_made(kind: str) -> None:
    found = verify(Release.from_json(a_release(kind).to_json()))
    assert found.ok, failures(found)
    assert [check.name for check in found.checks] == [
        "randomness",
        "mechanisms",
        "promise",
        "public totals",
        "values",
        "products",
    ]


def test_a_seeded_release_never_verifies() -> None:
    assert failures(verify(a_release("seeded"))) == {"randomness"}


FIRST = ("tables", 0)
FORGERIES = {
    "a smaller epsilon": ("joint", put("guarantee", "epsilon", value=0.5), {"promise"}),
    "a smaller order": ("gammas", put("guarantee", "epsilon", value=0.1), {"promise"}),
    "less noise": ("joint", put(*FIRST, "mechanism", "sigma", value=2.0), {"promise", "products"}),
    "another unit": ("joint", put("unit", "max_rows", value=2), {"mechanisms"}),
    "another adjacency": ("add-remove", put("unit", "adjacency", value="replace-one"), {"mechanisms"}),
    "a released value": ("joint", put(*FIRST, "values", 0, value=9), {"products"}),
    "a count that is no whole number": ("joint", put(*FIRST, "values", 0, value=1.5), {"values", "products"}),
    "a gamma off the grid": ("gammas", put(*FIRST, "values", 0, value=100.1), {"values", "products"}),
    "a gamma of zero": ("gammas", put(*FIRST, "values", 0, value=0.0), {"values", "products"}),
    "no grid": ("gammas", put(*FIRST, "grid", value=None), {"values"}),
    "negative pseudo-records": ("pseudo-records", put(*FIRST, "values", 0, value=-1), {"values"}),
    "an estimate": ("joint", put(*FIRST, "products", "empirical", "values", 2, value=0.5), {"products"}),
    "the end of an interval": ("joint", put(*FIRST, "products", "population", "upper", 1, value=0.9), {"products"}),
    "a draw": ("gammas", put(*FIRST, "products", "draw", "values", 0, value=0.9), {"products"}),
    "intervals taken away": ("joint", put(*FIRST, "products", "counts", "lower", value=None), {"products"}),
    "estimates taken away": ("joint", put(*FIRST, "products", value={}), {"products"}),
    "the level of the intervals": ("joint", put("level", value=0.5), {"products"}),
    "the number of records": ("joint", put("records", value=50), {"products"}),
    "a private number of records": ("add-remove", put("records", value=1000), {"public totals", "products"}),
    "the size of a group": ("conditional", put(*FIRST, "groups", 2, "records", value=5000.0), {"products"}),
    "the prior share of a group": ("conditional", put(*FIRST, "groups", 2, "prior_share", value=0.0), {"products"}),
    "the name of a group": ("conditional", put(*FIRST, "groups", 0, "levels", value=["South"]), {"products"}),
    "groups taken away": ("conditional", put(*FIRST, "groups", value=None), {"products"}),
    "an unknown mechanism": (
        "joint",
        put(*FIRST, "mechanism", "mechanism", value="gaussian-9"),
        {"mechanisms", "promise", "values", "products"},
    ),
    "a kind that the mechanism does not draw": (
        "joint",
        put(*FIRST, "kind", value="pseudo-records"),
        {"mechanisms", "promise", "values", "products"},
    ),
    "a sensitivity below that of counts": (
        "gammas",
        put(*FIRST, "mechanism", "sensitivity", value={"l1": 0.1, "l2_squared": 0.1, "linf": 0.1}),
        {"mechanisms"},
    ),
    "a field that dpbayes does not write": (
        "joint",
        put(*FIRST, "mechanism", "note", value="trust me"),
        {"mechanisms"},
    ),
    "concentrations for other cells": (
        "gammas",
        put(*FIRST, "mechanism", "concentration", value=[20.0, 20.0]),
        {"mechanisms", "products"},
    ),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_whatever_is_altered_fails_the_check_that_is_about_it(what: str) -> None:
    kind, change, expected = FORGERIES[what]
    assert failures(verify(altered(kind, change))) == expected


def test_a_difference_of_rounding_is_no_forgery() -> None:
    value = a_release("joint").tables[0].products["empirical"].values[0]
    nearly = altered("joint", put(*FIRST, "products", "empirical", "values", 0, value=value * (1 + 1e-9)))
    assert verify(nearly).ok


def test_a_looser_promise_than_the_cost_verifies() -> None:
    assert verify(altered("joint", put("guarantee", "epsilon", value=5.0))).ok


def test_estimates_of_another_version_are_explained() -> None:
    def change(record: Json) -> None:
        record["dpbayes"] = "0.0.1"
        record["tables"][0]["products"]["counts"]["values"][0] += 1.0

    (failed,) = (check for check in verify(altered("joint", change)).checks if not check.passed)
    assert "made by dpbayes 0.0.1" in failed.detail


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "survey.ledger")


@pytest.mark.parametrize("kind", ["joint", "gammas"])
def test_a_charged_release_verifies_against_its_ledger(kind: str, ledger: Ledger) -> None:
    assert verify(charged(a_release(kind), ledger), ledger=ledger).ok


def test_a_release_without_a_receipt_fails_the_ledger(ledger: Ledger) -> None:
    charged(a_release("joint"), ledger)
    assert failures(verify(a_release("joint"), ledger=ledger)) == {"ledger"}


@pytest.mark.parametrize(
    ("field", "value"), [("hash", "0" * 64), ("serial", 0), ("serial", 2), ("serial", "1"), ("dataset", "census")]
)
def test_an_altered_receipt_fails_the_ledger(field: str, value: object, ledger: Ledger) -> None:
    release = charged(a_release("joint"), ledger)
    assert release.ledger is not None
    forged = release.ledger.model_copy(update={"receipt": {**release.ledger.receipt, field: value}})
    assert failures(verify(release.model_copy(update={"ledger": forged}), ledger=ledger)) == {"ledger"}


def test_a_charge_for_other_mechanisms_fails_the_ledger(ledger: Ledger) -> None:
    cheap = Cost.of(Gaussian(sigma=800, unit=PrivacyUnit(adjacency="replace-one")))
    release = charged(a_release("joint"), ledger)
    receipt = ledger.charge("survey", cheap)
    assert release.ledger is not None
    forged = release.ledger.model_copy(update={"receipt": receipt.record()})
    assert failures(verify(release.model_copy(update={"ledger": forged}), ledger=ledger)) == {"ledger"}


def test_a_charge_for_fewer_tables_fails_the_ledger(ledger: Ledger) -> None:
    release = charged(a_release("joint"), ledger)
    twice = release.model_copy(
        update={
            "tables": [release.tables[0], release.tables[0]],
            "guarantee": dict(ApproxDP(epsilon=2, delta=1e-6).record()),
        }
    )
    assert failures(verify(twice, ledger=ledger)) == {"ledger"}


def test_other_values_than_the_ledger_notes_fail_it(ledger: Ledger) -> None:
    release = charged(a_release("joint"), ledger)
    table = release.tables[0]
    redrawn = table.model_copy(update={"values": [int(table.values[0]) + 1, *table.values[1:]]})
    found = verify(release.model_copy(update={"tables": [redrawn]}), ledger=ledger)
    assert "other values were drawn" in next(check.detail for check in found.checks if check.name == "ledger")


def test_a_voided_charge_fails_the_ledger(ledger: Ledger) -> None:
    release = charged(a_release("joint"), ledger)
    assert release.ledger is not None
    receipt = ledger.charge("survey", Cost.of(Gaussian(sigma=8, unit=PrivacyUnit(adjacency="replace-one"))))
    ledger.void(receipt, about="nothing was read")
    reused = release.ledger.model_copy(update={"receipt": receipt.record()})
    assert failures(verify(release.model_copy(update={"ledger": reused}), ledger=ledger)) == {"ledger"}


def test_a_ledger_that_is_not_there_is_a_failed_check_not_a_crash(tmp_path: Path, ledger: Ledger) -> None:
    release = charged(a_release("joint"), ledger)
    assert failures(verify(release, ledger=Ledger(tmp_path / "none.ledger"))) == {"ledger"}


# -- files that nobody wrote ------------------------------------------------------------------------------------------

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**300, max_value=10**400)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["gammas", "pseudo-records", "pure-dp", "zcdp", "dirichlet-1", "\ud800", "\x00"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


def places(record: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place of a JSON value; of long lists only the ends."""
    found = [path] if path else []
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        if not isinstance(key, int) or key in (0, len(record) - 1):
            found += places(value, (*path, key))
    return found


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """A valid file with one to three values replaced, removed or doubled."""
    record = copy.deepcopy(
        json.loads(a_release(draw(st.sampled_from(["joint", "conditional", "add-remove"]))).to_json())
    )
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(places(record)))
        parent = record
        for key in path:
            parent = parent[key]
        match draw(st.sampled_from(["replace", "replace", "remove", "double"])):
            case "replace":
                parent[last] = draw(ANYTHING)
            case "remove":
                del parent[last]
            case "double" if isinstance(parent, list):
                parent.append(parent[last])
    return json.dumps(record)


def read(text: str | bytes) -> Release | None:
    try:
        return Release.from_json(text)
    except ReleaseError as problem:
        said = str(problem)
    assert said.startswith("Release: ")
    return None


@settings(max_examples=300)
@given(mutants())
def test_a_mutated_file_is_read_or_refused_in_a_sentence(text: str) -> None:
    release = read(text)
    assert release is None or Release.from_json(release.to_json()) == release


@settings(max_examples=200)
@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=4))
def test_a_damaged_file_is_read_or_refused_in_a_sentence(at: int, damage: bytes) -> None:
    text = a_release("add-remove").to_json().encode()
    at %= len(text)
    read(text[:at] + damage + text[at + len(damage) :])
    assert read(text[: min(at, len(text) - 3)]) is None


@settings(max_examples=60)
@given(mutants())
def test_whatever_can_be_read_can_be_verified_and_reported(text: str) -> None:
    release = read(text)
    if release is not None:
        assert isinstance(verify(release).ok, bool)
        report_html(release).encode()
