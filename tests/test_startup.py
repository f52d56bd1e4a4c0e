"""What a small release loads: nothing heavy that it does not need, or starting would take longer than releasing."""

from __future__ import annotations

import os
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


@pytest.mark.parametrize("tables", [("region",), ("region", "age,sex", "education")], ids=["one", "several"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "dirichlet", "auto"])
def test_the_release_of_small_tables_loads_nothing_heavy(
    mechanism: str, tables: tuple[str, ...], tmp_path: Path
) -> None:
    assert loaded(RELEASE, str(tmp_path), mechanism, *tables) == []


COMMAND = "import sys; sys.argv[1:] = {!r}; from dpbayes.cli.main import run\ntry: run()\nexcept SystemExit: pass"


@pytest.mark.parametrize(
    ("words", "spared"),
    [
        (["--version"], ("click", "numpy", "rich", "dpbayes.cli.command")),
        (["--help"], ("numpy", "rich", "dpbayes.curator", "dpbayes.cli.release")),
        (["ledger", "--help"], ("numpy", "rich", "dpbayes.cli.ledger")),
        (["ledger", "show", "none.csv"], ("rich", "duckdb", "scipy", "dpbayes.jobs.base", "dpbayes.curator")),
        (
            ["ask", "none"],
            (
                "rich",
                "duckdb",
                "dpbayes.hellinger.mechanism",
                "dpbayes.jobs.base",
                "dpbayes.curator",
                "dpbayes.report.page",
            ),
        ),
    ],
)
def test_a_command_loads_what_it_needs_and_no_more(words: list[str], spared: tuple[str, ...], tmp_path: Path) -> None:
    """Version and help are answered from what is known without the libraries of any command."""
    code = f"{COMMAND.format(words)}\nprint('loaded', *(name for name in {spared!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded"


@pytest.mark.parametrize("said", [{}, {"OPENBLAS_NUM_THREADS": "3"}, {"OMP_NUM_THREADS": "3"}])
def test_matrices_take_one_thread_unless_the_environment_says_otherwise(said: dict[str, str]) -> None:
    """A fit of a mixture multiplies small ones many thousand times: each would wait for a second thread."""
    code = f"{COMMAND.format(['--help'])}\nimport os; print(os.environ.get('OPENBLAS_NUM_THREADS'))"
    free = {name: text for name, text in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=free | said)
    assert done.stdout.splitlines()[-1] == [*said.values(), "1"][0], done.stderr
