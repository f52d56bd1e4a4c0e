"""Ask: which tables, at which budget, and how exact each will be. Public numbers only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from dpbayes.base import checks
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.jobs.base import maker
from dpbayes.jobs.request import Request
from dpbayes.ledger.account import Account
from dpbayes.plot.pictures import pairs_picture
from dpbayes.privacy.guarantee import ApproxDP, PureDP
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.studio.desk import Desk, Form, desk_of, draft_of, form_of, page, release_commands, to
from dpbayes.studio.drafts import Draft
from dpbayes.studio.outlook import Expected, Outlook, cheapest, outlook_of
from dpbayes.words.report import title

MOST_IN_TRIANGLE = 14
"""With more attributes, one row of the triangle is shown at a time, and all of it as a small map."""


class Box(NamedTuple):
    """A place in the triangle."""

    key: str
    name: str
    cells: int
    chosen: bool
    verdict: str


def show(
    http: HttpRequest,
    draft: Draft | None = None,
    asked: Request | None = None,
    problem: str = "",
    focus: str = "",
    *,
    unread: bool = False,
) -> Response:
    """The triangle, the budget, and what each table will be like."""
    desk, draft = desk_of(http), draft or draft_of(http)
    try:
        schema, account = desk.drafts.schema(draft), desk.account(draft)
    except DpbayesError as met:
        return page(http, "problem.html", step="ask", draft=draft, problem=str(met))
    asked = asked or desk.request(draft)
    focus = focus or http.query_params.get("focus", "")
    outlook, trouble = (None, "") if unread else _forecast(schema, account, asked)
    problem = problem or trouble
    return page(
        http,
        "ask.html",
        step="ask",
        draft=draft,
        schema=schema,
        account=account,
        asked=asked,
        problem=problem,
        outlook=outlook,
        trouble="",
        typed=form_of(http) if problem and http.method == "POST" else None,
        commands=release_commands(draft, dry=True) if asked.tables else (),
        forms=forms,
        **_triangle(schema, asked, outlook.expected if outlook else [], focus),
    )


def _forecast(schema: Schema, account: Account | None, asked: Request) -> tuple[Outlook | None, str]:
    """What to expect of the tables that were chosen, or why that cannot be said."""
    if not asked.tables:
        return None, ""
    try:
        found = outlook_of(asked, schema, account)
        _ = found.expected, found.fits
    except DpbayesError as met:
        return None, str(met)
    return found, ""


def _triangle(schema: Schema, asked: Request, expected: list[Expected], focus: str) -> dict[str, Any]:
    """The whole triangle of a narrow schema, or one row of a wide one."""
    chosen = {frozenset(Marginal.parse(text).names) for text in asked.tables}
    judged = {frozenset(each.table.marginal.names): each.verdict for each in expected}
    names, sizes = schema.names, schema.shape

    def cell(row: int, column: int) -> Box:
        pair = frozenset((names[row], names[column]))
        said = names[row] if row == column else f"{names[row]} × {names[column]}"
        many = sizes[row] if row == column else sizes[row] * sizes[column]
        return Box(f"{row}-{column}", said, many, pair in chosen, judged.get(pair, ""))

    if len(names) <= MOST_IN_TRIANGLE:
        rows = [[cell(row, column) for column in range(row + 1)] for row in range(len(names))]
        return {"rows": rows, "focus": "", "row": [], "map": None}
    at = names.index(focus) if focus in names else 0
    row = [cell(max(at, other), min(at, other)) for other in range(len(names))]
    return {"rows": [], "focus": names[at], "row": row, "map": pairs_picture(names, chosen, at).svg}


def save(http: HttpRequest) -> Response:
    """Keep what was chosen; solve for the budget if an accuracy was asked for."""
    desk, draft, form = desk_of(http), draft_of(http), form_of(http)
    asked, focus = desk.request(draft), form.text("next-focus") or form.text("focus")
    problem = ""
    try:
        schema = desk.drafts.schema(draft)
        asked, problem = _read(schema, asked, form)
        desk.keep(draft, asked)
        if problem:
            return show(http, draft, asked, problem, focus, unread=True)
        if form.text("action") in ("solve", "next") and not asked.tables:
            raise InvalidArgument("studio: choose a table first.")
        if form.text("action") == "solve":
            within = checks.number("studio", "records", form.text("within"))
            asked = cheapest(asked, schema, desk.account(draft), within)
            desk.keep(draft, asked)
        if form.text("action") == "budget":
            draft = _budget(desk, draft, schema, form)
    except DpbayesError as met:
        return show(http, draft, asked, str(met), focus)
    if form.text("action") == "next":
        if _forecast(schema, desk.account(draft), asked)[1]:
            return show(http, draft, asked, focus=focus)
        return to(f"/d/{draft.name}/risk")
    return to(f"/d/{draft.name}/ask" + (f"?focus={quote(focus, safe='')}" if focus else ""))


def live(http: HttpRequest) -> Response:
    """The forecast for the form as it stands. The form is kept, so that a link to another step loses nothing."""
    desk, draft, form = desk_of(http), draft_of(http), form_of(http)
    schema, account = desk.drafts.schema(draft), desk.account(draft)
    asked, problem = _read(schema, desk.request(draft), form)
    desk.keep(draft, asked)
    outlook, trouble = (None, problem) if problem else _forecast(schema, account, asked)
    return page(
        http,
        "forecast.html",
        draft=draft,
        schema=schema,
        account=account,
        asked=asked,
        outlook=outlook,
        trouble=trouble,
        forms=forms,
    )


def _read(schema: Schema, before: Request, form: Form) -> tuple[Request, str]:
    """The request as far as the form can be read, tables first, and what is wrong with the rest."""
    asked = before
    try:
        asked = replace(before, tables=_choice(schema, before, form))
        more = tuple(str(Marginal.parse(text)) for text in form.texts("other"))
        for text in (*asked.tables, *more):
            if Marginal.parse(text).size(schema) > 1_000_000:  # no browser and no reader has a use for it
                raise InvalidArgument(f"studio: {text} has more than 1,000,000 cells. Choose fewer attributes.")
        asked = replace(asked, tables=tuple(dict.fromkeys((*asked.tables, *more))))
        product = form.text("product", before.product)
        checks.one_of("studio", ("tables", "posterior", before.product), product=product)
        made = asked.with_changes(product=product)
        if form.text("epsilon"):
            made = replace(made, target=_guarantee(form), open_delta=False)
        made = replace(made, keys=_keys(made, _prior(form)))
        if product == "posterior" and made.tables:
            made.job(schema)  # it is of one table
    except DpbayesError as met:
        return asked, str(met)
    return made, ""


def _choice(schema: Schema, before: Request, form: Form) -> tuple[str, ...]:
    """The tables that are ticked, and those that the form does not show."""
    known = {frozenset(Marginal.parse(text).names): text for text in before.tables}
    forms = {frozenset(Marginal.parse(text).names): text for text in form.texts("form")}
    tables: list[str] = []
    for key in form.texts("cell"):
        axes = _axes(key, schema.names)
        tables.append(forms.get(frozenset(axes)) or known.get(frozenset(axes), str(Marginal(axes))))
    for chosen, text in known.items():
        boxed = len(chosen) <= 2 and (len(schema.names) <= MOST_IN_TRIANGLE or form.text("focus") in chosen)
        if not boxed and (len(chosen) <= 2 or text in form.texts("keep")):
            tables.append(forms.get(chosen, text))
    order = {text: place for place, text in enumerate(before.tables)}
    return tuple(dict.fromkeys(sorted(tables, key=lambda text: order.get(text, len(order)))))


def _axes(key: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The attributes of a box, one or two."""
    row, _, column = key.partition("-")
    if not (row.isdigit() and column.isdigit()) or int(row) >= len(names) or int(column) >= len(names):
        raise InvalidArgument("studio: there is no such table. Open this page again.")
    return tuple(dict.fromkeys((names[int(row)], names[int(column)])))


def _keys(asked: Request, said: dict[str, Any]) -> dict[str, Any]:
    """What the job is told: what the form says, as far as this product takes it, and what it does not show."""
    known = maker(asked.product).MAKES[asked.product].keys
    merged = {**asked.keys, **{key: value for key, value in said.items() if key in known}}
    return {key: value for key, value in merged.items() if value is not None}


def _prior(form: Form) -> dict[str, Any]:
    """The prior of a posterior; that of tables is a file, and is not in the form."""
    listed = [part for part in form.text("prior_parameters").replace(";", ",").split(",") if part.strip()]
    prior = tuple(checks.number("studio", "prior", part) for part in listed)
    return {"prior": prior} if prior and form.text("product") == "posterior" else {}


def _guarantee(form: Form, which: str = "") -> PureDP | ApproxDP:
    """The (ε, δ) of a form; without δ, a pure ε."""
    epsilon, delta = checks.number("studio", "ε", form.text(f"{which}epsilon")), form.text(f"{which}delta")
    if delta in ("", "0"):
        return PureDP(epsilon=epsilon)
    return ApproxDP(epsilon=epsilon, delta=checks.number("studio", "δ", delta))


def _budget(desk: Desk, draft: Draft, schema: Schema, form: Form) -> Draft:
    """Give the data set a budget: the owner's decision, written to the ledger."""
    from dpbayes.ledger.ledger import Ledger

    limit, name = _guarantee(form, "limit-"), form.text("ledger") or f"{draft.name}.ledger"
    Ledger(desk.folder.ledger(name)).open(schema, limit, about=form.text("limit-about"))
    return desk.drafts.save(replace(draft, ledger=name))


def forms(marginal: Marginal) -> list[tuple[str, str]]:
    """The three forms of a table of two attributes."""
    one, other = sorted(marginal.names)
    ordered = (one, other) if set(marginal.of) != {one, other} else marginal.of
    found = [Marginal(tuple(ordered)), Marginal((one,), (other,)), Marginal((other,), (one,))]
    return [(str(each), title(each)) for each in found]


ROUTES = [
    Route("/d/{name}/ask", show, methods=["GET"]),
    Route("/d/{name}/ask", save, methods=["POST"]),
    Route("/d/{name}/ask/forecast", live, methods=["POST"]),
]
