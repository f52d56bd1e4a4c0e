"""Settings that all tests share: property tests draw the same examples in every run. Real servers, once for all.

The last line of a run says what it cost in processor time.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests import servers

for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(_threads, "1")  # nothing has loaded numpy yet; threads that wait for small matrices cost most
os.environ.setdefault(  # Spark: jobs are short here, and its classes need no proof
    "JDK_JAVA_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
)

settings.register_profile(
    "dpbayes", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dpbayes")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    used = os.times()
    seconds = used.user + used.system + used.children_user + used.children_system
    terminalreporter.write_line(
        f"{seconds:.0f} seconds of processor time, with all that the run started and waited for"
    )


def pytest_sessionfinish() -> None:
    """Libraries that count their objects at the end find nothing frozen."""
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="module")
def _garbage_of_this_module_only() -> None:
    """Collecting garbage looks at what came since, not at all that earlier modules loaded and kept."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _state_of_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test leaves anything in the home of whoever runs it."""
    os.environ.setdefault("DPBAYES_STATE", str(tmp_path_factory.mktemp("state")))


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
