"""``dpbayes example`` and ``doctor``: a table to try things on, and whether this machine is ready."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dpbayes.cli.command import Output
from dpbayes.cli.output import print_table, tell


def example(folder: Path = Path()) -> Output:
    """Example: dpbayes example ."""
    from dpbayes.example import PUBLIC, write_example

    table, schema = write_example(folder)
    others = ["wave-2.csv", "visits.csv", *PUBLIC[1:]]
    steps = STEPS.format(shlex.quote(str(table.with_suffix("")))).splitlines()

    def people() -> None:
        tell(f"Wrote {table} and {schema}: 20,000 people who do not exist.")
        tell(f"And for other pages of the manual: {', '.join(others)}.")
        tell("Give it a limit, publish two tables, ask them, and check what was published:")
        for command in steps:
            tell(f"  {command}")

    return Output({"table": str(table), "schema": str(schema), "others": others, "next": steps}, people)


STEPS = """\
dpbayes ledger init {0}.csv --epsilon 4 --delta 1e-6
dpbayes release {0}.csv region 'income|sex' --epsilon 1
dpbayes ask published 'income|sex'
dpbayes verify published --ledger {0}.ledger"""
"""The commands of a first release."""

Check = tuple[str, bool | None, str]

REQUIRED = ("numpy", "scipy", "dp-accounting", "randomgen", "duckdb", "pyarrow")
OPTIONAL = {
    "matplotlib": "charts (dpbayes[plot])",
    "psycopg": "PostgreSQL tables and ledgers (dpbayes[postgres])",
    "pyspark": "counting on Spark (dpbayes[spark])",
    "scikit-learn": "classifiers (dpbayes[sklearn])",
    "pgmpy": "networks in pgmpy (dpbayes[networks])",
}


def doctor() -> Output:
    """Example: dpbayes doctor"""
    machine = f"{platform.python_version()} on {platform.system()}, {os.cpu_count()} cores"
    checks: list[Check] = [("python", sys.version_info >= (3, 11), machine), *map(_library, REQUIRED), *_noise()]
    checks += [_exact_number(), *(_library(*each) for each in OPTIONAL.items()), _java()]
    ready = all(passed for _, passed, _ in checks if passed is not None)
    signs = {True: "ok", False: "FAILED", None: "–"}

    def people() -> None:
        print_table(
            "Ready" if ready else "Not ready",
            ("check", "state", "detail"),
            [(name, signs[ok], detail) for name, ok, detail in checks],
            notes=('Shell completion: eval "$(_DPBAYES_COMPLETE=bash_source dpbayes)", or zsh_source, fish_source.',),
        )

    listed = [{"check": name, "ok": ok, "detail": detail} for name, ok, detail in checks]
    return Output({"ready": ready, "checks": listed}, people, code=0 if ready else 1)


def _library(name: str, use: str = "") -> Check:
    try:
        return name, True, version(name)
    except PackageNotFoundError:
        return (name, None, f"not installed; needed for {use}") if use else (name, False, f"run: pip install {name}")


def _java() -> Check:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    return "java", True if found else None, found or "not found; Spark needs Java 17 or newer"


def _noise() -> list[Check]:
    from dpbayes.base.errors import NoiseError
    from dpbayes.mechanisms import noise

    fresh = bool(noise.secure().random() != noise.secure().random())
    said = f"known answers, and {noise.MANY} draws of each of {noise.LAWS} laws fit"
    try:
        noise.check(noise.MANY, noise.draw)
        fits = True
    except NoiseError as failure:
        fits, said = False, str(failure)
    return [("entropy", fresh, "two fresh generators differ"), ("integer noise", fits, said)]


def _exact_number() -> Check:
    from dpbayes import Dirichlet, Unit

    found = Dirichlet(1, 10, Unit.of("replace-one")).epsilon(1e-5)
    return "exact accounting", abs(found - 1.8772042796) < 1e-8, f"ε = {found:.10f} where 1.8772042796 is right"
