"""A ledger's account in numbers and in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dpbayes.cli.output import print_json, print_table
from dpbayes.domain.display import plural
from dpbayes.ledger.history import timeline
from dpbayes.privacy.guarantee import rounded_down, rounded_up

if TYPE_CHECKING:
    from dpbayes.ledger.account import Account

DELTA = 1e-6
"""The δ at which ε is shown when the budget names none."""


def balance(account: Account) -> dict[str, Any]:
    """Limit, what is spent and left, and what that is in other notions."""
    cost = account.cost
    delta = _delta(account)
    return {
        "dataset": account.dataset,
        "budget": account.budget.record(),
        "unit": account.unit.record(),
        "schemas": list(account.schemas),
        "limit": account.limit,
        "used": account.used,
        "spent": account.spent,
        "left": account.left(),
        "releases": cost.releases,
        "spent_also": {
            "epsilon_pure": cost.renyi(math.inf),
            "epsilon": cost.epsilon(delta),
            "delta": delta,
            "rho": cost.concentrated(math.inf),
        },
        "entries": len(account.entries),
        "head": account.head.hash,
    }


def _delta(account: Account) -> float:
    return account.budget.exception or DELTA


def charges(account: Account, first: int = 0) -> list[dict[str, Any]]:
    """Every charge from an entry on, with its own price and the running total, by the rule of the ledger."""
    costs = account.costs
    totals = dict(zip(costs, account.budget.running(costs.values()), strict=True))
    listed = []
    for serial, charge in account.charges.items():
        if serial < first:
            continue
        line: dict[str, Any] = {key: charge.entry.body[key] for key in ("serial", "time", "about", "releases")}
        own = total = None
        if serial in costs:
            own, total = account.price(costs[serial]), totals[serial]
        listed.append(line | {"state": charge.state, "hash": charge.entry.hash, "own": own, "total": total})
    return listed


def _in_words(account: Account) -> list[str]:
    """What a data owner wants to know."""
    left, number = rounded_down(account.left(), 4), account.budget.quantity
    said = []
    if account.left() > 0:
        said.append(f"One more release of up to {number.replace('ε', f'ε={left}', 1).replace('ρ', f'ρ={left}')} fits.")
    else:
        said.append("Nothing more fits, unless the data owner raises the limit.")
    said.append(f"{100 * account.used:.4g} % of the limit is used up.")
    if account.budget.rule is not None:
        delta, exact = account.budget.exception, account.cost.epsilon(account.budget.exception)
        said.append(
            f"The limit is kept by the rule {account.budget.rule!r}, which holds whatever later releases are adapted "
            f"to. Had all charges been planned together, they would cost ε={rounded_up(exact, 4)} at δ={delta:g}."
        )
    return said


def print_balances(accounts: list[Account], as_json: bool) -> None:
    """The balances as JSON or as tables with sentences."""
    if as_json:
        print_json([balance(account) for account in accounts])
        return
    for account in accounts:
        shown = balance(account)
        also = shown.pop("spent_also")
        print_table(
            f"{account.dataset}: {account.budget}",
            ("quantity", "value"),
            [(key, shown[key]) for key in ("limit", "spent", "left", "releases", "entries", "head")],
            notes=(
                *_in_words(account),
                f"Unit: {account.unit}. Every hash is right, and every mechanism was priced anew.",
                "Spent in other notions: ε={epsilon:.6g} at δ={delta:g}, pure ε={epsilon_pure:.6g}, "
                "zCDP ρ={rho:.6g}.".format(**also),
            ),
        )


def print_charges(account: Account, first: int = 0) -> None:
    """What happened to the data set, entry by entry: limits, schemas, releases, and which replaced which."""
    priced = {line["serial"]: line for line in charges(account, first)}
    earlier = [f"{plural(first, 'earlier entry')} not shown: --all or --since ENTRY shows them."] if first else []
    print_table(
        f"Timeline of {account.dataset}",
        ("entry", "when", "what", "id", "own", "total", "state"),
        [
            (
                event.serial,
                event.time.replace("T", " ").removesuffix("Z"),
                event.what,
                event.id or "-",
                *(_price(priced.get(event.serial, {}).get(key)) for key in ("own", "total")),
                event.state or "-",
            )
            for event in timeline(account)
            if event.serial >= first
        ],
        notes=(
            *earlier,
            f"Own: what the charge costs on its own, as {account.budget.quantity}. Total: what is spent with it.",
            "A charge counts unless it is void: without a note it may have been drawn.",
        ),
    )


def _price(number: float | None) -> str:
    return "-" if number is None else rounded_up(number, 4)
