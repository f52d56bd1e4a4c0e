"""Many writers, and writers that die: on SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpbayes import ApproxDP, Cost, Gaussian, Laplace, PureDP, Unit
from dpbayes.ledger.connection import Connection
from dpbayes.ledger.ledger import Ledger
from dpbayes.ledger.store import Store
from dpbayes.privacy import adaptive

RACERS = 16


def test_of_sixteen_processes_exactly_as_many_charge_as_fit(
    path: Path, unit: Unit, run_script: Callable[..., str]
) -> None:
    ledger = Ledger(path)
    budget = ApproxDP(epsilon=0.5, delta=1e-6)
    ledger.open("census", budget, unit)
    one = Cost.of(Gaussian(sigma=25.0, unit=unit))
    fitting = max(k for k in range(1, RACERS) if budget.gap(one * k) <= 1e-9)
    ends = run_script("racer.py", path, "census", RACERS, 25.0).split()
    charged = {entry.hash for entry in ledger.account("census").entries[1:]}
    assert len(ends) == RACERS
    assert ends.count("refused") == RACERS - fitting
    assert {end for end in ends if end != "refused"} == charged
    assert len(charged) == fitting


@pytest.mark.parametrize("mode", ["statement", "write", "full"])
def test_a_charge_that_is_stopped_at_any_step_is_whole_or_absent_and_never_lost_after_it_returned(
    mode: str, path: Path, unit: Unit, run_script: Callable[..., str]
) -> None:
    ledger = Ledger(path)
    ledger.open("census", PureDP(epsilon=1.0), unit)
    steps = [json.loads(line) for line in run_script("crasher.py", path, "census", mode).splitlines()]
    before = 0
    for step in steps:
        assert step["charges"] - before in (0, 1)
        if step["said"] == "charged":
            assert step["charges"] == before + 1
        elif not step["killed"]:
            assert step["charges"] == before
            assert "full or failing" in step["said"]
        before = step["charges"]
    stopped = [step for step in steps if step["killed"] == (mode != "full")]
    assert len(stopped) >= 10
    if mode == "statement":  # killed between the commit and the return: the charge is kept
        assert [step["charges"] for step in stopped][-1] == 1


def test_nothing_is_priced_while_others_wait_for_the_lock(
    path: Path, unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(path)
    ledger.open("census", ApproxDP(epsilon=3, delta=1e-6), unit)
    priced, inside = adaptive.steps.cache_info, []
    writing = Store.writing

    @contextmanager
    def watched(store: Store, **options: bool) -> Iterator[Connection]:
        before = priced().misses
        with writing(store, **options) as connection:
            yield connection
            inside.append(priced().misses - before)

    monkeypatch.setattr(Store, "writing", watched)
    before = priced().misses
    for scale in (301.25, 302.5, 303.75):
        ledger.charge("census", Cost.of(Laplace(scale=scale, unit=unit)))
    assert inside == [0, 0, 0]
    assert priced().misses > before
