"""Writers × crashes at every step × full disks × ledgers that go away, judged by a checker of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.simulation import writers
from tests.simulation.histories import HEAD, History, Tally, at_every_step, at_random
from tests.simulation.world import Fault
from tests.simulation.writers import JOBS

from dpbayes.ledger.account import Account
from dpbayes.ledger.connection import Connection
from dpbayes.ledger.kept import Slot

QUICK = ("tables, gaussian", "wide")
EVERY = [pytest.param(kind, 1, id=kind, marks=pytest.mark.slow) for kind in JOBS] + [
    pytest.param(kind, 2, id=f"{kind}, some") for kind in QUICK
]
"""All steps of all jobs; in quick runs every other step of two."""


def shown(tally: Tally, name: str) -> None:
    print(f"\n{HEAD}\n{tally.row(name)}")


@pytest.mark.parametrize(("kind", "by"), EVERY)
def test_a_release_that_is_killed_at_any_step_is_finished_under_its_one_charge(
    kind: str, by: int, tmp_path: Path
) -> None:
    tally = Tally()
    steps = at_every_step(tmp_path / "here", kind, "kill", tally, by=by)
    shown(tally, kind)
    assert steps > 30
    assert tally.faults["kill"] == (steps + by - 1) // by
    assert tally.kept
    assert tally.anew


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["half", "lost", "full", "stays full", "denied", "away"])
@pytest.mark.parametrize("kind", QUICK)
def test_whatever_fails_at_any_step_loses_nothing(kind: str, fault: Fault, tmp_path: Path) -> None:
    tally = Tally()
    at_every_step(tmp_path / "here", kind, fault, tally)
    shown(tally, f"{kind}: {fault}")
    assert tally.faults.total() > 30  # the checker judged a history for each


@pytest.mark.slow
@pytest.mark.parametrize("kind", QUICK)
def test_a_release_whose_finishing_is_killed_too_is_finished_the_next_time(kind: str, tmp_path: Path) -> None:
    tally = Tally()
    at_every_step(tmp_path / "here", kind, "kill", tally, twice=True)
    shown(tally, f"{kind}: killed twice")
    assert tally.faults["kill"] > 30  # the checker judged a history for each


SABOTAGE: dict[str, tuple[object, str, Callable[..., object], str]] = {
    "a kept draw is drawn again": (Slot, "kept", lambda _: None, "two draws"),
    "no draw is kept": (Slot, "keep", lambda *_: None, "paid for nothing"),
    "every charge is affordable": (Account, "affords", lambda *_: True, "of the limit"),
    "nothing is charged for good": (Connection, "commit", lambda _: None, "without a charge"),
}


@pytest.mark.parametrize("name", SABOTAGE)
def test_the_checker_notices(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, method, instead, said = SABOTAGE[name]
    history = History(tmp_path / "here", "concentrated", Tally())
    monkeypatch.setattr(owner, method, instead)

    def sabotaged() -> None:
        for number in range(6):
            history.write("tables, concentrated", f"writer-{number}", {40: "kill"} if "again" in name else {})
        history.end()

    with writers.planned_once(history.world), history.world.real(), pytest.raises(AssertionError, match=said):
        sabotaged()


def test_the_same_seed_gives_the_same_history(tmp_path: Path) -> None:
    first, again = (at_random(tmp_path / "here", 4, Tally()) for _ in range(2))
    assert first == again
    assert sum(map(len, first)) > 50


def test_several_writers_with_several_faults_lose_nothing(tmp_path: Path) -> None:
    tally = Tally()
    for seed in range(20):
        at_random(tmp_path / "here", seed, tally)
    shown(tally, "random")
    assert tally.kept
    assert tally.anew


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(5))
def test_many_writers_with_many_faults_lose_nothing(hundred: int, tmp_path: Path) -> None:
    tally = Tally()
    for seed in range(100 * hundred + 100, 100 * hundred + 200):
        at_random(tmp_path / "here", seed, tally)
    shown(tally, "random")
    assert set(tally.faults) == {"kill", "half", "lost", "full", "stays full", "denied", "away", "other"}
