"""``dpbayes ledger``: budgets, what was spent, and the proof of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table
from dpbayes.errors import LedgerError
from dpbayes.privacy.guarantee import ApproxDP

if TYPE_CHECKING:
    from dpbayes.ledger.account import Account

DELTA = 1e-6
"""The δ at which ε is shown when the budget names none."""

Where = Annotated[str, typer.Argument(metavar="LEDGER", help="A file, or postgresql://user@host/database.")]
Dataset = Annotated[str, typer.Option(help="The declared id of the data set.")]
AnyDataset = Annotated[str | None, typer.Option(help="Only this data set; all of them otherwise.")]

group = typer.Typer(no_args_is_help=True, help="Budgets, what was spent, and the proof of it.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(group, name="ledger")


@group.command()
def init(
    ledger: Where,
    dataset: Dataset,
    adjacency: options.AdjacencyOption,
    max_rows: options.MaxRows = 1,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    rho: options.Rho = None,
    omega: options.Omega = None,
    about: Annotated[str, typer.Option(help="A remark for the record; public.")] = "",
    as_json: options.AsJson = False,
) -> None:
    """Give a data set a budget, in a new ledger or an existing one.

    Example: dpbayes ledger init census.ledger --dataset census --epsilon 1 --delta 1e-6 --adjacency replace-one
    """
    from dpbayes.ledger.ledger import Ledger

    limit = options.guarantee(epsilon=epsilon, delta=delta, order=order, rho=rho, omega=omega)
    opened = Ledger(ledger)
    opened.open(dataset, limit, options.unit(adjacency, max_rows), about=about)
    _print_balances([opened.account(dataset)], as_json)


@group.command()
def budget(
    ledger: Where,
    dataset: Dataset,
    about: Annotated[str, typer.Option(help="Who decided, and why; public.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    rho: options.Rho = None,
    omega: options.Omega = None,
    as_json: options.AsJson = False,
) -> None:
    """Change the limit of a data set: the data owner's decision, kept in the ledger.

    Example: dpbayes ledger budget census.ledger --dataset census --epsilon 2 --delta 1e-6 --about "board, 3 May"
    """
    from dpbayes.ledger.ledger import Ledger

    limit = options.guarantee(epsilon=epsilon, delta=delta, order=order, rho=rho, omega=omega)
    opened = Ledger(ledger)
    opened.change_budget(dataset, limit, about=about)
    _print_balances([opened.account(dataset)], as_json)


@group.command()
def show(ledger: Where, dataset: AnyDataset = None, as_json: options.AsJson = False) -> None:
    """Print budgets, what is spent and left, and every charge.

    Example: dpbayes ledger show census.ledger
    """
    accounts = _accounts(ledger, dataset)
    if as_json:
        print_json([_balance(account) | {"charges": _charges(account)} for account in accounts])
        return
    _print_balances(accounts, as_json)
    for account in accounts:
        rows = (
            (line["serial"], line["time"], line["state"], one["times"], one["mechanism"]["mechanism"], line["about"])
            for line in _charges(account)
            for one in line["releases"]  # type: ignore[attr-defined]
        )
        print_table(
            f"Charges on {account.dataset}",
            ("entry", "time", "state", "times", "mechanism", "about"),
            ((*cells, str(about)) for *cells, about in rows),
            notes=("A charge counts unless it is void: without a note it may have been drawn.",),
        )


@group.command()
def verify(
    ledger: Where,
    dataset: AnyDataset = None,
    exported: Annotated[bool, typer.Option("--exported", help="LEDGER is a file of ledger export.")] = False,
    holds: Annotated[list[str] | None, typer.Option(help="The hash on a release: it must be there.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Recompute every hash and the total, and name the first broken entry.

    Example: dpbayes ledger verify census.ledger
    """
    accounts = _exported(ledger, dataset) if exported else _accounts(ledger, dataset)
    present = {entry.hash for account in accounts for entry in account.entries}
    for wanted in holds or ():
        if wanted not in present:
            raise LedgerError(
                f"Ledger: no entry has the hash {wanted}. An older copy may have been put back: find the newer one."
            )
    _print_balances(accounts, as_json)


@group.command()
def export(
    ledger: Where,
    dataset: AnyDataset = None,
    out: Annotated[Path | None, typer.Option(help="Write here instead of to the terminal.")] = None,
) -> None:
    """Write all entries as lines of JSON: mechanisms, times, remarks and hashes, nothing private.

    Example: dpbayes ledger export census.ledger --out census.jsonl
    """
    from dpbayes.ledger.export import lines

    text = "".join(f"{line}\n" for account in _accounts(ledger, dataset) for line in lines(account))
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="ascii")
    except OSError as problem:
        raise LedgerError(f"Ledger: {out} cannot be written. Check the folder and the disk.") from problem


def _accounts(ledger: str, dataset: str | None) -> list[Account]:
    from dpbayes.ledger.ledger import Ledger

    opened = Ledger(ledger)
    return [opened.account(name) for name in (opened.datasets() if dataset is None else [dataset])]


def _exported(path: str, dataset: str | None) -> list[Account]:
    from dpbayes.ledger.export import read

    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise LedgerError(f"Ledger: {path} cannot be read as an export. Check the name.") from problem
    accounts = read(lines)
    if dataset is not None and dataset not in accounts:
        raise LedgerError(f"Ledger: there is no data set {dataset!r} in the export. Check the name.")
    return [account for name, account in accounts.items() if dataset in (None, name)]


def _balance(account: Account) -> dict[str, object]:
    """What is spent: as the number that the budget limits, and in other notions."""
    cost = account.cost
    delta = account.budget.delta if isinstance(account.budget, ApproxDP) else DELTA
    return {
        "dataset": account.dataset,
        "budget": account.budget.record(),
        "unit": account.unit.record(),
        "limit": account.limit,
        "spent": account.price(cost),
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


def _charges(account: Account) -> list[dict[str, object]]:
    return [
        {key: charge.entry.body[key] for key in ("serial", "time", "about", "releases")}
        | {"state": charge.state, "hash": charge.entry.hash}
        for charge in account.charges.values()
    ]


def _print_balances(accounts: list[Account], as_json: bool) -> None:
    if as_json:
        print_json([_balance(account) for account in accounts])
        return
    for account in accounts:
        balance = _balance(account)
        also = balance.pop("spent_also")
        print_table(
            f"{account.dataset}: {account.budget}",
            ("quantity", "value"),
            [(key, balance[key]) for key in ("limit", "spent", "left", "releases", "entries", "head")],
            notes=(
                f"Unit: {account.unit.adjacency}, at most {account.unit.max_rows} row(s) per person. "
                "Every hash is right, and every mechanism was priced anew.",
                "Spent in other notions: ε={epsilon:.6g} at δ={delta:g}, pure ε={epsilon_pure:.6g}, "
                "zCDP ρ={rho:.6g}.".format(**also),  # type: ignore[arg-type]
            ),
        )
