"""``dpbayes ledger``: limits, what was spent, the proof of it, and releases that were interrupted."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Unpack, get_args

from dpbayes.base.display import plural, rounded_up
from dpbayes.base.errors import InvalidArgument, LedgerError, UnitMismatch
from dpbayes.cli.command import Output, near, now, useless
from dpbayes.cli.output import print_table, show_release, tell, tell_people, warn, working
from dpbayes.ledger.history import timeline
from dpbayes.ledger.ledger import Ledger
from dpbayes.privacy.guarantee import Limit
from dpbayes.privacy.risk import cautions
from dpbayes.schema.schema import Schema
from dpbayes.words import budget as budgets
from dpbayes.words import promise

if TYPE_CHECKING:
    from dpbayes.cli.options import File, GuaranteeOptions, Text, Words
    from dpbayes.ledger.account import Account
    from dpbayes.tables.beside import Beside

NO_ROLES = (
    "the database made no roles for owner and analysts, so whoever may write this ledger may change its limits; "
    "create the ledger anew as a user with CREATEROLE if analysts shall charge it."
)

DELTA = 1e-6
"""The δ at which ε is shown when the limit names none."""

PAGE = 50
"""Entries that are shown unless more are asked for."""


def init(
    data: str, *, rule: str, about: Text, schema: File, ledger: Text, witness: Text, **asked: Unpack[GuaranteeOptions]
) -> Output:
    """Id, unit and digest of the data set are those of its schema. A limit says its δ: --delta 0 for a pure one.

    Example: dpbayes ledger init survey.csv --epsilon 4 --delta 1e-6
    """
    limit, found = limit_of(asked), near(data, schema, ledger)
    declared = Schema.load(found.need_schema())
    where = found.ledger or found.new_ledger
    if where is None or found.uncounted:
        raise InvalidArgument("ledger: expected --ledger, a new file or an address for the limit.")
    book = Ledger(where)
    book.open(declared, limit, rule=rule, about=about or "", witness=witness or "")  # type: ignore[arg-type]  # a choice
    said = list(cautions(limit, declared.unit, records=declared.records))
    for each in [*said, *([NO_ROLES] if book.lacks_roles else [])]:
        warn(now(), promise.warning(each))
    return _balances([book.account(declared.id)])


def limit_of(asked: GuaranteeOptions) -> Limit:
    """The limit that the options name; its δ has to be said."""
    from dpbayes.jobs.request import asked_for  # with the jobs, which showing a ledger does not need

    said = asked_for(**asked, wanted=False)
    if not said:
        raise InvalidArgument("Guarantee: expected --epsilon with --delta, as in --epsilon 4 --delta 1e-6.")
    if said["open_delta"]:
        raise InvalidArgument("Guarantee: expected --delta too: 1e-6, or 0 for a pure limit.")
    return said["target"]  # type: ignore[no-any-return]


def show(data: str, *, all_: bool, since: Text, schema: File, ledger: Text) -> Output:
    """Example: dpbayes ledger show survey.csv"""
    if all_:
        useless("every entry", "since")
    accounts = _accounts(near(data, schema, ledger))
    listed = [(account, _first(account, all_, since)) for account in accounts]
    result = [_balance(account) | {"charges": _charges(account, first)} for account, first in listed]

    def people() -> None:
        _print_balances(accounts)
        for (account, first), found in zip(listed, result, strict=True):
            _print_charges(account, first, found["charges"])

    return Output(result, people)


def limit(data: str, *, about: str, schema: File, ledger: Text, **asked: Unpack[GuaranteeOptions]) -> Output:
    """The rule by which it is kept stays.

    Example: dpbayes ledger limit survey.csv --epsilon 8 --delta 1e-6 --about 'board, 3 May'
    """
    new, found = limit_of(asked), near(data, schema, ledger)
    account, book = _account(found)
    before = budgets.room(account.left(), account.budget)
    book.change_budget(account.dataset, new, about=about)
    after = book.account(account.dataset)

    def people() -> None:
        tell_people(f"Before: {account.budget}. {before}")
        _print_balances([after])

    return Output([_balance(after)], people)


def accept(data: str, *, about: str, schema: File, ledger: Text) -> Output:
    """Example: dpbayes ledger accept survey.toml --about 'regions released on 3 May'"""
    found = near(data, schema, ledger)
    declared = Schema.load(found.need_schema())
    account, book = _account(found)
    if account.unit != declared.unit:
        raise UnitMismatch(
            f"Ledger: {declared.id!r} protects this unit: {account.unit}. The schema declares another: "
            f"{declared.unit}. Open a new data set for it."
        )
    book.accept(declared.id, declared.digest, about=about)
    return _balances([book.account(declared.id)])


def charge(data: str, mechanisms: Words, *, about: str, schema: File, ledger: Text) -> Output:
    """The list is fixed now, at the price of its composition.

    Example: dpbayes ledger charge survey.csv '12 * Gaussian(400)' --about 'monthly tables of 2027'
    """
    from dpbayes.mechanisms.kinds import cost_of

    account, book = _account(near(data, schema, ledger))
    receipt = book.charge(account.dataset, cost_of(mechanisms, account.unit), about=about)
    after = book.account(account.dataset)

    def people() -> None:
        tell_people(f"Charged as entry {receipt.serial}: {receipt.hash}")
        for each in budgets.balance(after):
            tell_people(each)

    return Output(receipt.record() | {"balance": _balance(after)}, people)


def finish(data: str, *, out: File, give_up: bool, only: Text, schema: File, ledger: Text) -> Output:
    """If DATA is a table, releases of a table whose address held a password are completed from it.

    Example: dpbayes ledger finish survey.csv
    """
    from dpbayes.recovery import IN_ORDER, State, recover, unfinished

    found = near(data, schema, ledger)
    if found.ledger is None:
        raise LedgerError("Ledger: there is no ledger, so nothing can be finished. Name the ledger.")
    book = Ledger(found.ledger)
    table = data if data == str(found.table) else None
    dataset = None if found.schema is None else Schema.load(found.schema).id
    with working(now()):
        items = recover(book, table=table, out=out, forgo=give_up, only=only, dataset=dataset)
    left = [item for item in items if item.left]
    made = [item.release for item in items if item.release is not None]

    def people() -> None:
        for item in items:
            if item.release is not None:
                account = book.account(item.dataset)
                show_release(replace(item.release, spending=account.spending(account.head.serial)), None)
        notable = [item for item in items if item.state not in IN_ORDER]
        if notable:
            rows = [(each.name, each.dataset, each.entry, each.about, each.state, each.says) for each in notable]
            print_table(
                "What was not in order",
                ("name", "data set", "entry", "what", "state", "why"),
                [["-" if cell in ("", None) else cell for cell in row] for row in rows],
            )
        states = Counter(item.state for item in items)
        listed = ", ".join(f"{states[state]} {state}" for state in get_args(State) if states[state])
        tell(f"{listed}." if listed else "There are no charges yet.")
        tell(f"dpbayes: {unfinished(items)}" if left else "Nothing is left unfinished.", err=bool(left))

    result = {"releases": [each.record() for each in made], "items": [item.record() for item in items]}
    return Output(result, people, code=1 if left else 0)


def _account(found: Beside) -> tuple[Account, Ledger]:
    """The one data set that is meant, and its ledger."""
    accounts = _accounts(found)
    if len(accounts) != 1:
        named = ", ".join(account.dataset for account in accounts)
        raise LedgerError(f"Ledger: it has several data sets: {named}. Name the schema of one with --schema.")
    assert found.ledger is not None
    return accounts[0], Ledger(found.ledger)


def _accounts(found: Beside) -> list[Account]:
    """The data set of the schema; without a schema, all that are in the ledger."""
    if found.ledger is None:
        found.need_ledger()
        raise LedgerError("Ledger: expected a ledger, got none. Leave --ledger out, or name one.")
    book = Ledger(found.ledger)
    names = book.datasets() if found.schema is None else [Schema.load(found.schema).id]
    return [book.account(name) for name in names]


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


def _balance(account: Account) -> dict[str, Any]:
    """Limit, what is spent and left, and what that is in other notions."""
    cost, delta = account.cost, account.budget.exception or DELTA
    return {
        "dataset": account.dataset,
        "budget": account.budget.record(),
        "unit": account.unit.record(),
        "schemas": list(account.schemas),
        "limit": account.budget.size,
        "used": account.used,
        "spent": account.spent,
        "left": account.left(),
        "releases": len(account.costs),
        "mechanisms": cost.releases,
        "spent_also": {
            "epsilon_pure": cost.renyi(math.inf),
            "epsilon": cost.epsilon(delta),
            "delta": delta,
            "rho": cost.concentrated(math.inf),
        },
        "entries": len(account.entries),
        "head": account.head.hash,
    }


def _charges(account: Account, first: int) -> list[dict[str, Any]]:
    """Every charge from an entry on, with its own price and the running total, by the rule of the ledger."""
    costs = account.costs
    since = sum(serial < first for serial in costs)
    totals = dict(zip(list(costs)[since:], account.budget.running(costs.values(), since), strict=True))
    listed = []
    for serial, made in account.charges.items():
        if serial < first:
            continue
        line: dict[str, Any] = {key: made.entry.body[key] for key in ("serial", "time", "about", "releases")}
        own = total = None
        if serial in costs:
            own, total = account.budget.amount(costs[serial]), totals[serial]
        listed.append(line | {"state": made.state, "hash": made.entry.hash, "own": own, "total": total})
    return listed


def _balances(accounts: list[Account]) -> Output:
    return Output([_balance(account) for account in accounts], lambda: _print_balances(accounts))


def _print_balances(accounts: list[Account]) -> None:
    """The balances as tables with sentences."""
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


def _print_charges(account: Account, first: int, charges: list[dict[str, Any]]) -> None:
    """What happened to the data set, entry by entry: limits, schemas, releases, and which replaced which."""

    def price(amount: float | None) -> str:
        return "-" if amount is None else rounded_up(amount, 4)

    priced = {line["serial"]: line for line in charges}
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
                *(price(priced.get(event.serial, {}).get(key)) for key in ("own", "total")),
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
