"""``dpbayes example``: a table to try things on."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, tell


def example_command(
    folder: Annotated[Path, typer.Argument(help="Where to write; made if it is not there.")],
    as_json: options.AsJson = False,
) -> None:
    """Write a made-up survey of 20,000 people, and its schema.

    Example: dpbayes example demo
    """
    from dpbayes.example import write_example

    table, schema = write_example(folder)
    if as_json:
        print_json({"table": str(table), "schema": str(schema)})
        return
    tell(f"Wrote {table} and {schema}: 20,000 people who do not exist.")
    tell("Give it a budget, publish two tables, and check what was published:")
    for command in next_steps(table, schema):
        tell("  " + shlex.join(command))


def next_steps(table: Path, schema: Path) -> list[list[str]]:
    """The commands of a first release."""
    ledger, out = table.with_suffix(".ledger"), table.with_name("published")
    budget = ["--schema", str(schema), "--epsilon", "3", "--delta", "1e-6"]
    tables = ["--marginal", "sex,income", "--marginal", "income|region", "--epsilon", "1", "--delta", "1e-6"]
    where = ["--schema", str(schema), "--ledger", str(ledger), "--out", str(out)]
    return [
        ["dpbayes", "ledger", "init", str(ledger), *budget],
        ["dpbayes", "release", str(table), *tables, *where],
        ["dpbayes", "verify", str(out), "--ledger", str(ledger)],
    ]
