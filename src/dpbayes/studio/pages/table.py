"""Table and people: where the table is, and whom one promise protects. Only the header is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpbayes.base import checks
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.schema.schema import Schema
from dpbayes.studio.desk import Desk, command, desk_of, draft_of, form_of, page, to
from dpbayes.studio.drafts import Draft, first
from dpbayes.tables.engine import Column
from dpbayes.tables.sources import dataset_name, open_table

MOST_COLUMNS = 2_000


def columns(desk: Desk, draft: Draft) -> tuple[Column, ...]:
    """Names and types of the columns. Reads no rows."""
    if not draft.table:
        raise InvalidArgument("studio: name the table first.")
    found = open_table(desk.folder.table(draft.table)).columns()
    if len(found) > MOST_COLUMNS:
        raise InvalidArgument(f"studio: expected at most {MOST_COLUMNS:,} columns, got {len(found):,}.")
    return found


def show(request: Request, draft: Draft | None = None, problem: str = "") -> Response:
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
    words = (
        ("check", draft.table, "--schema", draft.schema)
        if written
        else ("init", draft.table, "--out", f"{draft.name}.toml")
    )
    return page(
        request,
        "table.html",
        status=422 if problem else 200,
        title="Table and people",
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


def save(request: Request) -> Response:
    """Keep the answers, and go on to the columns."""
    desk, draft, form = desk_of(request), draft_of(request), form_of(request)
    table = form.text("table")
    draft = replace(
        draft,
        table=table,
        id=form.text("id") or (dataset_name(table) if table else "") or draft.id,
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
        return show(request, draft, str(problem))
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
    Route("/d/{name}/table", show, methods=["GET"]),
    Route("/d/{name}/table", save, methods=["POST"]),
]
