"""Settings that all tests share: property tests draw the same examples in every run. Real servers, once for all."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from tests import servers

settings.register_profile(
    "dpbayes", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dpbayes")


@pytest.fixture(autouse=True)
def _other_people() -> None:
    """Every test fits people of its own: what fits without a ledger cost together is not summed over tests."""
    if (session := sys.modules.get("dpbayes.sklearn.session")) is not None:
        session.forget()


@pytest.fixture(scope="session")
def server() -> Iterator[servers.PostgreSQLServer]:
    """A real PostgreSQL server. A test that stops it starts it again."""
    programs = servers.postgresql_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: nothing was tested on a real server")
    with servers.running_postgresql(programs) as running:
        yield running


@pytest.fixture(scope="session")
def spark_cluster() -> Iterator[servers.SparkCluster]:
    """A real Spark cluster of a master and two workers. A test that kills a worker starts another."""
    if servers.java() is None:
        pytest.skip("Java is not installed: nothing was tested on Spark")
    with servers.running_spark() as running:
        yield running
