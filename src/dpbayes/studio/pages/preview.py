"""Preview: the real report on made-up rows, marked as such."""

from __future__ import annotations

from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from dpbayes.base.display import tag
from dpbayes.base.errors import InvalidArgument
from dpbayes.report.page import report_html
from dpbayes.studio import requests
from dpbayes.studio.desk import desk_of, draft_of, page, to
from dpbayes.studio.outlook import rehearsal

REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox"
"""A report brings its own style and needs nothing else; it may be shown inside the studio's pages only."""

MOST_CELLS = 20_000

MARK = "Preview on made-up rows. None of these numbers is about your table."

STYLE = """<style>
body::before { content: "PREVIEW"; position: fixed; inset: 0; display: grid; place-items: center; pointer-events: none;
font: 700 20vw/1 sans-serif; color: rgb(127 127 127 / 0.13); transform: rotate(-24deg); z-index: 9; }
.preview { background: #0b5a8f; color: #ffffff; font-weight: 600; padding: 0.6rem 1rem; max-width: none; }
</style>"""


def show(http: HttpRequest) -> Response:
    """The frame around the report."""
    desk, draft = desk_of(http), draft_of(http)
    if not requests.load(desk, draft).tables:
        return to(f"/d/{draft.name}/ask")
    return page(
        http, "preview.html", title="Preview", step="preview", draft=draft, commands=requests.commands(draft, dry=True)
    )


def report(http: HttpRequest) -> Response:
    """The report itself, on made-up rows."""
    desk, draft = desk_of(http), draft_of(http)
    schema, asked = desk.drafts.schema(draft), requests.load(desk, draft)
    if sum(marginal.size(schema) for marginal in asked.marginals) > MOST_CELLS:
        raise InvalidArgument(
            f"studio: a preview shows at most {MOST_CELLS:,} cells. The release itself may have more."
        )
    return watermarked(report_html(rehearsal(schema, asked, desk.account(draft))))


def watermarked(html: str) -> Response:
    """A report that nobody takes for a real one."""
    banner = tag("p", MARK, class_="preview", role="note")
    marked = html.replace("</head>", f"{STYLE}</head>", 1).replace("<main>", f"<main>{banner}", 1)
    return framed(marked)


def framed(html: str) -> Response:
    """A report for a frame of the studio."""
    return HTMLResponse(html, headers={"Content-Security-Policy": REPORT_POLICY})


ROUTES = [
    Route("/d/{name}/preview", show, methods=["GET"]),
    Route("/d/{name}/preview/report", report, methods=["GET"]),
]
