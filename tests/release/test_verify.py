"""A release verifies as it was made; altered anywhere, it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.releases import VERIFYING, a_release, charged

from dpbayes import Cost, Gaussian, Release, Unit, verify
from dpbayes.base.codec import digest
from dpbayes.base.errors import ReleaseError
from dpbayes.ledger.ledger import Ledger
from dpbayes.release.products import complete
from dpbayes.release.verify import Verification

Json = dict[str, Any]


def failures(found: Verification) -> set[str]:
    return {check.name for check in found.checks if not check.passed}


def altered(kind: str, change: Callable[[Json], object]) -> Release:
    """A release whose forger knows how to seal a file."""
    record = json.loads(a_release(kind).to_json())
    change(record)
    read = Release.from_record(record)
    return Release.from_json(read.to_json())


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
        "seal",
        "mechanisms",
        "promise",
        "public totals",
        "values",
        "floating point",
        "products",
    ]


def test_a_seeded_release_never_verifies() -> None:
    assert failures(verify(a_release("seeded"))) == {"randomness"}


@pytest.mark.parametrize("where", [(), ("job",), ("software",)])
def test_an_edit_shows_in_the_seal(where: tuple[str | int, ...]) -> None:
    record = json.loads(a_release("joint").to_json())
    put(*where, "choice" if not where else "note", value="the best there is")(record)
    assert failures(verify(Release.from_json(json.dumps(record)))) == {"seal"}


FIRST = ("tables", 0)
PAID = ("paid", 0, "mechanism")
FORGERIES = {
    "a smaller epsilon": ("joint", put("promise", "epsilon", value=0.5), {"promise"}),
    "a smaller order": ("gammas", put("promise", "epsilon", value=0.1), {"promise"}),
    "less noise": ("joint", put(*PAID, "sigma", value=2.0), {"promise", "products"}),
    "another unit": ("joint", put("schema", "max_rows", value=2), {"mechanisms", "products"}),
    "another adjacency": ("add-remove", put("schema", "adjacency", value="replace-one"), {"mechanisms"}),
    "one draw for two tables": ("add-remove", put("paid", 0, "times", value=1), {"mechanisms"}),
    "a released value": ("joint", put(*FIRST, "values", 0, value=9), {"products"}),
    "a gamma off the grid": ("gammas", put(*FIRST, "values", 0, value=100.1), {"values", "products"}),
    "a gamma of zero": ("gammas", put(*FIRST, "values", 0, value=0.0), {"values", "products"}),
    "digits beyond the thirtieth": ("gammas", put(*FIRST, "values", 0, value=2.0**40 + 1), {"values", "products"}),
    "fewer pseudo-records than are priced": ("pseudo-records", put(*FIRST, "values", 0, value=1), {"values"}),
    "more pseudo-records": ("pseudo-records", put(*PAID, "concentration", value=2.0), {"promise"}),
    "negative pseudo-records": ("pseudo-records", put(*FIRST, "values", 0, value=-1), {"values"}),
    "an estimate": ("joint", put(*FIRST, "products", "empirical", "values", 2, value=0.5), {"products"}),
    "the end of an interval": ("joint", put(*FIRST, "products", "population", "upper", 1, value=0.9), {"products"}),
    "a draw": ("gammas", put(*FIRST, "products", "draw", "values", 0, value=0.9), {"products"}),
    "intervals taken away": ("joint", put(*FIRST, "products", "counts", "lower", value=None), {"products"}),
    "the level of the intervals": ("joint", put("job", "level", value=0.5), {"products"}),
    "the number of records": ("joint", put("records", value=50), {"products"}),
    "a private number of records": ("add-remove", put("records", value=1000), {"public totals", "products"}),
    "the size of a group": ("conditional", put(*FIRST, "groups", 2, "records", value=5000.0), {"products"}),
    "the prior share of a group": ("conditional", put(*FIRST, "groups", 2, "prior_share", value=0.0), {"products"}),
    "the name of a group": ("conditional", put(*FIRST, "groups", 0, "levels", value=["South"]), {"products"}),
    "groups taken away": ("conditional", put(*FIRST, "groups", value=[]), {"products"}),
    "a remark of one's own": ("joint", put(*FIRST, "notes", value=["Trust me."]), {"products"}),
    "a kind that the mechanism does not draw": (
        "joint",
        put(*FIRST, "kind", value="gammas"),
        {"mechanisms", "values"},
    ),
    "a sensitivity below that of counts": (
        "gammas",
        put(*PAID, "sensitivity", value={"l1": 0.1, "l2_squared": 0.1, "linf": 0.1}),
        {"mechanisms"},
    ),
    "concentrations for other cells": (
        "gammas",
        put(*PAID, "concentration", value=[20.0, 20.0]),
        {"mechanisms", "products"},
    ),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_whatever_is_altered_fails_the_check_that_is_about_it(what: str) -> None:
    kind, change, expected = FORGERIES[what]
    assert failures(verify(altered(kind, change))) == expected


UNREADABLE = {
    "a count that is no whole number": ("joint", put(*FIRST, "values", 0, value=1.5)),
    "an unknown mechanism": ("joint", put(*PAID, "mechanism", value="gaussian-9")),
    "a count beyond what doubles hold": ("joint", put(*FIRST, "values", 0, value=2**60)),
    "a field that dpbayes does not write": ("joint", put(*FIRST, "note", value="trust me")),
    "more about a mechanism than it is": ("joint", put(*PAID, "note", value="trust me")),
    "nothing where nothing is written": ("joint", put("spending", value=None)),
    "a mechanism that was not paid for": ("joint", put(*FIRST, "by", value=1)),
    "too few values": ("joint", put(*FIRST, "values", value=[1])),
    "a table of an attribute that is not there": ("joint", put(*FIRST, "marginal", "of", value=["age"])),
    "no seal": ("joint", lambda record: record.pop("seal")),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_cannot_be_a_release_is_not_read(what: str) -> None:
    kind, change = UNREADABLE[what]
    record = json.loads(a_release(kind).to_json())
    change(record)
    with pytest.raises(ReleaseError, match=r"^Release: "):
        Release.from_json(json.dumps(record))


@pytest.mark.parametrize("name", ["dpbayes-release", "dpbayes-model", "dpbayes-posterior"])
def test_a_file_of_0_1_0_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(ReleaseError, match=r"^Release: written by dpbayes 0\.1\.0, which no later version reads\."):
        Release.from_json(json.dumps({"format": name, "version": 1}))


def test_a_difference_of_rounding_is_no_forgery() -> None:
    value = float(a_release("joint").tables[0].products["empirical"].values[0])
    nearly = altered("joint", put(*FIRST, "products", "empirical", "values", 0, value=value * (1 + 1e-9)))
    assert verify(nearly).ok


def test_a_looser_promise_than_the_cost_verifies() -> None:
    assert verify(altered("joint", put("promise", "epsilon", value=5.0))).ok


def test_estimates_of_another_version_are_explained() -> None:
    def change(record: Json) -> None:
        record["software"]["dpbayes"] = "0.0.1"
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
    ("field", "value"),
    [("hash", "0" * 64), ("serial", 0), ("serial", 2), ("spent", 0.1), ("left", 5.0), ("budget", {"notion": "x"})],
)
def test_an_altered_place_in_the_ledger_fails_it(field: str, value: object, ledger: Ledger) -> None:
    release = charged(a_release("joint"), ledger)
    assert release.spending is not None
    forged = replace(release.spending, **{field: value})  # type: ignore[arg-type]
    assert failures(verify(replace(release, spending=forged), ledger=ledger)) == {"ledger"}


def locked(release: Release, key: str) -> Release:
    return replace(release, lock=digest(key), spending=None)


def test_the_charge_of_another_release_fails_the_ledger(ledger: Ledger) -> None:
    release = charged(a_release("joint"), ledger)
    assert failures(verify(locked(release, "nobody's key"), ledger=ledger)) == {"ledger"}


def test_a_charge_for_other_mechanisms_fails_the_ledger(ledger: Ledger) -> None:
    cheap = Cost.of(Gaussian(sigma=800, unit=Unit(adjacency="replace-one")))
    release = charged(a_release("joint"), ledger)
    ledger.charge("survey", cheap, key="mine")
    found = verify(locked(release, "mine"), ledger=ledger)
    assert failures(found) == {"ledger"}
    assert "other mechanisms" in str(found)


def test_a_charge_for_fewer_tables_fails_the_ledger(ledger: Ledger) -> None:
    release = charged(a_release("joint"), ledger)
    ledger.charge("survey", release.cost, key="mine")
    (paid,) = release.paid
    looser = replace(release.promise, epsilon=2.0)  # type: ignore[type-var]
    twice = replace(locked(release, "mine"), paid=(replace(paid, times=2),), promise=looser)
    assert failures(verify(twice, ledger=ledger)) == {"ledger"}


def test_other_values_than_the_ledger_notes_fail_it(ledger: Ledger) -> None:
    release = charged(a_release("joint"), ledger)
    (table,) = release.tables
    redrawn = complete(replace(release, tables=(replace(table, values=table.values + 1),)))
    found = verify(redrawn, ledger=ledger)
    assert failures(found) == {"ledger"}
    assert "something else was drawn" in next(check.detail for check in found.checks if check.name == "ledger")


def test_a_voided_charge_fails_the_ledger(ledger: Ledger) -> None:
    release = charged(a_release("joint"), ledger)
    receipt = ledger.charge("survey", release.cost, key="mine")
    ledger.void(receipt, about="nothing was read")
    found = verify(locked(release, "mine"), ledger=ledger)
    assert failures(found) == {"ledger"}
    assert "taken back" in str(found)


def test_a_ledger_that_is_not_there_is_a_failed_check_not_a_crash(tmp_path: Path, ledger: Ledger) -> None:
    release = charged(a_release("joint"), ledger)
    assert failures(verify(release, ledger=Ledger(tmp_path / "none.ledger"))) == {"ledger"}


def failed(found: Verification) -> set[str]:
    return {check.name for check in found.checks if not check.passed}


def test_a_file_that_was_put_beside_a_release_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / "published"
    a_release("joint").save(folder)
    read = Release.load(folder)
    assert verify(read, folder=folder).ok
    (folder / "2-more.csv").write_text("sex,released\nF,1\n")
    assert failed(verify(read, folder=folder)) == {"files"}


def test_an_end_of_an_interval_near_zero_cannot_be_moved() -> None:
    release = a_release("joint")
    table = release.tables[0]
    product = table.products["counts"]
    assert product.lower is not None
    least = int(np.argmin(np.abs(product.lower)))
    lower = product.lower.copy()
    lower[least] += 1e-7 * lower.max()  # 0.001 of 10,000
    moved = replace(table, products={**table.products, "counts": replace(product, lower=lower)})
    assert failed(verify(replace(release, tables=(moved,), seal=""))) >= {"products"}
