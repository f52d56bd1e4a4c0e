"""Every leaf of every kind of release, edited once: the file is refused, or does not verify.

A forger who seals the file anew is caught by the ledger for everything that was drawn or promised. What is left over is
listed here with the reason.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.releases import ASKED, Made, made_by_a_curator

from dpbayes import Release, verify
from dpbayes.base.codec import canonical
from dpbayes.base.errors import DpbayesError, ReleaseError
from dpbayes.ledger.ledger import Ledger
from dpbayes.release import verify as checks
from dpbayes.release.products import complete

Path = tuple[str | int, ...]
Json = Any

FREE = {
    ("files",): "hashes of files that a reader has beside the release: `verify` of the folder checks them",
    ("tables", 0, "products", "dropped"): "a draw without estimates states none; readers compute them",
    ("spending", "dropped"): "the ledger says it too, and the lock still names the charge; any other edit is caught",
}
"""Places that no ledger can vouch for, with the reason."""

FREE_OF_WIDE = {
    ("created",): "every answer is made later than the charge",
    ("software",): "whatever made the answer",
    ("job",): "which part of the domain was asked for; the mechanism and the schema are those of the charge",
    ("tables",): "answers are drawn when they are asked for, so that no note of the ledger can name their values",
}
"""One charge pays for all answers of a wide distribution."""


@pytest.fixture(scope="module", params=ASKED)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made_by_a_curator(request.param, tmp_path_factory.mktemp("made"))


def leaves(record: Json, path: Path = ()) -> Iterator[Path]:
    """Every place that holds no further places."""
    if isinstance(record, dict) and record:
        for key, value in record.items():
            yield from leaves(value, (*path, key))
    elif isinstance(record, list) and record:
        for at in chosen(record):
            yield from leaves(record[at], (*path, at))
    else:
        yield path


def chosen(record: list[Json]) -> list[int]:
    """All places of a list; of many that are alike, as numbers or objects with the same keys, the ends and a middle."""
    numbers = all(isinstance(value, (int, float)) for value in record)
    alike = all(isinstance(value, dict) and value.keys() == record[0].keys() for value in record) and len(record) > 4
    return sorted({0, len(record) // 2, len(record) - 1}) if record and (numbers or alike) else list(range(len(record)))


def objects(record: Json, path: Path = ()) -> Iterator[Path]:
    """Every object in it."""
    if isinstance(record, dict):
        yield path
    for key in record if isinstance(record, dict) else chosen(record) if isinstance(record, list) else ():
        yield from objects(record[key], (*path, key))


def at(record: Json, path: Path) -> Json:
    for key in path:
        record = record[key]
    return record


def copied(record: Json, path: Path) -> Json:
    """A record in which everything on the way to a place is a copy, and the rest is shared."""
    top = found = copy.copy(record)
    for key in path:
        found[key] = copy.copy(found[key])
        found = found[key]
    return top


def other(value: Json) -> list[Json]:
    """Values of the same sort that say something else, and one of another sort."""
    match value:
        case bool():
            return [not value, "yes"]
        case int():
            return [value + 1, str(value)]
        case float():
            return [value * 1.01 + 0.01, str(value)]
        case str():
            return [value + "x", "", 1]
        case _:
            return ["x"]


def edits(record: Json) -> Iterator[tuple[str, Path, Json]]:
    """Each leaf changed, each field dropped, and one field added to each object."""
    for path in leaves(record):
        for value in other(at(record, path)):
            edited = copied(record, path[:-1])
            at(edited, path[:-1])[path[-1]] = value
            yield f"{path} = {value!r}", path, edited
    for path in objects(record):
        for key in [*at(record, path), "addition"]:
            edited = copied(record, path)
            if key == "addition":
                at(edited, path)[key] = "x"
            else:
                del at(edited, path)[key]
            done = "added" if key == "addition" else "dropped"
            yield f"{(*path, key)} {done}", (*path, key, done), edited


def some(record: Json) -> Iterator[tuple[str, Path, Json]]:
    """Of the edits that differ by their place in a list alone, one. All run with the slow tests."""
    seen = set()
    for what, path, edited in edits(record):
        sort = tuple("" if isinstance(key, int) else key for key in path), what.rpartition(" = ")[2][:1]
        if sort not in seen:
            seen.add(sort)
            yield what, path, edited


@pytest.fixture(params=[some, pytest.param(edits, marks=pytest.mark.slow)], ids=["some", "all"])
def edited_in_turn(request: pytest.FixtureRequest) -> Callable[[Json], Iterator[tuple[str, Path, Json]]]:
    return request.param  # type: ignore[no-any-return]


def read(record: Json) -> Release | None:
    try:
        return Release.from_json(json.dumps(record))
    except ReleaseError:
        return None


def seal_holds(release: Release) -> bool:
    return release.seal == release.sealed()


def test_an_edit_of_any_leaf_is_refused_or_breaks_the_seal(
    made: Made, edited_in_turn: Callable[[Json], Iterator[tuple[str, Path, Json]]]
) -> None:
    record = json.loads(made.release.to_json())
    assert verify(made.release).ok
    assert verify(made.release, ledger=made.ledger).ok
    tried = 0
    for what, _, edited in edited_in_turn(record):
        tried += 1
        found = read(edited)
        assert found is None or not seal_holds(found), what
    assert tried > 100
    assert not verify(replace(made.release, choice="other")).ok


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch, made: Made) -> Ledger:
    """The ledger of a release, read once; estimates of a draw are computed once."""
    known: dict[str, Release] = {}

    def remembered(release: Release) -> Release:
        key = canonical(release._content())
        if key not in known:
            known[key] = complete(release)
        return known[key]

    monkeypatch.setattr("dpbayes.release.verify.complete", remembered)
    ledger = Ledger(made.ledger)
    account = ledger.account(made.release.dataset)
    monkeypatch.setattr(Ledger, "account", lambda *_: account)
    return ledger


def test_a_sealed_edit_of_anything_drawn_or_promised_is_caught_with_the_ledger(
    made: Made, quickly: Ledger, edited_in_turn: Callable[[Json], Iterator[tuple[str, Path, Json]]]
) -> None:
    free = {**FREE, **(FREE_OF_WIDE if made.release.kind == "wide" else {})}
    missed, used = set(), set()
    for what, path, edited in edited_in_turn(json.loads(made.release.to_json())):
        try:
            again = Release.from_record({key: value for key, value in edited.items() if key != "seal"})
            sealed = Release.from_json(again.to_json())
        except (DpbayesError, ArithmeticError, LookupError, TypeError, ValueError):
            continue
        if sealed.sealed() == made.release.sealed():
            continue  # what was added or dropped says nothing, and is gone
        if verify_ledger_first(sealed, quickly):
            excuse = next((place for place in free if path[: len(place)] == place), None)
            missed |= {what} if excuse is None else set()
            used.add(excuse)
    assert missed == set()
    if made.release.kind == "wide":
        assert used >= set(FREE_OF_WIDE)  # the list holds nothing that is caught


def verify_ledger_first(release: Release, ledger: Ledger) -> bool:
    """Whether all checks pass; the quick one goes first."""
    quick = checks._checked("ledger", lambda: checks._ledger(release, ledger))
    return quick.passed and verify(release, ledger=ledger).ok
