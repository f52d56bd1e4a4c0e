"""Printed intervals hold the truth as often as they say: every product, on independent and on repeated people."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

import pytest
from tests.covering import PRODUCTS, READ, UNPROMISED, WORLDS, Stratum, covered, judged

import dpbayes.models

NAMED = {each.name: each for each in PRODUCTS}

POSTERIORS = tuple(name for name in NAMED if name.startswith(("posterior by auto", "posterior by hellinger")))
TABLES = tuple(name for name in NAMED if " table, " in name)


@pytest.mark.parametrize(
    ("world", "epsilon", "releases", "names"),
    [
        ("independent, truth drawn", 1.0, 15, TABLES),
        ("alike", 20.0, 15, (*TABLES, "question, sum, population")),
        ("opposed", 5.0, 80, ("never crossed, sum, population",)),
        ("opposed", 1.0, 40, POSTERIORS[:2]),
        ("independent, truth drawn", 20.0, 10, POSTERIORS),
    ],
)
def test_intervals_cover_quick(world: str, epsilon: float, releases: int, names: tuple[str, ...]) -> None:
    """A few of the strata below, in seconds."""
    found = covered(WORLDS[world], "replace-one", epsilon, releases, [NAMED[name] for name in names])
    assert not judged(found), "\n".join(judged(found))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("world", WORLDS)
def test_intervals_cover(world: str, adjacency: str) -> None:
    found: list[Stratum] = []
    for epsilon in (0.3, 1.0, 20.0):
        found += covered(WORLDS[world], adjacency, epsilon, 150)
    print("\n".join(map(str, found)))
    assert not judged(found), "\n".join(judged(found))


def test_a_stratum_is_judged_with_the_error_of_its_simulation() -> None:
    def stratum(rate: float, releases: int, product: str = "network, population", epsilon: float = 1.0) -> Stratum:
        hits = round(rate * releases)
        return Stratum(product, "alike", "add-remove", epsilon, (1.0,) * hits + (0.0,) * (releases - hits), 1)

    assert stratum(0.95, 1000).fault == ""
    assert stratum(0.90, 50).fault == ""
    assert stratum(0.90, 1000).fault == "too low"
    assert stratum(0.999, 5000).fault == "too high"
    assert judged([stratum(0.90, 1000)])
    assert judged([stratum(0.999, 5000)])
    assert not judged([stratum(0.999, 5000, "joint table, counts", 20.0)])
    assert judged([stratum(0.9, 1000, "joint table, counts", 20.0)])


def test_every_interval_of_a_model_is_listed() -> None:
    """Read above, or named with the reason why not. ``tests/jobs/test_jobs.py`` asks the same of every job."""
    found = set()
    for module in pkgutil.iter_modules(dpbayes.models.__path__):
        loaded = import_module(f"dpbayes.models.{module.name}")
        for owner in (loaded, *(each for _, each in inspect.getmembers(loaded, inspect.isclass))):
            for name, function in inspect.getmembers(owner, inspect.isfunction):
                given = inspect.get_annotations(function).get("return")
                if function.__module__ == loaded.__name__ and given in ("Estimate", "Intervals", "Combined"):
                    found.add(f"models.{module.name}.{function.__qualname__}")
                    assert name in function.__qualname__
    assert found == {*READ, *UNPROMISED}
    assert set(READ.values()) <= set(NAMED)
