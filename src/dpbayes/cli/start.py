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
    """Write a made-up survey of 20,000 people, and its schema.

    Example: dpbayes example .
    """
    from dpbayes.example import write_example

    table, schema = write_example(folder)
    steps = [shlex.join(words) for words in next_steps(table)]

    def people() -> None:
        tell(f"Wrote {table} and {schema}: 20,000 people who do not exist.")
        tell("Give it a limit, publish two tables, check what was published, and ask it:")
        for command in steps:
            tell(f"  {command}")

    return Output({"table": str(table), "schema": str(schema), "next": steps}, people)


def next_steps(table: Path) -> list[list[str]]:
    """The commands of a first release."""
    ledger = str(table.with_suffix(".ledger"))
    return [
        ["dpbayes", "ledger", "init", str(table), "--epsilon", "6", "--delta", "1e-6"],
        ["dpbayes", "release", str(table), "region", "income|sex", "--epsilon", "1"],
        ["dpbayes", "verify", "published", "--ledger", ledger],
        ["dpbayes", "ask", "published", "income|sex"],
    ]


REQUIRED = ("numpy", "scipy", "dp-accounting", "randomgen", "duckdb", "pyarrow")
OPTIONAL = {
    "matplotlib": "charts (dpbayes[plot])",
    "psycopg": "PostgreSQL tables and ledgers (dpbayes[postgres])",
    "pyspark": "counting on Spark (dpbayes[spark])",
    "scikit-learn": "classifiers (dpbayes[sklearn])",
    "pgmpy": "networks in pgmpy (dpbayes[networks])",
}


def doctor() -> Output:
    """Check the installation: libraries, entropy, noise samplers, and an exact number.

    Example: dpbayes doctor
    """
    checks = [_python(), *(_library(name) for name in REQUIRED), _entropy(), _noise(), _exact_number()]
    checks += [*(_optional(name, use) for name, use in OPTIONAL.items()), _java()]
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


Check = tuple[str, bool | None, str]


def _python() -> Check:
    return (
        "python",
        sys.version_info >= (3, 11),
        f"{platform.python_version()} on {platform.system()}, {os.cpu_count()} cores",
    )


def _library(name: str) -> Check:
    try:
        return name, True, version(name)
    except PackageNotFoundError:
        return name, False, f"install it: pip install {name}"


def _optional(name: str, use: str) -> Check:
    try:
        return name, True, version(name)
    except PackageNotFoundError:
        return name, None, f"not installed; needed for {use}"


def _java() -> Check:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    return "java", True if found else None, found or "not found; Spark needs Java 17 or newer"


def _entropy() -> Check:
    from dpbayes.mechanisms.noise import secure

    return "entropy", bool(secure().random() != secure().random()), "two fresh generators differ"


def _noise() -> Check:
    from dpbayes.base.errors import NoiseError
    from dpbayes.mechanisms import noise

    try:
        noise.check(noise.MANY, noise.draw)
    except NoiseError as failure:
        return "integer noise", False, str(failure)
    return "integer noise", True, f"known answers, and {noise.MANY} draws of each of {noise.LAWS} laws fit"


def _exact_number() -> Check:
    from dpbayes import Dirichlet, Unit

    found = Dirichlet(1, 10, Unit.of("replace-one")).epsilon(1e-5)
    return "exact accounting", abs(found - 1.8772042796) < 1e-8, f"ε = {found:.10f} where 1.8772042796 is right"
