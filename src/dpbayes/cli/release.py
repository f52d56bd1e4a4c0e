"""``dpbayes release`` and ``finish``: from a table to a published distribution, also after an interruption."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from dpbayes.base.errors import InvalidArgument
from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table, show_release, tell, working
from dpbayes.curator import Curator
from dpbayes.jobs.request import Request
from dpbayes.recovery import IN_ORDER, Item, State, recover, unfinished

if TYPE_CHECKING:
    from dpbayes.ledger.ledger import Ledger


@options.request
@options.curator
def release_command(
    curator: Curator,
    request: Request,
    out: options.NewFolder = None,
    numbers: Annotated[Literal["csv", "parquet"], typer.Option(help="Format of the numbers files.")] = "csv",
    as_json: options.AsJson = False,
) -> None:
    """Publish tables of a private file under one guarantee.

    Example: dpbayes release survey.csv --schema survey.toml --marginal sex,income --epsilon 1 --delta 1e-6
    --ledger survey.ledger --out published
    """
    if out is None and numbers != "csv":
        raise InvalidArgument("release: --numbers goes with --out.")
    request = options.at_most_what_is_left(request, ledger=curator.remembers)
    if options.unlimited(request) and not curator.dry_run:
        raise InvalidArgument("release: expected --epsilon, the most that may be paid, or a ledger.")
    made = options.released(curator, request, out=out, numbers=numbers, quiet=as_json)
    print_json(made.record()) if as_json else show_release(made, out)


def finish_command(
    ledger: Annotated[str, typer.Argument(help="Ledger file or PostgreSQL address.")],
    table: Annotated[
        str | None, typer.Option(help="The table, where its address held a password or it lay in memory.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write to, instead of the one asked for.")] = None,
    forgo: Annotated[
        bool, typer.Option("--forgo", help="Give up what never read a row, and take its charge back.")
    ] = False,
    only: Annotated[
        str | None, typer.Option(help="Only the release of this name, as the list of this command has it.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Complete every release of a ledger that was interrupted after its charge, and list what is left.

    Nothing is charged again.

    Example: dpbayes finish survey.ledger
    """
    from dpbayes.ledger.ledger import Ledger

    book = Ledger(ledger)
    with working(quiet=as_json):
        found = recover(book, table=table, out=out, forgo=forgo, only=only)
    if as_json:
        made = [item.release.record() for item in found if item.release is not None]
        print_json({"releases": made, "items": [item.record() for item in found]})
    else:
        _show(book, found)
    if any(item.left for item in found):
        raise unfinished(found)


def _show(book: Ledger, found: list[Item]) -> None:
    """The releases that were finished, with today's balance; then everything that is not in order, and how much is."""
    for item in found:
        if item.release is not None:
            account = book.account(item.dataset)
            show_release(replace(item.release, spending=account.spending(account.head.serial)), None)
    notable = [item for item in found if item.state not in IN_ORDER]
    if notable:
        rows = [(each.name, each.dataset, each.entry, each.about, each.state, each.says) for each in notable]
        print_table(
            "What was not in order",
            ("name", "data set", "entry", "what", "state", "why"),
            [["-" if cell in ("", None) else cell for cell in row] for row in rows],
        )
    states = Counter(item.state for item in found)
    listed = ", ".join(f"{states[state]} {state}" for state in get_args(State) if states[state])
    tell(f"{listed}." if listed else "There are no charges yet.")
    if not any(item.left for item in found):
        tell("Nothing is left unfinished.")
