"""Risk: what the budget means for one person, and what another budget would give."""

from __future__ import annotations

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from dpbayes.design.forecast import warnings
from dpbayes.release.words import statement
from dpbayes.studio import requests
from dpbayes.studio.desk import desk_of, draft_of, page, to
from dpbayes.studio.outlook import alternatives, outlook_of, risk_of


def show(http: HttpRequest) -> Response:
    """The promise in words, the best attacker, and other budgets."""
    desk, draft = desk_of(http), draft_of(http)
    schema, account, asked = desk.drafts.schema(draft), desk.account(draft), requests.load(desk, draft)
    if not asked.tables:
        return to(f"/d/{draft.name}/ask")
    outlook = outlook_of(asked, schema, account)
    compared = alternatives(asked, outlook)
    target = asked.guarantee()
    return page(
        http,
        "risk.html",
        title="Risk",
        step="risk",
        draft=draft,
        promise=statement(target, schema.unit, tables=len(asked.tables), seeded=False),
        target=target,
        risk=risk_of(outlook.plan),
        taking_part=not schema.unit.replaces,
        compared=compared,
        warnings=warnings(outlook.plan),
        commands=requests.commands(draft, dry=True),
    )


ROUTES = [Route("/d/{name}/risk", show, methods=["GET"])]
