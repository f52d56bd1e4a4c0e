"""Declare: what everyone may know about each column. Nothing is learned from the rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpbayes.base.display import plural
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.schema.attribute import LONGEST_NOTE, Attribute
from dpbayes.schema.codebook import PRESETS, preset
from dpbayes.schema.marginal import Marginal
from dpbayes.studio.desk import Desk, Form, command, desk_of, draft_of, form_of, page, to
from dpbayes.studio.drafts import Declared, Draft
from dpbayes.tables import declaring
from dpbayes.tables.engine import Column, Kind

CHOICES = {
    "use": ("use", "ignore", "person"),
    "values": ("categories", "edges"),
    "unknown": ("other", "drop"),
    "missing": ("other", "category", "drop"),
}


def show(request: Request, draft: Draft | None = None, problem: str = "") -> Response:
    """The grid of columns."""
    draft = draft or draft_of(request)
    if not draft.columns and not problem:
        return to(f"/d/{draft.name}/table")
    faults = draft.faults() if problem else {}
    return page(
        request,
        "declare.html",
        step="declare",
        draft=draft,
        problem=problem,
        faults=faults,
        presets=list(PRESETS),
        commands=(command("dpbayes", "schema", "check", draft.table or draft.schema, "--schema", draft.schema),)
        if draft.schema
        else (),
        discovery=command(
            *("dpbayes", "plan", draft.table, str(Marginal((draft.columns[0].name,))), "--as", "categories"),
            *("--schema", draft.schema, "--ledger", draft.ledger, "--epsilon", "0.2", "--delta", "1e-8"),
        )
        if draft.schema and draft.ledger
        else "",
    )


def save(request: Request) -> Response:
    """Keep what was declared; write the schema when all of it is sound, and go on."""
    desk, draft, form = desk_of(request), draft_of(request), form_of(request)
    try:
        draft = _from_files(desk, _with_answers(draft, form), form)
        desk.drafts.save(draft)
        if form.text("action") == "fill":
            return to(f"/d/{draft.name}/declare")
        if faults := draft.faults():
            raise InvalidArgument(f"Schema: {plural(len(faults), 'column')} cannot be used yet; see below.")
        if not draft.used:
            raise InvalidArgument("Schema: no column is used. Choose one or more, and list what they can hold.")
        before = desk.drafts.schema(draft) if draft.schema else None
        desk.drafts.save(desk.drafts.write_schema(draft, draft.declared(before)))
    except DpbayesError as problem:
        return show(request, draft, str(problem))
    return to(f"/d/{draft.name}/ask")


def _with_answers(draft: Draft, form: Form) -> Draft:
    """The draft with what the form says of each column."""
    if form.text("count") != str(len(draft.columns)):
        raise InvalidArgument("studio: the table was changed in another window. Open this page again.")
    columns = []
    for place, column in enumerate(draft.columns):
        said: dict[str, Any] = {key: form.text(f"{key}.{place}", getattr(column, key)) for key in CHOICES}
        for key, value in said.items():
            if value not in (*CHOICES[key], *column.takers(getattr(column, key)), getattr(column, key)):
                raise InvalidArgument(f"studio: expected {key} to be one of {', '.join(CHOICES[key])}.")
        said["text"] = form.text(f"text.{place}", column.text).replace("\r\n", "\n")
        said["source"] = form.text(f"source.{place}", column.source)[:LONGEST_NOTE]
        chosen = form.text(f"preset.{place}")
        columns.append(Declared.of(preset(chosen, column.name), column.kind) if chosen else replace(column, **said))
    several = [column.name for column in columns if column.use == "person"]
    if len(several) > 1:
        raise InvalidArgument("Schema: only one column can identify people.")
    return replace(draft, columns=_with_lists(columns, form.text("lists")))


def _from_files(desk: Desk, draft: Draft, form: Form) -> Draft:
    """Lists from a codebook, or from a file that is public already, for the columns that it names."""
    found: dict[str, Attribute] = {}
    header = [Column(each.name, Kind(each.kind)) for each in draft.columns]
    if name := form.text("codebook"):
        found |= declaring.from_codebooks([desk.folder.inside(name)], header)
    if name := form.text("public"):
        if form.text("is-public") != "yes":
            raise InvalidArgument(
                "studio: confirm that the file is public already. From private rows it would be a leak."
            )
        where = desk.folder.table(name)
        if _same_file(where, desk.folder.table(draft.table)):
            raise InvalidArgument("studio: this is the private table itself. Its values are not public.")
        found |= declaring.from_public(where, header)
    if (form.text("codebook") or form.text("public")) and not found:
        raise InvalidArgument("studio: the file says nothing about any column of the table.")
    columns = tuple(Declared.of(found[each.name], each.kind) if each.name in found else each for each in draft.columns)
    return replace(draft, columns=columns)


def _same_file(one: str, other: str) -> bool:
    if "://" in one or "://" in other:
        return one == other
    paths = [Path(each.partition("?")[0]) for each in (one, other)]
    return all(path.exists() for path in paths) and paths[0].samefile(paths[1])


def _with_lists(columns: list[Declared], lists: str) -> tuple[Declared, ...]:
    """Several columns at once: a line for each, with its name, a colon, and its list."""
    known = {column.name: place for place, column in enumerate(columns)}
    for number, line in enumerate(lists.splitlines(), start=1):
        if not line.strip():
            continue
        name, colon, listed = line.partition(":")
        if not colon or name.strip() not in known:
            raise InvalidArgument(
                f"studio: line {number} of the lists does not start with the name of a column and a colon."
            )
        place = known[name.strip()]
        items = [item.strip() for item in listed.split(",") if item.strip()]
        edges = columns[place].values == "edges"
        columns[place] = replace(
            columns[place], use="use", text=", ".join(items) if edges else "\n".join(items), source="pasted"
        )
    return tuple(columns)


ROUTES = [
    Route("/d/{name}/declare", show, methods=["GET"]),
    Route("/d/{name}/declare", save, methods=["POST"]),
]
