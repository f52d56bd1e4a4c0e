"""A dry run for people: what a release would say, what it costs, and whether anything stands in its way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from dpbayes.cli.output import print_json, tell, tell_people
from dpbayes.errors import DpbayesError
from dpbayes.jobs.answers import remarks, sentences, warnings
from dpbayes.jobs.base import Plan
from dpbayes.jobs.preview import preview
from dpbayes.privacy.risk import Risk
from dpbayes.report.folder import check_folder

REFUSED = 1
"""Exit code when the release would be refused."""


def obstacles(plan: Plan, affords: Callable[[Plan], object], out: Path | None) -> list[str]:
    """What would refuse the release if it were asked for now."""
    checks: list[Callable[[], object]] = [lambda: affords(plan)]
    if out is not None:
        checks.append(lambda: check_folder(out))
    found = []
    for check in checks:
        try:
            check()
        except DpbayesError as problem:
            found.append(str(problem))
    return found


def show(
    plan: Plan, *, affords: Callable[[Plan], object] | None, out: Path | None, already: list[str], as_json: bool
) -> None:
    """Print the dry run; the exit code tells whether the release would go through.

    Args:
        plan: what would be released.
        affords: raises what the ledger would refuse; None if no ledger was named.
        out: the folder that the release would be written to.
        already: sentences about tables that are published already.
        as_json: for programs.
    """
    found = obstacles(plan, affords or (lambda _: None), out)
    if as_json:
        ledger = None if affords is None else not any(each.startswith("Ledger") for each in found)
        more: dict[str, Any] = {
            "sentences": list(sentences(plan)),
            "remarks": [*already, *remarks(plan)],
            "cautions": list(warnings(plan)),
            "refused": found,
            "ledger_affords": ledger,
        }
        if wanted := list(getattr(plan.job, "want", ())):
            more |= {"want": wanted, "least": plan.target.record()}
        print_json(preview(plan) | more)
    else:
        _print(plan, affords is not None, out, already, found)
    if found:
        raise typer.Exit(REFUSED)


def _print(plan: Plan, ledger: bool, out: Path | None, already: list[str], found: list[str]) -> None:
    priced = preview(plan)
    tell_people("Dry run: no rows were read and nothing was charged.", "bold")
    for sentence in sentences(plan):
        tell_people(f"• {sentence}")
    if plan.wanted:
        tell_people("± is half a 95 % interval. Numbers below a readable size are published too, and say so.", "dim")
    for remark in (*already, *remarks(plan)):
        tell_people(remark)
    least = " It is the least that gives the wanted accuracies." if getattr(plan.job, "want", ()) else ""
    tell_people(f"Cost: {plan.target}.{least} Why: {plan.choice}.")
    for sentence in Risk.of(plan.cost, blind=()).sentences(taking_part=not plan.schema.unit.replaces):
        tell_people(sentence)
    read = priced["columns"] or [getattr(plan.job, "column", "none")]
    tell_people(f"Columns that a release would read: {', '.join(read)}.")
    if not found:
        book = "The ledger affords it" if ledger else "No ledger was named"
        tell_people(f"{book}{', and the folder is free' if out is not None else ''}.")
    for caution in warnings(plan):
        tell_people(f"Caution: {caution}", "bold")
    for each in found:
        tell(f"dpbayes: it would be refused. {each}", err=True)
