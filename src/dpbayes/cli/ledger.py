"""``dpbayes ledger``: budgets, what was spent, and the proof of it."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpbayes.base.display import plural
from dpbayes.base.errors import InvalidArgument, LedgerError, UnitMismatch
from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table, tell
from dpbayes.ledger.history import timeline
from dpbayes.privacy.guarantee import Limit, Rule, rounded_up
from dpbayes.privacy.risk import cautions
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Adjacency, PrivacyUnit
from dpbayes.words import budget as budgets
from dpbayes.words import promise

if TYPE_CHECKING:
    from dpbayes.ledger.account import Account

Where = Annotated[str, typer.Argument(metavar="LEDGER", help="A file, or postgresql://user@host/database.")]
Dataset = Annotated[str, typer.Option(help="The declared id of the data set.")]
RuleOption = Annotated[
    Rule, typer.Option(help="How an (ε, δ) limit is kept: gaussian for Gaussian noise, renyi for mixtures.")
]
Slack = Annotated[
    float | None,
    typer.Option(help="Part of δ for releases with a δ of their own, such as found categories; δ/20 if left out."),
]
Reason = Annotated[str, typer.Option(help="Who decided, and why; public.")]
AnyDataset = Annotated[str | None, typer.Option(help="Only this data set; all of them otherwise.")]

NO_ROLES = (
    "the database made no roles for owner and analysts, so whoever may write this ledger may change its limits; "
    "create the ledger anew as a user with CREATEROLE if analysts shall charge it."
)

DELTA = 1e-6
"""The δ at which ε is shown when the budget names none."""

PAGE = 50
"""Entries that are shown unless more are asked for."""


@options.limit
def init(
    ledger: Where,
    limit: Limit,
    schema: Annotated[
        Path | None, typer.Option(help="Schema of the data set: its id, unit and digest are registered.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Without a schema: the id of the data set.")] = None,
    adjacency: Annotated[
        options.AdjacencyName | None, typer.Option(help="Without a schema: which data sets are neighbours.")
    ] = None,
    max_rows: options.MaxRows = 1,
    person: Annotated[str | None, typer.Option(help="Without a schema: the column that identifies people.")] = None,
    rule: RuleOption = "gaussian",
    slack: Slack = None,
    about: Annotated[str, typer.Option(help="A remark for the record; public.")] = "",
    witness: Annotated[
        str, typer.Option(help="A second file or address that sees every charge: an older ledger is refused.")
    ] = "",
    as_json: options.AsJson = False,
) -> None:
    """Give a data set a budget, in a new ledger or an existing one.

    Example: dpbayes ledger init survey.ledger --schema survey.toml --epsilon 2 --delta 1e-6
    """
    from dpbayes.ledger.ledger import Ledger

    if (schema is None) != (dataset is not None and adjacency is not None) or (
        schema is not None and (dataset, adjacency, max_rows, person) != (None, None, 1, None)
    ):
        raise InvalidArgument("ledger: expected --schema, or --dataset with --adjacency; got another combination.")
    opened = Ledger(ledger)
    if schema is not None:
        declared = Schema.load(schema)
        name, unit, digest = declared.id, declared.unit, declared.digest
    elif dataset is not None and adjacency is not None:
        name, unit, digest = dataset, PrivacyUnit(adjacency=Adjacency(adjacency), max_rows=max_rows, person=person), ""
    opened.open(name, limit, unit, schema=digest, rule=rule, slack=slack, about=about, witness=witness)
    for said in cautions(limit, unit, records=None if schema is None else Schema.load(schema).records):
        tell(promise.warning(said), err=True)
    if opened.lacks_roles:
        tell(promise.warning(NO_ROLES), err=True)
    _print_balances([opened.account(name)], as_json)


@options.limit
def budget(
    ledger: Where,
    limit: Limit,
    dataset: Dataset,
    about: Annotated[str, typer.Option(help="Who decided, and why; public.")],
    slack: Slack = None,
    as_json: options.AsJson = False,
) -> None:
    """Change the limit of a data set: the data owner's decision, kept in the ledger. The rule stays.

    Example: dpbayes ledger budget survey.ledger --dataset example-survey --epsilon 3 --delta 1e-6 --about "board"
    """
    from dpbayes.ledger.ledger import Ledger

    opened = Ledger(ledger)
    opened.change_budget(dataset, limit, about=about, slack=slack)
    _print_balances([opened.account(dataset)], as_json)


def accept(
    ledger: Where,
    schema: Annotated[Path, typer.Option(help="The schema that releases may use from now on.")],
    reason: Reason,
    as_json: options.AsJson = False,
) -> None:
    """Let releases use another schema too: the data owner's decision, kept in the ledger.

    Example: dpbayes ledger accept survey.ledger --schema survey.toml --reason "categories of region were bought"
    """
    from dpbayes.ledger.ledger import Ledger

    declared, opened = Schema.load(schema), Ledger(ledger)
    if (known := opened.account(declared.id).unit) != declared.unit:
        raise UnitMismatch(
            f"Ledger: {declared.id!r} protects this unit: {known}. The schema declares another: {declared.unit}. "
            "Open a new data set for it."
        )
    opened.accept(declared.id, declared.digest, about=reason)
    _print_balances([opened.account(declared.id)], as_json)


def charge(
    ledger: Where,
    dataset: Dataset,
    records: Annotated[Path, typer.Option("--from", help="JSON list of mechanism records; - reads standard input.")],
    about: Annotated[str, typer.Option(help="What is released; public.")],
) -> None:
    """Charge a series: a list of releases that is fixed now and drawn later, at the price of its composition.

    Example: dpbayes ledger charge survey.ledger --dataset example-survey --from series.json --about "monthly tables"
    """
    from dpbayes.cli.experts import cost_of_file
    from dpbayes.ledger.ledger import Ledger

    receipt = Ledger(ledger).charge(dataset, cost_of_file(records), about=about)
    print_json(receipt.record())


def changed(
    ledger: Where,
    table: Annotated[str, typer.Argument(help="The private table.")],
    schema: Annotated[Path, typer.Option(help="Schema file; its columns are compared.")],
) -> None:
    """Say whether the table has changed since you last asked. For the data owner: the answer is not for publication.

    Example: dpbayes ledger changed survey.ledger survey.csv --schema survey.toml
    """
    from dpbayes.curator import Curator

    curator = Curator(table, schema, ledger=ledger)
    said = "The table has changed" if curator.changed() else "No change was noticed in the table"
    tell(f"{said} since the ledger last saw these columns. Keep this answer to yourself: it is not private.")


def show(
    ledger: Where,
    dataset: AnyDataset = None,
    everything: Annotated[bool, typer.Option("--all", help="Every entry, instead of the last 50.")] = False,
    since: Annotated[
        str | None, typer.Option(help="Entries from this one on, by number, or from this day on: 2026-11-01.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Print budgets, what is spent and left, and the last charges.

    Example: dpbayes ledger show survey.ledger --since 2026-11-01
    """
    accounts = _accounts(ledger, dataset)
    first = {account.dataset: _first(account, everything, since) for account in accounts}
    if as_json:
        listed = [(account, _charges(account, first[account.dataset])) for account in accounts]
        print_json([_balance(account) | {"charges": shown} for account, shown in listed])
        return
    _print_balances(accounts, as_json)
    for account in accounts:
        _print_charges(account, first[account.dataset])


def _first(account: Account, everything: bool, since: str | None) -> int:
    """The first entry to show."""
    if since is None:
        return 0 if everything else max(0, len(account.entries) - PAGE)
    if since.isdecimal():
        return int(since)
    try:
        day = date.fromisoformat(since).isoformat()
    except ValueError:
        raise InvalidArgument(
            f"ledger: expected --since as an entry or a day such as 2026-11-01, got {since!r}."
        ) from None
    return next((entry.serial for entry in account.entries if str(entry.body["time"]) >= day), len(account.entries))


def verify(
    ledger: Where,
    dataset: AnyDataset = None,
    exported: Annotated[bool, typer.Option("--exported", help="LEDGER is a file of ledger export.")] = False,
    holds: Annotated[list[str] | None, typer.Option(help="The hash on a release: it must be there.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Recompute every hash, certificate and the total, and name the first broken entry.

    Example: dpbayes ledger verify survey.ledger
    """
    from dpbayes.mechanisms.kinds import confirm

    accounts = _exported(ledger, dataset) if exported else _accounts(ledger, dataset)
    for account in accounts:
        for mechanism, _ in account.cost.entries:
            confirm(mechanism)
    present = {entry.hash for account in accounts for entry in account.entries}
    for wanted in holds or ():
        if wanted not in present:
            raise LedgerError(
                f"Ledger: no entry has the hash {wanted}. An older copy may have been put back: find the newer one."
            )
    _print_balances(accounts, as_json)


def export(
    ledger: Where,
    dataset: AnyDataset = None,
    out: Annotated[Path | None, typer.Option(help="Write here instead of to the terminal.")] = None,
) -> None:
    """Write all entries as lines of JSON: mechanisms, times, remarks and hashes, nothing private.

    Example: dpbayes ledger export survey.ledger --out survey.jsonl
    """
    from dpbayes.ledger.history import lines

    text = "".join(f"{line}\n" for account in _accounts(ledger, dataset) for line in lines(account))
    if out is None:
        tell(text, nl=False)
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
    from dpbayes.ledger.history import read

    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise LedgerError(f"Ledger: {path} cannot be read as an export. Check the name.") from problem
    accounts = read(lines)
    if dataset is not None and dataset not in accounts:
        raise LedgerError(f"Ledger: there is no data set {dataset!r} in the export. Check the name.")
    return [account for name, account in accounts.items() if dataset in (None, name)]


def _balance(account: Account) -> dict[str, Any]:
    """Limit, what is spent and left, and what that is in other notions."""
    cost, delta = account.cost, account.budget.exception or DELTA
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


def _charges(account: Account, first: int = 0) -> list[dict[str, Any]]:
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


def _print_balances(accounts: list[Account], as_json: bool) -> None:
    """The balances as JSON or as tables with sentences."""
    if as_json:
        print_json([_balance(account) for account in accounts])
        return
    for account in accounts:
        shown = _balance(account)
        also = shown.pop("spent_also")
        print_table(
            f"{account.dataset}: {account.budget}",
            ("quantity", "value"),
            [(key, shown[key]) for key in ("limit", "spent", "left", "releases", "entries", "head")],
            notes=(
                *budgets.balance(account),
                f"Unit: {account.unit}. Every hash is right, and every mechanism was priced anew.",
                "Spent in other notions: ε={epsilon:.6g} at δ={delta:g}, pure ε={epsilon_pure:.6g}, "
                "zCDP ρ={rho:.6g}.".format(**also),
            ),
        )


def _print_charges(account: Account, first: int = 0) -> None:
    """What happened to the data set, entry by entry: limits, schemas, releases, and which replaced which."""
    priced = {line["serial"]: line for line in _charges(account, first)}
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
