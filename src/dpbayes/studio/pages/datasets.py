"""Data sets: a card for each with what was published of it, and where a new table is and whom one promise protects.

Of a table, only the header is read.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

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


class Card(NamedTuple):
    """One data set."""

    id: str
    ledger: str
    account: Account | None
    schema: str
    """The schema file that the ledger accepts, if one is in the folder."""
    table: str
    """A table beside the schema file, by its name only."""
    timeline: list[dict[str, Any]]


def cards(desk: Desk) -> tuple[list[Card], list[str]]:
    """Every data set in the folder, and the ledgers that could not be read."""
    from dpbayes.ledger.ledger import Ledger

    schemas, releases, tables = desk.folder.schemas(), desk.folder.releases(), desk.folder.tables()

    def card(dataset: str, ledger: str = "", account: Account | None = None) -> Card:
        accepted = set(account.schemas) if account is not None else set()
        own = {name: each for name, each in schemas.items() if each.id == dataset}
        schema = next((name for name, each in own.items() if not accepted or each.digest in accepted), "")
        stem = Path(schema).with_suffix("") if schema else None
        beside = (each for each in tables if Path(each).parent / Path(each).name.split(".")[0] == stem)
        published = {name: each for name, each in releases.items() if each.dataset == dataset}
        return Card(dataset, ledger, account, schema, next(beside, ""), _timeline(account, published))

    found: list[Card] = []
    troubles = []
    for name in desk.folder.ledgers():
        try:
            ledger = Ledger(desk.folder.ledger(name))
            for dataset in ledger.datasets():
                found.append(card(dataset, name, ledger.account(dataset)))
        except DpbayesError as problem:
            troubles.append(f"{name}: {problem}")
    known = {each.id for each in found}
    others = dict.fromkeys([*(each.id for each in schemas.values()), *(each.dataset for each in releases.values())])
    return found + [card(each) for each in others if each not in known], troubles


def _timeline(account: Account | None, releases: dict[str, Release]) -> list[dict[str, Any]]:
    """What was charged, in order, each with its folder where that is known; then what no ledger remembers."""
    by_lock = {each.lock: name for name, each in releases.items() if each.lock}
    lines: list[dict[str, Any]] = []
    if account is not None:
        for charge in account.charges.values():
            void, said = charge.state == "void", charge.entry.body
            lines.append(
                {
                    "when": str(said["time"])[:10],
                    "about": str(said["about"]),
                    "state": charge.state,
                    "cost": "taken back" if void else costs(account.budget.amount(charge.cost), account.budget),
                    "folder": by_lock.get(charge.lock, ""),
                }
            )
    charged = {line["folder"] for line in lines}
    return lines + [
        {
            "when": release.created[:10],
            "about": "; ".join(str(table.marginal) for table in release.tables) or release.kind,
            "state": "seeded, not private" if release.seeded else "in no ledger here",
            "cost": str(release.promise),
            "folder": name,
        }
        for name, release in releases.items()
        if name not in charged
    ]


def show(request: Request) -> Response:
    """The first screen."""
    desk = desk_of(request)
    found, troubles = cards(desk)
    ledgers = [card.ledger for card in found if card.ledger]
    tables = desk.folder.tables()
    first = ["schema", "init", *tables[:1], "--out", "-"] if tables else []
    words = ["ledger", "show", *ledgers[:1]] if ledgers else first
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
    if len(found) > 2_000:  # nobody fills in a longer grid
        raise InvalidArgument(f"studio: expected at most 2,000 columns, got {len(found):,}.")
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
    words = ["check", draft.table, "--schema", draft.schema]
    if not written:
        words = ["init", draft.table, "--out", f"{draft.name}.toml"]
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
        return draft.about(Schema.load(desk.folder.inside(draft.schema)))
    except DpbayesError:
        return draft


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
    if draft.schema and not draft.columns and desk.folder.inside(draft.schema).is_file():
        return draft.with_columns(desk.drafts.schema(draft), found)
    known = {each.name: each for each in draft.columns}
    kept = (replace(known[each.name], kind=str(each.kind)) if each.name in known else first(each) for each in found)
    return replace(draft, columns=tuple(kept))


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
