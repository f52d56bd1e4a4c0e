"""Data sets: a card for each with what was published of it, and where a new table is and whom one promise protects.

Of a table, only the header is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpbayes.base import checks
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.ledger.account import Account
from dpbayes.release.format import Release
from dpbayes.schema.schema import Schema
from dpbayes.studio.desk import Desk, command, desk_of, draft_of, form_of, page, to
from dpbayes.studio.drafts import Draft, first
from dpbayes.tables.engine import Column
from dpbayes.tables.sources import dataset_name, open_table
from dpbayes.words.budget import costs

MOST_COLUMNS = 2_000
"""A grid of more columns is too long to fill in."""


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
    words = ["ledger", "show", *ledgers[:1]] if ledgers else ["schema", "init", *tables[:1]] if tables else []
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


def columns(desk: Desk, draft: Draft) -> tuple[Column, ...]:
    """Names and types of the columns. Reads no rows."""
    if not draft.table:
        raise InvalidArgument("studio: name the table first.")
    found = open_table(desk.folder.table(draft.table)).columns()
    if len(found) > MOST_COLUMNS:
        raise InvalidArgument(f"studio: expected at most {MOST_COLUMNS:,} columns, got {len(found):,}.")
    return found


def table(request: Request, draft: Draft | None = None, problem: str = "") -> Response:
    """The questions, with the answers so far."""
    desk, draft = desk_of(request), draft or draft_of(request)
    if not draft.adjacency and draft.schema and not problem:
        draft = _from_schema(desk, draft)
    found: tuple[Column, ...] = ()
    if draft.table and not problem:
        try:
            found = columns(desk, draft)
        except DpbayesError as met:
            problem = str(met)
    written = bool(draft.schema) and desk.folder.inside(draft.schema).is_file()
    words = ("check", draft.schema, draft.table) if written else ("init", draft.table, "--out", f"{draft.name}.toml")
    return page(
        request,
        "table.html",
        step="table",
        draft=draft,
        problem=problem,
        columns=found,
        tables=desk.folder.tables()[:200],
        commands=(command("dpbayes", "schema", *words),) if found else (),
    )


def _from_schema(desk: Desk, draft: Draft) -> Draft:
    """A draft that starts from a schema file says what the file says."""
    try:
        schema = Schema.load(desk.folder.inside(draft.schema))
    except DpbayesError:
        return draft
    return replace(
        draft,
        id=schema.id,
        adjacency=str(schema.unit.adjacency),
        max_rows=schema.unit.max_rows,
        records=schema.records,
    )


def save_table(request: Request) -> Response:
    """Keep the answers, and go on to the columns."""
    desk, draft, form = desk_of(request), draft_of(request), form_of(request)
    address = form.text("table")
    draft = replace(
        draft,
        table=address,
        id=form.text("id") or (dataset_name(address) if address else "") or draft.id,
        adjacency={"public": "replace-one", "private": "add-remove"}.get(form.text("size"), ""),
    )
    try:
        draft = replace(draft, max_rows=checks.whole("studio", "rows of one person", form.text("max_rows") or "1"))
        if form.text("several") != "yes":
            draft = replace(draft, max_rows=1)
        records = form.text("records")
        draft = replace(draft, records=checks.whole("studio", "records", records) if records else None)
        if not draft.adjacency:
            raise InvalidArgument("studio: say whether the number of records is public.")
        found = columns(desk, draft)
        _check_id(draft)
        draft = _with_columns(desk, draft, found)
    except DpbayesError as problem:
        return table(request, draft, str(problem))
    desk.drafts.save(draft)
    return to(f"/d/{draft.name}/declare")


def _with_columns(desk: Desk, draft: Draft, found: tuple[Column, ...]) -> Draft:
    """Keep what was declared of the columns that are still there."""
    if draft.schema and not draft.columns and Path(desk.folder.inside(draft.schema)).is_file():
        said = draft
        filled = draft.with_schema(desk.drafts.schema(draft), found)
        return replace(filled, id=said.id, adjacency=said.adjacency, max_rows=said.max_rows, records=said.records)
    known = {each.name: each for each in draft.columns}
    return replace(
        draft,
        columns=tuple(
            replace(known[each.name], kind=str(each.kind)) if each.name in known else first(each) for each in found
        ),
    )


def _check_id(draft: Draft) -> None:
    if not draft.id.strip() or not draft.id.isprintable() or len(draft.id) > 200:
        raise InvalidArgument("studio: expected a short name for the data set, on one line.")


ROUTES = [
    Route("/", show, methods=["GET"]),
    Route("/begin", begin, methods=["POST"]),
    Route("/d/{name}/forget", forget, methods=["POST"]),
    Route("/d/{name}/table", table, methods=["GET"]),
    Route("/d/{name}/table", save_table, methods=["POST"]),
]
