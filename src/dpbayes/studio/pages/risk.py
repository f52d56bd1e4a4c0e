"""Risk: what the budget means for one person, and what another budget would give."""

from __future__ import annotations

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from dpbayes.release.words import statement
from dpbayes.studio import forecasts, requests
from dpbayes.studio import risk as risks
from dpbayes.studio.desk import desk_of, draft_of, page, to


def show(http: HttpRequest) -> Response:
    """The promise in words, the best attacker, and other budgets."""
    desk, draft = desk_of(http), draft_of(http)
    schema, account, asked = desk.drafts.schema(draft), desk.account(draft), requests.load(desk, draft)
    if not asked.tables:
        return to(f"/d/{draft.name}/ask")
    plan = forecasts.planned(asked, schema, account)
    compared = risks.alternatives(asked, plan, account)
    target = asked.guarantee()
    return page(
        http,
        "risk.html",
        title="Risk",
        step="risk",
        draft=draft,
        promise=statement(target, schema.unit, tables=len(asked.tables), seeded=False),
        target=target,
        success=risks.success(plan),
        odds=risks.odds(plan),
        compared=compared,
        warnings=warnings(asked.expected_records or schema.records, target),
        commands=requests.commands(draft, dry=True),
    )


def warnings(records: int | None, target: object) -> list[str]:
    """What speaks against a budget."""
    found = []
    delta, epsilon = getattr(target, "delta", 0.0), getattr(target, "epsilon", 0.0)
    if delta and records and delta >= 1.0 / records:
        found.append(
            f"δ = {delta:g} is not below one in {records:,}, the number of records: a release that publishes one whole "
            "record at random would meet it. Choose a smaller δ."
        )
    if epsilon > 10:
        found.append(f"ε = {epsilon:g} promises next to nothing. Few publications need more than 10.")
    return found


ROUTES = [Route("/d/{name}/risk", show, methods=["GET"])]
