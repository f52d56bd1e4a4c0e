"""The application: routes, and one place where every failure becomes a page that quotes nothing."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from dpbayes.base.display import picture_style
from dpbayes.base.errors import DpbayesError
from dpbayes.jobs.request import Request
from dpbayes.privacy.guarantee import ApproxDP
from dpbayes.report.page import report_html
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Adjacency, Unit
from dpbayes.studio import pages
from dpbayes.studio.desk import Desk, page
from dpbayes.studio.folder import Folder
from dpbayes.studio.outlook import alternatives, outlook_of, rehearsal, risk_of
from dpbayes.studio.safety import Guard, Session

HIDDEN = "Studio: an unexpected {}, a bug in dpbayes. Its text stays hidden, since it may quote private values."


def studio(start: str | Path, *, session: Session | None, hosts: tuple[str, ...]) -> Starlette:
    """The studio of a folder; without a session it is for readers, and shows releases only."""
    desk = Desk(folder=Folder(start), session=session)
    routes = pages.READERS if session is None else pages.PRIVATE
    drawn = Route("/static/pictures.css", lambda _: Response(picture_style(), media_type="text/css"))
    static = Mount("/static", StaticFiles(directory=Path(__file__).with_name("static")), name="static")
    made = Starlette(
        routes=[*routes, drawn, static],
        middleware=[Middleware(Guard, session=session, hosts=hosts), Middleware(_Quiet)],
        exception_handlers={DpbayesError: _problem, HTTPException: _absence},
    )
    made.state.desk = desk
    return made


class _Quiet:
    """Nothing that goes wrong unexpectedly is quoted, in a page or in a log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and answer in one sentence where that fails."""
        try:
            await self._app(scope, receive, send)
        except Exception as problem:
            answer = PlainTextResponse(HIDDEN.format(type(problem).__name__) + "\n", status_code=500)
            await answer(scope, receive, send)


async def _problem(request: HttpRequest, problem: Exception) -> Response:
    return page(request, "problem.html", status=400, problem=str(problem), title="Not possible")


async def _absence(request: HttpRequest, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 404
    said = "Studio: there is no such page." if status == 404 else "Studio: this page cannot be asked for in that way."
    return page(request, "problem.html", status=status, problem=said, title="Not found")


def warm() -> None:
    """Plan and preview something small, so that libraries are loaded when the first page needs them."""
    unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    columns = tuple(Attribute(name=name, categories=("a", "b")) for name in ("x", "y"))
    schema = Schema(id="warm", unit=unit, records=1000, attributes=columns)
    asked = Request(tables=("x", "y|x"), target=ApproxDP(epsilon=1.0, delta=1e-6))
    with suppress(Exception):  # whatever it is, the page that needs it will say so
        outlook = outlook_of(asked, schema, None)
        alternatives(asked, outlook)
        risk_of(outlook.plan)
        report_html(rehearsal(schema, asked, None))
