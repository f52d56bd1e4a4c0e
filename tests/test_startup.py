"""What a small release loads: nothing heavy that it does not need, or starting would take longer than releasing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "dp_accounting",
    "dpbayes.models.latent",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow.compute",
    "pyspark",
    "scipy",
    "sklearn",
    "sqlalchemy",
)

RELEASE = """
import sys
from dpbayes import ApproxDP, Curator, Ledger, Schema, Tables
from dpbayes.example import write_example

files = write_example(sys.argv[1] + '/private')
survey = Schema.load(files[1])
ledger = Ledger(sys.argv[1] + "/survey.ledger")
ledger.open(survey, ApproxDP(epsilon=2, delta=1e-6))
curator = Curator(files[0], survey, ledger=ledger)
job = Tables(*sys.argv[3:], mechanism=sys.argv[2])
curator.release(job, ApproxDP(epsilon=1, delta=1e-6), out=sys.argv[1] + "/out")
"""


def loaded(code: str, *arguments: str) -> list[str]:
    ask = f"{code}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", ask, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_package_alone_loads_nothing_heavy() -> None:
    assert loaded("import sys, dpbayes") == []


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "dirichlet", "auto"])
def test_the_release_of_a_small_table_loads_nothing_heavy(mechanism: str, tmp_path: Path) -> None:
    assert loaded(RELEASE, str(tmp_path), mechanism, "region") == []


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "auto"])
def test_nor_does_that_of_several_tables_whose_mechanisms_differ(mechanism: str, tmp_path: Path) -> None:
    assert loaded(RELEASE, str(tmp_path), mechanism, "region", "age,sex", "education") == []
