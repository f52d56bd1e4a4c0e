"""Data sets: a card for each one that a ledger knows, and what was published of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.ledger.account import Account
from dpbayes.release.format import Release
from dpbayes.schema.schema import Schema
from dpbayes.studio.desk import Desk, command, desk_of, draft_of, form_of, page, to
from dpbayes.words.budget import costs


@dataclass
class Card:
    """One data set."""

    id: str
    ledger: str = ""
    account: Account | None = None
    schema: str = ""
    """The schema file that the ledger accepts, if one is in the folder."""
    table: str = ""
    """A table beside the schema file, by its name only."""
    releases: dict[str, Release] = field(default_factory=dict)
    timeline: list[dict[str, Any]] = field(default_factory=list)


def cards(desk: Desk) -> tuple[list[Card], list[str]]:
    """Every data set in the folder, and the ledgers that could not be read."""
    from dpbayes.ledger.ledger import Ledger

    schemas, releases, troubles = desk.folder.schemas(), desk.folder.releases(), []
    found: list[Card] = []
    for name in desk.folder.ledgers():
        try:
            ledger = Ledger(desk.folder.ledger(name))
            for dataset in ledger.datasets():
                account = ledger.account(dataset)
                found.append(_card(desk, dataset, name, account, schemas, releases))
        except DpbayesError as problem:
            troubles.append(f"{name}: {problem}")
    known = {card.id for card in found}
    for dataset in dict.fromkeys([*(s.id for s in schemas.values()), *(r.dataset for r in releases.values())]):
        if dataset not in known:
            found.append(_card(desk, dataset, "", None, schemas, releases))
    return found, troubles


def _card(
    desk: Desk,
    dataset: str,
    ledger: str,
    account: Account | None,
    schemas: dict[str, Schema],
    releases: dict[str, Release],
) -> Card:
    accepted = set(account.schemas) if account is not None else set()
    own = {name: each for name, each in schemas.items() if each.id == dataset}
    fitting = [name for name, each in own.items() if not accepted or each.digest in accepted]
    schema = next(iter(fitting), "")
    published = {name: each for name, each in releases.items() if each.dataset == dataset}
    card = Card(id=dataset, ledger=ledger, account=account, schema=schema, releases=published)
    if schema:
        stem, beside = Path(schema).stem, Path(schema).parent.as_posix()
        card.table = next((each for each in desk.folder.tables() if _beside(each, stem, beside)), "")
    card.timeline = _timeline(account, published)
    return card


def _beside(table: str, stem: str, folder: str) -> bool:
    return Path(table).parent.as_posix() == folder and Path(table).name.split(".")[0] == stem


def _timeline(account: Account | None, releases: dict[str, Release]) -> list[dict[str, Any]]:
    """What was charged, in order, each with its folder where that is known; then what no ledger remembers."""
    by_lock = {each.lock: name for name, each in releases.items() if each.lock}
    lines: list[dict[str, Any]] = []
    for serial, charge in account.charges.items() if account is not None else ():
        counted = charge.state != "void"
        lines.append(
            {
                "serial": serial,
                "when": str(charge.entry.body["time"])[:10],
                "about": str(charge.entry.body["about"]),
                "state": charge.state,
                "price": costs(account.price(charge.cost), account.budget)
                if counted and account is not None
                else "taken back",
                "folder": by_lock.get(charge.lock, ""),
            }
        )
    charged = {line["folder"] for line in lines}
    for name, release in releases.items():
        if name not in charged:
            about = "; ".join(str(table.marginal) for table in release.tables) or release.kind
            lines.append(
                {
                    "serial": None,
                    "when": release.created[:10],
                    "about": about,
                    "state": "seeded, not private" if release.seeded else "no ledger here remembers it",
                    "price": str(release.promise),
                    "folder": name,
                }
            )
    return lines


def show(request: Request) -> Response:
    """The first screen."""
    desk = desk_of(request)
    found, troubles = cards(desk)
    ledgers = [card.ledger for card in found if card.ledger]
    tables = desk.folder.tables()
    words = (
        ["ledger", "show", *ledgers[:1]] if ledgers else ["schema", "init", *tables[:1], "--out", "-"] if tables else []
    )
    return page(
        request,
        "datasets.html",
        title="Data sets",
        cards=found,
        troubles=troubles,
        drafts=desk.drafts.all(),
        tables=tables[:200],
        start=desk.folder.start,
        commands=(command("dpbayes", *words),) if words else (),
    )


def begin(request: Request) -> Response:
    """Start on a table, or on a data set that is known."""
    desk, form = desk_of(request), form_of(request)
    table, schema, ledger = form.text("table"), form.text("schema"), form.text("ledger")
    if schema and schema not in desk.folder.schemas():
        raise InvalidArgument("studio: there is no such schema file in the start folder.")
    if ledger:
        desk.folder.ledger(ledger)
    if table:
        desk.folder.table(table)
    wanted = form.text("id") or Path(table.partition("?")[0]).name.split(".")[0] or "data"
    draft = desk.drafts.new(wanted, id=wanted, table=table, schema=schema, ledger=ledger)
    return to(f"/d/{draft.name}/table")


def forget(request: Request) -> Response:
    """Take a draft off the list. Its schema, request and releases stay."""
    desk_of(request).drafts.forget(draft_of(request))
    return to("/")


ROUTES = [
    Route("/", show, methods=["GET"]),
    Route("/begin", begin, methods=["POST"]),
    Route("/d/{name}/forget", forget, methods=["POST"]),
]
