"""From a request to a release: the risk, a preview on example rows, the review with the one form that spends."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from dpbayes import curator, recovery
from dpbayes.base.codec import canonical, digest
from dpbayes.base.display import tag
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.base.files import check_folder
from dpbayes.design.forecast import warnings
from dpbayes.design.plan import Plan
from dpbayes.jobs.request import Request
from dpbayes.ledger.account import Account
from dpbayes.ledger.ledger import above_limit
from dpbayes.release.words import ABOUT, statement
from dpbayes.report.page import report_html
from dpbayes.studio.desk import Desk, Form, command, desk_of, draft_of, form_of, page, release_commands, to
from dpbayes.studio.drafts import Draft
from dpbayes.studio.outlook import Outlook, alternatives, outlook_of, rehearsal, risk_of
from dpbayes.studio.pages.published import in_frame
from dpbayes.studio.work import Say

MARK = "Preview on example rows. None of these numbers is about your table."

STYLE = """<style>
body::before { content: "PREVIEW"; position: fixed; inset: 0; display: grid; place-items: center; pointer-events: none;
font: 700 20vw/1 sans-serif; color: rgb(127 127 127 / 0.13); transform: rotate(-24deg); z-index: 9; }
.preview { background: #0b5a8f; color: #ffffff; font-weight: 600; padding: 0.6rem 1rem; max-width: none; }
</style>"""


def risk(http: HttpRequest) -> Response:
    """The promise in words, the best attacker, and other budgets."""
    desk, draft = desk_of(http), draft_of(http)
    schema, account, asked = desk.drafts.schema(draft), desk.account(draft), desk.request(draft)
    if not asked.tables:
        return to(f"/d/{draft.name}/ask")
    outlook = outlook_of(asked, schema, account)
    compared = alternatives(asked, outlook)
    target = asked.guarantee(account)
    return page(
        http,
        "risk.html",
        step="risk",
        draft=draft,
        promise=statement(target, schema.unit, tables=len(asked.tables), seeded=False),
        target=target,
        risk=risk_of(outlook.plan),
        taking_part=not schema.unit.replaces,
        compared=compared,
        warnings=warnings(outlook.plan),
        commands=release_commands(draft, dry=True),
    )


def preview(http: HttpRequest) -> Response:
    """The frame around the report."""
    desk, draft = desk_of(http), draft_of(http)
    if not desk.request(draft).tables:
        return to(f"/d/{draft.name}/ask")
    return page(http, "preview.html", step="preview", draft=draft, commands=release_commands(draft, dry=True))


def preview_report(http: HttpRequest) -> Response:
    """The report itself, on example rows."""
    desk, draft = desk_of(http), draft_of(http)
    schema, asked = desk.drafts.schema(draft), desk.request(draft)
    if sum(marginal.size(schema) for marginal in asked.marginals) > 20_000:
        raise InvalidArgument("studio: a preview shows at most 20,000 cells. The release itself may have more.")
    html, banner = (
        report_html(rehearsal(schema, asked, desk.account(draft))),
        tag("p", MARK, class_="preview", role="note"),
    )
    return in_frame(html.replace("</head>", f"{STYLE}</head>", 1).replace("<main>", f"<main>{banner}", 1))


def show(http: HttpRequest, draft: Draft | None = None, problem: str = "") -> Response:
    """Everything that a signature would be put under."""
    desk, draft = desk_of(http), draft or draft_of(http)
    under_way = desk.work.status(draft.once)
    if under_way is not None and under_way["state"] != "refused" and not problem:
        return to(f"/d/{draft.name}/released/{draft.once}")
    if under_way is not None:  # nothing was charged: the next attempt gets a name of its own
        draft = desk.drafts.save(replace(draft, once=secrets.token_hex(16)))
    asked = desk.request(draft)
    if not asked.tables:
        return to(f"/d/{draft.name}/ask")
    try:
        plan, account = _plan(desk, draft, asked)
    except DpbayesError as met:
        return page(http, "problem.html", step="review", draft=draft, problem=str(met))
    out = desk.out_folder(draft)
    return page(
        http,
        "review.html",
        step="review",
        draft=draft,
        problem=problem,
        asked=asked,
        plan=plan,
        account=account,
        outlook=Outlook(plan=plan, account=account),
        price=account.budget.amount(plan.cost),
        out=out,
        promise=statement(plan.target, plan.schema.unit, tables=len(asked.tables), seeded=False),
        reviewed=_fingerprint(draft, asked, plan, account, out),
        earlier=[
            (release.id, f"{release.created[:10]}  {release.about.get('title') or name}")
            for name, release in desk.folder.releases().items()
            if release.dataset == draft.id and not release.seeded
        ],
        commands=release_commands(draft, out=out),
    )


def _plan(desk: Desk, draft: Draft, asked: Request) -> tuple[Plan, Account]:
    """The plan, with the columns of the table checked by name and type. No row is read."""
    account = desk.account(draft)
    if account is None:
        raise InvalidArgument("Ledger: this data set has no limit yet. Set one on the page Ask.")
    schema = desk.drafts.schema(draft)
    where = desk.folder.table(draft.table)
    if schema.digest not in account.schemas and account.schemas:
        accept = command("dpbayes", "ledger", "accept", draft.schema, "--ledger", draft.ledger, "--about", "WHY")
        raise InvalidArgument(
            "Ledger: releases of this data set use another schema. Use that one, or let the data owner accept this "
            f"one: {accept}"
        )
    held = curator.Curator(where, schema, ledger=desk.folder.ledger(draft.ledger))
    return held.plan(asked), account


def _fingerprint(draft: Draft, asked: Request, plan: Plan, account: Account, out: str) -> str:
    """What was on the page: a release is made of this, or not at all."""
    asked = asked.with_changes(**dict.fromkeys(ABOUT, ""))  # what readers are told comes with the form
    return digest(canonical([asked.to_toml(), plan.schema.digest, draft.table, draft.ledger, account.head.hash, out]))


def describe(http: HttpRequest) -> Response:
    """What readers are told about the release."""
    desk, draft, form = desk_of(http), draft_of(http), form_of(http)
    try:
        desk.keep(draft, _with_about(desk.request(draft), form))
    except DpbayesError as problem:
        return show(http, draft, str(problem))
    return to(f"/d/{draft.name}/review")


def _with_about(asked: Request, form: Form) -> Request:
    """The request with what the form tells readers."""
    return asked.with_changes(**{key: form.text(key).replace("\r\n", "\n") for key in ABOUT if key in form})


def release(http: HttpRequest) -> Response:
    """Charge and draw: once for what was reviewed, however often this form is sent."""
    desk, draft, form = desk_of(http), draft_of(http), form_of(http)
    once = form.text("once")
    if desk.work.status(once) is not None:
        return to(f"/d/{draft.name}/released/{once}")
    asked = desk.request(draft)
    out = desk.out_folder(draft)
    try:
        if once != draft.once:
            raise InvalidArgument("studio: this page is out of date. Review the release again.")
        asked = _with_about(asked, form)
        desk.keep(draft, asked)
        plan, account = _plan(desk, draft, asked)
        if form.text("reviewed") != _fingerprint(draft, asked, plan, account, out):
            raise InvalidArgument(
                "studio: the request, the table or the balance has changed since this page was shown. Review it again."
            )
        if form.text("confirm") != plan.schema.id.strip():
            raise InvalidArgument("studio: to confirm, type the name of the data set exactly as it is shown.")
        if not account.affords(plan.cost):
            raise above_limit(account, plan.cost)
        folder = check_folder(desk.folder.inside(out))
    except DpbayesError as problem:
        if desk.work.status(once) is not None:  # the same form, sent a moment earlier, has changed the balance
            return to(f"/d/{draft.name}/released/{once}")
        return show(http, draft, str(problem))
    about = {"draft": draft.name, "folder": out, "ledger": draft.ledger}
    desk.work.start(once, about, _work(desk, draft, asked, folder))
    return to(f"/d/{draft.name}/released/{once}")


def _work(desk: Desk, draft: Draft, asked: Request, folder: Path) -> Callable[[Say], None]:
    table, ledger, schema = desk.folder.table(draft.table), desk.folder.ledger(draft.ledger), desk.drafts.schema(draft)

    def make(say: Say) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        curator.Curator(table, schema, ledger=ledger, progress=say).release(asked, out=folder)

    return make


def progress(http: HttpRequest) -> Response:
    """How a release stands."""
    desk, draft, once = desk_of(http), draft_of(http), http.path_params["once"]
    status = desk.work.status(once)
    if status is None or status.get("draft", draft.name) != draft.name:
        raise InvalidArgument("studio: there is no such release under way. Review it again.")
    words = {
        "done": ("dpbayes", "verify", status.get("folder", ""), "--ledger", draft.ledger),
        **dict.fromkeys(("unfinished", "interrupted"), ("dpbayes", "ledger", "finish", draft.ledger)),
    }.get(status["state"])
    return page(
        http,
        "released.html",
        title="Release",
        step="review",
        draft=draft,
        once=once,
        status_=status,
        commands=(command(*words),) if words else (),
    )


def finish(http: HttpRequest) -> Response:
    """Complete what was interrupted; nothing is charged again."""
    desk, draft, once = desk_of(http), draft_of(http), http.path_params["once"]
    status = desk.work.status(once)
    if status is None or status["state"] not in ("unfinished", "interrupted"):
        return to(f"/d/{draft.name}/released/{once}")
    problem: DpbayesError | None = None
    try:
        recovery.finish(desk.folder.ledger(draft.ledger), table=desk.folder.table(draft.table))
    except DpbayesError as met:
        problem = met  # which may be about another release of the ledger
    if (desk.folder.inside(str(status["folder"])) / "release.json").is_file():
        desk.work.settle(once, state="done", says="")
    elif problem is not None:
        desk.work.settle(once, state="unfinished", says=str(problem))
    else:
        desk.work.settle(once, state="refused", says="Nothing was charged, so there is nothing to finish.")
    return to(f"/d/{draft.name}/released/{once}")


def again(http: HttpRequest) -> Response:
    """Plan another release of the same data set."""
    desk, draft = desk_of(http), draft_of(http)
    status = desk.work.status(draft.once)
    if status is not None and status["state"] in ("done", "refused"):
        desk.drafts.save(replace(draft, once=secrets.token_hex(16)))
    return to(f"/d/{draft.name}/ask")


ROUTES = [
    Route("/d/{name}/risk", risk, methods=["GET"]),
    Route("/d/{name}/preview", preview, methods=["GET"]),
    Route("/d/{name}/preview/report", preview_report, methods=["GET"]),
    Route("/d/{name}/review", show, methods=["GET"]),
    Route("/d/{name}/review", describe, methods=["POST"]),
    Route("/d/{name}/release", release, methods=["POST"]),
    Route("/d/{name}/released/{once}", progress, methods=["GET"]),
    Route("/d/{name}/released/{once}/finish", finish, methods=["POST"]),
    Route("/d/{name}/again", again, methods=["POST"]),
]
