"""A dry run for people: what a release would say, what it costs, and whether anything stands in its way."""

from __future__ import annotations

from typing import Any

import typer

from dpbayes.cli.output import print_json, tell, tell_people
from dpbayes.curator import DryRun
from dpbayes.design.forecast import of_the_limit, preview, remarks, sentences, warnings
from dpbayes.ledger.history import already
from dpbayes.privacy.risk import Risk
from dpbayes.words import promise

REFUSED = 1
"""Exit code when the release would be refused."""


def show(trial: DryRun, *, as_json: bool) -> None:
    """Print the dry run; the exit code tells whether the release would go through."""
    plan, found = trial.plan, trial.obstacles()
    account = None if trial.ledger is None else trial.ledger.account(plan.schema.id)
    said = [*([] if account is None else already(account, plan.wanted)), *remarks(plan)]
    used = None if account is None else of_the_limit(plan, account)[1]
    if as_json:
        more: dict[str, Any] = {
            "sentences": list(sentences(plan)),
            "remarks": said,
            "cautions": list(warnings(plan)),
            "refused": list(found),
            "ledger_affords": None if account is None else not any(each.startswith("Ledger") for each in found),
            "limit": used,
        }
        if wanted := list(getattr(plan.job, "want", ())):
            more |= {"want": wanted, "least": plan.target.record()}
        print_json(preview(plan) | more)
    else:
        _print(trial, said, used, found)
    if found:
        raise typer.Exit(REFUSED)


def _print(trial: DryRun, said: list[str], used: str | None, found: tuple[str, ...]) -> None:
    plan = trial.plan
    priced = preview(plan)
    tell_people("Dry run: no rows were read and nothing was charged.", "bold")
    for sentence in sentences(plan):
        tell_people(f"• {sentence}")
    if plan.wanted:
        tell_people("± is half a 95 % interval. Numbers below a readable size are published too, and say so.", "dim")
    for remark in said:
        tell_people(remark)
    least = " It is the least that gives the wanted accuracies." if getattr(plan.job, "want", ()) else ""
    tell_people(f"Cost: {plan.target}.{least} Why: {plan.choice}.")
    if used:
        tell_people(used)
    for sentence in Risk.of(plan.cost, blind=()).sentences(taking_part=not plan.schema.unit.replaces):
        tell_people(sentence)
    read = priced["columns"] or [getattr(plan.job, "column", "none")]
    tell_people(f"Columns that a release would read: {', '.join(read)}.")
    if not found:
        book = "No ledger was named" if trial.ledger is None else "The ledger affords it"
        tell_people(f"{book}{', and the folder is free' if trial.out is not None else ''}.")
    for each in warnings(plan):
        tell_people(promise.warning(each), "bold")
    for each in found:
        tell(f"dpbayes: it would be refused. {each}", err=True)
